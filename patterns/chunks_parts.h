// Shared by chunks.c, which has the life of a job and its runs, and chunks_plan.c.
#ifndef WEIR_PATTERNS_CHUNKS_PARTS_H
#define WEIR_PATTERNS_CHUNKS_PARTS_H

#include "patterns/chunks.h"
#include "patterns/fail.h"

enum weir__chunks_stage {
    WEIR__CHUNKS_UPLOAD,
    WEIR__CHUNKS_COMPUTE,
    WEIR__CHUNKS_DOWNLOAD,
    WEIR__CHUNKS_STAGES,
};

// One operation of a run.
struct weir__chunks_step {
    enum weir__chunks_stage stage;
    uint32_t chunk;
    bool flush; // the next step is in another queue
};

// The ends of one chunk's stages, in the latest run that reached them. BY_ENGINE
// only; a zeroed event was not recorded.
struct weir__chunks_ends {
    struct weir_event of[WEIR__CHUNKS_STAGES];
};

struct weir_chunks {
    struct weir_chunks_params params; // `label` is the copy
    char label[WEIR__PATTERN_LABEL_SIZE];
    char summary[WEIR__PATTERN_LABEL_SIZE]; // of the plan, for traces
    struct weir_chunks_plan plan;
    size_t units;
    size_t *cuts;  // where each chunk ends, in units; one a chunk
    bool in_place; // a download writes bytes of the next run's upload

    struct weir__chunks_step *steps;
    uint32_t step_count;
    struct weir__chunks_ends *ends; // one a chunk
    // BY_ENGINE: those of the stages that the job has, in order.
    weir_queue *queues[WEIR_CHUNKS_QUEUES_MAX];
    uint32_t queue_of[WEIR__CHUNKS_STAGES]; // BY_ENGINE

    bool broken; // runs are refused with this:
    struct weir_error cause;
};

// Whether a job has this stage.
bool weir__chunks_has(const struct weir_chunks_params *params, enum weir__chunks_stage stage);

// Chunk `index` of the job.
struct weir_chunk weir__chunks_at(const weir_chunks *chunks, uint32_t index);

// The queue of a stage of a chunk, as an index.
uint32_t weir__chunks_queue(const weir_chunks *chunks, enum weir__chunks_stage stage,
                            uint32_t chunk);

// Refuses params with a sentence, or stores a plan, and the units of the job.
weir_status weir__chunks_plan(const struct weir_chunks_params *params,
                              struct weir_chunks_plan *out_plan, size_t *out_units);

// Writes `cuts`, and the sizes of the plan.
void weir__chunks_write_cuts(weir_chunks *chunks);

// Writes the steps of a run, one for each stage of each chunk.
void weir__chunks_write_steps(weir_chunks *chunks);

#endif
