// Which rank failed first, in words.
#include <inttypes.h>

#include "core/comm/pulse.h"

#define REMEDY                                                                              \
    "submit the same collectives in the same order on all ranks, and see what the rank at " \
    "fault has printed; then recover the queue and create another communicator"

#define REMEDY_SILENT                                                                          \
    "continue that process, or end it, and see whether its host is reached; then recover the " \
    "queue and create another communicator, or weir_comm_shrink() this one"

#define REMEDY_GONE                                                                          \
    "see why that rank has gone, or what it has printed; then recover the queue, and "       \
    "weir_comm_shrink() this communicator to go on with the ranks that are left, or create " \
    "another one on all of them"

static const char *remedy_of(const weir_comm *comm, enum weir_transport_fault fault)
{
    const bool gone =
        fault == WEIR_FAULT_DIED || fault == WEIR_FAULT_LEFT || fault == WEIR_FAULT_ABORTED;
    return gone && comm->transport->shrink ? REMEDY_GONE : REMEDY;
}

static bool find_cause(const weir_comm *comm, void *group, struct weir_transport_cause *out_cause)
{
    *out_cause =
        (struct weir_transport_cause){.struct_size = sizeof *out_cause, .rank = UINT32_MAX};
    return comm->transport->cause && comm->transport->cause(group, out_cause);
}

weir_status weir__comm_blame(weir_comm *comm, weir_status status)
{
    struct weir_error cause = weir__error_of(status);
    struct weir_transport_cause found;
    const bool known = find_cause(comm, comm->group, &found);
    if (cause.status == WEIR_ERROR_COMM && (known || !cause.remedy[0]))
        snprintf(cause.remedy, sizeof cause.remedy, "%s", remedy_of(comm, found.fault));
    weir__comm_abort(comm, &cause, cause.message);
    return weir__comm_status(comm);
}

static void fail(struct weir__pulse *pulse, const struct weir__flight *flight, const char *why,
                 const char *remedy)
{
    struct weir_error cause = {.status = WEIR_ERROR_COMM};
    if (flight) {
        cause.file = flight->file;
        cause.line = flight->line;
        snprintf(cause.message, sizeof cause.message, "%s%s", weir__flight_name(pulse, flight).text,
                 why);
    } else {
        snprintf(cause.message, sizeof cause.message, "communicator '%s': %s",
                 weir__label_or_none(pulse->comm->member.object.label), why);
    }
    snprintf(cause.remedy, sizeof cause.remedy, "%s", remedy);
    weir__comm_abort(pulse->comm, &cause, cause.message);
}

void weir__pulse_fail(struct weir__pulse *pulse, const struct weir__flight *flight,
                      enum weir_transport_fault fault, const char *why)
{
    fail(pulse, flight, why, remedy_of(pulse->comm, fault));
}

void weir__pulse_last_call(const struct weir__beat *beat, char text[WEIR_CALLS_TEXT_SIZE])
{
    char called[WEIR_HEAD_TEXT_SIZE];
    if (beat->number == 0)
        snprintf(text, WEIR_CALLS_TEXT_SIZE, "before its first collective");
    else
        snprintf(text, WEIR_CALLS_TEXT_SIZE, "after %s",
                 weir_head_describe(&beat->calls[beat->number % WEIR__PULSE_WINDOW], called));
}

// Of a rank that has died, or that has not answered: a live process answers a beat at once, whatever its device does.
// It may not have told its process, and may not know its host.
static void fail_gone(struct weir__pulse *pulse, const struct weir__flight *flight, uint32_t rank,
                      bool died)
{
    struct weir__beat beat = pulse->beats[rank];
    char text[2 * WEIR_CALLS_TEXT_SIZE];
    char last[WEIR_CALLS_TEXT_SIZE];
    char said[WEIR__PULSE_HOST], host[WEIR__PULSE_HOST];
    size_t used = 0;
    // The rank may have called more since its last beat, and has called what is complete.
    if (flight && flight->number > beat.number + 1) {
        beat.number = flight->number - 1;
        beat.calls[beat.number % WEIR__PULSE_WINDOW] =
            pulse->calls[beat.number % WEIR__PULSE_HISTORY];
    }
    weir__pulse_last_call(&beat, last);
    snprintf(said, sizeof said, "%.*s", WEIR__PULSE_HOST - 1, beat.host);
    weir_text_escape(host, sizeof host, said, "");
    weir_text_append(text, sizeof text, &used, "rank %" PRIu32 " has %s%s, %s%s%s", rank,
                     died ? "died" : "not answered in ",
                     died ? "" : weir_text_duration((double)pulse->comm->timeout_ns).text,
                     beat.number == 0 ? "" : "at the earliest ", last,
                     died ? "" : ": it is stopped, or cut off");
    if (beat.process != 0)
        weir_text_append(text, sizeof text, &used, "; it %s process %" PRIu64 "%s%s%s",
                         died ? "was" : "is", beat.process, host[0] ? " of '" : "", host,
                         host[0] ? "'" : "");
    fail(pulse, flight, text, died ? remedy_of(pulse->comm, WEIR_FAULT_DIED) : REMEDY_SILENT);
}

// The transport's own call was a beat, which the program knows nothing of.
void weir__pulse_fail_of_transport(struct weir__pulse *pulse, const struct weir__flight *flight,
                                   const struct weir_error *error)
{
    const weir_comm *comm = pulse->comm;
    struct weir_transport_cause cause;
    const bool known = find_cause(comm, pulse->group, &cause) && cause.rank < comm->count;
    weir__pulse_hear_own(pulse); // calls that were made while the beat was under way
    if (known && (cause.fault == WEIR_FAULT_DIED || cause.fault == WEIR_FAULT_SILENT)) {
        fail_gone(pulse, flight, cause.rank, cause.fault == WEIR_FAULT_DIED);
    } else {
        // What is complete here may be the call that another rank has found to differ; not so where this rank aborts.
        if (!known || cause.rank != comm->rank)
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
    char text[2 * WEIR_CALLS_TEXT_SIZE];
    char last[WEIR_CALLS_TEXT_SIZE];
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
    const bool direct = !weir_is_numbered(flight->kind);
    char text[2 * WEIR_CALLS_TEXT_SIZE];
    uint32_t absent = UINT32_MAX;
    const struct weir_quantity duration = weir_text_duration((double)pulse->comm->timeout_ns);
    for (uint32_t i = 0; i < pulse->comm->count && !direct; i++) {
        if (i == pulse->comm->rank)
            continue;
        if (fail_lacking(pulse, i, duration.text))
            return;
        absent = pulse->beats[i].due ? absent : i;
    }
    if (absent < pulse->comm->count)
        snprintf(text, sizeof text,
                 "rank %" PRIu32 " has submitted it, and its queue has not come to it in %s",
                 absent, duration.text);
    else
        snprintf(text, sizeof text, "%s, and it has not ended in %s",
                 direct ? "its queue has come to it" : "all ranks have come to it", duration.text);
    weir__pulse_fail(pulse, flight, WEIR_FAULT_OTHER, text);
}
