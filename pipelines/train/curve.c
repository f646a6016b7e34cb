// Two windows: while one is filled, the other is added up over the ranks and copied to the host.
#include <stdlib.h>

#include "pipelines/train/fail.h"
#include "pipelines/train/run_parts.h"

enum {
    WINDOW_BYTES = TRAIN_WINDOW * WEIR_TRAIN_RESULT_BYTES
};

weir_status train_curve_create(struct train_curve *curve, weir_comm *comm, uint64_t steps,
                               uint64_t samples)
{
    const struct weir_buffer_params sums = {.struct_size = sizeof sums,
                                            .label = "curve",
                                            .size = WINDOW_BYTES};
    const struct weir_buffer_params copy = {.struct_size = sizeof copy,
                                            .label = "curve",
                                            .size = WINDOW_BYTES,
                                            .placement = WEIR_PLACE_HOST};
    *curve = (struct train_curve){.comm = comm, .samples = samples};
    curve->losses = calloc(steps, sizeof *curve->losses);
    curve->right = calloc(steps, sizeof *curve->right);
    if (!curve->losses || !curve->right)
        return train_fail_memory("curve");
    weir_status status = WEIR_OK;
    for (int i = 0; i < 2 && status == WEIR_OK; i++) {
        status = weir_buffer_create(weir_comm_device(comm), &sums, &curve->windows[i].sums);
        if (status == WEIR_OK)
            status = weir_buffer_create(weir_comm_device(comm), &copy, &curve->windows[i].copy);
    }
    return status;
}

void train_curve_finish(struct train_curve *curve)
{
    for (int i = 0; i < 2; i++) {
        weir_buffer_destroy(&curve->windows[i].sums);
        weir_buffer_destroy(&curve->windows[i].copy);
    }
    free(curve->losses);
    free(curve->right);
    *curve = (struct train_curve){0};
}

void train_curve_begin(struct train_curve *curve, uint64_t step)
{
    curve->first = step;
    curve->known = step;
}

struct weir_train_view train_curve_place(const struct train_curve *curve, uint64_t step)
{
    return (struct weir_train_view){curve->windows[curve->current].sums,
                                    (step - curve->first) * WEIR_TRAIN_RESULT_BYTES};
}

static weir_status collect(struct train_curve *curve, struct train_curve_window *window)
{
    void *memory;
    if (window->count == 0)
        return WEIR_OK;
    const size_t bytes = window->count * (size_t)WEIR_TRAIN_RESULT_BYTES;
    weir_status status = weir_event_sync(window->done, WEIR_FOREVER);
    if (status == WEIR_OK)
        status = weir_host_begin(window->copy, 0, bytes, WEIR_ACCESS_READ, &memory);
    if (status != WEIR_OK)
        return status;
    const float *sums = memory;
    for (uint32_t i = 0; i < window->count; i++) {
        curve->losses[window->first + i] = sums[2 * (size_t)i] / (float)curve->samples;
        curve->right[window->first + i] = sums[2 * (size_t)i + 1] / (float)curve->samples;
    }
    curve->known = window->first + window->count;
    window->count = 0;
    return weir_host_end(window->copy, 0, bytes, WEIR_ACCESS_READ);
}

static weir_status submit(struct train_curve *curve, struct train_curve_window *window,
                          weir_queue *queue)
{
    const size_t count = window->count * (size_t)WEIR_TRAIN_RESULT_BYTES / sizeof(float);
    weir_status status = WEIR_OK;
    if (weir_comm_count(curve->comm) > 1)
        status = weir_queue_all_reduce(queue, curve->comm, window->sums, 0, window->sums, 0, count,
                                       WEIR_F32, WEIR_SUM);
    if (status == WEIR_OK)
        status = weir_queue_copy(queue, window->copy, 0, window->sums, 0, count * sizeof(float));
    return status == WEIR_OK ? weir_queue_record(queue, &window->done) : status;
}

// Sends the current window off, and reads the other one.
static weir_status turn(struct train_curve *curve, weir_queue *queue, uint64_t end)
{
    struct train_curve_window *window = &curve->windows[curve->current];
    window->first = curve->first;
    window->count = (uint32_t)(end - curve->first);
    curve->first = end;
    curve->current ^= 1;
    const weir_status status = submit(curve, window, queue);
    return status == WEIR_OK ? collect(curve, &curve->windows[curve->current]) : status;
}

weir_status train_curve_step(struct train_curve *curve, weir_queue *queue, uint64_t step)
{
    return step + 1 - curve->first == TRAIN_WINDOW ? turn(curve, queue, step + 1) : WEIR_OK;
}

weir_status train_curve_flush(struct train_curve *curve, weir_queue *queue, uint64_t end)
{
    const weir_status status = end > curve->first ? turn(curve, queue, end) : WEIR_OK;
    return status == WEIR_OK ? collect(curve, &curve->windows[curve->current ^ 1]) : status;
}
