// Opening the module: Tarn's library and its devices. Everything that a machine may lack is
// detected here.
#include <stdio.h>
#include <weir/kit/symbols.h>

#include "trn.h"

// In the order of the key table.
enum key {
    KEY_LIBRARY,
    KEY_CACHE,
    KEY_CACHE_DIR,
    KEY_COUNT
};

static const struct weir_key keys[KEY_COUNT] = {
    [KEY_LIBRARY] =
        {
            .name = "library",
            .type = WEIR_KEY_TEXT,
            .fallback = "libtarn.so.1",
            .help = "Tarn's library: a name that the dynamic linker finds, or a path.",
        },
    [KEY_CACHE] =
        {
            .name = "cache",
            .type = WEIR_KEY_BOOLEAN,
            .fallback = "1",
            .help = "Keep what is compiled at run time on disk.",
        },
    [KEY_CACHE_DIR] =
        {
            .name = "cache_dir",
            .type = WEIR_KEY_TEXT,
            .fallback = "",
            .help = "The folder for it, in which a folder tarn is made. "
                    "Empty: weir in XDG_CACHE_HOME, or in HOME/.cache.",
        },
};

static const struct weir_kit_symbol table[] = {{"tarn_result_name",
                                                offsetof(struct trn_symbols, tarn_result_name),
                                                false},
#define TRN_SYMBOL(name, parameters) {#name, offsetof(struct trn_symbols, name), false},
                                               TRN_SYMBOLS(TRN_SYMBOL)
#undef TRN_SYMBOL
};

static weir_status load(struct trn_module *module, const char *library)
{
    char message[512];
    void *handle = weir_kit_library_open(&library, 1, message, sizeof message);
    if (handle && weir_kit_symbols_load(handle, library, table, sizeof table / sizeof *table,
                                        &module->tarn, message, sizeof message))
        return WEIR_OK;
    return weir_host_fail(module->host, WEIR_ERROR_MODULE,
                          "install Tarn's driver, or name its library with `library` in [tarn]",
                          "the Tarn driver cannot be used: %s", message);
}

static weir_status list_devices(struct trn_module *module)
{
    int count = 0;
    int version = 0;
    const char *call = "tarn_init";
    tarn_result result = module->tarn.tarn_init();
    if (result == TARN_OK) {
        call = "tarn_version";
        result = module->tarn.tarn_version(&version);
    }
    if (result == TARN_OK) {
        call = "tarn_device_count";
        result = module->tarn.tarn_device_count(&count);
    }
    snprintf(module->driver, sizeof module->driver, "%d.%d", version / 10000, version / 100 % 100);
    for (int i = 0; i < count && i < TRN_DEVICE_LIMIT && result == TARN_OK; i++) {
        call = "tarn_device_describe";
        result = module->tarn.tarn_device_describe(i, &module->devices[i]);
        module->device_count++;
    }
    if (result != TARN_OK)
        return trn_error(module, call, result, "Tarn's devices cannot be listed");
    if (count > 0)
        return WEIR_OK;
    return weir_host_fail(module->host, WEIR_ERROR_NO_DEVICE, "check TARN_DEVICES",
                          "the Tarn driver (%s) is there, but it finds no device", module->driver);
}

static weir_status trn_open(struct weir_link *link, const struct weir_setting *const *settings,
                            void **out_state)
{
    struct trn_module *module = link->host->allocate(sizeof *module);
    if (!module)
        return weir_host_no_memory(link->host, "the Tarn backend");
    module->host = link->host;
    weir_status status = load(module, settings[KEY_LIBRARY]->text);
    if (status == WEIR_OK)
        status = list_devices(module);
    if (status < 0) {
        link->host->release(module);
        return status;
    }
    if (settings[KEY_CACHE]->integer)
        module->cache = weir_kit_cache_open(module->host, "tarn", settings[KEY_CACHE_DIR]->text);
    *out_state = module;
    return WEIR_OK;
}

static void trn_close(const struct weir_link *link)
{
    weir_kit_cache_close(&trn_module_of(link)->cache);
    link->host->release(link->state);
}

static size_t trn_device_count(const struct weir_link *link)
{
    return trn_module_of(link)->device_count;
}

static weir_status trn_device_describe(const struct weir_link *link, size_t index,
                                       struct weir_device_info *out_info)
{
    const struct trn_module *module = trn_module_of(link);
    snprintf(out_info->name, sizeof out_info->name, "%s", module->devices[index].name);
    snprintf(out_info->platform, sizeof out_info->platform, "Tarn");
    snprintf(out_info->driver, sizeof out_info->driver, "%s", module->driver);
    out_info->memory_bytes = module->devices[index].memory_bytes;
    return WEIR_OK;
}

static const char *trn_driver_version(const struct weir_link *link)
{
    return trn_module_of(link)->driver;
}

static const struct weir_module_ops ops = {
    .open = trn_open,
    .close = trn_close,
    .device_count = trn_device_count,
    .device_describe = trn_device_describe,
    .device_create = trn_device_create,
    .device_destroy = trn_device_destroy,
    .device_limits = trn_device_limits,
    .device_trim = trn_device_trim,
    .queue_create = trn_queue_create,
    .queue_destroy = trn_queue_destroy,
    .queue_submit = trn_queue_submit,
    .queue_finish = trn_queue_finish,
    .event_query = trn_event_query,
    .event_wait = trn_event_wait,
    .event_time = trn_event_time,
    .buffer_create = trn_buffer_create,
    .buffer_destroy = trn_buffer_destroy,
    .program_create = trn_program_create,
    .program_destroy = trn_program_destroy,
    .program_signatures = trn_program_signatures,
    .kernel_create = trn_kernel_create,
    .kernel_destroy = trn_kernel_destroy,
};

static const struct weir_module module_info = {
    .abi = WEIR_MODULE_ABI,
    .struct_size = sizeof module_info,
    .kind = WEIR_MODULE_BACKEND,
    .name = "tarn",
    .version = WEIR_VERSION_STRING,
    .build_id = __VERSION__, // the compiler's
    .sanitizer = WEIR_MODULE_SANITIZER,
    .keys = keys,
    .key_count = KEY_COUNT,
    .key_size = sizeof(struct weir_key),
    .slot_count = WEIR_MODULE_SLOT_COUNT,
    .operation_kinds = WEIR_OPERATION_KINDS,
    .ops = &ops,
    .driver_version = trn_driver_version,
};

const struct weir_module *weir_module_query(uint32_t host_abi, const struct weir_host *host)
{
    (void)host_abi;
    (void)host;
    return &module_info;
}
