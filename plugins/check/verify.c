// What is verified, and what is found.
//
// A kernel reads outside what its launch declares if its results change with the bytes there. Which
// byte that is, is found by halving: the number of bytes that have other contents, at which the
// results begin to change.
#include <stdio.h>

#include "base/clock.h"
#include "plugins/check/verify.h"

// Until the host calls that have been submitted have run. A call may wait for the thread that
// submits here, or for the queue whose lock that thread holds.
#define PATIENCE_NS (UINT64_C(1) << 30)
#define PAUSE_NS UINT64_C(200000)

enum {
    SAME_RUNS = 3, // whose results must be the same, before other ones mean something
};

// Notes, each once.

static const char *const reasons[CHECK_UNVERIFIED_KINDS] = {
    [CHECK_UNVERIFIED_ADDRESS] =
        "launches are not verified after weir_buffer_address(): what kernels reach through "
        "addresses would be used more than once",
    [CHECK_UNVERIFIED_CALL] =
        "launches are not verified in a host call, and while one waits for the program",
    [CHECK_UNVERIFIED_ERROR] = "the launch cannot be run on copies of its buffers",
    [CHECK_UNVERIFIED_RANDOM] = "the kernel gives other results in every run, so what it reads is "
                                "not verified",
};

static void note(const struct weir_link *link, const struct weir_operation *operation,
                 enum check_unverified kind)
{
    struct check *check = check_of(link);
    char text[512];
    check_lock(check);
    const bool told = check->unverified & 1u << kind;
    check->unverified |= 1u << kind;
    (void)check_unlock(check);
    if (told)
        return;
    snprintf(text, sizeof text, "verify: %.200s:%d: %s; told once",
             operation->file ? operation->file : "(unknown)", operation->line, reasons[kind]);
    link->host->log(WEIR_LOG_WARNING, link->name, text);
}

// Findings.

// The range that the launch declares of the buffer for that access, the one nearest to the bytes.
static struct check_span find_declared(const struct check_trial *trial,
                                       const struct check_twin *twin, uint64_t at,
                                       weir_access access)
{
    struct check_span nearest = {0, 0};
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < trial->operation->u.launch.argument_count; i++) {
        const struct weir_argument *argument = &trial->arguments[i];
        if (argument->kind != WEIR_PARAMETER_BUFFER || argument->buffer != twin->device ||
            !(argument->access & access) || argument->size == 0)
            continue;
        const struct check_span span = {argument->offset, argument->offset + argument->size};
        const uint64_t distance = at < span.begin ? span.begin - at : at - span.end;
        if (distance >= least)
            continue;
        least = distance;
        nearest = (struct check_span){span.begin - CHECK_GUARD_BYTES, span.end - CHECK_GUARD_BYTES};
    }
    return nearest;
}

static struct check_party party_of(struct check *check, const struct check_trial *trial,
                                   weir_access access, struct check_span declared)
{
    const struct check_actor *actor = &check_queue_of(trial->link, trial->queue)->actor;
    struct check_origin origin;
    check_origin_set(&origin, check, trial->operation);
    return (struct check_party){
        .operation = origin.operation,
        .access = access,
        .queue = actor->label,
        .queue_id = actor->id,
        .sequence = trial->operation->sequence,
        .kernel = weir_kernel_data(trial->link, trial->operation->u.launch.kernel),
        .file = origin.file,
        .line = origin.line,
        .offset = declared.begin,
        .size = declared.end - declared.begin,
        .region = origin.region,
        .region_number = origin.region_number,
    };
}

// `bytes` are those of the copy. In front of the buffer there are no offsets, so none are told.
static weir_status tell(const struct check_trial *trial, const struct check_twin *twin,
                        struct check_span bytes, weir_access access)
{
    struct check *check = check_of(trial->link);
    const struct weir_object *object = weir_buffer_object(twin->original);
    struct check_conflict conflict = {
        .kind = WEIR_CHECK_OUTSIDE,
        .buffer = object->label,
        .buffer_id = object->id,
    };
    if (bytes.begin >= CHECK_GUARD_BYTES) {
        conflict.offset = bytes.begin - CHECK_GUARD_BYTES;
        conflict.size = bytes.end - bytes.begin;
    }
    const struct check_span declared = find_declared(trial, twin, bytes.begin, access);
    check_lock(check);
    conflict.second = party_of(check, trial, access, declared);
    check_tell(check, &conflict);
    return check_unlock(check);
}

static void find_writes(struct check_trial *trial)
{
    for (struct check_twin *twin = trial->twins; twin; twin = twin->next)
        check_twin_find_strays(twin);
}

static weir_status tell_writes(const struct check_trial *trial)
{
    weir_status first = WEIR_OK;
    for (const struct check_twin *twin = trial->twins; twin; twin = twin->next) {
        if (twin->strays.begin == twin->strays.end)
            continue;
        const weir_status status = tell(trial, twin, twin->strays, WEIR_ACCESS_WRITE);
        first = first == WEIR_OK ? status : first;
    }
    return first;
}

// `at` counts through all copies.
static weir_status tell_read(const struct check_trial *trial, uint64_t at)
{
    const struct check_twin *twin = trial->twins;
    while (at >= twin->total) {
        at -= twin->total;
        twin = twin->next;
    }
    return tell(trial, twin, (struct check_span){at, at + 1}, WEIR_ACCESS_READ);
}

// What is read.

static bool is_other(struct check_trial *trial, size_t flipped, bool *failed)
{
    *failed = *failed || check_trial_run(trial, flipped) < 0;
    return !*failed && check_trial_differs(trial);
}

static bool is_random(struct check_trial *trial, bool *failed)
{
    for (int i = 0; i < SAME_RUNS; i++)
        if (is_other(trial, 0, failed))
            return true;
    return false;
}

// The last byte of the fewest with which the results change.
static size_t find_read(struct check_trial *trial, bool *failed)
{
    size_t same = 0, other = trial->total;
    while (other - same > 1 && !*failed) {
        const size_t middle = same + (other - same) / 2;
        if (is_other(trial, middle, failed))
            other = middle;
        else
            same = middle;
    }
    return other - 1;
}

static weir_status hunt(struct check_trial *trial)
{
    bool failed = false;
    if (is_random(trial, &failed)) {
        note(trial->link, trial->operation, CHECK_UNVERIFIED_RANDOM);
        return WEIR_OK;
    }
    const size_t at = find_read(trial, &failed);
    const bool read = !is_other(trial, at, &failed) && is_other(trial, at + 1, &failed);
    if (!failed && read)
        return tell_read(trial, at);
    note(trial->link, trial->operation, failed ? CHECK_UNVERIFIED_ERROR : CHECK_UNVERIFIED_RANDOM);
    return WEIR_OK;
}

// What is written is looked for after both runs, since some of the bytes may be there already.
static bool run_both(struct check_trial *trial)
{
    if (check_trial_run(trial, 0) < 0)
        return false;
    check_trial_keep(trial);
    find_writes(trial);
    if (check_trial_run(trial, trial->total) < 0)
        return false;
    find_writes(trial);
    return true;
}

static weir_status examine(struct check_trial *trial)
{
    const bool run = run_both(trial);
    const bool differs = run && check_trial_differs(trial);
    if (!run)
        note(trial->link, trial->operation, CHECK_UNVERIFIED_ERROR);
    const weir_status status = tell_writes(trial);
    return status == WEIR_OK && differs ? hunt(trial) : status;
}

// What is verified.

bool check_has_buffers(const struct weir_operation *operation)
{
    if (operation->flags & WEIR_OPERATION_EMPTY)
        return false; // a node that is disabled
    for (size_t i = 0;
         operation->kind == WEIR_OPERATION_LAUNCH && i < operation->u.launch.argument_count; i++)
        if (operation->u.launch.arguments[i].kind == WEIR_PARAMETER_BUFFER)
            return true;
    return false;
}

// After calls that did not return in time the next launch does not wait for them again.
static bool await_calls(struct check *check)
{
    const uint64_t start_ns = weir_clock_now_ns();
    for (;;) {
        check_lock(check);
        const bool waiting = check->waiting_calls > 0;
        check->impatient = check->impatient && waiting;
        const bool impatient = check->impatient;
        (void)check_unlock(check);
        if (!waiting)
            return true;
        if (impatient)
            return false;
        if (weir_clock_now_ns() - start_ns > PATIENCE_NS)
            break;
        weir_clock_sleep_ns(PAUSE_NS);
    }
    check_lock(check);
    check->impatient = true;
    (void)check_unlock(check);
    return false;
}

static bool can_verify(const struct weir_link *link, const struct weir_operation *operation)
{
    struct check *check = check_of(link);
    check_lock(check);
    const bool addressed = check->addressed;
    (void)check_unlock(check);
    if (addressed) {
        note(link, operation, CHECK_UNVERIFIED_ADDRESS);
        return false;
    }
    if (!check_is_in_call() && await_calls(check))
        return true;
    note(link, operation, CHECK_UNVERIFIED_CALL);
    return false;
}

weir_status check_verify_launch(const struct weir_link *link, weir_queue *queue,
                                const struct weir_operation *operation)
{
    struct check_trial trial;
    weir_status status = WEIR_OK;
    if (check_trial_begin(&trial, link, queue, operation) < 0)
        note(link, operation, CHECK_UNVERIFIED_ERROR);
    else
        status = examine(&trial);
    check_trial_end(&trial);
    return status;
}

static bool has_launch(const struct weir_operation *operation)
{
    if (operation->kind != WEIR_OPERATION_GRAPH)
        return check_has_buffers(operation);
    for (uint32_t i = 0; i < operation->u.graph.node_count; i++)
        if (check_has_buffers(weir_graph_node_at(operation->u.graph.nodes, i)->operation))
            return true;
    return false;
}

// A queue that has failed refuses the operation itself.
weir_status check_verify(const struct weir_link *link, weir_queue *queue,
                         const struct weir_operation *operation, bool *out_done)
{
    *out_done = false;
    if (operation->flags & WEIR_OPERATION_EMPTY || !has_launch(operation) ||
        !can_verify(link, operation) || link->next->ops->queue_finish(link->next, queue) < 0)
        return WEIR_OK;
    if (operation->kind == WEIR_OPERATION_LAUNCH)
        return check_verify_launch(link, queue, operation);
    *out_done = true;
    return check_verify_nodes(link, queue, operation);
}
