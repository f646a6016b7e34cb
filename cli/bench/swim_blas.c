// Products by cuBLAS on a queue of Weir's, through <weir/interop.h>: with the ordinary
// units, and with tensor cores, which round the factors to TF32 first.
// cuBLAS is opened at run time. It is called inside native calls, where the device's context
// is current. The few declarations are here; names and values are NVIDIA's.
#include "cli/bench/swim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/kit/symbols.h>

enum {
    OPERATION_N = 0, // factors as they are
    MATH_DEFAULT = 0,
    MATH_TF32 = 3
};

static const char *const names[] = {
    "libcublas.so.13",
    "/usr/local/cuda/lib64/libcublas.so.13",
    "libcublas.so.12",
    "/usr/local/cuda/lib64/libcublas.so.12",
};

struct blas_api {
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*set_stream)(void *handle, void *stream);
    int (*set_math_mode)(void *handle, int mode);
    int (*multiply)(void *handle, int turn_a, int turn_b, int m, int n, int k, const float *alpha,
                    const float *a, int a_pitch, const float *b, int b_pitch, const float *beta,
                    float *c, int c_pitch);
};

static const struct weir_kit_symbol symbols[] = {
    {"cublasCreate_v2", offsetof(struct blas_api, create), false},
    {"cublasDestroy_v2", offsetof(struct blas_api, destroy), false},
    {"cublasSetStream_v2", offsetof(struct blas_api, set_stream), false},
    {"cublasSetMathMode", offsetof(struct blas_api, set_math_mode), false},
    {"cublasSgemm_v2", offsetof(struct blas_api, multiply), false},
};

// What a native call is given; lives as long as the work.
struct product {
    struct swim_blas *blas;
    uint64_t factor, result; // addresses on the device
    bool tensor;
};

struct swim_blas {
    struct blas_api api;
    void *handle;
    int status; // of cuBLAS, when it was opened
    int side;
    size_t bytes; // of a matrix
    size_t count;
    weir_buffer *factors, *results;
    struct product products[]; // 2 * count: the ordinary ones first
};

static weir_status refuse(const char *call, int status)
{
    struct weir_error error = {.status = WEIR_ERROR_DEVICE, .native_code = status};
    snprintf(error.message, sizeof error.message, "cuBLAS refused a product");
    snprintf(error.native_call, sizeof error.native_call, "%s", call);
    return weir_error_set(&error);
}

// Native calls.

static weir_status create(const struct weir_native_queue *native, void *user)
{
    struct swim_blas *blas = user;
    (void)native;
    blas->status = blas->api.create(&blas->handle);
    return WEIR_OK;
}

static weir_status destroy(const struct weir_native_queue *native, void *user)
{
    struct swim_blas *blas = user;
    (void)native;
    blas->api.destroy(blas->handle);
    return WEIR_OK;
}

// cuBLAS stores matrices by columns: it multiplies the transposed matrices and stores the
// transposed product, which is c = a a by rows.
static weir_status multiply(const struct weir_native_queue *native, void *user)
{
    static const float one = 1, zero = 0;
    const struct product *product = user;
    const struct swim_blas *blas = product->blas;
    const struct blas_api *api = &blas->api;
    const float *factor = (const float *)(uintptr_t)product->factor;
    const int side = blas->side;
    int status = api->set_stream(blas->handle, native->queue);
    if (status != 0)
        return refuse("cublasSetStream", status);
    status = api->set_math_mode(blas->handle, product->tensor ? MATH_TF32 : MATH_DEFAULT);
    if (status != 0)
        return refuse("cublasSetMathMode", status);
    status = api->multiply(blas->handle, OPERATION_N, OPERATION_N, side, side, side, &one, factor,
                           side, factor, side, &zero, (float *)(uintptr_t)product->result, side);
    return status == 0 ? WEIR_OK : refuse("cublasSgemm", status);
}

// Opening.

static weir_status run_alone(struct swim_blas *blas, weir_queue *queue,
                             weir_native_function function)
{
    const weir_status status =
        weir_queue_native(queue, function, blas, weir_inout(blas->results, 0, blas->bytes));
    return status == WEIR_OK ? weir_queue_sync(queue, WEIR_FOREVER) : status;
}

static bool load(struct swim_blas *blas, weir_queue *queue, char *message, size_t size)
{
    void *library = weir_kit_library_open(names, sizeof names / sizeof *names, message, size);
    if (!library ||
        !weir_kit_symbols_load(library, "libcublas", symbols, sizeof symbols / sizeof *symbols,
                               &blas->api, message, size))
        return false;
    if (run_alone(blas, queue, create) != WEIR_OK) {
        snprintf(message, size, "%s", weir_last_error_text());
        return false;
    }
    if (blas->status != 0)
        snprintf(message, size, "cublasCreate failed with %d", blas->status);
    return blas->status == 0;
}

swim_blas *swim_blas_open(weir_queue *queue, weir_buffer *factors, weir_buffer *results,
                          size_t side, size_t count, char *message, size_t message_size)
{
    struct weir_native_buffer from, to;
    message[0] = '\0';
    if (weir_buffer_get_native(factors, &from) != WEIR_OK ||
        weir_buffer_get_native(results, &to) != WEIR_OK ||
        !weir_native_is(from.api, WEIR_NATIVE_CUDA))
        return NULL;
    struct swim_blas *blas = calloc(1, sizeof *blas + 2 * count * sizeof *blas->products);
    if (!blas) {
        snprintf(message, message_size, "no memory for the products of cuBLAS");
        return NULL;
    }
    blas->side = (int)side;
    blas->bytes = side * side * sizeof(float);
    blas->count = count;
    blas->factors = factors;
    blas->results = results;
    for (size_t i = 0; i < count; i++) {
        const size_t at = i * blas->bytes;
        const struct product product = {blas, from.address + at, to.address + at, false};
        blas->products[i] = blas->products[count + i] = product;
        blas->products[count + i].tensor = true;
    }
    if (!load(blas, queue, message, message_size))
        swim_blas_close(&blas, queue);
    return blas;
}

void swim_blas_close(swim_blas **blas, weir_queue *queue)
{
    if (!*blas)
        return;
    // A refused product has failed the queue.
    if ((*blas)->handle && weir_queue_recover(queue) == WEIR_OK)
        run_alone(*blas, queue, destroy);
    free(*blas);
    *blas = NULL;
}

weir_status swim_blas_multiply(swim_blas *blas, weir_queue *queue, size_t index, bool tensor)
{
    const size_t at = index % blas->count;
    return weir_queue_native(queue, multiply, &blas->products[at + (tensor ? blas->count : 0)],
                             weir_in(blas->factors, at * blas->bytes, blas->bytes),
                             weir_out(blas->results, at * blas->bytes, blas->bytes));
}
