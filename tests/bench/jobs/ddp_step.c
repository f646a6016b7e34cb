// The memory of the ranks, one step, and the check of its results.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/train/train_f32.h"
#include "tests/bench/jobs/ddp.h"

// Where the gradient of an activation lies: that of the loss stays, the others alternate.
static size_t gradient_slot(const struct ddp *ddp, size_t layer)
{
    return layer == ddp->layers ? 0 : 1 + layer % 2;
}

// Opening.

static bool make_buffer(struct ddp *ddp, struct ddp_rank *rank, const char *label, size_t size,
                        weir_buffer **out_buffer)
{
    return bench_buffer_on(ddp->bench, rank->place->device, label, size, WEIR_PLACE_DEVICE,
                           out_buffer);
}

static bool make_memory(struct ddp *ddp, struct ddp_rank *rank)
{
    const size_t layers = (size_t)ddp->layers;
    const size_t weight = (size_t)(ddp->width * ddp->width) * ddp->element_size;
    const size_t batch = ddp->batch_max * (size_t)ddp->width * ddp->element_size;
    return make_buffer(ddp, rank, "ddp/weights", layers * weight, &rank->weights) &&
           make_buffer(ddp, rank, "ddp/activations", (layers + 1) * batch, &rank->activations) &&
           make_buffer(ddp, rank, "ddp/gradients", 3 * batch, &rank->gradients);
}

static bool make_engine(struct ddp *ddp, struct ddp_rank *rank)
{
    weir_device *device = rank->place->device;
    rank->engine.bf16 = ddp->bf16;
    if (ddp->blas)
        return bench_fine(ddp->bench, train_blas_open(device, ddp->cublas, &rank->engine.blas));
    return bench_kernel_on(ddp->bench, device, &train_f32_kernels, "product", &rank->program,
                           &rank->engine.product) &&
           bench_kernel_on(ddp->bench, device, &train_f32_kernels, "sum_parts", &rank->program,
                           &rank->engine.sum_parts);
}

static bool make_products(struct ddp *ddp, struct ddp_rank *rank)
{
    const size_t layers = (size_t)ddp->layers;
    rank->forward = calloc((2 + ddp->caps.count) * layers, sizeof *rank->forward);
    if (!rank->forward)
        return bench_fail(ddp->bench, CLI_FAILED, "no memory for the products");
    rank->back = rank->forward + layers;
    rank->weight = rank->back + layers;
    return true;
}

// In the order of the backward pass.
static struct weir_bucket_parameter *list_parameters(const struct ddp *ddp)
{
    struct weir_bucket_parameter *parameters = calloc((size_t)ddp->layers, sizeof *parameters);
    for (uint64_t i = 0; parameters && i < ddp->layers; i++)
        parameters[i] = (struct weir_bucket_parameter){.struct_size = sizeof *parameters,
                                                       .name = "weight",
                                                       .count = (size_t)(ddp->width * ddp->width)};
    return parameters;
}

// A number of --buckets, or `auto`.
static size_t cap_of(const struct ddp *ddp, size_t index)
{
    const uint64_t value = ddp->caps.values[index];
    return value == BENCH_WORD ? WEIR_BUCKETS_AUTO : (size_t)value;
}

static bool make_buckets(struct ddp *ddp, size_t index,
                         const struct weir_bucket_parameter *parameters)
{
    const struct weir_buckets_params params = {
        .struct_size = sizeof params,
        .label = "ddp",
        .element = ddp->bf16 ? WEIR_BF16 : WEIR_F32,
        .parameters = parameters,
        .parameter_count = (uint32_t)ddp->layers,
        .parameter_size = sizeof *parameters,
        .cap_bytes = cap_of(ddp, index),
        .first_bytes = cap_of(ddp, index),
    };
    weir_comm *comms[BENCH_RANKS_MAX];
    weir_buckets *made[BENCH_RANKS_MAX];
    for (uint32_t i = 0; i < ddp->all.local_count; i++)
        comms[i] = ddp->all.ranks[i].comm;
    if (weir_buckets_create_all(&params, comms, ddp->all.local_count, made) < 0)
        return bench_fail_weir(ddp->bench);
    for (uint32_t i = 0; i < ddp->all.local_count; i++)
        ddp->ranks[i].buckets[index] = made[i];
    return true;
}

static bool make_all_buckets(struct ddp *ddp)
{
    struct weir_bucket_parameter *parameters = list_parameters(ddp);
    bool fine = parameters || bench_fail(ddp->bench, CLI_FAILED, "no memory for the parameters");
    for (size_t i = 0; i < ddp->caps.count && fine; i++)
        fine = make_buckets(ddp, i, parameters);
    free(parameters);
    return fine;
}

// Numbers.

static uint32_t next_number(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

// Fills with numbers from -bound to bound, of the element's type.
static void make_numbers(const struct ddp *ddp, void *memory, size_t count, float bound,
                         uint32_t seed)
{
    for (size_t i = 0; i < count; i++) {
        const float number = bound * ((float)next_number(&seed) / (float)(1 << 23) - 1);
        uint32_t bits;
        memcpy(&bits, &number, sizeof bits);
        if (ddp->bf16)
            ((uint16_t *)memory)[i] = (uint16_t)(bits >> 16);
        else
            ((uint32_t *)memory)[i] = bits;
    }
}

// The weights of all ranks are alike, inputs and losses are not. A product of numbers up to
// sqrt(3 / width) keeps the size of what it multiplies.
static bool fill_rank(struct ddp *ddp, struct ddp_rank *rank, void *memory, float bound)
{
    const size_t weight = (size_t)(ddp->width * ddp->width);
    const size_t batch = ddp->batch_max * (size_t)ddp->width;
    const uint32_t seed = weir_comm_rank(rank->place->comm);
    weir_status status = WEIR_OK;
    make_numbers(ddp, memory, weight, bound, 1000);
    for (size_t i = 0; i < ddp->layers && status == WEIR_OK; i++)
        status = weir_upload(rank->place->queue, rank->weights, i * weight * ddp->element_size,
                             memory, weight * ddp->element_size);
    make_numbers(ddp, memory, batch, 1, seed);
    if (status == WEIR_OK)
        status = weir_upload(rank->place->queue, rank->activations, 0, memory,
                             batch * ddp->element_size);
    make_numbers(ddp, memory, batch, 1, 500 + seed);
    if (status == WEIR_OK)
        status =
            weir_upload(rank->place->queue, rank->gradients, 0, memory, batch * ddp->element_size);
    return bench_fine(ddp->bench, status);
}

static float root(float value)
{
    float guess = 1;
    for (int i = 0; i < 40; i++)
        guess = (guess + value / guess) / 2;
    return guess;
}

static bool fill(struct ddp *ddp)
{
    const size_t weight = (size_t)(ddp->width * ddp->width);
    const size_t batch = ddp->batch_max * (size_t)ddp->width;
    void *memory = calloc(weight > batch ? weight : batch, ddp->element_size);
    bool fine = memory || bench_fail(ddp->bench, CLI_FAILED, "no memory for the numbers");
    for (uint32_t i = 0; i < ddp->all.local_count && fine; i++)
        fine = fill_rank(ddp, &ddp->ranks[i], memory, root(3 / (float)ddp->width));
    free(memory);
    return fine;
}

bool ddp_open(struct ddp *ddp)
{
    for (uint32_t i = 0; i < ddp->all.local_count; i++) {
        struct ddp_rank *rank = &ddp->ranks[i];
        rank->place = &ddp->all.ranks[i];
        if (!make_memory(ddp, rank) || !make_engine(ddp, rank) || !make_products(ddp, rank))
            return false;
    }
    return fill(ddp) && make_all_buckets(ddp);
}

void ddp_close(struct ddp *ddp)
{
    for (uint32_t i = ddp->all.local_count; i-- > 0;) {
        struct ddp_rank *rank = &ddp->ranks[i];
        if (rank->place)
            WEIR_IGNORE(weir_queue_sync(rank->place->queue, WEIR_FOREVER));
        for (size_t k = 0; k < DDP_BUCKETS_MAX; k++)
            weir_buckets_destroy(&rank->buckets[k]);
        train_blas_close(&rank->engine.blas);
        weir_kernel_destroy(&rank->engine.sum_parts);
        weir_kernel_destroy(&rank->engine.product);
        weir_program_destroy(&rank->program);
        weir_buffer_destroy(&rank->engine.parts);
        weir_buffer_destroy(&rank->gradients);
        weir_buffer_destroy(&rank->activations);
        weir_buffer_destroy(&rank->weights);
        free(rank->forward);
    }
}

// Products.

// Matrix `index` of a buffer of matrices with that many elements.
static struct train_range matrix(const struct ddp *ddp, weir_buffer *buffer, size_t index,
                                 size_t distance, size_t count)
{
    return (struct train_range){buffer, index * distance * ddp->element_size,
                                count * ddp->element_size};
}

static struct train_range weight_of(const struct ddp *ddp, const struct ddp_rank *rank,
                                    size_t layer)
{
    const size_t count = (size_t)(ddp->width * ddp->width);
    return matrix(ddp, rank->weights, layer, count, count);
}

static struct train_range activation_of(const struct ddp *ddp, const struct ddp_rank *rank,
                                        size_t layer)
{
    return matrix(ddp, rank->activations, layer, ddp->batch_max * (size_t)ddp->width,
                  ddp->batch * (size_t)ddp->width);
}

static struct train_range gradient_of(const struct ddp *ddp, const struct ddp_rank *rank,
                                      size_t layer)
{
    return matrix(ddp, rank->gradients, gradient_slot(ddp, layer),
                  ddp->batch_max * (size_t)ddp->width, ddp->batch * (size_t)ddp->width);
}

static void describe_layer(const struct ddp *ddp, struct ddp_rank *rank, size_t layer)
{
    const uint32_t batch = (uint32_t)ddp->batch, width = (uint32_t)ddp->width;
    rank->forward[layer] = (struct train_product){.a = activation_of(ddp, rank, layer),
                                                  .b = weight_of(ddp, rank, layer),
                                                  .c = activation_of(ddp, rank, layer + 1),
                                                  .m = batch,
                                                  .n = width,
                                                  .k = width};
    rank->back[layer] = (struct train_product){.a = gradient_of(ddp, rank, layer + 1),
                                               .b = weight_of(ddp, rank, layer),
                                               .c = gradient_of(ddp, rank, layer),
                                               .m = batch,
                                               .n = width,
                                               .k = width,
                                               .turned_b = true};
    for (size_t i = 0; i < ddp->caps.count; i++) {
        struct weir_bucket_view view;
        WEIR_IGNORE(
            weir_buckets_get_view(rank->buckets[i], (uint32_t)(ddp->layers - 1 - layer), &view));
        rank->weight[i * ddp->layers + layer] =
            (struct train_product){.a = activation_of(ddp, rank, layer),
                                   .b = gradient_of(ddp, rank, layer + 1),
                                   .c = {view.buffer, view.offset, view.size},
                                   .m = width,
                                   .n = width,
                                   .k = batch,
                                   .turned_a = true};
    }
}

static bool prepare(struct ddp *ddp, struct ddp_rank *rank)
{
    uint64_t parts = 0;
    for (size_t i = 0; i < (2 + ddp->caps.count) * ddp->layers; i++) {
        const uint64_t bytes = train_product_divide(&rank->forward[i]);
        parts = bytes > parts ? bytes : parts;
        if (train_product_prepare(&rank->engine, &rank->forward[i]) < 0)
            return bench_fail_weir(ddp->bench);
        rank->forward[i].native.narrow = ddp->bf16;
    }
    weir_buffer_destroy(&rank->engine.parts);
    return parts == 0 || ddp->blas ||
           make_buffer(ddp, rank, "ddp/parts", (size_t)parts, &rank->engine.parts);
}

bool ddp_set_batch(struct ddp *ddp, size_t batch)
{
    ddp->batch = batch;
    for (uint32_t i = 0; i < ddp->all.local_count; i++) {
        struct ddp_rank *rank = &ddp->ranks[i];
        for (size_t layer = 0; layer < ddp->layers; layer++)
            describe_layer(ddp, rank, layer);
        if (!prepare(ddp, rank))
            return false;
    }
    return true;
}

// The step.

static weir_status multiply(struct ddp_rank *rank, struct train_product *product)
{
    return train_product_submit(&rank->engine, rank->place->queue, product);
}

static weir_status mark(const struct ddp *ddp, struct ddp_rank *rank, size_t buckets, size_t layer)
{
    return weir_buckets_ready(rank->buckets[buckets], (uint32_t)(ddp->layers - 1 - layer),
                              rank->place->queue);
}

static weir_status compute(const struct ddp *ddp, struct ddp_rank *rank, bool marks, size_t buckets)
{
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < ddp->layers && status == WEIR_OK; i++)
        status = multiply(rank, &rank->forward[i]);
    for (size_t i = (size_t)ddp->layers; i-- > 0 && status == WEIR_OK;) {
        status = multiply(rank, &rank->weight[buckets * ddp->layers + i]);
        if (status == WEIR_OK && marks)
            status = mark(ddp, rank, buckets, i);
        if (status == WEIR_OK && i > 0)
            status = multiply(rank, &rank->back[i]);
    }
    return status;
}

static weir_status submit(const struct ddp *ddp, struct ddp_rank *rank, enum ddp_way way,
                          size_t buckets)
{
    const bool reduces = way != DDP_COMPUTE;
    if (way == DDP_RAW)
        return ddp_raw_step(ddp, buckets);
    weir_status status = reduces ? weir_buckets_begin(rank->buckets[buckets], true) : WEIR_OK;
    if (status == WEIR_OK && way != DDP_COMMUNICATE)
        status = compute(ddp, rank, way == DDP_OVERLAPPED, buckets);
    for (size_t i = (size_t)ddp->layers;
         i-- > 0 && status == WEIR_OK && reduces && way != DDP_OVERLAPPED;)
        status = mark(ddp, rank, buckets, i);
    if (status == WEIR_OK && reduces)
        status = weir_buckets_finish(rank->buckets[buckets], rank->place->queue);
    return status;
}

double ddp_time(struct ddp *ddp, enum ddp_way way, size_t buckets)
{
    weir_status status = bench_ranks_meet(&ddp->all);
    const uint64_t began_ns = cli_now_ns();
    for (uint32_t i = 0; i < ddp->all.local_count && status == WEIR_OK; i++)
        status = submit(ddp, &ddp->ranks[i], way, buckets);
    if (status == WEIR_OK)
        status = bench_ranks_sync(&ddp->all);
    const double ms = status == WEIR_OK
                          ? bench_ranks_slowest(&ddp->all, (double)(cli_now_ns() - began_ns) / 1e6)
                          : -1;
    if (ms < 0)
        (void)bench_fail_weir(ddp->bench);
    return ms;
}

// The results, before anything is measured.

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
        status = submit(ddp, &ddp->ranks[i], way, buckets);
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
