// Kernels that some drivers compile to something else (kernels/drivers), on the device that the
// configuration selects.
#include "cli/doctor/doctor.h"
#include "kernels/drivers/drivers.h"

enum {
    BLOCK = 32 // some drivers have no larger ones
};
static const uint32_t untouched = UINT32_MAX;
static const size_t bytes = BLOCK * sizeof(uint32_t);

static const struct probe {
    const char *kernel;
    uint32_t right; // of the numbers 1 to BLOCK
    bool local;     // the kernel takes local memory
    const char *fault;
} probes[] = {
    {"barrier_in_loop", BLOCK *(BLOCK + 1) / 2, true,
     "this driver miscompiles a barrier at the end of a loop: sums of a block come out wrong; set "
     "build_options = -cl-opt-disable in [opencl], or update the driver"},
    {"written_by_all", BLOCK, false,
     "this driver gives each work-item its own copy of a __local variable that all of them write "
     "first, and what one writes later the others do not see; let one work-item write it first, "
     "declare it volatile, or set build_options = -cl-opt-disable in [opencl]"},
};

struct bench {
    weir_device *device;
    weir_queue *queue;
    weir_program *program;
    weir_buffer *in;
    weir_buffer *out;
};

static weir_status make(struct bench *bench)
{
    const struct weir_program_params program = {.struct_size = sizeof program,
                                                .label = "driver",
                                                .bundle = &drivers_kernels};
    const struct weir_buffer_params buffer = {.struct_size = sizeof buffer, .size = bytes};
    uint32_t numbers[BLOCK];
    weir_status status;
    for (uint32_t i = 0; i < BLOCK; i++)
        numbers[i] = i + 1;
    if ((status = weir_queue_create(bench->device, NULL, &bench->queue)) ||
        (status = weir_program_create(bench->device, &program, &bench->program)) ||
        (status = weir_buffer_create(bench->device, &buffer, &bench->in)) ||
        (status = weir_buffer_create(bench->device, &buffer, &bench->out)))
        return status;
    return weir_upload(bench->queue, bench->in, 0, numbers, bytes);
}

static weir_status launch(const struct bench *bench, const struct probe *probe, weir_kernel *kernel,
                          uint32_t *out)
{
    const struct weir_argument arguments[] = {weir_in(bench->in, 0, bytes),
                                              weir_inout(bench->out, 0, bytes), weir_local(bytes)};
    weir_status status;
    if ((status =
             weir_queue_fill(bench->queue, bench->out, 0, bytes, &untouched, sizeof untouched)) ||
        (status = weir_queue_launch_array(bench->queue, kernel, weir_dim(1, 1, 1),
                                          weir_dim(BLOCK, 1, 1), arguments, probe->local ? 3 : 2)))
        return status;
    return weir_download(bench->queue, out, bench->out, 0, sizeof *out);
}

static weir_status run(const struct bench *bench, const struct probe *probe, uint32_t *out)
{
    weir_kernel *kernel;
    weir_status status = weir_kernel_create(bench->program, probe->kernel, &kernel);
    if (status == WEIR_OK)
        status = launch(bench, probe, kernel, out);
    weir_kernel_destroy(&kernel);
    return status;
}

static void judge(struct doctor *doctor, const struct bench *bench)
{
    const size_t count = sizeof probes / sizeof *probes;
    size_t right = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t result = untouched;
        if (run(bench, &probes[i], &result) < 0) {
            doctor_add_error(doctor, "driver", "update the driver, or choose another device");
            return;
        }
        right += result == probes[i].right;
        // A device that runs no kernels is the self-test's finding.
        if (result != probes[i].right && result != untouched)
            doctor_add(doctor, DOCTOR_NOTE, "driver", NULL, "%s", probes[i].fault);
    }
    if (right == count)
        doctor_add(doctor, DOCTOR_OK, "driver", NULL,
                   "kernels that some drivers miscompile gave the right numbers");
}

void doctor_driver(struct doctor *doctor)
{
    struct bench bench = {0};
    // The self-test tells what fails here too.
    if (!doctor->runtime || (weir_device_open)(doctor->runtime, NULL, &bench.device) < 0)
        return;
    if (make(&bench) == WEIR_OK)
        judge(doctor, &bench);
    else
        doctor_add_error(doctor, "driver", "update the driver, or choose another device");
    weir_buffer_destroy(&bench.out);
    weir_buffer_destroy(&bench.in);
    weir_program_destroy(&bench.program);
    weir_queue_destroy(&bench.queue);
    weir_device_close(&bench.device);
}
