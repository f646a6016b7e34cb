// Bare copies of as many bytes as the frames of a pipeline have, with which it is compared.
#include "cli/bench/arr_coc.h"
#include "cli/bench/work.h"

static bool make_queue(struct bench *bench, weir_device *device, const char *label,
                       weir_queue **out_queue)
{
    const struct weir_queue_params params = {.struct_size = sizeof params, .label = label};
    return weir_queue_create(device, &params, out_queue) == WEIR_OK || bench_fail_weir(bench);
}

static bool make_buffer(struct bench *bench, weir_device *device, size_t size,
                        weir_placement placement, weir_buffer **out_buffer)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .label = "copies",
                                              .size = size,
                                              .placement = placement};
    return weir_buffer_create(device, &params, out_buffer) == WEIR_OK || bench_fail_weir(bench);
}

static bool fill_down(struct bench *bench, const struct arr_coc_copies *copies)
{
    return (weir_queue_fill(copies->down, copies->down_device, 0, copies->down_bytes, "", 1) ==
                WEIR_OK &&
            weir_queue_sync(copies->down, WEIR_FOREVER) == WEIR_OK) ||
           bench_fail_weir(bench);
}

bool arr_coc_copies_make(struct bench *bench, struct arr_coc_copies *c, size_t up_bytes,
                         size_t down_bytes)
{
    c->down_bytes = down_bytes;
    return make_queue(bench, c->device, "bench/up", &c->up) &&
           make_queue(bench, c->device, "bench/down", &c->down) &&
           make_buffer(bench, c->device, up_bytes, WEIR_PLACE_HOST, &c->up_host) &&
           make_buffer(bench, c->device, up_bytes, WEIR_PLACE_DEVICE, &c->up_device) &&
           make_buffer(bench, c->device, down_bytes, WEIR_PLACE_HOST, &c->down_host) &&
           make_buffer(bench, c->device, down_bytes, WEIR_PLACE_DEVICE, &c->down_device) &&
           bench_work_spoil(bench, c->up_host, up_bytes) && fill_down(bench, c);
}

void arr_coc_copies_destroy(struct arr_coc_copies *copies)
{
    weir_buffer_destroy(&copies->down_device);
    weir_buffer_destroy(&copies->down_host);
    weir_buffer_destroy(&copies->up_device);
    weir_buffer_destroy(&copies->up_host);
    weir_queue_destroy(&copies->down);
    weir_queue_destroy(&copies->up);
}

static weir_status submit(const struct arr_coc_copies *c, size_t up_bytes)
{
    const weir_status status = weir_queue_copy(c->up, c->up_device, 0, c->up_host, 0, up_bytes);
    return status == WEIR_OK
               ? weir_queue_copy(c->down, c->down_host, 0, c->down_device, 0, c->down_bytes)
               : status;
}

static weir_status flush(const struct arr_coc_copies *copies)
{
    const weir_status status = weir_queue_flush(copies->up);
    return status == WEIR_OK ? weir_queue_flush(copies->down) : status;
}

static weir_status sync(const struct arr_coc_copies *copies)
{
    const weir_status status = weir_queue_sync(copies->up, WEIR_FOREVER);
    return status == WEIR_OK ? weir_queue_sync(copies->down, WEIR_FOREVER) : status;
}

bool arr_coc_copies_run(struct bench *bench, const struct arr_coc_copies *copies, uint32_t count,
                        size_t up_bytes, uint64_t times)
{
    weir_status status = WEIR_OK;
    for (uint64_t i = 0; i < times && status == WEIR_OK; i++)
        for (uint32_t d = 0; d < count && status == WEIR_OK; d++)
            status = submit(&copies[d], up_bytes);
    for (uint32_t d = 0; d < count && status == WEIR_OK; d++)
        status = flush(&copies[d]);
    for (uint32_t d = 0; d < count && status == WEIR_OK; d++)
        status = sync(&copies[d]);
    return status == WEIR_OK || bench_fail_weir(bench);
}
