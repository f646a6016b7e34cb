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
#include "tests/support/own.h"
#include "tests/support/test.h"

enum {
    ROWS = 192,
    COLUMNS = 320,
    INNER = 256,
    CUBLAS_OP_N = 0,
};

#define GUARD_NS (UINT64_C(60) * 1000000000u)

struct cublas {
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*set_stream)(void *handle, void *stream);
    int (*sgemm)(void *handle, int transpose_a, int transpose_b, int m, int n, int k,
                 const float *alpha, const float *a, int lda, const float *b, int ldb,
                 const float *beta, float *c, int ldc);
    int (*set_workspace)(void *handle, void *workspace, size_t size);
    void *handle;
};

#define WORKSPACE ((size_t)32 << 20) // what cuBLAS takes by itself on the newest devices

struct scene {
    weir_runtime *runtime;
    weir_device *device;
    weir_program *program;
    weir_kernel *scale;
    weir_queue *queue;
    weir_buffer *x, *y, *a, *c, *d; // d = 4 * (x / 2) * y
    weir_buffer *workspace;         // NULL: cuBLAS has its own
    struct weir_native_buffer native_y, native_a, native_c, native_workspace;
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
           find(library, "cublasSetWorkspace_v2", &cublas->set_workspace) &&
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
    EXPECT_OK(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = count * sizeof(float)),
                                 &buffer));
    return buffer;
}

static void close_scene(struct scene *scene)
{
    weir_buffer *buffers[] = {scene->x, scene->y, scene->a, scene->c, scene->d, scene->workspace};
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
    EXPECT_OK(weir_program_create(scene->device,
                                  WEIR_PARAMS(weir_program, .bundle = &conformance_kernels),
                                  &scene->program));
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
            WEIR_IGNORE(weir_device_close(&(scene)->device));                                      \
            WEIR_IGNORE(weir_close(&(scene)->runtime));                                            \
            WEIR_SKIP("cuBLAS cannot be opened; WEIR_TEST_CUBLAS may name its file");              \
        }                                                                                          \
        ASSERT_TRUE(open_scene(scene));                                                            \
    } while (0)

// A new stream makes cuBLAS forget the workspace.
static int use_stream(struct scene *scene, void *stream)
{
    struct cublas *cublas = &scene->cublas;
    const int code = cublas->set_stream(cublas->handle, stream);
    if (code != 0 || !scene->workspace)
        return code;
    return cublas->set_workspace(cublas->handle, (void *)(uintptr_t)scene->native_workspace.address,
                                 WORKSPACE);
}

// A row-major product is a column-major one with its sides swapped.
static weir_status multiply(const struct weir_native_queue *native, void *user)
{
    struct scene *scene = user;
    struct cublas *cublas = &scene->cublas;
    const float one = 1;
    const float zero = 0;
    int code = use_stream(scene, native->queue);
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

static void upload_sides(struct scene *scene, unsigned seed)
{
    fill(x, ROWS * INNER, seed);
    fill(y, INNER * COLUMNS, seed + 1);
    EXPECT_OK(weir_upload(scene->queue, scene->x, 0, x, sizeof x));
    EXPECT_OK(weir_upload(scene->queue, scene->y, 0, y, sizeof y));
}

WEIR_TEST(Cublas, ProductBetweenTwoKernels)
{
    struct scene scene = {NULL};
    OPEN_OR_SKIP(&scene);
    upload_sides(&scene, 1);
    ASSERT_OK(submit(&scene));
    ASSERT_OK(weir_download(scene.queue, d, scene.d, 0, sizeof d));
    const double error = worst(x, y, d);
    printf("[ CUBLAS   ] %d x %d x %d in float32: largest error %.3f of the bound\n", ROWS, COLUMNS,
           INNER, error);
    EXPECT_DOUBLE_LE(error, 1.0);
    close_scene(&scene);
}

// After a host call the product is submitted on a library thread, which has no current
// context; and over many rounds the three are in order each time.
WEIR_TEST(Cublas, AfterAHostCallAndManyTimes)
{
    struct scene scene = {NULL};
    OPEN_OR_SKIP(&scene);
    upload_sides(&scene, 3);
    ASSERT_OK(submit(&scene));
    ASSERT_OK(weir_download(scene.queue, d, scene.d, 0, sizeof d));
    for (int round = 0; round < 100; round++) {
        if (round % 10 == 0)
            ASSERT_OK(weir_queue_host_call(scene.queue, own_host_nothing, NULL));
        ASSERT_OK(submit(&scene));
    }
    ASSERT_OK(weir_download(scene.queue, again, scene.d, 0, sizeof again));
    EXPECT_MEM_EQ(again, d, sizeof d);
    close_scene(&scene);
}

static weir_status capture(struct scene *scene, int count, weir_graph **out_graph)
{
    weir_status status = weir_capture_begin(scene->queue);
    for (int i = 0; i < count && status == WEIR_OK; i++)
        status = submit(scene);
    if (status == WEIR_OK)
        return weir_capture_end(scene->queue, NULL, out_graph);
    WEIR_IGNORE(weir_capture_cancel(scene->queue));
    return status;
}

// The graph's result, the clone's, and that of a graph whose kernel before the product was updated,
// against the same work without a graph.
static void check_graph(struct scene *scene, weir_graph *graph)
{
    own_graph clone = NULL;
    const float half = 0.5f;
    const uint32_t count = ROWS * INNER;
    const struct weir_argument arguments[] = {weir_in(scene->x, 0, weir_buffer_size(scene->x)),
                                              weir_out(scene->a, 0, weir_buffer_size(scene->a)),
                                              weir_value(&half, 4), weir_value(&count, 4)};
    upload_sides(scene, 5);
    EXPECT_OK(submit(scene));
    EXPECT_OK(weir_download(scene->queue, d, scene->d, 0, sizeof d));
    EXPECT_DOUBLE_LE(worst(x, y, d), 1.0);
    for (int round = 0; round < 20; round++)
        EXPECT_OK(weir_queue_graph(scene->queue, graph));
    EXPECT_OK(weir_download(scene->queue, again, scene->d, 0, sizeof again));
    EXPECT_MEM_EQ(again, d, sizeof d);

    upload_sides(scene, 7); // another product, by the same graph
    EXPECT_OK(weir_graph_set_launch(graph, 0, weir_dim((count + 255) / 256, 1, 1),
                                    weir_dim(256, 1, 1), arguments, 4));
    EXPECT_OK(weir_queue_graph(scene->queue, graph));
    EXPECT_OK(weir_download(scene->queue, d, scene->d, 0, sizeof d));
    EXPECT_DOUBLE_LE(worst(x, y, d), 1.0);
    EXPECT_OK(weir_graph_clone(graph, NULL, &clone));
    EXPECT_OK(weir_queue_graph(scene->queue, clone));
    EXPECT_OK(weir_download(scene->queue, again, scene->d, 0, sizeof again));
    EXPECT_MEM_EQ(again, d, sizeof d);
}

WEIR_TEST(Cublas, InACapturedGraph)
{
    struct scene scene = {NULL};
    weir_graph *graph = NULL;
    OPEN_OR_SKIP(&scene);
    scene.workspace = buffer_of(scene.device, WORKSPACE / sizeof(float));
    ASSERT_OK(weir_buffer_get_native(scene.workspace, &scene.native_workspace));
    ASSERT_OK(capture(&scene, 1, &graph));
    EXPECT_UINT_EQ(weir_graph_node_count(graph), 3);
    check_graph(&scene, graph);
    printf("[ CUBLAS   ] captured, with a workspace: the bits of the product without a graph\n");
    weir_graph_destroy(&graph);
    close_scene(&scene);
}

// What cuBLAS does then is its own matter; it must work, or be refused with the remedy.
WEIR_TEST(Cublas, InACapturedGraphWithoutAWorkspace)
{
    struct scene scene = {NULL};
    weir_graph *graph = NULL;
    OPEN_OR_SKIP(&scene);
    const weir_status status = capture(&scene, 1, &graph);
    if (status == WEIR_OK)
        check_graph(&scene, graph);
    else
        EXPECT_CONTAINS(weir_last_error()->message, "cublasSetWorkspace");
    printf("[ CUBLAS   ] captured, without a workspace: %s\n",
           status == WEIR_OK ? "works" : weir_last_error()->message);
    weir_graph_destroy(&graph);
    close_scene(&scene);
}
