// The life of communicators, their failures, the turns of their calls, and shrinking.
//
// A call's turn is given out under the submit lock, together with the place of its operation in its
// queue. So the calls of one communicator run in the order of submission, and none waits for one
// that was submitted after it.
#include "core/comm/comm.h"

#include <inttypes.h>

#include "core/comm/pulse.h"
#include "core/support/memory.h"

static void finalize(struct weir__member *member)
{
    weir_comm *comm = (weir_comm *)(void *)member;
    weir_buffer_destroy(&comm->staging);
    weir__pulse_finish(comm);
    if (comm->engine)
        comm->engine->ops->comm_destroy(comm->engine, comm);
    if (comm->group)
        comm->transport->leave(comm->group);
    pthread_cond_destroy(&comm->changed);
    weir_lock_finish(&comm->lock);
    weir_lock_finish(&comm->submit_lock);
    weir__member_free(member);
}

static const struct weir__class comm_class = {.name = "communicator",
                                              .keeps_label = true,
                                              .finalize = finalize};

weir_comm *weir__comm_allocate(weir_device *device, const char *label, const weir_comm *like)
{
    weir_comm *comm = weir__member_allocate(device, &comm_class, sizeof *comm, label);
    if (!comm) {
        weir__report(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a communicator");
        return NULL;
    }
    comm->ops = &weir__comm_ops;
    weir_lock_init(&comm->submit_lock, &weir__locks[WEIR__LOCK_COMM_SUBMIT]);
    weir_lock_init(&comm->lock, &weir__locks[WEIR__LOCK_COMM]);
    weir_condition_init(&comm->changed);
    if (like) {
        comm->transport = like->transport;
        comm->timeout_ns = like->timeout_ns;
        comm->check = like->check;
    }
    return comm;
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

// Failures.

void weir__comm_tell(weir_comm *comm, const char *reason)
{
    if (comm->pulse)
        comm->transport->abort(comm->pulse->group, reason);
    comm->transport->abort(comm->group, reason);
}

void weir__comm_abort(weir_comm *comm, const struct weir_error *cause, const char *reason)
{
    weir_lock_take(&comm->lock);
    const bool first = !comm->failed;
    if (first) {
        comm->failed = true;
        comm->error = *cause;
        pthread_cond_broadcast(&comm->changed);
    }
    weir_lock_release(&comm->lock);
    if (first)
        weir__comm_tell(comm, reason);
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
    return weir__comm_status(comm);
}

// Ends it by a call of the program's: "rank 1 has aborted 'grads', app.c:12: WHY".
static void end(weir_comm *comm, const char *file, int line, const char *has, const char *of,
                const char *why, const char *remedy)
{
    struct weir_error cause = {.status = WEIR_ERROR_COMM,
                               .file = weir__file_name(file),
                               .line = line};
    snprintf(cause.message, sizeof cause.message, "rank %" PRIu32 " %s '%s'%s, %s:%d%s%s",
             comm->rank, has, weir__label_or_none(comm->member.object.label), of, file ? file : "?",
             line, *why ? ": " : "", why);
    snprintf(cause.remedy, sizeof cause.remedy, "%s", remedy);
    weir__comm_abort(comm, &cause, cause.message);
}

weir_status weir_comm_abort_at(weir_comm *comm, const char *why, const char *file, int line)
{
    WEIR_ENTER_AT(file, line, comm);
    WEIR_REQUIRE_AT(file, line, comm->member.object.label, why);
    end(comm, file, line, "has aborted", "", why, "destroy the communicator, and create another");
    return WEIR_OK;
}

// Turns.

weir_status weir__comm_await_turn(weir_comm *comm, uint32_t turn)
{
    weir_lock_take(&comm->lock);
    if (comm->turn != turn && !comm->failed) {
        comm->waiting++; // the call that ends its turn sees it, or this thread sees the end
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

void weir__comm_end_turn(weir_comm *comm, uint32_t turn)
{
    // Before the next one may set it.
    atomic_store(&comm->running, false);
    // A thread that waits counts itself first, and then looks at the turn.
    atomic_store(&comm->turn, turn + 1);
    if (atomic_load(&comm->waiting) == 0)
        return;
    weir_lock_take(&comm->lock);
    pthread_cond_broadcast(&comm->changed);
    weir_lock_release(&comm->lock);
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

// Communicators of the ranks that are left. The transport finds them: its connections know which ranks
// have gone. An engine makes a new communicator of them, as for any new one.

// A transport that fails gives its calls up soon; an engine may hang.
#define CALL_ENDS_NS UINT64_C(5000000000)

static weir_status await_running(weir_comm *comm)
{
    const uint64_t deadline_ns = weir_clock_deadline(CALL_ENDS_NS);
    int error = 0;
    weir_lock_take(&comm->lock);
    comm->waiting++;
    while (comm->running && error == 0)
        error = weir_lock_wait_until(&comm->lock, &comm->changed, deadline_ns);
    comm->waiting--;
    const bool running = comm->running;
    weir_lock_release(&comm->lock);
    return running ? weir__fail(WEIR_ERROR_COMM, "end this rank",
                                "a collective of '%s' that has failed does not return",
                                weir__label_or_none(comm->member.object.label))
                   : WEIR_OK;
}

static weir_status shrink(weir_comm *comm, const char *label, const char *file, int line,
                          weir_comm **out_comm)
{
    weir_comm *part = weir__comm_allocate(comm->member.device, label, comm);
    if (!part)
        return weir_last_error()->status;
    end(comm, file, line, "goes on with the ranks of", " that are left", "",
        "shrink it on this rank too, or destroy it");
    const struct weir_transport_shrink left = {
        .struct_size = sizeof left,
        .label = weir__label_or_none(part->member.object.label),
        .timeout_ns = comm->timeout_ns,
    };
    weir_status status = await_running(comm);
    if (status == WEIR_OK)
        status = comm->transport->shrink(comm->group, &left, &part->group);
    if (status == WEIR_OK)
        status = weir__engine_create(part, file, line);
    if (status == WEIR_OK)
        *out_comm = part;
    else
        weir__comm_drop(part);
    return status;
}

weir_status weir_comm_shrink_at(weir_comm *comm, const char *label, weir_comm **out_comm,
                                const char *file, int line)
{
    WEIR_ENTER_FOR(file, line, out_comm, comm);
    const char *own = comm->member.object.label;
    WEIR_REFUSE_HOST_CALL_AT(file, line, own, "call it on a thread of the program's");
    if (!comm->transport->shrink)
        return weir__fail_at(file, line, own, WEIR_ERROR_UNSUPPORTED,
                             "create another communicator on all ranks",
                             "weir_comm_shrink: the transport cannot go on with the ranks that are "
                             "left");
    // Two threads of a rank would be two ranks to the others.
    if (atomic_exchange(&comm->shrinking, true))
        return weir__fail_at(file, line, own, WEIR_ERROR_INVALID,
                             "shrink it on one thread of each rank",
                             "weir_comm_shrink: another thread shrinks '%s'",
                             weir__label_or_none(own));
    const weir_status status = shrink(comm, label, file, line, out_comm);
    atomic_store(&comm->shrinking, false);
    if (status < 0)
        weir__error_place(status, own, file, line);
    return status;
}
