// See the header. What has been called comes from the submitting threads; the rest belongs to the pulse's
// thread.
//
// Which collective is late is known from the engine's progress; which rank is at fault, from the
// beats: the one that has called less.
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core/comm/pulse_parts.h"
#include "core/object/device.h"
#include "core/support/error.h"
#include "core/support/memory.h"

#define MILLISECOND UINT64_C(1000000)

// A process that exits without destroying its communicators takes the driver's library apart while
// pulses run. From then on they leave the engine alone.
static atomic_bool exiting;
static atomic_uint asking; // calls of engines that are under way

static void leave_engines(void)
{
    const uint64_t start_ns = weir_clock_now_ns();
    uint64_t pause_ns = 0;
    atomic_store(&exiting, true);
    while (atomic_load(&asking) > 0 && weir_clock_pause(start_ns, 1000 * MILLISECOND, &pause_ns))
        continue;
}

static void watch_exit(void)
{
    (void)atexit(leave_engines);
}

bool weir__pulse_begin_asking(void)
{
    atomic_fetch_add(&asking, 1);
    if (!atomic_load(&exiting))
        return true;
    atomic_fetch_sub(&asking, 1);
    return false;
}

void weir__pulse_end_asking(void)
{
    atomic_fetch_sub(&asking, 1);
}

// Compares a rank's last calls with those of this one.
static bool compare(struct weir__pulse *pulse, uint32_t rank)
{
    const struct weir__beat *theirs = &pulse->beats[rank];
    char text[WEIR__CALL_TEXT_SIZE];
    struct weir__flight flight;
    for (uint32_t i = 0; i < WEIR__PULSE_WINDOW; i++) {
        const struct weir__call *call = &theirs->calls[i];
        const struct weir__call own = weir__pulse_own_call(pulse, call->number);
        if (call->number == 0 || own.number != call->number ||
            weir__call_same(&own, pulse->comm->rank, call, rank, text))
            continue;
        pulse->differs = call->number; // which may be complete
        weir__pulse_fail(pulse, weir__pulse_find(pulse, call->number, &flight) ? &flight : NULL,
                         text);
        return false;
    }
    const uint64_t last = theirs->number;
    uint64_t hash;
    if (last == 0 || !weir__pulse_own_hash(pulse, last, &hash) || hash == theirs->hash)
        return true;
    snprintf(text, sizeof text,
             "rank %" PRIu32 " has called something else before collective %" PRIu64, rank,
             last < WEIR__PULSE_WINDOW ? 1 : last - WEIR__PULSE_WINDOW + 1);
    pulse->differs = pulse->confirmed + 1;
    weir__pulse_fail(pulse, NULL, text);
    return false;
}

// A rank that has left takes part in nothing that comes after its last call.
static bool has_left(struct weir__pulse *pulse, uint32_t rank, const struct weir__flight *oldest)
{
    const struct weir__beat *beat = &pulse->beats[rank];
    char text[2 * WEIR__CALL_TEXT_SIZE];
    char last[WEIR__CALL_TEXT_SIZE];
    if (!beat->leaves || !oldest || oldest->number <= beat->number)
        return false;
    weir__pulse_last_call(beat, last);
    snprintf(text, sizeof text, "rank %" PRIu32 " has destroyed the communicator %s", rank, last);
    weir__pulse_fail(pulse, oldest, text);
    return true;
}

static void hear(struct weir__pulse *pulse, const struct weir__flight *oldest)
{
    uint64_t confirmed = pulse->own.number;
    for (uint32_t i = 0; i < pulse->comm->count; i++) {
        const struct weir__beat *beat = &pulse->beats[i];
        confirmed = beat->number < confirmed ? beat->number : confirmed;
        if (!compare(pulse, i) || has_left(pulse, i, oldest))
            return;
    }
    pulse->confirmed = confirmed;
}

weir_status weir__pulse_ask(struct weir__pulse *pulse, struct weir_comm_progress *out_progress)
{
    weir_comm *comm = pulse->comm;
    *out_progress = (struct weir_comm_progress){.struct_size = sizeof *out_progress};
    out_progress->turn = pulse->turn;
    if (!weir__pulse_begin_asking())
        return WEIR_OK;
    weir_status status = comm->engine->ops->comm_query(comm->engine, comm, out_progress);
    weir__pulse_end_asking();
    if (status == WEIR_OK && (int32_t)(out_progress->turn - pulse->turn) > 0)
        pulse->turn = out_progress->turn;
    weir__pulse_advance(pulse);
    return status;
}

// A rank has gone: what is complete by now had all that it needed. The engine records what it is asked
// about when it is asked, and so knows it the next time.
static bool ask_again(struct weir__pulse *pulse, struct weir__flight *out_oldest)
{
    struct weir_comm_progress progress;
    for (int i = 0; i < 3; i++) {
        if (weir__pulse_ask(pulse, &progress) < 0)
            break;
        weir_clock_sleep_ns(MILLISECOND / 10);
    }
    return weir__pulse_oldest(pulse, out_oldest);
}

// Asks the engine, and decides whether the oldest collective is late.
static bool look(struct weir__pulse *pulse, struct weir__flight *oldest, bool *out_has_oldest,
                 bool *out_due)
{
    struct weir_comm_progress progress;
    const uint64_t now_ns = weir_clock_now_ns();
    const uint32_t before = pulse->turn;
    size_t index = 0;
    weir__pulse_hear_own(pulse);
    const weir_status asked = weir__pulse_ask(pulse, &progress);
    if (asked < 0) {
        const struct weir_error error = weir__error_of(asked);
        *out_has_oldest = weir__pulse_oldest(pulse, oldest);
        weir__pulse_fail(pulse, *out_has_oldest ? oldest : NULL, error.message);
        return false;
    }
    if (pulse->turn != before || !progress.due)
        pulse->moved_ns = now_ns;
    while (weir__pulse_complete(pulse, &index, oldest) && weir__pulse_look_at_queue(pulse, oldest))
        weir__pulse_mark(pulse, index++);
    *out_has_oldest = weir__pulse_oldest(pulse, oldest);
    *out_due = *out_has_oldest && progress.due;
    if (!*out_has_oldest)
        pulse->moved_ns = now_ns;
    if (now_ns - pulse->moved_ns <= pulse->comm->timeout_ns)
        return true;
    weir__pulse_fail_late(pulse, oldest);
    return false;
}

static void beat(struct weir__pulse *pulse)
{
    struct weir__flight oldest;
    bool has_oldest = false;
    bool due = false;
    if (!look(pulse, &oldest, &has_oldest, &due))
        return;
    const weir_status status = weir__beat_is_alone(pulse)
                                   ? WEIR_OK
                                   : weir__beat_exchange(pulse, due, pulse->comm->timeout_ns);
    if (status < 0) {
        const struct weir_error error = weir__error_of(status);
        has_oldest = ask_again(pulse, &oldest); // one may have come, or have ended, meanwhile
        weir__pulse_fail_of_transport(pulse, has_oldest ? &oldest : NULL, &error);
        return;
    }
    hear(pulse, has_oldest ? &oldest : NULL);
}

// Beats are rarer the more ranks there are, since each has as many parts.
static uint64_t interval_of(const weir_comm *comm)
{
    return comm->count <= 8 ? 20 * MILLISECOND : comm->count * 5 / 2 * MILLISECOND;
}

// With the lock: waits for the next beat, the end or a failure.
static void pause_until_beat(struct weir__pulse *pulse)
{
    weir_comm *comm = pulse->comm;
    const struct timespec until = weir_clock_timespec(weir_clock_now_ns() + interval_of(comm));
    int error = 0;
    while (!pulse->stop && !comm->failed && error == 0)
        error = weir_lock_wait_until(&comm->lock, &comm->changed, &until);
}

static void run(void *argument)
{
    struct weir__pulse *pulse = argument;
    weir_comm *comm = pulse->comm;
    pulse->moved_ns = weir_clock_now_ns();
    weir_lock_take(&comm->lock);
    while (!pulse->stop && !comm->failed) {
        weir_lock_release(&comm->lock);
        beat(pulse);
        weir_lock_take(&comm->lock);
        pause_until_beat(pulse);
    }
    const bool failed = comm->failed;
    weir_lock_release(&comm->lock);
    if (failed) {
        weir__pulse_book(pulse);
        if (weir__pulse_begin_asking()) {
            comm->engine->ops->comm_abort(comm->engine, comm);
            weir__pulse_end_asking();
        }
        weir__pulse_await_end(pulse);
    } else if (!pulse->own.leaves && !weir__beat_is_alone(pulse)) { // the others hear it once
        (void)weir__beat_exchange(pulse, false, 1000 * MILLISECOND);
    }
    weir_lock_take(&comm->lock);
    pulse->ended = true;
    pthread_cond_broadcast(&comm->changed);
    weir_lock_release(&comm->lock);
}

void weir__pulse_tell(weir_comm *comm, const char *reason)
{
    comm->transport->abort(comm->pulse->group, reason);
}

weir_status weir__pulse_start(weir_comm *comm, void *group)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_exit);
    struct weir__pulse *pulse = weir__allocate(sizeof *pulse);
    struct weir__beat *beats = weir__allocate(comm->count * sizeof *beats);
    struct weir_transport_part *parts = weir__allocate((size_t)2 * comm->count * sizeof *parts);
    if (!pulse || !beats || !parts || !weir__pulse_make_room(pulse)) {
        weir__release(pulse);
        weir__release(beats);
        weir__release(parts);
        comm->transport->leave(group);
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a communicator");
    }
    pulse->comm = comm;
    pulse->group = group;
    pulse->beats = beats;
    pulse->parts = parts;
    comm->pulse = pulse;
    if (weir_thread_start(&pulse->thread, run, pulse) != 0)
        return weir__fail(WEIR_ERROR_SYSTEM, "raise the limit of threads",
                          "no thread for communicator '%s'",
                          weir__label_shown(comm->member.object.label));
    pulse->has_thread = true;
    return WEIR_OK;
}

// Waits a second for a beat that is under way and for the last one; then nothing waits for ranks.
static void stop(struct weir__pulse *pulse)
{
    weir_comm *comm = pulse->comm;
    const struct timespec until = weir_clock_timespec(weir_clock_now_ns() + 1000 * MILLISECOND);
    int error = 0;
    weir_lock_take(&comm->lock);
    pulse->stop = true;
    pthread_cond_broadcast(&comm->changed);
    while (!pulse->ended && error == 0)
        error = weir_lock_wait_until(&comm->lock, &comm->changed, &until);
    const bool ended = pulse->ended;
    weir_lock_release(&comm->lock);
    if (!ended)
        comm->transport->abort(pulse->group, "it has destroyed the communicator");
    weir_thread_join(&pulse->thread);
}

void weir__pulse_finish(weir_comm *comm)
{
    struct weir__pulse *pulse = comm->pulse;
    if (!pulse)
        return;
    if (pulse->has_thread)
        stop(pulse);
    comm->transport->leave(pulse->group);
    weir__release(pulse->flights);
    weir__release(pulse->beats);
    weir__release(pulse->parts);
    weir__release(pulse);
    comm->pulse = NULL;
}
