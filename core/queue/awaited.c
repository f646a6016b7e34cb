// See the header. Each queue of the chain is looked at under its own locks, one after another; what is
// said may be over by then.
#include "core/queue/queue.h"

#include <inttypes.h>

#include "core/queue/operation.h"

enum {
    HISTORY = 64, // operations
    CHAIN = 8,    // queues
    TEXT_SIZE = 640,
};

struct noted {
    uint64_t sequence;
    enum weir_operation_kind kind;
    char kernel[32];
    const char *file;
    int line;
};

struct weir__history {
    uint64_t count;
    struct noted latest[HISTORY];
};

void weir__awaited_note(weir_queue *queue, const struct weir_operation *operation)
{
    if (!weir__debugging() || operation->flags & WEIR_OPERATION_INTERNAL)
        return;
    if (!queue->history)
        queue->history = weir__allocate(sizeof *queue->history);
    if (!queue->history)
        return;
    weir_lock_take(&queue->delivery.lock);
    struct noted *noted = &queue->history->latest[queue->history->count++ % HISTORY];
    *noted =
        (struct noted){operation->sequence, operation->kind, "", operation->file, operation->line};
    if (operation->kind == WEIR_OPERATION_LAUNCH)
        snprintf(noted->kernel, sizeof noted->kernel, "%.31s",
                 operation->u.launch.kernel->member.object.label);
    weir_lock_release(&queue->delivery.lock);
}

// The oldest noted operation with a number above `after` and up to `last`; a record only with
// `records`. False: none is noted.
static bool find_noted(weir_queue *queue, uint64_t after, uint64_t last, bool records,
                       struct noted *out_noted)
{
    bool found = false;
    weir_lock_take(&queue->delivery.lock);
    const struct weir__history *history = queue->history;
    const uint64_t count = history ? history->count : 0;
    for (uint64_t i = count > HISTORY ? count - HISTORY : 0; i < count && !found; i++) {
        *out_noted = history->latest[i % HISTORY];
        found = out_noted->sequence > after && out_noted->sequence <= last &&
                (records || out_noted->kind != WEIR_OPERATION_RECORD);
    }
    weir_lock_release(&queue->delivery.lock);
    return found;
}

// The number up to which the queue is known to be complete. Noted records are asked for.
static uint64_t completed_of(weir_queue *queue, uint64_t last)
{
    struct noted noted;
    uint64_t at = atomic_load(&queue->completion.completed);
    for (; find_noted(queue, at, last, true, &noted); at = noted.sequence)
        if (noted.kind == WEIR_OPERATION_RECORD &&
            weir__queue_query(queue, noted.sequence) == WEIR_NOT_READY)
            break;
    return atomic_load(&queue->completion.completed);
}

// The text, which grows.
struct words {
    char *text;
    size_t used;
};

#define say(words, ...) weir_text_append((words)->text, TEXT_SIZE, &(words)->used, __VA_ARGS__)

static void say_place(struct words *words, const char *file, int line)
{
    char place[WEIR__PLACE_SIZE];
    say(words, "%s", weir__place_text(place, " (", file, line, ")"));
}

static void say_queue(struct words *words, const weir_queue *queue)
{
    say(words, "queue '%.40s'", weir__label_or_none(queue->member.object.label));
}

// The operation that the queue's worker is busy with, or comes to next, if that is at `sequence` or before;
// without what it points to.
static bool find_running(weir_queue *queue, uint64_t sequence, struct weir_operation *out_running)
{
    struct weir__delivery *delivery = &queue->delivery;
    weir_lock_take(&delivery->lock);
    const struct weir__held *held = STAILQ_FIRST(&delivery->list);
    const bool found = held && held->operation.sequence <= sequence;
    if (found)
        *out_running = held->operation;
    weir_lock_release(&delivery->lock);
    return found;
}

// The first of the queue's waits up to `sequence` whose event has not ended; its producer is pinned.
static weir_queue *find_wait(weir_queue *queue, uint64_t sequence, struct weir__wait *out_wait)
{
    unsigned at = atomic_load(&queue->completion.waits.head);
    while (weir__completion_next_wait(queue, &at, sequence, out_wait)) {
        weir_queue *producer = weir__registry_pin(out_wait->event.queue);
        const uint64_t reached = out_wait->event.sequence;
        if (!producer)
            continue;
        // Launches have no record that could be asked for.
        const bool ended = out_wait->no_record
                               ? atomic_load(&producer->delivery.delivered) >= reached
                               : weir__queue_query(producer, reached) != WEIR_NOT_READY;
        if (!ended)
            return producer;
        weir__registry_unpin(producer);
    }
    return NULL;
}

// The device has not ended the queue's work; which operation it is at is not known.
static void say_device_work(struct words *words, weir_queue *queue, uint64_t sequence)
{
    struct noted noted;
    const uint64_t completed = completed_of(queue, sequence);
    if (find_noted(queue, completed, sequence, false, &noted) ||
        find_noted(queue, completed, sequence, true, &noted)) {
        say(words, ", whose device has not ended operation %" PRIu64 ", ", noted.sequence);
        say(words, "a %s", weir_operation_kind_name(noted.kind));
        if (noted.kernel[0])
            say(words, " of '%s'", noted.kernel);
        say_place(words, noted.file, noted.line);
        if (noted.sequence < sequence)
            say(words, ", or one after it");
    } else {
        say(words, ", whose device has not ended operation %" PRIu64 " or one after it",
            completed + 1);
    }
}

// Whether the operation that the worker is at is what is waited for. A host call that is not called yet waits for what
// comes before it, up to `*sequence`.
static bool say_running(struct words *words, weir_queue *queue,
                        const struct weir_operation *running, uint64_t *sequence)
{
    const bool is_call = running->kind == WEIR_OPERATION_HOST_CALL;
    if (is_call && !atomic_load(&queue->delivery.in_call) &&
        !weir__queue_is_past(queue, running->sequence - 1)) {
        *sequence = running->sequence - 1;
        return false;
    }
    say(words, ", whose %s", weir_operation_kind_name(running->kind));
    say_place(words, running->file, running->line);
    say(words, is_call ? " has not returned: its function must return" : " has not ended");
    return true;
}

// Goes on with the producer.
static weir_queue *say_wait(struct words *words, weir_queue *producer, const char *file, int line)
{
    say(words, ", which waits");
    say_place(words, file, line);
    say(words, " for ");
    say_queue(words, producer);
    return producer;
}

// The producer that the queue waits for next, pinned; NULL: all is said.
static weir_queue *say_step(struct words *words, weir_queue *queue, uint64_t *sequence)
{
    struct weir_operation running;
    struct weir__wait wait;
    struct noted noted;
    weir_queue *producer = NULL;
    if (find_running(queue, *sequence, &running)) {
        if (running.kind == WEIR_OPERATION_WAIT)
            producer = weir__registry_pin(running.u.wait.event.queue);
        else if (say_running(words, queue, &running, sequence))
            return NULL;
    }
    if (producer) {
        *sequence = running.u.wait.event.sequence;
        return say_wait(words, producer, running.file, running.line);
    }
    producer = find_wait(queue, *sequence, &wait);
    if (!producer) {
        say_device_work(words, queue, *sequence);
        return NULL;
    }
    *sequence = wait.event.sequence;
    return find_noted(queue, wait.own - 1, wait.own, true, &noted)
               ? say_wait(words, producer, noted.file, noted.line)
               : say_wait(words, producer, NULL, 0);
}

static void describe(weir_queue *queue, uint64_t sequence, char text[TEXT_SIZE])
{
    const struct weir_error saved = *weir_last_error();
    struct words words = {text, 0};
    text[0] = '\0';
    say_queue(&words, queue);
    for (int i = 0; queue && i < CHAIN; i++) {
        weir_queue *producer = say_step(&words, queue, &sequence);
        if (i > 0) // the first one is the caller's; the chain may come back to it
            weir__registry_unpin(queue);
        queue = producer;
    }
    weir__registry_unpin(queue);
    weir__error_set(&saved);
}

void weir__awaited_end(weir_queue *queue, uint64_t sequence, uint64_t timeout_ns,
                       const struct weir__host_caller *caller)
{
    static _Thread_local struct weir_event told;
    const struct weir_event event = {queue->member.object.id, sequence};
    const bool is_short = timeout_ns < 1000;
    char text[TEXT_SIZE], remedy[160];
    describe(queue, sequence, text);
    if (is_short)
        snprintf(remedy, sizeof remedy,
                 "timeouts are in nanoseconds: write WEIR_MS(%" PRIu64 ") for milliseconds",
                 timeout_ns);
    else
        snprintf(remedy, sizeof remedy, "wait longer, or look at what has not ended%s",
                 weir__debugging() ? "" : "; WEIR_DEBUG=1 names its line");
    weir__report_at(caller->file, caller->line, queue->member.object.label, WEIR_TIMEOUT, remedy,
                    "%s: the limit of %s passed first: %s", caller->function,
                    weir_text_duration((double)timeout_ns).text, text);
    if (weir__debugging() && (told.queue != event.queue || told.sequence != event.sequence))
        weir__log(WEIR_LOG_WARNING, "core", weir_last_error_text());
    told = event;
}

void weir__awaited_tell(weir_queue *queue, uint64_t sequence,
                        const struct weir__host_caller *caller)
{
    char text[TEXT_SIZE], message[TEXT_SIZE + 256];
    struct words place = {message, 0};
    describe(queue, sequence, text);
    say(&place, "%s", caller->function);
    say_place(&place, caller->file, caller->line);
    snprintf(message + place.used, sizeof message - place.used, " has waited for %d s: %s",
             (int)(WEIR__AWAITED_TOLD_NS / 1000000000), text);
    weir__log(WEIR_LOG_WARNING, "core", message);
}
