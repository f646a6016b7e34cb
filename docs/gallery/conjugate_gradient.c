// Conjugate gradients: the loop's body is captured once, and the host looks at every eighth residue.
#include <math.h>
#include <stdio.h>
#include <weir/weir.h>

#include "docs/gallery/conjugate_gradient_kernels.h"

enum {
    COUNT = 4096,
    MOST = 64,
    BYTES = COUNT * sizeof(float)
};

enum {
    X,
    R,
    P,
    Q,
    RR,
    BEFORE,
    PQ,
    VECTORS
};

enum {
    APPLY,
    DOT,
    MOVE,
    TURN,
    KERNELS
};

struct work {
    weir_queue *queue;
    weir_program *program;
    weir_kernel *kernels[KERNELS];
    weir_buffer *v[VECTORS];
};

static void begin(struct work *work, weir_device *device)
{
    static const char *const names[] = {"apply", "dot_product", "move", "turn"};
    WEIR_CHECK(weir_queue_create(device, NULL, &work->queue));
    WEIR_CHECK(weir_program_load(device, &conjugate_gradient_kernels, &work->program));
    for (int i = 0; i < KERNELS; i++)
        WEIR_CHECK(weir_kernel_create(work->program, names[i], &work->kernels[i]));
    for (int i = 0; i < VECTORS; i++) {
        const size_t size = i < RR ? BYTES : sizeof(float);
        WEIR_CHECK(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = size), &work->v[i]));
    }
}

static void end(struct work *work)
{
    for (int i = 0; i < VECTORS; i++)
        weir_buffer_destroy(&work->v[i]);
    for (int i = 0; i < KERNELS; i++)
        weir_kernel_destroy(&work->kernels[i]);
    weir_program_destroy(&work->program), weir_queue_destroy(&work->queue);
}

static void dot(struct work *work, weir_buffer *a, weir_buffer *b, weir_buffer *out)
{
    const struct weir_extent n = {256, 1, 1}; // one block
    WEIR_CHECK(weir_queue_launch_global(work->queue, work->kernels[DOT], n, weir_whole_in(a),
                                        weir_whole_in(b), weir_whole_out(out), COUNT));
}

static void iterate(struct work *work)
{
    const struct weir_extent n = {COUNT, 1, 1};
    weir_queue *q = work->queue;
    weir_kernel **k = work->kernels;
    weir_buffer **v = work->v;
    WEIR_CHECK(weir_queue_copy(q, v[BEFORE], 0, v[RR], 0, sizeof(float)));
    WEIR_CHECK(weir_queue_launch_global(q, k[APPLY], n, weir_whole_in(v[P]), weir_whole_out(v[Q])));
    dot(work, v[P], v[Q], v[PQ]);
    WEIR_CHECK(weir_queue_launch_global(q, k[MOVE], n, weir_whole_in(v[P]), weir_whole_in(v[Q]),
                                        weir_whole_in(v[RR]), weir_whole_in(v[PQ]),
                                        weir_whole_inout(v[X]), weir_whole_inout(v[R])));
    dot(work, v[R], v[R], v[RR]);
    WEIR_CHECK(weir_queue_launch_global(q, k[TURN], n, weir_whole_inout(v[P]), weir_whole_in(v[R]),
                                        weir_whole_in(v[RR]), weir_whole_in(v[BEFORE])));
}

static int count_wrong(const float *x, const float *b)
{
    int wrong = 0;
    for (int i = 1; i < COUNT - 1; i++)
        wrong += !(fabsf(4 * x[i] - x[i - 1] - x[i + 1] - b[i]) < 1e-4f);
    return wrong;
}

int main(void)
{
    float b[COUNT], x[COUNT], residue = 1;
    const float zero = 0;
    struct work work;
    weir_device *device;
    weir_graph *graph;
    int iterations = 0;

    WEIR_CHECK(weir_device_open(NULL, NULL, &device));
    begin(&work, device);
    for (int i = 0; i < COUNT; i++)
        b[i] = (float)(i * 37 % 101) / 101;
    WEIR_CHECK(weir_queue_fill(work.queue, work.v[X], 0, BYTES, &zero, sizeof zero));
    WEIR_CHECK(weir_upload(work.queue, work.v[R], 0, b, BYTES));
    WEIR_CHECK(weir_upload(work.queue, work.v[P], 0, b, BYTES));
    dot(&work, work.v[R], work.v[R], work.v[RR]);

    WEIR_CHECK(weir_capture_begin(work.queue));
    iterate(&work);
    WEIR_CHECK(weir_capture_end(work.queue, NULL, &graph));
    while (residue > 1e-9f && iterations < MOST) {
        for (int i = 0; i < 8; i++, iterations++)
            WEIR_CHECK(weir_queue_graph(work.queue, graph));
        WEIR_CHECK(weir_download(work.queue, &residue, work.v[RR], 0, sizeof residue));
    }

    WEIR_CHECK(weir_download(work.queue, x, work.v[X], 0, BYTES));
    const int wrong = count_wrong(x, b);
    printf("%d iterations, residue %.1e, %d wrong\n", iterations, (double)residue, wrong);

    weir_graph_destroy(&graph);
    end(&work);
    WEIR_CHECK(weir_device_close(&device));
    return wrong != 0 || residue > 1e-9f;
}
