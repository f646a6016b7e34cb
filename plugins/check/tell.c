// From two uses to a conflict, as the store of findings takes it.
#include <stdio.h>
#include <stdlib.h>

#include "plugins/check/parts.h"

static void keep_text(char *room, const char **text)
{
    if (!*text)
        return;
    snprintf(room, CHECK_LABEL_SIZE, "%s", *text);
    *text = room;
}

static void keep_queue(char *room, struct check_party *party)
{
    keep_text(room, party->caller ? &party->caller : &party->queue);
}

void check_keep_texts(struct check_conflict *conflict, char *first_queue, char *second_queue,
                      char *buffer)
{
    keep_queue(first_queue, &conflict->first);
    keep_queue(second_queue, &conflict->second);
    keep_text(buffer, &conflict->buffer);
}

void check_tell(struct check *check, const struct check_conflict *conflict)
{
    struct check_told *told = calloc(1, sizeof *told);
    if (!told)
        return;
    told->conflict = *conflict;
    check_keep_texts(&told->conflict, told->first_queue, told->second_queue, told->buffer);
    *check->told_end = told;
    check->told_end = &told->next;
}

static weir_status tell_store(struct check *check, struct check_told *told)
{
    weir_status status = WEIR_OK;
    while (told) {
        struct check_told *next = told->next;
        const weir_status added = check_findings_add(check->findings, &told->conflict);
        if (status == WEIR_OK)
            status = added;
        free(told);
        told = next;
    }
    return status;
}

weir_status check_unlock_and_tell(struct check *check)
{
    struct check_told *told = check->told;
    check->told = NULL;
    check->told_end = &check->told;
    weir_biased_lock_release(&check->lock);
    return tell_store(check, told);
}

// The parties.

static struct check_party party(const struct check_origin *origin, weir_access access,
                                const struct check_shape *shape, uint64_t base)
{
    return (struct check_party){
        .operation = origin->operation,
        .access = access,
        .kernel = origin->kernel,
        .file = origin->file,
        .line = origin->line,
        .offset = shape->begin > base ? shape->begin - base : 0,
        .size = shape->end - shape->begin,
        .region = origin->region,
        .region_number = origin->region_number,
    };
}

static void add_actor(struct check_party *party, const struct check_actor *actor, uint64_t count)
{
    if (!actor)
        return;
    if (party->operation ==
        0) { // in a host call, unless the actor is a thread, which has no number
        party->caller = actor->id ? actor->label : NULL;
        party->caller_id = actor->id;
        return;
    }
    party->queue = actor->label;
    party->queue_id = actor->id;
    party->sequence = count - actor->base;
}

static struct check_conflict begin(const struct check_user *user, const struct check_buffer *buffer,
                                   const struct check_shape *shape, weir_access access,
                                   uint64_t base)
{
    const struct weir_object *object = weir_buffer_object(buffer->object);
    struct check_conflict conflict = {
        .buffer = object->label,
        .buffer_id = object->id,
        .second = party(&user->origin, access, shape, base),
    };
    add_actor(&conflict.second, user->actor, user->count);
    return conflict;
}

static void add_bytes(struct check_conflict *conflict, struct check_span bytes, uint64_t base)
{
    conflict->offset = bytes.begin > base ? bytes.begin - base : 0;
    conflict->size = bytes.end - bytes.begin;
}

static weir_check_kind kind_of(const struct check_user *user, weir_access access,
                               const struct check_use *first)
{
    if (user->origin.operation == WEIR_OPERATION_POOL_FREE ||
        first->origin.operation == WEIR_OPERATION_POOL_FREE)
        return WEIR_CHECK_AFTER_FREE;
    if (check_is_host(&user->origin) && !check_is_host(&first->origin))
        return access & WEIR_ACCESS_WRITE ? WEIR_CHECK_HOST_WRITE : WEIR_CHECK_HOST_READ;
    if (!(first->access & WEIR_ACCESS_WRITE))
        return WEIR_CHECK_WRITE_AFTER_READ;
    return access & WEIR_ACCESS_READ ? WEIR_CHECK_READ_AFTER_WRITE : WEIR_CHECK_WRITE_AFTER_WRITE;
}

struct check_conflict check_conflict_of(const struct check_user *user,
                                        const struct check_buffer *buffer,
                                        const struct check_use *first,
                                        const struct check_shape *shape, weir_access access)
{
    struct check_conflict conflict = begin(user, buffer, shape, access, buffer->base);
    conflict.kind = kind_of(user, access, first);
    conflict.first = party(&first->origin, (weir_access)first->access, &first->shape, buffer->base);
    add_actor(&conflict.first, user->actors->all[first->actor], first->count);
    add_bytes(&conflict, check_shapes_common(&first->shape, shape), buffer->base);
    return conflict;
}

void check_tell_pair(struct check *check, const struct check_user *user,
                     const struct check_buffer *buffer, const struct check_use *first,
                     const struct check_shape *shape, weir_access access)
{
    const struct check_conflict conflict = check_conflict_of(user, buffer, first, shape, access);
    check_tell(check, &conflict);
}

void check_tell_open(struct check *check, const struct check_user *user,
                     const struct check_buffer *buffer, const struct check_open *first,
                     const struct check_shape *shape, weir_access access)
{
    struct check_conflict conflict = begin(user, buffer, shape, access, 0);
    conflict.kind = WEIR_CHECK_OPEN_ACCESS;
    const struct check_shape opened = check_shape_range(first->begin, first->size);
    conflict.first = party(&first->origin, first->access, &opened, 0);
    add_bytes(&conflict, check_shapes_common(&opened, shape), 0);
    check_tell(check, &conflict);
}

void check_tell_unwritten(struct check *check, const struct check_user *user,
                          const struct check_buffer *buffer, const struct check_shape *shape,
                          weir_access access, struct check_span bytes)
{
    struct check_conflict conflict = begin(user, buffer, shape, access, 0);
    conflict.kind = WEIR_CHECK_UNWRITTEN;
    add_bytes(&conflict, bytes, 0);
    check_tell(check, &conflict);
}
