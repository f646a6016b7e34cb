// See the header. A device's lists are guarded by its lock.
#include "core/object/object.h"

#include "core/object/buffer.h"
#include "core/object/device.h"
#include "core/support/memory.h"

uint64_t weir__object_next_id(void)
{
    static atomic_uint_fast64_t last;
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

// Of labels that are no names of a program's, for each chain: with what the table takes for each.
#define LABELS_KEPT ((size_t)8 << 20)

// A copy that lives as long as the chain; NULL if out of memory. A program may make objects without end: labels for which
// there is no room any more are "...".
static const char *keep_label(const struct weir__chain *chain, const char *label, bool is_named)
{
    static struct weir_lock lock = WEIR_LOCK_INITIALIZER(&weir__locks[WEIR__LOCK_LABELS]);
    if (!*label)
        return "";
    weir_lock_take(&lock);
    const char *kept =
        weir_names_keep_within(chain->labels, label, is_named ? SIZE_MAX : LABELS_KEPT);
    weir_lock_release(&lock);
    return kept || is_named ? kept : "...";
}

void *weir__member_allocate(weir_device *device, const struct weir__class *class, size_t size,
                            const char *label)
{
    const bool inside = device->chain->count <= WEIR__SLOTS_INSIDE;
    const bool kept = class->keeps_label || device->chain->count > 2; // there are plugins
    size_t slots = inside ? 0 : device->chain->count * sizeof(void *);
    char shown[WEIR__LABEL_SIZE];
    const char *text = label ? label : "";
    if (!class->is_named) {
        weir_text_escape(shown, sizeof shown, text, "");
        text = shown;
    }
    char *block = weir__allocate(WEIR__LINE_BYTES - 1 + size + slots + strlen(text) + 1);
    if (!block)
        return NULL;

    char *line = block + (-(uintptr_t)block & (WEIR__LINE_BYTES - 1));
    struct weir__member *member = (struct weir__member *)(void *)line;
    char *copy = line + size + slots;
    memcpy(copy, text, strlen(text) + 1);
    member->block = block;
    // A type begins with a member, so its size is a multiple of the line's.
    member->object.data = inside ? member->slots : (void **)(void *)(line + size);
    member->object.label = kept ? keep_label(device->chain, text, class->is_named) : copy;
    member->object.id = weir__object_next_id();
    member->device = device;
    member->class = class;
    if (member->object.label)
        return line;
    weir__release(block);
    return NULL;
}

void weir__member_free(struct weir__member *member)
{
    weir__release(member->frontier);
    if (!weir__debug_keep(member, member->block))
        weir__release(member->block);
}

void weir__member_enlist(struct weir__member *member)
{
    weir_device *device = member->device;
    weir_lock_take(&device->lock);
    TAILQ_INSERT_HEAD(&device->live, member, place);
    weir_lock_release(&device->lock);
    weir__debug_begin(member, member->class->name, member->object.label);
}

void weir__member_place(struct weir__member *member, const char *file, int line)
{
    weir_device *device = member->device;
    weir_lock_take(&device->lock);
    member->file = weir__file_name(file);
    member->line = line;
    weir_lock_release(&device->lock);
    weir__debug_place(member, file, line);
}

void weir__member_created(const struct weir__member *member, char text[WEIR__PLACE_SIZE])
{
    weir__place_text(text, " (created at ", member->file, member->line, ")");
}

weir_status weir__buffer_refuse_freed(const weir_buffer *buffer, const char *call, const char *file,
                                      int line)
{
    const struct weir__member *member = &buffer->member;
    return weir__fail_at(file, line, member->object.label, WEIR_ERROR_INVALID,
                         "free a buffer once, and keep no second pointer to it",
                         "%s: the buffer was freed to its pool already, at %s:%d", call,
                         member->file ? member->file : "?", member->line);
}

weir_status weir__buffer_refuse_range(const weir_buffer *buffer, const struct weir__role *role,
                                      size_t offset, size_t size, const char *file, int line)
{
    const char *label = buffer->member.object.label;
    char call[192], place[WEIR__PLACE_SIZE];
    snprintf(call, sizeof call, "%s%s%s", role->call, role->name ? ": " : "",
             role->name ? role->name : "");
    if (buffer->block && buffer->size == 0)
        return weir__buffer_refuse_freed(buffer, call, file, line);
    if (atomic_load(&buffer->abandoned))
        return weir__fail_at(file, line, label, WEIR_ERROR_INVALID,
                             "destroy a buffer after the last call that uses it",
                             "%s: the buffer has been destroyed; only the work that was submitted "
                             "before still uses its memory",
                             call);
    weir__member_created(&buffer->member, place);
    return weir__fail_at(file, line, label, WEIR_ERROR_INVALID,
                         "offset and size count bytes; give less, or create a larger buffer",
                         "%s: %zu bytes at offset %zu do not lie in a buffer of %zu bytes%s", call,
                         size, offset, buffer->size, place);
}

void weir__member_delist(struct weir__member *member)
{
    weir_device *device = member->device;
    weir_lock_take(&device->lock);
    TAILQ_REMOVE(&device->live, member, place);
    weir_lock_release(&device->lock);
    weir__debug_went(member);
}

const char *weir__opened_name(const weir_device *device)
{
    return device->object.label[0] ? device->object.label : device->info.name;
}

// What keeps a device or a runtime from being closed, as text.

void weir__left_add(struct weir__left *left, const char *format, ...)
{
    char text[320];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    left->count++;
    weir_long_text_add(&left->texts, "%s\n", text);
}

void weir__left_list(struct weir__left *left, const char *prefix, char list[WEIR__LEFT_LIST_SIZE])
{
    static const char all[] = "; the log (weir_log_set) has all";
    const size_t room = WEIR__LEFT_LIST_SIZE - sizeof ", 4294967295 more" - sizeof all;
    uint32_t told = 0;
    size_t used = 0, length = 0;
    char line[400];
    list[0] = '\0';
    for (const char *at = left->texts.text; at && *at; at += length + 1) {
        length = strcspn(at, "\n");
        if (used + length + sizeof ", " > room)
            break;
        weir_text_append(list, WEIR__LEFT_LIST_SIZE, &used, "%s%.*s", told++ > 0 ? ", " : "",
                         (int)length, at);
    }
    if (told < left->count) {
        weir_text_append(list, WEIR__LEFT_LIST_SIZE, &used, "%s%u more%s", told > 0 ? ", " : "",
                         (unsigned)(left->count - told), left->texts.failed ? "" : all);
        for (const char *at = left->texts.text; at && *at; at += length + 1) {
            length = strcspn(at, "\n");
            snprintf(line, sizeof line, "%s%.*s still exists", prefix, (int)length, at);
            weir__log(WEIR_LOG_ERROR, "core", line);
        }
    }
    free(left->texts.text);
}

// Peers: devices whose memory another may use.

// Asks the chain about two devices of one runtime.
static weir_status ask(weir_device *device, weir_device *other, bool *out_peers)
{
    *out_peers = false;
    return device->first->ops->device_peer(device->first, device, other, out_peers);
}

weir_status weir__peer_allow(weir_device *device, weir_device *other, bool *out_allowed)
{
    *out_allowed = false;
    if (device->runtime != other->runtime)
        return WEIR_OK;
    const weir_status status = ask(device, other, out_allowed);
    if (*out_allowed)
        atomic_store(&other->has_peers, true);
    return status;
}

bool weir__peer_can(weir_device *device, weir_device *other)
{
    bool peers = false;
    return device == other ||
           (device->runtime == other->runtime && ask(device, other, &peers) == WEIR_OK && peers);
}

bool weir_device_can_peer(weir_device *device, weir_device *other)
{
    return WEIR_IS_ALIVE(device) && WEIR_IS_ALIVE(other) && !weir__is_forked() &&
           weir__peer_can(device, other);
}

bool weir_device_can_reach(weir_device *device, weir_device *other)
{
    bool reaches = false;
    if (!weir_device_can_peer(device, other))
        return false;
    return device == other || (device->first->ops->device_reach(device->first, device, other, NULL,
                                                                &reaches) == WEIR_OK &&
                               reaches);
}
