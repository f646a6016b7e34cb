// The job `ddp`: a step of data-parallel training whose gradients are reduced in buckets, after the
// backward pass and beside it. Its layers are all alike, as products of matrices.
//
// Of each layer the forward pass computes Y = X W, the backward pass dW = X^T dY and dX = dY W^T; X is
// batch x width and W width x width. The last layer's dW comes first, and so does its bucket.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/runtime/open.h"
#include "kernels/train/train_f32.h"
#include "patterns/buckets.h"
#include "pipelines/train/product.h"
#include "tests/bench/jobs/drivers.h"
#include "tests/bench/jobs/nccl.h"

#define CAP_MOST (UINT64_C(1) << 40)

enum {
    DDP_BUCKETS_MAX = BENCH_LIST_MAX,
    DDP_LAYERS_MAX = 1024,
    BATCH_MOST = 1 << 20,
    WIDTH_MOST = 1 << 15,
    SETTLING = 5, // steps before a batch is measured
};

static const char *const cap_words[] = {"auto", NULL};
static const char *const elements[] = {"f32", "bf16", NULL};

// The ways of one step.
enum ddp_way {
    DDP_COMPUTE,     // no reduction
    DDP_COMMUNICATE, // the reductions alone
    DDP_SERIAL,      // the reductions after the backward pass
    DDP_OVERLAPPED,  // beside it
    DDP_RAW,         // the same without Weir
};

static const char *const way_names[] = {"computation", "communication", "serial", "overlapped",
                                        "raw"};

// One way of the step, with one batch.
struct ddp_row {
    size_t batch;
    enum ddp_way way;
    size_t buckets;
    struct bench_samples ms;
};

struct ddp_raw {
    struct raw_nccl api; // whose stream reduces
    CUstream compute;
    CUevent event;             // of one stream, for which the other waits at once
    struct weir_bucket bucket; // of a step: the one that is reduced next
};

struct ddp {
    // The command line. 0: by the device.
    const char *config;
    const char *cublas; // the file; NULL: the linker's
    const char *nccl;   // the same, for the raw step
    uint64_t layers;
    uint64_t width;

    struct bench_ranks all; // one of this process
    struct bench_rank *place;
    weir_program *program;
    struct train_engine engine;
    weir_buffer *weights;     // of all layers
    weir_buffer *activations; // of the input and all layers
    weir_buffer *gradients;   // two of dY, in turn
    weir_buckets *buckets[DDP_BUCKETS_MAX];
    struct train_product *forward; // of each layer, and after them:
    struct train_product *back;    // dX; unused of the first layer
    struct train_product *weight;  // dW, with the buckets of each index: [index * layers + layer]
    struct bench_list batches, caps, element;
    bool bf16;
    bool blas;           // products are cuBLAS's
    bool computes;       // products give numbers
    size_t element_size; // of all matrices
    size_t batch_max;
    size_t batch;          // of the products as they are
    struct ddp_raw *raw;   // NULL: there is none
    char raw_message[256]; // why

    // Of each batch: compute, communicate, then for all caps serial, overlapped and, if there is one, raw.
    struct ddp_row *rows;
    size_t ways; // of each cap, from DDP_SERIAL on
    size_t rows_of_batch;
    size_t row_count;
};

// Opening.

static void close_step(void *object)
{
    struct ddp *ddp = object;
    WEIR_IGNORE(weir_queue_sync(ddp->place->queue, WEIR_FOREVER));
    for (size_t k = 0; k < DDP_BUCKETS_MAX; k++)
        weir_buckets_destroy(&ddp->buckets[k]);
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
    cli_own(close_step, ddp);
}

// Of the parameters in the order of the backward pass.
static void make_buckets(struct ddp *ddp, size_t index,
                         const struct weir_bucket_parameter *parameters)
{
    const uint64_t value = ddp->caps.values[index];
    const size_t cap = value == BENCH_WORD ? WEIR_BUCKETS_AUTO : (size_t)value;
    const struct weir_buckets_params params = {
        .struct_size = sizeof params,
        .label = "ddp",
        .comm = ddp->place->comm,
        .element = ddp->bf16 ? WEIR_BF16 : WEIR_F32,
        .parameters = parameters,
        .parameter_count = (uint32_t)ddp->layers,
        .parameter_size = sizeof *parameters,
        .cap_bytes = cap,
        .first_bytes = cap,
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

// Fills with numbers from -bound to bound, of the element's type.
static void make_numbers(const struct ddp *ddp, void *memory, size_t count, float bound,
                         uint32_t seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        const float number = bound * ((float)(seed >> 8) / (float)(1 << 23) - 1);
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

static void open_step(struct ddp *ddp)
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

static struct train_range activation_of(const struct ddp *ddp, size_t layer)
{
    return matrix(ddp, ddp->activations, layer, ddp->batch_max * (size_t)ddp->width,
                  ddp->batch * (size_t)ddp->width);
}

// That of the loss stays, the others alternate.
static struct train_range gradient_of(const struct ddp *ddp, size_t layer)
{
    return matrix(ddp, ddp->gradients, layer == ddp->layers ? 0 : 1 + layer % 2,
                  ddp->batch_max * (size_t)ddp->width, ddp->batch * (size_t)ddp->width);
}

static void describe_layer(const struct ddp *ddp, size_t layer)
{
    const uint32_t batch = (uint32_t)ddp->batch, width = (uint32_t)ddp->width;
    const size_t count = (size_t)(ddp->width * ddp->width);
    const struct train_range weight = matrix(ddp, ddp->weights, layer, count, count);
    ddp->forward[layer] = (struct train_product){.a = activation_of(ddp, layer),
                                                 .b = weight,
                                                 .c = activation_of(ddp, layer + 1),
                                                 .m = batch,
                                                 .n = width,
                                                 .k = width};
    ddp->back[layer] = (struct train_product){.a = gradient_of(ddp, layer + 1),
                                              .b = weight,
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

static void set_batch(struct ddp *ddp, size_t batch)
{
    ddp->batch = batch;
    for (size_t layer = 0; layer < ddp->layers; layer++)
        describe_layer(ddp, layer);
    prepare(ddp);
}

// The step without Weir: two streams of the driver's, events between them, the same products of cuBLAS, and NCCL called
// directly on the same buckets. The context stays current, which is the one that Weir uses too.

static void close_raw(void *object)
{
    struct ddp_raw *raw = object;
    if (raw->api.cu.cuCtxSetCurrent(raw->api.context) != CUDA_SUCCESS)
        return;
    if (raw->event)
        raw->api.cu.cuEventDestroy(raw->event);
    if (raw->compute)
        raw->api.cu.cuStreamDestroy(raw->compute);
}

// NULL, with the reason in `raw_message`, where there is no NCCL, or no cuBLAS.
static struct ddp_raw *open_raw(struct ddp *ddp)
{
    struct ddp_raw *raw = cli_allocate(1, sizeof *raw);
    snprintf(ddp->raw_message, sizeof ddp->raw_message, "it needs cuBLAS");
    if (!raw_nccl_open(&raw->api, &ddp->all, ddp->blas, ddp->nccl, ddp->raw_message,
                       sizeof ddp->raw_message))
        return NULL;
    cli_own(close_raw, raw);
    RAW_CU(&raw->api, cuCtxSetCurrent, raw->api.context);
    RAW_CU(&raw->api, cuStreamCreateWithPriority, &raw->compute, CU_STREAM_NON_BLOCKING, 0);
    RAW_CU(&raw->api, cuEventCreate, &raw->event, CU_EVENT_DISABLE_TIMING);
    return raw;
}

static void raw_multiply(const struct ddp *ddp, struct train_product *product)
{
    const struct weir_native_queue native = {.struct_size = sizeof native,
                                             .api = WEIR_NATIVE_CUDA,
                                             .context = ddp->raw->api.context,
                                             .queue = ddp->raw->compute};
    cli_fine(train_blas_multiply(&native, &product->native));
}

// Once the layer's gradient is submitted: reduces its bucket, if that is the last one of it.
static void raw_mark(const struct ddp *ddp, size_t buckets, size_t layer)
{
    struct ddp_raw *raw = ddp->raw;
    const struct weir_bucket *bucket = &raw->bucket;
    // The first gradient of the backward pass is the first byte of the buckets.
    const uint64_t base = ddp->weight[buckets * ddp->layers + ddp->layers - 1].native.c;
    void *address = (void *)(uintptr_t)(base + bucket->offset);
    if (ddp->layers - layer != bucket->first + bucket->count)
        return;
    RAW_CU(&raw->api, cuEventRecord, raw->event, raw->compute);
    RAW_CU(&raw->api, cuStreamWaitEvent, raw->api.stream, raw->event, 0);
    RAW_NCCL(&raw->api, ncclAllReduce, address, address, bucket->size / ddp->element_size,
             ddp->bf16 ? ncclBfloat16 : ncclFloat32, ncclAvg, raw->api.comm, raw->api.stream);
    if (layer > 0)
        cli_fine(weir_buckets_get_bucket(ddp->buckets[buckets], bucket->index + 1, &raw->bucket));
}

static void raw_begin(const struct ddp *ddp, size_t buckets)
{
    RAW_CU(&ddp->raw->api, cuCtxSetCurrent, ddp->raw->api.context);
    cli_fine(weir_buckets_get_bucket(ddp->buckets[buckets], 0, &ddp->raw->bucket));
}

// Waits for the end.
static void raw_finish(struct ddp_raw *raw)
{
    RAW_CU(&raw->api, cuEventRecord, raw->event, raw->api.stream);
    RAW_CU(&raw->api, cuStreamWaitEvent, raw->compute, raw->event, 0);
    RAW_CU(&raw->api, cuStreamSynchronize, raw->compute);
}

// The step.

static void multiply(const struct ddp *ddp, enum ddp_way way, struct train_product *product)
{
    if (way == DDP_RAW)
        raw_multiply(ddp, product);
    else
        cli_fine(train_product_submit(&ddp->engine, ddp->place->queue, product));
}

static void mark(const struct ddp *ddp, enum ddp_way way, size_t buckets, size_t layer)
{
    if (way == DDP_RAW)
        raw_mark(ddp, buckets, layer);
    else
        cli_fine(weir_buckets_ready(ddp->buckets[buckets], (uint32_t)(ddp->layers - 1 - layer),
                                    ddp->place->queue));
}

static void compute(const struct ddp *ddp, enum ddp_way way, size_t buckets)
{
    for (size_t i = 0; i < ddp->layers; i++)
        multiply(ddp, way, &ddp->forward[i]);
    for (size_t i = (size_t)ddp->layers; i-- > 0;) {
        multiply(ddp, way, &ddp->weight[buckets * ddp->layers + i]);
        if (way == DDP_OVERLAPPED || way == DDP_RAW)
            mark(ddp, way, buckets, i);
        if (i > 0)
            multiply(ddp, way, &ddp->back[i]);
    }
}

static void submit_way(const struct ddp *ddp, enum ddp_way way, size_t buckets)
{
    const bool reduces = way != DDP_COMPUTE && way != DDP_RAW;
    if (way == DDP_RAW)
        raw_begin(ddp, buckets);
    if (reduces)
        cli_fine(weir_buckets_begin(ddp->buckets[buckets], true));
    if (way != DDP_COMMUNICATE)
        compute(ddp, way, buckets);
    for (size_t i = (size_t)ddp->layers; i-- > 0 && reduces && way != DDP_OVERLAPPED;)
        mark(ddp, way, buckets, i);
    if (reduces)
        cli_fine(weir_buckets_finish(ddp->buckets[buckets], ddp->place->queue));
    if (way == DDP_RAW)
        raw_finish(ddp->raw);
}

static void run_way(struct ddp *ddp, enum ddp_way way, size_t buckets)
{
    submit_way(ddp, way, buckets);
    bench_ranks_sync(&ddp->all);
}

static double time_way(struct ddp *ddp, enum ddp_way way, size_t buckets)
{
    bench_ranks_meet(&ddp->all);
    const uint64_t began_ns = cli_now_ns();
    run_way(ddp, way, buckets);
    return bench_ranks_slowest(&ddp->all, (double)(cli_now_ns() - began_ns) / 1e6);
}

// The results, before anything is measured.

enum {
    SLICE = 1024, // elements of a gradient, at most
    SLICES = 3    // of the first, a middle and the last layer
};

struct slices {
    size_t count; // elements of a slice
    float numbers[SLICES * SLICE];
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

// The first elements of some layers' gradients.
static void read_slices(struct ddp *ddp, size_t buckets, struct slices *slices)
{
    const size_t weight = (size_t)(ddp->width * ddp->width);
    uint32_t bytes[SLICE];
    slices->count = weight < SLICE ? weight : SLICE;
    for (size_t i = 0; i < SLICES; i++) {
        const size_t layer = (size_t)(ddp->layers - 1) * i / (SLICES - 1);
        const struct train_range *c = &ddp->weight[buckets * ddp->layers + layer].c;
        cli_fine(weir_download(ddp->place->queue, bytes, c->buffer, c->offset,
                               slices->count * ddp->element_size));
        for (size_t k = 0; k < slices->count; k++)
            slices->numbers[i * slices->count + k] = number_of(ddp, bytes, k);
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
                      const struct slices *wanted)
{
    static const uint16_t nothing = 0xffff; // no number
    static struct slices found;
    const double part = ddp->bf16 ? 0x1p-7 : 0x1p-20;
    weir_buffer *gradients = ddp->weight[buckets * ddp->layers].c.buffer;
    if (ddp->computes)
        cli_fine(weir_queue_fill(ddp->place->queue, gradients, 0, weir_buffer_size(gradients),
                                 &nothing, sizeof nothing));
    bench_ranks_sync(&ddp->all);
    run_way(ddp, way, buckets);
    read_slices(ddp, buckets, &found);
    for (size_t i = 0; i < SLICES * found.count; i++) {
        const double value = found.numbers[i], right = wanted->numbers[i];
        bench.checked++;
        if (!(fabs(value - right) <= part * fabs(right)))
            cli_fail(CLI_FAILED, "%s, buckets %zu: element %zu of slice %zu is %g in place of %g",
                     way_names[way], buckets, i % found.count, i / found.count, value, right);
    }
}

// Compares the averages of the ways that reduce, with all buckets, with those of plain all-reduces. What products
// are, tests/pipelines/train tests.
static void check(struct ddp *ddp)
{
    static struct slices wanted;
    run_way(ddp, DDP_COMPUTE, 0);
    read_slices(ddp, 0, &wanted);
    for (size_t i = 0; i < SLICES * wanted.count; i++)
        ddp->computes = ddp->computes || wanted.numbers[i] != 0;
    average(ddp);
    read_slices(ddp, 0, &wanted);
    for (size_t i = 0; i < ddp->caps.count; i++) {
        check_way(ddp, DDP_SERIAL, i, &wanted);
        check_way(ddp, DDP_OVERLAPPED, i, &wanted);
        if (ddp->raw)
            check_way(ddp, DDP_RAW, i, &wanted);
    }
}

// Defaults.

CLI_DESTROYER(close_blas, train_blas_close)

// A GPU with cuBLAS gets a step that keeps it busy, other devices one that a processor does in some
// milliseconds.
static void choose_list(const char *option, struct bench_list *list, const char *text)
{
    if (list->text)
        return;
    list->text = text;
    bench_parse_list(option, list);
}

static void choose(struct ddp *ddp)
{
    ddp->blas =
        train_blas_open(ddp->all.ranks[0].device, ddp->cublas, &ddp->engine.blas) == WEIR_OK;
    if (!ddp->blas && ddp->cublas)
        cli_fail_weir();
    cli_own(close_blas, &ddp->engine.blas);
    ddp->layers = ddp->layers ? ddp->layers : ddp->blas ? 96 : 16;
    ddp->width = ddp->width ? ddp->width : ddp->blas ? 2048 : 128;
    choose_list("batch", &ddp->batches, ddp->blas ? "2048,4096,8192" : "64");
    choose_list("buckets", &ddp->caps,
                ddp->blas ? "auto,8M,16M,32M,48M,64M,96M,768M" : "auto,64K,256K,1M");
    choose_list("element", &ddp->element, ddp->blas ? "bf16" : "f32");
    ddp->bf16 = ddp->element.values[0] == BENCH_WORD + 1;
    ddp->element_size = ddp->bf16 ? 2 : 4;
    for (size_t i = 0; i < ddp->batches.count; i++)
        if (ddp->batch_max < ddp->batches.values[i])
            ddp->batch_max = (size_t)ddp->batches.values[i];
    if (ddp->bf16 && !ddp->blas)
        cli_fail(CLI_SETUP, "--element bf16 needs cuBLAS, and here is none; use f32");
}

// Measuring.

static void make_rows(struct ddp *ddp)
{
    ddp->ways = ddp->raw ? 3 : 2;
    ddp->rows_of_batch = 2 + ddp->ways * ddp->caps.count;
    ddp->row_count = ddp->batches.count * ddp->rows_of_batch;
    ddp->rows = cli_allocate(ddp->row_count, sizeof *ddp->rows);
    for (size_t i = 0; i < ddp->row_count; i++) {
        const size_t k = i % ddp->rows_of_batch;
        ddp->rows[i].batch = (size_t)ddp->batches.values[i / ddp->rows_of_batch];
        ddp->rows[i].buckets = k < 2 ? 0 : (k - 2) / ddp->ways;
        ddp->rows[i].way = (enum ddp_way)(k < 2 ? k : DDP_SERIAL + (k - 2) % ddp->ways);
    }
}

// Brings a GPU to the clocks that it has under this load.
static void settle(struct ddp *ddp, const struct ddp_row *row, int steps)
{
    for (int i = 0; i < steps && ddp->blas; i++)
        (void)time_way(ddp, row->way, row->buckets);
}

// What ran before a step sets the clocks of a GPU, so the first one of a row is not counted there. Each row goes first
// in turn.
static void measure_batch(struct ddp *ddp, struct ddp_row *rows)
{
    set_batch(ddp, rows[0].batch);
    settle(ddp, &rows[0], SETTLING);
    for (size_t k = 0; k < ddp->rows_of_batch; k++) {
        const size_t i = (size_t)((k + bench.turn) % ddp->rows_of_batch);
        settle(ddp, &rows[i], 1);
        bench_keep(&rows[i].ms, time_way(ddp, rows[i].way, rows[i].buckets));
    }
}

static void measure(struct ddp *ddp)
{
    for (size_t i = 0; i < ddp->batches.count; i++) {
        set_batch(ddp, (size_t)ddp->batches.values[i]);
        check(ddp);
    }
    for (bench_start(); bench_turn();)
        for (size_t i = 0; i < ddp->batches.count; i++)
            measure_batch(ddp, &ddp->rows[i * ddp->rows_of_batch]);
}

// Reporting.

static void name_cap(const struct ddp *ddp, size_t buckets, char *text, size_t size)
{
    struct weir_buckets_plan plan;
    weir_buckets_get_plan(ddp->buckets[buckets], &plan);
    snprintf(text, size, "%s%.3g MiB", ddp->caps.values[buckets] == BENCH_WORD ? "auto: " : "",
             (double)plan.cap_bytes / (1 << 20));
}

static void put_row(const struct ddp *ddp, struct bench_table *table, const struct ddp_row *row)
{
    struct weir_buckets_plan plan;
    const struct bench_samples none = {0};
    char cap[48] = "";
    weir_buckets_get_plan(ddp->buckets[row->buckets], &plan);
    if (row->way != DDP_COMPUTE)
        name_cap(ddp, row->buckets, cap, sizeof cap);
    bench_number(table, "batch", "batch", (double)row->batch);
    bench_text(table, "way", "way", way_names[row->way]);
    bench_text(table, "buckets", "buckets", cap);
    bench_number(table, "count", "count", row->way == DDP_COMPUTE ? 0 : plan.bucket_count);
    bench_value(table, "ms", "ms", 3, row->ms);
    if (ddp->raw)
        bench_value(table, "of_raw", "over raw", 3,
                    row->way == DDP_OVERLAPPED ? bench_ratio(row->ms, (row + 1)->ms) : none);
}

static void plot_row(const struct ddp *ddp, const struct ddp_row *row)
{
    char cap[48], series[80];
    if (row->way < DDP_SERIAL)
        return;
    name_cap(ddp, row->buckets, cap, sizeof cap);
    snprintf(series, sizeof series, "%s, batch %zu", way_names[row->way], row->batch);
    bench_plot_bar(series, cap, row->ms);
}

static void report_rows(struct ddp *ddp)
{
    struct bench_table *table = bench_table("steps", "one step, by the slowest rank");
    char title[80];
    snprintf(title, sizeof title, "A step of %llu layers on %u ranks",
             (unsigned long long)ddp->layers, (unsigned)ddp->all.count);
    bench_plot(title, "", "milliseconds");
    for (size_t i = 0; i < ddp->row_count; i++) {
        put_row(ddp, table, &ddp->rows[i]);
        plot_row(ddp, &ddp->rows[i]);
    }
}

// The overlapped row with that word or, with NULL, the fastest one without; NULL: there is none.
static const struct ddp_row *pick(const struct ddp *ddp, size_t batch, bool automatic)
{
    const struct ddp_row *rows = &ddp->rows[batch * ddp->rows_of_batch], *found = NULL;
    for (size_t i = 3; i < ddp->rows_of_batch; i += ddp->ways) {
        const bool is_auto = ddp->caps.values[rows[i].buckets] == BENCH_WORD;
        if (is_auto == automatic &&
            (!found || bench_spread(rows[i].ms).median < bench_spread(found->ms).median))
            found = &rows[i];
    }
    return found;
}

// Cells of a row without figures are empty.
static void report_gains(struct ddp *ddp)
{
    const struct bench_samples none = {0};
    struct bench_table *table = bench_table("gains", "what overlap gains, and auto loses");
    for (size_t i = 0; i < ddp->batches.count; i++) {
        const struct ddp_row *automatic = pick(ddp, i, true), *best = pick(ddp, i, false);
        char cap[48];
        best = best ? best : automatic;
        name_cap(ddp, best->buckets, cap, sizeof cap);
        bench_number(table, "batch", "batch", (double)best->batch);
        bench_text(table, "best", "best buckets", cap);
        bench_value(table, "serial_over_best", "serial / best", 3,
                    bench_ratio((best - 1)->ms, best->ms));
        bench_value(table, "auto_over_best", "auto / best", 3,
                    automatic ? bench_ratio(automatic->ms, best->ms) : none);
    }
}

// What was measured for the rows of `auto`, and the sizes of their buckets.
static void describe_auto(const struct ddp *ddp)
{
    for (size_t i = 0; i < ddp->caps.count; i++) {
        struct weir_buckets_plan plan;
        weir_buckets_get_plan(ddp->buckets[i], &plan);
        if (plan.latency_ns > 0)
            bench_note("measured for auto: %.1f us and %.2f GB/s; buckets of up to %.3g MiB, the "
                       "last ones down to %.3g MiB",
                       plan.latency_ns / 1000, plan.bytes_per_ns,
                       (double)plan.cap_bytes / (1 << 20), (double)plan.last_bytes / (1 << 20));
    }
}

static void describe(struct ddp *ddp)
{
    struct weir_buckets_plan plan;
    weir_buckets_get_plan(ddp->buckets[0], &plan);
    bench_parameter("ranks", ddp->all.count);
    bench_parameter("layers", (double)ddp->layers);
    bench_parameter("width", (double)ddp->width);
    bench_parameter("gradient_bytes", (double)plan.bytes);
    bench_note("%u ranks; %s, products by %s", (unsigned)ddp->all.count, ddp->bf16 ? "bf16" : "f32",
               ddp->blas ? "cuBLAS" : "the library's kernels");
    describe_auto(ddp);
    if (ddp->raw)
        bench_note("raw: two streams, the same products and buckets, %s", ddp->raw->api.name);
    else if (ddp->blas)
        bench_note("no raw step beside it: %s", ddp->raw_message);
    if (!ddp->computes)
        bench_note("this device runs no kernels: the gradients were zeros, and times are those "
                   "of calls");
}

// The command.

static void run_ddp(void *user)
{
    struct ddp *ddp = user;
    bench.runtime = cli_open(ddp->config);
    bench_ranks_open(1, &ddp->all);
    choose(ddp);
    open_step(ddp);
    ddp->raw = open_raw(ddp);
    make_rows(ddp);
    measure(ddp);
    describe(ddp);
    report_rows(ddp);
    report_gains(ddp);
}

int job_ddp(int argc, char **argv)
{
    static struct ddp ddp = {
        .batches = {.minimum = 1, .maximum = BATCH_MOST},
        .caps = {.minimum = 1, .maximum = CAP_MOST, .words = cap_words},
        .element = {.words = elements, .most = 1},
    };
    static const struct cli_option options[] = {
        {"layers", "N", "layers, all alike (96 with cuBLAS, else 16)", CLI_COUNT, &ddp.layers, 1,
         DDP_LAYERS_MAX},
        {"width", "N", "rows and columns of a layer's weight (2048, 128)", CLI_COUNT, &ddp.width, 1,
         WIDTH_MOST},
        {"batch", "LIST", "samples of a rank (2048,4096,8192; 64)", CLI_VALUES, &ddp.batches, 0, 0},
        {"buckets", "LIST", "the largest bucket, such as 25M, or auto", CLI_VALUES, &ddp.caps, 0,
         0},
        {"element", "E", "f32, or bf16, which needs cuBLAS (bf16, f32)", CLI_VALUES, &ddp.element,
         0, 0},
        {"cublas", "F", "the file of cuBLAS; without it, the one that the\nlinker finds", CLI_TEXT,
         &ddp.cublas, 0, 0},
        {"nccl", "F", "the same of NCCL, for the raw step", CLI_TEXT, &ddp.nccl, 0, 0},
        CLI_CONFIG(&ddp.config),
    };
    static const struct bench_program program = {
        .about =
            "Measures a step of data-parallel training: products of matrices forward and "
            "backward,\n"
            "and the gradients averaged over all ranks in buckets, after the backward pass\n"
            "(serial) and beside it (overlapped). A launcher starts the ranks, one a process,\n"
            "of which rank 0 prints.\n",
        .options = options,
        .option_count = BENCH_COUNT(options),
        .run = run_ddp,
    };
    return bench_main(&program, &ddp, argc, argv);
}
