// What the driver gets from the program, Weir gets as notes: after it, or before it if the call waits for the command. What
// comes after a user event comes to Weir when that is set, since it can run only then, and so does what comes after that
// in its queue.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers/opencl/layer.h"

// Commands that wait for user events.
static struct task *first_pending;
static struct task **pending_end = &first_pending;

// To Weir.

// The lane of the next command, or that of markers and barriers; NULL if there is none.

static weir_queue *make_lane(const struct queue *queue, const char *label,
                             const struct place *place)
{
    weir_queue *lane = NULL;
    if (weir_queue_create_at(layer.device, WEIR_PARAMS(weir_queue, .label = label), &lane,
                             place->file, place->line) < 0 ||
        (queue->barrier.sequence &&
         weir_queue_wait_at(lane, queue->barrier, place->file, place->line) < 0))
        layer_lose(LAYER_LOSS_WEIR);
    return lane;
}

static weir_queue *next_lane(struct queue *queue, const struct place *place)
{
    char label[64];
    const uint32_t index = queue->turn++ % (queue->unordered ? LAYER_LANES : 1);
    if (index < queue->lane_count)
        return queue->lanes[index];
    if (queue->unordered)
        snprintf(label, sizeof label, "queue %u, lane %u", queue->number, queue->lane_count);
    else
        snprintf(label, sizeof label, "queue %u", queue->number);
    weir_queue *lane = make_lane(queue, label, place);
    if (lane)
        queue->lanes[queue->lane_count++] = lane;
    return lane;
}

static weir_queue *control_lane(struct queue *queue, const struct place *place)
{
    char label[64];
    if (!queue->unordered)
        return next_lane(queue, place);
    if (queue->control)
        return queue->control;
    snprintf(label, sizeof label, "queue %u, its markers", queue->number);
    queue->control = make_lane(queue, label, place);
    return queue->control;
}

static void wait_for(weir_queue *lane, const struct event *event, const struct place *place)
{
    if (event->state == EVENT_SUBMITTED &&
        weir_queue_wait_at(lane, event->point, place->file, place->line) < 0)
        layer_lose(LAYER_LOSS_WEIR);
}

static bool record(weir_queue *lane, const struct place *place, struct weir_event *out_event)
{
    if (weir_queue_record_at(lane, out_event, place->file, place->line) == WEIR_OK)
        return true;
    layer_lose(LAYER_LOSS_WEIR);
    return false;
}

static void end_at(struct event *event, weir_queue *lane, const struct place *place)
{
    if (!event)
        return;
    event->state = record(lane, place, &event->point) ? EVENT_SUBMITTED : EVENT_SET;
    event->lane = lane;
}

static void note(const struct task *it, weir_queue *lane)
{
    uint64_t number = 0;
    if (weir_queue_note_at(lane,
                           WEIR_PARAMS(weir_note, .name = it->name, .ranges = it->ranges,
                                       .range_count = it->use_count, .work = it->work,
                                       .timed = layer.times),
                           &number, it->place.file, it->place.line) < 0)
        layer_lose(LAYER_LOSS_WEIR);
    if (it->event)
        it->event->note = number;
}

// Makes the control lane come after all that a queue without order has.
static void gather(struct queue *queue, weir_queue *control, const struct place *place)
{
    struct weir_event event;
    for (uint32_t i = 0; queue->unordered && i < queue->lane_count; i++)
        if (record(queue->lanes[i], place, &event) &&
            weir_queue_wait_at(control, event, place->file, place->line) < 0)
            layer_lose(LAYER_LOSS_WEIR);
}

static void spread(struct queue *queue, weir_queue *control, const struct place *place)
{
    if (!queue->unordered || !record(control, place, &queue->barrier))
        return;
    for (uint32_t i = 0; i < queue->lane_count; i++)
        if (weir_queue_wait_at(queue->lanes[i], queue->barrier, place->file, place->line) < 0)
            layer_lose(LAYER_LOSS_WEIR);
}

static bool is_impossible(const struct task *it)
{
    for (uint32_t i = 0; i < it->wait_count; i++)
        if (it->waits[i]->state == EVENT_FAILED)
            return true;
    return false;
}

static void submit(const struct task *it)
{
    const bool works = it->order == ORDER_WORK;
    weir_queue *lane =
        works ? next_lane(it->queue, &it->place) : control_lane(it->queue, &it->place);
    if (!lane || is_impossible(it)) {
        if (it->event)
            it->event->state = lane ? EVENT_FAILED : EVENT_SET;
        return;
    }
    for (uint32_t i = 0; i < it->wait_count; i++)
        wait_for(lane, it->waits[i], &it->place);
    if (works)
        note(it, lane);
    else if (it->wait_count == 0)
        gather(it->queue, lane, &it->place);
    end_at(it->event, lane, &it->place);
    if (it->order == ORDER_BARRIER)
        spread(it->queue, lane, &it->place);
}

// What waits.

static bool is_held_up(const struct task *it)
{
    const struct queue *queue = it->queue;
    for (uint32_t i = 0; i < it->wait_count; i++)
        if (it->waits[i]->state == EVENT_WAITING)
            return true;
    if (queue->unordered && it->order == ORDER_WORK)
        return queue->deferred_barriers > 0;
    return queue->deferred > 0;
}

void task_each_object(const struct task *it, void (*act)(struct object *object))
{
    for (uint32_t i = 0; i < it->wait_count; i++)
        act(&it->waits[i]->object);
    for (uint32_t i = 0; i < it->use_count; i++)
        act(&it->memories[i]->object);
    if (it->event)
        act(&it->event->object);
    act(&it->queue->object);
}

static void *put(char **at, const void *from, size_t size)
{
    char *to = *at;
    if (size)
        memcpy(to, from, size);
    *at += size;
    return to;
}

static void append(struct task *it)
{
    it->next = NULL;
    *pending_end = it;
    pending_end = &it->next;
    it->queue->deferred++;
    it->queue->deferred_barriers += it->order == ORDER_BARRIER;
}

static void defer(const struct task *it)
{
    const size_t ranges = it->use_count * sizeof *it->ranges;
    const size_t memories = it->use_count * sizeof(struct memory *);
    const size_t waits = it->wait_count * sizeof(struct event *);
    struct task *copy = malloc(sizeof *copy + ranges + memories + waits);
    if (!copy) {
        layer_lose(LAYER_LOSS_MEMORY);
        if (it->event)
            it->event->state = EVENT_SET;
        return;
    }
    char *at = (char *)(copy + 1);
    *copy = *it;
    copy->ranges = put(&at, it->ranges, ranges);
    copy->memories = put(&at, it->memories, memories);
    copy->waits = put(&at, it->waits, waits);
    task_each_object(copy, object_hold);
    append(copy);
}

// All that waits comes once more, in its order: nothing waits for what came later.
void mirror_set(struct event *event, bool failed)
{
    if (event->state != EVENT_WAITING)
        return;
    event->state = failed ? EVENT_FAILED : EVENT_SET;
    struct task *it = first_pending;
    first_pending = NULL;
    pending_end = &first_pending;
    for (struct task *at = it; at; at = at->next)
        at->queue->deferred = at->queue->deferred_barriers = 0;
    for (struct task *next; it; it = next) {
        next = it->next;
        if (is_held_up(it)) {
            append(it);
            continue;
        }
        submit(it);
        task_each_object(it, object_drop);
        free(it);
    }
}

void mirror_submit(const struct task *it)
{
    if (is_held_up(it))
        defer(it);
    else
        submit(it);
}

// What the host learns. Weir waits for nothing: on its backend all notes are complete.
void mirror_learn_event(const struct event *event, const struct place *place)
{
    if (event->state == EVENT_SUBMITTED &&
        weir_event_sync_at(event->point, WEIR_FOREVER, place->file, place->line) < 0)
        layer_lose(LAYER_LOSS_WEIR);
}

void mirror_learn(cl_event handle, const struct place *place)
{
    if (!layer_enter())
        return;
    const struct event *event = (struct event *)object_find(OBJECT_EVENT, handle);
    if (event)
        mirror_learn_event(event, place);
    layer_unlock();
}
