// Through the host: the link's queue copies down into a room's memory of the first device, a host call
// on the caller's queue moves that to memory of the second, and the caller's queue copies it up. What
// the caller's queue has waited for is passed on to the link's queue by an event; so is the end of the
// room's last use, which may have been on another queue.
#include "patterns/device_link.h"

#include "patterns/shared.h"

enum {
    ROOMS = 2,
    CALLS = 256 // host calls that may be under way
};

struct room {
    weir_buffer *down; // of the first device
    weir_buffer *up;   // of the second
};

struct call {
    const struct room *room;
    size_t size;
    struct weir_event end; // of its copy; zeroed: there was none
};

struct weir_device_link {
    char label[WEIR__PATTERN_LABEL_SIZE];
    weir_device *to;
    size_t bytes;
    weir_queue *queue; // of the first device; NULL: the copies are direct
    struct room rooms[ROOMS];
    struct call calls[CALLS]; // copy n has call n % CALLS and room n % ROOMS
    uint64_t copies;
};

static weir_status make_buffer(weir_device_link *link, weir_device *device,
                               struct weir__place place, weir_buffer **out_buffer)
{
    return weir_buffer_create_at(device,
                                 WEIR_PARAMS(weir_buffer, .label = link->label, .size = link->bytes,
                                             .placement = WEIR_PLACE_HOST),
                                 out_buffer, place.file, place.line);
}

static weir_status make_rooms(weir_device_link *link, weir_device *from, struct weir__place place)
{
    TRY(weir__pattern_queue(from, 0, false, place, &link->queue, "%s", link->label));
    for (int i = 0; i < ROOMS; i++) {
        TRY(make_buffer(link, from, place, &link->rooms[i].down));
        TRY(make_buffer(link, link->to, place, &link->rooms[i].up));
    }
    return WEIR_OK;
}

static weir_status check_params(const struct weir_device_link_params *params)
{
    if (!params->from || !params->to)
        return weir__pattern_refuse(params->label, "set it",
                                    "weir_device_link_create: params->%s is NULL",
                                    params->from ? "to" : "from");
    if (weir_device_runtime(params->from) != weir_device_runtime(params->to))
        return weir__pattern_refuse(params->label, "open both from one runtime",
                                    "weir_device_link_create: the devices belong to two runtimes");
    if (params->bytes == 0)
        return weir__pattern_refuse(params->label, "give the size of the largest copy",
                                    "weir_device_link_create: params->bytes is 0");
    return WEIR_OK;
}

static weir_status create(const struct weir_device_link_params *params, weir_device_link **out_link,
                          struct weir__place place)
{
    struct weir_device_link_params known;
    TRY(weir__pattern_params("weir_device_link_create", "weir_device_link_params", params, &known,
                             sizeof known));
    known.label = weir__pattern_label(known.label, "link");
    TRY(check_params(&known));
    weir_device_link *link = *out_link = calloc(1, sizeof *link);
    if (!link)
        return weir__pattern_no_memory(known.label, "a link");
    weir__pattern_keep(link->label, known.label, NULL);
    link->to = known.to;
    link->bytes = known.bytes;
    if (known.from == known.to || weir_device_can_peer(known.to, known.from))
        return WEIR_OK;
    return make_rooms(link, known.from, place);
}

weir_status weir_device_link_create_at(const struct weir_device_link_params *params,
                                       weir_device_link **out_link, const char *file, int line)
{
    *out_link = NULL;
    const weir_status status = create(params, out_link, (struct weir__place){file, line});
    if (status < 0)
        weir_device_link_destroy(out_link);
    return weir__pattern_placed(status, file, line);
}

void weir_device_link_destroy(weir_device_link **link)
{
    if (!link || !*link)
        return;
    weir_device_link *ending = *link;
    // Host calls read the link.
    for (int i = 0; i < CALLS; i++)
        if (ending->calls[i].end.sequence != 0)
            WEIR_IGNORE(weir_event_sync(ending->calls[i].end, WEIR_FOREVER));
    for (int i = 0; i < ROOMS; i++) {
        weir_buffer_destroy(&ending->rooms[i].up);
        weir_buffer_destroy(&ending->rooms[i].down);
    }
    weir_queue_destroy(&ending->queue);
    free(ending);
    *link = NULL;
}

bool weir_device_link_is_direct(const weir_device_link *link)
{
    return link && !link->queue;
}

// --- through the host ---

static weir_status move(void *user)
{
    const struct call *call = user;
    const struct room *room = call->room;
    void *from, *to;
    TRY(weir_host_begin(room->down, 0, call->size, WEIR_ACCESS_READ, &from));
    weir_status status = weir_host_begin(room->up, 0, call->size, WEIR_ACCESS_WRITE, &to);
    if (status == WEIR_OK) {
        memcpy(to, from, call->size);
        status = weir_host_end(room->up, 0, call->size, WEIR_ACCESS_WRITE);
    }
    WEIR_IGNORE(weir_host_end(room->down, 0, call->size, WEIR_ACCESS_READ));
    return status;
}

// Lets the link's queue wait for the room's last copy. If that failed, the failure has reached the
// link's queue or will; the caller recovers its own queues, and the link its.
static weir_status await_room(weir_device_link *link)
{
    for (uint64_t back = 1; back <= ROOMS && back <= link->copies; back++) {
        struct call *before = &link->calls[(link->copies - back) % CALLS];
        if (before->end.sequence == 0 || weir_event_error(before->end) >= 0)
            continue;
        before->end = (struct weir_event){0};
        WEIR_IGNORE(weir_queue_sync(link->queue, WEIR_FOREVER));
        TRY(weir_queue_recover(link->queue));
    }
    if (link->copies < ROOMS)
        return WEIR_OK;
    const struct weir_event end = link->calls[(link->copies - ROOMS) % CALLS].end;
    return end.sequence != 0 ? weir_queue_wait(link->queue, end) : WEIR_OK;
}

// The link's queue may have failed by a copy that is none of the latest. What is under way there ends
// before it goes on.
static weir_status begin_down(weir_device_link *link, struct weir_event now)
{
    weir_status status = await_room(link);
    if (status == WEIR_OK && weir_queue_wait(link->queue, now) == WEIR_OK)
        return WEIR_OK;
    WEIR_IGNORE(weir_queue_sync(link->queue, WEIR_FOREVER));
    status = weir_queue_recover(link->queue);
    if (status == WEIR_OK)
        status = await_room(link);
    return status == WEIR_OK ? weir_queue_wait(link->queue, now) : status;
}

static weir_status copy_down(weir_device_link *link, const struct call *call, weir_queue *queue,
                             struct weir_event now, weir_buffer *src, size_t src_offset)
{
    struct weir_event down;
    TRY(begin_down(link, now));
    TRY(weir_queue_copy(link->queue, call->room->down, 0, src, src_offset, call->size));
    TRY(weir_queue_record(link->queue, &down));
    TRY(weir_queue_flush(link->queue));
    return weir_queue_wait(queue, down);
}

static weir_status copy_through_host(weir_device_link *link, weir_queue *queue, weir_buffer *dst,
                                     size_t dst_offset, weir_buffer *src, size_t src_offset,
                                     size_t size)
{
    struct call *call = &link->calls[link->copies % CALLS];
    struct weir_event now;
    // A queue that has failed takes nothing, and the rooms stay with their latest copies.
    TRY(weir_queue_record(queue, &now));
    if (call->end.sequence != 0)
        WEIR_IGNORE(weir_event_sync(call->end, WEIR_FOREVER));
    *call = (struct call){.room = &link->rooms[link->copies % ROOMS], .size = size};
    weir_status status = copy_down(link, call, queue, now, src, src_offset);
    if (status == WEIR_OK)
        status = weir_queue_host_call(queue, move, call);
    if (status == WEIR_OK)
        status = weir_queue_copy(queue, dst, dst_offset, call->room->up, 0, size);
    // Also after a failure: part of it may be under way. A queue that takes no record has failed at the
    // host call, which is over then, or before it, and it never runs.
    struct weir_event end;
    const struct weir_error error = *weir_last_error();
    if (weir_queue_record(queue, &end) == WEIR_OK)
        call->end = end;
    link->copies++;
    return status < 0 ? weir_error_set(&error) : status;
}

weir_status weir_device_link_copy(weir_device_link *link, weir_queue *queue, weir_buffer *dst,
                                  size_t dst_offset, weir_buffer *src, size_t src_offset,
                                  size_t size)
{
    if (!link || !queue)
        return weir__pattern_refuse_null("weir_device_link_copy", link ? "queue" : "link");
    if (weir_queue_device(queue) != link->to)
        return weir__pattern_refuse(
            link->label, "use a queue of the device that the link leads to",
            "weir_device_link_copy: queue '%s' belongs to '%s', and the link leads to '%s'",
            WEIR__PATTERN_SHOWN(weir_queue_label(queue)),
            weir_device_get_info(weir_queue_device(queue))->name,
            weir_device_get_info(link->to)->name);
    if (size > link->bytes)
        return weir__pattern_refuse(
            link->label, "raise `bytes` of its params",
            "weir_device_link_copy: %zu bytes, and the link is for at most %zu", size, link->bytes);
    if (!link->queue)
        return weir_queue_copy(queue, dst, dst_offset, src, src_offset, size);
    if (size == 0)
        return WEIR_OK;
    return copy_through_host(link, queue, dst, dst_offset, src, src_offset, size);
}
