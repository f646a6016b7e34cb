// NCCL is a large library that most programs do not need, so it is opened when the first communicator
// is created. Opened earlier, it would also be the one that a framework gets that brings its own.
#include "backends/cuda/nccl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <weir/kit/symbols.h>

#define LIBRARY "libnccl.so.2"

static const struct weir_kit_symbol table[] = {
#define NCCL_SYMBOL(result, name, parameters) {#name, offsetof(struct nccl_symbols, name), false},
    NCCL_SYMBOLS(NCCL_SYMBOL)
#undef NCCL_SYMBOL
};

struct cu_nccl *cu_nccl_create(const struct weir_host *host, const char *setting)
{
    struct cu_nccl *nccl = host->allocate(sizeof *nccl);
    if (!nccl)
        return NULL;
    pthread_mutex_init(&nccl->lock, NULL);
    nccl->setting = setting;
    return nccl;
}

void cu_nccl_destroy(struct cu_nccl *nccl, const struct weir_host *host)
{
    if (!nccl)
        return;
    pthread_mutex_destroy(&nccl->lock);
    host->release(nccl);
}

bool cu_nccl_is_off(const struct cu_nccl *nccl)
{
    return strcmp(nccl->setting, "off") == 0;
}

bool cu_nccl_is_used(const struct cu_nccl *nccl)
{
    return atomic_load_explicit(&nccl->comms, memory_order_relaxed) > 0;
}

// The one that the program has loaded already wins, unless the setting is a path.
static void *open_library(const struct cu_nccl *nccl, char *reason)
{
    const bool named = strcmp(nccl->setting, "auto") != 0;
    const char *name = named ? nccl->setting : LIBRARY;
    void *handle = named ? NULL : dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD);
    return handle ? handle : weir_kit_library_open(&name, 1, reason, CU_NCCL_REASON);
}

static bool take(struct cu_nccl *nccl, void *handle, char *reason)
{
    int version = 0;
    if (!weir_kit_symbols_load(handle, LIBRARY, table, sizeof table / sizeof *table, &nccl->api,
                               reason, CU_NCCL_REASON))
        return false;
    if (nccl->api.ncclGetVersion(&version) != ncclSuccess) {
        snprintf(reason, CU_NCCL_REASON, "ncclGetVersion fails");
        return false;
    }
    if (version < NCCL_OLDEST) {
        snprintf(reason, CU_NCCL_REASON, "NCCL %d.%d.%d is older than 2.18", version / 10000,
                 version / 100 % 100, version % 100);
        return false;
    }
    nccl->version = version;
    snprintf(nccl->engine, sizeof nccl->engine, "NCCL %d.%d.%d", version / 10000,
             version / 100 % 100, version % 100);
    return true;
}

// A library that is refused is let go; one that is taken stays to the end of the process.
static bool load(struct cu_nccl *nccl, char *reason)
{
    void *handle = open_library(nccl, reason);
    if (!handle)
        return false;
    if (take(nccl, handle, reason))
        return true;
    dlclose(handle);
    return false;
}

bool cu_nccl_load(struct cu_nccl *nccl, char reason[CU_NCCL_REASON])
{
    pthread_mutex_lock(&nccl->lock);
    if (!nccl->loaded)
        nccl->loaded = load(nccl, reason);
    const bool loaded = nccl->loaded;
    pthread_mutex_unlock(&nccl->lock);
    return loaded;
}
