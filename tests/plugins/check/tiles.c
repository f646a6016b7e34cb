#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

enum {
    TILES = 3,
    WORDS = 992, // of a tile
    BYTES = WORDS * 4,
    BLOCK = 64
};

static const char source[] = "__kernel void brighten(__global uint *pixels, uint by)\n"
                             "{\n"
                             "    pixels[get_global_id(0)] += by;\n"
                             "}\n";

static void check(weir_status status)
{
    if (status < 0)
        fprintf(stderr, "%s\n", weir_last_error_text()), exit(1);
}

static weir_kernel *kernel(weir_device *device, weir_program **out_program)
{
    const struct weir_program_params params = {.struct_size = sizeof params, .source = source};
    weir_kernel *kernel;
    check(weir_program_create(device, &params, out_program));
    check(weir_kernel_create(*out_program, "brighten", &kernel));
    return kernel;
}

// All tiles but the last.
static void brighten(weir_queue *queue, weir_kernel *kernel, weir_buffer *image)
{
    const struct weir_extent grid = {(WORDS + BLOCK - 1) / BLOCK, 1, 1}, block = {BLOCK, 1, 1};

    for (size_t i = 0; i < TILES - 1; i++) {
        const struct weir_argument tile = weir_inout(image, i * BYTES, BYTES);
        check(weir_queue_launch(queue, kernel, grid, block, tile, 1u));
    }
}

int main(void)
{
    static uint32_t words[TILES * WORDS];
    const struct weir_queue_params queue_params = {.struct_size = sizeof queue_params,
                                                   .label = "work"};
    const struct weir_buffer_params image_params = {.struct_size = sizeof image_params,
                                                    .label = "image",
                                                    .size = sizeof words};
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_buffer *image;
    weir_program *program;
    size_t wrong = 0;

    check(weir_open(NULL, &runtime));
    check(weir_device_open(runtime, NULL, &device));
    check(weir_queue_create(device, &queue_params, &queue));
    check(weir_buffer_create(device, &image_params, &image));
    weir_kernel *brightener = kernel(device, &program);

    check(weir_upload(queue, image, 0, words, sizeof words));
    brighten(queue, brightener, image);
    check(weir_download(queue, words, image, 0, sizeof words));
    for (size_t i = 0; i < TILES * WORDS; i++)
        wrong += words[i] != (i / WORDS < TILES - 1);
    printf("%zu wrong pixels\n", wrong);

    weir_kernel_destroy(&brightener), weir_program_destroy(&program);
    weir_buffer_destroy(&image), weir_queue_destroy(&queue);
    check(weir_device_close(&device));
    check(weir_close(&runtime));
    return 0;
}
