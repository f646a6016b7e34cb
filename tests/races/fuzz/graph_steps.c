// Captures of two branches. What is captured is decided by the bytes of the step, two for each node.
#include "tests/races/fuzz/steps.h"

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
