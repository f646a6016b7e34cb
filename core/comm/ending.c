// After an abort the engine's work ends, soon and with any result. Where it does not, nothing but the end of the
// process ends it, and waits for it would have no end: so the device is given up.
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/text.h"
#include "core/comm/pulse_parts.h"
#include "core/support/error.h"

#define MILLISECOND UINT64_C(1000000)

// The timeout of a collective and a second are the limit of all waits for it. After the abort there is nearly
// a second in any case, in so many looks: a process that was stopped meanwhile gets it all the same.
#define LOOK_NS (20 * MILLISECOND)
#define LEAST_LOOKS 45
#define GRACE_NS (LEAST_LOOKS * LOOK_NS)

static void give_up(struct weir__pulse *pulse, const struct weir__flight *flight, uint64_t since_ns)
{
    weir_comm *comm = pulse->comm;
    struct weir_error lost = {.status = WEIR_ERROR_DEVICE_LOST,
                              .file = flight->file,
                              .line = flight->line};
    char duration[WEIR_TEXT_QUANTITY_SIZE];
    weir_text_duration(duration, (double)(weir_clock_now_ns() - since_ns));
    weir_lock_take(&comm->lock);
    const struct weir_error cause = comm->error;
    weir_lock_release(&comm->lock);
    snprintf(lost.message, sizeof lost.message,
             "%s %" PRIu64 " of '%s', %s:%" PRId32 ": rank %" PRIu32
             " has lost its device, since %s "
             "has not ended it in %s after its abort; the first cause: %.600s",
             weir_collective_name((weir_collective)flight->kind), flight->number,
             weir__label_shown(comm->member.object.label), flight->file ? flight->file : "?",
             flight->line, comm->rank, comm->engine->ops->comm_engine(comm->engine, comm), duration,
             cause.message);
    snprintf(lost.remedy, sizeof lost.remedy,
             "restart the process: a kernel that does not end leaves the device only with it");
    if (!weir__pulse_begin_asking())
        return;
    comm->engine->ops->comm_give_up(comm->engine, comm, &lost);
    weir__pulse_end_asking();
}

// Waits for the next look. False: the pulse is to stop.
static bool pause_until_look(const struct weir__pulse *pulse)
{
    weir_comm *comm = pulse->comm;
    const struct timespec until = weir_clock_timespec(weir_clock_now_ns() + LOOK_NS);
    int error = 0;
    weir_lock_take(&comm->lock);
    while (!pulse->stop && error == 0)
        error = weir_lock_wait_until(&comm->lock, &comm->changed, &until);
    const bool stop = pulse->stop;
    weir_lock_release(&comm->lock);
    return !stop;
}

void weir__pulse_await_end(struct weir__pulse *pulse)
{
    const weir_comm *comm = pulse->comm;
    const uint64_t abort_ns = weir_clock_now_ns();
    const uint64_t limit_ns =
        comm->timeout_ns < UINT64_MAX - GRACE_NS ? comm->timeout_ns + GRACE_NS : UINT64_MAX;
    struct weir_comm_progress progress;
    struct weir__flight oldest;
    unsigned looks = 0;
    if (!comm->engine->ops->comm_give_up)
        return;
    while (pause_until_look(pulse)) {
        const uint32_t before = pulse->turn;
        if (weir__pulse_ask(pulse, &progress) < 0 || !weir__pulse_oldest(pulse, &oldest))
            return;
        const uint64_t now_ns = weir_clock_now_ns();
        const bool moved = pulse->turn != before || !progress.due;
        pulse->moved_ns = moved ? now_ns : pulse->moved_ns;
        looks = moved ? 0 : looks + 1;
        if (looks < LEAST_LOOKS || now_ns - pulse->moved_ns < limit_ns)
            continue;
        give_up(pulse, &oldest, abort_ns);
        return;
    }
}
