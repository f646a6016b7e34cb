// See the header. A device's lists are guarded by its lock.
#include "core/object/object.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "core/object/buffer.h"
#include "core/object/device.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/locks.h"
#include "core/support/memory.h"

uint64_t weir__object_next_id(void)
{
    static atomic_uint_fast64_t last;
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

void *weir__member_allocate(weir_device *device, const struct weir__class *class, size_t size,
                            const char *label)
{
    const bool inside = device->chain->count <= WEIR__SLOTS_INSIDE;
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
    member->object.label = copy;
    member->object.id = weir__object_next_id();
    member->device = device;
    member->class = class;
    return line;
}

void weir__member_free(struct weir__member *member)
{
    weir__release(member->frontier);
    if (!weir__debug_keep(member, member->block))
        weir__release(member->block);
}

void weir__member_insert(struct weir__member **list, struct weir__member *member)
{
    member->previous = NULL;
    member->next = *list;
    if (*list)
        (*list)->previous = member;
    *list = member;
}

void weir__member_take(struct weir__member **list, struct weir__member *member)
{
    if (member->previous)
        member->previous->next = member->next;
    else
        *list = member->next;
    if (member->next)
        member->next->previous = member->previous;
}

void weir__member_enlist(struct weir__member *member)
{
    weir_device *device = member->device;
    weir_lock_take(&device->lock);
    weir__member_insert(&device->live, member);
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

// The end of a path tells one file from another.
void weir__member_created(const struct weir__member *member, char text[WEIR__PLACE_SIZE])
{
    const size_t room = WEIR__PLACE_SIZE - sizeof " (created at …:2147483647)";
    const size_t length = member->file ? strlen(member->file) : 0;
    text[0] = '\0';
    if (length > 0)
        snprintf(text, WEIR__PLACE_SIZE, " (created at %s%s:%d)", length > room ? "…" : "",
                 member->file + (length > room ? length - room : 0), member->line);
}

bool weir__buffer_holds(const weir_buffer *buffer, size_t offset, size_t size)
{
    return offset <= buffer->size && size <= buffer->size - offset;
}

weir_status weir__buffer_check_range(const weir_buffer *buffer, const struct weir__role *role,
                                     size_t offset, size_t size, const char *file, int line)
{
    const char *label = buffer->member.object.label;
    if (weir__buffer_holds(buffer, offset, size))
        return WEIR_OK;
    char call[192], place[WEIR__PLACE_SIZE];
    snprintf(call, sizeof call, "%s%s%s", role->call, role->name ? ": " : "",
             role->name ? role->name : "");
    if (buffer->lender && buffer->size == 0)
        return buffer->lender->refuse_freed(buffer, call, file, line);
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
    weir__member_take(&device->live, member);
    weir_lock_release(&device->lock);
    weir__debug_went(member);
}

const char *weir__opened_name(const weir_device *device)
{
    return device->object.label[0] ? device->object.label : device->info.name;
}

// What keeps a device or a runtime from being closed, as text.

// The owner's list is walked once for so many objects.
#define LEFT_MANY 4096
#define LEFT_FEW 4 // if out of memory

// A part of the texts.
struct left {
    weir__left_function texts_of;
    void *owner;
    struct weir__left_text few[LEFT_FEW];
    struct weir__left_text *texts; // `few` or more
    uint32_t most;
    uint32_t begin;
    uint32_t end;
};

// NULL: there are no more.
static const char *left_at(struct left *left, uint32_t index)
{
    if (index < left->begin || index >= left->end) {
        left->begin = index;
        left->end = index + left->texts_of(left->owner, index, left->most, left->texts);
    }
    return index < left->end ? left->texts[index - left->begin].text : NULL;
}

static void log_left(struct left *left, const char *prefix)
{
    char line[400];
    const char *text;
    for (uint32_t i = 0; (text = left_at(left, i)); i++) {
        snprintf(line, sizeof line, "%s%s still exists", prefix, text);
        weir__log(WEIR_LOG_ERROR, "core", line);
    }
}

// Returns how many the list has no room for.
static uint32_t fill_list(struct left *left, uint32_t first, char list[WEIR__LEFT_LIST_SIZE],
                          uint32_t *out_count)
{
    static const size_t end_size =
        64; // room for ", 4294967295 more; the log (weir_log_set) has all"
    uint32_t count = 0, untold = 0;
    size_t used = 0;
    list[0] = '\0';
    for (const char *text; (text = left_at(left, count)); count++) {
        const bool fits = strlen(text) + sizeof ", " <= WEIR__LEFT_LIST_SIZE - used - end_size;
        if (count >= first && (untold > 0 || !fits))
            untold++;
        else if (count >= first)
            weir_text_append(list, WEIR__LEFT_LIST_SIZE, &used, ", %s", text);
    }
    if (untold > 0)
        weir_text_append(list, WEIR__LEFT_LIST_SIZE, &used,
                         ", %u more; the log (weir_log_set) has all", (unsigned)untold);
    *out_count = count;
    return untold;
}

uint32_t weir__left_list(weir__left_function texts_of, void *owner, uint32_t first,
                         const char *prefix, char list[WEIR__LEFT_LIST_SIZE])
{
    struct left left = {.texts_of = texts_of, .owner = owner};
    struct weir__left_text *many = weir__allocate(LEFT_MANY * sizeof *many);
    uint32_t count;
    left.texts = many ? many : left.few;
    left.most = many ? LEFT_MANY : LEFT_FEW;
    if (fill_list(&left, first, list, &count) > 0)
        log_left(&left, prefix);
    weir__release(many);
    return count;
}
