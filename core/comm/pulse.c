// See the header. Collectives in flight and this rank's last calls are under the communicator's lock;
// the rest belongs to the pulse's thread.
//
// Which collective is late is known from the engine's progress; which rank is at fault, from the
// beats: the one that has called less.
#include "core/comm/pulse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/thread.h"
#include "core/comm/call.h"
#include "core/object/device.h"
#include "core/queue/queue.h"
#include "core/queue/registry.h"
#include "core/support/error.h"
#include "core/support/memory.h"

enum {
    WINDOW = 16,  // calls in a beat
    HISTORY = 512 // calls that a rank remembers
};

#define MILLISECOND UINT64_C(1000000)
#define REMEDY                                                                              \
    "submit the same collectives in the same order on all ranks, and see what the rank at " \
    "fault has printed; then recover the queue and create another communicator"

// The same bytes on all ranks.
struct beat {
    uint64_t number; // of the last call
    uint64_t hash;   // of all calls so far
    uint32_t leaves; // the last beat of this rank
    uint32_t due;    // it waits in the oldest collective of its own
    struct weir__call calls[WINDOW];
};

struct flight {
    uint64_t queue;
    uint64_t sequence;
    uint32_t turn;
    struct weir__call call;
    const char *file;
};

struct weir__pulse {
    weir_comm *comm;
    void *group;
    struct weir_thread thread;
    bool has_thread;

    // Under the communicator's lock.
    bool stop;
    bool ended;
    struct flight *flights; // a ring, in the order of turns
    size_t flight_count;
    size_t first_flight;
    size_t flight_room;
    uint64_t number;
    uint64_t hash;
    struct weir__call calls[HISTORY]; // call n at n % HISTORY
    uint64_t hashes[HISTORY];

    // The thread's.
    struct beat *beats; // of all ranks, the latest
    struct beat own;
    uint64_t beat_number;
    bool silent;        // a rank has left: there are no more beats
    uint64_t confirmed; // all ranks have called the same up to this number
    uint32_t turn;      // the engine's progress
    uint64_t moved_ns;  // when there was any
};

// Calls in flight.

static struct flight *flight_at(const struct weir__pulse *pulse, size_t index)
{
    return &pulse->flights[(pulse->first_flight + index) % pulse->flight_room];
}

static bool grow(struct weir__pulse *pulse)
{
    const size_t room = pulse->flight_room ? 2 * pulse->flight_room : 64;
    struct flight *flights = weir__allocate(room * sizeof *flights);
    if (!flights)
        return false;
    for (size_t i = 0; i < pulse->flight_count; i++)
        flights[i] = *flight_at(pulse, i);
    weir__release(pulse->flights);
    pulse->flights = flights;
    pulse->first_flight = 0;
    pulse->flight_room = room;
    return true;
}

static void remember(struct weir__pulse *pulse, const struct weir__call *call, uint64_t hash)
{
    pulse->number = call->number;
    pulse->hash = (pulse->hash ^ hash) * UINT64_C(1099511628211);
    pulse->calls[call->number % HISTORY] = *call;
    pulse->hashes[call->number % HISTORY] = pulse->hash;
}

bool weir__pulse_note(weir_comm *comm, weir_queue *queue, const struct weir_operation *operation)
{
    struct weir__pulse *pulse = comm->pulse;
    const struct weir__call call = weir__call_of(operation);
    weir_lock_take(&comm->lock);
    const bool has_room = pulse->flight_count < pulse->flight_room || grow(pulse);
    const bool noted = has_room && !comm->failed;
    if (noted) {
        *flight_at(pulse, pulse->flight_count++) = (struct flight){
            .queue = queue->member.object.id,
            .sequence = operation->sequence,
            .turn = operation->u.collective.turn,
            .call = call,
            .file = operation->file,
        };
        if (!weir__call_is_direct(operation->u.collective.kind))
            remember(pulse, &call, weir__call_hash(operation));
    }
    weir_lock_release(&comm->lock);
    if (!noted && weir__comm_status(comm) == WEIR_OK)
        weir__report(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a collective");
    return noted;
}

static bool is_over(const struct weir__pulse *pulse, const struct flight *flight)
{
    return (int32_t)(flight->turn - pulse->turn) < 0;
}

// Drops what is complete and confirmed, and copies the oldest that is not complete.
static bool take_oldest(struct weir__pulse *pulse, struct flight *out_oldest)
{
    bool found = false;
    weir_lock_take(&pulse->comm->lock);
    while (pulse->flight_count > 0 && is_over(pulse, flight_at(pulse, 0)) &&
           flight_at(pulse, 0)->call.number <= pulse->confirmed) {
        pulse->first_flight = (pulse->first_flight + 1) % pulse->flight_room;
        pulse->flight_count--;
    }
    for (size_t i = 0; i < pulse->flight_count && !found; i++) {
        found = !is_over(pulse, flight_at(pulse, i));
        *out_oldest = *flight_at(pulse, i);
    }
    weir_lock_release(&pulse->comm->lock);
    return found;
}

// Failures.

static void begin_sentence(const struct weir__pulse *pulse, const struct weir__call *call,
                           const char *file, char *text, size_t size)
{
    const char *label = weir__label_shown(pulse->comm->member.object.label);
    if (call)
        snprintf(text, size, "%s %" PRIu64 " of '%s', %s:%" PRId32 ": ",
                 weir_collective_name((weir_collective)call->kind), call->number, label,
                 file ? file : "?", call->line);
    else
        snprintf(text, size, "communicator '%s': ", label);
}

// Books the first cause of the communicator, which ends the thread's loop.
static void fail(struct weir__pulse *pulse, const struct flight *flight, const char *why)
{
    struct weir_error cause = {.status = WEIR_ERROR_COMM};
    if (flight) {
        cause.file = flight->file;
        cause.line = flight->call.line;
    }
    begin_sentence(pulse, flight ? &flight->call : NULL, cause.file, cause.message,
                   sizeof cause.message / 2);
    const size_t used = strlen(cause.message);
    snprintf(cause.message + used, sizeof cause.message - used, "%s", why);
    snprintf(cause.remedy, sizeof cause.remedy, "%s", REMEDY);
    weir__comm_abort(pulse->comm, &cause, cause.message);
}

static void last_call(const struct beat *beat, char *text)
{
    const struct weir__call *call = &beat->calls[beat->number % WINDOW];
    if (beat->number == 0)
        snprintf(text, WEIR__CALL_TEXT_SIZE, "its first collective");
    else
        weir__call_describe(call, text);
}

// The transport's sentence names the rank, and its own call, which is a beat.
static void fail_of_transport(struct weir__pulse *pulse, const struct flight *flight,
                              const struct weir_error *error)
{
    char text[sizeof error->message];
    char last[WEIR__CALL_TEXT_SIZE];
    unsigned rank = UINT32_MAX;
    const char *died = strstr(error->message, " has died");
    const char *begin = died;
    while (begin && begin > error->message && strncmp(begin, "rank ", 5) != 0)
        begin--;
    if (begin && sscanf(begin, "rank %u has died", &rank) == 1 && rank < pulse->comm->count) {
        const struct beat *beat = &pulse->beats[rank];
        last_call(beat, last);
        if (beat->number == 0)
            snprintf(text, sizeof text, "rank %u has died before %s", rank, last);
        else
            snprintf(text, sizeof text, "rank %u has died; its last collective was %s", rank, last);
    } else {
        snprintf(text, sizeof text, "%.900s", error->message);
    }
    fail(pulse, flight, text);
}

static void fail_late(struct weir__pulse *pulse, const struct flight *flight)
{
    char text[2 * WEIR__CALL_TEXT_SIZE];
    char last[WEIR__CALL_TEXT_SIZE];
    char duration[WEIR_TEXT_QUANTITY_SIZE];
    weir_text_duration(duration, (double)pulse->comm->timeout_ns);
    for (uint32_t i = 0; i < pulse->comm->count; i++) {
        const struct beat *beat = &pulse->beats[i];
        if (i == pulse->comm->rank || weir__call_is_direct((weir_collective)flight->call.kind))
            continue;
        last_call(beat, last);
        if (beat->number < flight->call.number)
            snprintf(text, sizeof text, "rank %" PRIu32 " has submitted nothing %s %s in %s", i,
                     beat->number ? "after" : "before", last, duration);
        else if (!beat->due)
            snprintf(text, sizeof text,
                     "rank %" PRIu32 " has submitted it, and its queue has not come to it in %s", i,
                     duration);
        else
            continue;
        fail(pulse, flight, text);
        return;
    }
    snprintf(text, sizeof text, "all ranks have come to it, and it has not ended in %s", duration);
    fail(pulse, flight, text);
}

// Books the first cause on the queues of what is in flight.
static void book(struct weir__pulse *pulse)
{
    weir_comm *comm = pulse->comm;
    weir_lock_take(&comm->lock);
    const struct weir_error cause = comm->error;
    const size_t count = pulse->flight_count;
    weir_lock_release(&comm->lock);
    for (size_t i = 0; i < count; i++) {
        const struct flight *flight = flight_at(pulse, i); // none is added after a failure
        weir_queue *queue = weir__registry_pin(flight->queue);
        const struct weir_operation operation = {.kind = WEIR_OPERATION_COLLECTIVE,
                                                 .sequence = flight->sequence,
                                                 .file = flight->file,
                                                 .line = flight->call.line};
        if (!queue)
            continue;
        weir__error_set(&cause);
        weir__queue_fail(queue, &operation, cause.status);
        weir__registry_unpin(queue);
    }
}

static void end_failed(struct weir__pulse *pulse)
{
    book(pulse);
    pulse->comm->engine->ops->comm_abort(pulse->comm->engine, pulse->comm);
}

// Beats.

// This rank's, of what it has called so far.
static void fill(struct weir__pulse *pulse, bool due)
{
    struct beat *own = &pulse->own;
    weir_lock_take(&pulse->comm->lock);
    own->number = pulse->number;
    own->hash = pulse->hash;
    own->leaves = pulse->stop;
    own->due = due;
    for (uint64_t i = 0; i < WINDOW && i < pulse->number; i++)
        own->calls[(pulse->number - i) % WINDOW] = pulse->calls[(pulse->number - i) % HISTORY];
    weir_lock_release(&pulse->comm->lock);
}

static weir_status exchange(struct weir__pulse *pulse, uint64_t timeout_ns)
{
    const struct weir_transport_call call = {
        .struct_size = sizeof call,
        .kind = WEIR_ALL_GATHER,
        .element = WEIR_U8,
        .reduction = WEIR_SUM,
        .count = sizeof pulse->own,
        .src = &pulse->own,
        .dst = pulse->beats,
        .number = ++pulse->beat_number,
        .timeout_ns = timeout_ns,
    };
    return pulse->comm->transport->run(pulse->group, &call);
}

static bool find_flight(const struct weir__pulse *pulse, uint64_t number, struct flight *out_flight)
{
    bool found = false;
    weir_lock_take(&pulse->comm->lock);
    for (size_t i = 0; i < pulse->flight_count && !found; i++) {
        const struct flight *flight = flight_at(pulse, i);
        found = flight->call.number == number &&
                !weir__call_is_direct((weir_collective)flight->call.kind);
        *out_flight = *flight;
    }
    weir_lock_release(&pulse->comm->lock);
    return found;
}

// The program's thread may be adding one.
static struct weir__call own_call(const struct weir__pulse *pulse, uint64_t number)
{
    weir_lock_take(&pulse->comm->lock);
    const struct weir__call call = pulse->calls[number % HISTORY];
    weir_lock_release(&pulse->comm->lock);
    return call;
}

static uint64_t own_hash(const struct weir__pulse *pulse, uint64_t number)
{
    weir_lock_take(&pulse->comm->lock);
    const uint64_t hash = pulse->hashes[number % HISTORY];
    weir_lock_release(&pulse->comm->lock);
    return hash;
}

// Compares a rank's last calls with those of this one.
static bool compare(struct weir__pulse *pulse, uint32_t rank)
{
    const struct beat *theirs = &pulse->beats[rank];
    char text[WEIR__CALL_TEXT_SIZE];
    struct flight flight;
    for (uint32_t i = 0; i < WINDOW; i++) {
        const struct weir__call *call = &theirs->calls[i];
        const struct weir__call own = own_call(pulse, call->number);
        if (call->number == 0 || own.number != call->number ||
            weir__call_same(&own, pulse->comm->rank, call, rank, text))
            continue;
        fail(pulse, find_flight(pulse, call->number, &flight) ? &flight : NULL, text);
        return false;
    }
    const uint64_t last = theirs->number;
    if (last == 0 || own_call(pulse, last).number != last || own_hash(pulse, last) == theirs->hash)
        return true;
    snprintf(text, sizeof text,
             "rank %" PRIu32 " has called something else before collective %" PRIu64, rank,
             last < WINDOW ? 1 : last - WINDOW + 1);
    fail(pulse, NULL, text);
    return false;
}

// A rank that has left takes part in nothing that comes after its last call.
static bool has_left(struct weir__pulse *pulse, uint32_t rank, const struct flight *oldest)
{
    const struct beat *beat = &pulse->beats[rank];
    char text[2 * WEIR__CALL_TEXT_SIZE];
    char last[WEIR__CALL_TEXT_SIZE];
    if (!beat->leaves || !oldest || oldest->call.number <= beat->number)
        return false;
    last_call(beat, last);
    snprintf(text, sizeof text, "rank %" PRIu32 " has destroyed the communicator %s %s", rank,
             beat->number ? "after" : "before", last);
    fail(pulse, oldest, text);
    return true;
}

static void hear(struct weir__pulse *pulse, const struct flight *oldest)
{
    uint64_t confirmed = pulse->own.number;
    for (uint32_t i = 0; i < pulse->comm->count; i++) {
        const struct beat *beat = &pulse->beats[i];
        pulse->silent = pulse->silent || beat->leaves;
        confirmed = beat->number < confirmed ? beat->number : confirmed;
        if (!compare(pulse, i) || has_left(pulse, i, oldest))
            return;
    }
    pulse->confirmed = confirmed;
}

// Asks the engine, and decides whether the oldest collective is late.
static bool look(struct weir__pulse *pulse, struct flight *oldest, bool *out_has_oldest,
                 bool *out_due)
{
    weir_comm *comm = pulse->comm;
    struct weir_comm_progress progress = {.struct_size = sizeof progress};
    const uint64_t now_ns = weir_clock_now_ns();
    if (comm->engine->ops->comm_query(comm->engine, comm, &progress) < 0) {
        const struct weir_error error = *weir_last_error();
        *out_has_oldest = take_oldest(pulse, oldest);
        fail(pulse, *out_has_oldest ? oldest : NULL, error.message);
        return false;
    }
    if (progress.turn != pulse->turn || !progress.due)
        pulse->moved_ns = now_ns;
    pulse->turn = progress.turn;
    *out_has_oldest = take_oldest(pulse, oldest);
    *out_due = *out_has_oldest && progress.due;
    if (!*out_has_oldest)
        pulse->moved_ns = now_ns;
    if (now_ns - pulse->moved_ns <= comm->timeout_ns)
        return true;
    fail_late(pulse, oldest);
    return false;
}

static void beat(struct weir__pulse *pulse)
{
    struct flight oldest;
    bool has_oldest = false;
    bool due = false;
    if (!look(pulse, &oldest, &has_oldest, &due))
        return;
    if (!pulse->silent) {
        fill(pulse, due);
        if (exchange(pulse, pulse->comm->timeout_ns) < 0) {
            const struct weir_error error = *weir_last_error();
            has_oldest = take_oldest(pulse, &oldest); // one may have come meanwhile
            fail_of_transport(pulse, has_oldest ? &oldest : NULL, &error);
            return;
        }
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
        end_failed(pulse);
    } else if (!pulse->silent) {
        fill(pulse, false);
        (void)exchange(pulse, 1000 * MILLISECOND);
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
    struct weir__pulse *pulse = weir__allocate(sizeof *pulse);
    struct beat *beats = weir__allocate(comm->count * sizeof *beats);
    if (!pulse || !beats) {
        weir__release(pulse);
        weir__release(beats);
        comm->transport->leave(group);
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a communicator");
    }
    pulse->comm = comm;
    pulse->group = group;
    pulse->beats = beats;
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
    weir__release(pulse);
    comm->pulse = NULL;
}
