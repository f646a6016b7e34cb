// The pulse of a communicator: beats, what a rank does when it leaves, and the thread that sends them.
#include <inttypes.h>
#include <unistd.h>

#include "base/random.h"
#include "core/comm/pulse.h"
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

// The writer: the program is far ahead of the device, or of the other ranks.
static bool make_room(struct weir__pulse *pulse)
{
    const uint64_t room = 2 * pulse->flight_room;
    struct weir__flight *before = pulse->flights;
    struct weir__flight *flights = weir__allocate(room * sizeof *flights);
    if (!flights) {
        weir__report(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a collective");
        return false;
    }
    weir_lock_take(&pulse->comm->lock);
    for (uint64_t i = begin_of(pulse); i < end_of(pulse); i++)
        flights[i & (room - 1)] = *weir__flight_at(pulse, i);
    pulse->flights = flights;
    pulse->flight_room = room;
    weir_lock_release(&pulse->comm->lock);
    weir__release(before);
    return true;
}

bool weir__pulse_note(weir_comm *comm, const weir_queue *queue,
                      const struct weir_operation *operation)
{
    struct weir__pulse *pulse = comm->pulse;
    const uint64_t end = atomic_load_explicit(&pulse->flight_end, memory_order_relaxed);
    if (end - begin_of(pulse) == pulse->flight_room && !make_room(pulse))
        return false;
    struct weir__flight *flight = weir__flight_at(pulse, end);
    flight->queue = queue->member.object.id;
    flight->sequence = operation->sequence;
    flight->number = operation->u.collective.number;
    flight->count = operation->u.collective.count;
    flight->file = operation->file;
    flight->line = operation->line;
    flight->root = operation->u.collective.root;
    flight->turn = operation->u.collective.turn;
    flight->kind = (uint8_t)operation->u.collective.kind;
    flight->element = (uint8_t)operation->u.collective.element;
    flight->reduction = (uint8_t)operation->u.collective.reduction;
    flight->part = operation->flags & WEIR_OPERATION_PART;
    flight->looked_at = false;
    atomic_store(&pulse->flight_end, end + 1);
    if (!atomic_load(&comm->failed))
        return true;
    (void)weir__comm_cause(comm);
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

struct weir__comm_name weir__flight_name(const struct weir__pulse *pulse,
                                         const struct weir__flight *flight)
{
    const struct weir_operation operation = operation_of(pulse, flight);
    return weir__comm_name(&operation);
}

// Copies a call in flight, 0 being the oldest. False: there are not so many.
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

void weir__pulse_hear_own(struct weir__pulse *pulse)
{
    struct weir__flight flight;
    for (; weir__pulse_copy_flight(pulse, pulse->flight_told - begin_of(pulse), &flight);
         pulse->flight_told++) {
        if (!weir_is_numbered(flight.kind))
            continue;
        const struct weir_operation operation = operation_of(pulse, &flight);
        const struct weir_transport_call it = weir__call_of(&operation);
        const struct weir_head call = weir_head_of(&it);
        const uint64_t what =
            call.kind | (uint64_t)call.element << 16 | (uint64_t)call.reduction << 32;
        pulse->number = call.number;
        pulse->hash = weir_random_draw(pulse->hash ^ what, call.count);
        pulse->hash = weir_random_draw(pulse->hash, call.root); // what is the same on all ranks
        pulse->calls[call.number % WEIR__PULSE_HISTORY] = call;
        pulse->hashes[call.number % WEIR__PULSE_HISTORY] = pulse->hash;
    }
}

static bool is_over(const struct weir__pulse *pulse, const struct weir__flight *flight)
{
    return (int32_t)(flight->turn - pulse->turn) < 0;
}

// Calls complete in their order, so one that is complete tells of all before it.
static void advance(struct weir__pulse *pulse)
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

// Drops what is complete and confirmed, and returns the oldest that is not complete, until the next call; NULL: none is.
static const struct weir__flight *find_oldest(struct weir__pulse *pulse)
{
    struct weir__flight *oldest = &pulse->oldest;
    while (weir__pulse_copy_flight(pulse, 0, oldest) && begin_of(pulse) < pulse->flight_told &&
           is_over(pulse, oldest) && oldest->looked_at && oldest->number <= pulse->confirmed)
        atomic_store_explicit(&pulse->flight_begin, begin_of(pulse) + 1, memory_order_release);
    for (size_t i = 0; weir__pulse_copy_flight(pulse, i, oldest); i++)
        if (!is_over(pulse, oldest))
            return oldest;
    return NULL;
}

bool weir__pulse_find(const struct weir__pulse *pulse, uint64_t number,
                      struct weir__flight *out_flight)
{
    struct weir__flight flight;
    for (size_t i = 0; weir__pulse_copy_flight(pulse, i, &flight); i++)
        if (flight.number == number && weir_is_numbered(flight.kind)) {
            *out_flight = flight;
            return true;
        }
    return false;
}

// Books the first cause on the queues of what is not complete, or has been called otherwise elsewhere.
static void book(struct weir__pulse *pulse)
{
    struct weir__flight flight;
    advance(pulse); // a program that has waited for a call may have recovered its queue meanwhile
    for (size_t i = 0; weir__pulse_copy_flight(pulse, i, &flight); i++) {
        weir_queue *queue = weir__registry_pin(flight.queue);
        const struct weir_operation operation = operation_of(pulse, &flight);
        const bool counts =
            !is_over(pulse, &flight) || (pulse->differs && flight.number >= pulse->differs);
        if (queue && counts)
            weir__queue_fail(queue, &operation, weir__comm_cause(pulse->comm));
        if (queue)
            weir__registry_unpin(queue);
    }
}

// A queue learns of a failure that came through a wait when it is found complete. The other ranks have
// got undefined bytes then, and hear of it. False: the submission of the call has not returned yet.
static bool look_at_queue(struct weir__pulse *pulse, const struct weir__flight *flight)
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

// Looks at the calls that are complete, up to one whose submission has not returned yet. None but the pulse's thread
// removes any, so the index stays that of the call.
static void look_at_complete(struct weir__pulse *pulse)
{
    struct weir__flight flight;
    for (size_t i = 0; weir__pulse_copy_flight(pulse, i, &flight) && is_over(pulse, &flight); i++) {
        if (flight.looked_at)
            continue;
        if (!look_at_queue(pulse, &flight))
            return;
        weir_lock_take(&pulse->comm->lock);
        weir__flight_at(pulse, begin_of(pulse) + i)->looked_at = true;
        weir_lock_release(&pulse->comm->lock);
    }
}

#define MILLISECOND UINT64_C(1000000)

// Beats. A rank that leaves says so in its last one. All others have that from the same beat, so they
// agree on which are left, and exchange the next one among themselves.

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
    own->process = (uint64_t)getpid();
    (void)gethostname(own->host,
                      sizeof own->host - 1); // writes the beginning of a name that does not fit
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

// All others have left.
static bool is_alone(const struct weir__pulse *pulse)
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

// Tells the other ranks that have not left what this one has called, and learns the same of them.
static weir_status exchange_beats(struct weir__pulse *pulse, bool due, uint64_t timeout_ns)
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

// A call of the engine may be made, and end_asking() follows. False: the process exits.
static bool begin_asking(void)
{
    atomic_fetch_add(&asking, 1);
    if (!atomic_load(&exiting))
        return true;
    atomic_fetch_sub(&asking, 1);
    return false;
}

static void end_asking(void)
{
    atomic_fetch_sub(&asking, 1);
}

// Asks the engine and the queues how far they are.
static weir_status ask(struct weir__pulse *pulse, struct weir_comm_progress *out_progress)
{
    weir_comm *comm = pulse->comm;
    *out_progress = (struct weir_comm_progress){.struct_size = sizeof *out_progress};
    out_progress->turn = pulse->turn;
    if (!begin_asking())
        return WEIR_OK;
    weir_status status = comm->engine->ops->comm_query(comm->engine, comm, out_progress);
    end_asking();
    if (status == WEIR_OK && (int32_t)(out_progress->turn - pulse->turn) > 0)
        pulse->turn = out_progress->turn;
    advance(pulse);
    return status;
}

// Waits so long. False: the pulse is to stop or, unless it has been `aborted`, the communicator has failed.
static bool may_go_on_after(const struct weir__pulse *pulse, uint64_t time_ns, bool aborted)
{
    weir_comm *comm = pulse->comm;
    const uint64_t deadline_ns = weir_clock_deadline(time_ns);
    int error = 0;
    weir_lock_take(&comm->lock);
    while (!pulse->stop && (aborted || !comm->failed) && error == 0)
        error = weir_lock_wait_until(&comm->lock, &comm->changed, deadline_ns);
    const bool may = !pulse->stop && (aborted || !comm->failed);
    weir_lock_release(&comm->lock);
    return may;
}

// After an abort the engine's work ends, soon and with any result. Where it does not, nothing but the end of the
// process ends it, and waits for it would have no end: so the device is given up.

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
    size_t used = 0;
    const double waited_ns = (double)(weir_clock_now_ns() - since_ns);
    (void)weir__comm_cause(comm);
    weir_text_append(lost.message, sizeof lost.message, &used,
                     "%srank %" PRIu32
                     " has lost its device, since %s has not ended it in %s after its "
                     "abort; the first cause: %.600s",
                     weir__flight_name(pulse, flight).text, comm->rank,
                     comm->engine->ops->comm_engine(comm->engine, comm),
                     weir_text_duration(waited_ns).text, weir_last_error()->message);
    snprintf(lost.remedy, sizeof lost.remedy,
             "restart the process: a kernel that does not end leaves the device only with it");
    if (!begin_asking())
        return;
    comm->engine->ops->comm_give_up(comm->engine, comm, &lost);
    end_asking();
}

// Waits until the engine's work has ended after its abort, or the pulse is to stop. If it does not end in
// time, the device is lost.
static void await_end(struct weir__pulse *pulse)
{
    const weir_comm *comm = pulse->comm;
    const uint64_t abort_ns = weir_clock_now_ns();
    const uint64_t limit_ns =
        comm->timeout_ns < UINT64_MAX - GRACE_NS ? comm->timeout_ns + GRACE_NS : UINT64_MAX;
    struct weir_comm_progress progress;
    unsigned looks = 0;
    if (!comm->engine->ops->comm_give_up)
        return;
    while (may_go_on_after(pulse, LOOK_NS, true)) {
        const uint32_t before = pulse->turn;
        const weir_status asked = ask(pulse, &progress);
        const struct weir__flight *oldest = find_oldest(pulse);
        if (asked < 0 || !oldest)
            return;
        const uint64_t now_ns = weir_clock_now_ns();
        const bool moved = pulse->turn != before || !progress.due;
        pulse->moved_ns = moved ? now_ns : pulse->moved_ns;
        looks = moved ? 0 : looks + 1;
        if (looks < LEAST_LOOKS || now_ns - pulse->moved_ns < limit_ns)
            continue;
        give_up(pulse, oldest, abort_ns);
        return;
    }
}

// What has been called comes from the submitting threads; the rest belongs to the pulse's
// thread.
// Which collective is late is known from the engine's progress; which rank is at fault, from the
// beats: the one that has called less.

#define JUDGE_NS (500 * MILLISECOND) // as in transports/kit: busy processors delay a beat

// The first of a rank's last calls that differs from this one's; NULL: none does.
static const struct weir_head *first_other(const struct weir__pulse *pulse, uint32_t rank)
{
    const struct weir__beat *theirs = &pulse->beats[rank];
    const struct weir_head *first = NULL;
    for (uint32_t i = 0; i < WEIR__PULSE_WINDOW; i++) {
        const struct weir_head *call = &theirs->calls[i];
        const struct weir_head *own = &pulse->calls[call->number % WEIR__PULSE_HISTORY];
        if (call->number != 0 && own->number == call->number && !weir_head_equals(own, call) &&
            (!first || call->number < first->number))
            first = call;
    }
    return first;
}

// The number of a call that differs from this rank's, or of one after it; 0: none is known.
static uint64_t first_difference(const struct weir__pulse *pulse, uint32_t rank)
{
    const struct weir__beat *theirs = &pulse->beats[rank];
    const struct weir_head *call = first_other(pulse, rank);
    const size_t own = theirs->number % WEIR__PULSE_HISTORY;
    if (call)
        return call->number;
    // This rank may no longer remember the call, or it is still to come.
    const bool is_known = theirs->number > 0 && pulse->calls[own].number == theirs->number;
    return is_known && pulse->hashes[own] != theirs->hash ? theirs->number : 0;
}

// What the ranks have called with a number.
struct calls {
    const struct weir__pulse *pulse;
    uint64_t number;
};

static const struct weir_head *find_call(const void *user, uint32_t rank)
{
    const struct calls *calls = user;
    const struct weir__pulse *pulse = calls->pulse;
    const struct weir_head *call =
        rank == pulse->comm->rank ? &pulse->calls[calls->number % WEIR__PULSE_HISTORY]
                                  : &pulse->beats[rank].calls[calls->number % WEIR__PULSE_WINDOW];
    return call->number == calls->number ? call : NULL;
}

// Both calls are known, or the difference is in one before those that beats have.
static void fail_of_difference(struct weir__pulse *pulse, const struct calls *calls,
                               const struct weir_odd *odd, bool known)
{
    char text[WEIR_CALLS_TEXT_SIZE];
    struct weir__flight flight;
    const bool flies = known && weir__pulse_find(pulse, calls->number, &flight);
    pulse->differs = known ? calls->number : pulse->confirmed + 1; // which may be complete
    if (known)
        weir_head_differ(find_call(calls, odd->rank), odd->rank, find_call(calls, odd->peer),
                         odd->peer, odd->is_odd, text);
    else
        snprintf(text, sizeof text,
                 "rank %" PRIu32 " has called something else than rank %" PRIu32
                 " before collective %" PRIu64,
                 odd->peer, odd->rank,
                 calls->number < WEIR__PULSE_WINDOW ? 1 : calls->number - WEIR__PULSE_WINDOW + 1);
    weir__pulse_fail(pulse, flies ? &flight : NULL, WEIR_FAULT_DIFFERS, text);
}

// The first number with which a rank has called something else than this one, or one after it. False: there is none.
static bool find_difference(struct weir__pulse *pulse, struct calls *out_calls,
                            struct weir_odd *out_odd)
{
    *out_calls = (struct calls){pulse, UINT64_MAX};
    *out_odd = (struct weir_odd){.rank = pulse->comm->rank};
    for (uint32_t i = 0; i < pulse->comm->count; i++) {
        const uint64_t number = first_difference(pulse, i);
        if (number == 0 || number >= out_calls->number)
            continue;
        out_calls->number = number;
        out_odd->peer = i;
    }
    return out_calls->number < UINT64_MAX;
}

// Compares the last calls of all ranks with those of this one. After a difference the ranks that have
// not come so far are waited for, for they tell which of two is wrong, but not long. False until all
// is the same.
static bool compare(struct weir__pulse *pulse)
{
    struct calls calls;
    struct weir_odd odd, found;
    bool open = false;
    const uint64_t now_ns = weir_clock_now_ns();
    if (!find_difference(pulse, &calls, &odd))
        return true;
    const bool known = weir_heads_find_odd(pulse->comm->count, find_call, &calls, &found);
    for (uint32_t i = 0; i < pulse->comm->count; i++)
        open = open || (i != pulse->comm->rank && !pulse->beats[i].leaves &&
                        pulse->beats[i].number < calls.number);
    if (pulse->differs_ns == 0)
        pulse->differs_ns = now_ns;
    if ((known && found.is_odd) || !open || now_ns - pulse->differs_ns >= JUDGE_NS)
        fail_of_difference(pulse, &calls, known ? &found : &odd, known);
    return false;
}

static void hear(struct weir__pulse *pulse, const struct weir__flight *oldest)
{
    uint64_t confirmed = pulse->own.number;
    char text[2 * WEIR_CALLS_TEXT_SIZE];
    char last[WEIR_CALLS_TEXT_SIZE];
    if (!compare(pulse))
        return;
    for (uint32_t i = 0; i < pulse->comm->count; i++) {
        const struct weir__beat *beat = &pulse->beats[i];
        confirmed = beat->number < confirmed ? beat->number : confirmed;
        // A rank that has left takes part in nothing that comes after its last call.
        if (!beat->leaves || !oldest || oldest->number <= beat->number)
            continue;
        weir__pulse_last_call(beat, last);
        snprintf(text, sizeof text, "rank %" PRIu32 " has destroyed the communicator %s", i, last);
        weir__pulse_fail(pulse, oldest, WEIR_FAULT_LEFT, text);
        return;
    }
    pulse->confirmed = confirmed;
}

// Asks the engine, and decides whether the oldest collective is late.
static bool look(struct weir__pulse *pulse, const struct weir__flight **out_oldest, bool *out_due)
{
    struct weir_comm_progress progress;
    const uint64_t now_ns = weir_clock_now_ns();
    const uint32_t before = pulse->turn;
    weir__pulse_hear_own(pulse);
    const weir_status asked = ask(pulse, &progress);
    if (asked < 0) {
        const struct weir_error error = weir__error_of(asked);
        weir__pulse_fail(pulse, find_oldest(pulse), WEIR_FAULT_OTHER, error.message);
        return false;
    }
    if (pulse->turn != before || !progress.due)
        pulse->moved_ns = now_ns;
    look_at_complete(pulse);
    *out_oldest = find_oldest(pulse);
    *out_due = *out_oldest && progress.due;
    if (!*out_oldest)
        pulse->moved_ns = now_ns;
    if (now_ns - pulse->moved_ns <= pulse->comm->timeout_ns)
        return true;
    weir__pulse_fail_late(pulse, *out_oldest);
    return false;
}

static void beat(struct weir__pulse *pulse)
{
    const struct weir__flight *oldest;
    bool due;
    if (!look(pulse, &oldest, &due))
        return;
    const weir_status status =
        is_alone(pulse) ? WEIR_OK : exchange_beats(pulse, due, pulse->comm->timeout_ns);
    if (status < 0) {
        const struct weir_error error = weir__error_of(status);
        struct weir_comm_progress progress;
        // A rank has gone: what is complete by now had all that it needed. The engine records what it is asked
        // about when it is asked, and so knows it the next time.
        for (int i = 0; i < 3 && ask(pulse, &progress) == WEIR_OK; i++)
            weir_clock_sleep_ns(MILLISECOND / 10);
        oldest = find_oldest(pulse); // one may have come, or have ended, meanwhile
        weir__pulse_fail_of_transport(pulse, oldest, &error);
        return;
    }
    hear(pulse, oldest);
}

static void run(void *argument)
{
    struct weir__pulse *pulse = argument;
    weir_comm *comm = pulse->comm;
    // Beats are rarer the more ranks there are, since each has as many parts.
    const uint64_t interval_ns =
        comm->count <= 8 ? 20 * MILLISECOND : comm->count * 5 / 2 * MILLISECOND;
    pulse->moved_ns = weir_clock_now_ns();
    for (uint64_t time_ns = 0; may_go_on_after(pulse, time_ns, false); time_ns = interval_ns)
        beat(pulse);
    if (comm->failed) {
        book(pulse);
        if (begin_asking()) {
            comm->engine->ops->comm_abort(comm->engine, comm);
            end_asking();
        }
        await_end(pulse);
    } else if (!pulse->own.leaves && !is_alone(pulse)) { // the others hear it once
        (void)exchange_beats(pulse, false, 1000 * MILLISECOND);
    }
    weir_lock_take(&comm->lock);
    pulse->ended = true;
    pthread_cond_broadcast(&comm->changed);
    weir_lock_release(&comm->lock);
}

weir_status weir__pulse_start(weir_comm *comm, void *group)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_exit);
    const size_t of_rank = sizeof(struct weir__beat) + 2 * sizeof(struct weir_transport_part);
    struct weir__pulse *pulse = weir__allocate(sizeof *pulse + comm->count * of_rank);
    struct weir__flight *flights = weir__allocate(FIRST_ROOM * sizeof *flights);
    if (!pulse || !flights) {
        weir__release(pulse);
        weir__release(flights);
        comm->transport->leave(group);
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a communicator");
    }
    pulse->comm = comm;
    pulse->group = group;
    pulse->flights = flights;
    pulse->flight_room = FIRST_ROOM;
    pulse->beats = (struct weir__beat *)(void *)(pulse + 1);
    pulse->parts = (struct weir_transport_part *)(void *)(pulse->beats + comm->count);
    comm->pulse = pulse;
    // The first beat, so that the process of a rank is known whenever that rank ends.
    TRY(exchange_beats(pulse, false, comm->timeout_ns));
    if (weir_thread_start(&pulse->thread, run, pulse) != 0)
        return weir__fail(WEIR_ERROR_SYSTEM, "raise the limit of threads",
                          "no thread for communicator '%s'",
                          weir__label_or_none(comm->member.object.label));
    pulse->has_thread = true;
    return WEIR_OK;
}

// Waits a second for a beat that is under way and for the last one; then nothing waits for ranks.
static void stop(struct weir__pulse *pulse)
{
    weir_comm *comm = pulse->comm;
    const uint64_t deadline_ns = weir_clock_deadline(1000 * MILLISECOND);
    int error = 0;
    weir_lock_take(&comm->lock);
    pulse->stop = true;
    pthread_cond_broadcast(&comm->changed);
    while (!pulse->ended && error == 0)
        error = weir_lock_wait_until(&comm->lock, &comm->changed, deadline_ns);
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
    weir__release(pulse);
    comm->pulse = NULL;
}
