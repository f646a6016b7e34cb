// The job with weir_upload() and weir_download(); and, beside it, with the program's memory pinned for
// each copy, as weir_dlpack_import() does with tensors on the host.
#include "tests/bench/peers/pageable_job.h"
#include "tests/bench/peers/weir.h"

struct weir_job {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_buffer *memory;
    uint64_t wrapped;
    struct pageable_job job;
};

static bool up(void *user, const void *from, size_t size)
{
    struct weir_job *weir = user;
    return weir_peer_fine(weir_upload(weir->queue, weir->memory, 0, from, size));
}

static bool down(void *user, void *to, size_t size)
{
    struct weir_job *weir = user;
    return weir_peer_fine(weir_download(weir->queue, to, weir->memory, 0, size));
}

static bool copy_wrapped(struct weir_job *weir, void *memory, size_t size, bool is_up)
{
    const struct weir_wrap_params params = {.struct_size = sizeof params,
                                            .label = "wrapped",
                                            .pointer = memory,
                                            .size = size};
    weir_buffer *host;
    if (!weir_peer_fine(weir_buffer_wrap(weir->device, &params, &host)))
        return false;
    const weir_status status = is_up ? weir_queue_copy(weir->queue, weir->memory, 0, host, 0, size)
                                     : weir_queue_copy(weir->queue, host, 0, weir->memory, 0, size);
    const bool fine =
        weir_peer_fine(status) && weir_peer_fine(weir_queue_sync(weir->queue, WEIR_FOREVER));
    weir_buffer_destroy(&host);
    return fine;
}

static bool up_wrapped(void *user, const void *from, size_t size)
{
    return copy_wrapped(user, (void *)(uintptr_t)from, size, true);
}

static bool down_wrapped(void *user, void *to, size_t size)
{
    return copy_wrapped(user, to, size, false);
}

static const struct pageable_way ways[] = {
    {"copy", up, down, false},
    {"wrapped", up_wrapped, down_wrapped, false},
};

static bool open_weir(void *user)
{
    struct weir_job *weir = user;
    weir->job.ways = ways;
    weir->job.way_count = weir->wrapped ? 2 : 1;
    weir->job.user = weir;
    return weir_peer_open(&weir->runtime, &weir->device) &&
           weir_peer_queue(weir->device, "pageable", &weir->queue) &&
           weir_peer_buffer(weir->device, "memory", weir->job.most, WEIR_PLACE_DEVICE,
                            &weir->memory) &&
           pageable_open(&weir->job);
}

static bool round_weir(void *user)
{
    return pageable_round(&((struct weir_job *)user)->job);
}

static void close_weir(void *user)
{
    struct weir_job *weir = user;
    weir_buffer_destroy(&weir->memory);
    weir_queue_destroy(&weir->queue);
    weir_peer_close(&weir->runtime, &weir->device);
    pageable_close(&weir->job);
}

int main(int argc, char **argv)
{
    static struct weir_job weir;
    // Memory is unpinned in later calls, whose times would have it.
    struct peer_option options[PAGEABLE_OPTIONS + 1] = {
        [PAGEABLE_OPTIONS] = {.name = "wrapped",
                              .help = "1: also with the memory pinned for each copy",
                              .value = &weir.wrapped,
                              .least = 0,
                              .most = 1},
    };
    pageable_options(&weir.job, options);
    const struct peer peer = {
        .name = "weir_pageable",
        .about = "Copies memory that is not pinned up and down.",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .open = open_weir,
        .round = round_weir,
        .close = close_weir,
    };
    return peer_main(&peer, &weir, argc, argv);
}
