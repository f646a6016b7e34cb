// A graph with a collective, replayed on a backend without graphs: all that has the launch's number is
// marked as a part of it, but for the record at the end.
#include <stdatomic.h>

#include "core/runtime/runtime.h"
#include "tests/comm/rig.h"

static struct weir_module_ops null_ops;
static atomic_uint parts;
static atomic_uint wholes;
static atomic_uint records;

static weir_status queue_submit(const struct weir_link *link, weir_queue *queue,
                                const struct weir_operation *operation)
{
    if (operation->kind == WEIR_OPERATION_RECORD)
        atomic_fetch_add(&records, 1);
    else if (operation->flags & WEIR_OPERATION_PART)
        atomic_fetch_add(&parts, 1);
    else
        atomic_fetch_add(&wholes, 1);
    return null_ops.queue_submit(link, queue, operation);
}

static weir_graph *capture(struct comm_rig *rig)
{
    weir_graph *graph = NULL;
    const int32_t seven = 7;
    EXPECT_OK(weir_capture_begin(rig->queues[0]));
    EXPECT_OK(weir_queue_fill(rig->queues[0], rig->src[0], 0, 16, &seven, 4));
    EXPECT_OK(weir_queue_all_reduce(rig->queues[0], rig->comms[0], rig->dst[0], 0, rig->src[0], 0,
                                    4, WEIR_I32, WEIR_SUM));
    EXPECT_OK(weir_queue_copy(rig->queues[0], rig->src[0], 0, rig->dst[0], 0, 16));
    EXPECT_OK(weir_capture_end(rig->queues[0], NULL, &graph));
    return graph;
}

WEIR_TEST(CommParts, OfALaunch)
{
    static struct weir_module_ops ops;
    struct comm_rig rig;
    comm_rig_open_fake(&rig, "", 1, WEIR_PLACE_DEVICE);
    struct weir_link *backend = &rig.runtime->chain.links[rig.runtime->chain.count - 1];
    weir_graph *graph = capture(&rig);
    null_ops = *backend->ops;
    ops = null_ops;
    ops.queue_submit = queue_submit;
    backend->ops = &ops;
    ASSERT_OK(weir_queue_graph(rig.queues[0], graph));
    ASSERT_OK(weir_queue_sync(rig.queues[0], WEIR_FOREVER));
    EXPECT_UINT_EQ(atomic_load(&parts), 4); // the collective is two copies
    EXPECT_UINT_EQ(atomic_load(&wholes), 0);
    EXPECT_UINT_GE(atomic_load(&records), 1);
    comm_rig_expect(&rig, 0, rig.src[0], 0, (const int32_t[]){7, 7, 7, 7}, 4);
    weir_graph_destroy(&graph);
    comm_rig_close(&rig);
}
