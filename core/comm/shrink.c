// Communicators of the ranks that are left. The transport finds them: its connections know which ranks
// have gone. An engine makes a new communicator of them, as for any new one.
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "core/comm/comm.h"
#include "core/comm/engine.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/file_name.h"
#include "core/support/thread.h"

// A transport that fails gives its calls up soon; an engine may hang.
#define CALL_ENDS_NS UINT64_C(5000000000)

// The place of weir_comm_shrink().
struct place {
    const char *label;
    const char *file;
    int line;
};

static void end(weir_comm *comm, const struct place *place)
{
    struct weir_error cause = {
        .status = WEIR_ERROR_COMM,
        .file = place->file,
        .line = place->line,
    };
    snprintf(cause.message, sizeof cause.message,
             "rank %" PRIu32 " goes on with the ranks of '%s' that are left, %s:%d", comm->rank,
             weir__label_shown(comm->member.object.label), place->file ? place->file : "?",
             place->line);
    snprintf(cause.remedy, sizeof cause.remedy, "shrink it on this rank too, or destroy it");
    weir__comm_abort(comm, &cause, cause.message);
}

static weir_status await_running(weir_comm *comm)
{
    const struct timespec until = weir_clock_timespec(weir_clock_now_ns() + CALL_ENDS_NS);
    int error = 0;
    weir_lock_take(&comm->lock);
    weir__comm_begin_wait(comm);
    while (comm->running && error == 0)
        error = weir_lock_wait_until(&comm->lock, &comm->changed, &until);
    comm->waiting--;
    const bool running = comm->running;
    weir_lock_release(&comm->lock);
    return running ? weir__fail(WEIR_ERROR_COMM, "end this rank",
                                "a collective of '%s' that has failed does not return",
                                weir__label_shown(comm->member.object.label))
                   : WEIR_OK;
}

static weir_status find_group(weir_comm *comm, weir_comm *part, const struct place *place)
{
    const struct weir_transport_shrink shrink = {
        .struct_size = sizeof shrink,
        .label = weir__label_or_none(part->member.object.label),
        .timeout_ns = comm->timeout_ns,
        .file = place->file,
        .line = place->line,
    };
    weir_status status = await_running(comm);
    return status < 0 ? status : comm->transport->shrink(comm->group, &shrink, &part->group);
}

static weir_status shrink(weir_comm *comm, const struct place *place, weir_comm **out_comm)
{
    weir_comm *part = weir__comm_allocate(comm->member.device, place->label);
    if (!part)
        return weir_last_error()->status;
    part->transport = comm->transport;
    part->timeout_ns = comm->timeout_ns;
    part->check = comm->check;
    end(comm, place);
    weir_status status = find_group(comm, part, place);
    if (status == WEIR_OK)
        status = weir__engine_create(part, place->file, place->line);
    if (status < 0) {
        weir__comm_drop(part);
        return status;
    }
    weir__comm_publish(part);
    weir__member_place(&part->member, place->file, place->line);
    *out_comm = part;
    return WEIR_OK;
}

// Two threads of a rank would be two ranks to the others.
static weir_status begin_shrink(weir_comm *comm)
{
    weir_lock_take(&comm->lock);
    const bool begins = !comm->shrinking;
    comm->shrinking = true;
    weir_lock_release(&comm->lock);
    return begins ? WEIR_OK
                  : weir__fail(WEIR_ERROR_INVALID, "shrink it on one thread of each rank",
                               "weir_comm_shrink: another thread shrinks '%s'",
                               weir__label_shown(comm->member.object.label));
}

static void end_shrink(weir_comm *comm)
{
    weir_lock_take(&comm->lock);
    comm->shrinking = false;
    weir_lock_release(&comm->lock);
}

weir_status weir_comm_shrink_at(weir_comm *comm, const char *label, weir_comm **out_comm,
                                const char *file, int line)
{
    const struct place place = {label, weir__file_name(file), line};
    WEIR_REQUIRE_AT(file, line, NULL, out_comm);
    *out_comm = NULL;
    WEIR_ENTER_AT(file, line, comm);
    WEIR_REQUIRE_AT(file, line, NULL, comm);
    const char *own = comm->member.object.label;
    weir_status status = weir__comm_refuse_wait("weir_comm_shrink", own, file, line);
    if (status == WEIR_OK && !comm->transport->shrink)
        status = weir__fail(WEIR_ERROR_UNSUPPORTED, "create another communicator on all ranks",
                            "weir_comm_shrink: the transport cannot go on with the ranks that are "
                            "left");
    if (status == WEIR_OK)
        status = begin_shrink(comm);
    if (status == WEIR_OK) {
        status = shrink(comm, &place, out_comm);
        end_shrink(comm);
    }
    if (status < 0)
        weir__error_place(status, own, file, line);
    return status;
}
