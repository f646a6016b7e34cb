// The bare copies of ARR-COC's frames: the upload and the download of each, on two
// streams, without other work. No pipeline can be faster.
#include <string.h>

#include "tests/bench/peers/peer.h"
#include "tests/bench/peers/raw_cuda.h"

enum {
    SLOTS = 8 // frames that the copies cycle through
};

struct raw {
    struct raw_cuda cu;
    uint64_t frames, up_bytes, down_bytes;
    CUdeviceptr up_to[SLOTS], down_from[SLOTS];
    unsigned char *up_from[SLOTS], *down_to[SLOTS];
    CUstream up, down;
};

static bool make_slot(struct raw *raw, int slot)
{
    struct raw_cuda *cu = &raw->cu;
    if (!RAW_CUDA(cu, cuMemAlloc, &raw->up_to[slot], raw->up_bytes) ||
        !RAW_CUDA(cu, cuMemAlloc, &raw->down_from[slot], raw->down_bytes) ||
        !RAW_CUDA(cu, cuMemHostAlloc, (void **)&raw->up_from[slot], raw->up_bytes, 0) ||
        !RAW_CUDA(cu, cuMemHostAlloc, (void **)&raw->down_to[slot], raw->down_bytes, 0) ||
        !RAW_CUDA(cu, cuMemsetD8Async, raw->down_from[slot], (unsigned char)(slot + 1),
                  raw->down_bytes, raw->down))
        return false;
    memset(raw->up_from[slot], slot + 101, raw->up_bytes);
    return true;
}

static bool run(struct raw *raw, uint64_t frames)
{
    struct raw_cuda *cu = &raw->cu;
    for (uint64_t i = 0; i < frames; i++) {
        const unsigned slot = (unsigned)(i % SLOTS);
        if (!RAW_CUDA(cu, cuMemcpyHtoDAsync, raw->up_to[slot], raw->up_from[slot], raw->up_bytes,
                      raw->up) ||
            !RAW_CUDA(cu, cuMemcpyDtoHAsync, raw->down_to[slot], raw->down_from[slot],
                      raw->down_bytes, raw->down))
            return false;
    }
    return RAW_CUDA(cu, cuStreamSynchronize, raw->up) &&
           RAW_CUDA(cu, cuStreamSynchronize, raw->down);
}

static bool holds(const unsigned char *bytes, size_t size, unsigned char value)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

static bool check_slot(struct raw *raw, int slot)
{
    struct raw_cuda *cu = &raw->cu;
    if (!holds(raw->down_to[slot], raw->down_bytes, (unsigned char)(slot + 1)))
        return peer_fail("what came down of frame %d is wrong", slot);
    memset(raw->up_from[slot], 0, raw->up_bytes);
    if (!RAW_CUDA(cu, cuMemcpyDtoHAsync, raw->up_from[slot], raw->up_to[slot], raw->up_bytes,
                  raw->up) ||
        !RAW_CUDA(cu, cuStreamSynchronize, raw->up))
        return false;
    if (!holds(raw->up_from[slot], raw->up_bytes, (unsigned char)(slot + 101)))
        return peer_fail("what went up of frame %d is wrong", slot);
    peer_checked(2);
    return true;
}

static bool open_raw(void *user)
{
    struct raw *raw = user;
    struct raw_cuda *cu = &raw->cu;
    if (!raw_cuda_open(cu) || !RAW_CUDA(cu, cuStreamCreate, &raw->up, CU_STREAM_NON_BLOCKING) ||
        !RAW_CUDA(cu, cuStreamCreate, &raw->down, CU_STREAM_NON_BLOCKING))
        return false;
    for (int i = 0; i < SLOTS; i++)
        if (!make_slot(raw, i))
            return false;
    if (!run(raw, SLOTS))
        return false;
    for (int i = 0; i < SLOTS; i++)
        if (!check_slot(raw, i))
            return false;
    peer_fact("up_bytes", (double)raw->up_bytes);
    peer_fact("down_bytes", (double)raw->down_bytes);
    return true;
}

static bool round_raw(void *user)
{
    struct raw *raw = user;
    const double began = peer_now_ms();
    if (!run(raw, raw->frames))
        return false;
    peer_value("frame", (peer_now_ms() - began) / (double)raw->frames);
    return true;
}

static void close_raw(void *user)
{
    struct raw *raw = user;
    struct raw_cuda *cu = &raw->cu;
    for (int i = 0; i < SLOTS; i++) {
        if (raw->up_from[i])
            cu->cuMemFreeHost(raw->up_from[i]);
        if (raw->down_to[i])
            cu->cuMemFreeHost(raw->down_to[i]);
        if (raw->up_to[i])
            cu->cuMemFree(raw->up_to[i]);
        if (raw->down_from[i])
            cu->cuMemFree(raw->down_from[i]);
    }
    if (raw->up)
        cu->cuStreamDestroy(raw->up);
    if (raw->down)
        cu->cuStreamDestroy(raw->down);
    raw_cuda_close(cu);
}

int main(int argc, char **argv)
{
    // A frame of 1024 x 1024 RGB8, and 4096 tokens of 13 floats and the other results
    // of an image.
    static struct raw raw = {.frames = 1000,
                             .up_bytes = 1024 * 1024 * 3,
                             .down_bytes = 4096 * 13 * 4 + 64 * 12 + 4 * 4096 + 32};
    const struct peer_option options[] = {
        {.name = "frames",
         .help = "frames of a round",
         .value = &raw.frames,
         .least = 1,
         .most = 1000000},
        {.name = "up",
         .help = "bytes of a frame that go up",
         .value = &raw.up_bytes,
         .least = 1,
         .most = 1 << 30},
        {.name = "down",
         .help = "bytes of a frame that come down",
         .value = &raw.down_bytes,
         .least = 1,
         .most = 1 << 30},
    };
    const struct peer peer = {
        .name = "raw_cuda_frames",
        .about = "Copies frames up and results down, and computes nothing.",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .open = open_raw,
        .round = round_raw,
        .close = close_raw,
    };
    return peer_main(&peer, &raw, argc, argv);
}
