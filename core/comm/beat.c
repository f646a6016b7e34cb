// Beats. A rank that leaves says so in its last one. All others have that from the same beat, so they
// agree on which are left, and exchange the next one among themselves.
#include <stdio.h>
#include <unistd.h>

#include "core/comm/pulse_parts.h"
#include "core/object/device.h"

// A process knows its own number and host. gethostname() fails where the name does not fit, or writes a
// part of it without an end.
static void introduce(struct weir__beat *own)
{
    char host[256] = ""; // POSIX: no name has more than 255 bytes
    own->process = (uint64_t)getpid();
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    snprintf(own->host, sizeof own->host, "%.*s", WEIR__PULSE_HOST - 1, host);
}

// This rank's, of what it has called so far.
static void fill(struct weir__pulse *pulse, bool due)
{
    struct weir__beat *own = &pulse->own;
    weir_lock_take(&pulse->comm->lock);
    own->leaves = pulse->stop;
    weir_lock_release(&pulse->comm->lock);
    weir__pulse_hear_own(pulse);
    own->number = pulse->number;
    own->hash = pulse->hash;
    own->due = due;
    if (own->process == 0)
        introduce(own);
    for (uint64_t i = 0; i < WEIR__PULSE_WINDOW && i < pulse->number; i++)
        own->calls[(pulse->number - i) % WEIR__PULSE_WINDOW] =
            pulse->calls[(pulse->number - i) % WEIR__PULSE_HISTORY];
}

static uint32_t count_left(const struct weir__pulse *pulse)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < pulse->comm->count; i++)
        count += i != pulse->comm->rank && pulse->beats[i].leaves;
    return count;
}

bool weir__beat_is_alone(const struct weir__pulse *pulse)
{
    return pulse->comm->count > 1 && count_left(pulse) == pulse->comm->count - 1;
}

static uint32_t fill_parts(struct weir__pulse *pulse)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < pulse->comm->count; i++) {
        const struct weir_transport_part part = {
            .struct_size = sizeof part,
            .peer = i,
            .element = WEIR_U8,
            .count = sizeof pulse->own,
            .memory = &pulse->own,
        };
        if (i == pulse->comm->rank || pulse->beats[i].leaves)
            continue;
        pulse->parts[count] = part;
        pulse->parts[count + 1] = part;
        pulse->parts[count + 1].receive = true;
        pulse->parts[count + 1].memory = &pulse->beats[i];
        count += 2;
    }
    return count;
}

weir_status weir__beat_exchange(struct weir__pulse *pulse, bool due, uint64_t timeout_ns)
{
    struct weir_transport_call call = {
        .struct_size = sizeof call,
        .kind = WEIR_ALL_GATHER,
        .element = WEIR_U8,
        .reduction = WEIR_SUM,
        .count = sizeof pulse->own,
        .src = &pulse->own,
        .dst = pulse->beats,
        .timeout_ns = timeout_ns,
    };
    fill(pulse, due);
    if (count_left(pulse) == 0) {
        call.number = ++pulse->beat_number;
        return pulse->comm->transport->run(pulse->group, &call);
    }
    pulse->beats[pulse->comm->rank] = pulse->own;
    call.kind = WEIR_EXCHANGE;
    call.number = pulse->beat_number;
    call.parts = pulse->parts;
    call.part_count = fill_parts(pulse);
    return pulse->comm->transport->run(pulse->group, &call);
}
