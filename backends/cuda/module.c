// Opening the module: the driver's library, its version and its devices. Everything that a machine
// may lack is detected here, and each case has its own message.

#include "backends/cuda/cu.h"

// In the order of the key table.
enum key {
    KEY_LIBRARY,
    KEY_CACHE,
    KEY_CACHE_DIR,
    KEY_SYNC,
    KEY_ATTRIBUTE_FAULTS,
    KEY_CUPTI,
    KEY_NCCL,
    KEY_COUNT
};

static const char *const sync_choices[] = {"block", "spin", NULL};

static const struct weir_key keys[KEY_COUNT] = {
    [KEY_LIBRARY] =
        WEIR_TEXT_KEY("library", "",
                      "The driver's library: a name that the dynamic linker finds, or a path. "
                      "Empty: libcuda.so.1, else libcuda.so."),
    [KEY_CACHE] = WEIR_BOOLEAN_KEY("cache", "1", "Keep what is compiled at run time on disk."),
    [KEY_CACHE_DIR] = WEIR_TEXT_KEY("cache_dir", "",
                                    "The folder for it, in which a folder cuda is made. "
                                    "Empty: weir in XDG_CACHE_HOME, or in HOME/.cache."),
    [KEY_SYNC] =
        WEIR_CHOICE_KEY("sync", "spin", sync_choices,
                        "How the host waits for a record: block gives the processor away, spin "
                        "notices the end sooner and keeps it busy."),
    [KEY_ATTRIBUTE_FAULTS] = WEIR_BOOLEAN_KEY(
        "attribute_faults", "0",
        "Have the device write down every launch, copy and fill that it finishes, so "
        "that the report of a fault names the one that faulted."),
    [KEY_CUPTI] = WEIR_TEXT_KEY(
        "cupti", "auto",
        "The library that tells plugins when operations began: auto looks for "
        "libcupti.so of CUDA 13 and 12, off uses events, which only tell when they "
        "ended, and anything else is a path or a name that the dynamic linker finds."),
    [KEY_NCCL] = WEIR_TEXT_KEY(
        "nccl", "auto",
        "The library that carries collectives out: auto takes the libnccl.so.2 that the "
        "program has loaded, else the one that the dynamic linker finds, off lets them "
        "run through the host, and anything else is a path."),
};

static weir_status explain_no_library(const struct cu_module *module, const char *message)
{
    if (module->version > 0 && module->version < CU_OLDEST_DRIVER)
        return weir_host_fail(
            module->host, WEIR_ERROR_MODULE,
            "install an NVIDIA driver of version 525 or newer, 580 for images that "
            "CUDA 13 built",
            "the NVIDIA driver is too old: %s", message);
    return weir_host_fail(module->host, WEIR_ERROR_MODULE,
                          "install the NVIDIA driver (525 or newer); in a container, start it with "
                          "--gpus all; or name the library with `library` in [cuda]",
                          "there is no usable NVIDIA driver: %s", message);
}

// With an empty or wrong CUDA_VISIBLE_DEVICES the driver reports no devices.
static weir_status explain_no_device(const struct cu_module *module, CUresult code)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible && !visible[0])
        return weir_host_fail(
            module->host, WEIR_ERROR_NO_DEVICE,
            "unset CUDA_VISIBLE_DEVICES, or list the devices to use",
            "CUDA_VISIBLE_DEVICES is set and empty, which hides every CUDA device");
    if (visible)
        return weir_host_fail(
            module->host, WEIR_ERROR_NO_DEVICE,
            "correct or unset CUDA_VISIBLE_DEVICES; nvidia-smi -L lists the devices",
            "the driver shows no CUDA device; CUDA_VISIBLE_DEVICES is '%s'", visible);
    return cu_tried(&(struct cu_trial){.module = module, .code = code, .call = "cuInit"},
                    "the driver (%s) is there, but it finds no CUDA device", module->driver);
}

static weir_status describe(struct cu_module *module, int ordinal)
{
    struct cu_listed *listed = &module->listed[ordinal];
    struct weir_device_info *info = &listed->info;
    info->struct_size = sizeof *info;
    size_t bytes = 0;
    struct cu_trial trial = {.module = module};
    CU_TRY(&trial, cuDeviceGet, &listed->native, ordinal);
    CU_TRY(&trial, cuDeviceGetName, info->name, sizeof info->name, listed->native);
    CU_TRY(&trial, cuDeviceTotalMem, &bytes, listed->native);
    if (trial.code != CUDA_SUCCESS)
        return cu_tried(&trial, "CUDA device %d cannot be described", ordinal);
    info->memory_bytes = bytes;
    snprintf(info->platform, sizeof info->platform, "NVIDIA CUDA");
    snprintf(info->driver, sizeof info->driver, "%s", module->driver);
    return WEIR_OK;
}

static weir_status list_devices(struct cu_module *module)
{
    int count = 0;
    struct cu_trial trial = {.module = module};
    CU_TRY(&trial, cuDeviceGetCount, &count);
    if (trial.code != CUDA_SUCCESS)
        return cu_tried(&trial, "CUDA devices cannot be counted");
    if (count <= 0)
        return explain_no_device(module, CUDA_ERROR_NO_DEVICE);

    module->listed = module->host->allocate((size_t)count * sizeof *module->listed);
    if (!module->listed)
        return weir_host_no_memory(module->host, "the list of devices");
    for (int i = 0; i < count; i++) {
        TRY(describe(module, i));
    }
    module->listed_count = (size_t)count;
    return WEIR_OK;
}

static void release(struct cu_module *module)
{
    weir_kit_cache_close(&module->cache);
    pthread_mutex_destroy(&module->compiler.lock);
    pthread_mutex_destroy(&module->nccl.lock);
    module->host->release(module->listed);
    module->host->release(module);
}

static weir_status start(struct cu_module *module, const struct weir_setting *const *settings)
{
    char message[512];
    if (!cu_symbols_load(settings[KEY_LIBRARY]->text, &module->cu, &module->version, message,
                         sizeof message))
        return explain_no_library(module, message);
    snprintf(module->driver, sizeof module->driver, "CUDA %d.%d, driver api %d",
             module->version / 1000, module->version % 1000 / 10, module->version);

    struct cu_trial trial = {.module = module};
    CU_TRY(&trial, cuInit, 0);
    if (trial.code == CUDA_ERROR_NO_DEVICE)
        return explain_no_device(module, trial.code);
    TRY(cu_tried(&trial, "the NVIDIA driver (%s) does not start", module->driver));
    TRY(list_devices(module));
    module->nccl.setting = settings[KEY_NCCL]->text;
    module->cupti = settings[KEY_CUPTI]->text;
    module->spin = strcmp(settings[KEY_SYNC]->text, "spin") == 0;
    module->attribute_faults = settings[KEY_ATTRIBUTE_FAULTS]->integer != 0;
    if (settings[KEY_CACHE]->integer)
        module->cache = weir_kit_cache_open(module->host, "cuda", settings[KEY_CACHE_DIR]->text);
    return WEIR_OK;
}

weir_status cu_open(struct weir_link *link, const struct weir_setting *const *settings,
                    void **out_state)
{
    struct cu_module *module = link->host->allocate(sizeof *module);
    if (!module)
        return weir_host_no_memory(link->host, "the CUDA backend");
    module->host = link->host;
    pthread_mutex_init(&module->compiler.lock, NULL);
    pthread_mutex_init(&module->nccl.lock, NULL);
    weir_status status = start(module, settings);
    if (status < 0) {
        release(module);
        return status;
    }
    *out_state = module;
    return WEIR_OK;
}

void cu_close(const struct weir_link *link)
{
    cu_activity_rest();
    release(cu_module_of(link));
}

size_t cu_device_count(const struct weir_link *link)
{
    return cu_module_of(link)->listed_count;
}

weir_status cu_device_describe(const struct weir_link *link, size_t index,
                               struct weir_device_info *out_info)
{
    WEIR_WRITE(out_info, &cu_module_of(link)->listed[index].info);
    return WEIR_OK;
}

static const char *cu_driver_version(const struct weir_link *link)
{
    return cu_module_of(link)->driver;
}

#define ENTRY(slot) .slot = cu_##slot,
static const struct weir_module_ops ops = {CU_SLOTS(ENTRY)};

static const char *const about[] = {
    "summary",
    "Runs on NVIDIA GPUs through the driver's libcuda; a CUDA toolkit is needed only to compile "
    "source at run time.",
    NULL,
};

WEIR_MODULE(WEIR_MODULE_BACKEND, "cuda", WEIR_VERSION_STRING, WEIR_MODULE_OPS(ops), .keys = keys,
            .key_count = KEY_COUNT, .driver_version = cu_driver_version, .about = about)
