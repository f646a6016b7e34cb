// Shared by the files of the plugin.
//
//   module.c    keys, the ops table, and a link's life; what is submitted is kept, what is asked makes it run; copies of
//               operations; launches of graphs, as their nodes; the thread that goes on when the program waits for
//               something outside of Weir
//   schedule.c  which operations are pending, which may run, and until when they do; which of those is next: the
//               modes, from the seed alone; the threads that hand chosen operations on and wait for their end
//
// An operation stays here, as a copy, until something asks for its end: an event, a queue, or a
// number of operations that is too large. Then the schedule picks one operation after the other
// among the first ones of all queues whose wait, if they are one, is over, hands it on, and lets
// it end before it picks again. So the order depends on the seed alone, as long as one thread
// uses Weir, and every order that the declared dependencies allow can occur.
//
// An operation is handed on after a host call of the plugin's own, the gate, which makes the
// front end hold the queue: what the driver says to the operation is then booked as that of any
// operation that a host call held.
//
// A program may wait in a host call for what is not Weir's. An operation that does not end
// within some time is stalled: it goes on, and others run beside it.
//
// One lock guards everything. It is not held while an operation is handed on.
#ifndef WEIR_PLUGINS_PERTURB_PERTURB_H
#define WEIR_PLUGINS_PERTURB_PERTURB_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/module/error.h>
#include <weir/module/module.h>

#include "base/random.h"
#include "base/thread.h"

enum perturb_mode {
    PERTURB_RANDOM,
    PERTURB_LATE,
    PERTURB_PAIR,
};

struct perturb_queue;
struct perturb_operation;

// Operations of one queue that are handed on together: one with an effect, and the records after
// it.
struct perturb_batch {
    struct perturb_batch *next; // of those in flight
    struct perturb_queue *queue;
    struct perturb_operation *first;
    uint64_t last; // sequence
    uint64_t since_ns;
    bool open; // the gate lets them pass
    bool stalled;
};

struct perturb_operation {
    struct perturb_operation *next;
    uint64_t number;                // in the order of submission to all queues
    struct perturb_queue *producer; // WAIT; has a reference
    uint64_t awaited;               // WAIT
    unsigned side;                  // PERTURB_PAIR: of the first line, of the second, or neither
    bool is_of_host;                // a thread of the library runs it, which may wait for others
    struct perturb_batch batch;     // of which this is the first
    struct weir_operation_room room;
};

struct perturb_queue {
    struct perturb_queue *next; // in the order of creation
    struct perturb *perturb;
    weir_queue *object;
    uint64_t index;                  // 0, 1, 2 … of the link's queues
    struct perturb_operation *first; // pending
    struct perturb_operation *last;
    uint64_t submitted; // sequence
    uint64_t done;      // complete up to here
    uint64_t asked;     // the event of the last query
    uint64_t priority;
    uint32_t in_flight;  // batches
    uint32_t references; // of waits, and of the queue itself
    bool direct;         // the program uses the native queue: operations run when submitted
};

struct perturb_runner {
    struct perturb_runner *next;
    struct perturb *perturb;
    struct perturb_batch *batch; // NULL: idle
    struct weir_thread thread;
};

struct perturb_line {
    char file[256];
    int line; // 0: none
};

struct perturb_counts {
    uint64_t operations; // handed on
    uint64_t choices;    // among several
    uint64_t schedule;   // a digest of the order
    uint64_t idle;       // ran because the program asked for nothing
    uint64_t stalled;
    uint64_t reversed; // PERTURB_PAIR
};

struct perturb {
    const struct weir_link *link;
    enum perturb_mode mode;
    uint64_t seed;
    uint64_t idle_ns;
    uint64_t limit; // of pending operations
    struct perturb_line pair[2];
    const char *report; // file; "": none

    pthread_mutex_t lock; // of what follows
    pthread_cond_t changed;
    struct perturb_queue *queues;
    uint64_t queue_count; // ever
    uint64_t number;      // of operations, ever
    uint64_t pending;
    uint64_t active; // batches in flight that are not stalled
    uint64_t waiting;
    uint64_t touched_ns; // when the program last called
    uint64_t random;     // the generator's state
    uint64_t redraw;     // one in so many choices gives a queue a new priority; 0: none
    uint64_t eager;      // of 256 submits, that run something at once
    uint64_t ran_second; // the latest operation of the pair's second line that ran
    struct perturb_batch *flight;
    struct perturb_runner *runners;
    struct weir_thread idle;
    bool has_idle;
    bool stop;
    bool calls_change; // the program has updated a host call or a native call of a graph
    struct perturb_counts counts;
};

WEIR_STATE_OF(perturb_of, struct perturb)
WEIR_DATA_OF(perturb_queue_of, struct perturb_queue, weir_queue)

static inline const struct weir_operation *perturb_of_user(
    const struct perturb_operation *operation)
{
    return &operation->room.operation;
}

// schedule.c. With the lock held, which may be released meanwhile.

enum perturb_run_flags {
    PERTURB_NO_HOST_CALLS = 1u << 0, // the calling thread holds locks of the front end's
    PERTURB_GIVE_UP = 1u << 1,       // return when nothing more can run without the program
};

// Runs operations until those of `queue` up to `sequence` are complete. False: the deadline
// passed first, or it gave up.
bool perturb_run_until(struct perturb_queue *queue, uint64_t sequence, uint64_t deadline_ns,
                       unsigned flags);

// Runs one operation, towards that goal if `queue` is not NULL, and waits until it ends or
// stalls. False: none could run.
bool perturb_run_one(struct perturb *perturb, struct perturb_queue *queue, uint64_t sequence,
                     unsigned flags);

// Runs the operations up to there, and hands on what cannot run yet, which the front end then
// holds as it does without the plugin.
void perturb_drain(struct perturb_queue *queue, uint64_t sequence, unsigned flags);

// Takes the queue's operations up to `last` from those that are pending.
struct perturb_operation *perturb_take(struct perturb_queue *queue, struct perturb_operation *last);

// A wait on `changed` that ends at the deadline, or when a batch stalls.
void perturb_wait(struct perturb *perturb, uint64_t deadline_ns);

void perturb_release(struct perturb_queue *queue);

// Destroys the operation and those that follow it. NULL is accepted.
void perturb_operations_destroy(struct perturb_operation *first);

// 1 for an operation of the pair's first line, 2 for one of the second, 0 for others.
unsigned perturb_pair_side(const struct perturb *perturb, const struct weir_operation *operation);

#endif
