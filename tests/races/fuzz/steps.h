// Shared by the files that do the steps of a program.
//
//   program.c      a run from its beginning to its end, and the comparison
//   steps.c        operations, and edges between them; queues and pools; threads and their locks
//   host_steps.c   accesses of the host, host calls, transfers; captures and launches of graphs
#ifndef WEIR_TESTS_RACES_FUZZ_STEPS_H
#define WEIR_TESTS_RACES_FUZZ_STEPS_H

#include "tests/races/fuzz/program.h"

enum {
    QUEUES = 4,
    PLAIN = 3, // buffers that live as long as the program
    POOLED = 2,
    EVENTS = 4,
    NODES_OF_A_STEP = 12, // at most, with the end of a host call
    // With GROUND_LOCKS: locks of each kind, and what the oracle calls them.
    EACH = 2,
    KEY_MUTEX = 0,
    KEY_SEMAPHORE = EACH,
    KEY_WRITERS = 2 * EACH,
    KEY_READERS = 3 * EACH,
};

#define FILE_NAME "program"

struct slot {
    weir_buffer *buffer; // NULL: none
    uint32_t id;         // the oracle's
};

struct event {
    struct weir_event event;
    int node; // -1: not recorded
};

// An access of the host that is open.
struct open_access {
    struct slot slot;
    size_t offset, size;
    weir_access access;
};

struct range {
    struct slot *slot;
    size_t offset, size;
};

// A host call whose function waits for its gate.
struct call {
    bool pending;
    int queue, node;
    struct range range;
    weir_access access;
    int line; // of the access
    int key;  // that the function releases; -1: none
    bool may_lock;
    int mutex; // that the function takes before its access; -1: none
    struct run *run;
    struct gate gate;
    weir_status status;
};

// A thread that another one makes for a step, and that one joins then or later.
struct child {
    pthread_t thread;
    bool lives;
    void (*step)(struct run *run);
    struct run *run;
    struct gate done;
};

// One run.
struct run {
    struct ground *ground;
    struct program_notes *notes;
    struct oracle *oracle;
    FILE *text;
    weir_status status;         // the first failure
    weir_queue *queues[QUEUES]; // the last may be the legacy queue
    int numbers[QUEUES];        // the oracle's
    int queue_count, next_number;
    struct slot slots[PLAIN + POOLED];
    uint32_t next_buffer;
    struct event events[EVENTS];
    weir_pool *pool;
    weir_graph *graphs[PROGRAM_GRAPHS];
    weir_queue *captured[PROGRAM_GRAPHS][2];
    int launched[PROGRAM_GRAPHS]; // node of the last launch, -1: none
    struct open_access open[ORACLE_OPEN];
    struct call call; // one at a time
    struct child child;
    const uint8_t *step;
};

// Notes a failure.
static inline void ok(struct run *run, weir_status status)
{
    if (status < 0 && run->status == WEIR_OK)
        run->status = status;
}

// The line of the next call.
static inline int line(const struct run *run)
{
    return run->notes->line + run->oracle->count;
}

// Writes what the next call is.
#define SAY(run, ...)                                            \
    do {                                                         \
        if ((run)->text) {                                       \
            fprintf((run)->text, "%3d: ", (run)->oracle->count); \
            fprintf((run)->text, __VA_ARGS__);                   \
            fputc('\n', (run)->text);                            \
        }                                                        \
    } while (0)

// A struct range in such a text.
#define RANGE "b%u[%zu..%zu]"
#define WORDS_OF(range) (range).slot->id, (range).offset, (range).offset + (range).size - 1

static inline int pick_queue(const struct run *run, uint8_t byte)
{
    return byte % run->queue_count;
}

static inline weir_access pick_access(uint8_t byte)
{
    return (weir_access)(1 + byte % 3);
}

static inline int add(struct run *run, int queue)
{
    return oracle_add(run->oracle, run->numbers[queue]);
}

// The oracle's part of a sync of the queue: an operation, which the host's thread then knows.
static inline void note_sync(struct run *run, int queue)
{
    oracle_host_knows(run->oracle, add(run, queue));
}

// steps.c

// A range by three bytes; small ones are frequent.
struct range pick_range(struct run *run, uint8_t buffer, uint8_t where, uint8_t length);
void use(struct run *run, int node, struct range range, weir_access access);
void step_copy(struct run *run);
void step_fill(struct run *run);
void step_launch(struct run *run);
void step_copy_box(struct run *run);
void step_fill_box(struct run *run);
void step_record(struct run *run);
void step_wait(struct run *run);
void step_after(struct run *run);

// host_steps.c

void step_sync(struct run *run);
void step_sync_event(struct run *run);
void step_host(struct run *run);
void step_host_end(struct run *run);
void step_host_call(struct run *run);
void step_transfer(struct run *run);
// Lets a host call run that waits; before everything that waits for queues.
void open_gate(struct run *run);
// Ends open access `which`.
void close_access(struct run *run, size_t which);

weir_status make_queue(struct run *run, int which);
void step_new_queue(struct run *run);
void step_pool(struct run *run);

// steps.c, with GROUND_LOCKS

// A lock is taken and given back, a semaphore posted or taken, a thread made or joined.
void step_lock(struct run *run);
// A mutex is taken and given back.
void lock_mutex(struct run *run, int which);
// The same without a word to the oracle.
void take_and_give_mutex(int which);
// Joins a thread that was made, of which the oracle is not told.
void end_child(struct run *run);
// No semaphore can be taken then.
void forget_posts(void);

// steps.c

void step_release(struct run *run);
void step_acquire(struct run *run);
void release_key(const struct run *run, int key);
// The step is done by thread `thread` of the ground's, and has ended.
void run_on_thread(struct run *run, int thread, void (*step)(struct run *run));
// What all threads have done comes before what thread 0 does next, which the oracle is not told.
void gather_threads(struct run *run);

void step_capture(struct run *run);
void step_graph(struct run *run);

#endif
