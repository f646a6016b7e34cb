// The job `ddp`: a step of data-parallel training whose gradients are reduced in buckets, after the
// backward pass and beside it. Its layers are all alike, as products of matrices.
//
// Of each layer the forward pass computes Y = X W, the backward pass dW = X^T dY and dX = dY W^T; X is
// batch x width and W width x width. The last layer's dW comes first, and so does its bucket.
#include <math.h>

#include "kernels/train/train_f32.h"
#include "patterns/buckets.h"
#include "pipelines/train/product.h"
#include "tests/bench/jobs/drivers.h"

#define CAP_MOST (UINT64_C(1) << 40)

enum {
    LAYERS_MOST = 1024,
    BATCH_MOST = 1 << 20,
    WIDTH_MOST = 1 << 15,
    SETTLING = 5 // steps before a batch is measured
};

static const char *const cap_words[] = {"auto", NULL};
static const char *const elements[] = {"f32", "bf16", NULL};

// The ways of one step.
enum way {
    COMPUTE,     // no reduction
    COMMUNICATE, // the reductions alone
    SERIAL,      // the reductions after the backward pass
    OVERLAPPED,  // beside it
    RAW          // the same without Weir
};

static const char *const way_names[] = {"computation", "communication", "serial", "overlapped",
                                        "raw"};

// The queues of the raw step. The first is NCCL's.
enum {
    REDUCES,
    COMPUTES
};

// One way of the step, with one batch and the buckets of one cap.
struct row {
    size_t batch;
    enum way way;
    size_t buckets; // the index of their cap
    struct bench_samples ms;
};

struct ddp {
    // The command line. 0: by the device.
    const char *cublas; // the file; NULL: the linker's
    const char *nccl;   // the same, for the raw step
    uint64_t layers, width;
    struct bench_list batches, caps, element;

    struct bench_ranks all;   // one of this process
    struct bench_rank *place; // it
    struct train_engine engine;
    weir_buffer *weights;     // of all layers
    weir_buffer *activations; // of the input and all layers
    weir_buffer *gradients;   // of the loss, and two of dY, in turn
    weir_buckets *buckets[BENCH_LIST_MAX];
    struct train_product *forward; // of each layer, and after them:
    struct train_product *back;    // dX; unused of the first layer
    struct train_product *weight;  // dW, with the buckets of each index: [index * layers + layer]
    bool computes;                 // products give numbers
    size_t element_size;           // of all matrices
    size_t weight_count;           // elements
    size_t batch_max;
    size_t batch;              // of the products as they are
    struct raw_nccl raw;       // without a communicator: there is none
    struct weir_bucket bucket; // of a raw step: the one that is reduced next

    // Of each batch: compute, communicate, then for all caps serial, overlapped and, if there is one, raw.
    struct row *rows;
    size_t ways; // of each cap, from SERIAL on
    size_t rows_of_batch;
    size_t row_count;
};

// Opening.

static void close_step(void *object)
{
    struct ddp *ddp = object;
    WEIR_IGNORE(weir_queue_sync(ddp->place->queue, WEIR_FOREVER));
    for (size_t k = 0; k < BENCH_LIST_MAX; k++)
        weir_buckets_destroy(&ddp->buckets[k]);
    weir_buffer_destroy(&ddp->engine.parts);
    train_blas_close(&ddp->engine.blas);
}

static void choose_list(const char *option, struct bench_list *list, const char *text)
{
    if (list->text)
        return;
    list->text = text;
    bench_parse_list(option, list);
}

// A GPU with cuBLAS gets a step that keeps it busy, other devices one that a processor does in some
// milliseconds.
static void choose(struct ddp *ddp)
{
    const bool blas =
        train_blas_open(ddp->place->device, ddp->cublas, &ddp->engine.blas) == WEIR_OK;
    if (!blas && ddp->cublas)
        cli_fail_weir();
    cli_own(close_step, ddp);
    ddp->layers = ddp->layers ? ddp->layers : blas ? 96 : 16;
    ddp->width = ddp->width ? ddp->width : blas ? 2048 : 128;
    choose_list("batch", &ddp->batches, blas ? "2048,4096,8192" : "64");
    choose_list("buckets", &ddp->caps,
                blas ? "auto,8M,16M,32M,48M,64M,96M,768M" : "auto,64K,256K,1M");
    choose_list("element", &ddp->element, blas ? "bf16" : "f32");
    ddp->engine.bf16 = ddp->element.values[0] == BENCH_WORD + 1;
    ddp->element_size = ddp->engine.bf16 ? 2 : 4;
    ddp->weight_count = (size_t)(ddp->width * ddp->width);
    for (size_t i = 0; i < ddp->batches.count; i++)
        if (ddp->batch_max < ddp->batches.values[i])
            ddp->batch_max = (size_t)ddp->batches.values[i];
    if (ddp->engine.bf16 && !blas)
        cli_fail(CLI_SETUP, "--element bf16 needs cuBLAS, and here is none; use f32");
}

static void make_objects(struct ddp *ddp)
{
    const size_t layers = (size_t)ddp->layers, weight = ddp->weight_count * ddp->element_size;
    const size_t batch = ddp->batch_max * (size_t)ddp->width * ddp->element_size;
    const weir_placement place = WEIR_PLACE_DEVICE;
    weir_device *device = ddp->place->device;
    bench_buffer(device, "ddp/weights", layers * weight, place, &ddp->weights);
    bench_buffer(device, "ddp/activations", (layers + 1) * batch, place, &ddp->activations);
    bench_buffer(device, "ddp/gradients", 3 * batch, place, &ddp->gradients);
    ddp->forward = cli_allocate((2 + ddp->caps.count) * layers, sizeof *ddp->forward);
    ddp->back = ddp->forward + layers;
    ddp->weight = ddp->back + layers;
    if (ddp->engine.blas)
        return;
    bench_kernel(device, &train_f32_kernels, "product", &ddp->engine.product);
    bench_kernel(device, &train_f32_kernels, "sum_parts", &ddp->engine.sum_parts);
}

// Of the parameters in the order of the backward pass.
static void make_buckets(struct ddp *ddp)
{
    const size_t size = sizeof(struct weir_bucket_parameter);
    struct weir_bucket_parameter *parameters = cli_allocate((size_t)ddp->layers, size);
    for (uint64_t i = 0; i < ddp->layers; i++)
        parameters[i] = (struct weir_bucket_parameter){.struct_size = size,
                                                       .name = "weight",
                                                       .count = ddp->weight_count};
    for (size_t i = 0; i < ddp->caps.count; i++) {
        const uint64_t value = ddp->caps.values[i];
        const size_t cap = value == BENCH_WORD ? WEIR_BUCKETS_AUTO : (size_t)value;
        const struct weir_buckets_params params = {
            .struct_size = sizeof params,
            .label = "ddp",
            .comm = ddp->place->comm,
            .element = ddp->engine.bf16 ? WEIR_BF16 : WEIR_F32,
            .parameters = parameters,
            .parameter_count = (uint32_t)ddp->layers,
            .parameter_size = size,
            .cap_bytes = cap,
            .first_bytes = cap,
        };
        cli_fine(weir_buckets_create(&params, &ddp->buckets[i]));
    }
}

// Numbers.

// Fills matrices with numbers from -bound to bound, all with the same ones.
static void fill(const struct ddp *ddp, weir_buffer *buffer, size_t matrices, size_t count,
                 float bound, uint32_t seed)
{
    const size_t bytes = count * ddp->element_size;
    unsigned char *memory = cli_allocate(count, ddp->element_size);
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        const float number = bound * ((float)(seed >> 8) / (float)(1 << 23) - 1);
        // A bf16 is the upper half.
        const size_t lower = sizeof number - ddp->element_size;
        memcpy(memory + i * ddp->element_size, (const char *)&number + lower, ddp->element_size);
    }
    for (size_t i = 0; i < matrices; i++)
        cli_fine(weir_upload(ddp->place->queue, buffer, i * bytes, memory, bytes));
}

// Products.

// Matrix `index` of a buffer of matrices of the largest batch.
static struct train_range batch_of(const struct ddp *ddp, weir_buffer *buffer, size_t index)
{
    const size_t row = (size_t)ddp->width * ddp->element_size;
    return (struct train_range){buffer, index * ddp->batch_max * row, ddp->batch * row};
}

// That of the loss stays, the others alternate.
static struct train_range gradient_of(const struct ddp *ddp, size_t layer)
{
    return batch_of(ddp, ddp->gradients, layer == ddp->layers ? 0 : 1 + layer % 2);
}

static void describe_layer(const struct ddp *ddp, size_t layer)
{
    const uint32_t batch = (uint32_t)ddp->batch, width = (uint32_t)ddp->width;
    const size_t bytes = ddp->weight_count * ddp->element_size;
    const struct train_range weight = {ddp->weights, layer * bytes, bytes};
    const struct train_range x = batch_of(ddp, ddp->activations, layer);
    const struct train_range y = batch_of(ddp, ddp->activations, layer + 1);
    const struct train_range dx = gradient_of(ddp, layer), dy = gradient_of(ddp, layer + 1);
    ddp->forward[layer] = (struct train_product){x, weight, y, .m = batch, .n = width, .k = width};
    ddp->back[layer] =
        (struct train_product){dy,         weight,          dx, .m = batch, .n = width,
                               .k = width, .turned_b = true};
    for (size_t i = 0; i < ddp->caps.count; i++) {
        struct weir_bucket_view view;
        WEIR_IGNORE(
            weir_buckets_get_view(ddp->buckets[i], (uint32_t)(ddp->layers - 1 - layer), &view));
        const struct train_range dw = {view.buffer, view.offset, view.size};
        ddp->weight[i * ddp->layers + layer] =
            (struct train_product){x, dy, dw, .m = width, .n = width, .k = batch, .turned_a = true};
    }
}

static void set_batch(struct ddp *ddp, size_t batch)
{
    struct weir_buffer_params parts = {.struct_size = sizeof parts, .label = "ddp/parts"};
    ddp->batch = batch;
    for (size_t layer = 0; layer < ddp->layers; layer++)
        describe_layer(ddp, layer);
    for (size_t i = 0; i < (2 + ddp->caps.count) * ddp->layers; i++) {
        const uint64_t bytes = train_product_divide(&ddp->forward[i]);
        parts.size = bytes > parts.size ? (size_t)bytes : parts.size;
        cli_fine(train_product_prepare(&ddp->engine, &ddp->forward[i]));
        ddp->forward[i].narrow = ddp->engine.bf16;
    }
    weir_buffer_destroy(&ddp->engine.parts);
    if (parts.size > 0 && !ddp->engine.blas)
        cli_fine(weir_buffer_create(ddp->place->device, &parts, &ddp->engine.parts));
}

// The step without Weir: two streams of the driver's, events between them, the same products of cuBLAS, and NCCL called
// directly on the same buckets.

static void open_raw(struct ddp *ddp)
{
    if (!ddp->engine.blas)
        return;
    if (!raw_nccl_open(&ddp->raw, &ddp->all, ddp->nccl)) {
        ddp->raw.comm = NULL;
        bench_note("no raw step beside it: %.250s", ddp->raw.message);
        return;
    }
    ddp->raw.cuda.calls->open_queue(&ddp->raw.cuda, COMPUTES);
    bench_note("raw: two streams, the same products and buckets, %s", ddp->raw.name);
}

// Once the layer's gradient is submitted: reduces its bucket, if that is the last one of it.
static void raw_mark(struct ddp *ddp, size_t buckets, size_t layer)
{
    struct side *cuda = &ddp->raw.cuda;
    const struct weir_bucket *bucket = &ddp->bucket;
    // The first gradient of the backward pass is the first byte of the buckets.
    const uint64_t base = ddp->weight[buckets * ddp->layers + ddp->layers - 1].at_c;
    void *address = (void *)(uintptr_t)(base + bucket->offset);
    if (ddp->layers - layer != bucket->first + bucket->count)
        return;
    cuda->calls->record(cuda, COMPUTES, 0);
    cuda->calls->wait(cuda, REDUCES, 0);
    RAW_NCCL(&ddp->raw, ncclAllReduce, address, address, bucket->size / ddp->element_size,
             ddp->engine.bf16 ? ncclBfloat16 : ncclFloat32, ncclAvg, ddp->raw.comm,
             cuda->cu->queues[REDUCES]);
    if (layer > 0)
        cli_fine(weir_buckets_get_bucket(ddp->buckets[buckets], bucket->index + 1, &ddp->bucket));
}

// The step.

static void multiply(struct ddp *ddp, enum way way, struct train_product *product)
{
    if (way != RAW) {
        cli_fine(train_product_submit(&ddp->engine, ddp->place->queue, product));
        return;
    }
    const struct weir_native_queue native = {.struct_size = sizeof native,
                                             .api = WEIR_NATIVE_CUDA,
                                             .context = ddp->raw.cuda.cu->context,
                                             .queue = ddp->raw.cuda.cu->queues[COMPUTES]};
    cli_fine(train_blas_multiply(&native, product));
}

static void mark(struct ddp *ddp, enum way way, size_t buckets, size_t layer)
{
    if (way == RAW)
        raw_mark(ddp, buckets, layer);
    else
        cli_fine(weir_buckets_ready(ddp->buckets[buckets], (uint32_t)(ddp->layers - 1 - layer),
                                    ddp->place->queue));
}

static void compute(struct ddp *ddp, enum way way, size_t buckets)
{
    for (size_t i = 0; i < ddp->layers; i++)
        multiply(ddp, way, &ddp->forward[i]);
    for (size_t i = (size_t)ddp->layers; i-- > 0;) {
        multiply(ddp, way, &ddp->weight[buckets * ddp->layers + i]);
        if (way == OVERLAPPED || way == RAW)
            mark(ddp, way, buckets, i);
        if (i > 0)
            multiply(ddp, way, &ddp->back[i]);
    }
}

static void run_way(struct ddp *ddp, enum way way, size_t buckets)
{
    const bool reduces = way != COMPUTE && way != RAW;
    struct side *cuda = &ddp->raw.cuda;
    if (way == RAW)
        cli_fine(weir_buckets_get_bucket(ddp->buckets[buckets], 0, &ddp->bucket));
    if (reduces)
        cli_fine(weir_buckets_begin(ddp->buckets[buckets], true));
    if (way != COMMUNICATE)
        compute(ddp, way, buckets);
    for (size_t i = (size_t)ddp->layers; i-- > 0 && reduces && way != OVERLAPPED;)
        mark(ddp, way, buckets, i);
    if (reduces)
        cli_fine(weir_buckets_finish(ddp->buckets[buckets], ddp->place->queue));
    if (way == RAW) {
        cuda->calls->record(cuda, REDUCES, 0);
        cuda->calls->wait(cuda, COMPUTES, 0);
        cuda->calls->finish(cuda, COMPUTES);
    }
    bench_ranks_sync(&ddp->all);
}

static double time_way(struct ddp *ddp, enum way way, size_t buckets)
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

// The first elements of some layers' gradients.
static void read_slices(struct ddp *ddp, size_t buckets, struct slices *slices)
{
    unsigned char bytes[SLICE * sizeof(float)];
    const size_t size = ddp->element_size, lower = sizeof(float) - size;
    *slices = (struct slices){.count = ddp->weight_count < SLICE ? ddp->weight_count : SLICE};
    for (size_t i = 0; i < SLICES; i++) {
        const size_t layer = (size_t)(ddp->layers - 1) * i / (SLICES - 1);
        const struct train_range *c = &ddp->weight[buckets * ddp->layers + layer].c;
        cli_fine(
            weir_download(ddp->place->queue, bytes, c->buffer, c->offset, slices->count * size));
        for (size_t k = 0; k < slices->count; k++)
            memcpy((char *)&slices->numbers[i * slices->count + k] + lower, bytes + k * size, size);
    }
}

// The averages of gradients that were computed before, layer by layer.
static void average(struct ddp *ddp)
{
    for (size_t layer = 0; layer < ddp->layers; layer++) {
        const struct train_range *c = &ddp->weight[layer].c;
        cli_fine(weir_queue_all_reduce(ddp->place->queue, ddp->place->comm, c->buffer, c->offset,
                                       c->buffer, c->offset, ddp->weight_count,
                                       ddp->engine.bf16 ? WEIR_BF16 : WEIR_F32, WEIR_AVERAGE));
    }
    bench_ranks_sync(&ddp->all);
}

static void check_way(struct ddp *ddp, enum way way, size_t buckets, const struct slices *wanted)
{
    static const uint16_t nothing = 0xffff; // no number
    static struct slices found;
    const double part = ddp->engine.bf16 ? 0x1p-7 : 0x1p-20;
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
    run_way(ddp, COMPUTE, 0);
    read_slices(ddp, 0, &wanted);
    for (size_t i = 0; i < SLICES * wanted.count; i++)
        ddp->computes = ddp->computes || wanted.numbers[i] != 0;
    average(ddp);
    read_slices(ddp, 0, &wanted);
    for (size_t i = 0; i < ddp->caps.count; i++)
        for (size_t way = 0; way < ddp->ways; way++)
            check_way(ddp, (enum way)(SERIAL + way), i, &wanted);
}

// Measuring.

static void make_rows(struct ddp *ddp)
{
    ddp->ways = ddp->raw.comm ? 3 : 2;
    ddp->rows_of_batch = 2 + ddp->ways * ddp->caps.count;
    ddp->row_count = ddp->batches.count * ddp->rows_of_batch;
    ddp->rows = cli_allocate(ddp->row_count, sizeof *ddp->rows);
    for (size_t i = 0; i < ddp->row_count; i++) {
        const size_t k = i % ddp->rows_of_batch, of_cap = k < SERIAL ? 0 : k - SERIAL;
        ddp->rows[i].batch = (size_t)ddp->batches.values[i / ddp->rows_of_batch];
        ddp->rows[i].way = (enum way)(k < SERIAL ? k : SERIAL + of_cap % ddp->ways);
        ddp->rows[i].buckets = of_cap / ddp->ways;
    }
}

// Brings a GPU to the clocks that it has under this load.
static void settle(struct ddp *ddp, const struct row *row, int steps)
{
    for (int i = 0; i < steps && ddp->engine.blas; i++)
        (void)time_way(ddp, row->way, row->buckets);
}

// What ran before a step sets the clocks of a GPU, so the first one of a row is not counted there. Each row goes first
// in turn.
static void measure_batch(struct ddp *ddp, struct row *rows)
{
    set_batch(ddp, rows[0].batch);
    settle(ddp, &rows[0], SETTLING);
    for (size_t k = 0; k < ddp->rows_of_batch; k++) {
        struct row *row = &rows[(k + bench.turn) % ddp->rows_of_batch];
        settle(ddp, row, 1);
        bench_keep(&row->ms, time_way(ddp, row->way, row->buckets));
    }
}

static void measure(struct ddp *ddp)
{
    for (size_t i = 0; i < ddp->batches.count; i++) {
        set_batch(ddp, (size_t)ddp->batches.values[i]);
        check(ddp);
    }
    for (bench_start(); bench_turn();)
        for (size_t i = 0; i < ddp->row_count; i += ddp->rows_of_batch)
            measure_batch(ddp, &ddp->rows[i]);
}

// Reporting.

// The fastest overlapped row without auto; NULL: there is none.
static const struct row *best_of(const struct ddp *ddp, const struct row *rows)
{
    const struct row *found = NULL;
    for (size_t i = OVERLAPPED; i < ddp->rows_of_batch; i += ddp->ways)
        if (ddp->caps.values[rows[i].buckets] != BENCH_WORD &&
            (!found || bench_spread(rows[i].ms).median < bench_spread(found->ms).median))
            found = &rows[i];
    return found;
}

static void put_row(const struct ddp *ddp, struct bench_table *table, const struct row *row,
                    const struct row *best)
{
    const struct bench_samples none = {0};
    const bool overlapped = row->way == OVERLAPPED;
    struct weir_buckets_plan plan = {0};
    const char *cap = "";
    if (row->way != COMPUTE) {
        weir_buckets_get_plan(ddp->buckets[row->buckets], &plan);
        cap = cli_text("%s%.3g MiB", ddp->caps.values[row->buckets] == BENCH_WORD ? "auto: " : "",
                       (double)plan.cap_bytes / (1 << 20));
    }
    bench_number(table, "batch", "batch", (double)row->batch);
    bench_text(table, "way", "way", way_names[row->way]);
    bench_text(table, "buckets", "buckets", cap);
    bench_number(table, "count", "count", plan.bucket_count);
    bench_value(table, "ms", "ms", 3, row->ms);
    bench_value(table, "of_best", "over best", 3,
                overlapped && best ? bench_ratio(row->ms, best->ms) : none);
    if (ddp->raw.comm)
        bench_value(table, "of_raw", "over raw", 3,
                    overlapped ? bench_ratio(row->ms, (row + 1)->ms) : none);
    if (row->way >= SERIAL)
        bench_plot_bar(cli_text("%s, batch %zu", way_names[row->way], row->batch), cap, row->ms);
}

static void report(const struct ddp *ddp)
{
    struct bench_table *table = bench_table("steps", "one step, by the slowest rank; over the best "
                                                     "overlapped one of a size that was given");
    bench_plot(cli_text("A step of %llu layers on %u ranks", (unsigned long long)ddp->layers,
                        (unsigned)ddp->all.count),
               "", "milliseconds");
    for (size_t i = 0; i < ddp->row_count; i++)
        put_row(ddp, table, &ddp->rows[i], best_of(ddp, &ddp->rows[i - i % ddp->rows_of_batch]));
}

static void describe(const struct ddp *ddp)
{
    struct weir_buckets_plan plan = {0};
    bench_note("%u ranks; %s, products by %s", (unsigned)ddp->all.count,
               ddp->engine.bf16 ? "bf16" : "f32",
               ddp->engine.blas ? "cuBLAS" : "the library's kernels");
    for (size_t i = 0; i < ddp->caps.count; i++) {
        weir_buckets_get_plan(ddp->buckets[i], &plan);
        if (plan.latency_ns > 0)
            bench_note("measured for auto: %.1f us and %.2f GB/s; buckets of up to %.3g MiB, the "
                       "last ones down to %.3g MiB",
                       plan.latency_ns / 1000, plan.bytes_per_ns,
                       (double)plan.cap_bytes / (1 << 20), (double)plan.last_bytes / (1 << 20));
    }
    bench_parameter("ranks", ddp->all.count);
    bench_parameter("layers", (double)ddp->layers);
    bench_parameter("width", (double)ddp->width);
    bench_parameter("gradient_bytes", (double)plan.bytes);
    if (!ddp->computes)
        bench_note("this device runs no kernels: the gradients were zeros, and times are those "
                   "of calls");
}

// The command.

static void run(void *user)
{
    struct ddp *ddp = user;
    bench_ranks_open(1, &ddp->all);
    ddp->place = &ddp->all.ranks[0];
    choose(ddp);
    make_objects(ddp);
    // The weights of all ranks are alike, inputs and losses are not. A product of numbers up to
    // sqrt(3 / width) keeps the size of what it multiplies.
    const size_t batch = ddp->batch_max * (size_t)ddp->width;
    const uint32_t seed = weir_comm_rank(ddp->place->comm);
    fill(ddp, ddp->weights, (size_t)ddp->layers, ddp->weight_count, sqrtf(3 / (float)ddp->width),
         1000);
    fill(ddp, ddp->activations, 1, batch, 1, seed);
    fill(ddp, ddp->gradients, 1, batch, 1, 500 + seed);
    make_buckets(ddp);
    open_raw(ddp);
    make_rows(ddp);
    measure(ddp);
    describe(ddp);
    report(ddp);
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
         LAYERS_MOST},
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
    };
    static const struct bench_program program = {
        .options = options,
        .option_count = BENCH_COUNT(options),
        .opens_devices = true,
        .run = run,
    };
    return bench_main(&program, &ddp, argc, argv);
}
