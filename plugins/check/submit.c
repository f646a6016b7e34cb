// The path of an operation: what it declares to come after, then what it uses.
#include "plugins/check/parts.h"
#include "plugins/check/verify.h"

static void wait(struct check *check, struct check_queue *queue, uint64_t count,
                 const struct weir_operation *operation)
{
    struct check_queue *producer = check_queue_of(check->link, operation->u.wait.producer);
    if (check->hints)
        check_hint_wait(check, queue, producer, operation);
    check_actor_learn(&check->actors, &queue->actor, count, &producer->actor,
                      producer->actor.base + operation->u.wait.event.sequence);
}

static void use(struct check *check, struct check_queue *queue, uint64_t count,
                const struct weir_operation *operation)
{
    struct check_user user;
    user.actors = &check->actors;
    user.actor = &queue->actor;
    user.count = count;
    user.counts = NULL;
    user.late = false;
    user.passing = false;
    user.probe = false;
    user.plain = !check->needless;
    check_origin_set(&user.origin, check, operation);
    if (check->needless) {
        queue->worked = count;
        check_hint_operation(check, queue, operation);
    }
    if (operation->kind == WEIR_OPERATION_GRAPH)
        check_graph_launch(check, &user, operation);
    check_use_operation(check, &user, operation);
    // A launch of the graph elsewhere waits for this one, and what a host call uses is compared with
    // operations that were submitted while it waited. Not before the uses: a finding may change the
    // clock, and the point that is named before must keep its own.
    if (operation->kind == WEIR_OPERATION_GRAPH || check->waiting_calls)
        queue->actor.recorded = count;
}

// Pools' operations are empty, and still say something.
static bool uses_bytes(const struct weir_operation *operation)
{
    return !(operation->flags & WEIR_OPERATION_EMPTY) ||
           operation->kind == WEIR_OPERATION_POOL_ALLOCATE ||
           operation->kind == WEIR_OPERATION_POOL_FREE;
}

// The library's own edges are not what the calling thread declares to come after.
static bool is_of_thread(const struct weir_operation *operation)
{
    return !(operation->flags & WEIR_OPERATION_INTERNAL) ||
           (operation->kind != WEIR_OPERATION_RECORD && operation->kind != WEIR_OPERATION_WAIT);
}

static void note(struct check *check, struct check_queue *queue,
                 const struct weir_operation *operation)
{
    const uint64_t count = queue->actor.base + operation->sequence;
    queue->actor.last = count;
    if (check->strict && is_of_thread(operation))
        check_thread_submits(check, &queue->actor, count);
    switch (operation->kind) {
    case WEIR_OPERATION_RECORD:
        queue->actor.recorded = count;
        queue->record_file = operation->file;
        queue->record_line = operation->line;
        break;
    case WEIR_OPERATION_WAIT:
        wait(check, queue, count, operation);
        break;
    default:
        if (uses_bytes(operation))
            use(check, queue, count, operation);
        break;
    }
}

static weir_status pass_on(const struct weir_link *link, weir_queue *object,
                           const struct weir_operation *operation)
{
    if (operation->kind == WEIR_OPERATION_HOST_CALL &&
        !(operation->flags & WEIR_OPERATION_INTERNAL))
        return check_forward_call(link, object, operation);
    return link->next->ops->queue_submit(link->next, object, operation);
}

// What is not submitted uses nothing.
static weir_status refuse(const struct weir_link *link, const weir_queue *object,
                          const struct weir_operation *operation, weir_status status)
{
    struct check *check = check_of(link);
    struct check_actor *actor = &check_queue_of(link, object)->actor;
    check_lock(check);
    actor->refused = actor->base + operation->sequence;
    check->unseen_uses = true;
    check_unlock(check);
    return status;
}

weir_status check_queue_submit(const struct weir_link *link, weir_queue *object,
                               const struct weir_operation *operation)
{
    struct check *check = check_of(link);
    check_lock(check);
    note(check, check_queue_of(link, object), operation);
    weir_status status = check_unlock(check);
    bool done = false;
    if (status >= 0 && check->verify)
        status = check_verify(link, object, operation, &done);
    if (status >= 0 && !done)
        status = pass_on(link, object, operation);
    return status < 0 ? refuse(link, object, operation, status) : status;
}
