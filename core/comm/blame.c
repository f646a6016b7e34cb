// What a rank knows of the calls in flight, and which rank failed first.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "core/comm/pulse.h"
#include "core/queue/queue.h"
#include "core/support/error.h"
#include "core/support/memory.h"

// Calls in flight, and what this rank has called.
//
// A submission leaves the call in a ring, and nothing else: what the other ranks are told of it is made by
// the pulse's thread. Calls have turns, so there is one writer at a time.

enum {
    FIRST_ROOM = 64
};

static uint64_t end_of(const struct weir__pulse *pulse)
{
    return atomic_load(&pulse->flight_end);
}

static uint64_t begin_of(const struct weir__pulse *pulse)
{
    return atomic_load_explicit(&pulse->flight_begin, memory_order_acquire);
}

bool weir__pulse_make_room(struct weir__pulse *pulse)
{
    pulse->flights = weir__allocate(FIRST_ROOM * sizeof *pulse->flights);
    pulse->flight_room = pulse->flights ? FIRST_ROOM : 0;
    return pulse->flights;
}

// The writer: the program is far ahead of the device, or of the other ranks.
static bool grow(struct weir__pulse *pulse)
{
    const uint64_t room = 2 * pulse->flight_room;
    struct weir__flight *flights = weir__allocate(room * sizeof *flights);
    if (!flights)
        return false;
    weir_lock_take(&pulse->comm->lock);
    for (uint64_t i = begin_of(pulse); i < end_of(pulse); i++)
        flights[i & (room - 1)] = *weir__flight_at(pulse, i);
    struct weir__flight *before = pulse->flights;
    pulse->flights = flights;
    pulse->flight_room = room;
    weir_lock_release(&pulse->comm->lock);
    weir__release(before);
    return true;
}

bool weir__pulse_note_in_more_room(weir_comm *comm, const weir_queue *queue,
                                   const struct weir_operation *operation)
{
    if (grow(comm->pulse))
        return weir__pulse_note(comm, queue, operation);
    weir__report(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a collective");
    return false;
}

// The pulse's thread.

// The collective that it was, as far as is known of it.
static struct weir_operation operation_of(const struct weir__pulse *pulse,
                                          const struct weir__flight *flight)
{
    struct weir_operation operation = {.kind = WEIR_OPERATION_COLLECTIVE,
                                       .sequence = flight->sequence,
                                       .file = flight->file,
                                       .line = flight->line};
    operation.u.collective.comm = pulse->comm;
    operation.u.collective.number = flight->number;
    operation.u.collective.count = flight->count;
    operation.u.collective.root = flight->root;
    operation.u.collective.kind = (weir_collective)flight->kind;
    operation.u.collective.element = (weir_datatype)flight->element;
    operation.u.collective.reduction = (weir_reduction)flight->reduction;
    return operation;
}

static bool is_direct(const struct weir__flight *flight)
{
    return weir__call_is_direct((weir_collective)flight->kind);
}

bool weir__pulse_copy_flight(const struct weir__pulse *pulse, size_t index,
                             struct weir__flight *out_flight)
{
    const uint64_t number = begin_of(pulse) + index;
    if (number >= end_of(pulse))
        return false;
    weir_lock_take(&pulse->comm->lock);
    *out_flight = *weir__flight_at(pulse, number);
    weir_lock_release(&pulse->comm->lock);
    return true;
}

static void remember(struct weir__pulse *pulse, const struct weir__flight *flight)
{
    const struct weir_operation operation = operation_of(pulse, flight);
    const struct weir__call call = weir__call_of(&operation);
    pulse->number = call.number;
    pulse->hash = (pulse->hash ^ weir__call_hash(&call)) * UINT64_C(1099511628211);
    pulse->calls[call.number % WEIR__PULSE_HISTORY] = call;
    pulse->hashes[call.number % WEIR__PULSE_HISTORY] = pulse->hash;
}

void weir__pulse_hear_own(struct weir__pulse *pulse)
{
    struct weir__flight flight;
    while (weir__pulse_copy_flight(pulse, pulse->flight_told - begin_of(pulse), &flight)) {
        if (!is_direct(&flight))
            remember(pulse, &flight);
        pulse->flight_told++;
    }
}

static bool is_over(const struct weir__pulse *pulse, const struct weir__flight *flight)
{
    return (int32_t)(flight->turn - pulse->turn) < 0;
}

// Calls complete in their order, so one that is complete tells of all before it.
void weir__pulse_advance(struct weir__pulse *pulse)
{
    struct weir__flight flight;
    for (size_t i = 0; weir__pulse_copy_flight(pulse, i, &flight); i++) {
        weir_queue *queue = is_over(pulse, &flight) ? NULL : weir__registry_pin(flight.queue);
        if (!queue)
            continue;
        if (weir__queue_is_past(queue, flight.sequence))
            pulse->turn = flight.turn + 1;
        weir__registry_unpin(queue);
    }
}

static bool is_settled(const struct weir__pulse *pulse, uint64_t number,
                       const struct weir__flight *flight)
{
    return number < pulse->flight_told && is_over(pulse, flight) && flight->looked_at &&
           flight->number <= pulse->confirmed;
}

bool weir__pulse_oldest(struct weir__pulse *pulse, struct weir__flight *out_oldest)
{
    struct weir__flight flight;
    bool found = false;
    while (weir__pulse_copy_flight(pulse, 0, &flight) &&
           is_settled(pulse, begin_of(pulse), &flight))
        atomic_store_explicit(&pulse->flight_begin, begin_of(pulse) + 1, memory_order_release);
    for (size_t i = 0; !found && weir__pulse_copy_flight(pulse, i, &flight); i++)
        found = !is_over(pulse, &flight);
    if (found)
        *out_oldest = flight;
    return found;
}

bool weir__pulse_find(const struct weir__pulse *pulse, uint64_t number,
                      struct weir__flight *out_flight)
{
    struct weir__flight flight;
    for (size_t i = 0; weir__pulse_copy_flight(pulse, i, &flight); i++)
        if (flight.number == number && !is_direct(&flight)) {
            *out_flight = flight;
            return true;
        }
    return false;
}

struct weir__call weir__pulse_own_call(const struct weir__pulse *pulse, uint64_t number)
{
    return pulse->calls[number % WEIR__PULSE_HISTORY];
}

bool weir__pulse_own_hash(const struct weir__pulse *pulse, uint64_t number, uint64_t *out_hash)
{
    const size_t place = number % WEIR__PULSE_HISTORY;
    *out_hash = pulse->hashes[place];
    return pulse->calls[place].number == number;
}

// None but the pulse's thread removes any, so the index stays that of the call.
bool weir__pulse_complete(const struct weir__pulse *pulse, size_t *index,
                          struct weir__flight *out_flight)
{
    for (; weir__pulse_copy_flight(pulse, *index, out_flight); ++*index) {
        if (!is_over(pulse, out_flight))
            return false;
        if (!out_flight->looked_at)
            return true;
    }
    return false;
}

void weir__pulse_mark(struct weir__pulse *pulse, size_t index)
{
    weir_lock_take(&pulse->comm->lock);
    weir__flight_at(pulse, begin_of(pulse) + index)->looked_at = true;
    weir_lock_release(&pulse->comm->lock);
}

// Which rank is at fault, and where the first cause is booked.

#define REMEDY                                                                              \
    "submit the same collectives in the same order on all ranks, and see what the rank at " \
    "fault has printed; then recover the queue and create another communicator"

#define REMEDY_SILENT                                                                          \
    "continue that process, or end it, and see whether its host is reached; then recover the " \
    "queue and create another communicator, or weir_comm_shrink() this one"

#define REMEDY_GONE                                                                    \
    "see why that rank has gone; then recover the queue, and weir_comm_shrink() this " \
    "communicator to go on with the ranks that are left, or create another one on all of them"

#define REMEDY_ABORTED                                                                       \
    "see what that rank has printed; then recover the queue, and weir_comm_shrink() this "   \
    "communicator, as it has if it goes on with the ranks that are left, or create another " \
    "one on all ranks"

static const char *remedy_of(const weir_comm *comm, enum weir_transport_fault fault)
{
    if (!comm->transport->shrink)
        return REMEDY;
    if (fault == WEIR_FAULT_DIED || fault == WEIR_FAULT_LEFT)
        return REMEDY_GONE;
    return fault == WEIR_FAULT_ABORTED ? REMEDY_ABORTED : REMEDY;
}

static bool find_cause(const weir_comm *comm, void *group, struct weir_transport_cause *out_cause)
{
    *out_cause =
        (struct weir_transport_cause){.struct_size = sizeof *out_cause, .rank = UINT32_MAX};
    return comm->transport->cause && comm->transport->cause(group, out_cause);
}

void weir__comm_find_remedy(weir_comm *comm, struct weir_error *cause)
{
    struct weir_transport_cause known;
    if (cause->status == WEIR_ERROR_COMM && find_cause(comm, comm->group, &known))
        snprintf(cause->remedy, sizeof cause->remedy, "%s", remedy_of(comm, known.fault));
}

static void begin_sentence(const struct weir__pulse *pulse, const struct weir__flight *flight,
                           char *text, size_t size)
{
    const char *label = weir__label_or_none(pulse->comm->member.object.label);
    if (flight)
        snprintf(text, size, "%s %" PRIu64 " of '%s', %s:%" PRId32 ": ",
                 weir_collective_name((weir_collective)flight->kind), flight->number, label,
                 flight->file ? flight->file : "?", flight->line);
    else
        snprintf(text, size, "communicator '%s': ", label);
}

static void fail(struct weir__pulse *pulse, const struct weir__flight *flight, const char *why,
                 const char *remedy)
{
    struct weir_error cause = {.status = WEIR_ERROR_COMM};
    if (flight) {
        cause.file = flight->file;
        cause.line = flight->line;
    }
    begin_sentence(pulse, flight, cause.message, sizeof cause.message / 2);
    const size_t used = strlen(cause.message);
    snprintf(cause.message + used, sizeof cause.message - used, "%s", why);
    snprintf(cause.remedy, sizeof cause.remedy, "%s", remedy);
    weir__comm_abort(pulse->comm, &cause, cause.message);
}

void weir__pulse_fail(struct weir__pulse *pulse, const struct weir__flight *flight,
                      enum weir_transport_fault fault, const char *why)
{
    fail(pulse, flight, why, remedy_of(pulse->comm, fault));
}

void weir__pulse_last_call(const struct weir__beat *beat, char text[WEIR__CALL_TEXT_SIZE])
{
    const struct weir__call *call = &beat->calls[beat->number % WEIR__PULSE_WINDOW];
    char called[WEIR__CALL_TEXT_SIZE];
    weir__call_describe(call, called);
    if (beat->number == 0)
        snprintf(text, WEIR__CALL_TEXT_SIZE, "before its first collective");
    else
        snprintf(text, WEIR__CALL_TEXT_SIZE, "after %.240s", called);
}

// What is known of the rank. It may have called more since its last beat, and has called what is
// complete.
static struct weir__beat last_beat(const struct weir__pulse *pulse,
                                   const struct weir__flight *flight, uint32_t rank)
{
    struct weir__beat beat = pulse->beats[rank];
    if (flight && flight->number > beat.number + 1) {
        beat.number = flight->number - 1;
        beat.calls[beat.number % WEIR__PULSE_WINDOW] = weir__pulse_own_call(pulse, beat.number);
    }
    return beat;
}

enum {
    PROCESS_TEXT_SIZE = WEIR__PULSE_HOST + 48
};

// "process 1234 of 'host'"; a rank may not know its host.
static void name_process(const struct weir__beat *beat, char text[PROCESS_TEXT_SIZE])
{
    char said[WEIR__PULSE_HOST];
    char host[WEIR__PULSE_HOST];
    snprintf(said, sizeof said, "%.*s", WEIR__PULSE_HOST - 1, beat->host);
    weir_text_escape(host, sizeof host, said, "");
    if (host[0])
        snprintf(text, PROCESS_TEXT_SIZE, "process %" PRIu64 " of '%s'", beat->process, host);
    else
        snprintf(text, PROCESS_TEXT_SIZE, "process %" PRIu64, beat->process);
}

// "rank 1 (process 1234 of 'host')"
static void name_rank(const struct weir__beat *beat, uint32_t rank, char *text, size_t size)
{
    char process[PROCESS_TEXT_SIZE];
    name_process(beat, process);
    if (beat->process == 0)
        snprintf(text, size, "rank %" PRIu32, rank);
    else
        snprintf(text, size, "rank %" PRIu32 " (%s)", rank, process);
}

static void fail_dead(struct weir__pulse *pulse, const struct weir__flight *flight, uint32_t rank)
{
    const struct weir__beat beat = last_beat(pulse, flight, rank);
    char text[2 * WEIR__CALL_TEXT_SIZE];
    char last[WEIR__CALL_TEXT_SIZE];
    weir__pulse_last_call(&beat, last);
    snprintf(text, sizeof text, "rank %" PRIu32 " has died, %s%s", rank,
             beat.number == 0 ? "" : "at the earliest ", last);
    if (beat.process != 0) {
        const size_t used = strlen(text);
        char process[PROCESS_TEXT_SIZE];
        name_process(&beat, process);
        snprintf(text + used, sizeof text - used, "; it was %s", process);
    }
    weir__pulse_fail(pulse, flight, WEIR_FAULT_DIED, text);
}

// A live process answers a beat at once, whatever its device does.
static void fail_silent(struct weir__pulse *pulse, const struct weir__flight *flight, uint32_t rank)
{
    const struct weir__beat beat = last_beat(pulse, flight, rank);
    char text[2 * WEIR__CALL_TEXT_SIZE];
    char name[128];
    char last[WEIR__CALL_TEXT_SIZE];
    char duration[WEIR_TEXT_QUANTITY_SIZE];
    weir_text_duration(duration, (double)pulse->comm->timeout_ns);
    weir__pulse_last_call(&beat, last);
    name_rank(&beat, rank, name, sizeof name);
    snprintf(text, sizeof text, "%s has not answered in %s, %s%s: it is stopped, or cut off", name,
             duration, beat.number == 0 ? "" : "at the earliest ", last);
    fail(pulse, flight, text, REMEDY_SILENT);
}

// The transport's own call was a beat, which the program knows nothing of.
void weir__pulse_fail_of_transport(struct weir__pulse *pulse, const struct weir__flight *flight,
                                   const struct weir_error *error)
{
    const weir_comm *comm = pulse->comm;
    struct weir_transport_cause cause;
    const bool known = find_cause(comm, pulse->group, &cause) && cause.rank < comm->count;
    weir__pulse_hear_own(pulse); // calls that were made while the beat was under way
    if (known && cause.fault == WEIR_FAULT_DIED) {
        fail_dead(pulse, flight, cause.rank);
    } else if (known && cause.fault == WEIR_FAULT_SILENT) {
        fail_silent(pulse, flight, cause.rank);
    } else {
        // What is complete here may be the call that another rank has found to differ.
        pulse->differs = pulse->confirmed + 1;
        char text[sizeof error->message];
        snprintf(text, sizeof text, "%.900s", error->message);
        weir__pulse_fail(pulse, flight, known ? cause.fault : WEIR_FAULT_OTHER, text);
    }
}

// A rank that has called less than this one. The subject is the first call that it lacks.
static bool fail_lacking(struct weir__pulse *pulse, uint32_t rank, const char *duration)
{
    const struct weir__beat *beat = &pulse->beats[rank];
    char text[2 * WEIR__CALL_TEXT_SIZE];
    char last[WEIR__CALL_TEXT_SIZE];
    struct weir__flight flight;
    if (!weir__pulse_find(pulse, beat->number + 1, &flight))
        return false;
    weir__pulse_last_call(beat, last);
    snprintf(text, sizeof text, "rank %" PRIu32 " has submitted nothing %s in %s", rank, last,
             duration);
    weir__pulse_fail(pulse, &flight, WEIR_FAULT_OTHER, text);
    return true;
}

void weir__pulse_fail_late(struct weir__pulse *pulse, const struct weir__flight *flight)
{
    const bool direct = weir__call_is_direct((weir_collective)flight->kind);
    char text[2 * WEIR__CALL_TEXT_SIZE];
    char duration[WEIR_TEXT_QUANTITY_SIZE];
    uint32_t absent = UINT32_MAX;
    weir_text_duration(duration, (double)pulse->comm->timeout_ns);
    for (uint32_t i = 0; i < pulse->comm->count && !direct; i++) {
        if (i == pulse->comm->rank)
            continue;
        if (fail_lacking(pulse, i, duration))
            return;
        absent = pulse->beats[i].due ? absent : i;
    }
    if (absent < pulse->comm->count)
        snprintf(text, sizeof text,
                 "rank %" PRIu32 " has submitted it, and its queue has not come to it in %s",
                 absent, duration);
    else
        snprintf(text, sizeof text, "%s, and it has not ended in %s",
                 direct ? "its queue has come to it" : "all ranks have come to it", duration);
    weir__pulse_fail(pulse, flight, WEIR_FAULT_OTHER, text);
}

// Books the first cause on the queues of what is in flight.
void weir__pulse_book(struct weir__pulse *pulse)
{
    weir_comm *comm = pulse->comm;
    weir_lock_take(&comm->lock);
    const struct weir_error cause = comm->error;
    weir_lock_release(&comm->lock);
    struct weir__flight flight;
    for (size_t i = 0; weir__pulse_copy_flight(pulse, i, &flight); i++) {
        weir_queue *queue = weir__registry_pin(flight.queue);
        const struct weir_operation operation = operation_of(pulse, &flight);
        const bool counts =
            !is_over(pulse, &flight) || (pulse->differs && flight.number >= pulse->differs);
        if (queue && counts) {
            weir__error_set(&cause);
            weir__queue_fail(queue, &operation, cause.status);
        }
        if (queue)
            weir__registry_unpin(queue);
    }
}

// A queue learns of a failure that came through a wait when it is found complete. The other ranks have
// got undefined bytes then, and hear of it.
bool weir__pulse_look_at_queue(struct weir__pulse *pulse, const struct weir__flight *flight)
{
    weir_queue *queue = weir__registry_pin(flight->queue);
    if (!queue)
        return true;
    // Booked as complete before, it would let the communicator go while it is still in use.
    const bool submitted = atomic_load(&queue->delivery.delivered) >= flight->sequence;
    if (submitted)
        weir__completion_complete(queue, flight->sequence - flight->part);
    if (submitted && weir__completion_status(queue, flight->sequence) < 0) {
        const struct weir_error cause = *weir_last_error();
        const struct weir_operation operation = operation_of(pulse, flight);
        weir__comm_excuse(&operation, &cause);
    }
    weir__registry_unpin(queue);
    return submitted;
}
