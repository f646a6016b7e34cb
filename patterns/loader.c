// The loader: one thread reads ahead, and consumers hold batches. Entries are the pinned half, a ring in the
// order of the source. Rooms are the device half; any free room can be taken, so a batch that is held for long
// blocks no other.
//
// The thread waits on the host, not on the device, for the event after which a room was
// released: so a consumer's failure never reaches the loader's queue. This costs no
// overlap, because the batch is already in pinned memory and the other batches are
// loaded.
//
// `lock` guards the states of entries and rooms. The thread alone uses an entry that is
// NONE or FILLED, and a room that is neither free nor held.
#include "patterns/loader.h"

#include <inttypes.h>
#include <sys/queue.h>

#include "base/sized.h"
#include "base/thread.h"
#include "patterns/shared.h"

enum weir__entry_state {
    WEIR__ENTRY_NONE,   // delivered, or never filled
    WEIR__ENTRY_FILLED, // read, waiting for a room
    WEIR__ENTRY_BATCH,  // being copied to the device
    WEIR__ENTRY_ERROR,
    WEIR__ENTRY_END,
};

struct weir__entry {
    enum weir__entry_state state;
    weir_buffer *pinned;
    struct weir_event copied; // the copy out of pinned memory
    size_t size;
    uint32_t room;
    struct weir_error error;
};

struct weir__room {
    TAILQ_ENTRY(weir__room) place; // among the free ones: free when `released` is complete
    weir_buffer *buffer;
    bool held;                  // by a consumer
    uint64_t index;             // then the batch's number
    struct weir_event released; // zeroed: not released after any work
};

struct weir_loader {
    struct weir_loader_params params; // `label` is the copy
    char label[WEIR__PATTERN_LABEL_SIZE];
    weir_queue *queue;
    struct weir__entry *entries;
    struct weir__room *rooms;
    struct weir_thread thread;
    uint64_t loading; // the thread's: the number of the batch that it works on

    struct weir__pattern_lock lock;
    pthread_cond_t to_load; // the thread waits
    pthread_cond_t to_next; // consumers wait
    bool stopping;
    uint64_t head; // the next to be delivered
    uint32_t held;
    // The room that was released first is first, since it is the most likely to be idle.
    TAILQ_HEAD(, weir__room) free;
    struct weir_loader_statistics figures;
};

// --- the thread ---

static weir_status ask_source(weir_loader *loader, struct weir__entry *entry, void *memory)
{
    const struct weir_loader_params *params = &loader->params;
    const size_t capacity = params->batch_bytes;

    entry->size = 0;
    weir__pattern_forget();
    const weir_status status =
        params->source(params->user, loader->loading, memory, capacity, &entry->size);
    if (status != WEIR_OK)
        return weir__pattern_callback_failed(loader->label, "the source", status);
    if (entry->size > capacity)
        return weir__pattern_refuse(loader->label, "use a larger batch_bytes",
                                    "the source reported that batch %" PRIu64
                                    " has %zu bytes; there is room for %zu",
                                    loader->loading, entry->size, capacity);
    return WEIR_OK;
}

static weir_status fill(weir_loader *loader, struct weir__entry *entry)
{
    size_t capacity = loader->params.batch_bytes;
    void *memory;

    // If that copy failed, the consumer of its batch got the error.
    if (entry->copied.sequence > 0)
        WEIR_IGNORE(weir_event_sync(entry->copied, WEIR_FOREVER));
    TRY(weir_host_begin(entry->pinned, 0, capacity, WEIR_ACCESS_WRITE, &memory));
    weir_status status = ask_source(loader, entry, memory);
    weir_status end = weir_host_end(entry->pinned, 0, capacity, WEIR_ACCESS_WRITE);
    return status == WEIR_OK ? end : status;
}

// With the lock. No work uses the room.
static void free_room_at_once(weir_loader *loader, struct weir__room *room)
{
    room->released = (struct weir_event){0, 0};
    TAILQ_INSERT_HEAD(&loader->free, room, place);
}

static weir_status copy(weir_loader *loader, struct weir__entry *entry,
                        const struct weir__room *room)
{
    TRY(weir_queue_copy(loader->queue, room->buffer, 0, entry->pinned, 0, entry->size));
    TRY(weir_queue_record(loader->queue, &entry->copied));
    return weir_queue_flush(loader->queue);
}

// A queue that failed with an earlier batch refuses this one, whose data is still intact.
static weir_status copy_or_recover(weir_loader *loader, struct weir__entry *entry,
                                   const struct weir__room *room)
{
    if (room->released.sequence > 0)
        WEIR_IGNORE(weir_event_sync(room->released, WEIR_FOREVER));
    weir_status status = copy(loader, entry, room);
    if (status == WEIR_OK)
        return WEIR_OK;
    WEIR_IGNORE(weir_queue_sync(loader->queue, WEIR_FOREVER));
    status = weir_queue_recover(loader->queue);
    return status == WEIR_OK ? copy(loader, entry, room) : status;
}

// With the lock, which is released meanwhile. NULL when the loader is to stop.
static struct weir__room *take_room(weir_loader *loader)
{
    while (TAILQ_EMPTY(&loader->free) && !loader->stopping)
        (void)weir__pattern_lock_wait(&loader->lock, &loader->to_load, WEIR_FOREVER);
    if (loader->stopping)
        return NULL;
    struct weir__room *room = TAILQ_FIRST(&loader->free);
    TAILQ_REMOVE(&loader->free, room, place);
    return room;
}

// The same. False when the loader is to stop.
static bool place(weir_loader *loader, struct weir__entry *entry)
{
    entry->state = WEIR__ENTRY_FILLED;
    // Consumers that find every slot held can be refused now.
    pthread_cond_broadcast(&loader->to_next);
    struct weir__room *room = take_room(loader);
    if (!room)
        return false;
    weir__pattern_lock_release(&loader->lock);
    const weir_status status = copy_or_recover(loader, entry, room);
    if (status != WEIR_OK)
        entry->error = *weir_last_error();
    weir__pattern_lock_take(&loader->lock);
    entry->state = status == WEIR_OK ? WEIR__ENTRY_BATCH : WEIR__ENTRY_ERROR;
    entry->room = (uint32_t)(room - loader->rooms);
    if (status != WEIR_OK)
        free_room_at_once(loader, room);
    return true;
}

// The same. False at the end, too.
static bool load_next(weir_loader *loader)
{
    struct weir__entry *entry = &loader->entries[loader->loading % loader->params.slot_count];
    while (!loader->stopping && entry->state != WEIR__ENTRY_NONE)
        (void)weir__pattern_lock_wait(&loader->lock, &loader->to_load, WEIR_FOREVER);
    if (loader->stopping)
        return false;
    weir__pattern_lock_release(&loader->lock);
    const weir_status status = fill(loader, entry);
    if (status != WEIR_OK)
        entry->error = *weir_last_error();
    weir__pattern_lock_take(&loader->lock);
    if (status != WEIR_OK)
        entry->state = WEIR__ENTRY_ERROR;
    else if (entry->size == 0)
        entry->state = WEIR__ENTRY_END;
    else if (!place(loader, entry))
        return false;
    pthread_cond_broadcast(&loader->to_next);
    return entry->state != WEIR__ENTRY_END;
}

// The thread; `argument` is the loader. It ends when `stopping` is set, or at the end of the source.
static void run(void *argument)
{
    weir_loader *loader = argument;
    weir__pattern_lock_take(&loader->lock);
    while (load_next(loader))
        loader->loading++;
    weir__pattern_lock_release(&loader->lock);
}

#define SLOTS 3

// --- creation and destruction ---

static weir_status check_params(const struct weir_loader_params *params)
{
    if (!params->device || !params->source)
        return weir__pattern_refuse(params->label, "set it",
                                    "weir_loader_create: params->%s is NULL",
                                    params->device ? "source" : "device");
    if (params->batch_bytes == 0)
        return weir__pattern_refuse(params->label, "set it to the size of the largest batch",
                                    "weir_loader_create: batch_bytes is 0");
    if (params->slot_count == 1 || params->slot_count > WEIR_LOADER_SLOTS_MAX)
        return weir__pattern_refuse(params->label, "0 lets the library choose",
                                    "weir_loader_create: slot_count is %" PRIu32
                                    ", but must be 2 to %d: one in use, and one on its way",
                                    params->slot_count, WEIR_LOADER_SLOTS_MAX);
    return WEIR_OK;
}

static weir_status make_buffer(const weir_loader *loader, weir_placement placement,
                               struct weir__place place, weir_buffer **out_buffer)
{
    return weir_buffer_create_at(loader->params.device,
                                 WEIR_PARAMS(weir_buffer, .label = loader->label,
                                             .size = loader->params.batch_bytes,
                                             .placement = placement),
                                 out_buffer, place.file, place.line);
}

static weir_status make_slots(weir_loader *loader, struct weir__place place)
{
    uint32_t count = loader->params.slot_count;

    TAILQ_INIT(&loader->free);
    loader->entries = calloc(count, sizeof *loader->entries);
    loader->rooms = calloc(count, sizeof *loader->rooms);
    if (!loader->entries || !loader->rooms)
        return weir__pattern_fail(loader->label, WEIR_ERROR_OUT_OF_MEMORY, "use fewer slots",
                                  "no memory for %" PRIu32 " slots", count);
    for (uint32_t i = 0; i < count; i++) {
        TRY(make_buffer(loader, WEIR_PLACE_HOST, place, &loader->entries[i].pinned));
        TRY(make_buffer(loader, WEIR_PLACE_DEVICE, place, &loader->rooms[i].buffer));
        TAILQ_INSERT_TAIL(&loader->free, &loader->rooms[i], place);
    }
    return WEIR_OK;
}

// Frees a loader whose thread has ended or was never started; parts that were not created
// are skipped.
static void release_loader(weir_loader *loader)
{
    for (uint32_t i = 0; loader->entries && loader->rooms && i < loader->params.slot_count; i++) {
        weir_buffer_destroy(&loader->entries[i].pinned);
        weir_buffer_destroy(&loader->rooms[i].buffer);
    }
    weir_queue_destroy(&loader->queue);
    pthread_cond_destroy(&loader->to_next);
    pthread_cond_destroy(&loader->to_load);
    pthread_mutex_destroy(&loader->lock.mutex);
    free(loader->rooms);
    free(loader->entries);
    free(loader);
}

static weir_status fill_loader(weir_loader *loader, const struct weir_loader_params *given,
                               struct weir__place place)
{
    struct weir_loader_params *params = &loader->params;
    TRY(weir__pattern_params("weir_loader_create", "weir_loader_params", given, params,
                             sizeof *params));
    params->label = weir__pattern_keep(loader->label, params->label, "loader");
    TRY(check_params(params));
    if (params->slot_count == 0)
        params->slot_count = SLOTS;
    weir__pattern_lock_use(&loader->lock, params->device);
    TRY(weir__pattern_queue(params->device, params->priority, false, place, &loader->queue, "%s",
                            loader->label));
    TRY(make_slots(loader, place));
    const int error = weir_thread_start(&loader->thread, run, loader);
    if (error == 0)
        return WEIR_OK;
    return weir__pattern_fail(loader->label, WEIR_ERROR_SYSTEM, WEIR__THREADS_REMEDY,
                              "the loader's thread cannot be started: %s", strerror(error));
}

weir_status weir_loader_create_at(const struct weir_loader_params *params, weir_loader **out_loader,
                                  const char *file, int line)
{
    weir_loader *loader = *out_loader = calloc(1, sizeof *loader);
    if (!loader)
        return weir__pattern_placed(weir__pattern_no_memory(NULL, "a loader"), file, line);
    pthread_mutex_init(&loader->lock.mutex, NULL);
    pthread_cond_init(&loader->to_load, NULL);
    pthread_cond_init(&loader->to_next, NULL);
    const weir_status status = fill_loader(loader, params, (struct weir__place){file, line});
    if (status != WEIR_OK) {
        release_loader(loader);
        *out_loader = NULL;
    }
    return weir__pattern_placed(status, file, line);
}

static weir_status refuse_in_source(const weir_loader *loader, const char *call)
{
    return weir__pattern_refuse(loader->label, "call it from another thread",
                                "%s was called from the loader's source, which it would wait for",
                                call);
}

weir_status weir_loader_destroy(weir_loader **loader)
{
    if (!loader || !*loader)
        return WEIR_OK;
    weir_loader *gone = *loader;
    if (weir_thread_is_current(&gone->thread))
        return refuse_in_source(gone, "weir_loader_destroy");

    weir__pattern_lock_take(&gone->lock);
    gone->stopping = true;
    pthread_cond_signal(&gone->to_load);
    weir__pattern_lock_release(&gone->lock);
    weir_thread_join(&gone->thread);
    release_loader(gone);
    *loader = NULL;
    return WEIR_OK;
}

// --- consumers ---

// With the lock. Waits until the next entry can be delivered.
static weir_status wait_for_next(weir_loader *loader, struct weir__entry **out_entry)
{
    uint64_t since_ns = 0;

    for (;;) {
        struct weir__entry *entry = &loader->entries[loader->head % loader->params.slot_count];
        *out_entry = entry;
        if (entry->state > WEIR__ENTRY_FILLED)
            break;
        if (entry->state == WEIR__ENTRY_FILLED && loader->held == loader->params.slot_count)
            return weir__pattern_refuse(
                loader->label, "release a batch first, or create the loader with more slots",
                "weir_loader_next: all %" PRIu32 " slots are held", loader->params.slot_count);
        if (since_ns == 0)
            since_ns = weir_clock_now_ns();
        (void)weir__pattern_lock_wait(&loader->lock, &loader->to_next, WEIR_FOREVER);
    }
    if (since_ns > 0) {
        loader->figures.waits++;
        loader->figures.wait_ns += weir_clock_now_ns() - since_ns;
    }
    return WEIR_OK;
}

// With the lock. The entry may be filled again.
static void advance(weir_loader *loader, struct weir__entry *entry)
{
    entry->state = WEIR__ENTRY_NONE;
    loader->head++;
    pthread_cond_signal(&loader->to_load);
    // Other consumers wait for the entry that is next now.
    pthread_cond_broadcast(&loader->to_next);
}

static weir_status deliver_error(weir_loader *loader, struct weir__entry *entry)
{
    struct weir_error error = entry->error;
    loader->figures.failed++;
    advance(loader, entry);
    return weir_error_set(&error);
}

static weir_status deliver_batch(weir_loader *loader, struct weir__entry *entry, weir_queue *queue,
                                 struct weir_batch *out_batch)
{
    struct weir__room *room = &loader->rooms[entry->room];

    if (weir_event_query(entry->copied) < 0) {
        entry->error = *weir_last_error();
        free_room_at_once(loader, room);
        return deliver_error(loader, entry);
    }
    if (queue)
        TRY(weir_queue_wait(queue, entry->copied));

    *out_batch = (struct weir_batch){
        .buffer = room->buffer,
        .size = entry->size,
        .index = loader->head,
        .ready = entry->copied,
        .slot = entry->room,
    };
    room->held = true;
    room->index = loader->head;
    loader->held++;
    if (loader->figures.held_max < loader->held)
        loader->figures.held_max = loader->held;
    loader->figures.delivered++;
    loader->figures.bytes += entry->size;
    advance(loader, entry);
    return WEIR_OK;
}

weir_status weir_loader_next(weir_loader *loader, weir_queue *queue, struct weir_batch *out_batch)
{
    struct weir__entry *entry;
    memset(out_batch, 0, sizeof *out_batch);

    if (!loader)
        return weir__pattern_refuse_null("weir_loader_next", "loader");
    if (weir_thread_is_current(&loader->thread))
        return refuse_in_source(loader, "weir_loader_next");

    weir__pattern_lock_take(&loader->lock);
    weir_status status = wait_for_next(loader, &entry);
    if (status == WEIR_OK && entry->state == WEIR__ENTRY_ERROR)
        status = deliver_error(loader, entry);
    else if (status == WEIR_OK && entry->state == WEIR__ENTRY_BATCH)
        status = deliver_batch(loader, entry, queue, out_batch);
    weir__pattern_lock_release(&loader->lock);
    return status;
}

// After `event`, or what it becomes on `queue`.
static weir_status release(weir_loader *loader, struct weir_batch *batch, weir_queue *queue,
                           struct weir_event event)
{
    weir_status status = WEIR_OK;
    weir__pattern_lock_take(&loader->lock);
    struct weir__room *room = batch && batch->buffer && batch->slot < loader->params.slot_count
                                  ? &loader->rooms[batch->slot]
                                  : NULL;
    if (!room || !room->held || room->index != batch->index || room->buffer != batch->buffer)
        status =
            weir__pattern_refuse(loader->label, "release each batch of weir_loader_next() once",
                                 "weir_loader_release: the batch is not held");
    else if (queue)
        status = weir_queue_record(queue, &event);
    if (room && status == WEIR_OK) {
        room->held = false;
        room->released = event;
        TAILQ_INSERT_TAIL(&loader->free, room, place);
        loader->held--;
        memset(batch, 0, sizeof *batch);
        pthread_cond_signal(&loader->to_load);
    }
    weir__pattern_lock_release(&loader->lock);
    return status;
}

weir_status weir_loader_release(weir_loader *loader, struct weir_batch *batch, weir_queue *queue)
{
    if (!loader)
        return weir__pattern_refuse_null("weir_loader_release", "loader");
    return release(loader, batch, queue, (struct weir_event){0, 0});
}

weir_status weir_loader_release_after(weir_loader *loader, struct weir_batch *batch,
                                      struct weir_event event)
{
    if (!loader)
        return weir__pattern_refuse_null("weir_loader_release_after", "loader");
    if (event.sequence == 0)
        return weir__pattern_refuse(loader->label,
                                    "record first: weir_queue_record() returns the event",
                                    "weir_loader_release_after: the event is zero");
    return release(loader, batch, NULL, event);
}

void weir_loader_get_statistics_sized(weir_loader *loader,
                                      struct weir_loader_statistics *out_statistics, size_t size)
{
    struct weir_loader_statistics figures = {0};
    if (loader) {
        weir__pattern_lock_take(&loader->lock);
        figures = loader->figures;
        weir__pattern_lock_release(&loader->lock);
    }
    weir_sized_write(out_statistics, size, &figures, sizeof figures);
}
