// NOLINTNEXTLINE(bugprone-reserved-identifier): for memfd_create()
#define _GNU_SOURCE
#include "tests/transports/rank.h"

#include <sys/mman.h>
#include <unistd.h>

const struct weir_transport_ops *ranks_ops(void)
{
    return weir_module_query(WEIR_MODULE_ABI, &test_host)->transport;
}

struct weir_transport_call call_of(weir_collective kind, weir_datatype element, uint64_t count,
                                   const void *src, void *dst)
{
    return (struct weir_transport_call){.kind = kind,
                                        .element = element,
                                        .reduction = WEIR_SUM,
                                        .count = count,
                                        .src = src,
                                        .dst = dst};
}

weir_status rank_join(struct rank *rank, const struct weir_transport_setup *setup)
{
    struct weir_transport_setup own = *setup;
    own.rank = rank->rank;
    rank->count = own.count;
    rank->status = ranks_ops()->join(ranks_state(), &own, &rank->group);
    rank->error = test_host_state()->error;
    return rank->status;
}

weir_status rank_call(struct rank *rank, struct weir_transport_call call)
{
    const bool receive = call.kind == WEIR_RECV;
    const struct weir_transport_part part = {
        .struct_size = sizeof part,
        .peer = call.root,
        .receive = receive,
        .element = call.element,
        .count = call.count,
        .memory = receive ? call.dst : (void *)(uintptr_t)call.src,
    };
    const bool one = receive || call.kind == WEIR_SEND;
    const bool message = one || call.kind == WEIR_EXCHANGE;
    if (one) {
        call.src = call.dst = NULL;
        call.parts = &part;
        call.part_count = 1;
    }
    call.struct_size = sizeof call;
    call.file = call.file ? call.file : "app.c";
    rank->number += !message;
    call.number = rank->number;
    call.line = call.line ? call.line : (int)(100 + call.number);
    call.timeout_ns = call.timeout_ns ? call.timeout_ns : RANKS_PATIENCE;
    const weir_status status = ranks_ops()->run(rank->group, &call);
    rank->error = test_host_state()->error;
    return status;
}

weir_status rank_barrier(struct rank *rank)
{
    return rank_call(rank, (struct weir_transport_call){.kind = WEIR_BARRIER});
}

weir_status rank_split(struct rank *rank, struct weir_transport_split split, void **out_part)
{
    split.struct_size = sizeof split;
    split.label = "part";
    split.number = ++rank->number;
    split.timeout_ns = RANKS_PATIENCE;
    split.file = "app.c";
    split.line = (int)(100 + split.number);
    const weir_status status = ranks_ops()->split(rank->group, &split, out_part);
    rank->error = test_host_state()->error;
    return status;
}

void rank_leave(struct rank *rank)
{
    if (rank->group)
        ranks_ops()->leave(rank->group);
    rank->group = NULL;
}

static weir_status sum_in_order(struct rank *rank, size_t count)
{
    enum {
        MOST = 70001
    };
    static _Thread_local float src[MOST];
    static _Thread_local float dst[MOST];
    for (size_t i = 0; i < count; i++)
        src[i] = (float)(1 + i) / (float)(3 + 7 * rank->rank);
    const weir_status status = rank_call(rank, call_of(WEIR_ALL_REDUCE, WEIR_F32, count, src, dst));
    for (size_t i = 0; i < count && status == WEIR_OK; i++) {
        float sum = (float)(1 + i) / 3.0F;
        for (uint32_t r = 1; r < rank->count; r++)
            sum += (float)(1 + i) / (float)(3 + 7 * r);
        if (dst[i] != sum) // none is zero or no number
            return WEIR_ERROR_INVALID;
    }
    return status;
}

weir_status rank_sum_in_order(struct rank *rank)
{
    const size_t counts[] = {5, 999, 70001};
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < 3 && status == WEIR_OK; i++)
        status = sum_in_order(rank, counts[i]);
    return status;
}

weir_status rank_pass_on(struct rank *rank)
{
    static const size_t counts[] = {(size_t)1 << 18, 200003, 1, 0};
    const uint32_t next = (rank->rank + 1) % rank->count;
    const uint32_t before = (rank->rank + rank->count - 1) % rank->count;
    uint32_t *memory[8];
    struct weir_transport_part parts[8];
    for (size_t i = 0; i < 8; i++) {
        const size_t count = counts[i / 2];
        memory[i] = calloc(count + 1, sizeof **memory);
        parts[i] = (struct weir_transport_part){.struct_size = sizeof parts[i],
                                                .peer = i % 2 ? before : next,
                                                .receive = i % 2,
                                                .element = WEIR_U32,
                                                .count = count,
                                                .memory = memory[i]};
        for (size_t k = 0; i % 2 == 0 && k < count; k++)
            memory[i][k] = rank->rank * 1000000 + (uint32_t)(i + k);
    }
    weir_status status = rank_call(rank, (struct weir_transport_call){.kind = WEIR_EXCHANGE,
                                                                      .parts = parts,
                                                                      .part_count = 8});
    for (size_t i = 1; i < 8; i += 2)
        for (size_t k = 0; k <= counts[i / 2] && status == WEIR_OK; k++)
            if (memory[i][k] != (k < counts[i / 2] ? before * 1000000 + (uint32_t)(i - 1 + k) : 0))
                status = WEIR_ERROR_INVALID;
    for (size_t i = 0; i < 8; i++)
        free(memory[i]);
    return status;
}

// Virtual memory for large counts: one file of WINDOW bytes, mapped again and again, but for the end, which is memory of
// its own and tells what has arrived.
#define WINDOW ((size_t)32 << 20)
#define COUNT (((size_t)1 << 31) + 5)
#define MAPPED (((size_t)1 << 31) + WINDOW)

static unsigned char *map_large(void)
{
    const int protection = PROT_READ | PROT_WRITE;
    const int file = memfd_create("large", MFD_CLOEXEC);
    unsigned char *memory =
        mmap(NULL, MAPPED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bool ok = file >= 0 && ftruncate(file, (off_t)WINDOW) == 0 && memory != MAP_FAILED;
    for (size_t at = 0; ok && at < MAPPED - WINDOW; at += WINDOW)
        ok = mmap(memory + at, WINDOW, protection, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
    ok = ok && mprotect(memory + MAPPED - WINDOW, WINDOW, protection) == 0;
    if (file >= 0)
        close(file);
    return ok ? memory : NULL;
}

static weir_status call_large(struct rank *rank, struct weir_transport_call call, uint8_t expected)
{
    const unsigned char right[] = {expected, expected, expected, expected, expected, 0};
    const unsigned char *got = (const unsigned char *)call.dst + COUNT - 5;
    const weir_status status = rank_call(rank, call);
    return status == WEIR_OK && expected && memcmp(got, right, sizeof right) != 0
               ? WEIR_ERROR_INVALID
               : status;
}

weir_status rank_call_large(struct rank *rank)
{
    const uint32_t own = rank->rank;
    unsigned char *src = map_large();
    unsigned char *dst = map_large();
    struct weir_transport_call call = call_of(WEIR_BROADCAST, WEIR_U8, COUNT, src, dst);
    if (!src || !dst)
        return WEIR_ERROR_OUT_OF_MEMORY;
    memset(src + COUNT - 5, 2 + (int)own, 5);
    call.root = 1;
    weir_status status = call_large(rank, call, 3);
    call.kind = WEIR_ALL_REDUCE;
    if (status == WEIR_OK)
        status = call_large(rank, call, 5);
    call.kind = own == 0 ? WEIR_SEND : WEIR_RECV;
    call.root = 1 - own;
    if (status == WEIR_OK)
        status = call_large(rank, call, own == 0 ? 0 : 2);
    munmap(src, MAPPED);
    munmap(dst, MAPPED);
    return status;
}
