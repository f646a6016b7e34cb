// The operations of the chain, and a link's life: what is submitted is kept, what is asked makes it run; copies of
// operations; launches of graphs, as their nodes; keys; what happened, when the link is closed.
//
// Called by any thread, with locks of the front end's held: a submit has its queue's, so it runs
// no host call, which may submit to that queue.
#define _GNU_SOURCE // memrchr
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/wait.h"
#include "plugins/kit/kit.h"
#include "plugins/perturb/perturb.h"

// What an operation points to is stored after it. The nodes of a graph are not copied: the front end and the
// backends have their own, and what comes after gets none.

static bool is_of_host(const struct weir_operation *operation)
{
    for (uint32_t i = 0;
         operation->kind == WEIR_OPERATION_GRAPH && i < operation->u.graph.node_count; i++)
        if (weir_graph_node_at(operation->u.graph.nodes, i)->operation->kind ==
            WEIR_OPERATION_HOST_CALL)
            return true;
    return operation->kind == WEIR_OPERATION_HOST_CALL ||
           operation->kind == WEIR_OPERATION_COLLECTIVE ||
           operation->flags & WEIR_OPERATION_COLLECTIVES;
}

// A copy with what the operation points to; NULL if out of memory. With the lock held.
static struct perturb_operation *perturb_operation_create(const struct perturb *perturb,
                                                          const struct weir_operation *operation)
{
    struct perturb_operation *copy = calloc(1, sizeof *copy + weir_operation_bytes(operation));
    if (!copy)
        return NULL;
    copy->is_of_host = is_of_host(operation);
    struct weir_operation *own = weir_operation_copy(&copy->room, operation);
    weir_operation_own(own, copy + 1);
    if (own->kind == WEIR_OPERATION_GRAPH) {
        own->u.graph.nodes = NULL;
        own->u.graph.node_count = 0;
    } else if (own->kind == WEIR_OPERATION_WAIT && own->u.wait.producer) {
        copy->producer = perturb_queue_of(perturb->link, own->u.wait.producer);
        copy->producer->references++;
        copy->awaited = own->u.wait.event.sequence;
    }
    return copy;
}

// A launch of a graph that forks becomes its nodes, in an order that its edges allow, on the queue
// that launches it; then a record with the number of the launch, as the front end replays a graph
// of one branch. So an edge that is missing in a graph shows too. Its nodes are those of the
// launch: an update comes later. One with collectives stays whole, since those get their numbers from it; and
// once a program has updated a host call or a native call, so do those with such calls, since their functions
// get from it which launch calls.

enum {
    NODES_MAX = 1024, // the choice takes a time that grows with their square
};

// The choice of an order.
struct order {
    const struct weir_operation *launch;
    uint32_t waits[NODES_MAX]; // dependencies that are not chosen yet; UINT32_MAX: is chosen
    uint64_t branches;         // gives each branch its priority; 0: none have one
};

static const struct weir_graph_node *node_at(const struct order *order, uint32_t index)
{
    return weir_graph_node_at(order->launch->u.graph.nodes, index);
}

// With a function that an update may change.
static bool is_call(const struct weir_graph_node *node)
{
    return node->operation->kind == WEIR_OPERATION_HOST_CALL ||
           node->operation->kind == WEIR_OPERATION_NATIVE;
}

// Whether the launch of a graph has nodes between which the order may be chosen.
static bool perturb_takes_apart(const struct perturb *perturb, const struct weir_operation *launch)
{
    const uint32_t count = launch->u.graph.node_count;
    if (launch->flags & WEIR_OPERATION_COLLECTIVES || count > NODES_MAX)
        return false;
    for (uint32_t i = 0; i < count && perturb->calls_change; i++)
        if (is_call(weir_graph_node_at(launch->u.graph.nodes, i)))
            return false;
    return launch->u.graph.branch_count > 1;
}

// Which of the nodes that may run is next: the one with the largest number.
static uint64_t weigh(struct perturb *perturb, const struct order *order, uint32_t index)
{
    const struct weir_graph_node *node = node_at(order, index);
    const uint64_t early = NODES_MAX - index;
    switch (perturb->mode) {
    case PERTURB_LATE:
        return index + UINT64_C(1);
    case PERTURB_PAIR:
        return perturb_pair_side(perturb, node->operation) == 1 ? early : NODES_MAX + early;
    case PERTURB_RANDOM:
        break;
    }
    if (!order->branches)
        return weir_random_next(&perturb->random) | 1;
    return ((order->branches + node->branch) * UINT64_C(0x9e3779b97f4a7c15) & ~UINT64_C(0xffff)) +
           early;
}

static uint32_t choose(struct perturb *perturb, struct order *order)
{
    const uint32_t count = order->launch->u.graph.node_count;
    uint64_t most = 0;
    uint32_t chosen = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t weight = order->waits[i] == 0 ? weigh(perturb, order, i) : 0;
        if (weight > most) {
            most = weight;
            chosen = i;
        }
    }
    order->waits[chosen] = UINT32_MAX;
    for (uint32_t i = chosen + 1; i < count; i++)
        for (uint32_t d = 0; d < node_at(order, i)->dependency_count; d++)
            order->waits[i] -= node_at(order, i)->dependencies[d] == chosen;
    return chosen;
}

// Appends a copy to the list that ends at `*end`.
static bool add(const struct perturb *perturb, struct perturb_operation ***end,
                const struct weir_operation *operation, uint64_t sequence, uint32_t flags)
{
    struct perturb_operation *copy = perturb_operation_create(perturb, operation);
    if (!copy)
        return false;
    copy->room.operation.sequence = sequence;
    copy->room.operation.flags |= flags;
    **end = copy;
    *end = &copy->next;
    return true;
}

// Copies of its nodes in the chosen order, and of a record; NULL if out of memory. With the lock
// held.
static struct perturb_operation *perturb_graph_copy(struct perturb *perturb,
                                                    const struct weir_operation *launch)
{
    const uint32_t count = launch->u.graph.node_count;
    const uint64_t number = weir_random_next(&perturb->random);
    const struct weir_operation record =
        weir_operation_internal(WEIR_OPERATION_RECORD, launch, launch->sequence);
    struct order order = {.launch = launch, .branches = number % 2 ? number : 0};
    struct perturb_operation *first = NULL;
    struct perturb_operation **end = &first;
    bool ok = true;
    for (uint32_t i = 0; i < count; i++)
        order.waits[i] = node_at(&order, i)->dependency_count;
    for (uint32_t i = 0; ok && i < count; i++)
        ok = add(perturb, &end, node_at(&order, choose(perturb, &order))->operation,
                 launch->sequence, WEIR_OPERATION_PART);
    if (ok && add(perturb, &end, &record, launch->sequence, 0))
        return first;
    perturb_operations_destroy(first);
    return NULL;
}

static void enter(struct perturb *perturb)
{
    pthread_mutex_lock(&perturb->lock);
    perturb->touched_ns = weir_clock_now_ns();
}

static void leave(struct perturb *perturb)
{
    perturb->touched_ns = weir_clock_now_ns();
    pthread_mutex_unlock(&perturb->lock);
}

// Queues.

// A program may wait for what a host call sets, for a descriptor, or for memory that a kernel
// writes, and then asks for nothing. Work goes on without being asked for on every backend, so
// here it does after a pause.

static void run_idle(void *argument)
{
    struct perturb *perturb = argument;
    pthread_mutex_lock(&perturb->lock);
    while (!perturb->stop) {
        const bool idle = perturb->pending && perturb->waiting == 0;
        const uint64_t due_ns = idle ? perturb->touched_ns + perturb->idle_ns : WEIR_FOREVER;
        if (weir_clock_now_ns() < due_ns)
            perturb_wait(perturb, due_ns);
        else if (perturb_run_one(perturb, NULL, 0, 0))
            perturb->counts.idle++;
        else if (!perturb->stop) // it may be set since: running one waits for those that run_idle
            pthread_cond_wait(&perturb->changed, &perturb->lock);
    }
    pthread_mutex_unlock(&perturb->lock);
}

static weir_status queue_create(const struct weir_link *link, weir_device *device,
                                weir_queue *object, const struct weir_queue_setup *setup,
                                void **out_data)
{
    struct perturb *perturb = perturb_of(link);
    struct perturb_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return weir_host_no_memory(link->host, "a queue");
    *queue = (struct perturb_queue){.perturb = perturb,
                                    .object = object,
                                    .references = 1,
                                    .direct = setup->native != NULL};
    enter(perturb);
    if (!perturb->has_idle)
        perturb->has_idle = weir_thread_start(&perturb->idle, run_idle, perturb) == 0;
    const bool started = perturb->has_idle;
    if (started) {
        struct perturb_queue **at = &perturb->queues;
        while (*at)
            at = &(*at)->next;
        *at = queue;
        queue->index = perturb->queue_count++;
        queue->priority = weir_random_next(&perturb->random);
    }
    leave(perturb);
    if (started) {
        *out_data = queue;
        return WEIR_OK;
    }
    free(queue);
    return weir_host_fail(link->host, WEIR_ERROR_SYSTEM, "raise the limit of threads",
                          "no thread for the plugin perturb");
}

// Its work has finished, unless the device is lost.
static void queue_retire(const struct weir_link *link, weir_queue *object)
{
    struct perturb *perturb = perturb_of(link);
    struct perturb_queue *queue = perturb_queue_of(link, object);
    enter(perturb);
    if (queue->first)
        perturb_operations_destroy(perturb_take(queue, queue->last));
    while (queue->in_flight)
        perturb_wait(perturb, WEIR_FOREVER);
    queue->done = UINT64_MAX;
    pthread_cond_broadcast(&perturb->changed);
    leave(perturb);
}

static void queue_destroy(const struct weir_link *link, weir_queue *object)
{
    struct perturb *perturb = perturb_of(link);
    struct perturb_queue *queue = perturb_queue_of(link, object);
    enter(perturb);
    struct perturb_queue **at = &perturb->queues;
    while (*at != queue)
        at = &(*at)->next;
    *at = queue->next;
    perturb_release(queue);
    leave(perturb);
}

// Submission.

// An operation whose kind is newer than the plugin cannot be copied.
static weir_status submit_unknown(const struct weir_link *link, struct perturb_queue *queue,
                                  const struct weir_operation *operation)
{
    enter(queue->perturb);
    perturb_drain(queue, queue->submitted, PERTURB_NO_HOST_CALLS);
    const bool empty = !queue->first && queue->in_flight == 0;
    queue->submitted = operation->sequence;
    if (empty)
        queue->done = operation->sequence;
    leave(queue->perturb);
    return link->next->ops->queue_submit(link->next, queue->object, operation);
}

// Runs what this submit brings about.
static void run_some(struct perturb *perturb, struct perturb_queue *queue, uint64_t sequence)
{
    if (queue->direct) {
        perturb_drain(queue, sequence, PERTURB_NO_HOST_CALLS);
        return;
    }
    while (perturb->eager && weir_random_next(&perturb->random) % 256 < perturb->eager)
        if (!perturb_run_one(perturb, NULL, 0, PERTURB_NO_HOST_CALLS))
            break;
    if (perturb->pending > perturb->limit)
        perturb_run_one(perturb, NULL, 0, PERTURB_NO_HOST_CALLS);
}

// Appends operations to their queue, all that follow the first.
static void append(struct perturb_queue *queue, struct perturb_operation *operation)
{
    struct perturb *perturb = queue->perturb;
    if (queue->last)
        queue->last->next = operation;
    else
        queue->first = operation;
    for (; operation; operation = operation->next) {
        operation->number = ++perturb->number;
        operation->side = perturb_pair_side(perturb, perturb_of_user(operation));
        queue->last = operation;
        perturb->pending++;
    }
    queue->submitted = perturb_of_user(queue->last)->sequence;
    pthread_cond_broadcast(&perturb->changed);
}

static weir_status queue_submit(const struct weir_link *link, weir_queue *object,
                                const struct weir_operation *operation)
{
    struct perturb *perturb = perturb_of(link);
    struct perturb_queue *queue = perturb_queue_of(link, object);
    if (operation->kind >= WEIR_OPERATION_KINDS)
        return submit_unknown(link, queue, operation);
    enter(perturb);
    const bool apart =
        operation->kind == WEIR_OPERATION_GRAPH && perturb_takes_apart(perturb, operation);
    struct perturb_operation *copy = apart ? perturb_graph_copy(perturb, operation)
                                           : perturb_operation_create(perturb, operation);
    if (copy) {
        append(queue, copy);
        run_some(perturb, queue, operation->sequence);
    }
    leave(perturb);
    return copy ? WEIR_OK : weir_host_no_memory(link->host, "an operation that is held back");
}

// What the program asks.

static weir_status queue_finish(const struct weir_link *link, weir_queue *object)
{
    struct perturb_queue *queue = perturb_queue_of(link, object);
    enter(queue->perturb);
    perturb_run_until(queue, queue->submitted, WEIR_FOREVER, 0);
    leave(queue->perturb);
    return link->next->ops->queue_finish(link->next, object);
}

// The library asks for events too, each once and seldom again. A program that asks until one is
// complete asks for it again at once.
static weir_status event_query(const struct weir_link *link, weir_queue *object, uint64_t sequence)
{
    struct perturb_queue *queue = perturb_queue_of(link, object);
    enter(queue->perturb);
    const bool again = queue->asked == sequence;
    queue->asked = sequence;
    if (queue->done < sequence && again && !link->host->in_host_call())
        perturb_run_one(queue->perturb, queue, sequence, 0);
    const bool done = queue->done >= sequence;
    leave(queue->perturb);
    return done ? link->next->ops->event_query(link->next, object, sequence) : WEIR_NOT_READY;
}

static weir_status event_wait(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                              uint64_t timeout_ns)
{
    struct perturb_queue *queue = perturb_queue_of(link, object);
    const uint64_t deadline_ns = weir_clock_deadline(timeout_ns);
    enter(queue->perturb);
    const bool done = perturb_run_until(queue, sequence, deadline_ns, 0);
    leave(queue->perturb);
    if (!done)
        return WEIR_TIMEOUT;
    return link->next->ops->event_wait(link->next, object, sequence, weir_clock_left(deadline_ns));
}

// What the program does to the native queue comes after what it has submitted here.
static weir_status queue_native(const struct weir_link *link, weir_queue *object,
                                struct weir_native_queue *out_native)
{
    struct perturb_queue *queue = perturb_queue_of(link, object);
    enter(queue->perturb);
    queue->direct = true;
    perturb_drain(queue, queue->submitted, 0);
    leave(queue->perturb);
    return link->next->ops->queue_native(link->next, object, out_native);
}

// Graphs.

static bool is_launch(const struct perturb_operation *operation, const weir_graph *graph)
{
    return perturb_of_user(operation)->kind == WEIR_OPERATION_GRAPH &&
           perturb_of_user(operation)->u.graph.graph == graph;
}

// The last launch of the graph that is pending; 0: none.
static uint64_t last_launch(const struct perturb_queue *queue, const weir_graph *graph)
{
    uint64_t last = 0;
    for (const struct perturb_operation *at = queue->first; at; at = at->next)
        if (is_launch(at, graph))
            last = perturb_of_user(at)->sequence;
    return last;
}

// Whether a launch of the graph has been taken out, and the front end does not have it yet.
static bool hands_on_launch(const struct perturb *perturb, const weir_graph *graph)
{
    for (const struct perturb_batch *batch = perturb->flight; batch; batch = batch->next)
        for (const struct perturb_operation *at = batch->first; at && !batch->open; at = at->next)
            if (is_launch(at, graph))
                return true;
    return false;
}

// Returns false when no launch was left here; else queues may have come and gone.
static bool drain_launch(struct perturb *perturb, const weir_graph *graph)
{
    for (struct perturb_queue *queue = perturb->queues; queue; queue = queue->next) {
        const uint64_t last = last_launch(queue, graph);
        if (last) {
            queue->references++;
            perturb_drain(queue, last, 0);
            perturb_release(queue);
            return true;
        }
    }
    if (!hands_on_launch(perturb, graph))
        return false;
    perturb_wait(perturb, WEIR_FOREVER);
    return true;
}

// Launches before the update keep their operands: the front end sees to those that it holds. It also knows
// which function of a call is that of a launch, unless the launch was taken apart.
static weir_status graph_update(const struct weir_link *link, weir_graph *graph, uint32_t index,
                                const struct weir_graph_node *node)
{
    struct perturb *perturb = perturb_of(link);
    enter(perturb);
    perturb->calls_change = perturb->calls_change || is_call(node);
    while (drain_launch(perturb, graph))
        ;
    leave(perturb);
    return link->next->ops->graph_update(link->next, graph, index, node);
}

// In the order of enum perturb_mode.
static const char *const modes[] = {"random", "late", "pair", NULL};

// One line of JSON for each link: `weir perturb` reads it.
static void write_line(const struct perturb *perturb)
{
    const struct perturb_counts *counts = &perturb->counts;
    const int fd = weir_file_open_to_write(perturb->report, O_APPEND);
    const bool written =
        fd >= 0 &&
        dprintf(fd,
                "{\"mode\":\"%s\",\"seed\":%" PRIu64 ",\"operations\":%" PRIu64
                ",\"choices\":%" PRIu64 ",\"schedule\":\"%016" PRIx64 "\",\"idle\":%" PRIu64
                ",\"stalled\":%" PRIu64 ",\"reversed\":%" PRIu64 "}\n",
                modes[perturb->mode], perturb->seed, counts->operations, counts->choices,
                counts->schedule, counts->idle, counts->stalled, counts->reversed) > 0;
    if (fd >= 0)
        close(fd);
    if (!written)
        perturb->link->host->log(WEIR_LOG_ERROR, "perturb",
                                 "the file that `report` of [perturb] names cannot be written; "
                                 "name another one");
}

// Logs what happened, and appends it to the report's file.
static void perturb_report(const struct perturb *perturb)
{
    const struct perturb_counts *counts = &perturb->counts;
    char text[512];
    size_t used = 0;
    weir_text_append(text, sizeof text, &used,
                     "seed %" PRIu64 ", mode %s: %" PRIu64 " operations, %" PRIu64
                     " choices, order %016" PRIx64,
                     perturb->seed, modes[perturb->mode], counts->operations, counts->choices,
                     counts->schedule);
    if (perturb->mode == PERTURB_PAIR)
        weir_text_append(text, sizeof text, &used, "; the pair was reversed %" PRIu64 " time%s",
                         counts->reversed, counts->reversed == 1 ? "" : "s");
    perturb->link->host->log(WEIR_LOG_INFO, "perturb", text);
    if (counts->idle || counts->stalled) {
        snprintf(text, sizeof text,
                 "the order is not that of the seed alone: %" PRIu64
                 " operations ran because the program asked for nothing, and %" PRIu64
                 " took so long that others ran beside them; a longer `idle` in [perturb] helps "
                 "if the machine is slow",
                 counts->idle, counts->stalled);
        perturb->link->host->log(WEIR_LOG_INFO, "perturb", text);
    }
    if (perturb->report[0])
        write_line(perturb);
}

// In the order of the key table.
enum key {
    KEY_MODE,
    KEY_SEED,
    KEY_PAIR,
    KEY_IDLE,
    KEY_PENDING,
    KEY_REPORT,
    KEY_COUNT
};

static const struct weir_key keys[KEY_COUNT] = {
    [KEY_MODE] = WEIR_CHOICE_KEY(
        "mode", "random", modes,
        "random: any order that no declared dependency forbids, by the seed; late: "
        "nothing runs before the program needs it; pair: the two lines of `pair` in "
        "the other order, everything else as submitted."),
    [KEY_SEED] = WEIR_INTEGER_KEY("seed", "1", 0, INT64_MAX,
                                  "The seed of mode random: the same one gives the same order."),
    [KEY_PAIR] = WEIR_TEXT_KEY(
        "pair", "",
        "The lines of mode pair, as app.c:80, app.c:91: what the first one submits is "
        "held back until what the second one submits has run."),
    [KEY_IDLE] = WEIR_INTEGER_KEY(
        "idle", "100", 1, 60000,
        "Milliseconds without a call of the program after which pending work runs "
        "unasked, and after which other work goes on beside a host call that has not "
        "ended. What runs then depends on more than the seed."),
    [KEY_PENDING] = WEIR_INTEGER_KEY(
        "pending", "4096", 1, 1 << 20,
        "Operations that are held back at most; with more of them one runs at each "
        "submit."),
    [KEY_REPORT] = WEIR_TEXT_KEY(
        "report", "",
        "A file to which a line of JSON is appended at the end: seed, mode, counts and "
        "the order. Empty: none."),
};

// Opening.

// Reads "FILE:LINE" from the `length` bytes, the line after the last colon. False: it is something else.
static bool read_line(const char *text, size_t length, struct perturb_line *line)
{
    const char *colon = memrchr(text, ':', length);
    char number[10];
    int end = 0;
    if (!colon || colon == text || (size_t)(colon - text) >= sizeof line->file ||
        sscanf(colon + 1, "%9[0-9] %n", number, &end) != 1)
        return false;
    line->line = (int)strtol(number, NULL, 10);
    snprintf(line->file, sizeof line->file, "%.*s", (int)(colon - text), text);
    return colon + 1 + end == text + length && line->line > 0;
}

// Reads "FILE:LINE, FILE:LINE". False: it is something else.
static bool read_pair(const char *text, struct perturb_line pair[2])
{
    text += strspn(text, " ");
    const size_t first = strcspn(text, ",");
    const char *second = text + first + (text[first] == ',');
    second += strspn(second, " ");
    return read_line(text, first, &pair[0]) && read_line(second, strlen(second), &pair[1]);
}

// The last two links are the front end's own and the backend.
static void warn_of_later_plugins(const struct weir_link *link)
{
    char text[256];
    if (!link->next->next || !link->next->next->next)
        return;
    snprintf(
        text, sizeof text,
        "%.60s comes after perturb in the chain and sees no waits, as they are over by then; list "
        "perturb last",
        link->next->name);
    link->host->log(WEIR_LOG_WARNING, "perturb", text);
}

static weir_status read_settings(struct perturb *perturb,
                                 const struct weir_setting *const *settings)
{
    const char *pair = settings[KEY_PAIR]->text;
    while (strcmp(settings[KEY_MODE]->text, modes[perturb->mode]) != 0)
        perturb->mode++;
    perturb->seed = (uint64_t)settings[KEY_SEED]->integer;
    perturb->idle_ns = (uint64_t)settings[KEY_IDLE]->integer * 1000000u;
    perturb->limit = (uint64_t)settings[KEY_PENDING]->integer;
    perturb->report = settings[KEY_REPORT]->text;
    if (perturb->mode == PERTURB_PAIR && !read_pair(pair, perturb->pair))
        return weir_host_fail(perturb->link->host, WEIR_ERROR_CONFIG,
                              "name two lines, as app.c:80, app.c:91, in `pair` of [perturb] or "
                              "in WEIR_PERTURB_PAIR",
                              "mode pair has no pair of lines: '%.200s'", pair);
    // One of two could not tell the other's gates from the program's operations.
    return plugin_refuse_second(perturb->link, "list it once, as the last one");
}

// What the seed decides, too.
static void init(struct perturb *perturb)
{
    static const uint64_t redraws[] = {1, 1, 2, 4, 8, 16, 64, 0};
    static const uint64_t eagers[] = {0, 0, 0, 16, 64, 128, 192, 256};
    weir_condition_init(&perturb->changed);
    pthread_mutex_init(&perturb->lock, NULL);
    perturb->random = perturb->seed;
    perturb->redraw = redraws[weir_random_next(&perturb->random) % 8];
    perturb->eager = eagers[weir_random_next(&perturb->random) % 8];
    if (perturb->mode != PERTURB_RANDOM)
        perturb->eager = 0;
}

static weir_status perturb_open(struct weir_link *link, const struct weir_setting *const *settings,
                                void **out_state)
{
    struct perturb *perturb = calloc(1, sizeof *perturb);
    if (!perturb)
        return weir_host_no_memory(link->host, "the plugin perturb");
    perturb->link = link;
    const weir_status status = read_settings(perturb, settings);
    if (status < 0) {
        free(perturb);
        return status;
    }
    warn_of_later_plugins(link);
    init(perturb);
    *out_state = perturb;
    return WEIR_OK;
}

static void perturb_close(const struct weir_link *link)
{
    struct perturb *perturb = perturb_of(link);
    // Nothing is in flight.
    pthread_mutex_lock(&perturb->lock);
    perturb->stop = true;
    pthread_cond_broadcast(&perturb->changed);
    pthread_mutex_unlock(&perturb->lock);
    if (perturb->has_idle)
        weir_thread_join(&perturb->idle);
    while (perturb->runners) {
        struct perturb_runner *runner = perturb->runners;
        perturb->runners = runner->next;
        weir_thread_join(&runner->thread);
        free(runner);
    }
    if (perturb->queue_count)
        perturb_report(perturb);
    pthread_cond_destroy(&perturb->changed);
    pthread_mutex_destroy(&perturb->lock);
    free(perturb);
}

static const struct weir_module_ops ops = {
    .open = perturb_open,
    .close = perturb_close,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .queue_submit = queue_submit,
    .queue_finish = queue_finish,
    .event_query = event_query,
    .event_wait = event_wait,
    .graph_update = graph_update,
    .queue_native = queue_native,
    .queue_retire = queue_retire,
};

static const char *const about[] = {
    "summary",
    "Runs operations in another order wherever no declared dependency forbids it, so that missing "
    "waits give wrong results, the same ones for the same seed.",
    NULL,
};

PLUGIN_MODULE("perturb", keys, KEY_COUNT, 0)
