// See the header.
#include "tests/races/fuzz/steps.h"

void step_sync(struct run *run)
{
    const int queue = pick_queue(run, run->step[1]);
    open_gate(run);
    SAY(run, "sync q%d", queue);
    ok(run, weir_queue_sync_at(run->queues[queue], WEIR_FOREVER, FILE_NAME, line(run)));
    note_sync(run, queue);
}

void step_sync_event(struct run *run)
{
    const struct event *a = &run->events[run->step[1] % EVENTS];
    const struct event *b = &run->events[run->step[2] % EVENTS];
    const struct weir_event both[] = {a->event, b->event};
    size_t which = 0;

    if (a->node < 0 || b->node < 0)
        return;
    open_gate(run);
    SAY(run, "sync of e%d and e%d, way %d", run->step[1] % EVENTS, run->step[2] % EVENTS,
        run->step[3] % 4);
    switch (run->step[3] % 4) {
    case 0:
        ok(run, weir_event_sync_at(a->event, WEIR_FOREVER, FILE_NAME, line(run)));
        oracle_host_knows(run->oracle, a->node);
        break;
    case 1:
        ok(run, weir_event_sync_any_at(both, 2, WEIR_FOREVER, &which, FILE_NAME, line(run)));
        oracle_host_knows(run->oracle, which == 0 ? a->node : b->node);
        break;
    case 2:
        ok(run, weir_event_sync_all_at(both, 2, WEIR_FOREVER, FILE_NAME, line(run)));
        oracle_host_knows(run->oracle, a->node);
        oracle_host_knows(run->oracle, b->node);
        break;
    default:
        if (weir_event_query_at(a->event, FILE_NAME, line(run)) == WEIR_OK)
            oracle_host_knows(run->oracle, a->node);
        break;
    }
}

// The host.

void step_host(struct run *run)
{
    const struct range range = pick_range(run, run->step[1], run->step[2], run->step[3]);
    const weir_access access = pick_access(run->step[4]);
    void *pointer;

    SAY(run, "host access %d of " RANGE "%s", (int)access, WORDS_OF(range),
        run->step[5] % 4 == 0 ? ", open" : "");
    ok(run, weir_host_begin_at(range.slot->buffer, range.offset, range.size, access, &pointer,
                               FILE_NAME, line(run)));
    const int node = oracle_add(run->oracle, ORACLE_HOST);
    use(run, node, range, access);
    if (run->step[5] % 4 == 0 && oracle_open(run->oracle, node))
        run->open[run->oracle->open_count - 1] =
            (struct open_access){*range.slot, range.offset, range.size, access};
    else
        ok(run, weir_host_end_at(range.slot->buffer, range.offset, range.size, access, FILE_NAME,
                                 line(run)));
}

void close_access(struct run *run, size_t which)
{
    const struct open_access *open = &run->open[which];
    SAY(run, "end of the access to b%u[%zu..%zu]", open->slot.id, open->offset,
        open->offset + open->size - 1);
    ok(run, weir_host_end_at(open->slot.buffer, open->offset, open->size, open->access, FILE_NAME,
                             line(run)));
    oracle_close(run->oracle, which);
    run->open[which] = run->open[run->oracle->open_count];
}

void step_host_end(struct run *run)
{
    if (run->oracle->open_count > 0)
        close_access(run, run->step[1] % run->oracle->open_count);
}

static weir_status access_in_call(void *user)
{
    struct call *call = user;
    void *pointer;
    const weir_status passed = gate_pass(&call->gate);
    if (call->mutex >= 0)
        take_and_give_mutex(call->mutex);
    call->status =
        weir_host_begin_at(call->range.slot->buffer, call->range.offset, call->range.size,
                           call->access, &pointer, FILE_NAME, call->line);
    if (call->status == WEIR_OK)
        call->status = weir_host_end_at(call->range.slot->buffer, call->range.offset,
                                        call->range.size, call->access, FILE_NAME, call->line);
    if (call->key >= 0)
        release_key(call->run, call->key);
    return passed;
}

// The function runs when the gate is opened: at once, or before the program waits next.
void step_host_call(struct run *run)
{
    struct call *call = &run->call;

    open_gate(run);
    *call = (struct call){.queue = pick_queue(run, run->step[1]),
                          .range = pick_range(run, run->step[2], run->step[3], run->step[4]),
                          .access = pick_access(run->step[5]),
                          .key = run->oracle->strict && run->step[6] & 2 ? run->step[7] % 2 : -1,
                          .mutex = -1,
                          .run = run};
    SAY(run, "q%d host call", call->queue);
    ok(run, weir_queue_host_call_at(run->queues[call->queue], access_in_call, call, FILE_NAME,
                                    line(run)));
    call->node = add(run, call->queue);
    call->pending = true;
    run->oracle->waiting_call = call->node;
    call->may_lock = run->ground->order == GROUND_LOCKS && run->step[6] & 4;
    if (run->step[6] & 1)
        open_gate(run);
}

// What the function learns is known to what its queue was given since, but was not when that was judged.
static bool may_lock(const struct run *run)
{
    const int queue = run->numbers[run->call.queue];
    return run->call.may_lock && queue != run->oracle->legacy &&
           run->oracle->last[queue] == run->call.node;
}

void open_gate(struct run *run)
{
    const bool locks = run->ground->order == GROUND_LOCKS;
    struct call *call = &run->call;

    if (!call->pending)
        return;
    call->pending = false;
    call->line = line(run);
    SAY(run, "the host call runs: access %d of " RANGE ", sync", (int)call->access,
        WORDS_OF(call->range));
    const int node = oracle_run_call(run->oracle, call->node);
    if (may_lock(run)) {
        call->mutex = 0;
        SAY(run, "in which it takes mutex 0 first");
        run->oracle->nodes[node].after |= run->oracle->keys[KEY_MUTEX];
        run->oracle->keys[KEY_MUTEX] |= UINT64_C(1) << node;
    }
    use(run, node, call->range, call->access);
    if (call->key >= 0) {
        SAY(run, "with a release of key %d", call->key);
        run->oracle->keys[locks ? KEY_SEMAPHORE + call->key : call->key] |= UINT64_C(1) << node;
    }
    gate_open(&call->gate);
    ok(run, weir_queue_sync_at(run->queues[call->queue], WEIR_FOREVER, FILE_NAME, line(run)));
    ok(run, call->status);
    const int record = add(run, call->queue);
    oracle_after(run->oracle, record, node);
    oracle_host_knows(run->oracle, record);
}

void step_transfer(struct run *run)
{
    const int queue = pick_queue(run, run->step[1]);
    const struct range range = pick_range(run, run->step[2], run->step[3], run->step[4]);
    const bool up = run->step[5] & 1;
    unsigned char bytes[ORACLE_BYTES] = {0};

    open_gate(run);
    SAY(run, "q%d %s " RANGE, queue, up ? "upload" : "download", WORDS_OF(range));
    if (up)
        ok(run, weir_upload_at(run->queues[queue], range.slot->buffer, range.offset, bytes,
                               range.size, FILE_NAME, line(run)));
    else
        ok(run, weir_download_at(run->queues[queue], bytes, range.slot->buffer, range.offset,
                                 range.size, FILE_NAME, line(run)));
    use(run, add(run, queue), range, up ? WEIR_ACCESS_WRITE : WEIR_ACCESS_READ);
    const int record = add(run, queue);
    oracle_host_knows(run->oracle, record);
    oracle_all_know(run->oracle, record);
}

// Captures and launches of graphs.

static const unsigned char pattern = 0;

struct capture {
    struct run *run;
    struct oracle *oracle; // of the graph's nodes
    int line;              // of its node 0
    weir_queue *queues[2];
};

static int node_line(const struct capture *capture)
{
    return capture->line + capture->oracle->count;
}

// A fill, or a copy from another buffer. Pools' memory stays out of graphs.
static void capture_node(struct capture *capture, int branch, uint8_t kind, uint8_t where)
{
    struct run *run = capture->run;
    const struct slot *dst = &run->slots[kind % PLAIN], *src = &run->slots[(kind + 1) % PLAIN];
    const size_t size = 1 + kind / 16, offset = where % (ORACLE_BYTES - size + 1);
    const int at = node_line(capture);
    const int node = oracle_add(capture->oracle, branch);

    if (run->text)
        fprintf(run->text, "     branch %d, node %d: %s b%u[%zu..%zu]\n", branch, node,
                kind & 8 ? "fill" : "copy from the next buffer to", dst->id, offset,
                offset + size - 1);
    if (kind & 8) {
        ok(run, weir_queue_fill_at(capture->queues[branch], dst->buffer, offset, size, &pattern, 1,
                                   FILE_NAME, at));
    } else {
        ok(run, weir_queue_copy_at(capture->queues[branch], dst->buffer, offset, src->buffer,
                                   offset, size, FILE_NAME, at));
        oracle_use(capture->oracle, node, src->id, WEIR_ACCESS_READ, bits(offset, size));
    }
    oracle_use(capture->oracle, node, dst->id, WEIR_ACCESS_WRITE, bits(offset, size));
}

static void capture_edge(struct capture *capture, int branch, int other)
{
    struct run *run = capture->run;
    struct weir_event event;

    if (run->text)
        fprintf(run->text, "     branch %d after branch %d\n", branch, other);
    ok(run, weir_queue_record_at(capture->queues[other], &event, FILE_NAME, node_line(capture)));
    const int record = oracle_add(capture->oracle, other);
    ok(run, weir_queue_wait_at(capture->queues[branch], event, FILE_NAME, node_line(capture)));
    oracle_after(capture->oracle, oracle_add(capture->oracle, branch), record);
}

static void capture_nodes(struct capture *capture, const uint8_t *step)
{
    if (step[2] & 1)
        capture_node(capture, 0, step[3], step[4]);
    capture_edge(capture, 1, 0);
    capture_node(capture, 1, step[5], step[6]);
    if (step[2] & 2)
        capture_edge(capture, 0, 1);
    if (step[2] & 4)
        capture_edge(capture, 1, 0);
    capture_node(capture, 0, step[7], step[3]);
    if (step[2] & 8)
        capture_node(capture, 1, step[4], step[5]);
    capture_edge(capture, 0, 1);
    if (step[2] & 16)
        capture_node(capture, 0, step[6], step[7]);
}

// The queues of a capture are used for nothing else, and live as long as the program, so that nothing
// is ordered by them.
void step_capture(struct run *run)
{
    const int which = run->notes->graph_count;
    struct capture capture = {.run = run, .line = run->notes->line + (which + 1) * GRAPH_LINES};

    if (which == PROGRAM_GRAPHS)
        return;
    run->notes->graph_count++;
    capture.oracle = &run->notes->graphs[which];
    oracle_init(capture.oracle);
    SAY(run, "capture of graph %d", which);
    for (size_t i = 0; i < 2; i++) {
        ok(run, weir_queue_create(run->ground->device, NULL, &run->captured[which][i]));
        capture.queues[i] = run->captured[which][i];
    }
    ok(run, weir_capture_begin_at(capture.queues[0], FILE_NAME, capture.line));
    capture_nodes(&capture, run->step);
    ok(run,
       weir_capture_end_at(capture.queues[0], NULL, &run->graphs[which], FILE_NAME, capture.line));
}

void step_graph(struct run *run)
{
    const int queue = pick_queue(run, run->step[1]);
    const int which = run->step[2] % PROGRAM_GRAPHS;
    const struct oracle *graph = &run->notes->graphs[which];

    if (!run->graphs[which])
        return;
    SAY(run, "q%d launch of graph %d", queue, which);
    ok(run, weir_queue_graph_at(run->queues[queue], run->graphs[which], FILE_NAME, line(run)));
    const int node = add(run, queue);
    oracle_after(run->oracle, node, run->launched[which]);
    run->launched[which] = node;
    run->notes->launches[which] |= UINT64_C(1) << node;
    for (int i = 0; i < graph->count; i++)
        for (size_t k = 0; k < graph->nodes[i].use_count; k++)
            oracle_use(run->oracle, node, graph->nodes[i].uses[k].buffer,
                       graph->nodes[i].uses[k].access, graph->nodes[i].uses[k].bytes);
}
