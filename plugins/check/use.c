// One use of some bytes. The uses that it comes after and that it replaces are dropped; most
// operations take over the node that an earlier one of the same bytes leaves.
#include "plugins/check/parts.h"

// From two uses to a conflict, as the store of findings takes it: the parties.

static bool is_host(const struct check_origin *origin)
{
    return origin->operation == 0;
}

static struct weir_check_use party(const struct check_origin *origin, weir_access access,
                                   const struct check_shape *shape, uint64_t base)
{
    return (struct weir_check_use){
        .operation = check_operation_name(origin->operation),
        .access = (weir_access)(access & ~CHECK_ASSUMED),
        .assumed = access & CHECK_ASSUMED,
        .kernel = origin->kernel,
        .file = origin->file,
        .line = origin->line,
        .offset = shape->begin > base ? shape->begin - base : 0,
        .size = shape->end - shape->begin,
        .region = origin->region,
        .region_number = origin->region_number,
    };
}

// A host access has the queue of the host call that it is in, and a thread has neither label nor number.
static void add_actor(struct weir_check_use *use, const struct check_origin *origin,
                      const struct check_actor *actor, uint64_t count)
{
    if (!actor)
        return;
    use->queue = actor->label;
    use->queue_id = actor->id;
    use->sequence = is_host(origin) ? 0 : count - actor->base;
}

struct check_conflict check_conflict_by(const struct check_user *user, weir_check_kind kind,
                                        const struct check_buffer *buffer,
                                        const struct check_shape *shape, weir_access access,
                                        uint64_t base)
{
    const struct weir_object *object = weir_buffer_object(buffer->object);
    struct check_conflict conflict = {
        .finding = {.kind = kind,
                    .buffer = object->label,
                    .buffer_id = object->id,
                    .second = party(&user->origin, access, shape, base)},
    };
    add_actor(&conflict.finding.second, &user->origin, user->actor, user->count);
    return conflict;
}

static void add_bytes(struct check_conflict *conflict, struct check_span bytes, uint64_t base)
{
    conflict->finding.offset = bytes.begin > base ? bytes.begin - base : 0;
    conflict->finding.size = bytes.end - bytes.begin;
}

static weir_check_kind kind_of(const struct check_user *user, weir_access access,
                               const struct check_use *first)
{
    if (user->origin.operation == WEIR_OPERATION_POOL_FREE ||
        first->origin.operation == WEIR_OPERATION_POOL_FREE)
        return WEIR_CHECK_AFTER_FREE;
    if (is_host(&user->origin) && !is_host(&first->origin))
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
    struct check_conflict conflict =
        check_conflict_by(user, kind_of(user, access, first), buffer, shape, access, buffer->base);
    conflict.finding.first =
        party(&first->origin, (weir_access)first->access, &first->shape, buffer->base);
    add_actor(&conflict.finding.first, &first->origin, user->actors->all[first->actor],
              first->count);
    add_bytes(&conflict, check_shapes_common(&first->shape, shape), buffer->base);
    return conflict;
}

// Whether some thread comes after `count` of the actor with that index. Threads are actors with `strict` only.
static bool a_thread_knows(const struct check_actors *actors, uint32_t index, uint64_t count)
{
    for (uint32_t i = 0; i < actors->count; i++) {
        const struct check_actor *actor = actors->all[i];
        if (actor && actor->id == 0 && (i == index || actor->counts[index] >= count))
            return true;
    }
    return false;
}

enum {
    HISTORY_LEAST = 1024, // uses from which a history is looked through now and then
    HISTORY_MOST = 1 << 16,
    HINT_USES = 4, // up to so many are all looked at, since one of other bytes may be a hint
};

static bool is_ordered(const struct check_user *user, const struct check_use *use)
{
    if (!user->late)
        return check_is_after(user->actors, user->actor, use->actor, use->count);
    // The clock of an earlier use may contain the user, which runs only now.
    const struct check_actor *other = user->actors->all[use->actor];
    return check_is_after(user->actors, user->thread, use->actor, use->count) ||
           use->actor == user->actor->index || user->counts[use->actor] >= use->count ||
           (other && check_actor_clock_at(other, use->count)[user->actor->index] >= user->count);
}

// The user goes on as if the wait that is missing were there.
static void repair(struct check *check, const struct check_user *user, const struct check_use *use)
{
    struct check_actor *other = user->actors->all[use->actor];
    if (!other)
        return;
    if (check->needless && !user->probe)
        check_hint_need_all(check, (struct check_queue *)(void *)other);
    check->unseen_syncs = true; // the order that is taken for granted may be the sync's
    if (!user->actor)
        check_clock_join(user->actors, user->actors->floor, other, use->count);
    else
        check_actor_learn(user->actors, user->actor, user->late ? user->actor->last : user->count,
                          other, use->count);
}

// A native queue that the program has may be ordered in ways that are not seen, with the host and
// with another one that it has.
static bool may_be_ordered_outside(const struct check_user *user, const struct check_use *use)
{
    const struct check_actor *other = user->actors->all[use->actor];
    return other && other->exposed && (is_host(&user->origin) || user->actor->exposed);
}

// The latest use that the user does not come after. An allocation counts only without any other,
// which then is of the memory's former life.
static struct check_use *latest_conflict(const struct check_user *user, struct check_use **uses,
                                         size_t count)
{
    struct check_use *latest = NULL;
    for (size_t i = 0; i < count; i++) {
        struct check_use *use = uses[i];
        const bool lesser = use->origin.operation == WEIR_OPERATION_POOL_ALLOCATE;
        if (!is_ordered(user, use) && (!latest || (!lesser && use->serial > latest->serial) ||
                                       latest->origin.operation == WEIR_OPERATION_POOL_ALLOCATE))
            latest = use;
    }
    return latest;
}

// The conflicts with the latest uses come first, since a wait for those often contains the others.
static void tell_conflicts(struct check *check, const struct check_user *user,
                           const struct check_buffer *buffer, const struct check_shape *shape,
                           weir_access access, size_t count)
{
    struct check_use **uses = check->found.uses;
    struct check_use *use;
    for (size_t told = 0; (use = latest_conflict(user, uses, count)); told++) {
        if ((told == 0 || use->origin.operation != WEIR_OPERATION_POOL_ALLOCATE) &&
            !may_be_ordered_outside(user, use)) {
            struct check_conflict conflict = check_conflict_of(user, buffer, use, shape, access);
            conflict.threads =
                !user->probe && a_thread_knows(&check->actors, use->actor, use->count);
            check_tell(check, &conflict);
        }
        repair(check, user, use);
        size_t i = 0;
        while (uses[i] != use)
            i++;
        uses[i] = uses[--count];
    }
}

// Looks through a history that has grown.
static void sweep(struct check *check, const struct check_actors *actors,
                  struct check_history *history)
{
    check_history_find(history, (struct check_span){0, UINT64_MAX}, &check->found);
    for (size_t i = 0; i < check->found.count; i++) {
        struct check_use *use = check->found.uses[i];
        if (!check_is_after(actors, NULL, use->actor, use->count))
            continue;
        if (check->needless && actors == &check->actors) {
            check_hint_forget_use(check, use->actor, use->count);
            if (!check_sync_need(check, use->actor, use->count))
                check->unseen_syncs = true;
        }
        check_history_remove(history, use);
    }
    if (history->count > HISTORY_MOST) {
        check_history_clear(history);
        check->unseen_uses = true;
    }
    history->limit = 2 * history->count;
}

void check_use_set(struct check_use *node, struct check *check, const struct check_user *user,
                   weir_access access)
{
    node->actor = user->actor->index;
    node->count = user->count;
    node->access = (uint32_t)access;
    node->serial = ++check->serial;
    node->origin = user->origin;
}

// A node for the use that was judged, all but its shape not set.
static struct check_use *add(struct check *check, const struct check_user *user,
                             struct check_history *history, const struct check_shape *shape)
{
    const size_t limit = history->limit > HISTORY_LEAST ? history->limit : HISTORY_LEAST;
    if (history->count >= limit)
        sweep(check, user->actors, history);
    return check_history_add(history, shape);
}

// Waits that no use needs are looked for.
static bool needs_hints(const struct check *check, const struct check_user *user)
{
    return check->needless && !user->probe;
}

// What becomes of an earlier use.
enum fate {
    STAYS,
    GOES,
    CONFLICTS
};

static enum fate judge(const struct check *check, const struct check_user *user,
                       const struct check_shape *shape, weir_access access,
                       const struct check_use *use)
{
    if (!needs_hints(check, user) && check_is_after(user->actors, NULL, use->actor, use->count))
        return GOES;
    if (!check_shapes_meet(&use->shape, shape))
        return STAYS;
    if (!is_ordered(user, use)) {
        const struct check_actor *other = user->actors->all[use->actor];
        const bool was_refused = other && other->refused == use->count;
        return !check_writes(access) && !check_writes((weir_access)use->access) ? STAYS
               : was_refused                                                    ? GOES
                                                                                : CONFLICTS;
    }
    return !user->passing && !user->late &&
                   (check_writes(access) || !check_writes((weir_access)use->access)) &&
                   check_shape_covers(shape, &use->shape)
               ? GOES
               : STAYS;
}

static bool is_same_range(const struct check_shape *a, const struct check_shape *b)
{
    return a->begin == b->begin && a->width == b->width && check_shape_is_range(a) &&
           check_shape_is_range(b);
}

// Drops the uses that are of no use any more, and leaves those that conflict at the beginning of
// the list. One that has the same extent is not dropped but returned.
static struct check_use *sort_out(struct check *check, const struct check_user *user,
                                  const struct check_buffer *buffer, struct check_history *history,
                                  const struct check_shape *shape, weir_access access,
                                  size_t *out_conflicts)
{
    struct check_use *same = NULL;
    *out_conflicts = 0;
    for (size_t i = 0; i < check->found.count; i++) {
        struct check_use *use = check->found.uses[i];
        const enum fate fate = judge(check, user, shape, access, use);
        if (needs_hints(check, user))
            check_hint_use(check, user, buffer, shape, access, use, fate == GOES);
        if (fate == CONFLICTS)
            check->found.uses[(*out_conflicts)++] = use;
        else if (fate == GOES && !same && !user->passing && is_same_range(&use->shape, shape))
            same = use;
        else if (fate == GOES)
            check_history_remove(history, use);
    }
    return same;
}

// What sorting out would say of most uses: the only one before was of the same bytes and goes.
static bool takes_over(const struct check *check, const struct check_user *user,
                       const struct check_history *history, const struct check_shape *shape,
                       weir_access access)
{
    const struct check_use *only = history->root;
    return history->count == 1 && !user->passing && !user->late && !needs_hints(check, user) &&
           is_same_range(&only->shape, shape) &&
           check_is_after(user->actors, user->actor, only->actor, only->count) &&
           (check_writes(access) || !check_writes((weir_access)only->access));
}

static void use_memory(struct check *check, const struct check_user *user,
                       struct check_buffer *buffer, const struct check_shape *shape,
                       weir_access access)
{
    struct check_history *history = user->probe ? &buffer->memory->probe : &buffer->memory->history;
    size_t conflicts;
    if (takes_over(check, user, history, shape, access)) {
        check_use_set(history->root, check, user, access);
        return;
    }
    if (user->probe && !buffer->memory->probed) {
        buffer->memory->probed = true;
        buffer->memory->next_probed = check->probed;
        check->probed = buffer->memory;
    }
    const bool all = needs_hints(check, user) && history->count <= HINT_USES;
    const struct check_span near = {all ? 0 : shape->begin, all ? UINT64_MAX : shape->end};
    check_history_find(history, near, &check->found);
    struct check_use *same = sort_out(check, user, buffer, history, shape, access, &conflicts);
    if (conflicts)
        tell_conflicts(check, user, buffer, shape, access, conflicts);
    if (user->passing)
        return;
    if (!same)
        same = add(check, user, history, shape);
    if (same)
        check_use_set(same, check, user, access);
}

// Gaps: bytes that nothing has written, kept as uses of no one.

enum {
    GAPS_MOST = 4096 // with more of them, or out of memory, all bytes count as written
};

static void add_gap(struct check_history *gaps, uint64_t begin, uint64_t end)
{
    const struct check_shape shape = check_shape_range(begin, end - begin);
    if (begin < end)
        check_history_add(gaps, &shape);
}

void check_gaps_reset(struct check_buffer *buffer, uint64_t size)
{
    check_history_clear(&buffer->gaps);
    add_gap(&buffer->gaps, 0, size);
}

static void fill_span(struct check *check, struct check_history *gaps, struct check_span span)
{
    check_history_find(gaps, span, &check->found);
    for (size_t i = 0; i < check->found.count; i++) {
        struct check_use *gap = check->found.uses[i];
        const struct check_shape whole = gap->shape;
        check_history_remove(gaps, gap);
        add_gap(gaps, whole.begin, span.begin);
        add_gap(gaps, span.end, whole.end);
    }
    if (gaps->count > GAPS_MOST || check->found.lacking)
        check_history_clear(gaps);
}

// False: none of the bytes from `begin` to before `end` is in a gap.
static bool may_meet(const struct check_history *gaps, uint64_t begin, uint64_t end)
{
    const struct check_use *root = gaps->root;
    return root && root->reach > begin && (root->left || root->shape.begin < end);
}

// The first bytes of the shape that nothing has written; empty if there are none.
static struct check_span find_gap(struct check *check, const struct check_history *gaps,
                                  const struct check_shape *shape)
{
    struct check_span found = {0, 0};
    check_history_find(gaps, (struct check_span){shape->begin, shape->end}, &check->found);
    for (size_t i = 0; i < check->found.count && found.begin == found.end; i++) {
        const struct check_shape *gap = &check->found.uses[i]->shape;
        found = check_shape_meet_span(shape, (struct check_span){gap->begin, gap->end});
    }
    return found;
}

static void use_open(struct check *check, const struct check_user *user,
                     const struct check_buffer *buffer, const struct check_shape *shape,
                     weir_access access)
{
    for (const struct check_open *open = buffer->open; open; open = open->next) {
        const struct check_shape opened = check_shape_range(open->begin, open->size);
        if (!(check_writes(access) || check_writes(open->access)) ||
            !check_shapes_meet(&opened, shape))
            continue;
        struct check_conflict conflict =
            check_conflict_by(user, WEIR_CHECK_OPEN_ACCESS, buffer, shape, access, 0);
        conflict.finding.first = party(&open->origin, open->access, &opened, 0);
        add_bytes(&conflict, check_shapes_common(&opened, shape), 0);
        check_tell(check, &conflict);
    }
}

// What is read and written may be written first, or in parts. The host may have gaps in what it
// reads, such as the ones between aligned parts, and a guess may be too wide. The gaps have just been found.
static bool must_be_written(const struct check *check, const struct check_user *user,
                            const struct check_shape *shape, weir_access access,
                            struct check_span gap)
{
    if ((access & ~CHECK_ASSUMED) != WEIR_ACCESS_READ)
        return false;
    if (access & CHECK_ASSUMED)
        return check_shape_covers(&check->found.uses[0]->shape, shape);
    return !is_host(&user->origin) || gap.end - gap.begin == shape->end - shape->begin;
}

// What was told once counts as written.
static void use_gaps(struct check *check, const struct check_user *user,
                     struct check_buffer *buffer, const struct check_shape *shape,
                     weir_access access)
{
    const struct check_span gap = find_gap(check, &buffer->gaps, shape);
    if (gap.begin == gap.end)
        return;
    if (!check->unseen_writes && must_be_written(check, user, shape, access, gap)) {
        struct check_conflict conflict =
            check_conflict_by(user, WEIR_CHECK_UNWRITTEN, buffer, shape, access, 0);
        add_bytes(&conflict, gap, 0);
        check_tell(check, &conflict);
    }
    const uint64_t runs = check_shape_run_count(shape);
    for (uint64_t i = 0; i < runs && buffer->gaps.root; i++)
        fill_span(check, &buffer->gaps, check_shape_run(shape, i));
}

void check_use_bytes(struct check *check, const struct check_user *user,
                     struct check_buffer *buffer, const struct check_shape *shape,
                     weir_access access)
{
    if (buffer->open && !is_host(&user->origin) && !user->probe)
        use_open(check, user, buffer, shape, access);
    if (may_meet(&buffer->gaps, shape->begin, shape->end) && !user->probe)
        use_gaps(check, user, buffer, shape, access);
    if (buffer->base == 0) {
        use_memory(check, user, buffer, shape, access);
        return;
    }
    struct check_shape placed = *shape;
    placed.begin += buffer->base;
    placed.end += buffer->base;
    use_memory(check, user, buffer, &placed, access);
}

void check_buffer_clear(struct check *check, struct check_buffer *buffer)
{
    struct check_history *history = &buffer->memory->history;
    const struct check_span all = {buffer->base, buffer->base + buffer->size};
    check_history_find(history, all, &check->found);
    for (size_t i = 0; i < check->found.count; i++) {
        struct check_use *use = check->found.uses[i];
        if (use->shape.begin >= all.end || use->shape.end <= all.begin)
            continue;
        if (check->needless && history == &check->wrapped.history)
            check_hint_forget_use(check, use->actor, use->count);
        if (check->needless)
            check_sync_need(check, use->actor, use->count);
        check_history_remove(history, use);
    }
}
