// See the header.
#include "tests/cuda/rig.h"

// From the folder that tests are started in: a line of the configuration has a
// limit, and absolute paths of Bazel's are longer.
static const char library[] = "tests/support/libcuda/libcuda.so.1";

const struct weir_test_cuda *rig_fake(void)
{
    return weir_test_symbol(library, WEIR_TEST_CUDA_SYMBOL);
}

weir_status rig_open_runtime(const char *section, weir_runtime **out_runtime)
{
    char text[1024];
    const bool named = strstr(section, "library") != NULL;
    snprintf(text, sizeof text, "[weir]\nbackend = cuda\n[cuda]\n%s%s%s\n%s\n",
             named ? "" : "library = ", named ? "" : library,
             strstr(section, "cache") ? "" : "\ncache = 0", section);
    return weir_open(WEIR_PARAMS(weir_open, .config_path = "test.ini", .config_text = text,
                                 .module_path = weir_test_runfile("backends/cuda")),
                     out_runtime);
}

bool rig_start(struct rig *rig)
{
    return rig_start_with(rig, "");
}

bool rig_start_with(struct rig *rig, const char *section)
{
    *rig = (struct rig){NULL};
    if (!rig_fake())
        return false;
    EXPECT_INT_EQ(rig_fake()->live(), 0);
    if (rig_open_runtime(section, &rig->runtime) != WEIR_OK ||
        weir_device_open(rig->runtime, NULL, &rig->device) != WEIR_OK) {
        weir_test_fail(__FILE__, __LINE__, "%s", weir_last_error_text());
        return false;
    }
    rig->queue = rig_queue(rig, false);
    return rig->queue != NULL;
}

void rig_finish(struct rig *rig)
{
    weir_queue_destroy(&rig->queue);
    EXPECT_OK(weir_device_close(&rig->device));
    EXPECT_OK(weir_close(&rig->runtime));
    EXPECT_INT_EQ(rig_fake()->live(), 0);
}

weir_queue *rig_queue(struct rig *rig, bool timing)
{
    weir_queue *queue;
    EXPECT_OK(weir_queue_create(rig->device,
                                WEIR_PARAMS(weir_queue, .label = "queue", .timing = timing),
                                &queue));
    return queue;
}

weir_queue *rig_queue_around(struct rig *rig, void *stream)
{
    weir_queue *queue;
    EXPECT_OK(weir_queue_wrap(rig->device, WEIR_PARAMS(weir_queue_wrap, .native = stream), &queue));
    return queue;
}

weir_buffer *rig_buffer(struct rig *rig, size_t size, weir_placement placement)
{
    return test_buffer(rig->device, "buffer", size, placement);
}

weir_buffer *rig_wrap(struct rig *rig, void *pointer, size_t size)
{
    weir_buffer *buffer;
    EXPECT_OK(weir_buffer_wrap(rig->device,
                               WEIR_PARAMS(weir_wrap, .label = "wrapped", .pointer = pointer,
                                           .size = size),
                               &buffer));
    return buffer;
}

long rig_calls(void)
{
    const struct weir_test_cuda *fake = rig_fake();
    long calls = 0;
    for (size_t i = 0; fake->name(i); i++)
        calls += fake->calls(fake->name(i));
    return calls;
}

unsigned char *rig_bytes(weir_buffer *buffer)
{
    unsigned char *pointer = NULL;
    EXPECT_OK(weir_host_whole(buffer, WEIR_ACCESS_READ_WRITE, &pointer));
    EXPECT_OK(weir_host_whole_end(buffer, WEIR_ACCESS_READ_WRITE));
    return pointer;
}

struct weir_bundle rig_bundle(const struct weir_image *images, uint32_t count)
{
    struct weir_bundle bundle = conformance_kernels;
    bundle.name = "rig";
    bundle.images = images;
    bundle.image_count = count;
    return bundle;
}

weir_program *rig_program(struct rig *rig)
{
    static struct weir_bundle bundle;
    weir_program *program;
    bundle = rig_bundle(weir_test_image(), 1);
    EXPECT_OK(weir_program_load(rig->device, &bundle, &program));
    return program;
}

weir_kernel *rig_kernel(weir_program *program, const char *name)
{
    weir_kernel *kernel;
    EXPECT_OK(weir_kernel_create(program, name, &kernel));
    return kernel;
}

weir_kernel *rig_load(struct rig *rig, const char *name)
{
    own_program program = rig_program(rig);
    return rig_kernel(program, name);
}
