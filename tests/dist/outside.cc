// A user's C++17 program: it launches a kernel, which does nothing on the null
// backend, and reads a copy back; by the C API, and by the header for C++.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#include <weir/patterns/pipeline.h>
#include <weir/weir.h>
#include <weir/weir.hpp>

static weir_parameter parameter(const char *name, const char *type, weir_parameter_kind kind)
{
    weir_parameter made = {};
    made.struct_size = sizeof made;
    made.name = name;
    made.type_name = type;
    made.kind = kind;
    return made;
}

static weir_parameter written(weir_parameter made)
{
    made.writable = 1;
    return made;
}

static weir_parameter number(weir_parameter made)
{
    made.scalar = WEIR_SCALAR_F32;
    made.size = sizeof(float);
    return made;
}

static weir_kernel_signature signature(const char *name, const weir_parameter *list, uint32_t count)
{
    weir_kernel_signature made = {};
    made.struct_size = sizeof made;
    made.name = name;
    made.parameters = list;
    made.parameter_count = count;
    return made;
}

static const weir_parameter parameters[] = {
    written(parameter("out", "float *", WEIR_PARAMETER_BUFFER)),
    number(parameter("factor", "float", WEIR_PARAMETER_VALUE)),
};
static const weir_kernel_signature kernels[] = {signature("scale", parameters, 2)};
static const char source[] = "__kernel void scale(__global float *out, float factor) {}";
static const weir_image images[] = {
    {sizeof(weir_image), WEIR_IMAGE_OPENCL_C, "", source, sizeof source - 1}};
static const weir_bundle bundle = {sizeof bundle, "outside", kernels, 1, images, 1};

static void check(weir_status status)
{
    if (status < 0) {
        std::fprintf(stderr, "%s\n", weir_last_error_text());
        std::exit(1);
    }
}

// The same in C++, on two queues; then an error with the line of its call.
static bool in_cpp(const weir_open_params &params)
try {
    weir::runtime runtime(&params);
    weir::device device(runtime);
    weir::queue bring(device), work(device, "work");
    weir::program program(device, bundle);
    weir::kernel scale(program, "scale");
    const std::vector<float> numbers = {1, 2, 3};
    std::vector<float> back(3);
    weir::array<float> values(device, numbers.size());

    bring.upload(values, numbers);
    work.wait(bring.record());
    work.launch(scale, weir_dim(1, 1, 1), weir_dim(1, 1, 1), values.inout(), 2.0f);
    work.download(back, values);
    if (back != numbers)
        return false;
    const int line = __LINE__ + 1;
    weir::kernel missing(program, "scael");
    std::fprintf(stderr, "line %d threw nothing\n", line);
    return false;
} catch (const weir::error &error) {
    return std::string(error.what()).find("outside.cc") != std::string::npos;
}

int main()
{
    weir_open_params params = {};
    params.struct_size = sizeof params;
    params.backend = "null";
    weir_buffer_params memory = {};
    memory.struct_size = sizeof memory;
    memory.size = 256;
    weir_program_params code = {};
    code.struct_size = sizeof code;
    code.bundle = &bundle;
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_buffer *buffer;
    weir_program *program;
    weir_kernel *scale;
    const char text[] = "through a buffer";
    char back[sizeof text] = "";

    check(weir_open(&params, &runtime));
    check(weir_device_open(runtime, nullptr, &device));
    check(weir_queue_create(device, nullptr, &queue));
    check(weir_buffer_create(device, &memory, &buffer));
    check(weir_program_create(device, &code, &program));
    check(weir_kernel_create(program, "scale", &scale));
    check(weir_upload(queue, buffer, 0, text, sizeof text));
    check(weir_queue_launch(queue, scale, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                            weir_inout(buffer, 0, 256), 2.0f));
    check(weir_download(queue, back, buffer, 0, sizeof back));
    std::printf("%s %s, section [%s]\n", weir_runtime_backend(runtime), back,
                weir_pipeline_section()->name);
    weir_kernel_destroy(&scale);
    weir_program_destroy(&program);
    weir_buffer_destroy(&buffer);
    weir_queue_destroy(&queue);
    check(weir_device_close(&device));
    check(weir_close(&runtime));
    return std::strcmp(text, back) != 0 || !in_cpp(params);
}
