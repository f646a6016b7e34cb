// Which NCCL the backend `cuda` would open. It needs neither a GPU nor the driver to be asked.
// NOLINTNEXTLINE(bugprone-reserved-identifier): for dladdr()
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "cli/doctor/comm.h"
#include "core/module/loader.h"
#include "core/runtime/runtime.h"

#define LEAST_VERSION 21800
#define REMEDY "install libnccl2, or name the file by `nccl` of [cuda] or WEIR_CUDA_NCCL"

// 22809 is 2.28.9.
static void tell_version(struct doctor *doctor, void *library)
{
    int (*get_version)(int *);
    int version = 0;
    Dl_info where = {.dli_fname = "?"};
    void *symbol = dlsym(library, "ncclGetVersion");
    memcpy(&get_version, &symbol, sizeof symbol);
    if (!symbol || get_version(&version) != 0) {
        doctor_add(doctor, DOCTOR_NOTE, "nccl", NULL, "the library is none of NCCL's; " REMEDY);
        return;
    }
    dladdr(symbol, &where);
    doctor_add(doctor, version < LEAST_VERSION ? DOCTOR_NOTE : DOCTOR_OK, "nccl", NULL,
               "NCCL %d.%d.%d, %s%s", version / 10000, version / 100 % 100, version % 100,
               where.dli_fname,
               version < LEAST_VERSION ? "; it is too old: 2.18 or newer is needed" : "");
}

static void tell_library(struct doctor *doctor, const char *setting)
{
    const char *name = strcmp(setting, "auto") == 0 ? "libnccl.so.2" : setting;
    if (strcmp(setting, "off") == 0) {
        doctor_add(doctor, DOCTOR_OK, "nccl", NULL, "not used: `nccl` of [cuda] is off");
        return;
    }
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        doctor_add(doctor, DOCTOR_NOTE, "nccl", NULL, "%s; " REMEDY, dlerror());
        return;
    }
    tell_version(doctor, library);
    dlclose(library);
}

static void ask(struct doctor *doctor, weir_runtime *runtime, const struct weir_module *module)
{
    const struct weir_setting *const *settings = weir__runtime_take_module(runtime, module);
    if (!settings) {
        doctor_add_error(doctor, "nccl", "correct what it names");
        return;
    }
    for (uint32_t i = 0; i < module->key_count; i++)
        if (strcmp(module->keys[i].name, "nccl") == 0)
            tell_library(doctor, settings[i]->text);
    weir__runtime_release_section(settings);
}

void doctor_comm_nccl(struct doctor *doctor)
{
    struct weir__loaded loaded;
    weir_runtime *runtime = NULL;
    if (doctor_comm_open(doctor, "local", &runtime) < 0)
        return; // told by the checks of the configuration
    if (weir__loader_load("cuda", WEIR_MODULE_BACKEND,
                          weir__config_weir(runtime->config, "module_path")->text, &weir__host,
                          NULL, &loaded) == WEIR_OK)
        ask(doctor, runtime, loaded.module);
    else
        doctor_add(doctor, DOCTOR_NOTE, "nccl", NULL, "the backend cuda cannot be loaded: %s",
                   weir_last_error()->message);
    (void)weir_close(&runtime);
}
