// What the driver gets from the program, Weir gets as notes: after it, or before it if the call waits for the command. What
// comes after a user event comes to Weir when that is set, since it can run only then, and so does what comes after that
// in its queue.
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "layers/opencl/layer.h"

// Commands that wait for user events.
static struct task *first_pending;
static struct task **pending_end = &first_pending;

// To Weir.

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
        works ? queue_next_lane(it->queue, &it->place) : queue_control(it->queue, &it->place);
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

// object_hold() or object_drop() of all that the task names.
static void each_object(const struct task *it, void (*act)(struct object *object))
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
    each_object(copy, object_hold);
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
        each_object(it, object_drop);
        free(it);
    }
}

// Commands.

// One that an extension has made. It is held for ever.
static struct event unknown_event = {.object = {.kind = OBJECT_EVENT, .holds = 1},
                                     .state = EVENT_SET};

static void find_waits(struct command *command, cl_uint count, const cl_event *waits)
{
    struct task *task = &command->task;
    if (!waits)
        return;
    if (count > sizeof command->few / sizeof *command->few) {
        task->waits = malloc(count * sizeof(struct event *));
        if (!task->waits) {
            layer_lose(LAYER_LOSS_MEMORY);
            return;
        }
    }
    for (cl_uint i = 0; i < count; i++) {
        struct event *event = (struct event *)object_find(OBJECT_EVENT, waits[i]);
        if (!event) // a list of such events must not become one that is empty
            event = &unknown_event;
        object_hold(&event->object);
        task->waits[task->wait_count++] = event;
    }
}

void command_begin(struct command *command, cl_command_queue queue, const char *name,
                   enum weir_note_work work, void *caller, cl_uint wait_count,
                   const cl_event *waits, cl_event *out)
{
    command->on = false;
    command->out = out;
    command->own = NULL;
    if (!layer_is_on())
        return;
    const struct place place = place_find(caller);
    if (!layer_enter())
        return;
    struct queue *known = queue_find(queue);
    if (!known) {
        layer_unlock();
        return;
    }
    command->on = true;
    command->blocking = false;
    command->mirrored = false;
    command->task = (struct task){
        .name = name,
        .place = place,
        .work = work,
        .order = ORDER_WORK,
        .queue = known,
        .waits = command->few,
        .memories = command->memories,
        .ranges = command->ranges,
    };
    object_hold(&known->object);
    find_waits(command, wait_count, waits);
}

bool command_fits(const struct weir_note_range *range, size_t size)
{
    const size_t rows = range->rows ? range->rows : 1;
    const size_t slices = range->slices ? range->slices : 1;
    size_t last;
    size_t end;
    return !__builtin_mul_overflow(rows - 1, range->pitch, &last) &&
           !__builtin_mul_overflow(slices - 1, range->slice_pitch, &end) &&
           !__builtin_add_overflow(end, last, &end) &&
           !__builtin_add_overflow(end, range->offset, &end) &&
           !__builtin_add_overflow(end, range->size, &end) && end <= size &&
           (rows == 1 || range->pitch >= range->size) &&
           (slices == 1 || range->slice_pitch >= last + range->size);
}

void command_use_box(struct command *command, struct memory *memory,
                     const struct weir_note_range *range)
{
    if (!command->on || !memory || range->size == 0)
        return;
    size_t offset = range->offset;
    struct memory *root = memory_root(memory, &offset);
    if (!root->buffer)
        return;
    struct task *task = &command->task;
    if (task->use_count == COMMAND_USES) {
        layer_lose(LAYER_LOSS_ARGUMENTS);
        return;
    }
    struct weir_note_range *it = &task->ranges[task->use_count];
    *it = *range;
    it->buffer = root->buffer;
    it->offset = offset;
    it->assumed = range->assumed || root->assumed;
    if (!command_fits(it, root->size)) // the driver refuses it
        return;
    object_hold(&root->object);
    task->memories[task->use_count++] = root;
}

void command_use(struct command *command, struct memory *memory, size_t offset, size_t size,
                 weir_access access, bool assumed)
{
    const struct weir_note_range range = {.offset = offset,
                                          .size = size,
                                          .access = access,
                                          .assumed = assumed};
    command_use_box(command, memory, &range);
}

static void mirror(struct command *command)
{
    command->mirrored = true;
    if (is_held_up(&command->task))
        defer(&command->task);
    else
        submit(&command->task);
}

// What the host learns. Weir waits for nothing: on its backend all notes are complete.
static void learn(const struct event *event, const struct place *place)
{
    if (event->state == EVENT_SUBMITTED &&
        weir_event_sync_at(event->point, WEIR_FOREVER, place->file, place->line) < 0)
        layer_lose(LAYER_LOSS_WEIR);
}

void command_before(struct command *command)
{
    struct task *task = &command->task;
    if (!command->on)
        return;
    if (command->out || command->blocking || layer.times)
        task->event = object_make(OBJECT_EVENT, sizeof *task->event);
    if (task->event)
        task->event->profiled = task->queue->profiled;
    if (command->blocking)
        mirror(command);
    layer_unlock();
    if (layer.times)
        command->called_ns = weir_clock_now_ns();
}

cl_event *command_event(struct command *command)
{
    return command->out || !command->on || !layer.times ? command->out : &command->own;
}

cl_int command_after(struct command *command, cl_int code)
{
    struct task *task = &command->task;
    if (!command->on)
        return code;
    layer_lock();
    if (code == CL_SUCCESS && layer_is_on()) {
        if (!command->mirrored)
            mirror(command);
        if (task->event && command->out)
            object_name(&task->event->object, *command->out);
        if (task->event && command->blocking)
            learn(task->event, &task->place);
        if (task->event && layer.times && task->order == ORDER_WORK)
            times_watch(command, command->out ? *command->out : command->own);
    }
    each_object(task, object_drop);
    if (task->waits != command->few)
        free(task->waits);
    layer_unlock();
    if (command->own)
        layer.driver->clReleaseEvent(command->own);
    return code;
}

void mirror_learn(cl_event handle, const struct place *place)
{
    if (!layer_enter())
        return;
    const struct event *event = (struct event *)object_find(OBJECT_EVENT, handle);
    if (event)
        learn(event, place);
    layer_unlock();
}

static void sync(weir_queue *lane, const struct place *place)
{
    if (lane && weir_queue_sync_at(lane, WEIR_FOREVER, place->file, place->line) < 0)
        layer_lose(LAYER_LOSS_WEIR);
}

void mirror_learn_all(cl_command_queue handle, const struct place *place)
{
    if (!layer_enter())
        return;
    struct queue *queue = queue_find(handle);
    for (uint32_t i = 0; queue && i < queue->lane_count; i++)
        sync(queue->lanes[i], place);
    if (queue)
        sync(queue->control, place);
    layer_unlock();
}
