// A case is an order of operations, a number of queues and a number of chunks. Queues
// are created for each case, outside the measured time, so that those of one case do
// not share a device's channels with those of another.
#include "tests/bench/peers/chunk_job.h"

#include <math.h>
#include <string.h>

enum order {
    DEPTH_FIRST,   // H_0 K_0 D_0  H_1 K_1 D_1  ...
    BREADTH_FIRST, // H_0 H_1 ...  K_0 K_1 ...  D_0 D_1 ...
    INTERLEAVED    // H_0  K_0 H_1 D_0  K_1 H_2 D_1  ...
};

enum stage {
    UP,
    MULTIPLY,
    DOWN,
    STAGES
};

struct chunk_case {
    const char *name;
    enum order order;
    unsigned queues;
    unsigned chunks;
    bool by_engine; // a queue for each stage, with events between them
    enum {
        EQUAL,
        GROWING, // from LEAST bytes, a twentieth each, up to a 1 / `chunks` of all
    } sizes;
    bool graph; // captured once
};

enum {
    LEAST = 2 << 20,
    ALIGNMENT = CHUNK_BLOCK * sizeof(float)
};

// The pieces of a case.
struct pieces {
    unsigned count;
    size_t ends[CHUNKS_MAX];
};

// The textbook's cases have as many chunks as queues.
static const struct chunk_case cases[] = {
    {"one_queue", DEPTH_FIRST, 1, 1, false, EQUAL, false},
    {"depth_first_2", DEPTH_FIRST, 2, 2, false, EQUAL, false},
    {"breadth_first_2", BREADTH_FIRST, 2, 2, false, EQUAL, false},
    {"interleaved_2", INTERLEAVED, 2, 2, false, EQUAL, false},
    {"depth_first_4", DEPTH_FIRST, 4, 4, false, EQUAL, false},
    {"breadth_first_4", BREADTH_FIRST, 4, 4, false, EQUAL, false},
    {"interleaved_4", INTERLEAVED, 4, 4, false, EQUAL, false},
    {"depth_first_8", DEPTH_FIRST, 8, 8, false, EQUAL, false},
    {"breadth_first_8", BREADTH_FIRST, 8, 8, false, EQUAL, false},
    {"interleaved_8", INTERLEAVED, 8, 8, false, EQUAL, false},
    {"depth_first_16", DEPTH_FIRST, 16, 16, false, EQUAL, false},
    {"one_queue_64_chunks", DEPTH_FIRST, 1, 64, false, EQUAL, false},
    {"depth_first_8_64_chunks", DEPTH_FIRST, 8, 64, false, EQUAL, false},
    {"breadth_first_8_64_chunks", BREADTH_FIRST, 8, 64, false, EQUAL, false},
    {"interleaved_8_64_chunks", INTERLEAVED, 8, 64, false, EQUAL, false},
    {"three_queues_32_chunks", INTERLEAVED, 3, 32, true, EQUAL, false},
    {"three_queues_64_chunks", INTERLEAVED, 3, 64, true, EQUAL, false},
    {"three_queues_64_chunks_breadth", BREADTH_FIRST, 3, 64, true, EQUAL, false},
    {"three_queues_96_chunks", INTERLEAVED, 3, 96, true, EQUAL, false},
    {"three_queues_growing", INTERLEAVED, 3, 64, true, GROWING, false},
    {"graph_64_chunks", INTERLEAVED, 3, 64, true, EQUAL, true},
    {"graph_128_chunks", INTERLEAVED, 3, 128, true, EQUAL, true},
};

enum {
    CASES = sizeof cases / sizeof *cases
};

static float number_at(size_t index)
{
    // Whole, so that every multiple is exact.
    return (float)(index * 2654435761u >> 12 & 0xfffff);
}

size_t chunk_size(uint64_t bytes)
{
    const size_t unit = (size_t)64 * ALIGNMENT;
    return (size_t)bytes / unit * unit;
}

void chunk_fill(float *src, size_t size)
{
    for (size_t i = 0; i < size / sizeof *src; i++)
        src[i] = number_at(i);
}

size_t chunk_wrong(const float *dst, size_t size, float factor)
{
    size_t wrong = 0;
    for (size_t i = 0; i < size / sizeof *dst; i++)
        wrong += dst[i] != factor * number_at(i);
    return wrong;
}

static void cut(size_t size, const struct chunk_case *c, struct pieces *out)
{
    const size_t units = size / ALIGNMENT, most = size / c->chunks;
    const size_t equal = c->chunks < units ? c->chunks : units;
    size_t next = LEAST, end = 0;
    for (out->count = 0; end < size && out->count < CHUNKS_MAX; out->count++) {
        next = next < most ? next : most;
        if (c->sizes == EQUAL)
            end = units * (out->count + 1) / equal * ALIGNMENT;
        else
            end += (next + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        if (end > size || out->count + 1 == CHUNKS_MAX)
            end = size;
        out->ends[out->count] = end;
        next += next / 20;
    }
}

// One operation of one chunk, with the events that its stage needs BY_ENGINE.
static bool submit(const struct chunk_job *job, const struct chunk_case *c,
                   const struct pieces *pieces, enum stage stage, unsigned chunk, float factor)
{
    const struct chunk_calls *calls = job->calls;
    const size_t offset = chunk > 0 ? pieces->ends[chunk - 1] : 0;
    const size_t size = pieces->ends[chunk] - offset;
    const unsigned queue = c->by_engine ? stage : chunk % c->queues;
    if (c->by_engine && stage != UP && !calls->wait(job->user, queue, 2 * chunk + (stage == DOWN)))
        return false;
    const bool fine = stage == UP         ? calls->up(job->user, queue, offset, size)
                      : stage == MULTIPLY ? calls->multiply(job->user, queue, offset, size, factor)
                                          : calls->down(job->user, queue, offset, size);
    if (!fine)
        return false;
    // Flushes the work that another queue waits for.
    if (c->by_engine && stage != DOWN)
        return calls->record(job->user, queue, 2 * chunk + (stage == MULTIPLY)) &&
               calls->flush(job->user, queue);
    return true;
}

static bool submit_interleaved(const struct chunk_job *job, const struct chunk_case *c,
                               const struct pieces *pieces, float factor)
{
    bool fine = submit(job, c, pieces, UP, 0, factor);
    for (unsigned i = 0; fine && i < pieces->count; i++)
        fine = submit(job, c, pieces, MULTIPLY, i, factor) &&
               (i + 1 == pieces->count || submit(job, c, pieces, UP, i + 1, factor)) &&
               submit(job, c, pieces, DOWN, i, factor);
    return fine;
}

static bool submit_all(const struct chunk_job *job, const struct chunk_case *c,
                       const struct pieces *pieces, float factor)
{
    const unsigned count = pieces->count;
    bool fine = true;
    if (c->order == INTERLEAVED)
        return submit_interleaved(job, c, pieces, factor);
    for (unsigned i = 0; fine && i < count * STAGES; i++)
        fine = c->order == DEPTH_FIRST
                   ? submit(job, c, pieces, (enum stage)(i % STAGES), i / STAGES, factor)
                   : submit(job, c, pieces, (enum stage)(i / count), i % count, factor);
    return fine;
}

// Runs a case `times` times; the milliseconds of the last one.
static bool run_case(const struct chunk_job *job, const struct chunk_case *c, float factor,
                     int times, double *out_ms)
{
    const struct chunk_calls *calls = job->calls;
    struct pieces pieces = {.count = 0};
    bool fine = true;
    cut(job->size, c, &pieces);
    if (c->graph)
        fine = calls->capture(job->user) && submit_all(job, c, &pieces, factor) &&
               calls->end_capture(job->user);
    for (int t = 0; fine && t < times; t++) {
        const double began = peer_now_ms();
        fine = c->graph ? calls->launch(job->user) : submit_all(job, c, &pieces, factor);
        for (unsigned i = 0; fine && i < c->queues; i++)
            fine = calls->flush(job->user, i);
        fine = fine && calls->finish(job->user);
        *out_ms = peer_now_ms() - began;
    }
    return fine;
}

static bool has_case(const struct chunk_job *job, const struct chunk_case *c)
{
    return !c->graph || job->calls->capture;
}

// The bare copies: up in queue 0, down in queue 1.
static bool run_copies(const struct chunk_job *job, bool up, bool down, double *out_ms)
{
    const struct chunk_calls *calls = job->calls;
    const double began = peer_now_ms();
    const bool fine =
        (!up || (calls->up(job->user, 0, 0, job->size) && calls->flush(job->user, 0))) &&
        (!down || (calls->down_bare(job->user, 1, 0, job->size) && calls->flush(job->user, 1))) &&
        calls->finish(job->user);
    *out_ms = peer_now_ms() - began;
    return fine;
}

// Every case has a different factor, so that results of another case are wrong here.
bool chunk_check(struct chunk_job *job)
{
    bool fine = true;
    chunk_fill(job->src, job->size);
    peer_fact("bytes", (double)job->size);
    for (unsigned i = 0; fine && i < CASES; i++) {
        const float factor = (float)(2 + i % 14);
        double ms;
        if (!has_case(job, &cases[i]))
            continue;
        if (!job->calls->open(job->user, cases[i].queues))
            return false;
        fine = job->calls->spoil(job->user) && run_case(job, &cases[i], factor, 1, &ms);
        job->calls->close(job->user);
        const size_t wrong = fine ? chunk_wrong(job->dst, job->size, factor) : 0;
        if (wrong)
            fine = peer_fail("%s: %zu of %zu numbers are wrong", cases[i].name, wrong,
                             job->size / sizeof *job->dst);
        peer_checked(1);
    }
    return fine;
}

static bool measure_copies(struct chunk_job *job, const char *name, bool up, bool down)
{
    double ms;
    if (!job->calls->open(job->user, 2))
        return false;
    bool fine = true;
    for (int i = 0; fine && i < 2; i++)
        fine = run_copies(job, up, down, &ms);
    job->calls->close(job->user);
    if (fine)
        peer_value(name, ms);
    return fine;
}

bool chunk_round(struct chunk_job *job)
{
    bool fine = measure_copies(job, "up", true, false) &&
                measure_copies(job, "down", false, true) &&
                measure_copies(job, "both_ways", true, true);
    for (unsigned i = 0; fine && i < CASES; i++) {
        double ms;
        if (!has_case(job, &cases[i]))
            continue;
        if (!job->calls->open(job->user, cases[i].queues))
            return false;
        fine = run_case(job, &cases[i], 2, 2, &ms); // the queues are new
        job->calls->close(job->user);
        if (fine)
            peer_value(cases[i].name, ms);
    }
    return fine;
}

int chunk_main(const struct peer *peer, void *user, uint64_t *bytes, int argc, char **argv)
{
    const struct peer_option options[] = {
        {.name = "bytes",
         .help = "bytes each way",
         .value = bytes,
         .least = 1 << 16,
         .most = UINT64_C(1) << 33},
    };
    struct peer chunks = *peer;
    chunks.options = options;
    chunks.option_count = sizeof options / sizeof *options;
    *bytes = UINT64_C(1) << 30;
    return peer_main(&chunks, user, argc, argv);
}
