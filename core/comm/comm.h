// Shared by the files of communicators.
#ifndef WEIR_CORE_COMM_COMM_H
#define WEIR_CORE_COMM_COMM_H

#include "base/call/call.h"
#include "base/cold.h"
#include "core/config/config.h"
#include "core/object/comm.h"

extern const struct weir__comm_ops weir__comm_ops;

// A new communicator, which has joined nothing, with the transport, timeout and check of another one unless
// that is NULL; NULL with the thread's error.
weir_comm *weir__comm_allocate(weir_device *device, const char *label, const weir_comm *like);

// Drops one that is not in use; NULL is accepted.
void weir__comm_drop(weir_comm *comm);

// Aborts both groups: other ranks hear `reason` wherever they wait, before this rank leaves.
void weir__comm_tell(weir_comm *comm, const char *reason);

// Books the first cause, and tells the other ranks `reason`. Does nothing if there is one already.
void weir__comm_abort(weir_comm *comm, const struct weir_error *cause, const char *reason);

// blame.c: the same for the error of a function of the transport's, and says what to do about it. Returns the first cause.
weir_status weir__comm_blame(weir_comm *comm, weir_status status);

// The first cause as the thread's error, or WEIR_OK.
WEIR_COLD weir_status weir__comm_cause(weir_comm *comm);
static inline weir_status weir__comm_status(weir_comm *comm)
{
    return atomic_load_explicit(&comm->failed, memory_order_acquire) ? weir__comm_cause(comm)
                                                                     : WEIR_OK;
}

// Waits until call `turn` may run, then returns WEIR_OK, or the first cause. The next call may run
// after weir__comm_end_turn().
weir_status weir__comm_await_turn(weir_comm *comm, uint32_t turn);
void weir__comm_end_turn(weir_comm *comm, uint32_t turn);

// engine.c: communicators whose collectives an engine of the device carries out, such as NCCL. The transport has joined
// the ranks before, and remains: it carries what the engine's creation exchanges, splits, collectives that the engine
// does not take, and the pulse.

// Gives a communicator that has its group its rank and count and, if every rank has the same engine,
// the engine's part, and puts it into use. Waits for the other ranks, which are told if that fails.
weir_status weir__engine_create(weir_comm *comm, const char *file, int line);

// Tells the other ranks why this one takes no part.
void weir__comm_excuse(const struct weir_operation *operation, const struct weir_error *cause);

// "all-reduce 17 of 'grads', app.c:120: " for messages.
struct weir__comm_name {
    char text[512];
};
struct weir__comm_name weir__comm_name(const struct weir_operation *operation);

#endif
