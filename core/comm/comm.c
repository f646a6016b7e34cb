// The life of communicators, their failures, and the turns of their calls.
//
// A call's turn is given out under the submit lock, together with the place of its operation in its
// queue. So the calls of one communicator run in the order of submission, and none waits for one
// that was submitted after it.
#include "core/comm/comm.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/barrier.h"
#include "core/buffer/buffer.h"
#include "core/comm/engine.h"
#include "core/comm/pulse.h"
#include "core/object/device.h"
#include "core/queue/retire.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/file_name.h"
#include "core/support/thread.h"

static void finalize(struct weir__member *member)
{
    weir_comm *comm = (weir_comm *)(void *)member;
    weir_buffer_destroy(&comm->staging);
    weir__engine_finish(comm);
    if (comm->group)
        comm->transport->leave(comm->group);
    pthread_cond_destroy(&comm->changed);
    weir_lock_finish(&comm->lock);
    weir_biased_lock_finish(&comm->submit_lock);
    weir__member_free(member);
}

static const struct weir__class comm_class = {.name = "communicator", .finalize = finalize};

weir_comm *weir__comm_allocate(weir_device *device, const char *label)
{
    weir_comm *comm = weir__member_allocate(device, &comm_class, sizeof *comm, label);
    if (!comm) {
        weir__report(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a communicator");
        return NULL;
    }
    weir_barrier_init();
    comm->ops = &weir__comm_ops;
    weir_biased_lock_init(&comm->submit_lock, &weir__locks[WEIR__LOCK_COMM_SUBMIT]);
    weir_lock_init(&comm->lock, &weir__locks[WEIR__LOCK_COMM]);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&comm->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return comm;
}

void weir__comm_publish(weir_comm *comm)
{
    weir__member_enlist(&comm->member);
}

void weir__comm_drop(weir_comm *comm)
{
    if (comm)
        finalize(&comm->member);
}

void weir_comm_destroy_at(weir_comm **comm, const char *file, int line)
{
    if (!comm || !*comm || !WEIR_MAY_END(*comm, file, line))
        return;
    weir_comm *gone = *comm;
    *comm = NULL;
    weir__debug_end(gone, file, line);
    weir__member_retire(&gone->member);
}

void(weir_comm_destroy)(weir_comm **comm)
{
    weir_comm_destroy_at(comm, NULL, 0);
}

// Failures.

bool weir__comm_fail(weir_comm *comm, const struct weir_error *cause)
{
    weir_lock_take(&comm->lock);
    const bool first = !comm->failed;
    if (first) {
        comm->failed = true;
        weir_barrier_heavy(); // see weir__pulse_note()
        comm->error = *cause;
        pthread_cond_broadcast(&comm->changed);
    }
    weir_lock_release(&comm->lock);
    return first;
}

void weir__comm_abort(weir_comm *comm, const struct weir_error *cause, const char *reason)
{
    if (!weir__comm_fail(comm, cause))
        return;
    if (comm->pulse)
        weir__pulse_tell(comm, reason);
    comm->transport->abort(comm->group, reason);
}

weir_status weir__comm_cause(weir_comm *comm)
{
    weir_lock_take(&comm->lock); // until the cause is written
    const struct weir_error error = comm->error;
    weir_lock_release(&comm->lock);
    return weir__error_set(&error);
}

weir_status weir_comm_error(weir_comm *comm)
{
    WEIR_ENTER(comm);
    WEIR_REQUIRE(NULL, comm);
    return weir__comm_status(comm);
}

weir_status weir_comm_abort_at(weir_comm *comm, const char *why, const char *file, int line)
{
    char reason[768];
    WEIR_ENTER_AT(file, line, comm);
    WEIR_REQUIRE_AT(file, line, NULL, comm);
    WEIR_REQUIRE_AT(file, line, comm->member.object.label, why);
    snprintf(reason, sizeof reason, "rank %" PRIu32 " has aborted '%s', %s:%d: %s", comm->rank,
             weir__label_shown(comm->member.object.label), file ? file : "?", line, why);
    struct weir_error cause = {.status = WEIR_ERROR_COMM,
                               .file = weir__file_name(file),
                               .line = line};
    snprintf(cause.message, sizeof cause.message, "%s", reason);
    snprintf(cause.remedy, sizeof cause.remedy, "destroy the communicator, and create another");
    weir__comm_abort(comm, &cause, reason);
    return WEIR_OK;
}

// Turns.

void weir__comm_begin_wait(weir_comm *comm)
{
    comm->waiting++;
    weir_barrier_heavy(); // the call that ends its turn sees it, or this thread sees the end
}

weir_status weir__comm_await_turn(weir_comm *comm, uint32_t turn)
{
    weir_lock_take(&comm->lock);
    if (comm->turn != turn && !comm->failed) {
        weir__comm_begin_wait(comm);
        while (comm->turn != turn && !comm->failed)
            weir_lock_wait(&comm->lock, &comm->changed);
        comm->waiting--;
    }
    const bool failed = comm->failed;
    if (!failed)
        comm->running = true;
    weir_lock_release(&comm->lock);
    return failed ? weir__comm_status(comm) : WEIR_OK;
}

void weir__comm_wake(weir_comm *comm)
{
    weir_lock_take(&comm->lock);
    pthread_cond_broadcast(&comm->changed);
    weir_lock_release(&comm->lock);
}

weir_status weir__comm_staging(weir_comm *comm, size_t size, char **out_pointer)
{
    if (!comm->staging || comm->staging->size < size) {
        const struct weir_buffer_setup setup = {.struct_size = sizeof setup,
                                                .size = size,
                                                .placement = WEIR_PLACE_HOST};
        weir_buffer_destroy(&comm->staging);
        weir_status status = weir__buffer_make(comm->member.device, "staging of collectives",
                                               &setup, true, &comm->staging);
        if (status < 0)
            return status;
    }
    *out_pointer = comm->staging->pointer;
    return WEIR_OK;
}

// Reading.

uint32_t weir_comm_rank(const weir_comm *comm)
{
    return WEIR_IS_ALIVE(comm) ? comm->rank : 0;
}

uint32_t weir_comm_count(const weir_comm *comm)
{
    return WEIR_IS_ALIVE(comm) ? comm->count : 0;
}

const char *weir_comm_label(const weir_comm *comm)
{
    return WEIR_IS_ALIVE(comm) ? comm->member.object.label : "";
}

weir_device *weir_comm_device(const weir_comm *comm)
{
    return WEIR_IS_ALIVE(comm) ? comm->member.device : NULL;
}
