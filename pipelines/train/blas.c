// cuBLAS stores matrices by columns. A row-major matrix is the transpose of one by columns, so the
// transposed product is computed, with the factors exchanged.
//
// A handle belongs to the context that is current when it is made and destroyed, which that of the
// device is in native calls: they do both. Names and values are NVIDIA's.
#include "pipelines/train/blas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipelines/train/fail.h"

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

static weir_status find(void *library, const char *name, void *out_function)
{
    void *address = dlsym(library, name);
    memcpy(out_function, &address, sizeof address);
    if (address)
        return WEIR_OK;
    return weir__pattern_fail("cuBLAS", WEIR_ERROR_UNSUPPORTED, "install CUDA 12 or newer",
                              "the library lacks the function %s", name);
}

static void *open_library(const char *path)
{
    if (path)
        return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

// The library is never closed: it has threads and exit handlers.
static weir_status load(struct train_blas *blas, const char *path)
{
    void *library = open_library(path);
    if (!library)
        return weir__pattern_fail(
            "cuBLAS", WEIR_ERROR_UNSUPPORTED,
            "install cuBLAS 12 or newer, name its file, or let the library's kernels "
            "compute the products",
            "the library cannot be opened: %s", dlerror());
    weir_status status;
    if ((status = find(library, "cublasCreate_v2", &blas->create)) ||
        (status = find(library, "cublasDestroy_v2", &blas->destroy)) ||
        (status = find(library, "cublasSetStream_v2", &blas->set_stream)))
        return status;
    return find(library, "cublasGemmEx", &blas->multiply);
}

// Native functions.

static weir_status create(const struct weir_native_queue *native, void *user)
{
    struct train_blas *blas = user;
    (void)native;
    blas->status = blas->create(&blas->handle);
    return WEIR_OK;
}

static weir_status destroy(const struct weir_native_queue *native, void *user)
{
    struct train_blas *blas = user;
    (void)native;
    blas->destroy(blas->handle);
    return WEIR_OK;
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
    const struct train_blas_product *p = user;
    const struct train_blas *blas = p->blas;
    const int type = p->bf16 ? TYPE_BF16 : TYPE_F32;
    int status = blas->set_stream(blas->handle, native->queue);
    if (status != 0)
        return refuse("cublasSetStream", status);
    status = blas->multiply(blas->handle, p->turned_b ? OPERATION_T : OPERATION_N,
                            p->turned_a ? OPERATION_T : OPERATION_N, (int)p->n, (int)p->m,
                            (int)p->k, &one, (const void *)(uintptr_t)p->b, type,
                            (int)(p->turned_b ? p->k : p->n), (const void *)(uintptr_t)p->a, type,
                            (int)(p->turned_a ? p->m : p->k), p->add ? &one : &zero,
                            (void *)(uintptr_t)p->c, p->narrow ? TYPE_BF16 : TYPE_F32, (int)p->n,
                            p->tensor ? COMPUTE_TF32 : COMPUTE_F32, ALGORITHM_ANY);
    return status == 0 ? WEIR_OK : refuse("cublasGemmEx", status);
}

// Opening.

static weir_status check_device(weir_device *device)
{
    struct weir_native_device native;
    const weir_status status = weir_device_get_native(device, &native);
    if (status != WEIR_OK)
        return status;
    if (weir_native_is(native.api, WEIR_NATIVE_CUDA))
        return WEIR_OK;
    return weir__pattern_fail("cuBLAS", WEIR_ERROR_UNSUPPORTED,
                              "let the library's kernels compute the products on this device",
                              "the device is one of '%s', not of CUDA", native.api);
}

static weir_status run_alone(struct train_blas *blas, weir_native_function function)
{
    const weir_status status = weir_queue_native_array(blas->queue, function, blas, NULL, 0);
    return status == WEIR_OK ? weir_queue_sync(blas->queue, WEIR_FOREVER) : status;
}

static weir_status start(struct train_blas *blas, weir_device *device, const char *path)
{
    const struct weir_queue_params params = {.struct_size = sizeof params, .label = "cublas"};
    weir_status status;
    if ((status = check_device(device)) || (status = load(blas, path)) ||
        (status = weir_queue_create(device, &params, &blas->queue)) ||
        (status = run_alone(blas, create)))
        return status;
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
        return train_fail_memory("cuBLAS");
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
