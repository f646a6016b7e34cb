// Requirements on the CUDA backend beyond the conformance suite: contexts, calls that must not
// wait, records. All with the fake libcuda, which refuses calls that the real one would
// only execute slowly. Copies, memory and images have files of their own.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cuda/rig.h"

static const unsigned char pattern[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

static struct weir_plane plane_of(weir_buffer *buffer, size_t offset, size_t pitch)
{
    return (struct weir_plane){buffer, offset, pitch};
}

// Contexts.

// The whole life of a device on a thread that has its own current context, or none.
static void live_beside(int foreign)
{
    struct rig rig;
    const struct weir_test_cuda *fake = rig_fake();
    ASSERT_NOT_NULL(fake);
    fake->set_foreign_context(foreign);
    ASSERT_TRUE(rig_start(&rig));
    EXPECT_INT_EQ(fake->has_foreign_context(), foreign);
    weir_buffer *buffer = rig_buffer(&rig, 64, WEIR_PLACE_DEVICE);
    weir_program *program = rig_program(&rig);
    weir_kernel *kernel = rig_kernel(program, "iota");
    EXPECT_INT_EQ(fake->has_foreign_context(), foreign);
    EXPECT_OK(weir_queue_launch(rig.queue, kernel, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                                weir_out(buffer, 0, 64), 3u, 16u));
    EXPECT_INT_EQ(fake->has_foreign_context(), foreign);
    const struct weir_event event = test_record(rig.queue);
    EXPECT_OK(weir_event_sync(event, GUARD_NS));
    EXPECT_OK(weir_event_sync(event, WEIR_FOREVER));
    EXPECT_OK(weir_device_trim(rig.device));
    EXPECT_INT_EQ(fake->has_foreign_context(), foreign);
    fake->fail("cuMemsetD8Async", 1, 999);
    EXPECT_INT_EQ(weir_queue_fill(rig.queue, buffer, 0, 64, pattern, 1), WEIR_ERROR_DEVICE);
    EXPECT_INT_EQ(fake->has_foreign_context(), foreign);
    weir_kernel_destroy(&kernel);
    weir_program_destroy(&program);
    weir_buffer_destroy(&buffer);
    rig_finish(&rig);
    EXPECT_INT_EQ(fake->has_foreign_context(), foreign);
    fake->set_foreign_context(0);
}

WEIR_TEST(CudaContext, IsLeftAsFound)
{
    live_beside(1);
    live_beside(0);
}

// Nothing blocks while the device is busy.

static void submit_everything(struct rig *rig, weir_buffer *device, weir_buffer *host,
                              weir_buffer *other)
{
    EXPECT_OK(weir_queue_copy(rig->queue, device, 0, host, 0, 64));
    EXPECT_OK(weir_queue_copy(rig->queue, host, 0, device, 0, 64));
    EXPECT_OK(weir_queue_copy(rig->queue, other, 0, host, 0, 64));
    EXPECT_OK(weir_queue_copy_2d(rig->queue, plane_of(other, 0, 8), plane_of(host, 0, 16), 4, 4));
    EXPECT_OK(weir_queue_copy_3d(rig->queue, (struct weir_volume){device, 0, 8, 32},
                                 (struct weir_volume){host, 0, 4, 16}, 4, 2, 2));
    for (size_t unit = 1; unit <= 16; unit *= 2) {
        EXPECT_OK(weir_queue_fill(rig->queue, host, 0, 64, pattern, unit));
        EXPECT_OK(weir_queue_fill(rig->queue, device, 0, 64, pattern, unit));
        EXPECT_OK(weir_queue_fill_2d(rig->queue, plane_of(host, 0, 32), 16, 2, pattern, unit));
        EXPECT_OK(weir_queue_fill_2d(rig->queue, plane_of(device, 0, 32), 16, 2, pattern, unit));
    }
}

RIG_TEST(CudaWaits, NoSubmitCreateOrDestroyWaits)
{
    static _Alignas(4096) unsigned char memory[2 * 4096];
    const struct weir_test_cuda *fake = rig_fake();
    weir_program *program = rig_program(rig);
    weir_program *unused = rig_program(rig);
    own_buffer device = rig_buffer(rig, 4096, WEIR_PLACE_DEVICE);
    weir_buffer *host = rig_buffer(rig, 4096, WEIR_PLACE_HOST);
    own_buffer other = rig_buffer(rig, 4096, WEIR_PLACE_HOST);
    weir_buffer *wrapped = rig_wrap(rig, memory, 4096);
    // A call that waited would hang, because the streams stay stopped. Freed before, so
    // that the destroys below reach the driver at once.
    EXPECT_OK(weir_queue_sync(rig->queue, GUARD_NS));
    weir_queue *idle = rig_queue(rig, false);
    weir_buffer_destroy(&host);
    weir_buffer_destroy(&wrapped);
    weir_program_destroy(&unused);
    host = rig_buffer(rig, 4096, WEIR_PLACE_HOST);

    fake->hold(1);
    submit_everything(rig, device, host, other);
    const struct weir_event event = test_record(rig->queue);
    EXPECT_INT_EQ(weir_event_query(event), WEIR_NOT_READY);
    EXPECT_INT_EQ(weir_event_sync(event, WEIR_MS(3)), WEIR_TIMEOUT);
    weir_queue *late = rig_queue(rig, true);
    weir_kernel *kernel = rig_kernel(program, "iota");
    wrapped = rig_wrap(rig, memory + 4096, 4096);
    weir_kernel_destroy(&kernel);
    weir_buffer_destroy(&host);
    weir_buffer_destroy(&wrapped);
    weir_program_destroy(&program);
    weir_queue_destroy(&late);
    weir_queue_destroy(&idle);
    fake->hold(0);

    EXPECT_OK(weir_event_sync(event, GUARD_NS));
}

// Weir does not know that the work of the queue is done, but its owner may destroy the
// stream: the fake ends the process if the stream is used afterwards.
RIG_TEST(CudaWaits, AnIdleMomentAsksNoStreamThatWasLeft)
{
    static _Alignas(4096) unsigned char memory[4096];
    const struct weir_test_cuda *fake = rig_fake();
    own_buffer device = rig_buffer(rig, 4096, WEIR_PLACE_DEVICE);
    weir_buffer *wrapped = rig_wrap(rig, memory, 4096);
    weir_buffer_destroy(&wrapped);
    void *stream = fake->create_stream();
    weir_queue *around = rig_queue_around(rig, stream);
    fake->hold(1);
    EXPECT_OK(weir_queue_fill(around, device, 0, 64, pattern, 1));
    weir_queue_destroy(&around);
    const long before = fake->calls("cuMemHostUnregister");
    fake->hold(0);
    fake->destroy_stream(stream);
    EXPECT_OK(weir_queue_fill(rig->queue, device, 64, 64, pattern, 1));
    EXPECT_OK(weir_queue_sync(rig->queue, WEIR_FOREVER));
    EXPECT_INT_EQ(fake->calls("cuMemHostUnregister"), before + 1);
}

// The record at the end of a queue's work may be refused when the stream is left; then the
// stream is synchronised while it still exists.
RIG_TEST(CudaWaits, AQueueWithoutALastRecordIsFinishedWhenItIsLeft)
{
    const struct weir_test_cuda *fake = rig_fake();
    own_buffer device = rig_buffer(rig, 4096, WEIR_PLACE_DEVICE);
    void *stream = fake->create_stream();
    weir_queue *around = rig_queue_around(rig, stream);
    EXPECT_OK(weir_queue_fill(around, device, 0, 64, pattern, 1));
    fake->fail("cuEventRecord", 1, 999);
    const long waits = fake->calls("cuStreamSynchronize");
    weir_queue_destroy(&around);
    EXPECT_INT_EQ(fake->struck(), 1);
    EXPECT_INT_EQ(fake->calls("cuStreamSynchronize"), waits + 1);
    fake->fail(NULL, 0, 0);
    fake->destroy_stream(stream);
}

// Records.

// Waits for each 32nd.
static void record_many(struct rig *rig, int count, uint64_t timeout_ns)
{
    struct weir_event event;
    for (int i = 0; i < count; i++) {
        ASSERT_OK(weir_queue_record(rig->queue, &event));
        if (i % 32 == 31)
            ASSERT_OK(weir_event_sync(event, timeout_ns));
    }
}

// Another library captures a stream meanwhile. Records ask about old events, and a host call waits on the
// queue's own thread.
RIG_TEST(CudaRecords, NoQuestionSpoilsACaptureOfOthers)
{
    const struct weir_test_cuda *fake = rig_fake();
    (void)fake->others_capture(1);
    const long asked = fake->calls("cuEventQuery");
    record_many(rig, 200, GUARD_NS);
    EXPECT_INT_GT(fake->calls("cuEventQuery") - asked, 0);
    EXPECT_OK(weir_queue_host_call(rig->queue, own_host_nothing, NULL));
    EXPECT_OK(weir_queue_sync(rig->queue, GUARD_NS));
    EXPECT_OK(weir_queue_sync(rig->queue, WEIR_FOREVER));
    EXPECT_INT_EQ(fake->others_capture(0), 0);
}

// Nor does a new buffer, or memory that goes back to the driver.
RIG_TEST(CudaRecords, NoMemorySpoilsACaptureOfOthers)
{
    const struct weir_test_cuda *fake = rig_fake();
    (void)fake->others_capture(1);
    for (int i = 0; i < 2; i++) {
        weir_buffer *host = rig_buffer(rig, 4096, WEIR_PLACE_HOST);
        weir_buffer *managed = rig_buffer(rig, 4096, WEIR_PLACE_MANAGED);
        weir_buffer *memory = rig_buffer(rig, 4096, WEIR_PLACE_DEVICE);
        weir_buffer_destroy(&host);
        weir_buffer_destroy(&managed);
        weir_buffer_destroy(&memory);
        EXPECT_OK(weir_device_trim(rig->device));
    }
    EXPECT_INT_EQ(fake->others_capture(0), 0);
}

// Long enough for several anchors; in order on one queue, and one timeline for two.
RIG_TEST(CudaRecords, TimesOverSeveralAnchors)
{
    struct weir_event event;
    uint64_t times[60];
    weir_queue *queues[2] = {rig_queue(rig, true), rig_queue(rig, true)};
    for (size_t i = 0; i < 60; i++) {
        weir_queue *queue = queues[i % 2];
        ASSERT_OK(weir_queue_record(queue, &event));
        ASSERT_OK(weir_event_sync(event, WEIR_FOREVER));
        ASSERT_OK(weir_event_time_ns(event, &times[i]));
        usleep(30000);
    }
    for (size_t i = 1; i < 60; i++) {
        weir_test_note("record %zu", i);
        EXPECT_UINT_GE(times[i] - times[i - 1], 29999000);
        EXPECT_UINT_LE(times[i] - times[i - 1], UINT64_C(20000000000));
    }
    weir_test_note(NULL);
    weir_queue_destroy(&queues[0]);
    weir_queue_destroy(&queues[1]);
}

// The steady state: once warm, frames make a fixed number of the driver's calls, and none that allocates, creates,
// frees, loads, or waits for a stream or the whole device.

enum {
    WARM = 3000, // queues have all of the events that they keep
    FRAMES = 1000,
    SLOTS = 3,
    NAMES_MOST = 256
};

// The calls of ordinary work, and of the trail that names the suspects of a fault. Waiting for one event, querying the
// thread's context, and its mode beside captures wait for no other work.
static const char *const ordinary[] = {
    "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync",    "cuLaunchKernel",
    "cuEventRecord",     "cuStreamWaitEvent",    "cuEventSynchronize",
    "cuEventQuery",      "cuStreamQuery",        "cuCtxGetCurrent",
    "cuCtxSetCurrent",   "cuStreamWriteValue32", "cuThreadExchangeStreamCaptureMode",
};

static bool is_ordinary(const char *name)
{
    for (size_t i = 0; i < sizeof ordinary / sizeof *ordinary; i++)
        if (strcmp(ordinary[i], name) == 0)
            return true;
    return false;
}

struct work {
    weir_queue *queues[3];
    weir_kernel *kernel;
    weir_buffer *host[SLOTS], *device[SLOTS];
    struct weir_event done[SLOTS];
};

static void follow(struct work *work, int queue, struct weir_event *out)
{
    ASSERT_OK(weir_queue_record(work->queues[queue], out));
    if (queue < 2)
        ASSERT_OK(weir_queue_wait(work->queues[queue + 1], *out));
}

// Up, a kernel and down, each on its queue, in three slots.
static void run_frames(struct work *work, int count)
{
    for (int i = 0; i < count; i++) {
        const int slot = i % SLOTS;
        weir_buffer *host = work->host[slot], *device = work->device[slot];
        struct weir_event *done = &work->done[slot];
        if (done->queue != 0)
            ASSERT_OK(weir_event_sync(*done, GUARD_NS));
        ASSERT_OK(weir_queue_copy(work->queues[0], device, 0, host, 0, 4096));
        follow(work, 0, done);
        ASSERT_OK(weir_queue_launch(work->queues[1], work->kernel, weir_dim(16, 1, 1),
                                    weir_dim(64, 1, 1), weir_inout(device, 0, 4096), 1u, 1024u));
        follow(work, 1, done);
        ASSERT_OK(weir_queue_copy(work->queues[2], host, 0, device, 0, 4096));
        follow(work, 2, done);
    }
}

static void expect_ordinary(struct work *work)
{
    const struct weir_test_cuda *fake = rig_fake();
    long before[NAMES_MOST] = {0};
    for (size_t i = 0; i < NAMES_MOST && fake->name(i); i++)
        before[i] = fake->calls(fake->name(i));
    run_frames(work, FRAMES);
    for (size_t i = 0; i < NAMES_MOST && fake->name(i); i++) {
        const char *name = fake->name(i);
        const long made = fake->calls(name) - before[i];
        weir_test_note("%s", name);
        if (strstr(name, "cuMemcpy") || strcmp(name, "cuLaunchKernel") == 0)
            EXPECT_INT_EQ(made, is_ordinary(name) ? FRAMES : 0);
        else if (strcmp(name, "cuEventRecord") == 0)
            EXPECT_INT_EQ(made, 3 * FRAMES);
        else if (strcmp(name, "cuStreamWaitEvent") ==
                 0) // a point that is known to be complete needs none
            EXPECT_INT_LE(made, 2 * FRAMES);
        else if (!is_ordinary(name))
            EXPECT_INT_EQ(made, 0);
    }
    weir_test_note(NULL);
}

RIG_TEST(CudaSteady, FramesMakeNothingButTheirWork)
{
    own_kernel kernel = rig_load(rig, "increment");
    struct work work = {.kernel = kernel};
    for (int i = 0; i < SLOTS; i++) {
        work.queues[i] = rig_queue(rig, false);
        work.host[i] = rig_buffer(rig, 4096, WEIR_PLACE_HOST);
        work.device[i] = rig_buffer(rig, 4096, WEIR_PLACE_DEVICE);
    }
    run_frames(&work, WARM);
    expect_ordinary(&work);
    for (int i = 0; i < SLOTS; i++) {
        weir_buffer_destroy(&work.host[i]);
        weir_buffer_destroy(&work.device[i]);
        weir_queue_destroy(&work.queues[i]);
    }
}

// Which image of a program the CUDA backend takes, and what does not fit the device.

static weir_status try_images(struct rig *rig, const struct weir_image *images, uint32_t count)
{
    const struct weir_bundle bundle = rig_bundle(images, count);
    own_program program = NULL;
    return weir_program_load(rig->device, &bundle, &program);
}

RIG_TEST(CudaImages, AreChosenByArchitecture)
{
    const struct weir_image good = *weir_test_image();
    // Only one of each is a valid image, so a wrong choice is refused.
    const struct weir_image cubins[] = {
        {sizeof(struct weir_image), WEIR_IMAGE_OPENCL_C, "", "nothing", 7},
        {sizeof(struct weir_image), WEIR_IMAGE_CUBIN, "sm_80", "nothing", 7},
        {sizeof(struct weir_image), WEIR_IMAGE_PTX, "sm_90", "nothing", 7},
        {sizeof(struct weir_image), WEIR_IMAGE_CUBIN, "sm_90", good.data, good.size},
        {sizeof(struct weir_image), WEIR_IMAGE_CUBIN, "sm_100", "nothing", 7},
    };
    EXPECT_OK(try_images(rig, cubins, 5));
    const struct weir_image texts[] = {
        {sizeof(struct weir_image), WEIR_IMAGE_CUBIN, "sm_80", "nothing", 7},
        {sizeof(struct weir_image), WEIR_IMAGE_PTX, "sm_75", "nothing", 7},
        {sizeof(struct weir_image), WEIR_IMAGE_PTX, "sm_86", good.data, good.size},
        {sizeof(struct weir_image), WEIR_IMAGE_PTX, "sm_120", "nothing", 7},
    };
    EXPECT_OK(try_images(rig, texts, 4));
}

static char logged[1024];

static void keep_message(void *user, weir_log_level level, const char *source, const char *message)
{
    if (level == WEIR_LOG_INFO)
        snprintf(logged, sizeof logged, "%s", message);
}

// Where CUDA C++ stands beside the OpenCL C, which of the two runs is told, and that neither does.
RIG_TEST(CudaImages, OfATwin)
{
    const struct weir_image images[] = {
        {sizeof *images, WEIR_IMAGE_OPENCL_C, "", "nothing", 7},
        {sizeof *images, WEIR_IMAGE_TWIN, "", "a/k.cu", 6},
        {sizeof *images, WEIR_IMAGE_CUBIN, "sm_90", weir_test_image()->data,
         weir_test_image()->size},
    };
    const struct weir_image others[] = {
        images[1],
        {sizeof *images, WEIR_IMAGE_CUBIN, "sm_80", "nothing", 7},
    };
    weir_log_set(keep_message, NULL, WEIR_LOG_INFO);
    EXPECT_OK(try_images(rig, images, 3));
    weir_log_set(NULL, NULL, WEIR_LOG_ERROR);
    EXPECT_STR_EQ(logged,
                  "bundle 'rig': the cubin sm_90, made from a/k.cu and not from its OpenCL C");
    EXPECT_FAILURE(try_images(rig, images, 2), WEIR_ERROR_UNSUPPORTED,
                   "bundle 'rig' has no CUDA images: a/k.cu was not compiled",
                   "build it on a machine with nvcc, or without its CUDA "
                   "C++");
    EXPECT_FAILURE(try_images(rig, others, 2), WEIR_ERROR_UNSUPPORTED,
                   "it has cubin sm_80, made from a/k.cu");
}

#define IMAGE(kind, target, text)                                       \
    {                                                                   \
        sizeof(struct weir_image), kind, target, text, sizeof(text) - 1 \
    }

// A target with a letter, such as sm_90a, is for devices of just that number, and as good as one
// without there.
RIG_TEST(CudaImages, ThatDoNotFitAreNamed)
{
    static const char other[] = "no image for 'Fake GPU 0', which is sm_90; it has ";
    static const struct {
        struct weir_image images[2];
        weir_status status;
        const char *parts[2];
    } cases[] = {
        {{IMAGE(WEIR_IMAGE_CUBIN, "sm_80", "x"), IMAGE(WEIR_IMAGE_PTX, "sm_100", "x")},
         WEIR_ERROR_UNSUPPORTED,
         {other, "cubin sm_80, PTX sm_100"}},
        {{IMAGE(WEIR_IMAGE_PTX, "sm_89a", "x")}, WEIR_ERROR_UNSUPPORTED, {other, "PTX sm_89a"}},
        {{IMAGE(WEIR_IMAGE_PTX, "sm_100a", "x")}, WEIR_ERROR_UNSUPPORTED, {other, "PTX sm_100a"}},
        {{IMAGE(WEIR_IMAGE_CUBIN, "sm_100a", "x")},
         WEIR_ERROR_UNSUPPORTED,
         {other, "cubin sm_100a"}},
        {{IMAGE(WEIR_IMAGE_CUBIN, "gfx90a", "x")}, WEIR_ERROR_UNSUPPORTED, {other, "cubin gfx90a"}},
        {{IMAGE(WEIR_IMAGE_OPENCL_C, "", "x")},
         WEIR_ERROR_UNSUPPORTED,
         {"bundle 'rig' has no CUDA images", ""}},
        {{IMAGE(WEIR_IMAGE_CUBIN, "sm_90", "nothing")},
         WEIR_ERROR_UNSUPPORTED,
         {"does not take the cubin sm_90 of 'rig'", ""}},
        {{IMAGE(WEIR_IMAGE_CUBIN, "sm_90", "fake: vector_add scale")},
         WEIR_ERROR_NOT_FOUND,
         {"kernel 'saxpy' is missing from the cubin sm_90 of bundle 'rig'", ""}},
        {{IMAGE(WEIR_IMAGE_PTX, "sm_90", "// x\n.version 10.1\n")},
         WEIR_ERROR_UNSUPPORTED,
         {"CUDA 14 built it, and the driver supports CUDA 13.0", ""}},
    };
    struct weir_image own = *weir_test_image();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weir_test_note("case %zu", i);
        EXPECT_FAILURE(try_images(rig, cases[i].images, 1 + (cases[i].images[1].size > 0)),
                       cases[i].status, cases[i].parts[0], cases[i].parts[1]);
    }
    weir_test_note(NULL);
    own.target = "sm_90a";
    EXPECT_OK(try_images(rig, &own, 1));
    own.format = WEIR_IMAGE_PTX;
    EXPECT_OK(try_images(rig, &own, 1));
}

// Each array begins at a multiple of 16 bytes, which makes this too large.
RIG_TEST(CudaImages, LocalMemoryInAllIsChecked)
{
    own_kernel kernel = rig_load(rig, "two_locals");
    own_buffer buffer = rig_buffer(rig, 4096, WEIR_PLACE_DEVICE);
    EXPECT_FAILURE(weir_queue_launch(rig->queue, kernel, weir_dim(1, 1, 1), weir_dim(32, 1, 1),
                                     weir_in(buffer, 0, 128), weir_out(buffer, 2048, 128),
                                     weir_local(200001), weir_local(32447)),
                   WEIR_ERROR_INVALID,
                   "asks for 32447 bytes of local memory; of the device's "
                   "232448 this launch has 32432 left");
}

// The parameters are compared when the kernel is created.
static weir_status create_iota(struct rig *rig, const struct weir_bundle *bundle)
{
    own_program program = NULL;
    weir_kernel *kernel;
    EXPECT_OK(weir_program_load(rig->device, bundle, &program));
    const weir_status status = weir_kernel_create(program, "iota", &kernel);
    EXPECT_NULL(kernel);
    return status;
}

// As after a kernel was changed in one of two languages.
RIG_TEST(CudaImages, WithOtherParameters)
{
    const struct weir_parameter parameters[] = {
        {.struct_size = sizeof *parameters,
         .name = "out",
         .type_name = "uint *",
         .kind = WEIR_PARAMETER_BUFFER,
         .writable = 1},
        {.struct_size = sizeof *parameters,
         .name = "first",
         .type_name = "ulong",
         .kind = WEIR_PARAMETER_VALUE,
         .scalar = WEIR_SCALAR_U64,
         .size = 8},
        {.struct_size = sizeof *parameters,
         .name = "n",
         .type_name = "uint",
         .kind = WEIR_PARAMETER_VALUE,
         .scalar = WEIR_SCALAR_U32,
         .size = 4},
    };
    struct weir_kernel_signature iota = {.struct_size = sizeof iota,
                                         .name = "iota",
                                         .parameters = parameters,
                                         .parameter_count = 3};
    struct weir_bundle bundle = rig_bundle(weir_test_image(), 1);
    bundle.kernels = &iota;
    bundle.kernel_count = 1;
    EXPECT_FAILURE(create_iota(rig, &bundle), WEIR_ERROR_BUILD,
                   "parameter 'first' of type 'ulong' has 4 bytes in the image, not 8");
    iota.parameter_count = 1;
    EXPECT_FAILURE(create_iota(rig, &bundle), WEIR_ERROR_BUILD,
                   "has more parameters in the image than the 1");
}
