// Calls in flight, and what this rank has called.
#include "core/comm/pulse_parts.h"
#include "core/queue/queue.h"
#include "core/queue/registry.h"
#include "core/support/error.h"
#include "core/support/memory.h"

struct weir__flight *weir__pulse_flight_at(const struct weir__pulse *pulse, size_t index)
{
    const size_t at = pulse->first_flight + index;
    return &pulse->flights[at < pulse->flight_room ? at : at - pulse->flight_room];
}

static bool grow(struct weir__pulse *pulse)
{
    const size_t room = pulse->flight_room ? 2 * pulse->flight_room : 64;
    struct weir__flight *flights = weir__allocate(room * sizeof *flights);
    if (!flights)
        return false;
    for (size_t i = 0; i < pulse->flight_count; i++)
        flights[i] = *weir__pulse_flight_at(pulse, i);
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
    pulse->calls[call->number % WEIR__PULSE_HISTORY] = *call;
    pulse->hashes[call->number % WEIR__PULSE_HISTORY] = pulse->hash;
}

bool weir__pulse_note(weir_comm *comm, weir_queue *queue, const struct weir_operation *operation)
{
    struct weir__pulse *pulse = comm->pulse;
    const struct weir__call call = weir__call_of(operation);
    weir_lock_take(&comm->lock);
    const bool has_room = pulse->flight_count < pulse->flight_room || grow(pulse);
    const bool noted = has_room && !comm->failed;
    if (noted) {
        *weir__pulse_flight_at(pulse, pulse->flight_count++) = (struct weir__flight){
            .queue = queue->member.object.id,
            .sequence = operation->sequence,
            .finished = operation->sequence - !!(operation->flags & WEIR_OPERATION_PART),
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

static bool copy_flight(const struct weir__pulse *pulse, size_t index,
                        struct weir__flight *out_flight)
{
    weir_lock_take(&pulse->comm->lock);
    const bool exists = index < pulse->flight_count;
    if (exists)
        *out_flight = *weir__pulse_flight_at(pulse, index);
    weir_lock_release(&pulse->comm->lock);
    return exists;
}

// Calls complete in their order, so one that is complete tells of all before it.
void weir__pulse_advance(struct weir__pulse *pulse)
{
    struct weir__flight flight;
    for (size_t i = 0; copy_flight(pulse, i, &flight); i++) {
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

// Drops what is complete and confirmed, and copies the oldest that is not complete.
bool weir__pulse_oldest(struct weir__pulse *pulse, struct weir__flight *out_oldest)
{
    bool found = false;
    weir_lock_take(&pulse->comm->lock);
    while (pulse->flight_count > 0 && weir__pulse_is_over(pulse, weir__pulse_flight_at(pulse, 0)) &&
           weir__pulse_flight_at(pulse, 0)->looked_at &&
           weir__pulse_flight_at(pulse, 0)->call.number <= pulse->confirmed) {
        pulse->first_flight =
            pulse->first_flight + 1 < pulse->flight_room ? pulse->first_flight + 1 : 0;
        pulse->flight_count--;
    }
    for (size_t i = 0; i < pulse->flight_count && !found; i++) {
        found = !weir__pulse_is_over(pulse, weir__pulse_flight_at(pulse, i));
        *out_oldest = *weir__pulse_flight_at(pulse, i);
    }
    weir_lock_release(&pulse->comm->lock);
    return found;
}

bool weir__pulse_find(const struct weir__pulse *pulse, uint64_t number,
                      struct weir__flight *out_flight)
{
    bool found = false;
    weir_lock_take(&pulse->comm->lock);
    for (size_t i = 0; i < pulse->flight_count && !found; i++) {
        const struct weir__flight *flight = weir__pulse_flight_at(pulse, i);
        found = flight->call.number == number &&
                !weir__call_is_direct((weir_collective)flight->call.kind);
        *out_flight = *flight;
    }
    weir_lock_release(&pulse->comm->lock);
    return found;
}

// The program's thread may be adding one.
struct weir__call weir__pulse_own_call(const struct weir__pulse *pulse, uint64_t number)
{
    weir_lock_take(&pulse->comm->lock);
    const struct weir__call call = pulse->calls[number % WEIR__PULSE_HISTORY];
    weir_lock_release(&pulse->comm->lock);
    return call;
}

bool weir__pulse_own_hash(const struct weir__pulse *pulse, uint64_t number, uint64_t *out_hash)
{
    const size_t place = number % WEIR__PULSE_HISTORY;
    weir_lock_take(&pulse->comm->lock);
    const bool remembered = pulse->calls[place].number == number;
    *out_hash = pulse->hashes[place];
    weir_lock_release(&pulse->comm->lock);
    return remembered;
}

// None but the pulse's thread removes any, so the index stays that of the call.
bool weir__pulse_complete(const struct weir__pulse *pulse, size_t *index,
                          struct weir__flight *out_flight)
{
    for (; copy_flight(pulse, *index, out_flight); ++*index) {
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
    weir__pulse_flight_at(pulse, index)->looked_at = true;
    weir_lock_release(&pulse->comm->lock);
}
