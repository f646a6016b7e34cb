// The uses of operations, by their kinds, and the short ways of most of them. What a short way does
// is what check_use_bytes() would do.
#include "plugins/check/parts.h"

// The short way of most operations: a range, a short list, and no conflict. What judge() says to each
// use is the same; the use takes the place of the first one of the same range that goes.

static bool goes_quickly(const struct check_use *use, struct check_span span, weir_access access)
{
    return (check_writes(access) || !check_writes((weir_access)use->access)) &&
           span.begin <= use->shape.begin && use->shape.end <= span.end;
}

static bool is_span(const struct check_shape *shape, struct check_span span)
{
    return shape->begin == span.begin && shape->end == span.end && check_shape_is_range(shape);
}

// Returns false if there is a conflict. Without one, `*out_same` may still be NULL.
static inline bool sort_out_quickly(struct check *check, const struct check_user *user,
                                    struct check_history *history, struct check_span span,
                                    weir_access access, struct check_use **out_same)
{
    const struct check_actor *actor = user->actor;
    const uint64_t *floor = user->actors->floor;
    struct check_use *same = NULL;
    for (size_t i = 0; i < history->count;) {
        struct check_use *use = history->few[i];
        bool goes = floor[use->actor] >= use->count;
        if (!goes && use->shape.begin < span.end && span.begin < use->shape.end) {
            if (use->actor == actor->index || actor->counts[use->actor] >= use->count)
                goes = goes_quickly(use, span, access);
            else if (check_writes(access) || check_writes((weir_access)use->access))
                return false;
        }
        if (goes && !same && is_span(&use->shape, span))
            same = use;
        else if (goes) {
            check_history_remove_few(&check->uses, history, i);
            continue;
        }
        i++;
    }
    *out_same = same;
    return true;
}

// Whether that was all.
static bool use_quickly(struct check *check, const struct check_user *user,
                        struct check_buffer *buffer, uint64_t begin, uint64_t end,
                        weir_access access)
{
    struct check_history *history = &buffer->memory->history;
    if (!user->plain || buffer->open || history->count > CHECK_FEW ||
        check_gaps_near(&buffer->gaps, begin, end))
        return false;
    const struct check_span span = {buffer->base + begin, buffer->base + end};
    struct check_use *node;
    if (!sort_out_quickly(check, user, history, span, access, &node))
        return false;
    if (!node && history->count < CHECK_FEW) {
        const struct check_shape shape = check_shape_range(span.begin, end - begin);
        node = check_history_add(&check->uses, history, &shape);
    }
    if (!node)
        return false;
    check_use_set(node, check, user, access);
    return true;
}

// The shortest way: the only use was of the same range and by the same queue. As for all ranges, one
// row of it is as wide as the whole.
static inline bool use_again(struct check *check, const struct check_user *user,
                             const struct check_buffer *buffer, uint64_t begin, uint64_t size,
                             weir_access access)
{
    const struct check_history *history = &buffer->memory->history;
    if (!user->plain || buffer->open || buffer->gaps.count || history->count != 1)
        return false;
    struct check_use *use = history->few[0];
    begin += buffer->base;
    if (use->shape.begin != begin || use->shape.width != size || use->shape.end != begin + size ||
        use->actor != user->actor->index ||
        (!check_writes(access) && check_writes((weir_access)use->access)))
        return false;
    check_use_set_again(use, check, user, access);
    return true;
}

// The uses of operations.

static void use_plane(struct check *check, const struct check_user *user,
                      const struct weir_plane *plane, size_t width, size_t height,
                      weir_access access)
{
    const struct check_shape shape =
        check_shape_box(plane->offset, width, height, plane->pitch, 1, 0);
    check_use_bytes(check, user, check_buffer_of(check->link, plane->buffer), &shape, access);
}

static void use_volume(struct check *check, const struct check_user *user,
                       const struct weir_operation *operation, const struct weir_volume *volume,
                       weir_access access)
{
    const struct check_shape shape =
        check_shape_box(volume->offset, operation->u.copy_3d.width, operation->u.copy_3d.height,
                        volume->pitch, operation->u.copy_3d.depth, volume->slice_pitch);
    check_use_bytes(check, user, check_buffer_of(check->link, volume->buffer), &shape, access);
}

static void use_range_slowly(struct check *check, const struct check_user *user,
                             struct check_buffer *buffer, size_t offset, size_t size,
                             weir_access access)
{
    if (size == 0 || use_quickly(check, user, buffer, offset, offset + size, access))
        return;
    const struct check_shape shape = check_shape_range(offset, size);
    check_use_bytes(check, user, buffer, &shape, access);
}

// A size of 0 is that of no use in a history.
static inline void use_range(struct check *check, const struct check_user *user,
                             const weir_buffer *buffer, size_t offset, size_t size,
                             weir_access access)
{
    struct check_buffer *used = check_buffer_of(check->link, buffer);
    if (!use_again(check, user, used, offset, size, access))
        use_range_slowly(check, user, used, offset, size, access);
}

// What is read first, since it may not have been written.
static void use_arguments(struct check *check, const struct check_user *user,
                          const struct weir_argument *arguments, size_t count)
{
    for (int read = 1; read >= 0; read--)
        for (size_t i = 0; i < count; i++)
            if (arguments[i].kind == WEIR_PARAMETER_BUFFER &&
                ((arguments[i].access & WEIR_ACCESS_READ) != 0) == read)
                use_range(check, user, arguments[i].buffer, arguments[i].offset, arguments[i].size,
                          arguments[i].access);
}

// The memory's former uses stay if this queue comes after its release. Otherwise the pool knows that
// they have finished, and the program does not.
static void use_allocated(struct check *check, const struct check_user *user,
                          struct check_buffer *buffer, uint64_t size)
{
    const struct check_shape whole = check_shape_range(0, size);
    if (!check_is_after(user->actors, user->actor, buffer->freed_index, buffer->freed_count))
        check_buffer_clear(check, buffer);
    struct check_use *use = check_history_add(&check->uses, &buffer->memory->history, &whole);
    if (use)
        check_use_set(use, check, user, WEIR_ACCESS_WRITE);
    check_gaps_reset(&buffer->gaps, size);
}

static void use_pool(struct check *check, struct check_user *user,
                     const struct weir_operation *operation)
{
    struct check_buffer *buffer = check_buffer_of(check->link, operation->u.pool.buffer);
    const struct check_shape whole = check_shape_range(0, operation->u.pool.size);
    if (operation->kind == WEIR_OPERATION_POOL_ALLOCATE) {
        use_allocated(check, user, buffer, operation->u.pool.size);
        return;
    }
    user->passing = true;
    check_use_bytes(check, user, buffer, &whole, WEIR_ACCESS_WRITE);
    buffer->freed_index = user->actor->index;
    buffer->freed_count = user->count;
}

static void use_launch(struct check *check, struct check_user *user,
                       const struct weir_operation *operation)
{
    user->origin.kernel = weir_kernel_data(check->link, operation->u.launch.kernel);
    use_arguments(check, user, operation->u.launch.arguments, operation->u.launch.argument_count);
}

static void use_boxes(struct check *check, const struct check_user *user,
                      const struct weir_operation *operation)
{
    switch (operation->kind) {
    case WEIR_OPERATION_COPY_2D:
        use_plane(check, user, &operation->u.copy_2d.src, operation->u.copy_2d.width,
                  operation->u.copy_2d.height, WEIR_ACCESS_READ);
        use_plane(check, user, &operation->u.copy_2d.dst, operation->u.copy_2d.width,
                  operation->u.copy_2d.height, WEIR_ACCESS_WRITE);
        break;
    case WEIR_OPERATION_FILL_2D:
        use_plane(check, user, &operation->u.fill_2d.dst, operation->u.fill_2d.width,
                  operation->u.fill_2d.height, WEIR_ACCESS_WRITE);
        break;
    case WEIR_OPERATION_COPY_3D:
        use_volume(check, user, operation, &operation->u.copy_3d.src, WEIR_ACCESS_READ);
        use_volume(check, user, operation, &operation->u.copy_3d.dst, WEIR_ACCESS_WRITE);
        break;
    default: // uses nothing that is known
        break;
    }
}

// What is read first, since it may not have been written.
static void use_collective(struct check *check, const struct check_user *user,
                           const struct weir_operation *operation)
{
    const weir_access order[] = {WEIR_ACCESS_READ, WEIR_ACCESS_WRITE};
    struct weir_collective_range range;
    for (size_t turn = 0; turn < 2; turn++)
        for (uint32_t i = 0; weir_collective_range_at(operation, i, &range); i++)
            if (range.access == order[turn])
                use_range(check, user, range.buffer, range.offset, range.size, range.access);
}

static void use_nodes(struct check *check, struct check_user *user,
                      const struct weir_operation *operation)
{
    for (uint32_t i = 0; i < operation->u.graph.node_count; i++) {
        const struct weir_operation *node =
            weir_graph_node_at(operation->u.graph.nodes, i)->operation;
        if (node->flags & WEIR_OPERATION_EMPTY)
            continue; // it is disabled
        check_origin_set(&user->origin, check, node);
        check_use_operation(check, user, node);
    }
}

void check_use_operation(struct check *check, struct check_user *user,
                         const struct weir_operation *operation)
{
    switch (operation->kind) {
    case WEIR_OPERATION_COPY:
        use_range(check, user, operation->u.copy.src, operation->u.copy.src_offset,
                  operation->u.copy.size, WEIR_ACCESS_READ);
        use_range(check, user, operation->u.copy.dst, operation->u.copy.dst_offset,
                  operation->u.copy.size, WEIR_ACCESS_WRITE);
        break;
    case WEIR_OPERATION_FILL:
        use_range(check, user, operation->u.fill.dst, operation->u.fill.dst_offset,
                  operation->u.fill.size, WEIR_ACCESS_WRITE);
        break;
    case WEIR_OPERATION_LAUNCH:
        use_launch(check, user, operation);
        break;
    case WEIR_OPERATION_NATIVE:
        check->unseen_writes = true;
        use_arguments(check, user, operation->u.native.arguments,
                      operation->u.native.argument_count);
        break;
    case WEIR_OPERATION_POOL_ALLOCATE:
    case WEIR_OPERATION_POOL_FREE:
        use_pool(check, user, operation);
        break;
    case WEIR_OPERATION_COLLECTIVE:
        use_collective(check, user, operation);
        break;
    case WEIR_OPERATION_GRAPH:
        use_nodes(check, user, operation);
        break;
    default:
        use_boxes(check, user, operation);
        break;
    }
}
