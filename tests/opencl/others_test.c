// What OpenCL drivers other than PoCL 3.1 do, which the failing library plays: docs/opencl-drivers.md has
// the drivers.

#include <dirent.h>
#include <pthread.h>
#include <signal.h>

#include "kernels/drivers/drivers.h"
#include "tests/opencl/rig.h"
#include "tests/opencl/version.h"

static weir_buffer *wrap(weir_device *device, void *memory, size_t size)
{
    weir_buffer *buffer = NULL;
    EXPECT_OK(
        weir_buffer_wrap(device, WEIR_PARAMS(weir_wrap, .pointer = memory, .size = size), &buffer));
    return buffer;
}

// Wrapped memory is shared memory too there, but no memory of the driver's.
OPENCL_RIG_AS_TEST(OpenclOthers, FillOfWrappedMemory, WEIR_TEST_OPENCL_SYSTEM_SVM)
{
    static _Alignas(4096) unsigned char memory[4096];
    own_buffer wrapped = wrap(rig->device, memory, sizeof memory);
    const long fills = rig->shim->calls("clEnqueueSVMMemFill");
    EXPECT_OK(weir_queue_fill(rig->queues[0], wrapped, 0, sizeof memory, "abcd", 4));
    EXPECT_OK(weir_queue_sync(rig->queues[0], WEIR_FOREVER));
    EXPECT_INT_EQ(rig->shim->calls("clEnqueueSVMMemFill"), fills);
    for (size_t i = 0; i < sizeof memory; i++)
        EXPECT_INT_EQ(memory[i], "abcd"[i % 4]);
}

OPENCL_RIG_AS_TEST(OpenclOthers, DeviceWithoutTimes, WEIR_TEST_OPENCL_NO_TIMES)
{
    weir_queue *queue = NULL;
    EXPECT_UINT_EQ(weir_device_limits(rig->device)->timing_history, 0);
    EXPECT_INT_EQ(weir_queue_create(rig->device, WEIR_PARAMS(weir_queue, .timing = true), &queue),
                  WEIR_ERROR_UNSUPPORTED);
    opencl_rig_expect_works(rig, rig->queues[0], 3);
}

// The end of a marker is told a moment after the marker is complete.
OPENCL_RIG_TEST(OpenclOthers, TimeThatIsToldLate)
{
    own_queue queue = NULL;
    uint64_t times[2] = {0, 0};
    ASSERT_OK(weir_queue_create(rig->device, WEIR_PARAMS(weir_queue, .timing = true), &queue));
    for (int i = 0; i < 2; i++) {
        opencl_rig_launch(rig, queue, rig->buffer, 3);
        const struct weir_event event = test_record(queue);
        EXPECT_OK(weir_event_sync(event, WEIR_FOREVER));
        rig->shim->fail("clGetEventProfilingInfo", 1, -7); // CL_PROFILING_INFO_NOT_AVAILABLE
        EXPECT_OK(weir_event_time_ns(event, &times[i]));
        EXPECT_INT_EQ(rig->shim->struck(), 1);
    }
    EXPECT_TRUE(times[0] > 0 && times[1] > times[0]);
}

static void expect_refused(unsigned bits, const char *what)
{
    own_opencl_rig rig = {0};
    opencl_rig_begin(&rig, "");
    rig.shim->play(bits);
    EXPECT_FAILURE(weir_device_open(rig.runtime, NULL, &rig.device), WEIR_ERROR_UNSUPPORTED,
                   "its driver tells", what);
}

// The table of its functions ends there, before an unreadable page.
WEIR_TEST(OpenclOthers, DriverOfOpencl12WithoutTheLoader)
{
    weir_runtime *runtime = NULL;
    setenv("WEIR_TEST_OPENCL_LACKING", "1", 1);
    EXPECT_FAILURE(weir_open(WEIR_PARAMS(weir_open, .config_path = "test.ini",
                                         .config_text = "[weir]\nbackend = opencl\n[opencl]\n"
                                                        "library = " OPENCL_RIG_DRIVER "\n",
                                         .module_path = weir_test_runfile("lib/weir")),
                             &runtime),
                   WEIR_ERROR_MODULE, "lacks clCreateCommandQueue");
    unsetenv("WEIR_TEST_OPENCL_LACKING");
}

WEIR_TEST(OpenclOthers, LimitsOfNothingAreTheDrivers)
{
    expect_refused(WEIR_TEST_OPENCL_NO_BUFFERS, "a largest buffer of 0 bytes");
    expect_refused(WEIR_TEST_OPENCL_NO_BLOCKS, "blocks of 0 work-items");
}

static uint32_t block_limit(const struct opencl_rig *rig, const char *name)
{
    own_kernel kernel = NULL;
    EXPECT_OK(weir_kernel_create(rig->program, name, &kernel));
    const uint32_t limit = kernel ? weir_kernel_get_info(kernel)->max_block_items : 0;
    return limit;
}

// The block of "required_block" has 64.
OPENCL_RIG_AS_TEST(OpenclOthers, RequiredBlockAboveTheToldLimit, WEIR_TEST_OPENCL_SMALL_TOLD)
{
    EXPECT_UINT_EQ(block_limit(rig, "iota"), 32);
    EXPECT_UINT_EQ(block_limit(rig, "required_block"), 64);
}

OPENCL_RIG_TEST(OpenclOthers, NoticeOfNoContext)
{
    rig->shim->notice("a message of the driver");
    opencl_rig_expect_works(rig, rig->queues[0], 5);
}

static long count_calls(const struct weir_test_opencl *shim)
{
    long calls = 0;
    for (size_t i = 0; shim->name(i); i++)
        calls += shim->calls(shim->name(i));
    return calls;
}

static long calls_of_thread;

static void *use_thread_queue(void *user)
{
    const struct opencl_rig *rig = user;
    weir_queue *queue = NULL;
    EXPECT_OK(weir_thread_queue(rig->device, &queue));
    opencl_rig_expect_works(rig, queue, 11);
    calls_of_thread = count_calls(rig->shim);
    return NULL;
}

// Oclgrind's variables of a thread are gone when the thread's queue ends.
OPENCL_RIG_TEST(OpenclOthers, NoCallAtTheEndOfAThread)
{
    pthread_t thread;
    const long releases = rig->shim->calls("clReleaseCommandQueue");
    EXPECT_INT_EQ(pthread_create(&thread, NULL, use_thread_queue, rig), 0);
    EXPECT_INT_EQ(pthread_join(thread, NULL), 0);
    EXPECT_INT_EQ(count_calls(rig->shim), calls_of_thread);
    EXPECT_OK(weir_device_trim(rig->device));
    EXPECT_INT_EQ(rig->shim->calls("clReleaseCommandQueue"), releases + 1);
}

static weir_status launch_part(const struct opencl_rig *rig, weir_buffer *buffer, size_t offset,
                               size_t size)
{
    return weir_queue_launch(rig->queues[0], rig->iota, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                             weir_out(buffer, offset, size), 1u, 1u);
}

// Parts that overlap, and then the whole: elsewhere a part is released for another one.
OPENCL_RIG_AS_TEST(OpenclOthers, PartsOfABufferAreKept, WEIR_TEST_OPENCL_SUB_BUFFERS)
{
    static _Alignas(4096) unsigned char memory[1 << 20];
    const size_t unit = weir_device_limits(rig->device)->argument_alignment_bytes;
    own_buffer wrapped = wrap(rig->device, memory, sizeof memory);
    for (size_t i = 1; i < 200; i++)
        EXPECT_OK(launch_part(rig, wrapped, i * unit, 2 * unit));
    EXPECT_OK(launch_part(rig, wrapped, 0, sizeof memory));
    EXPECT_OK(weir_queue_sync(rig->queues[0], WEIR_FOREVER));
    EXPECT_FALSE(rig->shim->misused());
}

OPENCL_RIG_AS_TEST(OpenclOthers, PartOfAnAdoptedBuffer, WEIR_TEST_OPENCL_INNER_OBJECT)
{
    struct weir_native_buffer native = {.memory = NULL};
    own_buffer adopted = NULL;
    EXPECT_OK(weir_buffer_get_native(rig->buffer, &native));
    const size_t unit = weir_device_limits(rig->device)->argument_alignment_bytes;
    EXPECT_OK(weir_buffer_adopt(rig->device,
                                WEIR_PARAMS(weir_adopt, .native = (uintptr_t)native.memory,
                                            .size = OPENCL_RIG_BYTES),
                                &adopted));
    EXPECT_OK(launch_part(rig, adopted, unit, unit));
    EXPECT_OK(weir_queue_sync(rig->queues[0], WEIR_FOREVER));
}

OPENCL_RIG_AS_TEST(OpenclOthers, TooManyPartsOfABuffer, WEIR_TEST_OPENCL_SUB_BUFFERS)
{
    static _Alignas(4096) unsigned char memory[1 << 20];
    weir_status status = WEIR_OK;
    const size_t unit = weir_device_limits(rig->device)->argument_alignment_bytes;
    own_buffer wrapped = wrap(rig->device, memory, sizeof memory);
    size_t parts = 0;
    while (status == WEIR_OK && parts < 5000) {
        const size_t offset = (1 + parts % 1000) * unit;
        status = launch_part(rig, wrapped, offset, (1 + parts / 1000) * unit);
        parts += status == WEIR_OK;
    }
    EXPECT_UINT_EQ(parts, 4096);
    EXPECT_FAILURE(status, WEIR_ERROR_UNSUPPORTED, "4096 ranges");
    EXPECT_OK(weir_queue_recover(rig->queues[0]));
    EXPECT_FALSE(rig->shim->misused());
}

static void run_copies(const struct opencl_rig *rig, weir_kernel *kernel)
{
    uint32_t words[64];
    for (uint32_t i = 0; i < 64; i++)
        words[i] = 7 * i;
    EXPECT_OK(weir_upload(rig->queues[0], rig->buffer, 0, words, sizeof words));
    EXPECT_OK(weir_queue_launch(rig->queues[0], kernel, weir_dim(4, 1, 1), weir_dim(16, 1, 1),
                                weir_inout(rig->buffer, 0, sizeof words),
                                weir_local(16 * sizeof *words)));
    EXPECT_OK(weir_download(rig->queues[0], words, rig->buffer, 0, sizeof words));
    for (uint32_t i = 0; i < 64; i++)
        EXPECT_UINT_EQ(words[i], 7 * (i / 16 * 16 + 15 - i % 16));
}

// Each work-item reads what another one's copy brought.
OPENCL_RIG_AS_TEST(OpenclOthers, CopiesOfWorkGroups, WEIR_TEST_OPENCL_NO_GROUP_WAITS)
{
    static const char source[] =
        "__kernel void turn(__global uint *words, __local uint *part)\n"
        "{\n"
        "    event_t copied = async_work_group_copy(part, words + get_group_id(0) * 16, 16, 0);\n"
        "    wait_group_events(1, &copied);\n"
        "    words[get_global_id(0)] = part[15 - get_local_id(0)];\n"
        "}\n";
    own_kernel kernel = opencl_rig_kernel(rig, WEIR_PARAMS(weir_program, .source = source), "turn");
    if (kernel)
        run_copies(rig, kernel);
}

// A bundle of OpenCL C 2.0.
OPENCL_RIG_AS_TEST(OpenclOthers, SecondVersionOfTheLanguageIsTheThirdWhereItIsMissing,
                   WEIR_TEST_OPENCL_NO_C_2)
{
    uint32_t version = 0;
    own_kernel kernel =
        opencl_rig_kernel(rig, WEIR_PARAMS(weir_program, .bundle = &version_kernels), "version_of");
    ASSERT_NOT_NULL(kernel);
    EXPECT_OK(weir_queue_launch(rig->queues[0], kernel, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                weir_out(rig->buffer, 0, sizeof version)));
    EXPECT_OK(weir_download(rig->queues[0], &version, rig->buffer, 0, sizeof version));
    EXPECT_UINT_EQ(version, 300);
}

// Barriers in loops, and what docs/porting.md advises for variables that PoCL miscompiles: the last number of each
// block, or their sum.
OPENCL_RIG_TEST(OpenclOthers, KernelsThatADriverMayMiscompile)
{
    enum {
        BLOCK = 64,
        NUMBERS = 2 * BLOCK
    };
    static const char *const names[] = {"written_by_one", "volatile_variable", "barrier_in_loop"};
    uint32_t numbers[NUMBERS], out[2];
    own_program program = NULL;
    ASSERT_OK(weir_program_load(rig->device, &drivers_kernels, &program));
    for (uint32_t i = 0; i < NUMBERS; i++)
        numbers[i] = i + 1;
    EXPECT_OK(weir_upload(rig->queues[0], rig->buffer, 0, numbers, sizeof numbers));
    for (int i = 0; i < 3; i++) {
        const struct weir_argument arguments[] = {weir_in(rig->buffer, 0, sizeof numbers),
                                                  weir_out(rig->other, 0, sizeof out),
                                                  weir_local(BLOCK * sizeof *out)};
        own_kernel kernel = NULL;
        weir_test_note("%s", names[i]);
        ASSERT_OK(weir_kernel_create(program, names[i], &kernel));
        EXPECT_OK(weir_queue_launch_array(rig->queues[0], kernel, weir_dim(2, 1, 1),
                                          weir_dim(BLOCK, 1, 1), arguments, i == 2 ? 3 : 2));
        EXPECT_OK(weir_download(rig->queues[0], out, rig->other, 0, sizeof out));
        EXPECT_UINT_EQ(out[0], i == 2 ? BLOCK * (1 + BLOCK) / 2 : BLOCK);
        EXPECT_UINT_EQ(out[1], i == 2 ? BLOCK * (1 + BLOCK) / 2 + BLOCK * BLOCK : NUMBERS);
    }
    weir_test_note(NULL);
}

// The threads of a driver take no signal of the program's: its handlers run on its own threads.

static bool blocks(const char *task, int number)
{
    char path[300];
    char line[256];
    unsigned long long mask = 0;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", task);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "SigBlk:", 7) == 0)
            mask = strtoull(line + 7, NULL, 16);
    if (file)
        fclose(file);
    return mask >> (number - 1) & 1;
}

// How many threads this process has, and how many of them take the signal.
static size_t count_threads(int number, size_t *out_takers)
{
    size_t count = 0;
    DIR *tasks = opendir("/proc/self/task");
    *out_takers = 0;
    for (const struct dirent *entry; tasks && (entry = readdir(tasks));) {
        if (entry->d_name[0] == '.')
            continue;
        count++;
        *out_takers += !blocks(entry->d_name, number);
    }
    if (tasks)
        closedir(tasks);
    return count;
}

WEIR_TEST(OpenclOthers, SignalsAreForThreadsOfTheProgram)
{
    own_opencl_rig rig = {0};
    size_t takers;
    sigset_t before, after;
    sigprocmask(SIG_BLOCK, NULL, &before);
    opencl_rig_open(&rig, "");
    opencl_rig_expect_works(&rig, rig.queues[0], 3);
    EXPECT_OK(weir_queue_host_call(rig.queues[0], own_host_nothing, NULL));
    EXPECT_OK(weir_queue_sync(rig.queues[0], WEIR_FOREVER));
    EXPECT_UINT_GT(count_threads(SIGTERM, &takers), 1);
    EXPECT_UINT_EQ(takers, 1);
    count_threads(SIGALRM, &takers);
    EXPECT_UINT_EQ(takers, 1);
    sigprocmask(SIG_BLOCK, NULL, &after);
    for (int number = 1; number < 32; number++)
        EXPECT_INT_EQ(sigismember(&after, number), sigismember(&before, number));
}
