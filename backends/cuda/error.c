// Errors of the driver, devices that are lost, and the contexts that calls enter.
//
// The names of errors come from the driver.
//
// After some errors the context is unusable: every later call returns the same code, or one that is
// a consequence of it. So the first one is kept.
#include <stdarg.h>

#include "backends/cuda/cu.h"

#define LOST WEIR_ERROR_DEVICE_LOST
// On an H200 with driver 580 the primary context stays faulted after its last
// release, so opening the device again in the same process fails too.
#define REOPEN "close the device and restart the process"
#define BOUNDS "a kernel left its buffers' bounds (compute-sanitizer finds where); " REOPEN

static const struct weir_kit_native table[] = {
    {CUDA_ERROR_OUT_OF_MEMORY, WEIR_ERROR_OUT_OF_MEMORY, NULL,
     "destroy buffers that are no longer needed, use smaller ones, or weir_device_trim()"},
    {CUDA_ERROR_DEINITIALIZED, LOST, NULL,
     "the process is ending: finish with Weir before exit handlers run"},
    {34, WEIR_ERROR_MODULE, NULL,
     "the library is the CUDA toolkit's stub; take its folder out of LD_LIBRARY_PATH"},
    {36, WEIR_ERROR_UNSUPPORTED, NULL, "install a newer NVIDIA driver"},
    {46, WEIR_ERROR_DEVICE, NULL,
     "another process has the device for itself (nvidia-smi -q -d COMPUTE)"},
    {CUDA_ERROR_NO_DEVICE, WEIR_ERROR_NO_DEVICE, NULL,
     "check nvidia-smi; in a container, start it with --gpus all"},
    {101, WEIR_ERROR_NO_DEVICE, NULL, "check CUDA_VISIBLE_DEVICES"},
    {CUDA_ERROR_INVALID_IMAGE, WEIR_ERROR_UNSUPPORTED, NULL,
     "build the bundle again with weir_kernels"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, WEIR_ERROR_UNSUPPORTED, NULL,
     "build the bundle with an image for this architecture, or with PTX"},
    {CUDA_ERROR_ECC_UNCORRECTABLE, LOST, NULL,
     "the device's memory is damaged: see nvidia-smi -q -d ECC"},
    {CUDA_ERROR_INVALID_PTX, WEIR_ERROR_BUILD, NULL, "build the bundle again with weir_kernels"},
    {CUDA_ERROR_NVLINK_UNCORRECTABLE, LOST, NULL,
     "the link between devices failed: see nvidia-smi nvlink -e"},
    {221, WEIR_ERROR_UNSUPPORTED, NULL,
     "the driver lacks libnvidia-ptxjitcompiler; install it whole"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, WEIR_ERROR_UNSUPPORTED, NULL,
     "install a newer NVIDIA driver"},
    {226, LOST, NULL, REOPEN},
    {CUDA_ERROR_INVALID_SOURCE, WEIR_ERROR_UNSUPPORTED, NULL,
     "build the bundle again with weir_kernels"},
    {304, WEIR_ERROR_SYSTEM, NULL, "check that /dev/nvidia* may be opened by this user"},
    {CUDA_ERROR_NOT_FOUND, WEIR_ERROR_NOT_FOUND, NULL, NULL},
    {CUDA_ERROR_ILLEGAL_ADDRESS, LOST, NULL, BOUNDS},
    {701, WEIR_ERROR_INVALID, NULL, "use a smaller block: the kernel's registers do not suffice"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, LOST, NULL, "a kernel ran longer than the system allows; " REOPEN},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, LOST, NULL, "something reset the device; " REOPEN},
    {CUDA_ERROR_ASSERT, LOST, NULL, REOPEN},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, LOST, NULL, REOPEN},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, LOST, NULL, REOPEN},
    {CUDA_ERROR_MISALIGNED_ADDRESS, LOST, NULL,
     "a vector type needs an address that is a multiple of its size; " REOPEN},
    {CUDA_ERROR_INVALID_ADDRESS_SPACE, LOST, NULL, BOUNDS},
    {CUDA_ERROR_INVALID_PC, LOST, NULL, BOUNDS},
    {CUDA_ERROR_LAUNCH_FAILED, LOST, NULL, BOUNDS},
    {721, LOST, NULL, REOPEN},
    {CUDA_ERROR_NOT_SUPPORTED, WEIR_ERROR_UNSUPPORTED, NULL, NULL},
    {802, WEIR_ERROR_DEVICE, NULL,
     "start the fabric manager (systemctl status nvidia-fabricmanager)"},
    {803, WEIR_ERROR_MODULE, NULL,
     "the driver was updated while it ran: restart the machine, or in a "
     "container use the host's libcuda.so.1"},
    {804, WEIR_ERROR_MODULE, NULL,
     "remove the CUDA compatibility package, which needs another device"},
    {CUDA_ERROR_MPS_CLIENT_TERMINATED, LOST, NULL,
     "the MPS server ended this client; restart the process"},
    {999, WEIR_ERROR_DEVICE, NULL, "see the kernel's log (dmesg), then reload the NVIDIA driver"},
};

static const struct weir_kit_natives natives = {table, sizeof table / sizeof *table,
                                                "unknown CUDA error"};

static void describe(const struct cu_module *module, const char *call, CUresult code,
                     const char *format, va_list arguments, struct weir_error *detail)
{
    const char *name = NULL;
    if (module->cu.cuGetErrorName)
        module->cu.cuGetErrorName(code, &name);
    weir_kit_native_describe(&natives, detail, call, (int)code, name, format, arguments);
}

weir_status cu_report_lost(struct cu_device *device)
{
    pthread_mutex_lock(&device->lock);
    const struct weir_error first = device->first_fault;
    pthread_mutex_unlock(&device->lock);
    return device->module->host->error(&first, sizeof first);
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
    cu_prints_take(device);
}

weir_status cu_native_error(struct cu_device *device, const char *call, CUresult code,
                            const char *format, ...)
{
    struct weir_error detail;
    va_list arguments;
    va_start(arguments, format);
    describe(device->module, call, code, format, arguments, &detail);
    va_end(arguments);
    if (detail.status == WEIR_ERROR_DEVICE_LOST)
        lose(device, &detail);
    if (atomic_load(&device->lost))
        return cu_report_lost(device);
    return device->module->host->error(&detail, sizeof detail);
}

weir_status cu_module_error(const struct cu_module *module, const char *call, CUresult code,
                            const char *format, ...)
{
    struct weir_error detail;
    va_list arguments;
    va_start(arguments, format);
    describe(module, call, code, format, arguments, &detail);
    va_end(arguments);
    return module->host->error(&detail, sizeof detail);
}

// Contexts.

weir_status cu_refuse_to_enter(struct cu_device *device, CUresult code)
{
    return cu_native_error(device, "cuCtxGetCurrent", code, "ask for the current context");
}

weir_status cu_change_context(struct cu_device *device, struct cu_scope *scope)
{
    CUresult code = device->module->cu.cuCtxSetCurrent(device->context);
    scope->changed = true;
    if (code == CUDA_SUCCESS)
        return WEIR_OK;
    return cu_native_error(device, "cuCtxSetCurrent", code, "enter the device's context");
}

void cu_enter_to_destroy(struct cu_device *device, struct cu_scope *scope)
{
    const struct cu_symbols *cu = &device->module->cu;
    scope->before = NULL;
    scope->changed = cu->cuCtxGetCurrent(&scope->before) == CUDA_SUCCESS &&
                     scope->before != device->context &&
                     cu->cuCtxSetCurrent(device->context) == CUDA_SUCCESS;
}
