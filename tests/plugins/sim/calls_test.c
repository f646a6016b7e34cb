// Random programs of the public API on random GPUs, with queues of priorities, host calls, copies between
// two devices and graphs, each of which is launched several times: the times in their traces are those of
// the slow simulation, to the nanosecond. What docs/sim.md says of submits, waits and graphs is written here a
// second time; nothing is shared with the plugin.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/conformance/conformance.h"
#include "tests/plugins/rig.h"
#include "tests/plugins/sim/job.h"
#include "tests/plugins/sim/program.h"

#define CALLS_FILE "calls" // of all lines

enum {
    CALLS_STREAMS = 40,
    CALLS_GRAPHS = 3,
    CALLS_NODES = 8,
    CALLS_BRANCHES = 3,
    CALLS_LINES = 128,
    CALLS_DEVICES = 2,
};

// An operation, in a graph or not.
struct calls_work {
    enum sim_kind kind; // SIM_D2D: a copy or a fill
    bool fills;
    bool pulls;
    uint64_t length;
    uint32_t blocks; // of a kernel
};

struct calls_node {
    struct calls_work work;
    uint32_t branch;
    uint32_t after; // all nodes that come before it, as bits
    uint32_t needs; // those of them that none of the others come after
};

struct calls_graph {
    weir_graph *object;
    uint32_t device;
    struct calls_node nodes[CALLS_NODES];
    uint32_t node_count;
    uint32_t branch_count;
    int stream; // of the launch before; -1: none
    int end;    // the step that completes it
};

struct calls_stream {
    weir_queue *object;
    uint32_t device;
    uint32_t queues[CALLS_BRANCHES]; // of the program: its own, and one for each branch
    uint32_t queue_count;
    int last[CALLS_BRANCHES];   // steps; -1: none
    int covered[CALLS_STREAMS]; // the step of each other one after which it comes by a wait
};

// What the host takes.
struct calls_costs {
    uint64_t kernel_ns, copy_ns, mark_ns, graph_ns, branch_ns, wait_ns;
    uint64_t pause_ns; // of a graph
};

struct calls {
    struct rig rig;
    weir_device *device[CALLS_DEVICES];
    weir_kernel *kernel[CALLS_DEVICES];
    weir_program *other_program;
    weir_buffer *host[CALLS_DEVICES];
    weir_buffer *memory[CALLS_DEVICES];
    struct sim_model model;
    struct calls_costs costs;
    uint32_t threads; // of a multiprocessor, each of which is one of the model's places
    struct calls_stream streams[CALLS_STREAMS];
    uint32_t stream_count;
    struct calls_graph graphs[CALLS_GRAPHS];
    bool waits;       // of the host; else graphs are launched in any queue
    uint64_t host_ns; // until the next submit
    int host_wait;    // the step that the host waits for before it; -1: none
    struct program program;
    int line;                       // of the next operation
    int step_of[CALLS_LINES];       // each line's, or of a launch the one before its first node
    uint32_t graph_of[CALLS_LINES]; // of a launch 1 and the graph's number, else 0
};

enum {
    HALF = RIG_BYTES / 2,
    ROOM = 16,  // bytes that are an operation's own
    ITEMS = 64, // of a block
};

static uint64_t seed;

static uint64_t up_to(uint64_t most)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % (most + 1);
}

// The GPU.

struct text {
    char text[2048];
    size_t length;
};

static void say(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    text->length += (size_t)vsnprintf(text->text + text->length, sizeof text->text - text->length,
                                      format, arguments);
    va_end(arguments);
}

static uint64_t pick(struct text *text, const char *key, uint64_t value)
{
    say(text, "%s = %llu\n", key, (unsigned long long)value);
    return value;
}

static uint64_t maybe(struct text *text, const char *key, uint64_t most)
{
    return pick(text, key, up_to(1) ? 0 : up_to(most));
}

static uint64_t pick_rate(struct text *text, const char *way, const char *key, uint64_t percent)
{
    say(text, "%s%s = 0.%02llu\n", way, key, (unsigned long long)percent);
    return percent * 10000000;
}

static void pick_both(struct text *text, const char *way, struct sim_link *link, uint64_t rate)
{
    if (up_to(1))
        link->both_bytes_per_s = pick_rate(text, way, "_both_gb_per_s", rate - up_to(20));
}

static void pick_copies(struct text *text, struct sim_model *model)
{
    static const char *const ways[] = {"h2d", "d2h", "d2d", "peer"};
    const uint64_t latency_ns = pick(text, "copy_latency_ns", up_to(3));
    for (int i = 0; i < 4; i++) {
        struct sim_link *link = &model->copies[SIM_H2D + i];
        const uint64_t rate = 40 + up_to(50);
        link->bytes_per_s = pick_rate(text, ways[i], "_gb_per_s", rate);
        link->latency_ns = latency_ns;
        if (i < 2)
            pick_both(text, ways[i], link, rate);
    }
    if (up_to(1))
        model->copies[SIM_H2D].both_latency_ns = model->copies[SIM_D2H].both_latency_ns =
            pick(text, "copy_both_latency_ns", latency_ns + up_to(3));
    model->pull_latency_ns = maybe(text, "pull_latency_ns", 5);
}

static void pick_engines(struct text *text, struct calls *calls)
{
    static const uint32_t channels[] = {0, 1, 2, 3, 8, 32};
    struct sim_model *model = &calls->model;
    const bool stream = up_to(2) > 0;
    say(text, "queues = %s\n", stream ? "stream" : "engine");
    model->queues = stream ? SIM_STREAM_QUEUES : SIM_ENGINE_QUEUES;
    model->late_signals = pick(text, "late_signals", !stream && up_to(1));
    model->channels =
        (uint32_t)pick(text, "channels", channels[up_to(sizeof channels / sizeof *channels - 1)]);
    model->copy_engines = (uint32_t)pick(text, "copy_engines", 1 + up_to(2));
    model->copy_channels = (uint32_t)maybe(text, "copy_channels", 4);
    model->kernels = (uint32_t)pick(text, "kernels", 1 + up_to(5));
    pick(text, "multiprocessors", model->kernels);
    calls->threads = (uint32_t)pick(text, "threads_per_multiprocessor", up_to(1) * ITEMS);
    say(text, "greatest_priority = -3\n");
    pick_copies(text, model);
    model->signal_ns = maybe(text, "signal_ns", 4);
    model->kernel_gap_ns = maybe(text, "kernel_gap_ns", 4);
    model->host_call_ns = pick(text, "host_call_ns", up_to(4));
}

static void pick_costs(struct text *text, struct calls_costs *costs)
{
    costs->kernel_ns = pick(text, "submit_kernel_ns", up_to(3));
    costs->copy_ns = pick(text, "submit_copy_ns", up_to(3));
    costs->mark_ns = pick(text, "submit_mark_ns", up_to(1));
    costs->graph_ns = maybe(text, "submit_graph_ns", 5);
    costs->branch_ns = maybe(text, "submit_branch_ns", 2);
    costs->pause_ns = maybe(text, "graph_ns", 4);
    costs->wait_ns = pick(text, "wait_ns", up_to(4));
}

static const char *pick_gpu(struct calls *calls)
{
    struct text text = {.length = 0};
    say(&text, "[gpu]\nname = random\n");
    pick_engines(&text, calls);
    pick_costs(&text, &calls->costs);
    // An argument tells how long a kernel takes.
    say(&text, "[kernel spin]\nper_argument_2_ns = 1\n");
    return job_file("random.ini", text.text);
}

// Objects.

static bool open_other(struct calls *calls)
{
    struct weir_bundle bundle = conformance_kernels;
    const struct weir_device_params device = {.struct_size = sizeof device, .select = "1"};
    const struct weir_program_params program = {.struct_size = sizeof program, .bundle = &bundle};
    struct weir_buffer_params buffer = {.struct_size = sizeof buffer, .size = RIG_BYTES};
    bool fine = weir_device_open(calls->rig.runtime, &device, &calls->device[1]) == WEIR_OK &&
                weir_buffer_create(calls->device[1], &buffer, &calls->memory[1]) == WEIR_OK;
    buffer.placement = WEIR_PLACE_HOST;
    fine = fine && weir_buffer_create(calls->device[1], &buffer, &calls->host[1]) == WEIR_OK;
    fine = fine &&
           weir_program_create(calls->device[1], &program, &calls->other_program) == WEIR_OK &&
           weir_kernel_create(calls->other_program, "spin", &calls->kernel[1]) == WEIR_OK;
    calls->device[0] = calls->rig.device;
    calls->kernel[0] = calls->rig.kernel;
    calls->host[0] = calls->rig.frame;
    calls->memory[0] = calls->rig.memory;
    return fine && weir_device_can_peer(calls->device[0], calls->device[1]);
}

static uint32_t add_queue(struct program *program, uint32_t device, int32_t priority)
{
    program->queues[program->queue_count] =
        (struct sim_queue_params){.device = device, .priority = priority};
    return program->queue_count++;
}

static bool add_stream(struct calls *calls)
{
    struct calls_stream *stream = &calls->streams[calls->stream_count++];
    const int32_t priority = up_to(2) ? 0 : (int32_t)up_to(3);
    const struct weir_queue_params params = {.struct_size = sizeof params, .priority = priority};
    stream->device = (uint32_t)up_to(CALLS_DEVICES - 1);
    stream->queues[stream->queue_count++] = add_queue(&calls->program, stream->device, -priority);
    for (int i = 0; i < CALLS_BRANCHES; i++)
        stream->last[i] = -1;
    for (int i = 0; i < CALLS_STREAMS; i++)
        stream->covered[i] = -1;
    return weir_queue_create(calls->device[stream->device], &params, &stream->object) == WEIR_OK;
}

static bool calls_start(struct calls *calls, uint64_t from, const char *trace, const char *plugins)
{
    char section[1024];
    seed = from;
    *calls = (struct calls){.host_wait = -1, .waits = up_to(1)};
    snprintf(section, sizeof section, "[sim]\nhost = fixed\ngpu = %s\n", pick_gpu(calls));
    if (!rig_start_with(&calls->rig, trace, section, plugins))
        return false;
    bool fine = open_other(calls);
    calls->program.device_count = CALLS_DEVICES;
    calls->program.models[0] = calls->program.models[1] = &calls->model;
    add_queue(&calls->program, 0, 0); // the rig's two
    add_queue(&calls->program, 0, 0);
    const uint64_t streams = 1 + up_to(up_to(3) ? 5 : CALLS_STREAMS - 1);
    for (uint64_t i = 0; i < streams && fine; i++)
        fine = add_stream(calls);
    for (int i = 0; i < CALLS_GRAPHS; i++)
        calls->graphs[i].stream = -1;
    EXPECT_TRUE(fine);
    return fine;
}

static void calls_finish(struct calls *calls)
{
    for (int i = 0; i < CALLS_GRAPHS; i++)
        weir_graph_destroy(&calls->graphs[i].object);
    for (uint32_t i = 0; i < calls->stream_count; i++)
        weir_queue_destroy(&calls->streams[i].object);
    weir_kernel_destroy(&calls->kernel[1]);
    weir_program_destroy(&calls->other_program);
    weir_buffer_destroy(&calls->host[1]);
    weir_buffer_destroy(&calls->memory[1]);
    EXPECT_OK(weir_device_close(&calls->device[1]));
    rig_finish(&calls->rig);
}

// Operations.

static weir_status do_nothing(void *user)
{
    return WEIR_OK;
}

static struct calls_work random_work(bool node)
{
    static const enum sim_kind kinds[] = {SIM_KERNEL, SIM_KERNEL, SIM_H2D, SIM_D2H,
                                          SIM_D2D,    SIM_HOST,   SIM_PEER};
    struct calls_work work = {.kind = kinds[up_to(node ? 5 : 6)], .length = 1 + up_to(11)};
    work.fills = work.kind == SIM_D2D && up_to(1);
    work.pulls = work.kind == SIM_PEER && up_to(1);
    if (work.kind == SIM_KERNEL)
        work.blocks = 1 + (uint32_t)up_to(7);
    return work;
}

// No two lines use the same bytes. (Kernels do not run.)
static weir_status call(const struct calls *calls, const struct calls_stream *stream,
                        const struct calls_work *work, int line)
{
    const uint32_t device = stream->device;
    weir_queue *queue = stream->object;
    weir_buffer *to = calls->memory[device], *from = to;
    const size_t size = work->length, at = ROOM * (size_t)line;
    if (work->kind == SIM_HOST)
        return weir_queue_host_call_at(queue, do_nothing, NULL, CALLS_FILE, line);
    if (work->fills)
        return weir_queue_fill_at(queue, to, at, size, "x", 1, CALLS_FILE, line);
    if (work->kind == SIM_KERNEL) {
        const struct weir_argument arguments[] = {weir_out(to, at, ROOM), weir__argument_u32(7),
                                                  weir__argument_u64(work->length)};
        return weir_queue_launch_at(queue, calls->kernel[device], weir_dim(work->blocks, 1, 1),
                                    weir_dim(ITEMS, 1, 1), arguments, 3, CALLS_FILE, line);
    }
    if (work->kind == SIM_H2D)
        from = calls->host[device];
    if (work->kind == SIM_D2H)
        to = calls->host[device];
    if (work->kind == SIM_PEER)
        *(work->pulls ? &from : &to) = calls->memory[1 - device];
    return weir_queue_copy_at(queue, to, at, from, HALF + at, size, CALLS_FILE, line);
}

// The same as steps. The host is busy with a submit before it is one.

static int add(struct calls *calls, struct calls_stream *stream, uint32_t branch,
               enum sim_kind kind, uint64_t length)
{
    const int index = add_step(&calls->program, stream->queues[branch], kind, length);
    struct step *step = &calls->program.steps[index];
    step->host_ns = calls->host_ns;
    step->host_wait = calls->host_wait;
    calls->host_ns = 0;
    calls->host_wait = -1;
    stream->last[branch] = index;
    return index;
}

static int add_work(struct calls *calls, struct calls_stream *stream, uint32_t branch,
                    const struct calls_work *work)
{
    const int index = add(calls, stream, branch, work->kind, work->length);
    struct step *step = &calls->program.steps[index];
    step->pulls = work->pulls;
    step->places = work->blocks;
    // Half of what a block takes, of a kernel of more blocks than the GPU holds.
    if (calls->threads && work->blocks > calls->model.kernels)
        step->yield_ns = 1 + work->length * calls->model.kernels / work->blocks / 2;
    return index;
}

static uint64_t cost_of(const struct calls_costs *costs, enum sim_kind kind)
{
    if (kind == SIM_KERNEL)
        return costs->kernel_ns;
    return kind == SIM_HOST ? costs->mark_ns : costs->copy_ns;
}

static void submit_work(struct calls *calls, struct calls_stream *stream, struct calls_work work)
{
    const int line = calls->line++;
    EXPECT_OK(call(calls, stream, &work, line));
    calls->host_ns += cost_of(&calls->costs, work.kind);
    calls->step_of[line] = add_work(calls, stream, 0, &work);
}

static int submit_record(struct calls *calls, struct calls_stream *stream,
                         struct weir_event *out_event)
{
    EXPECT_OK(weir_queue_record(stream->object, out_event));
    calls->host_ns += calls->costs.mark_ns;
    return add(calls, stream, 0, SIM_MARK, 0);
}

static void add_wait(struct calls *calls, struct calls_stream *stream, int producer, int step)
{
    calls->host_ns += calls->costs.mark_ns;
    calls->program.steps[add(calls, stream, 0, SIM_MARK, 0)].waits[0] = step;
    stream->covered[producer] = step;
}

// For a record that nothing else waits for: the library leaves out no such wait.
static void submit_wait(struct calls *calls, struct calls_stream *stream)
{
    const int producer = (int)up_to(calls->stream_count - 1);
    struct weir_event event;
    if (&calls->streams[producer] == stream)
        return;
    const int step = submit_record(calls, &calls->streams[producer], &event);
    EXPECT_OK(weir_queue_wait(stream->object, event));
    add_wait(calls, stream, producer, step);
}

static void submit_sync(struct calls *calls, struct calls_stream *stream)
{
    struct weir_event event;
    const int step = submit_record(calls, stream, &event);
    EXPECT_OK(weir_event_sync(event, WEIR_FOREVER));
    calls->host_wait = step;
    calls->host_ns = calls->costs.wait_ns;
}

// Graphs.

struct capture {
    struct calls_graph *graph;
    struct calls_stream *streams[CALLS_BRANCHES];
    uint32_t after[CALLS_BRANCHES]; // nodes, as bits
    uint32_t count;
};

static void capture_node(struct calls *calls, struct capture *capture, uint32_t branch)
{
    struct calls_graph *graph = capture->graph;
    const uint32_t index = graph->node_count++;
    struct calls_node *node = &graph->nodes[index];
    *node = (struct calls_node){.work = random_work(true),
                                .branch = branch,
                                .after = capture->after[branch],
                                .needs = capture->after[branch]};
    for (uint32_t i = 0; i < index; i++)
        if (node->after >> i & 1)
            node->needs &= ~graph->nodes[i].after;
    capture->after[branch] |= 1u << index;
    if (branch >= graph->branch_count)
        graph->branch_count = branch + 1;
    const int line = CALLS_LINES + (int)(graph - calls->graphs) * CALLS_NODES + (int)index;
    EXPECT_OK(call(calls, capture->streams[branch], &node->work, line));
}

static void capture_wait(struct capture *capture, uint32_t branch, uint32_t before)
{
    struct weir_event event;
    EXPECT_OK(weir_queue_record(capture->streams[before]->object, &event));
    EXPECT_OK(weir_queue_wait(capture->streams[branch]->object, event));
    capture->after[branch] |= capture->after[before];
}

// Another stream of the device, if there is one.
static void fork_branch(struct calls *calls, struct capture *capture)
{
    struct calls_stream *stream = &calls->streams[up_to(calls->stream_count - 1)];
    if (stream->device != capture->graph->device || capture->count == CALLS_BRANCHES)
        return;
    for (uint32_t i = 0; i < capture->count; i++)
        if (capture->streams[i] == stream)
            return;
    capture->streams[capture->count++] = stream;
    capture_wait(capture, capture->count - 1, (uint32_t)up_to(capture->count - 2));
}

static void make_graph(struct calls *calls, struct calls_graph *graph)
{
    struct calls_stream *first = &calls->streams[up_to(calls->stream_count - 1)];
    struct capture capture = {.graph = graph, .streams = {first}, .count = 1};
    const uint64_t most = 1 + up_to(CALLS_NODES - 1);
    graph->device = first->device;
    EXPECT_OK(weir_capture_begin(first->object));
    while (graph->node_count < most) {
        const uint32_t branch = (uint32_t)up_to(capture.count - 1);
        const uint32_t other = (uint32_t)up_to(capture.count - 1);
        if (up_to(2) == 0)
            fork_branch(calls, &capture);
        else if (up_to(3) == 0 && branch != other)
            capture_wait(&capture, branch, other);
        else
            capture_node(calls, &capture, branch);
    }
    for (uint32_t i = 1; i < capture.count; i++)
        capture_wait(&capture, 0, i);
    EXPECT_OK(weir_capture_end(first->object, NULL, &graph->object));
}

static void add_nodes(struct calls *calls, struct calls_stream *stream,
                      const struct calls_graph *graph, int before)
{
    const int first = calls->program.step_count;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct calls_node *node = &graph->nodes[i];
        const int index = add_work(calls, stream, node->branch, &node->work);
        struct step *step = &calls->program.steps[index];
        int count = 0;
        step->node = true;
        step->first = node->needs == 0;
        for (uint32_t k = 0; k < i; k++)
            if (node->needs >> k & 1)
                step->waits[count++] = first + (int)k;
        if (step->first)
            step->waits[0] = before;
    }
}

static int add_join(struct calls *calls, struct calls_stream *stream, uint32_t branches,
                    enum sim_kind kind, uint64_t length)
{
    const int index = add(calls, stream, 0, kind, length);
    for (uint32_t i = 1; i < branches; i++)
        calls->program.steps[index].waits[i - 1] = stream->last[i];
    return index;
}

static void add_launch(struct calls *calls, struct calls_stream *stream, struct calls_graph *graph,
                       int line)
{
    const struct calls_costs *costs = &calls->costs;
    const uint32_t branches = graph->branch_count;
    const int32_t priority = calls->program.queues[stream->queues[0]].priority;
    while (stream->queue_count < branches)
        stream->queues[stream->queue_count++] =
            add_queue(&calls->program, stream->device, priority);
    calls->host_ns +=
        (costs->graph_ns ? costs->graph_ns : costs->kernel_ns) + (branches - 1) * costs->branch_ns;
    if (graph->node_count > 1 && costs->pause_ns)
        add(calls, stream, 0, SIM_PAUSE, costs->pause_ns);
    calls->step_of[line] = calls->program.step_count - 1;
    add_nodes(calls, stream, graph, stream->last[0]);
    if (branches > 1 && costs->pause_ns)
        add_join(calls, stream, branches, SIM_PAUSE, costs->pause_ns);
    graph->end = add_join(calls, stream, branches, SIM_MARK, 0);
}

// Launches of one graph follow each other, in different queues too. (Whether that takes a wait depends on
// what the host has waited for, so such a program does not wait.)
static void submit_graph(struct calls *calls, int index)
{
    const uint32_t number = (uint32_t)up_to(CALLS_GRAPHS - 1);
    struct calls_graph *graph = &calls->graphs[number];
    if (!graph->object)
        make_graph(calls, graph);
    if (calls->waits && graph->stream >= 0)
        index = graph->stream;
    struct calls_stream *stream = &calls->streams[index];
    if (stream->device != graph->device || calls->program.queue_count + CALLS_BRANCHES > QUEUES)
        return;
    const int line = calls->line++;
    calls->graph_of[line] = number + 1;
    EXPECT_OK(weir_queue_graph_at(stream->object, graph->object, CALLS_FILE, line));
    if (graph->stream >= 0 && graph->stream != index && stream->covered[graph->stream] < graph->end)
        add_wait(calls, stream, graph->stream, graph->end);
    add_launch(calls, stream, graph, line);
    graph->stream = index;
}

static void calls_run(struct calls *calls, int operations)
{
    const struct calls_work first = {.kind = SIM_H2D, .length = 4};
    submit_work(calls, &calls->streams[0], first);
    for (int i = 0; i < operations && calls->program.step_count < STEPS - 16; i++) {
        const int index = (int)up_to(calls->stream_count - 1);
        const uint64_t way = up_to(15);
        if (way < 3)
            submit_wait(calls, &calls->streams[index]);
        else if (way < 5)
            submit_graph(calls, index);
        else if (way == 5 && calls->waits && calls->host_wait < 0)
            submit_sync(calls, &calls->streams[index]);
        else
            submit_work(calls, &calls->streams[index], random_work(false));
    }
    for (uint32_t i = 0; i < calls->stream_count; i++)
        EXPECT_OK(weir_queue_sync(calls->streams[i].object, WEIR_FOREVER));
}

static bool is_timed(const struct step *step)
{
    return step->kind != SIM_MARK && step->kind != SIM_PAUSE && step->kind != SIM_HOST;
}

// When a line's operation ran, or the nodes of its launch that have times, of which the trace has the first
// start and the last end. False: none has.
static bool expected(const struct calls *calls, int line, struct slot *out_slot)
{
    const uint32_t graph = calls->graph_of[line];
    const int first = calls->step_of[line] + (graph > 0);
    const int count = graph > 0 ? (int)calls->graphs[graph - 1].node_count : 1;
    *out_slot = (struct slot){UINT64_MAX, 0};
    for (int i = first; i < first + count; i++) {
        const struct slot *slot = &calls->program.slots[i];
        if (!is_timed(&calls->program.steps[i]))
            continue;
        if (slot->start_ns < out_slot->start_ns)
            out_slot->start_ns = slot->start_ns;
        if (slot->end_ns > out_slot->end_ns)
            out_slot->end_ns = slot->end_ns;
    }
    return out_slot->start_ns != UINT64_MAX;
}

static int count_timed(const struct calls *calls)
{
    struct slot slot;
    int count = 0;
    for (int line = 0; line < calls->line; line++)
        count += expected(calls, line, &slot);
    return count;
}

// What the trace says, from the beginning of the first operation on. Returns how many differ.
static int count_different(const struct calls *calls, const struct weir_trace *trace)
{
    uint64_t base_ns = 0;
    int compared = 0, different = 0;
    for (size_t i = 0; i < trace->operation_count; i++)
        if (trace->operations[i].line == 0)
            base_ns = trace->operations[i].start_ns - calls->program.slots[0].start_ns;
    for (size_t i = 0; i < trace->operation_count; i++) {
        const struct weir_trace_operation *operation = &trace->operations[i];
        struct slot slot;
        if (!expected(calls, operation->line, &slot))
            continue;
        compared++;
        different += !operation->timed || operation->start_ns - base_ns != slot.start_ns ||
                     operation->end_ns - base_ns != slot.end_ns;
    }
    EXPECT_INT_EQ(compared, count_timed(calls));
    return different;
}

static void run(uint64_t from, int operations)
{
    static struct calls calls;
    const char *path = job_trace();
    if (!calls_start(&calls, from, path, "trace, sim"))
        return;
    calls_run(&calls, operations);
    run_oracle(&calls.program);
    calls_finish(&calls);
    own_trace trace = rig_read(path);
    if (trace && count_different(&calls, trace) > 0)
        WEIR_FAIL("program %llu differs", (unsigned long long)from);
}

WEIR_TEST(Calls, RandomPrograms)
{
    const char *count = getenv("SIM_PROGRAMS");
    const uint64_t programs = count ? strtoull(count, NULL, 10) : 60;
    for (uint64_t i = 1; i <= programs; i++)
        run(i, 10 + (int)(i % 60));
}
