// The path of an operation: what it is to the engine, its place in virtual time, then on to the next link; and
// what a queue keeps of it, records and times. What has no cost is refused before anything is placed.
#include <search.h>

#include "base/clock.h"
#include "plugins/kit/kit.h"
#include "plugins/sim/sim.h"

static double volume(struct weir_extent extent)
{
    return (double)extent.x * (double)extent.y * (double)extent.z;
}

// What a launch's cost depends on.
static struct sim_launch launch_of(const struct weir_operation *operation)
{
    const double blocks = volume(operation->u.launch.grid);
    const double items = blocks * volume(operation->u.launch.block);
    struct sim_launch launch = {
        .kernel = weir_kernel_object(operation->u.launch.kernel)->label,
        .terms = {[SIM_TERM_FIXED] = 1, [SIM_TERM_BLOCK] = blocks, [SIM_TERM_ITEM] = items},
    };
    for (size_t i = 0; i < operation->u.launch.argument_count; i++) {
        const struct weir_argument *argument = &operation->u.launch.arguments[i];
        if (argument->kind == WEIR_PARAMETER_BUFFER)
            launch.terms[SIM_TERM_BYTE] += (double)argument->size;
        if (argument->kind != WEIR_PARAMETER_VALUE || argument->pointer || i >= SIM_ARGUMENTS)
            continue;
        const double value = plugin_scalar_value(argument->scalar, argument->bits);
        launch.terms[SIM_TERM_ARGUMENT + i] = value;
        launch.terms[SIM_TERM_ITEM_ARGUMENT + i] = items * value;
    }
    return launch;
}

// Kernels without a cost, if `kernels = scale`: what the first launch of each size took on
// the next link, times a factor. To be measured a launch runs alone in its queue, and its submit
// waits for it; later ones of the size do not.

#define MOST_NS (365.0 * 86400e9)

// In a tree.
struct measured {
    struct sim_launch launch; // the kernel's name is this structure's
    uint64_t ns;
    char kernel[];
};

// Values that are no numbers are equal to themselves here.
static int compare(const void *a, const void *b)
{
    const struct measured *x = a, *y = b;
    const int order = strcmp(x->launch.kernel, y->launch.kernel);
    return order ? order : memcmp(x->launch.terms, y->launch.terms, sizeof x->launch.terms);
}

static bool add(struct sim_scale *scale, const struct sim_launch *launch, double ns)
{
    const size_t size = strlen(launch->kernel) + 1;
    struct measured *item = malloc(sizeof *item + size);
    if (!item)
        return false;
    *item =
        (struct measured){.launch = *launch,
                          .ns = (uint64_t)(ns * scale->factor < MOST_NS ? ns * scale->factor + 0.5
                                                                        : MOST_NS)};
    item->launch.kernel = memcpy(item->kernel, launch->kernel, size);
    struct measured **at = tsearch(item, &scale->measured, compare);
    if (!at || *at != item) // no memory; or by another thread meanwhile
        free(item);
    return at != NULL;
}

// False: the launch's size was not measured.
static bool scale_find(const struct sim_scale *scale, const struct sim_launch *launch,
                       uint64_t *out_ns)
{
    const struct measured wanted = {.launch = *launch};
    struct measured *const *at = tfind(&wanted, &scale->measured, compare);
    if (at)
        *out_ns = (*at)->ns;
    return at != NULL;
}

// Measuring.

static weir_status run_alone(const struct weir_link *next, weir_queue *object,
                             const struct weir_operation *operation, double *out_ns)
{
    weir_status status = next->ops->queue_finish(next, object);
    const uint64_t began = weir_clock_now_ns();
    if (status == WEIR_OK)
        status = next->ops->queue_submit(next, object, operation);
    if (status == WEIR_OK)
        status = next->ops->queue_finish(next, object);
    *out_ns = (double)(weir_clock_now_ns() - began);
    // The driver's time of the operation, if the next link keeps times, as it does for the plugin trace.
    struct weir_operation_time times[16];
    size_t count = status == WEIR_OK;
    while (count > 0 &&
           next->ops->queue_times(next, object, times, sizeof *times, 16, &count) == WEIR_OK)
        for (size_t i = 0; i < count; i++)
            if (times[i].sequence == operation->sequence)
                *out_ns = (double)(times[i].end_ns - times[i].start_ns);
    return status;
}

static weir_status measure(const struct weir_link *link, weir_queue *object,
                           const struct weir_operation *operation, const struct sim_launch *launch)
{
    struct sim *sim = sim_of(link);
    double ns;
    // The queue that would have to finish may be its own.
    if (link->host->in_host_call())
        return weir_host_fail(link->host, WEIR_ERROR_UNSUPPORTED,
                              "launch it with these sizes from another thread first, or give it a "
                              "cost",
                              "sim: the kernel '%.200s' has no cost, and cannot be measured in a "
                              "function of the host",
                              launch->kernel);
    pthread_mutex_unlock(&sim->lock);
    const weir_status status = run_alone(link->next, object, operation, &ns);
    pthread_mutex_lock(&sim->lock);
    if (status < 0)
        return status;
    return add(&sim->scale, launch, ns) ? WEIR_OK
                                        : weir_host_no_memory(link->host, "a kernel's time");
}

// If the operation is a launch whose time is not known: submits it to the next link, without the
// lock, and waits until it has run.
//
// Errors: those of the next link; WEIR_ERROR_UNSUPPORTED in a function of the host.
static weir_status scale_launch(const struct weir_link *link, weir_queue *object,
                                const struct weir_operation *operation, bool *out_ran)
{
    const struct sim *sim = sim_of(link);
    uint64_t ns;
    *out_ran = false;
    if (sim->scale.factor == 0 || operation->kind != WEIR_OPERATION_LAUNCH)
        return WEIR_OK;
    const struct sim_launch launch = launch_of(operation);
    if (sim_kernel_ns(sim->model, &launch, &ns) || scale_find(&sim->scale, &launch, &ns))
        return WEIR_OK;
    *out_ran = true;
    return measure(link, object, operation, &launch);
}

// What an operation is.

static bool is_placed(const struct weir_operation *operation)
{
    return !(operation->flags & (WEIR_OPERATION_EMPTY | WEIR_OPERATION_IMPLIED)) &&
           operation->kind != WEIR_OPERATION_POOL_ALLOCATE &&
           operation->kind != WEIR_OPERATION_POOL_FREE && operation->kind != WEIR_OPERATION_NOTE;
}

// Copies.

static weir_status describe_bytes(const struct weir_link *link, struct sim_work *work,
                                  enum sim_kind kind, uint64_t bytes)
{
    const uint64_t most = SIM_BYTES_MOST;
    work->kind = kind;
    work->bytes = bytes;
    if (bytes < most)
        return WEIR_OK;
    return weir_host_fail(link->host, WEIR_ERROR_UNSUPPORTED, "copy in parts",
                          "sim: %llu bytes at once are more than it can time, which is 16 TiB",
                          (unsigned long long)bytes);
}

// A fill is a copy on the device.
static weir_status describe_transfer(const struct weir_link *link, struct sim_work *work,
                                     const struct weir_box *box)
{
    if (!box->src.buffer)
        return describe_bytes(link, work, SIM_D2D, weir_box_bytes(box));
    const struct sim_virtual_device *dst = sim_memory_of(link, box->dst.buffer);
    const struct sim_virtual_device *src = sim_memory_of(link, box->src.buffer);
    if (src)
        work->device = src->index;
    // Copies within the host's memory use the engine of uploads.
    return describe_bytes(link, work,
                          !src         ? SIM_H2D
                          : !dst       ? SIM_D2H
                          : dst == src ? SIM_D2D
                                       : SIM_PEER,
                          weir_box_bytes(box));
}

// Launches.

// How long a kernel of a better priority waits for places of this one; 0: to its end, since all of its
// blocks run at once, or as it is not known how many do.
//
// Blocks of a kernel that is larger than the GPU end all the time, but for those of one that has just
// begun: half of what a block takes is the mean of both.
static uint64_t yield_ns(const struct sim_model *model, const struct sim_launch *launch,
                         uint64_t duration_ns)
{
    const double held = (double)model->multiprocessors * (double)model->threads;
    if (held == 0 || launch->terms[SIM_TERM_ITEM] <= held)
        return 0;
    return 1 + (uint64_t)((double)duration_ns * held / launch->terms[SIM_TERM_ITEM] / 2);
}

static weir_status describe_launch(const struct weir_link *link,
                                   const struct weir_operation *operation, struct sim_work *work)
{
    const struct sim *sim = sim_of(link);
    const struct sim_launch launch = launch_of(operation);
    work->kind = SIM_KERNEL;
    work->places = sim_kernel_places(sim->model, launch.terms[SIM_TERM_BLOCK]);
    if (sim_kernel_ns(sim->model, &launch, &work->duration_ns) ||
        scale_find(&sim->scale, &launch, &work->duration_ns)) {
        work->yield_ns = yield_ns(sim->model, &launch, work->duration_ns);
        return WEIR_OK;
    }
    if (sim->scale.factor > 0)
        return weir_host_fail(link->host, WEIR_ERROR_UNSUPPORTED,
                              "launch it once outside the graph with these sizes, or give it a "
                              "cost",
                              "sim: the kernel '%.200s' of a graph has no cost, and was not "
                              "measured",
                              launch.kernel);
    return weir_host_fail(link->host, WEIR_ERROR_UNSUPPORTED,
                          "write a section [kernel NAME], or let `weir sim learn` write it from "
                          "traces, and name the file with `costs` in [sim], or --costs; or take "
                          "part of what it takes here, with `weir sim --scale 0.05`",
                          "sim: the kernel '%.200s' has no cost on the GPU '%.60s'", launch.kernel,
                          sim->model->name);
}

// Collectives.

// What a ring moves through the slowest link: bus bandwidth is defined by it
// (https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md).
static double bus_bytes(const struct weir_operation *operation)
{
    const weir_collective kind = operation->u.collective.kind;
    const double ranks = operation->u.collective.rank_count;
    const double one = (double)operation->u.collective.count *
                       (double)weir_datatype_size(operation->u.collective.element);
    if (kind == WEIR_EXCHANGE)
        return (double)plugin_collective_bytes(operation);
    if (kind == WEIR_BARRIER || ranks < 2)
        return 0;
    if (kind == WEIR_ALL_REDUCE)
        return 2 * one * (ranks - 1) / ranks;
    // Of these `count` is a part of what a rank has.
    const bool part = kind == WEIR_ALL_GATHER || kind == WEIR_REDUCE_SCATTER ||
                      kind == WEIR_ALL_TO_ALL || kind == WEIR_GATHER || kind == WEIR_SCATTER;
    return part ? one * (ranks - 1) : one;
}

static weir_status describe_collective(const struct weir_link *link,
                                       const struct weir_operation *operation,
                                       struct sim_work *work)
{
    const struct sim_model *model = sim_of(link)->model;
    const double bytes = bus_bytes(operation);
    if (model->copies[SIM_COLLECTIVE].bytes_per_s > 0)
        return describe_bytes(link, work, SIM_COLLECTIVE,
                              bytes < 0x1p63 ? (uint64_t)bytes : UINT64_MAX);
    return weir_host_fail(link->host, WEIR_ERROR_UNSUPPORTED,
                          "set collective_gb_per_s and collective_latency_ns in the model, or in "
                          "`changes` of [sim]",
                          "sim: a collective has no cost on the GPU '%.60s'", model->name);
}

// All of them.

static weir_status describe(const struct weir_link *link, const struct weir_operation *operation,
                            struct sim_work *work)
{
    const struct weir_operation *o = operation;
    if (o->flags & WEIR_OPERATION_EMPTY) { // a node that is disabled
        work->kind = SIM_MARK;
        return WEIR_OK;
    }
    switch (o->kind) {
    case WEIR_OPERATION_COPY:
    case WEIR_OPERATION_FILL:
        return describe_transfer(link, work, &o->u.box);
    case WEIR_OPERATION_LAUNCH:
        return describe_launch(link, o, work);
    case WEIR_OPERATION_COLLECTIVE:
        return describe_collective(link, o, work);
    case WEIR_OPERATION_HOST_CALL:
        work->kind = SIM_HOST;
        return WEIR_OK;
    case WEIR_OPERATION_RECORD:
    case WEIR_OPERATION_WAIT:
    case WEIR_OPERATION_NOTE: // of a graph
        work->kind = SIM_MARK;
        return WEIR_OK;
    default:
        return weir_host_fail(
            link->host, WEIR_ERROR_UNSUPPORTED, "leave out the plugin sim for this program",
            "sim cannot tell how long the caller's own work takes, nor operations "
            "of kind %d",
            (int)o->kind);
    }
}

// Records of a queue, for waits and for the program's own times.

static struct sim_record *record_at(const struct sim_virtual_queue *queue, uint64_t number)
{
    return &queue->records[number & (queue->record_room - 1)];
}

// Those that are complete, but for the last ones.
static void drop_old(struct sim_virtual_queue *queue, uint64_t keep)
{
    while (queue->next_record - queue->first_record > keep &&
           record_at(queue, queue->first_record)->complete)
        queue->first_record++;
}

struct sim_record *sim_record_find(const struct sim_virtual_queue *queue, uint64_t sequence)
{
    uint64_t first = queue->first_record;
    uint64_t end = queue->next_record;
    while (first < end) {
        const uint64_t middle = first + (end - first) / 2;
        if (record_at(queue, middle)->sequence < sequence)
            first = middle + 1;
        else
            end = middle;
    }
    if (first == queue->next_record || record_at(queue, first)->sequence != sequence)
        return NULL;
    return record_at(queue, first);
}

// Times of operations, for the links before this one. If there is no memory for more of them, the oldest are dropped.

static void keep_time(struct sim_virtual_queue *queue, uint64_t sequence, uint64_t start_ns,
                      uint64_t end_ns)
{
    if (!queue->keeps_times)
        return;
    if (queue->kept - queue->fetched == queue->time_room &&
        (queue->time_room == SIM_TIMES_MOST ||
         !sim_ring_grow(&queue->times, &queue->time_room, 64, sizeof *queue->times, queue->fetched,
                        queue->kept))) {
        if (queue->time_room == 0)
            return;
        queue->fetched++;
    }
    queue->times[queue->kept++ & (queue->time_room - 1)] =
        (struct weir_operation_time){.sequence = sequence, .start_ns = start_ns, .end_ns = end_ns};
}

static void end_record(struct sim_virtual_queue *queue, uint64_t sequence, uint64_t end_ns)
{
    struct sim_record *record = sim_record_find(queue, sequence);
    if (!record)
        return;
    record->end_ns = end_ns;
    record->complete = true;
    drop_old(queue, SIM_HISTORY);
}

static void end_graph(struct sim_virtual_queue *queue, uint64_t sequence, uint64_t end_ns)
{
    end_record(queue, sequence, end_ns);
    if (queue->graph_start_ns != UINT64_MAX)
        keep_time(queue, sequence, queue->graph_start_ns, end_ns);
    queue->graph_start_ns = UINT64_MAX;
}

void sim_record_done(const struct sim_done *done)
{
    struct sim_virtual_queue *queue = done->owner;
    const uint64_t sequence = done->tag >> SIM_TAG_BITS;
    if (!queue)
        return; // of a device that was lost
    queue->end_ns = done->end_ns;
    switch ((enum sim_tag)(done->tag & ((1u << SIM_TAG_BITS) - 1))) {
    case SIM_TAG_RECORD:
        end_record(queue, sequence, done->end_ns);
        break;
    case SIM_TAG_TIMED:
        keep_time(queue, sequence, done->start_ns, done->end_ns);
        break;
    case SIM_TAG_PART:
        if (done->start_ns < queue->graph_start_ns)
            queue->graph_start_ns = done->start_ns;
        break;
    case SIM_TAG_GRAPH_END:
        end_graph(queue, sequence, done->end_ns);
        break;
    default:
        break;
    }
}

weir_status sim_queue_times(const struct weir_link *link, weir_queue *object,
                            struct weir_operation_time *times, size_t time_size, size_t capacity,
                            size_t *out_count)
{
    struct sim_virtual_queue *queue = sim_queue_of(link, object);
    struct sim *sim = queue->sim;
    *out_count = 0;
    pthread_mutex_lock(&sim->lock);
    for (; queue->fetched < queue->kept && *out_count < capacity; queue->fetched++)
        weir_write((char *)times + (*out_count)++ * time_size, time_size,
                   &queue->times[queue->fetched & (queue->time_room - 1)], sizeof *queue->times);
    pthread_mutex_unlock(&sim->lock);
    return WEIR_OK;
}

// Placing.

bool sim_lane_add(struct sim_virtual_queue *queue)
{
    uint32_t *lanes = realloc(queue->lanes, (queue->lane_count + 1) * sizeof *lanes);
    if (!lanes)
        return false;
    queue->lanes = lanes;
    const bool added =
        sim_engine_add_queue(queue->sim->engine, &queue->params, &lanes[queue->lane_count]);
    queue->lane_count += added;
    return added;
}

// The last operation of the lane.
static struct sim_point last_of(const struct sim_virtual_queue *queue, uint32_t lane)
{
    return sim_engine_last(queue->sim->engine, queue->lanes[lane]);
}

// So many operations are posted before a submit lets the engine go on: of several threads one may be at an earlier
// time, also one that has not called yet.
#define POSTED_MANY 1024
#define POSTED_MOST 65536

static weir_status place(struct sim_virtual_queue *queue, uint32_t lane,
                         const struct sim_work *work)
{
    struct sim *sim = queue->sim;
    struct sim_point point;
    struct sim_work varied = *work;
    // It reads the memory of another device than its queue's.
    varied.pulls = work->kind == SIM_PEER && work->device != queue->params.device;
    varied.bytes = sim_vary(&sim->jitter, work->bytes);
    if (varied.bytes >= SIM_BYTES_MOST)
        varied.bytes = SIM_BYTES_MOST - 1;
    varied.duration_ns = sim_vary(&sim->jitter, work->duration_ns);
    if (!sim_engine_post(sim->engine, queue->lanes[lane], sim_now_ns(), &varied, &point))
        return weir_host_no_memory(sim->link->host, "an operation in virtual time");
    if (sim_engine_posted(sim->engine) > (sim->is_shared ? POSTED_MOST : POSTED_MANY))
        sim_engine_advance(sim->engine, sim_now_ns());
    return WEIR_OK;
}

// The record is there before it can be complete.
static weir_status place_record(struct sim_virtual_queue *queue, const struct sim_work *work)
{
    drop_old(queue, SIM_HISTORY - 1);
    if (queue->next_record - queue->first_record >= queue->record_room &&
        !sim_ring_grow(&queue->records, &queue->record_room, SIM_HISTORY, sizeof *queue->records,
                       queue->first_record, queue->next_record))
        return weir_host_no_memory(queue->sim->link->host, "a record in virtual time");
    *record_at(queue, queue->next_record++) =
        (struct sim_record){.sequence = work->tag >> SIM_TAG_BITS,
                            .point = {queue->lanes[0], last_of(queue, 0).number + 1},
                            .submit_ns = sim_now_ns()};
    const weir_status status = place(queue, 0, work);
    if (status < 0)
        queue->next_record--;
    return status;
}

// Graphs: one submit by the host, and each node in a queue of its branch. The launch is complete when all
// nodes are.

static const struct weir_graph_node *node_at(const struct weir_operation *launch, uint32_t index)
{
    return weir_graph_node_at(launch->u.graph.nodes, index);
}

// Room for a point of each node, each dependency of one, and each branch.
static bool reserve_graph(struct sim_virtual_queue *queue, const struct weir_operation *launch)
{
    const size_t count = launch->u.graph.node_count;
    while (queue->lane_count < launch->u.graph.branch_count)
        if (!sim_lane_add(queue))
            return false;
    size_t most = queue->lane_count;
    for (uint32_t i = 0; i < count; i++)
        if (node_at(launch, i)->dependency_count > most)
            most = node_at(launch, i)->dependency_count;
    if (count + most <= queue->point_room)
        return true;
    struct sim_point *points = realloc(queue->points, (count + most) * sizeof *points);
    if (!points)
        return false;
    queue->points = points;
    queue->point_room = count + most;
    return true;
}

// A time without work. Nothing is placed for none.
static weir_status place_pause(struct sim_virtual_queue *queue, const struct weir_operation *launch,
                               uint64_t ns, size_t wait_count)
{
    struct sim_work work = {.kind = SIM_PAUSE,
                            .duration_ns = ns,
                            .waits = queue->points + launch->u.graph.node_count,
                            .wait_count = wait_count,
                            .tag = launch->sequence << SIM_TAG_BITS | SIM_TAG_OTHER};
    return ns ? place(queue, 0, &work) : WEIR_OK;
}

// A backend without graphs times the nodes.
static enum sim_tag node_tag_of(const struct sim *sim, const struct weir_operation *node)
{
    if (node->flags & WEIR_OPERATION_EMPTY)
        return SIM_TAG_OTHER;
    if (sim->graphs)
        return SIM_TAG_PART;
    return node->kind == WEIR_OPERATION_HOST_CALL ? SIM_TAG_OTHER : SIM_TAG_TIMED;
}

static weir_status place_node(const struct weir_link *link, struct sim_virtual_queue *queue,
                              const struct weir_operation *launch, uint32_t index,
                              struct sim_point before)
{
    const struct weir_graph_node *node = node_at(launch, index);
    struct sim_point *waits = queue->points + launch->u.graph.node_count;
    const enum sim_tag tag = node_tag_of(queue->sim, node->operation);
    struct sim_work work = {.waits = waits, .tag = launch->sequence << SIM_TAG_BITS | tag};
    for (uint32_t i = 0; i < node->dependency_count; i++)
        waits[i] = queue->points[node->dependencies[i]];
    work.wait_count = node->dependency_count;
    work.node = true;
    work.first = work.wait_count == 0;
    if (work.first)
        waits[work.wait_count++] = before;
    weir_status status = describe(link, node->operation, &work);
    if (status == WEIR_OK)
        status = place(queue, node->branch, &work);
    queue->points[index] = last_of(queue, node->branch);
    return status;
}

// Waits for the last nodes of all branches.
static weir_status place_end(struct sim_virtual_queue *queue, const struct weir_operation *launch,
                             uint32_t branches)
{
    struct sim_point *waits = queue->points + launch->u.graph.node_count;
    struct sim_work work = {.kind = SIM_MARK,
                            .tag = launch->sequence << SIM_TAG_BITS | SIM_TAG_GRAPH_END};
    for (uint32_t lane = 1; lane < branches; lane++)
        waits[lane - 1] = last_of(queue, lane);
    const uint64_t join_ns = branches > 1 ? queue->sim->model->graph_ns : 0;
    const weir_status status = place_pause(queue, launch, join_ns, branches - 1);
    if (status < 0)
        return status;
    work.waits = waits;
    work.wait_count = branches - 1;
    return place_record(queue, &work);
}

static uint64_t submit_graph_ns(const struct sim_model *model, uint32_t branches)
{
    const uint64_t ns =
        model->submit_graph_ns ? model->submit_graph_ns : model->submit_ns[SIM_KERNEL];
    return ns + (branches - 1) * model->submit_branch_ns;
}

static weir_status graph_place(const struct weir_link *link, struct sim_virtual_queue *queue,
                               const struct weir_operation *launch)
{
    const struct sim_model *model = queue->sim->model;
    const uint32_t nodes = launch->u.graph.node_count;
    const uint32_t branches = launch->u.graph.branch_count;
    weir_status status = WEIR_OK;
    for (uint32_t i = 0; i < nodes && status == WEIR_OK; i++) { // all of them have costs
        struct sim_work work = {0};
        status = describe(link, node_at(launch, i)->operation, &work);
    }
    if (status < 0)
        return status;
    if (!reserve_graph(queue, launch))
        return weir_host_no_memory(link->host, "a graph in virtual time");
    sim_submit_for(queue, submit_graph_ns(model, branches));
    status = place_pause(queue, launch, nodes > 1 ? model->graph_ns : 0, 0);
    const struct sim_point before = last_of(queue, 0);
    for (uint32_t i = 0; i < nodes && status == WEIR_OK; i++)
        status = place_node(link, queue, launch, i, before);
    return status == WEIR_OK ? place_end(queue, launch, branches) : status;
}

// Submitting.

// The point that a wait names; {0, 0} if it is complete. A wait comes after the record, of whichever
// thread.
static struct sim_point awaited(const struct weir_link *link,
                                const struct weir_operation *operation)
{
    const struct sim_virtual_queue *producer = sim_queue_of(link, operation->u.wait.producer);
    const struct sim_record *record = sim_record_find(producer, operation->u.wait.event.sequence);
    if (!record)
        return (struct sim_point){0};
    sim_wait_until(record->submit_ns);
    return record->point;
}

// With the lock held.
static weir_status place_operation(const struct weir_link *link, struct sim_virtual_queue *queue,
                                   const struct weir_operation *operation)
{
    const bool records = operation->kind == WEIR_OPERATION_RECORD;
    const bool waits = operation->kind == WEIR_OPERATION_WAIT;
    struct sim_work work = {0};
    struct sim_point wait = {0};
    if (operation->kind == WEIR_OPERATION_GRAPH)
        return graph_place(link, queue, operation);
    const weir_status status = describe(link, operation, &work);
    if (status < 0)
        return status;
    if (waits) {
        wait = awaited(link, operation);
        work.waits = &wait;
        work.wait_count = 1;
    }
    sim_submit_for(queue, queue->sim->model->submit_ns[work.kind]);
    work.tag = operation->sequence << SIM_TAG_BITS | (records ? SIM_TAG_RECORD
                                                      : waits ? SIM_TAG_OTHER
                                                              : SIM_TAG_TIMED);
    return records ? place_record(queue, &work) : place(queue, 0, &work);
}

weir_status sim_queue_submit(const struct weir_link *link, weir_queue *object,
                             const struct weir_operation *operation)
{
    struct sim_virtual_queue *queue = sim_queue_of(link, object);
    struct sim *sim = queue->sim;
    bool ran = false;
    sim_enter(sim);
    weir_status status = WEIR_OK;
    if (is_placed(operation)) {
        status = scale_launch(link, object, operation, &ran);
        status = status == WEIR_OK ? place_operation(link, queue, operation) : status;
    }
    if (status == WEIR_OK && !ran) {
        pthread_mutex_unlock(&sim->lock);
        status = link->next->ops->queue_submit(link->next, object, operation);
        pthread_mutex_lock(&sim->lock);
    }
    pthread_mutex_unlock(&sim->lock);
    return status;
}
