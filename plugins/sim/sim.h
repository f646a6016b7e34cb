// Shared by the files of the plugin.
//
//   module.c    keys, a link's life, the data for the front end's objects, and the ops table
//   submit.c    the path of an operation: what it is, into virtual time, then on; measured kernels; records and times
//   host.c      the host in virtual time: a clock for each thread, waits and queries, jitter, memory that is not pinned
//
// The work itself runs on the next link as ever. Each operation is also submitted to the engine, at
// its thread's virtual time, before it is handed on. A thread's virtual time advances by what a submit
// costs, and by waits.
#ifndef WEIR_PLUGINS_SIM_SIM_H
#define WEIR_PLUGINS_SIM_SIM_H

#include <pthread.h>

#include <weir/module/error.h>
#include <weir/module/module.h>

#include "base/host_clock.h"
#include "plugins/sim/engine.h"
#include "plugins/sim/model.h"

enum {
    SIM_HISTORY = 1024,     // records of a queue that are kept, a power of two
    SIM_TIMES_MOST = 65536, // times of a queue that were not fetched, a power of two
    SIM_COPIERS_MOST = 64,  // threads that copy
    SIM_PIECES_MOST = 256,  // that they have, or will get
};

enum sim_host {
    SIM_HOST_FIXED, // what the model says of submits and waits
    SIM_HOST_NONE,  // takes no time
};

// The lowest bits of an operation's tag; the others are its sequence number.
enum sim_tag {
    SIM_TAG_OTHER,
    SIM_TAG_RECORD,
    SIM_TAG_TIMED,     // has times of its own
    SIM_TAG_PART,      // of a graph that has times as a whole
    SIM_TAG_GRAPH_END, // what waits for a launch waits for it
    SIM_TAG_BITS = 3,
};

// Kernels that were measured on the next link.
struct sim_scale {
    double factor;  // of what they took there; 0: none are measured
    void *measured; // a tree
};

// Times that vary; with the lock held.
struct sim_jitter {
    double share; // 0: they do not
    uint64_t state;
};

// A piece of an upload or a download that a thread copies.
struct sim_piece {
    const weir_buffer *buffer;
    size_t offset;
    uint64_t end_ns;
};

// With the lock held.
struct sim_copiers {
    uint64_t free_ns[SIM_COPIERS_MOST]; // when each thread is free again
    struct sim_piece pieces[SIM_PIECES_MOST];
    size_t count;
};

struct sim_wait; // host.c

struct sim {
    const struct weir_link *link;
    struct sim_gpu *gpu;
    const struct sim_model *model;
    enum sim_host host;
    uint64_t number; // of all that ever were, from 1
    bool graphs;     // the backend has graphs, and times of each as a whole
    struct weir_host_clock clock;
    pthread_mutex_t lock; // guards what follows
    struct sim_engine *engine;
    struct sim_scale scale;
    struct sim_jitter jitter;
    struct sim_copiers copiers;
    uint64_t thread;   // the number of the one that called first
    bool is_shared;    // another thread has submitted or waited, too
    uint64_t round;    // begins when a wait ends for which all other threads had to rest
    uint64_t woken_ns; // before which no thread that rested then does anything, and none begins
    struct sim_wait *waits;
    pthread_cond_t moved; // a wait has ended
    bool led;             // a thread goes on for all that wait
    bool restless;        // waits no longer wait for threads
};

struct sim_virtual_device {
    uint32_t index;
    uint64_t free_ns; // the end of the last submit: those of several threads come in a row
};

// A record, or the end of a graph.
struct sim_record {
    uint64_t sequence;
    struct sim_point point;
    uint64_t submit_ns;
    uint64_t end_ns;
    bool asked; // a query found it complete on the next link only
    bool complete;
};

struct sim_virtual_queue {
    struct sim *sim;
    struct sim_virtual_device *device;
    struct sim_queue_params params;
    // The engine's queues: its own, and one for each further branch of its graphs.
    uint32_t *lanes;
    uint32_t lane_count;
    struct sim_point *points; // of the nodes of a graph
    size_t point_room;
    struct sim_record *records; // `first_record` to before `next_record`, ascending
    size_t record_room;         // a power of two
    uint64_t first_record;
    uint64_t next_record;
    bool keeps_times;
    struct weir_operation_time *times; // `fetched` to before `kept`
    size_t time_room;                  // a power of two
    uint64_t fetched;
    uint64_t kept;
    uint64_t end_ns;         // of what is complete
    uint64_t graph_start_ns; // of the launch that runs; UINT64_MAX: none
};

WEIR_STATE_OF(sim_of, struct sim)
WEIR_DATA_OF(sim_device_of, struct sim_virtual_device, weir_device)
WEIR_DATA_OF(sim_queue_of, struct sim_virtual_queue, weir_queue)
// Whose memory a buffer is; NULL: the host's.
WEIR_DATA_OF(sim_memory_of, const struct sim_virtual_device, weir_buffer)

// submit.c

// Adds a queue of the engine's, with the lock held. False if out of memory.
bool sim_lane_add(struct sim_virtual_queue *queue);
weir_status sim_queue_submit(const struct weir_link *link, weir_queue *object,
                             const struct weir_operation *operation);

// With the lock held. NULL: gone, and complete.
struct sim_record *sim_record_find(const struct sim_virtual_queue *queue, uint64_t sequence);
// The engine's function, with the lock held.
void sim_record_done(const struct sim_done *done);
weir_status sim_queue_times(const struct weir_link *link, weir_queue *object,
                            struct weir_operation_time *times, size_t time_size, size_t capacity,
                            size_t *out_count);

// host.c

weir_status sim_host_note(const struct weir_link *link, const struct weir_host_note *note);

// What an operation moves or takes, this time.
uint64_t sim_vary(struct sim_jitter *jitter, uint64_t amount);

// A call of the program: takes the lock, and begins the thread's clock or sets it to when the thread was woken. The
// lock is released while the next link is at work.
void sim_enter(struct sim *sim);

// With the lock held. The calling thread's time.
uint64_t sim_now_ns(void);
// The thread does not go on before that time.
void sim_wait_until(uint64_t ns);
// A submit that takes so long: after those to its device before it, and before those after it.
void sim_submit_for(struct sim_virtual_queue *queue, uint64_t ns);
uint64_t sim_clock_now_ns(void *user);

weir_status sim_event_query(const struct weir_link *link, weir_queue *object, uint64_t sequence);
weir_status sim_event_wait(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                           uint64_t timeout_ns);
weir_status sim_event_time(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                           uint64_t *out_time_ns);
weir_status sim_queue_finish(const struct weir_link *link, weir_queue *object);
weir_status sim_device_clock(const struct weir_link *link, weir_device *object,
                             uint64_t *out_host_ns, uint64_t *out_device_ns);

#endif
