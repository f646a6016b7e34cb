// `verify = 1`: what a launch declares, compared with what its kernel does.
//
// A kernel runs on copies of its buffers, with guards around each, before the launch itself is
// handed on. The program's memory is only read for that, so what other queues and the host do
// meanwhile with bytes that the launch does not declare changes nothing.
//
// A kernel reads outside what its launch declares if its results change with the bytes there. Which
// byte that is, is found by halving: the number of bytes that have other contents, at which the
// results begin to change.
#include "plugins/check/parts.h"

enum {
    GUARD_BYTES = 65536, // in front of a copy and after it
};

// A buffer of the launch, and its copy. The arrays have `total` bytes: a guard, the buffer, a guard.
struct twin {
    struct twin *next;
    weir_buffer *original;
    size_t size;
    size_t total;
    weir_buffer *device;     // what the kernel gets
    weir_buffer *host;       // between `device` and the plugin
    unsigned char *bytes;    // the host's: after a run, what the kernel left
    unsigned char *truth;    // before the launch
    unsigned char *first;    // after the first run
    unsigned char *declared; // weir_access, by the launch
    size_t flipped;          // so many had other contents in the last run, but for those to be read
    struct check_span strays;
};

// A launch that is verified. `arguments` name the copies.
struct trial {
    const struct weir_link *link;
    weir_queue *queue;
    const struct weir_operation *operation;
    struct weir_argument *arguments;
    struct twin *twins;
    size_t total; // bytes of all copies
    bool failed;  // a run has
};

// Buffers that only the links after the plugin's know. Each has an object with a slot for every
// link, as the front end's buffers have, and is created and destroyed in the order in which the front
// end does it.

// The front end counts from 1, and a backend may keep the number of a buffer for longer than the
// buffer.
#define FIRST_ID (UINT64_C(1) << 63)

static atomic_uint_fast64_t last_id = FIRST_ID;

struct own_buffer {
    struct weir_object object;
    void *data[];
};

static weir_buffer *as_buffer(struct own_buffer *own)
{
    return (weir_buffer *)(void *)own;
}

static void destroy_from(const struct weir_link *link, const struct weir_link *end,
                         weir_buffer *buffer)
{
    if (link == end)
        return;
    destroy_from(link->next, end, buffer);
    if (link->ops->buffer_destroy)
        link->ops->buffer_destroy(link, buffer);
}

static struct own_buffer *make_object(const struct weir_link *link)
{
    const size_t count = link->backend->index + 1;
    struct own_buffer *own = calloc(1, sizeof *own + count * sizeof *own->data);
    if (!own)
        return NULL;
    own->object.data = own->data;
    own->object.label = "check: verify";
    own->object.id = atomic_fetch_add(&last_id, 1);
    return own;
}

// A buffer of the links after `link`. `*out_pointer` is its memory if it is a HOST buffer.
//
// Ownership: the caller's, until destroy_copy(), by when all work that uses it has finished.
// Errors: those of the links; WEIR_ERROR_OUT_OF_MEMORY, reported.
static weir_status create_copy(const struct weir_link *link, weir_device *device, size_t size,
                               weir_placement placement, weir_buffer **out_buffer,
                               void **out_pointer)
{
    const struct weir_buffer_setup setup = {.struct_size = sizeof setup,
                                            .size = size,
                                            .placement = placement};
    struct own_buffer *own = make_object(link);
    if (!own)
        return weir_host_no_memory(link->host, "the copy of a buffer");
    for (const struct weir_link *at = link->next; at; at = at->next) {
        if (!at->ops->buffer_create)
            continue;
        weir_status status = at->ops->buffer_create(at, device, as_buffer(own), &setup,
                                                    &own->data[at->index], out_pointer);
        if (status >= 0)
            continue;
        destroy_from(link->next, at, as_buffer(own));
        free(own);
        return status;
    }
    *out_buffer = as_buffer(own);
    return WEIR_OK;
}

static void destroy_copy(const struct weir_link *link, weir_buffer **buffer)
{
    if (!*buffer)
        return;
    destroy_from(link->next, NULL, *buffer);
    free(*buffer);
    *buffer = NULL;
}

// Operations of the plugin's own.

static weir_status submit(const struct weir_link *link, weir_queue *queue,
                          struct weir_operation *operation, uint64_t sequence)
{
    operation->flags |= WEIR_OPERATION_INTERNAL;
    operation->sequence = sequence;
    return link->next->ops->queue_submit(link->next, queue, operation);
}

// After submits that returned `status`.
static weir_status finish(const struct weir_link *link, weir_queue *queue, weir_status status)
{
    const weir_status finished = link->next->ops->queue_finish(link->next, queue);
    return status < 0 ? status : finished;
}

// In the place of the launch, which is not handed on yet.
static weir_status submit_trial(const struct trial *trial, struct weir_operation *operation)
{
    return submit(trial->link, trial->queue, operation, trial->operation->sequence - 1);
}

static weir_status submit_copy(const struct trial *trial, weir_buffer *dst, size_t dst_offset,
                               weir_buffer *src, size_t size)
{
    struct weir_operation copy = weir_operation_internal(WEIR_OPERATION_COPY, trial->operation, 0);
    weir_box_row(&copy.u.box, dst, dst_offset, src, 0, size);
    return submit_trial(trial, &copy);
}

// The copies.

enum {
    GUARD_BYTE = 0x5a,
    FLIP = 0xff,
};

static weir_status allocate(const struct trial *trial, struct twin *twin)
{
    weir_device *device = check_queue_of(trial->link, trial->queue)->device;
    void *pointer = NULL;
    weir_status status =
        create_copy(trial->link, device, twin->total, WEIR_PLACE_DEVICE, &twin->device, &pointer);
    if (status == WEIR_OK)
        status =
            create_copy(trial->link, device, twin->total, WEIR_PLACE_HOST, &twin->host, &pointer);
    if (status < 0)
        return status;
    twin->bytes = pointer;
    twin->truth = calloc(3, twin->total);
    if (!twin->truth)
        return weir_host_no_memory(trial->link->host, "the copy of a buffer");
    twin->first = twin->truth + twin->total;
    twin->declared = twin->first + twin->total;
    memset(twin->truth, GUARD_BYTE, twin->total);
    return WEIR_OK;
}

static weir_status add_twin(struct trial *trial, weir_buffer *original)
{
    struct twin *twin = calloc(1, sizeof *twin);
    if (!twin)
        return weir_host_no_memory(trial->link->host, "the copy of a buffer");
    twin->original = original;
    twin->size = check_buffer_of(trial->link, original)->size;
    twin->total = twin->size + 2 * (size_t)GUARD_BYTES;
    twin->next = trial->twins;
    trial->twins = twin;
    trial->total += twin->total;
    return allocate(trial, twin);
}

static weir_status replace(struct trial *trial, struct weir_argument *argument)
{
    struct twin *twin = trial->twins;
    if (argument->kind != WEIR_PARAMETER_BUFFER)
        return WEIR_OK;
    while (twin && twin->original != argument->buffer)
        twin = twin->next;
    const weir_status status = twin ? WEIR_OK : add_twin(trial, argument->buffer);
    if (status < 0)
        return status;
    twin = twin ? twin : trial->twins;
    argument->buffer = twin->device;
    argument->offset += GUARD_BYTES;
    for (size_t i = 0; i < argument->size; i++)
        twin->declared[argument->offset + i] |= (unsigned char)argument->access;
    return WEIR_OK;
}

// Copies what the launch names. The queue has finished what was submitted before.
//
// Ownership: the caller's, until end_trial(), also after an error.
// Errors: those of the links; WEIR_ERROR_OUT_OF_MEMORY.
static weir_status begin_trial(struct trial *trial)
{
    const size_t count = trial->operation->u.launch.argument_count;
    weir_status status = WEIR_OK;
    trial->arguments = malloc(count * sizeof *trial->arguments);
    if (!trial->arguments)
        return weir_host_no_memory(trial->link->host, "the arguments of a launch");
    memcpy(trial->arguments, trial->operation->u.launch.arguments,
           count * sizeof *trial->arguments);
    for (size_t i = 0; i < count && status >= 0; i++)
        status = replace(trial, &trial->arguments[i]);
    for (struct twin *twin = trial->twins; twin && status >= 0; twin = twin->next)
        status = submit_copy(trial, twin->host, GUARD_BYTES, twin->original, twin->size);
    status = finish(trial->link, trial->queue, status);
    for (struct twin *twin = trial->twins; twin && status >= 0; twin = twin->next)
        memcpy(twin->truth + GUARD_BYTES, twin->bytes + GUARD_BYTES, twin->size);
    return status;
}

static void end_trial(struct trial *trial)
{
    while (trial->twins) {
        struct twin *twin = trial->twins;
        trial->twins = twin->next;
        destroy_copy(trial->link, &twin->device);
        destroy_copy(trial->link, &twin->host);
        free(twin->truth);
        free(twin);
    }
    free(trial->arguments);
}

// Runs.

// Before the last run.
static unsigned char initial(const struct twin *twin, size_t i)
{
    const bool is_other = i < twin->flipped && !(twin->declared[i] & WEIR_ACCESS_READ);
    return twin->truth[i] ^ (is_other ? FLIP : 0);
}

// Runs the launch once and waits for it. Of the bytes that it does not declare to be read, those
// with numbers below `flipped`, counted through all copies, have other contents than in truth.
static weir_status run_trial(struct trial *trial, size_t flipped)
{
    struct weir_operation_room room;
    struct weir_operation *launch = weir_operation_copy(&room, trial->operation);
    weir_status status = WEIR_OK;
    launch->u.launch.arguments = trial->arguments;
    for (struct twin *twin = trial->twins; twin && status >= 0; twin = twin->next) {
        twin->flipped = flipped < twin->total ? flipped : twin->total;
        flipped -= twin->flipped;
        for (size_t i = 0; i < twin->total; i++)
            twin->bytes[i] = initial(twin, i);
        status = submit_copy(trial, twin->device, 0, twin->host, twin->total);
    }
    if (status >= 0)
        status = submit_trial(trial, launch);
    for (struct twin *twin = trial->twins; twin && status >= 0; twin = twin->next)
        status = submit_copy(trial, twin->host, 0, twin->device, twin->total);
    return finish(trial->link, trial->queue, status);
}

// Results.

static bool is_other_byte(const struct twin *twin, size_t i)
{
    if (!(twin->declared[i] & WEIR_ACCESS_WRITE) || twin->bytes[i] == twin->first[i])
        return false;
    return twin->bytes[i] != initial(twin, i) || twin->first[i] != twin->truth[i];
}

// Whether the last run wrote other results than the first one. A byte that neither of them
// changed has none.
static bool differs(const struct trial *trial)
{
    for (const struct twin *twin = trial->twins; twin; twin = twin->next)
        for (size_t i = 0; i < twin->total; i++)
            if (is_other_byte(twin, i))
                return true;
    return false;
}

// Adds the bytes of the copy that the last run changed and the launch does not declare to be
// written, from the first to the last.
static void find_strays(struct twin *twin)
{
    struct check_span span = twin->strays;
    for (size_t i = 0; i < twin->total; i++) {
        if (twin->bytes[i] == initial(twin, i) || twin->declared[i] & WEIR_ACCESS_WRITE)
            continue;
        const bool none = span.begin == span.end;
        span.begin = none || i < span.begin ? i : span.begin;
        span.end = none || i >= span.end ? i + 1 : span.end;
    }
    twin->strays = span;
}

// What is written is looked for after both runs, since some of the bytes may be there already.
static bool run_both(struct trial *trial)
{
    if (run_trial(trial, 0) < 0)
        return false;
    for (struct twin *twin = trial->twins; twin; twin = twin->next) {
        memcpy(twin->first, twin->bytes, twin->total);
        find_strays(twin);
    }
    if (run_trial(trial, trial->total) < 0)
        return false;
    for (struct twin *twin = trial->twins; twin; twin = twin->next)
        find_strays(twin);
    return true;
}

// Notes, each once.

static const char unverified_address[] =
    "launches are not verified after weir_buffer_address(): what kernels reach through "
    "addresses would be used more than once";
static const char unverified_call[] =
    "launches are not verified in a host call, and while one waits for the program";
static const char unverified_error[] = "the launch cannot be run on copies of its buffers";
static const char unverified_random[] =
    "the kernel gives other results in every run, so what it reads is not verified";

static void note(const struct weir_link *link, const struct weir_operation *operation,
                 const char *reason)
{
    struct check *check = check_of(link);
    char text[512];
    check_lock(check);
    const bool told = weir_names_find(check->names, reason) != SIZE_MAX;
    (void)weir_names_keep(check->names, reason);
    (void)check_unlock(check);
    if (told)
        return;
    snprintf(text, sizeof text, "verify: %.200s:%d: %s; told once",
             operation->file ? operation->file : "(unknown)", operation->line, reason);
    link->host->log(WEIR_LOG_WARNING, link->name, text);
}

// Findings.

// The range that the launch declares of the buffer for that access, the one nearest to the bytes.
static struct check_span find_declared(const struct trial *trial, const struct twin *twin,
                                       uint64_t at, weir_access access)
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
        nearest = (struct check_span){span.begin - GUARD_BYTES, span.end - GUARD_BYTES};
    }
    return nearest;
}

// `bytes` are those of the copy. In front of the buffer there are no offsets, so none are told.
static weir_status tell(const struct trial *trial, const struct twin *twin, struct check_span bytes,
                        weir_access access)
{
    struct check *check = check_of(trial->link);
    struct check_actor *actor = &check_queue_of(trial->link, trial->queue)->actor;
    const struct check_span span = find_declared(trial, twin, bytes.begin, access);
    const struct check_shape declared = check_shape_range(span.begin, span.end - span.begin);
    const struct weir_operation *launch = trial->operation;
    check_lock(check);
    struct check_user user = {
        .actor = actor,
        .count = actor->base + launch->sequence,
        .origin = check_origin_at(check, launch->file, launch->line, WEIR_OPERATION_LAUNCH),
    };
    user.origin.kernel = weir_kernel_object(launch->u.launch.kernel)->label;
    struct check_conflict conflict =
        check_conflict_by(&user, WEIR_CHECK_OUTSIDE, check_buffer_of(trial->link, twin->original),
                          &declared, access, 0);
    if (bytes.begin >= GUARD_BYTES) {
        conflict.finding.offset = bytes.begin - GUARD_BYTES;
        conflict.finding.size = bytes.end - bytes.begin;
    }
    check_tell(check, &conflict);
    return check_unlock(check);
}

static weir_status tell_writes(const struct trial *trial)
{
    weir_status first = WEIR_OK;
    for (const struct twin *twin = trial->twins; twin; twin = twin->next) {
        if (twin->strays.begin == twin->strays.end)
            continue;
        const weir_status status = tell(trial, twin, twin->strays, WEIR_ACCESS_WRITE);
        first = first == WEIR_OK ? status : first;
    }
    return first;
}

enum {
    SAME_RUNS = 3, // whose results must be the same, before other ones mean something
    SURE_RUNS = 6, // without and with a byte, which must say the same of it
};

// What is read.

static bool is_other(struct trial *trial, size_t flipped)
{
    trial->failed = trial->failed || run_trial(trial, flipped) < 0;
    return !trial->failed && differs(trial);
}

static bool is_random(struct trial *trial)
{
    for (int i = 0; i < SAME_RUNS; i++)
        if (is_other(trial, 0))
            return true;
    return false;
}

// The last byte of the fewest with which the results change.
static size_t find_read(struct trial *trial)
{
    size_t same = 0, other = trial->total;
    while (other - same > 1 && !trial->failed) {
        const size_t middle = same + (other - same) / 2;
        if (is_other(trial, middle))
            other = middle;
        else
            same = middle;
    }
    return other - 1;
}

// A kernel whose results are seldom others passes is_random(), and each comparison with it may say anything.
static bool is_surely_read(struct trial *trial, size_t at)
{
    for (int i = 0; i < SURE_RUNS; i++)
        if (is_other(trial, at) || !is_other(trial, at + 1))
            return false;
    return true;
}

// `at` counts through all copies.
static weir_status tell_read(const struct trial *trial, uint64_t at)
{
    const struct twin *twin = trial->twins;
    while (at >= twin->total) {
        at -= twin->total;
        twin = twin->next;
    }
    return tell(trial, twin, (struct check_span){at, at + 1}, WEIR_ACCESS_READ);
}

static weir_status hunt(struct trial *trial)
{
    const bool random = is_random(trial);
    const size_t at = random ? 0 : find_read(trial);
    if (!random && is_surely_read(trial, at))
        return tell_read(trial, at);
    note(trial->link, trial->operation, trial->failed ? unverified_error : unverified_random);
    return WEIR_OK;
}

// Whether it is a launch with a buffer.
static bool has_buffers(const struct weir_operation *operation)
{
    if (operation->flags & WEIR_OPERATION_EMPTY)
        return false; // a node that is disabled
    for (size_t i = 0;
         operation->kind == WEIR_OPERATION_LAUNCH && i < operation->u.launch.argument_count; i++)
        if (operation->u.launch.arguments[i].kind == WEIR_PARAMETER_BUFFER)
            return true;
    return false;
}

// Verifies one launch, after the queue has finished.
static weir_status verify_launch(const struct weir_link *link, weir_queue *queue,
                                 const struct weir_operation *operation)
{
    struct trial trial = {.link = link, .queue = queue, .operation = operation};
    const bool run = begin_trial(&trial) >= 0 && run_both(&trial);
    const bool reads = run && differs(&trial);
    if (!run)
        note(link, operation, unverified_error);
    weir_status status = tell_writes(&trial); // of the first run, too, if only the second failed
    if (status == WEIR_OK && reads)
        status = hunt(&trial);
    end_trial(&trial);
    return status;
}

// A graph's launch is verified node by node: each node is run on its own, in the order of the capture,
// and what a node finds in memory is what the nodes before it left. In the place of the launch the
// queue gets a record.

// Verifies the launches of a graph, and runs all its nodes, after the queue has finished.
static weir_status verify_nodes(const struct weir_link *link, weir_queue *queue,
                                const struct weir_operation *launch)
{
    weir_status status = WEIR_OK;
    for (uint32_t i = 0; i < launch->u.graph.node_count && status >= 0; i++) {
        struct weir_operation_room room;
        struct weir_operation *node =
            weir_operation_copy(&room, weir_graph_node_at(launch->u.graph.nodes, i)->operation);
        node->sequence = launch->sequence;
        if (has_buffers(node))
            status = verify_launch(link, queue, node);
        if (status >= 0)
            status = finish(link, queue, submit(link, queue, node, launch->sequence - 1));
    }
    struct weir_operation record =
        weir_operation_internal(WEIR_OPERATION_RECORD, launch, launch->sequence);
    return status < 0 ? status : submit(link, queue, &record, launch->sequence);
}

// Until the host calls that have been submitted have run. A call may wait for the thread that
// submits here, or for the queue whose lock that thread holds.
#define PATIENCE_NS (UINT64_C(1) << 30)

// After calls that did not return in time the next launch does not wait for them again.
static bool await_calls(struct check *check)
{
    const uint64_t start_ns = weir_clock_now_ns();
    uint64_t pause_ns = 0;
    for (bool in_time = true;; in_time = weir_clock_pause(start_ns, PATIENCE_NS, &pause_ns)) {
        check_lock(check);
        const bool waiting = check->waiting_calls > 0;
        check->impatient = waiting && (check->impatient || !in_time);
        const bool over = !waiting || check->impatient;
        (void)check_unlock(check);
        if (over)
            return !waiting;
    }
}

static bool has_launch(const struct weir_operation *operation)
{
    if (operation->kind != WEIR_OPERATION_GRAPH)
        return has_buffers(operation);
    for (uint32_t i = 0; i < operation->u.graph.node_count; i++)
        if (has_buffers(weir_graph_node_at(operation->u.graph.nodes, i)->operation))
            return true;
    return false;
}

weir_status check_verify(const struct weir_link *link, weir_queue *queue,
                         const struct weir_operation *operation, bool *out_done)
{
    struct check *check = check_of(link);
    *out_done = false;
    if (operation->flags & WEIR_OPERATION_EMPTY || !has_launch(operation))
        return WEIR_OK;
    check_lock(check);
    const bool addressed = check->addressed;
    (void)check_unlock(check);
    if (addressed || link->host->in_host_call() || !await_calls(check)) {
        note(link, operation, addressed ? unverified_address : unverified_call);
        return WEIR_OK;
    }
    if (link->next->ops->queue_finish(link->next, queue) < 0)
        return WEIR_OK; // the queue has failed, and refuses the operation itself
    if (operation->kind == WEIR_OPERATION_LAUNCH)
        return verify_launch(link, queue, operation);
    *out_done = true;
    return verify_nodes(link, queue, operation);
}
