// A cuBLAS product on a Weir queue, between two Weir kernels. The CUDA libraries are
// opened at run time and their few functions declared here, so that this builds anywhere;
// without a GPU or cuBLAS it is skipped, and says what is missing. WEIR_TEST_CUBLAS is the
// path of a libcublas.so that the dynamic linker does not find.
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "kernels/conformance/conformance.h"
#include "tests/support/test.h"

enum {
    ROWS = 192,
    COLUMNS = 320,
    INNER = 256,
    CUBLAS_OP_N = 0,
};

#define GUARD_NS (UINT64_C(60) * 1000000000u)
#define ASSERT_OK(call) ASSERT_INT_EQ(call, WEIR_OK)
#define EXPECT_OK(call) EXPECT_INT_EQ(call, WEIR_OK)

struct cublas {
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*set_stream)(void *handle, void *stream);
    int (*sgemm)(void *handle, int transpose_a, int transpose_b, int m, int n, int k,
                 const float *alpha, const float *a, int lda, const float *b, int ldb,
                 const float *beta, float *c, int ldc);
    void *handle;
};

struct scene {
    weir_runtime *runtime;
    weir_device *device;
    weir_program *program;
    weir_kernel *scale;
    weir_queue *queue;
    weir_buffer *x, *y, *a, *c, *d; // d = 4 * (x / 2) * y
    struct weir_native_buffer native_y, native_a, native_c;
    struct cublas cublas;
};

static bool find(void *library, const char *name, void *out_function)
{
    void *address = dlsym(library, name);
    memcpy(out_function, &address, sizeof address);
    return address != NULL;
}

static void *open_cublas(void)
{
    const char *names[] = {getenv("WEIR_TEST_CUBLAS"),
                           "libcublas.so.13",
                           "libcublas.so.12",
                           "/usr/local/cuda/lib64/libcublas.so.13",
                           "/usr/local/cuda/lib64/libcublas.so.12",
                           "/usr/local/cuda/lib64/libcublas.so"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        if (names[i] && *names[i])
            library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static bool load_cublas(struct cublas *cublas)
{
    void *library = open_cublas();
    return library && find(library, "cublasCreate_v2", &cublas->create) &&
           find(library, "cublasDestroy_v2", &cublas->destroy) &&
           find(library, "cublasSetStream_v2", &cublas->set_stream) &&
           find(library, "cublasSgemm_v2", &cublas->sgemm);
}

// A cuBLAS handle belongs to the context that is current when it is made.
static bool create_handle(weir_device *device, struct cublas *cublas)
{
    struct weir_native_device native;
    int (*set_context)(void *);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return driver && find(driver, "cuCtxSetCurrent", &set_context) &&
           weir_device_get_native(device, &native) == WEIR_OK && set_context(native.context) == 0 &&
           cublas->create(&cublas->handle) == 0;
}

static weir_buffer *buffer_of(weir_device *device, size_t count)
{
    weir_buffer *buffer = NULL;
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .size = count * sizeof(float)};
    EXPECT_OK(weir_buffer_create(device, &params, &buffer));
    return buffer;
}

static void close_scene(struct scene *scene)
{
    weir_buffer *buffers[] = {scene->x, scene->y, scene->a, scene->c, scene->d};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        weir_buffer_destroy(&buffers[i]);
    if (scene->cublas.handle)
        scene->cublas.destroy(scene->cublas.handle);
    weir_queue_destroy(&scene->queue);
    weir_kernel_destroy(&scene->scale);
    weir_program_destroy(&scene->program);
    EXPECT_OK(weir_device_close(&scene->device));
    EXPECT_OK(weir_close(&scene->runtime));
}

static bool open_scene(struct scene *scene)
{
    const struct weir_program_params program = {.struct_size = sizeof program,
                                                .bundle = &conformance_kernels};
    EXPECT_OK(weir_program_create(scene->device, &program, &scene->program));
    EXPECT_OK(weir_kernel_create(scene->program, "scale", &scene->scale));
    EXPECT_OK(weir_queue_create(scene->device, NULL, &scene->queue));
    scene->x = buffer_of(scene->device, ROWS * INNER);
    scene->y = buffer_of(scene->device, INNER * COLUMNS);
    scene->a = buffer_of(scene->device, ROWS * INNER);
    scene->c = buffer_of(scene->device, ROWS * COLUMNS);
    scene->d = buffer_of(scene->device, ROWS * COLUMNS);
    EXPECT_OK(weir_buffer_get_native(scene->y, &scene->native_y));
    EXPECT_OK(weir_buffer_get_native(scene->a, &scene->native_a));
    EXPECT_OK(weir_buffer_get_native(scene->c, &scene->native_c));
    return !weir_test_has_failed();
}

static const float *address_of(const struct weir_native_buffer *native)
{
    return (const float *)(uintptr_t)native->address;
}

// Opens what the tests need, or ends the test as skipped.
#define OPEN_OR_SKIP(scene)                                                                        \
    do {                                                                                           \
        const struct weir_open_params params = {.struct_size = sizeof params, .backend = "cuda"};  \
        if (weir_open(&params, &(scene)->runtime) != WEIR_OK)                                      \
            WEIR_SKIP("no CUDA device: %s", weir_last_error()->message);                           \
        ASSERT_OK(weir_device_open((scene)->runtime, NULL, &(scene)->device));                     \
        if (!load_cublas(&(scene)->cublas) || !create_handle((scene)->device, &(scene)->cublas)) { \
            weir_device_close(&(scene)->device);                                                   \
            weir_close(&(scene)->runtime);                                                         \
            WEIR_SKIP("cuBLAS cannot be opened; WEIR_TEST_CUBLAS may name its file");              \
        }                                                                                          \
        ASSERT_TRUE(open_scene(scene));                                                            \
    } while (0)

// A row-major product is a column-major one with its sides swapped.
static weir_status multiply(const struct weir_native_queue *native, void *user)
{
    struct scene *scene = user;
    struct cublas *cublas = &scene->cublas;
    const float one = 1;
    const float zero = 0;
    int code = cublas->set_stream(cublas->handle, native->queue);
    if (code == 0)
        code = cublas->sgemm(cublas->handle, CUBLAS_OP_N, CUBLAS_OP_N, COLUMNS, ROWS, INNER, &one,
                             address_of(&scene->native_y), COLUMNS, address_of(&scene->native_a),
                             INNER, &zero, (float *)(uintptr_t)scene->native_c.address, COLUMNS);
    if (code == 0)
        return WEIR_OK;
    const struct weir_error error = {.status = WEIR_ERROR_DEVICE,
                                     .message = "cuBLAS refused the product",
                                     .native_call = "cublasSgemm",
                                     .native_code = code};
    return weir_error_set(&error);
}

static weir_status scale(struct scene *scene, weir_buffer *in, weir_buffer *out, float factor)
{
    const uint32_t count = (uint32_t)(weir_buffer_size(in) / sizeof(float));
    return weir_queue_launch(scene->queue, scene->scale, weir_dim((count + 255) / 256, 1, 1),
                             weir_dim(256, 1, 1), weir_in(in, 0, weir_buffer_size(in)),
                             weir_out(out, 0, weir_buffer_size(out)), factor, count);
}

static weir_status submit(struct scene *scene)
{
    weir_status status = scale(scene, scene->x, scene->a, 0.5f);
    if (status == WEIR_OK)
        status = weir_queue_native(scene->queue, multiply, scene,
                                   weir_in(scene->a, 0, weir_buffer_size(scene->a)),
                                   weir_in(scene->y, 0, weir_buffer_size(scene->y)),
                                   weir_out(scene->c, 0, weir_buffer_size(scene->c)));
    return status == WEIR_OK ? scale(scene, scene->c, scene->d, 4.0f) : status;
}

static float value_at(size_t i, unsigned seed)
{
    const uint32_t bits = (uint32_t)i * 2654435761u + seed * 40503u;
    return (float)(bits >> 8) / (float)(1 << 23) - 1.0f;
}

static void fill(float *values, size_t count, unsigned seed)
{
    for (size_t i = 0; i < count; i++)
        values[i] = value_at(i, seed);
}

// The largest error of 2 x y, in units of what a sum of INNER products in float32 may be off.
static double worst(const float *x, const float *y, const float *d)
{
    double most = 0;
    for (size_t row = 0; row < ROWS; row++)
        for (size_t column = 0; column < COLUMNS; column++) {
            double sum = 0;
            double size = 0;
            for (size_t k = 0; k < INNER; k++) {
                const double product =
                    2.0 * (double)x[row * INNER + k] * (double)y[k * COLUMNS + column];
                sum += product;
                size += fabs(product);
            }
            const double bound = (INNER + 2) * 0x1p-24 * size;
            const double error = fabs((double)d[row * COLUMNS + column] - sum) / bound;
            most = error > most ? error : most;
        }
    return most;
}

static float x[ROWS * INNER];
static float y[INNER * COLUMNS];
static float d[ROWS * COLUMNS];
static float again[ROWS * COLUMNS];

WEIR_TEST(Cublas, ProductBetweenTwoKernels)
{
    struct scene scene = {NULL};
    OPEN_OR_SKIP(&scene);
    fill(x, ROWS * INNER, 1);
    fill(y, INNER * COLUMNS, 2);
    ASSERT_OK(weir_upload(scene.queue, scene.x, 0, x, sizeof x));
    ASSERT_OK(weir_upload(scene.queue, scene.y, 0, y, sizeof y));

    ASSERT_OK(submit(&scene));
    ASSERT_OK(weir_download(scene.queue, d, scene.d, 0, sizeof d));
    const double error = worst(x, y, d);
    printf("[ CUBLAS   ] %d x %d x %d in float32: largest error %.3f of the bound\n", ROWS, COLUMNS,
           INNER, error);
    EXPECT_DOUBLE_LE(error, 1.0);
    close_scene(&scene);
}

static weir_status do_nothing(void *unused)
{
    (void)unused;
    return WEIR_OK;
}

// After a host call the product is submitted on a library thread, which has no current
// context; and over many rounds the three are in order each time.
WEIR_TEST(Cublas, AfterAHostCallAndManyTimes)
{
    struct scene scene = {NULL};
    OPEN_OR_SKIP(&scene);
    fill(x, ROWS * INNER, 3);
    fill(y, INNER * COLUMNS, 4);
    ASSERT_OK(weir_upload(scene.queue, scene.x, 0, x, sizeof x));
    ASSERT_OK(weir_upload(scene.queue, scene.y, 0, y, sizeof y));
    ASSERT_OK(submit(&scene));
    ASSERT_OK(weir_download(scene.queue, d, scene.d, 0, sizeof d));
    for (int round = 0; round < 100; round++) {
        if (round % 10 == 0)
            ASSERT_OK(weir_queue_host_call(scene.queue, do_nothing, NULL));
        ASSERT_OK(submit(&scene));
    }
    ASSERT_OK(weir_download(scene.queue, again, scene.d, 0, sizeof again));
    EXPECT_MEM_EQ(again, d, sizeof d);
    close_scene(&scene);
}
