// The memory of the rank, one step, and the check of its results.
#include <math.h>
#include <string.h>

#include "kernels/train/train_f32.h"
#include "tests/bench/jobs/ddp.h"

// Where the gradient of an activation lies: that of the loss stays, the others alternate.
static size_t gradient_slot(const struct ddp *ddp, size_t layer)
{
    return layer == ddp->layers ? 0 : 1 + layer % 2;
}

// Opening.

static void close_step(void *object, void *with)
{
    struct ddp *ddp = object;
    WEIR_IGNORE(weir_queue_sync(ddp->place->queue, WEIR_FOREVER));
    for (size_t k = 0; k < DDP_BUCKETS_MAX; k++)
        weir_buckets_destroy(&ddp->buckets[k]);
    train_blas_close(&ddp->engine.blas);
    weir_buffer_destroy(&ddp->engine.parts);
}

static void open_rank(struct ddp *ddp)
{
    const size_t layers = (size_t)ddp->layers;
    const size_t weight = (size_t)(ddp->width * ddp->width) * ddp->element_size;
    const size_t batch = ddp->batch_max * (size_t)ddp->width * ddp->element_size;
    weir_device *device = ddp->place->device;
    bench_buffer(device, "ddp/weights", layers * weight, WEIR_PLACE_DEVICE, &ddp->weights);
    bench_buffer(device, "ddp/activations", (layers + 1) * batch, WEIR_PLACE_DEVICE,
                 &ddp->activations);
    bench_buffer(device, "ddp/gradients", 3 * batch, WEIR_PLACE_DEVICE, &ddp->gradients);
    ddp->forward = cli_allocate((2 + ddp->caps.count) * layers, sizeof *ddp->forward);
    ddp->back = ddp->forward + layers;
    ddp->weight = ddp->back + layers;
    ddp->engine.bf16 = ddp->bf16;
    if (!ddp->blas) {
        bench_kernel(device, &train_f32_kernels, "product", &ddp->program, &ddp->engine.product);
        bench_kernel(device, &train_f32_kernels, "sum_parts", &ddp->program,
                     &ddp->engine.sum_parts);
    }
    cli_own(close_step, ddp, NULL);
    if (ddp->blas)
        cli_fine(train_blas_open(device, ddp->cublas, &ddp->engine.blas));
}

// A number of --buckets, or `auto`.
static size_t cap_of(const struct ddp *ddp, size_t index)
{
    const uint64_t value = ddp->caps.values[index];
    return value == BENCH_WORD ? WEIR_BUCKETS_AUTO : (size_t)value;
}

// Of the parameters in the order of the backward pass.
static void make_buckets(struct ddp *ddp, size_t index,
                         const struct weir_bucket_parameter *parameters)
{
    const struct weir_buckets_params params = {
        .struct_size = sizeof params,
        .label = "ddp",
        .comm = ddp->place->comm,
        .element = ddp->bf16 ? WEIR_BF16 : WEIR_F32,
        .parameters = parameters,
        .parameter_count = (uint32_t)ddp->layers,
        .parameter_size = sizeof *parameters,
        .cap_bytes = cap_of(ddp, index),
        .first_bytes = cap_of(ddp, index),
    };
    cli_fine(weir_buckets_create(&params, &ddp->buckets[index]));
}

static void make_all_buckets(struct ddp *ddp)
{
    struct weir_bucket_parameter *parameters =
        cli_allocate((size_t)ddp->layers, sizeof *parameters);
    for (uint64_t i = 0; i < ddp->layers; i++)
        parameters[i] = (struct weir_bucket_parameter){.struct_size = sizeof *parameters,
                                                       .name = "weight",
                                                       .count = (size_t)(ddp->width * ddp->width)};
    for (size_t i = 0; i < ddp->caps.count; i++)
        make_buckets(ddp, i, parameters);
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

static void upload(struct ddp *ddp, weir_buffer *buffer, size_t at, const void *memory,
                   size_t count)
{
    cli_fine(weir_upload(ddp->place->queue, buffer, at * ddp->element_size, memory,
                         count * ddp->element_size));
}

// The weights of all ranks are alike, inputs and losses are not. A product of numbers up to
// sqrt(3 / width) keeps the size of what it multiplies.
static void fill_rank(struct ddp *ddp, void *memory)
{
    const size_t weight = (size_t)(ddp->width * ddp->width);
    const size_t batch = ddp->batch_max * (size_t)ddp->width;
    const uint32_t seed = weir_comm_rank(ddp->place->comm);
    make_numbers(ddp, memory, weight, sqrtf(3 / (float)ddp->width), 1000);
    for (size_t i = 0; i < ddp->layers; i++)
        upload(ddp, ddp->weights, i * weight, memory, weight);
    make_numbers(ddp, memory, batch, 1, seed);
    upload(ddp, ddp->activations, 0, memory, batch);
    make_numbers(ddp, memory, batch, 1, 500 + seed);
    upload(ddp, ddp->gradients, 0, memory, batch);
}

void ddp_open(struct ddp *ddp)
{
    const size_t weight = (size_t)(ddp->width * ddp->width);
    const size_t batch = ddp->batch_max * (size_t)ddp->width;
    void *memory = cli_allocate(weight > batch ? weight : batch, ddp->element_size);
    ddp->place = &ddp->all.ranks[0];
    open_rank(ddp);
    fill_rank(ddp, memory);
    make_all_buckets(ddp);
}

// Products.

// Matrix `index` of a buffer of matrices with that many elements.
static struct train_range matrix(const struct ddp *ddp, weir_buffer *buffer, size_t index,
                                 size_t distance, size_t count)
{
    return (struct train_range){buffer, index * distance * ddp->element_size,
                                count * ddp->element_size};
}

static struct train_range weight_of(const struct ddp *ddp, size_t layer)
{
    const size_t count = (size_t)(ddp->width * ddp->width);
    return matrix(ddp, ddp->weights, layer, count, count);
}

static struct train_range activation_of(const struct ddp *ddp, size_t layer)
{
    return matrix(ddp, ddp->activations, layer, ddp->batch_max * (size_t)ddp->width,
                  ddp->batch * (size_t)ddp->width);
}

static struct train_range gradient_of(const struct ddp *ddp, size_t layer)
{
    return matrix(ddp, ddp->gradients, gradient_slot(ddp, layer),
                  ddp->batch_max * (size_t)ddp->width, ddp->batch * (size_t)ddp->width);
}

static void describe_layer(const struct ddp *ddp, size_t layer)
{
    const uint32_t batch = (uint32_t)ddp->batch, width = (uint32_t)ddp->width;
    ddp->forward[layer] = (struct train_product){.a = activation_of(ddp, layer),
                                                 .b = weight_of(ddp, layer),
                                                 .c = activation_of(ddp, layer + 1),
                                                 .m = batch,
                                                 .n = width,
                                                 .k = width};
    ddp->back[layer] = (struct train_product){.a = gradient_of(ddp, layer + 1),
                                              .b = weight_of(ddp, layer),
                                              .c = gradient_of(ddp, layer),
                                              .m = batch,
                                              .n = width,
                                              .k = width,
                                              .turned_b = true};
    for (size_t i = 0; i < ddp->caps.count; i++) {
        struct weir_bucket_view view;
        WEIR_IGNORE(
            weir_buckets_get_view(ddp->buckets[i], (uint32_t)(ddp->layers - 1 - layer), &view));
        ddp->weight[i * ddp->layers + layer] =
            (struct train_product){.a = activation_of(ddp, layer),
                                   .b = gradient_of(ddp, layer + 1),
                                   .c = {view.buffer, view.offset, view.size},
                                   .m = width,
                                   .n = width,
                                   .k = batch,
                                   .turned_a = true};
    }
}

static void prepare(struct ddp *ddp)
{
    struct weir_buffer_params parts = {.struct_size = sizeof parts, .label = "ddp/parts"};
    for (size_t i = 0; i < (2 + ddp->caps.count) * ddp->layers; i++) {
        const uint64_t bytes = train_product_divide(&ddp->forward[i]);
        parts.size = bytes > parts.size ? (size_t)bytes : parts.size;
        cli_fine(train_product_prepare(&ddp->engine, &ddp->forward[i]));
        ddp->forward[i].native.narrow = ddp->bf16;
    }
    weir_buffer_destroy(&ddp->engine.parts);
    if (parts.size > 0 && !ddp->blas)
        cli_fine(weir_buffer_create(ddp->place->device, &parts, &ddp->engine.parts));
}

void ddp_set_batch(struct ddp *ddp, size_t batch)
{
    ddp->batch = batch;
    for (size_t layer = 0; layer < ddp->layers; layer++)
        describe_layer(ddp, layer);
    prepare(ddp);
}

// The step.

static void multiply(const struct ddp *ddp, struct train_product *product)
{
    cli_fine(train_product_submit(&ddp->engine, ddp->place->queue, product));
}

static void mark(const struct ddp *ddp, size_t buckets, size_t layer)
{
    cli_fine(weir_buckets_ready(ddp->buckets[buckets], (uint32_t)(ddp->layers - 1 - layer),
                                ddp->place->queue));
}

static void compute(const struct ddp *ddp, bool marks, size_t buckets)
{
    for (size_t i = 0; i < ddp->layers; i++)
        multiply(ddp, &ddp->forward[i]);
    for (size_t i = (size_t)ddp->layers; i-- > 0;) {
        multiply(ddp, &ddp->weight[buckets * ddp->layers + i]);
        if (marks)
            mark(ddp, buckets, i);
        if (i > 0)
            multiply(ddp, &ddp->back[i]);
    }
}

static void submit(const struct ddp *ddp, enum ddp_way way, size_t buckets)
{
    const bool reduces = way != DDP_COMPUTE;
    if (way == DDP_RAW) {
        ddp_raw_step(ddp, buckets);
        return;
    }
    if (reduces)
        cli_fine(weir_buckets_begin(ddp->buckets[buckets], true));
    if (way != DDP_COMMUNICATE)
        compute(ddp, way == DDP_OVERLAPPED, buckets);
    for (size_t i = (size_t)ddp->layers; i-- > 0 && reduces && way != DDP_OVERLAPPED;)
        mark(ddp, buckets, i);
    if (reduces)
        cli_fine(weir_buckets_finish(ddp->buckets[buckets], ddp->place->queue));
}

static void run(struct ddp *ddp, enum ddp_way way, size_t buckets)
{
    submit(ddp, way, buckets);
    bench_ranks_sync(&ddp->all);
}

double ddp_time(struct ddp *ddp, enum ddp_way way, size_t buckets)
{
    bench_ranks_meet(&ddp->all);
    const uint64_t began_ns = cli_now_ns();
    run(ddp, way, buckets);
    return bench_ranks_slowest(&ddp->all, (double)(cli_now_ns() - began_ns) / 1e6);
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

// Reductions.

// The first elements of some layers' gradients.
struct slices {
    size_t count; // elements of a slice
    size_t layers[3];
    unsigned char *bytes; // of all slices
};

static void make_slices(struct ddp *ddp, struct slices *slices)
{
    const size_t weight = (size_t)(ddp->width * ddp->width);
    slices->count = weight < SLICE ? weight : SLICE;
    slices->layers[0] = 0;
    slices->layers[1] = (size_t)ddp->layers / 2;
    slices->layers[2] = (size_t)ddp->layers - 1;
    slices->bytes = cli_allocate(3 * slices->count, ddp->element_size);
}

static void read_slices(struct ddp *ddp, size_t buckets, struct slices *slices)
{
    const size_t bytes = slices->count * ddp->element_size;
    for (size_t i = 0; i < 3; i++) {
        const struct train_product *product =
            &ddp->weight[buckets * ddp->layers + slices->layers[i]];
        cli_fine(weir_download(ddp->place->queue, slices->bytes + i * bytes, product->c.buffer,
                               product->c.offset, bytes));
    }
}

static void compare_slices(struct ddp *ddp, const struct slices *found, const struct slices *wanted,
                           const char *way, size_t buckets)
{
    const double part = ddp->bf16 ? 0x1p-7 : 0x1p-20;
    for (size_t i = 0; i < 3 * found->count; i++) {
        const double value = number_of(ddp, found->bytes, i);
        const double average = number_of(ddp, wanted->bytes, i);
        bench.checked++;
        if (!(fabs(value - average) <= part * fabs(average)))
            cli_fail(CLI_FAILED, "%s, buckets %zu: element %zu of layer %zu is %g in place of %g",
                     way, buckets, i % found->count, found->layers[i / found->count], value,
                     average);
    }
}

// The averages of gradients that were computed before, layer by layer.
static void average(struct ddp *ddp)
{
    const size_t count = (size_t)(ddp->width * ddp->width);
    for (size_t layer = 0; layer < ddp->layers; layer++) {
        const struct train_range *c = &ddp->weight[layer].c;
        cli_fine(weir_queue_all_reduce(ddp->place->queue, ddp->place->comm, c->buffer, c->offset,
                                       c->buffer, c->offset, count,
                                       ddp->bf16 ? WEIR_BF16 : WEIR_F32, WEIR_AVERAGE));
    }
    bench_ranks_sync(&ddp->all);
}

static void check_way(struct ddp *ddp, enum ddp_way way, size_t buckets,
                      const struct slices *wanted, struct slices *found)
{
    static const uint16_t nothing = 0xffff; // no number
    weir_buffer *gradients = ddp->weight[buckets * ddp->layers].c.buffer;
    if (ddp->computes)
        cli_fine(weir_queue_fill(ddp->place->queue, gradients, 0, weir_buffer_size(gradients),
                                 &nothing, sizeof nothing));
    bench_ranks_sync(&ddp->all);
    run(ddp, way, buckets);
    read_slices(ddp, buckets, found);
    compare_slices(ddp, found, wanted, ddp_way_name(way), buckets);
}

static bool has_numbers(const struct ddp *ddp, const struct slices *slices)
{
    for (size_t i = 0; i < 3 * slices->count; i++)
        if (number_of(ddp, slices->bytes, i) != 0)
            return true;
    return false;
}

void ddp_check(struct ddp *ddp)
{
    struct slices wanted, found;
    make_slices(ddp, &wanted);
    make_slices(ddp, &found);
    run(ddp, DDP_COMPUTE, 0);
    read_slices(ddp, 0, &wanted);
    ddp->computes = has_numbers(ddp, &wanted);
    average(ddp);
    read_slices(ddp, 0, &wanted);
    for (size_t i = 0; i < ddp->caps.count; i++) {
        check_way(ddp, DDP_SERIAL, i, &wanted, &found);
        check_way(ddp, DDP_OVERLAPPED, i, &wanted, &found);
        if (ddp->raw)
            check_way(ddp, DDP_RAW, i, &wanted, &found);
    }
}
