// Calls in flight, and what this rank has called.
//
// A submission leaves the call in a ring, and nothing else: what the other ranks are told of it is made by
// the pulse's thread. Calls have turns, so there is one writer at a time.
#include <string.h>

#include "base/barrier.h"
#include "core/comm/pulse_parts.h"
#include "core/queue/queue.h"
#include "core/queue/registry.h"
#include "core/support/error.h"
#include "core/support/memory.h"

enum {
    FIRST_ROOM = 64
};

static uint64_t end_of(const struct weir__pulse *pulse)
{
    return atomic_load_explicit(&pulse->flight_end, memory_order_acquire);
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

struct weir_operation weir__flight_operation(const struct weir__pulse *pulse,
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
    const struct weir_operation operation = weir__flight_operation(pulse, flight);
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

// Calls complete in their order, so one that is complete tells of all before it.
void weir__pulse_advance(struct weir__pulse *pulse)
{
    struct weir__flight flight;
    for (size_t i = 0; weir__pulse_copy_flight(pulse, i, &flight); i++) {
        weir_queue *queue =
            weir__pulse_is_over(pulse, &flight) ? NULL : weir__registry_pin(flight.queue);
        if (!queue)
            continue;
        if (weir__queue_is_past(queue, flight.sequence))
            pulse->turn = flight.turn + 1;
        weir__registry_unpin(queue);
    }
}

bool weir__pulse_is_over(const struct weir__pulse *pulse, const struct weir__flight *flight)
{
    return (int32_t)(flight->turn - pulse->turn) < 0;
}

static bool is_settled(const struct weir__pulse *pulse, uint64_t number,
                       const struct weir__flight *flight)
{
    return number < pulse->flight_told && weir__pulse_is_over(pulse, flight) && flight->looked_at &&
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
        found = !weir__pulse_is_over(pulse, &flight);
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
        if (!weir__pulse_is_over(pulse, out_flight))
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
