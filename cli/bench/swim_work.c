// The work of `weir bench swim`. Factors are small whole numbers, so that every sum of
// products is exact and a result is right or wrong; each copy has bytes of its own.
#include <stdlib.h>
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

// The pinned memory of a buffer that no work uses at the moment.
static unsigned char *pinned(weir_buffer *buffer, weir_access access)
{
    void *pointer = NULL;
    const size_t size = weir_buffer_size(buffer);
    return weir_host_begin(buffer, 0, size, access, &pointer) < 0 ? NULL : pointer;
}

static bool release(weir_buffer *buffer, weir_access access)
{
    return weir_host_end(buffer, 0, weir_buffer_size(buffer), access) == WEIR_OK;
}

// Set-up.

static bool make_buffers(struct swim *swim)
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
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (!bench_buffer(swim->bench, buffers[i].label, buffers[i].size, buffers[i].placement,
                          buffers[i].out_buffer))
            return false;
    return true;
}

static bool make_queues(struct swim *swim)
{
    static const char *const labels[] = {"products", "down", "up"};
    const struct weir_limits *limits = swim->bench->limits;
    for (int i = 0; i < 3; i++)
        if (!bench_queue(swim->bench, labels[i], 0, &swim->queues[i]))
            return false;
    return limits->priority_highest == limits->priority_lowest ||
           bench_queue(swim->bench, "first", limits->priority_highest, &swim->first);
}

static bool make_kernels(struct swim *swim)
{
    weir_device *device = swim->bench->device;
    return bench_kernel_on(swim->bench, device, &matmul_kernels, "matmul", &swim->program,
                           &swim->matmul) &&
           bench_kernel_on(swim->bench, device, &conformance_kernels, "scale", &swim->light_program,
                           &swim->light);
}

// Only CUDA runs the twin; elsewhere its bundle has the kernel that is measured already.
static weir_status make_twin(struct swim *swim)
{
    const struct weir_program_params twin = {.struct_size = sizeof twin,
                                             .label = "twin",
                                             .bundle = &matmul_tensor_kernels};
    if (swim->portable || strcmp(weir_runtime_backend(swim->bench->runtime), "cuda") != 0)
        return WEIR_OK;
    const weir_status status = weir_program_create(swim->bench->device, &twin, &swim->twin_program);
    if (status == WEIR_ERROR_UNSUPPORTED) {
        bench_note(swim->bench, "not measured: twin: %s", weir_last_error_text());
        return WEIR_OK;
    }
    return status < 0 ? status : weir_kernel_create(swim->twin_program, "matmul", &swim->twin);
}

static weir_status fill_factors(struct swim *swim)
{
    const size_t side = (size_t)swim->side;
    float *matrix = malloc(swim->matrix_bytes);
    weir_status status = matrix ? WEIR_OK : WEIR_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < SWIM_RING && status == WEIR_OK; i++) {
        for (size_t row = 0; row < side; row++)
            for (size_t column = 0; column < side; column++)
                matrix[row * side + column] = factor_at(i, row, column);
        status = weir_upload(swim->queues[0], swim->factors, i * swim->matrix_bytes, matrix,
                             swim->matrix_bytes);
    }
    free(matrix);
    return status;
}

static bool fill_copies(struct swim *swim)
{
    unsigned char *from = pinned(swim->up_pinned, WEIR_ACCESS_WRITE);
    if (!from)
        return false;
    fill_bytes(from, swim->all_bytes, SEED_UP);
    fill_bytes(swim->up_plain, swim->all_bytes, SEED_UP);
    fill_bytes(swim->down_plain, swim->all_bytes, SEED_DOWN);
    return release(swim->up_pinned, WEIR_ACCESS_WRITE) &&
           weir_upload(swim->queues[1], swim->down_from, 0, swim->down_plain, swim->all_bytes) ==
               WEIR_OK;
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

static void open_blas(struct swim *swim)
{
    if (strcmp(weir_runtime_backend(swim->bench->runtime), "cuda") != 0)
        return;
    if (train_blas_open(swim->bench->device, NULL, &swim->blas) == WEIR_OK &&
        describe_products(swim) == WEIR_OK)
        return;
    train_blas_close(&swim->blas);
    bench_note(swim->bench, "not measured: cuBLAS: %.250s", weir_last_error()->message);
}

bool swim_open(struct swim *swim)
{
    struct bench *bench = swim->bench;
    const uint64_t matrix = swim->side * swim->side * sizeof(float);
    if (matrix > bench->limits->max_buffer_bytes / SWIM_RING ||
        matrix > bench->limits->max_buffer_bytes / swim->copies)
        return bench_fail(bench, CLI_USAGE,
                          "%llu copies of %llu x %llu floats are more than the largest buffer of "
                          "this device, %llu bytes; give a smaller --side or --copies",
                          (unsigned long long)swim->copies, (unsigned long long)swim->side,
                          (unsigned long long)swim->side,
                          (unsigned long long)bench->limits->max_buffer_bytes);
    swim->matrix_bytes = (size_t)matrix;
    swim->all_bytes = (size_t)(matrix * swim->copies);
    swim->down_plain = malloc(swim->all_bytes);
    swim->up_plain = malloc(swim->all_bytes);
    if (!swim->down_plain || !swim->up_plain)
        return bench_fail(bench, CLI_FAILED,
                          "no memory for twice %zu bytes; give a smaller --side or --copies",
                          swim->all_bytes);
    if (!make_queues(swim) || !make_kernels(swim) || !make_buffers(swim))
        return false;
    if (make_twin(swim) < 0 || fill_factors(swim) < 0 || !fill_copies(swim))
        return bench_fail_weir(bench);
    if (!swim->portable)
        open_blas(swim);
    return true;
}

void swim_close(struct swim *swim)
{
    if (swim->queues[0])
        WEIR_IGNORE(weir_queue_sync(swim->queues[0], WEIR_FOREVER));
    train_blas_close(&swim->blas);
    free(swim->up_plain);
    free(swim->down_plain);
    weir_buffer_destroy(&swim->up_pinned);
    weir_buffer_destroy(&swim->down_pinned);
    weir_buffer_destroy(&swim->up_to);
    weir_buffer_destroy(&swim->down_from);
    weir_buffer_destroy(&swim->scaled);
    weir_buffer_destroy(&swim->results);
    weir_buffer_destroy(&swim->factors);
    weir_kernel_destroy(&swim->light);
    weir_kernel_destroy(&swim->twin);
    weir_kernel_destroy(&swim->matmul);
    weir_program_destroy(&swim->light_program);
    weir_program_destroy(&swim->twin_program);
    weir_program_destroy(&swim->program);
    weir_queue_destroy(&swim->first);
    for (int i = 0; i < 3; i++)
        weir_queue_destroy(&swim->queues[i]);
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

bool swim_run(struct swim *swim, const struct swim_way *way, struct swim_times *out_times)
{
    const uint64_t began = cli_now_ns();
    weir_status status = submit_parts(swim, way);
    *out_times = (struct swim_times){.host_ms = milliseconds_since(began)};
    for (int i = 2; i >= 0 && status == WEIR_OK; i--)
        status = weir_queue_flush(swim->queues[i]);
    for (int i = 0; i < 3 && status == WEIR_OK; i++)
        status = weir_queue_sync(swim->queues[i], WEIR_FOREVER);
    out_times->all_ms = milliseconds_since(began);
    return bench_fine(swim->bench, status);
}

bool swim_run_beside(struct swim *swim, enum swim_beside beside, enum swim_product product,
                     struct swim_times *out_times)
{
    weir_queue *light = beside == SWIM_AFTER    ? swim->queues[0]
                        : beside == SWIM_BESIDE ? swim->queues[1]
                                                : swim->first;
    struct weir_event lights_done;
    const uint64_t began = cli_now_ns();
    weir_status status;
    *out_times = (struct swim_times){0};
    if ((status = submit_products(swim, swim->queues[0], product)) == WEIR_OK &&
        (status = weir_queue_flush(swim->queues[0])) == WEIR_OK &&
        (status = submit_light(swim, light)) == WEIR_OK &&
        (status = weir_queue_record(light, &lights_done)) == WEIR_OK) {
        out_times->host_ms = milliseconds_since(began);
        status = weir_event_sync(lights_done, WEIR_FOREVER);
        out_times->light_ms = milliseconds_since(began);
    }
    if (status == WEIR_OK)
        status = weir_queue_sync(swim->queues[0], WEIR_FOREVER);
    out_times->all_ms = milliseconds_since(began);
    return bench_fine(swim->bench, status);
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

static bool check_ring(struct swim *swim, weir_buffer *buffer, bool light)
{
    const size_t used = swim->products < SWIM_RING ? (size_t)swim->products : SWIM_RING;
    float *values = malloc(swim->matrix_bytes);
    size_t wrong = 0;
    if (!values)
        return bench_fail(swim->bench, CLI_FAILED, "no memory to check a product");
    for (size_t i = 0; i < used; i++) {
        if (weir_download(swim->queues[0], values, buffer, i * swim->matrix_bytes,
                          swim->matrix_bytes) != WEIR_OK) {
            free(values);
            return bench_fail_weir(swim->bench);
        }
        wrong += wrong_samples(swim, i, values, light);
        swim->bench->checked += SAMPLES;
    }
    free(values);
    if (wrong)
        return bench_fail_result(swim->bench, "%zu of %zu samples of the %s are wrong", wrong,
                                 used * SAMPLES, light ? "scaled matrices" : "products");
    return true;
}

// Clears what the copies of the way write.
static bool clear_copies(struct swim *swim, const struct swim_way *way)
{
    static const uint32_t zero = 0;
    weir_queue *queue = swim->queues[2];
    if (way->parts & SWIM_DOWN && way->pageable)
        memset(swim->down_plain, 0, swim->all_bytes);
    if (way->parts & SWIM_DOWN && !way->pageable) {
        unsigned char *to = pinned(swim->down_pinned, WEIR_ACCESS_WRITE);
        if (!to)
            return bench_fail_weir(swim->bench);
        memset(to, 0, swim->all_bytes);
        if (!release(swim->down_pinned, WEIR_ACCESS_WRITE))
            return bench_fail_weir(swim->bench);
    }
    return (weir_queue_fill(queue, swim->up_to, 0, swim->all_bytes, &zero, sizeof zero) ==
                WEIR_OK &&
            weir_queue_sync(queue, WEIR_FOREVER) == WEIR_OK) ||
           bench_fail_weir(swim->bench);
}

static bool check_down(struct swim *swim, const struct swim_way *way)
{
    const unsigned char *got =
        way->pageable ? swim->down_plain : pinned(swim->down_pinned, WEIR_ACCESS_READ);
    if (!got)
        return bench_fail_weir(swim->bench);
    const bool same = are_bytes(got, swim->all_bytes, SEED_DOWN);
    if (!way->pageable && !release(swim->down_pinned, WEIR_ACCESS_READ))
        return bench_fail_weir(swim->bench);
    swim->bench->checked += swim->copies;
    return same || bench_fail_result(swim->bench, "%s: a copy down has other bytes than its source",
                                     way->name);
}

static bool check_up(struct swim *swim, const struct swim_way *way)
{
    unsigned char *got = malloc(swim->all_bytes);
    if (!got)
        return bench_fail(swim->bench, CLI_FAILED, "no memory to check the copies");
    const bool read =
        weir_download(swim->queues[2], got, swim->up_to, 0, swim->all_bytes) == WEIR_OK;
    const bool same = read && are_bytes(got, swim->all_bytes, SEED_UP);
    free(got);
    swim->bench->checked += swim->copies;
    if (!read)
        return bench_fail_weir(swim->bench);
    return same || bench_fail_result(swim->bench, "%s: a copy up has other bytes than its source",
                                     way->name);
}

bool swim_check(struct swim *swim, const struct swim_way *way)
{
    struct swim_times times;
    const bool products = way->parts & SWIM_PRODUCTS && swim->bench->runs_kernels;
    return (!products || bench_fill(swim->bench, swim->queues[0], swim->results,
                                    SWIM_RING * swim->matrix_bytes)) &&
           clear_copies(swim, way) && swim_run(swim, way, &times) &&
           (!products || check_ring(swim, swim->results, false)) &&
           (!(way->parts & SWIM_DOWN) || check_down(swim, way)) &&
           (!(way->parts & SWIM_UP) || check_up(swim, way));
}

bool swim_check_beside(struct swim *swim, enum swim_beside beside, enum swim_product product)
{
    struct swim_times times;
    if (!swim->bench->runs_kernels)
        return swim_run_beside(swim, beside, product, &times);
    return bench_fill(swim->bench, swim->queues[0], swim->results,
                      SWIM_RING * swim->matrix_bytes) &&
           bench_fill(swim->bench, swim->queues[0], swim->scaled, SWIM_RING * swim->matrix_bytes) &&
           swim_run_beside(swim, beside, product, &times) &&
           check_ring(swim, swim->results, false) && check_ring(swim, swim->scaled, true);
}
