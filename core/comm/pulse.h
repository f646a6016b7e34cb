// What ranks tell each other while an engine of the device carries their collectives out.
//
// An engine reports neither a rank that has died nor one that calls something else, and after an abort
// its events complete as if nothing had happened. So each communicator has a thread, which in turns
// asks the engine how far it is and exchanges a beat with the other ranks, over a group of the
// transport's: what this rank has called last. A connection that ends, a call that differs, and a
// collective that takes longer than the timeout end the communicator. The first cause is booked on
// the queues before the engine is told to abort.
#ifndef WEIR_CORE_COMM_PULSE_H
#define WEIR_CORE_COMM_PULSE_H

#include "base/call/call.h"
#include "base/thread.h"
#include "core/comm/comm.h"
#include "core/queue/queue.h"

// Starts the thread of a communicator that has its engine. `group` becomes the pulse's.
weir_status weir__pulse_start(weir_comm *comm, void *group);

// Ends it, after telling the other ranks that this one leaves, and leaves the group. Waits for them, at
// most a second.
void weir__pulse_finish(weir_comm *comm);

// engine.c: a collective, without its memory.
struct weir_transport_call weir__call_of(const struct weir_operation *operation);

// Calls in flight, beats, and the thread that sends them: pulse.c. Failures: blame.c.

enum {
    WEIR__PULSE_HOST = 56,     // bytes of the name of a host
    WEIR__PULSE_WINDOW = 16,   // calls in a beat
    WEIR__PULSE_HISTORY = 512, // calls that a rank remembers
    WEIR__PULSE_KNOWN = 1024   // cells, a power of two
};

// The same bytes on all ranks.
struct weir__beat {
    uint64_t number; // of the last call
    uint64_t hash;   // of all calls so far
    uint32_t leaves; // the last beat of this rank
    uint32_t due;    // it waits in the oldest collective of its own
    uint64_t process;
    char host[WEIR__PULSE_HOST]; // the beginning of a long name; "" if it is not known
    struct weir_head calls[WEIR__PULSE_WINDOW];
};

// What the submitting thread leaves of a call: as many bytes as a line of the cache has.
struct weir__flight {
    uint64_t queue;
    uint64_t sequence;
    uint64_t number;
    uint64_t count;
    const char *file; // of the operation
    int32_t line;
    uint32_t root;
    uint32_t turn;
    uint8_t kind;
    uint8_t element;
    uint8_t reduction;
    bool part;      // of a graph: not all of that is complete when the call is
    bool looked_at; // complete, and its queue had not failed before it; the pulse's thread's
};
_Static_assert(sizeof(struct weir__flight) <= 64, "larger than a line of the cache");

struct weir__pulse {
    weir_comm *comm;
    void *group;
    struct weir_thread thread;
    bool has_thread;

    // A ring, in the order of turns, with one writer, the call whose turn it is, and one reader, the
    // pulse's thread. The writer adds without a lock; another ring, with more room, is put in its place
    // under the communicator's lock, which the reader has while it reads.
    struct weir__flight *flights;
    uint64_t flight_room;              // a power of two
    atomic_uint_fast64_t flight_end;   // of all so far; written by the writer
    atomic_uint_fast64_t flight_begin; // the oldest; written by the reader

    atomic_uint_fast64_t known[WEIR__PULSE_KNOWN]; // engine.c

    // Under the communicator's lock.
    bool stop;
    bool ended;

    // The thread's.
    uint64_t flight_told;                        // the first that is not among those that follow
    uint64_t number;                             // of the last call
    uint64_t hash;                               // of all calls
    struct weir_head calls[WEIR__PULSE_HISTORY]; // call n at n % WEIR__PULSE_HISTORY
    uint64_t hashes[WEIR__PULSE_HISTORY];
    struct weir__beat *beats; // of all ranks, the latest; of one that has left its last
    struct weir_transport_part *parts;
    struct weir__beat own;
    uint64_t beat_number;
    uint64_t confirmed;  // all ranks have called the same up to this number
    uint64_t differs;    // a rank has called something else with this number; 0: none
    uint64_t differs_ns; // since when that is known, and not which rank is wrong; 0: it is not
    struct weir__flight oldest; // of find_oldest()
    uint32_t turn;              // the engine's progress
    uint64_t moved_ns;          // when there was any
};

// On the submitting thread.

static inline struct weir__flight *weir__flight_at(const struct weir__pulse *pulse, uint64_t number)
{
    return &pulse->flights[number & (pulse->flight_room - 1)];
}

// Notes a collective that is about to be submitted to the engine. It is in flight until it is
// complete, and all ranks are known to have called the same. False: out of memory, or the communicator
// has failed. Either this thread sees a failure, or the pulse's thread, which books it on the
// queues of all calls in flight, sees the call.
bool weir__pulse_note(weir_comm *comm, const weir_queue *queue,
                      const struct weir_operation *operation);

// On the pulse's thread.

// Notes what this rank has called since the last time.
void weir__pulse_hear_own(struct weir__pulse *pulse);

// Copies a call in flight, 0 being the oldest. False: there are not so many.
bool weir__pulse_copy_flight(const struct weir__pulse *pulse, size_t index,
                             struct weir__flight *out_flight);

// Copies the one with that number.
bool weir__pulse_find(const struct weir__pulse *pulse, uint64_t number,
                      struct weir__flight *out_flight);

// weir__comm_name() of it.
struct weir__comm_name weir__flight_name(const struct weir__pulse *pulse,
                                         const struct weir__flight *flight);

// blame.c

// Books the first cause of the communicator, which ends the thread's loop, with the remedy of
// the fault. `flight` may be NULL.
void weir__pulse_fail(struct weir__pulse *pulse, const struct weir__flight *flight,
                      enum weir_transport_fault fault, const char *why);
void weir__pulse_fail_of_transport(struct weir__pulse *pulse, const struct weir__flight *flight,
                                   const struct weir_error *error);
void weir__pulse_fail_late(struct weir__pulse *pulse, const struct weir__flight *flight);

// "after all-reduce 16 (app.c:99)", "before its first collective".
void weir__pulse_last_call(const struct weir__beat *beat, char text[WEIR_CALLS_TEXT_SIZE]);

#endif
