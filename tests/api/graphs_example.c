// The same small work many times: the two halves of a picture are filled on two queues,
// joined, and copied to the host, which counts the pictures. It is captured once; each launch
// gets another colour and another destination. At the end a clone brings the last one again.
#include <stdio.h>
#include <weir/weir.h>

enum {
    HALF = 32768,
    SIZE = 2 * HALF,
    LAUNCHES = 20
};

static weir_buffer *buffer(weir_device *device, size_t size, weir_placement placement)
{
    const struct weir_buffer_params params = {
        .struct_size = sizeof params,
        .size = size,
        .placement = placement,
    };
    weir_buffer *made;
    WEIR_CHECK(weir_buffer_create(device, &params, &made));
    return made;
}

struct work {
    weir_queue *left, *right;
    weir_buffer *halves[2], *picture, *results;
    uint32_t paint, bring; // nodes
    int brought;
};

// In each launch, after the copy. It may use memory, but neither Weir nor the driver.
static weir_status count_picture(void *user)
{
    struct work *work = user;
    work->brought++;
    return WEIR_OK;
}

// `right` joins when it waits for an event of the capture, and `left` waits for `right`
// before the capture ends.
static weir_graph *capture(struct work *work)
{
    const unsigned char grey = 128;
    struct weir_event begun, painted;
    weir_graph *graph;

    WEIR_CHECK(weir_capture_begin(work->left));
    WEIR_CHECK(weir_queue_record(work->left, &begun));
    WEIR_CHECK(weir_queue_wait(work->right, begun));
    WEIR_CHECK(weir_queue_fill(work->left, work->halves[0], 0, HALF, &grey, 1));
    WEIR_CHECK(weir_capture_node(work->left, &work->paint));
    WEIR_CHECK(weir_queue_fill(work->right, work->halves[1], 0, HALF, &grey, 1));
    WEIR_CHECK(weir_queue_copy(work->right, work->picture, HALF, work->halves[1], 0, HALF));
    WEIR_CHECK(weir_queue_record(work->right, &painted));
    WEIR_CHECK(weir_queue_copy(work->left, work->picture, 0, work->halves[0], 0, HALF));
    WEIR_CHECK(weir_queue_wait(work->left, painted));
    WEIR_CHECK(weir_queue_copy(work->left, work->results, 0, work->picture, 0, SIZE));
    WEIR_CHECK(weir_capture_node(work->left, &work->bring));
    WEIR_CHECK(weir_queue_host_call(work->left, count_picture, work));
    WEIR_CHECK(weir_capture_end(work->left, NULL, &graph));
    return graph;
}

// An update applies to later launches; earlier ones keep their operands.
static void launch(const struct work *work, weir_graph *graph, int number)
{
    const unsigned char colour = (unsigned char)number;
    WEIR_CHECK(weir_graph_set_fill(graph, work->paint, work->halves[0], 0, HALF, &colour, 1));
    WEIR_CHECK(weir_graph_set_copy(graph, work->bring, work->results, (size_t)number * SIZE,
                                   work->picture, 0, SIZE));
    WEIR_CHECK(weir_queue_graph(work->left, graph));
}

static int count_right(weir_buffer *results)
{
    int right = 0;
    void *bytes;
    WEIR_CHECK(weir_host_begin(results, 0, LAUNCHES * SIZE, WEIR_ACCESS_READ, &bytes));
    for (int i = 0; i < LAUNCHES; i++) {
        const unsigned char *picture = (const unsigned char *)bytes + (size_t)i * SIZE;
        right += picture[0] == i && picture[HALF - 1] == i && picture[HALF] == 128;
    }
    WEIR_CHECK(weir_host_end(results, 0, LAUNCHES * SIZE, WEIR_ACCESS_READ));
    return right;
}

int main(void)
{
    weir_runtime *runtime;
    weir_device *device;
    struct work work = {.brought = 0};

    WEIR_CHECK(weir_open(NULL, &runtime));
    WEIR_CHECK(weir_device_open(runtime, NULL, &device));
    WEIR_CHECK(weir_queue_create(device, NULL, &work.left));
    WEIR_CHECK(weir_queue_create(device, NULL, &work.right));
    for (int i = 0; i < 2; i++)
        work.halves[i] = buffer(device, HALF, WEIR_PLACE_DEVICE);
    work.picture = buffer(device, SIZE, WEIR_PLACE_DEVICE);
    work.results = buffer(device, LAUNCHES * SIZE, WEIR_PLACE_HOST);

    weir_graph *graph = capture(&work);
    for (int i = 0; i < LAUNCHES; i++)
        launch(&work, graph, i);

    weir_graph *again;
    WEIR_CHECK(weir_graph_clone(graph, NULL, &again));
    WEIR_CHECK(weir_graph_set_enabled(again, work.paint, false)); // the picture stays as it is
    WEIR_CHECK(weir_queue_graph(work.left, again));
    WEIR_CHECK(weir_queue_sync(work.left, WEIR_FOREVER));
    const int right = count_right(work.results);
    printf("%u nodes, %d pictures brought, %d right\n", (unsigned)weir_graph_node_count(graph),
           work.brought, right);

    weir_graph_destroy(&graph);
    weir_graph_destroy(&again);
    weir_buffer_destroy(&work.halves[0]);
    weir_buffer_destroy(&work.halves[1]);
    weir_buffer_destroy(&work.picture);
    weir_buffer_destroy(&work.results);
    weir_queue_destroy(&work.left);
    weir_queue_destroy(&work.right);
    WEIR_CHECK(weir_device_close(&device));
    WEIR_CHECK(weir_close(&runtime));
    return right == LAUNCHES && work.brought == LAUNCHES + 1 ? 0 : 1;
}
