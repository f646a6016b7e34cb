// The results of the job `ddp`, before anything is measured.
#include <stdlib.h>
#include <string.h>

#include "tests/bench/jobs/ddp.h"

enum {
    SLICE = 1024 // elements of a gradient, at most
};

static float number_of(const struct ddp *ddp, const void *memory, size_t index)
{
    uint32_t bits;
    float number;
    if (ddp->bf16)
        bits = (uint32_t)((const uint16_t *)memory)[index] << 16;
    else
        bits = ((const uint32_t *)memory)[index];
    memcpy(&number, &bits, sizeof number);
    return number;
}

static double absolute(double value)
{
    return value < 0 ? -value : value;
}

// Reductions.

// The first elements of some layers' gradients.
struct slices {
    size_t count; // elements of a slice
    size_t layers[3];
    unsigned char *bytes; // of all slices
};

static bool make_slices(struct ddp *ddp, struct slices *slices)
{
    const size_t weight = (size_t)(ddp->width * ddp->width);
    slices->count = weight < SLICE ? weight : SLICE;
    slices->layers[0] = 0;
    slices->layers[1] = (size_t)ddp->layers / 2;
    slices->layers[2] = (size_t)ddp->layers - 1;
    slices->bytes = calloc(3 * slices->count, ddp->element_size);
    return slices->bytes || bench_fail(ddp->bench, CLI_FAILED, "no memory to check the gradients");
}

static bool read_slices(struct ddp *ddp, struct ddp_rank *rank, size_t buckets,
                        struct slices *slices)
{
    const size_t bytes = slices->count * ddp->element_size;
    for (size_t i = 0; i < 3; i++) {
        const struct train_product *product =
            &rank->weight[buckets * ddp->layers + slices->layers[i]];
        if (weir_download(rank->place->queue, slices->bytes + i * bytes, product->c.buffer,
                          product->c.offset, bytes) < 0)
            return bench_fail_weir(ddp->bench);
    }
    return true;
}

static bool compare_slices(struct ddp *ddp, const struct slices *found, const struct slices *wanted,
                           const char *way, size_t buckets)
{
    const double part = ddp->bf16 ? 0x1p-7 : 0x1p-20;
    for (size_t i = 0; i < 3 * found->count; i++) {
        const double value = number_of(ddp, found->bytes, i);
        const double average = number_of(ddp, wanted->bytes, i);
        ddp->bench->checked++;
        if (!(absolute(value - average) <= part * absolute(average)))
            return bench_fail_result(ddp->bench,
                                     "%s, buckets %zu: element %zu of layer %zu is %g in place "
                                     "of %g",
                                     way, buckets, i % found->count,
                                     found->layers[i / found->count], value, average);
    }
    return true;
}

static bool run_all(struct ddp *ddp, enum ddp_way way, size_t buckets)
{
    weir_status status = WEIR_OK;
    for (uint32_t i = 0; i < ddp->all.local_count && status == WEIR_OK; i++)
        status = ddp_submit(ddp, &ddp->ranks[i], way, buckets);
    return (status == WEIR_OK && bench_ranks_sync(&ddp->all) == WEIR_OK) ||
           bench_fail_weir(ddp->bench);
}

// The averages of gradients that were computed before, layer by layer.
static bool average(struct ddp *ddp)
{
    const size_t count = (size_t)(ddp->width * ddp->width);
    weir_status status = WEIR_OK;
    for (uint32_t i = 0; i < ddp->all.local_count; i++) {
        struct ddp_rank *rank = &ddp->ranks[i];
        for (size_t layer = 0; layer < ddp->layers && status == WEIR_OK; layer++) {
            const struct train_range *c = &rank->weight[layer].c;
            status = weir_queue_all_reduce(rank->place->queue, rank->place->comm, c->buffer,
                                           c->offset, c->buffer, c->offset, count,
                                           ddp->bf16 ? WEIR_BF16 : WEIR_F32, WEIR_AVERAGE);
        }
    }
    return (status == WEIR_OK && bench_ranks_sync(&ddp->all) == WEIR_OK) ||
           bench_fail_weir(ddp->bench);
}

static bool clear(struct ddp *ddp, size_t buckets)
{
    static const uint16_t nothing = 0xffff; // no number
    for (uint32_t i = 0; i < ddp->all.local_count; i++) {
        struct ddp_rank *rank = &ddp->ranks[i];
        const struct train_range *c = &rank->weight[buckets * ddp->layers].c;
        if (ddp->computes &&
            weir_queue_fill(rank->place->queue, c->buffer, 0, weir_buffer_size(c->buffer), &nothing,
                            sizeof nothing) < 0)
            return bench_fail_weir(ddp->bench);
    }
    return bench_fine(ddp->bench, bench_ranks_sync(&ddp->all));
}

static bool check_way(struct ddp *ddp, enum ddp_way way, size_t buckets,
                      const struct slices *wanted, struct slices *found)
{
    if (!clear(ddp, buckets) || !run_all(ddp, way, buckets))
        return false;
    for (uint32_t i = 0; i < ddp->all.local_count; i++)
        if (!read_slices(ddp, &ddp->ranks[i], buckets, found) ||
            !compare_slices(ddp, found, wanted, ddp_way_name(way), buckets))
            return false;
    return true;
}

static bool check_ways(struct ddp *ddp, const struct slices *wanted)
{
    struct slices found = {0};
    bool fine = make_slices(ddp, &found);
    for (size_t i = 0; i < ddp->caps.count && fine; i++)
        fine = check_way(ddp, DDP_SERIAL, i, wanted, &found) &&
               check_way(ddp, DDP_OVERLAPPED, i, wanted, &found) &&
               (!ddp->raw || check_way(ddp, DDP_RAW, i, wanted, &found));
    free(found.bytes);
    return fine;
}

static bool has_numbers(const struct ddp *ddp, const struct slices *slices)
{
    for (size_t i = 0; i < 3 * slices->count; i++)
        if (number_of(ddp, slices->bytes, i) != 0)
            return true;
    return false;
}

bool ddp_check(struct ddp *ddp)
{
    struct slices wanted = {0};
    bool fine = make_slices(ddp, &wanted) && run_all(ddp, DDP_COMPUTE, 0) &&
                read_slices(ddp, &ddp->ranks[0], 0, &wanted);
    ddp->computes = fine && has_numbers(ddp, &wanted);
    fine = fine && average(ddp) && read_slices(ddp, &ddp->ranks[0], 0, &wanted) &&
           check_ways(ddp, &wanted);
    free(wanted.bytes);
    return fine;
}
