// A result with few tiles and a great depth is made in parts: a weight of a convolution has a few
// thousand numbers, and its depth is all places of all samples. The parts depend on sizes alone, so
// the order of the sums is the same on every device.
#include "pipelines/train/product.h"

#include <dlfcn.h>
#include <stdarg.h>

#include "base/text.h"
#include "kernels/train/tile.cl.h"

weir_status train_fail_file(const char *path, const char *remedy, const char *format, ...)
{
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    weir_text_vabout(message, sizeof message, path, format, arguments);
    va_end(arguments);
    return weir__pattern_fail(NULL, WEIR_ERROR_IO, remedy, "%s", message);
}

// cuBLAS stores matrices by columns. A row-major matrix is the transpose of one by columns, so the
// transposed product is computed, with the factors exchanged.
// A handle belongs to the context that is current when it is made and destroyed, which that of the
// device is in native calls: they do both. Names and values are NVIDIA's.

enum {
    OPERATION_N = 0,
    OPERATION_T = 1,
    TYPE_F32 = 0,      // CUDA_R_32F
    TYPE_BF16 = 14,    // CUDA_R_16BF
    COMPUTE_F32 = 68,  // CUBLAS_COMPUTE_32F
    COMPUTE_TF32 = 77, // CUBLAS_COMPUTE_32F_FAST_TF32
    ALGORITHM_ANY = -1 // CUBLAS_GEMM_DEFAULT
};

static const char *const names[] = {"libcublas.so.13", "/usr/local/cuda/lib64/libcublas.so.13",
                                    "libcublas.so.12", "/usr/local/cuda/lib64/libcublas.so.12"};

struct train_blas {
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*set_stream)(void *handle, void *stream);
    int (*multiply)(void *handle, int turn_a, int turn_b, int m, int n, int k, const void *alpha,
                    const void *a, int a_type, int a_pitch, const void *b, int b_type, int b_pitch,
                    const void *beta, void *c, int c_type, int c_pitch, int compute, int algorithm);
    void *handle;
    int status; // of making the handle
    weir_queue *queue;
};

// Native functions.

static weir_status create(const struct weir_native_queue *native, void *user)
{
    struct train_blas *blas = user;
    blas->status = blas->create(&blas->handle);
    return WEIR_OK;
}

static weir_status destroy(const struct weir_native_queue *native, void *user)
{
    struct train_blas *blas = user;
    blas->destroy(blas->handle);
    return WEIR_OK;
}

static weir_status find(void *library, const char *name, void *out_function)
{
    void *address = dlsym(library, name);
    memcpy(out_function, &address, sizeof address);
    if (address)
        return WEIR_OK;
    return weir__pattern_fail("cuBLAS", WEIR_ERROR_UNSUPPORTED, "install CUDA 12 or newer",
                              "the library lacks the function %s", name);
}

// The library is never closed: it has threads and exit handlers.
static weir_status load(struct train_blas *blas, const char *path)
{
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (size_t i = 0; !path && i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return weir__pattern_fail("cuBLAS", WEIR_ERROR_UNSUPPORTED,
                                  "install cuBLAS 12 or newer, name its file, or let the library's "
                                  "kernels compute the products",
                                  "the library cannot be opened: %s", dlerror());
    TRY(find(library, "cublasCreate_v2", &blas->create));
    TRY(find(library, "cublasDestroy_v2", &blas->destroy));
    TRY(find(library, "cublasSetStream_v2", &blas->set_stream));
    return find(library, "cublasGemmEx", &blas->multiply);
}

static weir_status refuse(const char *call, int status)
{
    struct weir_error error = {.status = WEIR_ERROR_DEVICE,
                               .message = "cuBLAS refused a product",
                               .native_code = status};
    snprintf(error.native_call, sizeof error.native_call, "%s", call);
    return weir_error_set(&error);
}

weir_status train_blas_multiply(const struct weir_native_queue *native, void *user)
{
    static const float one = 1, zero = 0;
    const struct train_product *p = user;
    const struct train_blas *blas = p->engine->blas;
    const int type = p->engine->bf16 ? TYPE_BF16 : TYPE_F32;
    int status = blas->set_stream(blas->handle, native->queue);
    if (status != 0)
        return refuse("cublasSetStream", status);
    status = blas->multiply(blas->handle, p->turned_b ? OPERATION_T : OPERATION_N,
                            p->turned_a ? OPERATION_T : OPERATION_N, (int)p->n, (int)p->m,
                            (int)p->k, &one, (const void *)(uintptr_t)p->at_b, type,
                            (int)(p->turned_b ? p->k : p->n), (const void *)(uintptr_t)p->at_a,
                            type, (int)(p->turned_a ? p->m : p->k), p->add ? &one : &zero,
                            (void *)(uintptr_t)p->at_c, p->narrow ? TYPE_BF16 : TYPE_F32, (int)p->n,
                            p->tensor ? COMPUTE_TF32 : COMPUTE_F32, ALGORITHM_ANY);
    return status == 0 ? WEIR_OK : refuse("cublasGemmEx", status);
}

// Opening.

static weir_status run_alone(struct train_blas *blas, weir_native_function function)
{
    TRY(weir_queue_native_array(blas->queue, function, blas, NULL, 0));
    return weir_queue_sync(blas->queue, WEIR_FOREVER);
}

static weir_status start(struct train_blas *blas, weir_device *device, const char *path)
{
    struct weir_native_device native;
    TRY(weir_device_get_native(device, &native));
    if (!weir_native_is(native.api, WEIR_NATIVE_CUDA))
        return weir__pattern_fail("cuBLAS", WEIR_ERROR_UNSUPPORTED,
                                  "let the library's kernels compute the products on this device",
                                  "the device is one of '%s', not of CUDA", native.api);
    TRY(load(blas, path));
    TRY(weir_queue_create(device, WEIR_PARAMS(weir_queue, .label = "cublas"), &blas->queue));
    TRY(run_alone(blas, create));
    if (blas->status == 0)
        return WEIR_OK;
    blas->handle = NULL;
    struct weir_error error = {.status = WEIR_ERROR_DEVICE,
                               .message = "cuBLAS refused the device",
                               .native_call = "cublasCreate",
                               .native_code = blas->status};
    return weir_error_set(&error);
}

weir_status train_blas_open(weir_device *device, const char *path, struct train_blas **out_blas)
{
    struct train_blas *blas = calloc(1, sizeof *blas);
    *out_blas = NULL;
    if (!blas)
        return weir__pattern_no_memory("cuBLAS", "a handle of cuBLAS");
    const weir_status status = start(blas, device, path);
    if (status != WEIR_OK)
        train_blas_close(&blas);
    *out_blas = blas;
    return status;
}

void train_blas_close(struct train_blas **blas)
{
    if (!*blas)
        return;
    if ((*blas)->handle)
        run_alone(*blas, destroy);
    weir_queue_destroy(&(*blas)->queue);
    free(*blas);
    *blas = NULL;
}

enum {
    TILES_ENOUGH = 128,
    SPAN_LEAST = 1024
};

static uint32_t ceil_div(uint32_t value, uint32_t by)
{
    return value / by + (value % by > 0);
}

uint64_t train_product_divide(struct train_product *p)
{
    const uint64_t tiles = (uint64_t)ceil_div(p->m, TRAIN_TILE) * ceil_div(p->n, TRAIN_TILE);
    uint32_t parts = 1;
    if (tiles < TILES_ENOUGH && p->k >= 2 * SPAN_LEAST) {
        const uint32_t wanted = (uint32_t)(TILES_ENOUGH / tiles);
        const uint32_t most = p->k / SPAN_LEAST;
        parts = wanted < most ? wanted : most;
    }
    p->span = ceil_div(ceil_div(p->k, parts), TRAIN_DEPTH) * TRAIN_DEPTH;
    p->parts = ceil_div(p->k, p->span);
    return p->parts > 1 ? (uint64_t)p->parts * p->m * p->n * sizeof(float) : 0;
}

static weir_status address_of(const struct train_range *range, uint64_t *out_address)
{
    struct weir_native_buffer native;
    const weir_status status = weir_buffer_get_native(range->buffer, &native);
    *out_address = status == WEIR_OK ? native.address + range->offset : 0;
    return status;
}

weir_status train_product_prepare(const struct train_engine *engine, struct train_product *p)
{
    p->engine = engine;
    if (!engine->blas)
        return WEIR_OK;
    TRY(address_of(&p->a, &p->at_a));
    TRY(address_of(&p->b, &p->at_b));
    return address_of(&p->c, &p->at_c);
}

static struct weir_argument in(const struct train_range *range)
{
    return weir_in(range->buffer, range->offset, range->size);
}

static struct weir_argument result(const struct train_range *range, bool add)
{
    return add ? weir_inout(range->buffer, range->offset, range->size)
               : weir_out(range->buffer, range->offset, range->size);
}

// Adds up `count` numbers of each of `parts` parts.
static weir_status sum_parts(const struct train_engine *engine, weir_queue *queue, uint32_t parts,
                             uint32_t count, const struct train_range *to, bool add)
{
    return weir_queue_launch_count(queue, engine->sum_parts, count,
                                   weir_in(engine->parts, 0, (size_t)parts * count * sizeof(float)),
                                   result(to, add), count, parts, add);
}

static weir_status launch(const struct train_engine *engine, weir_queue *queue,
                          const struct train_product *p, struct weir_argument out, bool add)
{
    const struct weir_extent grid =
        weir_dim(ceil_div(p->n, TRAIN_TILE), ceil_div(p->m, TRAIN_TILE), p->parts);
    const uint32_t turned =
        (p->turned_a ? TRAIN_TURNED_A : 0u) | (p->turned_b ? TRAIN_TURNED_B : 0u);
    return weir_queue_launch(queue, engine->product, grid, weir_dim(TRAIN_BLOCK, TRAIN_BLOCK, 1),
                             in(&p->a), in(&p->b), out, p->m, p->n, p->k, p->span, turned, add);
}

weir_status train_product_submit(const struct train_engine *engine, weir_queue *queue,
                                 struct train_product *p)
{
    if (engine->blas)
        return weir_queue_native(queue, train_blas_multiply, p, in(&p->a), in(&p->b),
                                 result(&p->c, p->add));
    if (p->parts == 1)
        return launch(engine, queue, p, result(&p->c, p->add), p->add);
    const uint32_t count = p->m * p->n;
    const size_t bytes = (size_t)p->parts * count * sizeof(float);
    TRY(launch(engine, queue, p, weir_out(engine->parts, 0, bytes), false));
    return sum_parts(engine, queue, p->parts, count, &p->c, p->add);
}

// Columns.

static uint32_t column_parts(uint32_t rows, uint32_t *out_span)
{
    const uint32_t most = rows / SPAN_LEAST > 1 ? rows / SPAN_LEAST : 1;
    *out_span = ceil_div(rows, most < TILES_ENOUGH ? most : TILES_ENOUGH);
    return ceil_div(rows, *out_span);
}

uint64_t train_columns_divide(uint32_t rows, uint32_t columns)
{
    uint32_t span;
    const uint32_t parts = column_parts(rows, &span);
    return parts > 1 ? (uint64_t)parts * columns * sizeof(float) : 0;
}

weir_status train_columns_submit(const struct train_engine *engine, weir_queue *queue,
                                 const struct train_columns *c)
{
    uint32_t span;
    const uint32_t parts = column_parts(c->rows, &span);
    const size_t bytes = (size_t)parts * c->columns * sizeof(float);
    const struct weir_argument out =
        parts > 1 ? weir_out(engine->parts, 0, bytes) : result(&c->to, c->add);
    const weir_status status =
        weir_queue_launch(queue, engine->column_sums,
                          weir_dim(ceil_div(c->columns, TRAIN_SUM_COLUMNS), parts, 1),
                          weir_dim(TRAIN_SUM_COLUMNS, TRAIN_SUM_ROWS, 1), in(&c->from), out,
                          c->rows, c->columns, span, parts == 1 && c->add);
    if (status != WEIR_OK || parts == 1)
        return status;
    return sum_parts(engine, queue, parts, c->columns, &c->to, c->add);
}
