// What CUDA's errors mean for Weir. Their names come from the driver, which knows
// them all; the table has the status and the remedy where one is known.
//
// Some codes are the end of the context: whatever is called afterwards returns
// the same code, or another one that is only a consequence. So the first is kept.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <weir/module/error.h>

#include "backends/cuda/cu.h"

struct meaning {
    CUresult code;
    weir_status status;
    const char *remedy;
};

#define LOST WEIR_ERROR_DEVICE_LOST
// On an H200 with driver 580 the primary context stays faulted after its last
// release, so opening the device again in the same process fails too.
#define REOPEN "close the device and restart the process"
#define BOUNDS "a kernel left its buffers' bounds (compute-sanitizer finds where); " REOPEN

static const struct meaning meanings[] = {
    {CUDA_ERROR_OUT_OF_MEMORY, WEIR_ERROR_OUT_OF_MEMORY,
     "destroy buffers that are no longer needed, use smaller ones, or weir_device_trim()"},
    {CUDA_ERROR_DEINITIALIZED, LOST,
     "the process is ending: finish with Weir before exit handlers run"},
    {34, WEIR_ERROR_MODULE,
     "the library is the CUDA toolkit's stub; take its folder out of LD_LIBRARY_PATH"},
    {36, WEIR_ERROR_UNSUPPORTED, "install a newer NVIDIA driver"},
    {46, WEIR_ERROR_DEVICE, "another process has the device for itself (nvidia-smi -q -d COMPUTE)"},
    {CUDA_ERROR_NO_DEVICE, WEIR_ERROR_NO_DEVICE,
     "check nvidia-smi; in a container, start it with --gpus all"},
    {101, WEIR_ERROR_NO_DEVICE, "check CUDA_VISIBLE_DEVICES"},
    {CUDA_ERROR_INVALID_IMAGE, WEIR_ERROR_UNSUPPORTED, "build the bundle again with weir_kernels"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, WEIR_ERROR_UNSUPPORTED,
     "build the bundle with an image for this architecture, or with PTX"},
    {CUDA_ERROR_ECC_UNCORRECTABLE, LOST,
     "the device's memory is damaged: see nvidia-smi -q -d ECC"},
    {CUDA_ERROR_INVALID_PTX, WEIR_ERROR_BUILD, "build the bundle again with weir_kernels"},
    {CUDA_ERROR_NVLINK_UNCORRECTABLE, LOST,
     "the link between devices failed: see nvidia-smi nvlink -e"},
    {221, WEIR_ERROR_UNSUPPORTED, "the driver lacks libnvidia-ptxjitcompiler; install it whole"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, WEIR_ERROR_UNSUPPORTED, "install a newer NVIDIA driver"},
    {226, LOST, REOPEN},
    {CUDA_ERROR_INVALID_SOURCE, WEIR_ERROR_UNSUPPORTED, "build the bundle again with weir_kernels"},
    {304, WEIR_ERROR_SYSTEM, "check that /dev/nvidia* may be opened by this user"},
    {CUDA_ERROR_NOT_FOUND, WEIR_ERROR_NOT_FOUND, ""},
    {CUDA_ERROR_ILLEGAL_ADDRESS, LOST, BOUNDS},
    {701, WEIR_ERROR_INVALID, "use a smaller block: the kernel's registers do not suffice"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, LOST, "a kernel ran longer than the system allows; " REOPEN},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, LOST, "something reset the device; " REOPEN},
    {CUDA_ERROR_ASSERT, LOST, REOPEN},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, LOST, REOPEN},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, LOST, REOPEN},
    {CUDA_ERROR_MISALIGNED_ADDRESS, LOST,
     "a vector type needs an address that is a multiple of its size; " REOPEN},
    {CUDA_ERROR_INVALID_ADDRESS_SPACE, LOST, BOUNDS},
    {CUDA_ERROR_INVALID_PC, LOST, BOUNDS},
    {CUDA_ERROR_LAUNCH_FAILED, LOST, BOUNDS},
    {721, LOST, REOPEN},
    {CUDA_ERROR_NOT_SUPPORTED, WEIR_ERROR_UNSUPPORTED, ""},
    {802, WEIR_ERROR_DEVICE, "start the fabric manager (systemctl status nvidia-fabricmanager)"},
    {803, WEIR_ERROR_MODULE,
     "the driver was updated while it ran: restart the machine, or in a "
     "container use the host's libcuda.so.1"},
    {804, WEIR_ERROR_MODULE, "remove the CUDA compatibility package, which needs another device"},
    {CUDA_ERROR_MPS_CLIENT_TERMINATED, LOST,
     "the MPS server ended this client; restart the process"},
    {999, WEIR_ERROR_DEVICE, "see the kernel's log (dmesg), then reload the NVIDIA driver"},
};

static const struct meaning *find(CUresult code)
{
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
        if (meanings[i].code == code)
            return &meanings[i];
    }
    return NULL;
}

static void describe(const struct cu_module *module, const char *call, CUresult code,
                     const char *format, va_list arguments, struct weir_error *detail)
{
    const struct meaning *meaning = find(code);
    const char *name = NULL;
    if (module->cu.cuGetErrorName)
        module->cu.cuGetErrorName(code, &name);
    detail->status = meaning ? meaning->status : WEIR_ERROR_DEVICE;
    detail->native_code = code;
    snprintf(detail->native_call, sizeof detail->native_call, "%s", call);
    snprintf(detail->native_name, sizeof detail->native_name, "%s",
             name ? name : "unknown CUDA error");
    snprintf(detail->remedy, sizeof detail->remedy, "%s", meaning ? meaning->remedy : "");
    vsnprintf(detail->message, sizeof detail->message, format, arguments);
}

weir_status cu_report_lost(struct cu_device *device)
{
    pthread_mutex_lock(&device->lock);
    const struct weir_error first = device->first_fault;
    pthread_mutex_unlock(&device->lock);
    return device->module->host->error(&first);
}

// Keeps the first fault.
static void lose(struct cu_device *device, const struct weir_error *detail)
{
    pthread_mutex_lock(&device->lock);
    if (!atomic_load(&device->lost)) {
        device->first_fault = *detail;
        cu_fault_explain(device, &device->first_fault);
    }
    atomic_store(&device->lost, true);
    pthread_mutex_unlock(&device->lock);
}

weir_status cu_native_error(struct cu_device *device, const char *call, CUresult code,
                            const char *format, ...)
{
    struct weir_error detail = {.native_code = code};
    va_list arguments;
    va_start(arguments, format);
    describe(device->module, call, code, format, arguments, &detail);
    va_end(arguments);
    if (detail.status == WEIR_ERROR_DEVICE_LOST)
        lose(device, &detail);
    if (atomic_load(&device->lost))
        return cu_report_lost(device);
    return device->module->host->error(&detail);
}

weir_status cu_module_error(const struct cu_module *module, const char *call, CUresult code,
                            const char *format, ...)
{
    struct weir_error detail = {.native_code = code};
    va_list arguments;
    va_start(arguments, format);
    describe(module, call, code, format, arguments, &detail);
    va_end(arguments);
    return module->host->error(&detail);
}
