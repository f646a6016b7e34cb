// Four chunks, each with a queue, in a chain with the plugin `sim`.
#ifndef WEIR_TESTS_PLUGINS_SIM_JOB_H
#define WEIR_TESTS_PLUGINS_SIM_JOB_H

#include "tests/plugins/rig.h"

enum {
    CHUNK = 1 << 22,
    CHUNKS = 4,
    WORDS = CHUNK / 4,
    BLOCKS = 32, // of 64 work-items; they fill the GPUs of the tables
};

struct job {
    struct rig rig;
    weir_queue *queues[CHUNKS];
    weir_buffer *host;
    weir_buffer *memory;
};

// A file of this process with that text; its path.
const char *job_file(const char *name, const char *text);

// Another one in each run: the plugin trace does not write to a file twice.
const char *job_trace(void);

// The lines of [sim]; one is kept.
const char *job_section(const char *gpu, const char *kernel_ns, const char *more);

// False fails the test.
bool job_start(struct job *job, const char *trace, const char *section, const char *plugins);
// A chain of `sim` alone, with a model of a byte a nanosecond. `more`: lines of [gpu]; `host`: how
// its time passes, and further lines of [sim].
bool job_start_plain(struct job *job, const char *more, const char *host);
void job_finish(struct job *job);
#define own_job OWN(job_finish) struct job

// A test whose body has `job`, a pointer.
#define JOB_TEST(suite, name, more, host) \
    WEIR_TEST_WITH(suite, name, struct job, job, job_start_plain(job, more, host), job_finish(job))

// Launches `spin` on so many blocks of 64 work-items, whose memory begins there.
weir_status job_spin(const struct job *job, weir_queue *queue, size_t at, uint32_t blocks);

// The upload, the kernel or the download of a chunk.
void job_submit(struct job *job, int chunk, int part);

// Waits for a record; when it was. And for a new one of the queue.
uint64_t job_time(struct weir_event event);
uint64_t job_now(weir_queue *queue);

// A queue whose records have times.
weir_queue *job_queue(weir_device *device, int32_t priority);

#endif
