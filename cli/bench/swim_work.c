// The work of `weir bench swim`. Factors are small whole numbers, so that every sum of
// products is exact and a result is right or wrong; each copy has bytes of its own.
#include <string.h>

#include "cli/bench/swim.h"
#include "cli/bench/work.h"
#include "kernels/conformance/conformance.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/matmul_tensor.h"
#include "kernels/matmul/tile.cl.h"

enum {
    SAMPLES = 256, // of a product, that are checked
    LIGHT_BLOCK = 256
};

static const float light_factor = 3.0f;

// Data.

static float factor_at(size_t matrix, size_t row, size_t column)
{
    return (float)((row * 7 + column * 13 + matrix * 5) % 11) - 5.0f;
}

static void fill_bytes(unsigned char *to, size_t size, uint32_t seed)
{
    for (size_t i = 0; i + sizeof(uint32_t) <= size; i += sizeof(uint32_t)) {
        const uint32_t word = (uint32_t)(i / sizeof(uint32_t)) * 2654435761u + seed;
        memcpy(to + i, &word, sizeof word);
    }
}

static bool are_bytes(const unsigned char *from, size_t size, uint32_t seed)
{
    for (size_t i = 0; i + sizeof(uint32_t) <= size; i += sizeof(uint32_t)) {
        const uint32_t word = (uint32_t)(i / sizeof(uint32_t)) * 2654435761u + seed;
        if (memcmp(from + i, &word, sizeof word) != 0)
            return false;
    }
    return true;
}

enum seed {
    SEED_DOWN = 1,
    SEED_UP = 2
};

// Set-up.

static void make_buffers(struct swim *swim)
{
    const size_t ring = SWIM_RING * swim->matrix_bytes, all = swim->all_bytes;
    const struct {
        const char *label;
        size_t size;
        weir_placement placement;
        weir_buffer **out_buffer;
    } buffers[] = {
        {"factors", ring, WEIR_PLACE_DEVICE, &swim->factors},
        {"products", ring, WEIR_PLACE_DEVICE, &swim->results},
        {"scaled", ring, WEIR_PLACE_DEVICE, &swim->scaled},
        {"down/from", all, WEIR_PLACE_DEVICE, &swim->down_from},
        {"up/to", all, WEIR_PLACE_DEVICE, &swim->up_to},
        {"down/to", all, WEIR_PLACE_HOST, &swim->down_pinned},
        {"up/from", all, WEIR_PLACE_HOST, &swim->up_pinned},
    };
    for (size_t i = 0; i < BENCH_COUNT(buffers); i++)
        bench_buffer(swim->bench->device, buffers[i].label, buffers[i].size, buffers[i].placement,
                     buffers[i].out_buffer);
}

static void make_queues(struct swim *swim)
{
    static const char *const labels[] = {"products", "down", "up"};
    const struct weir_limits *limits = swim->bench->limits;
    for (int i = 0; i < 3; i++)
        bench_queue(swim->bench->device, labels[i], 0, &swim->queues[i]);
    if (limits->priority_highest != limits->priority_lowest)
        bench_queue(swim->bench->device, "first", limits->priority_highest, &swim->first);
}

static void make_kernels(struct swim *swim)
{
    weir_device *device = swim->bench->device;
    bench_kernel(device, &matmul_kernels, "matmul", &swim->program, &swim->matmul);
    bench_kernel(device, &conformance_kernels, "scale", &swim->light_program, &swim->light);
}

static void destroy_twin(void *object, void *with)
{
    struct swim *swim = object;
    (void)with;
    weir_kernel_destroy(&swim->twin);
    weir_program_destroy(&swim->twin_program);
}

// Only CUDA runs the twin; elsewhere its bundle has the kernel that is measured already.
static void make_twin(struct swim *swim)
{
    const struct weir_program_params twin = {.struct_size = sizeof twin,
                                             .label = "twin",
                                             .bundle = &matmul_tensor_kernels};
    if (swim->portable || strcmp(weir_runtime_backend(swim->bench->runtime), "cuda") != 0)
        return;
    const weir_status status = weir_program_create(swim->bench->device, &twin, &swim->twin_program);
    cli_own(destroy_twin, swim, NULL);
    if (status == WEIR_ERROR_UNSUPPORTED) {
        bench_note(swim->bench, "not measured: twin: %s", weir_last_error_text());
        return;
    }
    cli_fine(status);
    cli_fine(weir_kernel_create(swim->twin_program, "matmul", &swim->twin));
}

static void fill_factors(struct swim *swim)
{
    const size_t side = (size_t)swim->side, size = swim->matrix_bytes;
    float *matrix = cli_allocate(1, size);
    for (size_t i = 0; i < SWIM_RING; i++) {
        for (size_t at = 0; at < side * side; at++)
            matrix[at] = factor_at(i, at / side, at % side);
        cli_fine(weir_upload(swim->queues[0], swim->factors, i * size, matrix, size));
    }
}

static void fill_copies(struct swim *swim)
{
    const size_t size = swim->all_bytes;
    fill_bytes(bench_begin(swim->up_pinned, WEIR_ACCESS_WRITE), size, SEED_UP);
    bench_end(swim->up_pinned, WEIR_ACCESS_WRITE);
    fill_bytes(swim->up_plain, size, SEED_UP);
    fill_bytes(swim->down_plain, size, SEED_DOWN);
    cli_fine(weir_upload(swim->queues[1], swim->down_from, 0, swim->down_plain, size));
}

static weir_status describe_products(struct swim *swim)
{
    struct weir_native_buffer from, to;
    weir_status status = weir_buffer_get_native(swim->factors, &from);
    if (status == WEIR_OK)
        status = weir_buffer_get_native(swim->results, &to);
    for (size_t i = 0; i < 2 * SWIM_RING && status == WEIR_OK; i++) {
        const uint64_t factor = from.address + i % SWIM_RING * swim->matrix_bytes;
        const uint32_t side = (uint32_t)swim->side;
        swim->blas_products[i] = (struct train_blas_product){
            .blas = swim->blas,
            .a = factor,
            .b = factor,
            .c = to.address + i % SWIM_RING * swim->matrix_bytes,
            .m = side,
            .n = side,
            .k = side,
            .tensor = i >= SWIM_RING,
        };
    }
    return status;
}

static void close_blas(void *object, void *with)
{
    struct swim *swim = object;
    (void)with;
    WEIR_IGNORE(weir_queue_sync(swim->queues[0], WEIR_FOREVER));
    train_blas_close(&swim->blas);
}

static void open_blas(struct swim *swim)
{
    if (swim->portable || strcmp(weir_runtime_backend(swim->bench->runtime), "cuda") != 0)
        return;
    if (train_blas_open(swim->bench->device, NULL, &swim->blas) == WEIR_OK &&
        describe_products(swim) == WEIR_OK) {
        cli_own(close_blas, swim, NULL);
        return;
    }
    train_blas_close(&swim->blas);
    bench_note(swim->bench, "not measured: cuBLAS: %.250s", weir_last_error()->message);
}

void swim_open(struct swim *swim)
{
    struct bench *bench = swim->bench;
    const uint64_t matrix = swim->side * swim->side * sizeof(float);
    const uint64_t most = bench->limits->max_buffer_bytes;
    if (matrix > most / SWIM_RING || matrix > most / swim->copies)
        cli_fail(CLI_USAGE,
                 "%llu copies of %llu x %llu floats are more than the largest buffer of "
                 "this device, %llu bytes; give a smaller --side or --copies",
                 (unsigned long long)swim->copies, (unsigned long long)swim->side,
                 (unsigned long long)swim->side, (unsigned long long)most);
    swim->matrix_bytes = (size_t)matrix;
    swim->all_bytes = (size_t)(matrix * swim->copies);
    swim->down_plain = cli_allocate(swim->all_bytes, 1);
    swim->up_plain = cli_allocate(swim->all_bytes, 1);
    swim->read_back =
        cli_allocate(swim->all_bytes > matrix ? swim->all_bytes : swim->matrix_bytes, 1);
    make_queues(swim);
    make_kernels(swim);
    make_buffers(swim);
    make_twin(swim);
    fill_factors(swim);
    fill_copies(swim);
    open_blas(swim);
}

// The parts.

static weir_status submit_blas(struct swim *swim, weir_queue *queue, bool tensor)
{
    weir_status status = WEIR_OK;
    for (uint64_t i = 0; i < swim->products && status == WEIR_OK; i++) {
        const size_t number = (size_t)(i % SWIM_RING), at = number * swim->matrix_bytes;
        status = weir_queue_native(queue, train_blas_multiply,
                                   &swim->blas_products[number + (tensor ? SWIM_RING : 0)],
                                   weir_in(swim->factors, at, swim->matrix_bytes),
                                   weir_out(swim->results, at, swim->matrix_bytes));
    }
    return status;
}

static weir_status submit_products(struct swim *swim, weir_queue *queue, enum swim_product product)
{
    if (product == SWIM_BLAS || product == SWIM_TENSOR)
        return submit_blas(swim, queue, product == SWIM_TENSOR);
    weir_kernel *matmul = product == SWIM_TWIN ? swim->twin : swim->matmul;
    const uint32_t side = (uint32_t)swim->side;
    const struct weir_extent grid = weir_dim((side + MATMUL_COLUMNS - 1) / MATMUL_COLUMNS,
                                             (side + MATMUL_ROWS - 1) / MATMUL_ROWS, 1);
    const struct weir_extent block = weir_dim(MATMUL_BLOCK_X, MATMUL_BLOCK_Y, 1);
    weir_status status = WEIR_OK;
    for (uint64_t i = 0; i < swim->products && status == WEIR_OK; i++) {
        const size_t at = (size_t)(i % SWIM_RING) * swim->matrix_bytes;
        status =
            weir_queue_launch(queue, matmul, grid, block,
                              weir_in(swim->factors, at, swim->matrix_bytes),
                              weir_in(swim->factors, at, swim->matrix_bytes),
                              weir_out(swim->results, at, swim->matrix_bytes), side, side, side);
    }
    return status;
}

static weir_status submit_light(struct swim *swim, weir_queue *queue)
{
    const uint32_t count = (uint32_t)(swim->side * swim->side);
    const struct weir_extent grid = weir_dim((count + LIGHT_BLOCK - 1) / LIGHT_BLOCK, 1, 1);
    weir_status status = WEIR_OK;
    for (uint64_t i = 0; i < swim->products && status == WEIR_OK; i++) {
        const size_t at = (size_t)(i % SWIM_RING) * swim->matrix_bytes;
        status =
            weir_queue_launch(queue, swim->light, grid, weir_dim(LIGHT_BLOCK, 1, 1),
                              weir_in(swim->factors, at, swim->matrix_bytes),
                              weir_out(swim->scaled, at, swim->matrix_bytes), light_factor, count);
    }
    return status;
}

static weir_status copy_down(struct swim *swim, weir_queue *queue, bool pageable)
{
    const size_t size = swim->matrix_bytes;
    weir_status status = WEIR_OK;
    for (size_t at = 0; at < swim->all_bytes && status == WEIR_OK; at += size)
        status = pageable
                     ? weir_download(queue, swim->down_plain + at, swim->down_from, at, size)
                     : weir_queue_copy(queue, swim->down_pinned, at, swim->down_from, at, size);
    return status;
}

static weir_status copy_up(struct swim *swim, weir_queue *queue, bool pageable)
{
    const size_t size = swim->matrix_bytes;
    weir_status status = WEIR_OK;
    for (size_t at = 0; at < swim->all_bytes && status == WEIR_OK; at += size)
        status = pageable ? weir_upload(queue, swim->up_to, at, swim->up_plain + at, size)
                          : weir_queue_copy(queue, swim->up_to, at, swim->up_pinned, at, size);
    return status;
}

// The ways, in the order of the puzzle: products, down, up.

static weir_status submit_parts(struct swim *swim, const struct swim_way *way)
{
    weir_queue *const *queues = swim->queues;
    weir_status status = WEIR_OK;
    if (way->parts & SWIM_PRODUCTS)
        status = submit_products(swim, queues[0], way->product);
    // Hands the products to the device before a copy blocks the host.
    if (status == WEIR_OK)
        status = weir_queue_flush(queues[0]);
    if (status == WEIR_OK && way->parts & SWIM_DOWN)
        status = copy_down(swim, queues[way->spread ? 1 : 0], way->pageable);
    if (status == WEIR_OK)
        status = weir_queue_flush(queues[way->spread ? 1 : 0]);
    if (status == WEIR_OK && way->parts & SWIM_UP)
        status = copy_up(swim, queues[way->spread ? 2 : 0], way->pageable);
    return status;
}

static double milliseconds_since(uint64_t began_ns)
{
    return (double)(cli_now_ns() - began_ns) / 1e6;
}

struct swim_times swim_run(struct swim *swim, const struct swim_way *way)
{
    const uint64_t began = cli_now_ns();
    cli_fine(submit_parts(swim, way));
    struct swim_times times = {.host_ms = milliseconds_since(began)};
    for (int i = 2; i >= 0; i--)
        cli_fine(weir_queue_flush(swim->queues[i]));
    for (int i = 0; i < 3; i++)
        bench_sync(swim->queues[i]);
    times.all_ms = milliseconds_since(began);
    return times;
}

struct swim_times swim_run_beside(struct swim *swim, enum swim_beside beside,
                                  enum swim_product product)
{
    weir_queue *light = beside == SWIM_AFTER    ? swim->queues[0]
                        : beside == SWIM_BESIDE ? swim->queues[1]
                                                : swim->first;
    struct swim_times times = {0};
    struct weir_event lights_done;
    const uint64_t began = cli_now_ns();
    cli_fine(submit_products(swim, swim->queues[0], product));
    cli_fine(weir_queue_flush(swim->queues[0]));
    cli_fine(submit_light(swim, light));
    cli_fine(weir_queue_record(light, &lights_done));
    times.host_ms = milliseconds_since(began);
    cli_fine(weir_event_sync(lights_done, WEIR_FOREVER));
    times.light_ms = milliseconds_since(began);
    bench_sync(swim->queues[0]);
    times.all_ms = milliseconds_since(began);
    return times;
}

// Checking.

static double exact_element(size_t matrix, size_t side, size_t row, size_t column)
{
    double sum = 0;
    for (size_t i = 0; i < side; i++)
        sum += (double)factor_at(matrix, row, i) * (double)factor_at(matrix, i, column);
    return sum;
}

// How many of the samples are wrong in one matrix of the ring.
static size_t wrong_samples(const struct swim *swim, size_t matrix, const float *values, bool light)
{
    const size_t side = (size_t)swim->side;
    size_t wrong = 0;
    for (size_t i = 0; i < SAMPLES; i++) {
        // The corners first, then spread by a step that is prime.
        const size_t at = i < 4 ? (i & 1) * (side - 1) + (i >> 1) * side * (side - 1)
                                : i * 1000003 % (side * side);
        const size_t row = at / side, column = at % side;
        const double wanted = light ? (double)(light_factor * factor_at(matrix, row, column))
                                    : exact_element(matrix, side, row, column);
        wrong += (double)values[at] != wanted;
    }
    return wrong;
}

static void check_ring(struct swim *swim, weir_buffer *buffer, bool light)
{
    const size_t used = swim->products < SWIM_RING ? (size_t)swim->products : SWIM_RING;
    size_t wrong = 0;
    for (size_t i = 0; i < used; i++) {
        cli_fine(weir_download(swim->queues[0], swim->read_back, buffer, i * swim->matrix_bytes,
                               swim->matrix_bytes));
        wrong += wrong_samples(swim, i, swim->read_back, light);
        swim->bench->checked += SAMPLES;
    }
    if (wrong)
        cli_fail(CLI_FAILED, "%zu of %zu samples of the %s are wrong", wrong, used * SAMPLES,
                 light ? "scaled matrices" : "products");
}

// Clears what the copies of the way write.
static void clear_copies(struct swim *swim, const struct swim_way *way)
{
    if (way->parts & SWIM_DOWN && way->pageable)
        memset(swim->down_plain, 0, swim->all_bytes);
    if (way->parts & SWIM_DOWN && !way->pageable)
        bench_work_spoil(swim->down_pinned, swim->all_bytes);
    bench_fill(swim->queues[2], swim->up_to, swim->all_bytes);
}

static void compare(struct swim *swim, const struct swim_way *way, const void *found,
                    enum seed seed)
{
    swim->bench->checked += swim->copies;
    if (!are_bytes(found, swim->all_bytes, seed))
        cli_fail(CLI_FAILED, "%s: a copy %s has other bytes than its source", way->name,
                 seed == SEED_UP ? "up" : "down");
}

static void check_down(struct swim *swim, const struct swim_way *way)
{
    if (way->pageable) {
        compare(swim, way, swim->down_plain, SEED_DOWN);
        return;
    }
    compare(swim, way, bench_begin(swim->down_pinned, WEIR_ACCESS_READ), SEED_DOWN);
    bench_end(swim->down_pinned, WEIR_ACCESS_READ);
}

static void check_up(struct swim *swim, const struct swim_way *way)
{
    cli_fine(weir_download(swim->queues[2], swim->read_back, swim->up_to, 0, swim->all_bytes));
    compare(swim, way, swim->read_back, SEED_UP);
}

static void spoil_ring(struct swim *swim, weir_buffer *buffer)
{
    bench_fill(swim->queues[0], buffer, SWIM_RING * swim->matrix_bytes);
}

void swim_check(struct swim *swim, const struct swim_way *way)
{
    const bool products = way->parts & SWIM_PRODUCTS && swim->bench->runs_kernels;
    if (products)
        spoil_ring(swim, swim->results);
    clear_copies(swim, way);
    (void)swim_run(swim, way);
    if (products)
        check_ring(swim, swim->results, false);
    if (way->parts & SWIM_DOWN)
        check_down(swim, way);
    if (way->parts & SWIM_UP)
        check_up(swim, way);
}

void swim_check_beside(struct swim *swim, enum swim_beside beside, enum swim_product product)
{
    spoil_ring(swim, swim->results);
    spoil_ring(swim, swim->scaled);
    (void)swim_run_beside(swim, beside, product);
    if (!swim->bench->runs_kernels)
        return;
    check_ring(swim, swim->results, false);
    check_ring(swim, swim->scaled, true);
}
