// The edges that a capture makes of records and waits, and the operations that a replay
// submits to a backend without graphs.

#include "core/graph/graph.h"
#include "tests/unit/core_backend.h"

enum {
    QUEUES = 4,
    NODES = 60
};

struct rig {
    struct control control;
    weir_queue *queues[QUEUES];
    weir_buffer *buffer;
};

static bool open_rig(struct rig *rig)
{
    static const char *const labels[QUEUES] = {"a", "b", "c", "d"};
    if (!control_open(&rig->control))
        return false;
    for (int i = 0; i < QUEUES; i++)
        rig->queues[i] = control_queue(&rig->control, labels[i]);
    rig->buffer = control_buffer(&rig->control, 64 * NODES);
    return true;
}

static void close_rig(struct rig *rig)
{
    for (int i = 0; i < QUEUES; i++)
        weir_queue_destroy(&rig->queues[i]);
    weir_buffer_destroy(&rig->buffer);
    control_close(&rig->control);
}

#define RIG_TEST(suite, name) \
    WEIR_TEST_WITH(suite, name, struct rig, rig, open_rig(rig), close_rig(rig))

static void fill(const struct rig *rig, int queue, size_t node)
{
    EXPECT_OK(weir_queue_fill(rig->queues[queue], rig->buffer, 64 * node, 64, "x", 1));
}

static struct weir_event record(const struct rig *rig, int queue)
{
    return test_record(rig->queues[queue]);
}

static void follow(const struct rig *rig, int to, int from)
{
    EXPECT_OK(weir_queue_wait(rig->queues[to], record(rig, from)));
}

static weir_graph *end(const struct rig *rig)
{
    weir_graph *graph = NULL;
    EXPECT_OK(weir_capture_end(rig->queues[0], NULL, &graph));
    return graph;
}

static const struct weir_graph_node *node_of(const weir_graph *graph, uint32_t index)
{
    return &graph->parts.nodes[index];
}

// Random captures from a seed, compared with a simple transitive closure.

struct account {
    bool before[NODES][NODES]; // [node][an earlier one]
    bool reached[QUEUES][NODES];
    struct weir_event events[NODES];
    bool of_event[NODES][NODES];
    size_t event_count;
    size_t node_count;
};

static unsigned roll(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void merge(bool *into, const bool *from)
{
    for (size_t i = 0; i < NODES; i++)
        into[i] |= from[i];
}

static void add_record(const struct rig *rig, struct account *account, int queue)
{
    account->events[account->event_count] = record(rig, queue);
    memcpy(account->of_event[account->event_count++], account->reached[queue],
           sizeof account->reached[queue]);
}

static void add_wait(const struct rig *rig, struct account *account, int queue, size_t event)
{
    EXPECT_OK(weir_queue_wait(rig->queues[queue], account->events[event]));
    merge(account->reached[queue], account->of_event[event]);
}

static void add_node(const struct rig *rig, struct account *account, int queue)
{
    const size_t node = account->node_count++;
    fill(rig, queue, node);
    memcpy(account->before[node], account->reached[queue], sizeof account->before[node]);
    account->reached[queue][node] = true;
}

static weir_graph *make_any(const struct rig *rig, struct account *account, unsigned seed)
{
    memset(account, 0, sizeof *account);
    EXPECT_OK(weir_capture_begin(rig->queues[0]));
    add_record(rig, account, 0);
    for (int i = 1; i < QUEUES; i++)
        add_wait(rig, account, i, 0);
    while (account->node_count < NODES && account->event_count < NODES - QUEUES) {
        const int queue = (int)(roll(&seed) % QUEUES);
        switch (roll(&seed) % 3) {
        case 0:
            add_record(rig, account, queue);
            break;
        case 1:
            add_wait(rig, account, queue, roll(&seed) % account->event_count);
            break;
        default:
            add_node(rig, account, queue);
            break;
        }
    }
    for (int i = 1; i < QUEUES; i++) {
        add_record(rig, account, i);
        add_wait(rig, account, 0, account->event_count - 1);
    }
    return end(rig);
}

static bool is_edge(const weir_graph *graph, size_t node, size_t other)
{
    const struct weir_graph_node *at = node_of(graph, (uint32_t)node);
    for (uint32_t i = 0; i < at->dependency_count; i++)
        if (at->dependencies[i] == other)
            return true;
    return false;
}

// An edge is a pair in order without a node in between.
static void check_edges(const struct account *account, const weir_graph *graph)
{
    for (size_t node = 0; node < account->node_count; node++)
        for (size_t other = 0; other < node; other++) {
            bool wanted = account->before[node][other];
            for (size_t between = 0; between < node && wanted; between++)
                wanted = !(account->before[node][between] && account->before[between][other]);
            ASSERT_INT_EQ(is_edge(graph, node, other), wanted);
        }
}

// The operations of one launch that the backend saw, with those that each comes after.
struct replayed {
    const weir_queue *queue;
    bool reached[NODES];
};

struct lanes {
    struct replayed ends[QUEUES + 2]; // of each queue so far
    struct {
        const weir_queue *queue;
        uint64_t sequence;
        bool reached[NODES];
    } records[8 * NODES];
    size_t record_count;
};

static bool *end_of(struct lanes *lanes, const weir_queue *queue)
{
    size_t i = 0;
    while (lanes->ends[i].queue && lanes->ends[i].queue != queue)
        i++;
    lanes->ends[i].queue = queue;
    return lanes->ends[i].reached;
}

static const bool *record_of(const struct lanes *lanes, const struct seen *seen)
{
    for (size_t i = lanes->record_count; i-- > 0;)
        if (lanes->records[i].queue == seen->producer &&
            lanes->records[i].sequence == seen->awaited)
            return lanes->records[i].reached;
    return NULL;
}

// Nodes are identified by the range that they fill.
static void check_replay(const struct account *account, const struct rig *rig)
{
    static struct lanes lanes;
    struct seen seen;
    size_t nodes = 0;
    memset(&lanes, 0, sizeof lanes);
    for (size_t i = 0; control_seen(i, &seen); i++) {
        bool *reached = end_of(&lanes, seen.queue);
        if (seen.kind == WEIR_OPERATION_RECORD) {
            lanes.records[lanes.record_count].queue = seen.queue;
            lanes.records[lanes.record_count].sequence = seen.sequence;
            memcpy(lanes.records[lanes.record_count++].reached, reached, NODES * sizeof *reached);
        } else if (seen.kind == WEIR_OPERATION_WAIT) {
            const bool *awaited = record_of(&lanes, &seen);
            ASSERT_NOT_NULL(awaited); // a backend never waits for an event that it did
                                      // not get
            merge(reached, awaited);
        } else {
            const size_t node = seen.offset / 64;
            nodes++;
            for (size_t other = 0; other < node; other++)
                if (account->before[node][other])
                    ASSERT_TRUE(reached[other]);
            reached[node] = true;
        }
    }
    ASSERT_UINT_EQ(nodes, account->node_count);
    const bool *launching = end_of(&lanes, rig->queues[0]);
    for (size_t i = 0; i < account->node_count; i++)
        ASSERT_TRUE(launching[i]);
}

RIG_TEST(GraphEdges, AnyCapture)
{
    static struct account account;
    for (unsigned seed = 1; seed <= 100 && !weir_test_has_failed(); seed++) {
        own_graph graph = make_any(rig, &account, seed);
        ASSERT_UINT_EQ(weir_graph_node_count(graph), account.node_count);
        check_edges(&account, graph);
        control_forget();
        ASSERT_OK(weir_queue_graph(rig->queues[0], graph));
        check_replay(&account, rig);
    }
}

// Branches are on separate queues of the backend, so that they can overlap.
RIG_TEST(Replay, BranchesHaveQueues)
{
    struct seen seen;
    const weir_queue *queues[NODES] = {NULL};
    ASSERT_OK(weir_capture_begin(rig->queues[0]));
    fill(rig, 0, 0);
    follow(rig, 1, 0);
    fill(rig, 0, 1);
    fill(rig, 1, 2);
    follow(rig, 0, 1);
    fill(rig, 0, 3);
    own_graph graph = end(rig);
    control_forget();
    ASSERT_OK(weir_queue_graph(rig->queues[2], graph));
    for (size_t i = 0; control_seen(i, &seen); i++)
        if (seen.kind == WEIR_OPERATION_FILL)
            queues[seen.offset / 64] = seen.queue;
    EXPECT_PTR_EQ(queues[1], queues[0]);
    EXPECT_PTR_NE(queues[2], queues[1]);
    EXPECT_PTR_EQ(queues[3], queues[0]);
}

static void check_failure(struct rig *rig, weir_graph *graph, int after, const char *node)
{
    struct weir_event event;
    control_refuse(WEIR_OPERATION_FILL, after);
    ASSERT_INT_EQ(weir_queue_graph(rig->queues[0], graph), WEIR_ERROR_DEVICE);
    EXPECT_CONTAINS(weir_last_error()->message, "a graph, failed");
    EXPECT_CONTAINS(weir_last_error()->message, node);
    EXPECT_CONTAINS(weir_last_error()->message, "captured at");
    EXPECT_CONTAINS(weir_last_error()->message, "core_graph_test.c:");
    EXPECT_FAILURE(weir_queue_record(rig->queues[0], &event), WEIR_ERROR_DEVICE, node);
    ASSERT_OK(weir_queue_recover(rig->queues[0]));
    ASSERT_OK(weir_queue_graph(rig->queues[0], graph));
    EXPECT_OK(weir_queue_sync(rig->queues[0], GUARD_NS));
}

// A node that the driver refuses fails the launching queue, and the error names it.
RIG_TEST(Replay, AFailureNamesItsNode)
{
    for (int forked = 0; forked < 2; forked++) {
        ASSERT_OK(weir_capture_begin(rig->queues[0]));
        fill(rig, 0, 0);
        if (forked)
            follow(rig, 1, 0);
        fill(rig, forked, 1);
        fill(rig, 0, 2);
        if (forked)
            follow(rig, 0, 1);
        own_graph graph = end(rig);
        check_failure(rig, graph, 0, "node 0, a fill");
        check_failure(rig, graph, 1, "node 1, a fill");
        check_failure(rig, graph, 2, "node 2, a fill");
    }
}

// Records and waits of a replay may fail too; operations that are already running are
// waited for.
RIG_TEST(Replay, AFailureBetweenNodes)
{
    ASSERT_OK(weir_capture_begin(rig->queues[0]));
    fill(rig, 0, 0);
    follow(rig, 1, 0);
    fill(rig, 1, 1);
    follow(rig, 0, 1);
    own_graph graph = end(rig);
    for (int kind = 0; kind < 2; kind++) {
        int failures = 0;
        for (int after = 0; after < 20; after++) {
            control_refuse(kind ? WEIR_OPERATION_WAIT : WEIR_OPERATION_RECORD, after);
            const weir_status status = weir_queue_graph(rig->queues[0], graph);
            control_refuse(WEIR_OPERATION_NATIVE, 1000); // off
            if (status == WEIR_OK)
                break;
            EXPECT_INT_EQ(status, WEIR_ERROR_DEVICE);
            failures++;
            ASSERT_OK(weir_queue_recover(rig->queues[0]));
        }
        EXPECT_INT_LE(3, failures);
        EXPECT_INT_LT(failures, 20);
        EXPECT_OK(weir_queue_sync(rig->queues[0], GUARD_NS));
    }
}

// A buffer is freed exactly when the last graph that uses it is destroyed.
RIG_TEST(Uses, FreeWithTheGraph)
{
    weir_buffer *extra = control_buffer(&rig->control, 64);
    ASSERT_OK(weir_capture_begin(rig->queues[0]));
    ASSERT_OK(weir_queue_copy(rig->queues[0], extra, 0, rig->buffer, 0, 64));
    weir_graph *graph = end(rig);
    weir_buffer_destroy(&extra);
    ASSERT_OK(weir_device_trim(rig->control.devices[0]));
    EXPECT_UINT_EQ(control_buffer_destroy_count(), 0);
    weir_graph_destroy(&graph);
    ASSERT_OK(weir_device_trim(rig->control.devices[0]));
    EXPECT_UINT_EQ(control_buffer_destroy_count(), 1);
}

// Labels of graphs stay as long as the runtime, and graphs may come and go without end.
RIG_TEST(Uses, LabelsOfGraphsHaveALimit)
{
    char label[32] = "graph 0";
    ASSERT_OK(weir_capture_begin(rig->queues[0]));
    fill(rig, 0, 0);
    weir_graph *graph = end(rig), *clone = NULL;
    for (int i = 0; i <= 180000; i++) {
        snprintf(label, sizeof label, "graph %d", i % 180000);
        ASSERT_OK(weir_graph_clone(graph, WEIR_PARAMS(weir_graph, .label = label), &clone));
        if (i == 0 || i == 180000)
            EXPECT_STR_EQ(clone->member.object.label, "graph 0");
        if (i == 179999)
            EXPECT_STR_EQ(clone->member.object.label, "...");
        weir_graph_destroy(&clone);
    }
    weir_graph_destroy(&graph);
}
