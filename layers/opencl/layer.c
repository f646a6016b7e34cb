// The entry points of a layer (https://github.com/KhronosGroup/OpenCL-ICD-Loader), its runtime, and the end.
// The loader calls clInitLayer() once, before the program's first call has gone anywhere.
#define _GNU_SOURCE // dladdr, dl_iterate_phdr
#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/check.h>
#include <weir/inspect.h>

#include "layers/opencl/layer.h"

struct layer layer = {.lock = PTHREAD_MUTEX_INITIALIZER};

// What is not followed.

_Static_assert(sizeof(cl_icd_dispatch) / sizeof(void *) >= LAYER_ENTRY_COUNT,
               "entries.h has the functions of the loader's table");

enum {
    NAMES = 32
};

static struct {
    const char *name;
    uint64_t calls; // 0: it was asked for, and its calls are not seen
} lost[NAMES];      // under the lock
static size_t lost_count;

void layer_count_lost(const char *name, bool called)
{
    size_t i = 0;
    layer_lock();
    while (i < lost_count && strcmp(lost[i].name, name) != 0)
        i++;
    if (i == lost_count && i < NAMES && (lost[i].name = strdup(name)))
        lost_count++;
    if (i < lost_count)
        lost[i].calls += called;
    layer_unlock();
}

void layer_tell(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "weir: OpenCL layer: %s\n", text);
}

static void tell_lost(void)
{
    static const char *const reasons[LAYER_LOSSES] = {
        [LAYER_LOSS_MEMORY] = "for lack of memory",
        [LAYER_LOSS_ARGUMENTS] = "because they name more than 64 buffers",
        [LAYER_LOSS_WEIR] = "because Weir refused them",
    };
    for (size_t i = 0; i < lost_count; i++) {
        const uint64_t calls = lost[i].calls;
        if (calls)
            layer_tell("%" PRIu64 " call%s of %s %s not followed: findings may be missed", calls,
                       calls == 1 ? "" : "s", lost[i].name, calls == 1 ? "was" : "were");
        else
            layer_tell("the program asked for %s, whose calls are not followed: findings may be "
                       "missed",
                       lost[i].name);
    }
    for (size_t i = 0; i < LAYER_LOSSES; i++) {
        const uint64_t count = atomic_load(&layer.losses[i]);
        if (count)
            layer_tell("%" PRIu64 " commands were not followed in full %s: findings may be missed",
                       count, reasons[i]);
    }
}

// The life of the runtime.

static int has_weir(struct dl_phdr_info *info, size_t size, void *user)
{
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    return slash && strcmp(slash + 1, "weir_opencl.so") == 0;
}

// Modules lie beside this library, unless the environment says otherwise.
bool layer_directory(char *directory, size_t size)
{
    Dl_info info;
    if (!dladdr((void *)&layer, &info) || !info.dli_fname)
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    return slash && snprintf(directory, size, "%.*s", (int)(slash - info.dli_fname),
                             info.dli_fname) < (int)size;
}

static bool take_setting(void *user, const char *section, const struct weir_setting *setting)
{
    if (setting && strcmp(section, "check") == 0 && strcmp(setting->key->name, "verify") == 0)
        layer.verify = setting->integer;
    return true;
}

static bool open_runtime(void)
{
    char directory[PATH_MAX];
    const char *path = getenv("WEIR_MODULE_PATH");
    if (!path && layer_directory(directory, sizeof directory))
        path = directory;
    const struct weir_open_params *params =
        WEIR_PARAMS(weir_open, .backend = "null", .module_path = path);
    if (weir_open(params, &layer.runtime) < 0 ||
        weir_device_open(layer.runtime, NULL, &layer.device) < 0 ||
        weir_queue_create(layer.device, WEIR_PARAMS(weir_queue, .label = "the program"),
                          &layer.host) < 0)
        return false;
    if (weir_check_is_on(layer.runtime))
        WEIR_IGNORE(weir_inspect_settings(params, take_setting, NULL));
    return true;
}

static void close_runtime(void)
{
    weir_queue_destroy(&layer.host);
    if ((layer.device && weir_device_close(&layer.device) < 0) || weir_close(&layer.runtime) < 0)
        layer_tell("%s", weir_last_error_text());
}

// At exit, and when the loader is closed. Calls that come later go to the driver alone.
static void finish(void)
{
    layer_lock();
    const bool was_on = atomic_exchange(&layer.on, false);
    if (was_on) {
        verify_finish();
        objects_finish();
        close_runtime();
        tell_lost();
    }
    layer_unlock();
}

// A child has no runtime: Weir works in no process that was forked from one with it.
static void leave_child(void)
{
    atomic_store(&layer.on, false);
    pthread_mutex_init(&layer.lock, NULL);
}

static void start_once(void)
{
    const char *times = getenv("WEIR_OPENCL_TIMES");
    if (dl_iterate_phdr(has_weir, NULL))
        return;
    if (!open_runtime()) {
        layer_tell("nothing is followed: %s", weir_last_error_text());
        close_runtime();
        return;
    }
    layer.times = times && strcmp(times, "1") == 0;
    place_init();
    pthread_atfork(NULL, NULL, leave_child);
    atexit(finish);
    atomic_store_explicit(&layer.on, true, memory_order_release);
}

void layer_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_once);
}

// The entry points. The table of a newer loader is longer, and has what it has of the driver's.

enum {
    ENTRIES_MOST = 512
};

static union {
    cl_icd_dispatch dispatch;
    void (*entries[ENTRIES_MOST])(void);
} target, table;

WEIR_API cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t size, void *value,
                                           size_t *out_size)
{
    static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    static const char own_name[] = "weir";
    const void *from = name == CL_LAYER_API_VERSION ? (const void *)&version : own_name;
    const size_t wanted = name == CL_LAYER_API_VERSION ? sizeof version : sizeof own_name;
    if ((name != CL_LAYER_API_VERSION && name != CL_LAYER_NAME) || (value && size < wanted) ||
        (!value && !out_size))
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, from, wanted);
    if (out_size)
        *out_size = wanted;
    return CL_SUCCESS;
}

WEIR_API cl_int CL_API_CALL clInitLayer(cl_uint count, const cl_icd_dispatch *driver,
                                        cl_uint *out_count, const cl_icd_dispatch **out_table)
{
    if (!driver || !out_count || !out_table || count < LAYER_ENTRY_COUNT)
        return CL_INVALID_VALUE;
    const cl_uint kept = count < ENTRIES_MOST ? count : ENTRIES_MOST;
    memcpy(&target, driver, kept * sizeof target.entries[0]);
    table = target;
    layer.driver = &target.dispatch;
#define FOLLOW(name, ...) table.dispatch.name = layer_##name;
    LAYER_ENTRIES(LAYER_NOTHING, FOLLOW, FOLLOW, FOLLOW)
#undef FOLLOW
    *out_count = kept;
    *out_table = &table.dispatch;
    return CL_SUCCESS;
}

// What loaders of 2025 and later ask for. How a layer is to end does not matter: this one stays until the process ends.
WEIR_API cl_int CL_API_CALL clInitLayerWithProperties(cl_uint count, const cl_icd_dispatch *driver,
                                                      cl_uint *out_count,
                                                      const cl_icd_dispatch **out_table,
                                                      const cl_properties *properties);

cl_int CL_API_CALL clInitLayerWithProperties(cl_uint count, const cl_icd_dispatch *driver,
                                             cl_uint *out_count, const cl_icd_dispatch **out_table,
                                             const cl_properties *properties)
{
    return clInitLayer(count, driver, out_count, out_table);
}
