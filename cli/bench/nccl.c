// See the header.
#include "cli/bench/nccl.h"

#include <stdio.h>
#include <string.h>
#include <weir/kit/symbols.h>

#define LIBRARY "libnccl.so.2"
#define OLDEST 21800

static const struct weir_kit_symbol symbols[] = {
#define SYMBOL(name, parameters) {#name, offsetof(struct bench_nccl, name), false},
    BENCH_NCCL_CALLS(SYMBOL)
#undef SYMBOL
        {"ncclGetErrorString", offsetof(struct bench_nccl, ncclGetErrorString), false},
};

static const struct {
    const char *name;
    int version;
    size_t offset;
} driver_calls[] = {
#define CALL(version, name, parameters) {#name, version, offsetof(struct bench_driver, name)},
    BENCH_DRIVER_CALLS(CALL)
#undef CALL
};

static bool load_driver(struct bench_driver *cu, char *message, size_t size)
{
    static const char *const name = "libcuda.so.1";
    static const struct weir_kit_symbol symbol = {"cuGetProcAddress_v2", 0, false};
    struct {
        int (*get)(const char *, void **, int, uint64_t, void *);
    } bootstrap;
    void *library = weir_kit_library_open(&name, 1, message, size);
    if (!library || !weir_kit_symbols_load(library, name, &symbol, 1, &bootstrap, message, size))
        return false;
    for (size_t i = 0; i < sizeof driver_calls / sizeof *driver_calls; i++) {
        void *address = NULL;
        if (bootstrap.get(driver_calls[i].name, &address, driver_calls[i].version, 0, NULL) != 0 ||
            !address) {
            snprintf(message, size, "the driver lacks %s", driver_calls[i].name);
            return false;
        }
        // ISO C has no conversion from an object pointer to a function pointer.
        memcpy((char *)cu + driver_calls[i].offset, &address, sizeof address);
    }
    return true;
}

// The linker gives the one that is loaded already, by its name.
bool bench_nccl_load(struct bench_nccl *nccl, const char *file, char *message, size_t size)
{
    const char *name = file ? file : LIBRARY;
    void *library = load_driver(&nccl->cu, message, size)
                        ? weir_kit_library_open(&name, 1, message, size)
                        : NULL;
    if (!library || !weir_kit_symbols_load(library, name, symbols, sizeof symbols / sizeof *symbols,
                                           nccl, message, size))
        return false;
    const int error = nccl->ncclGetVersion(&nccl->version);
    snprintf(nccl->name, sizeof nccl->name, "NCCL %d.%d.%d", nccl->version / 10000,
             nccl->version / 100 % 100, nccl->version % 100);
    if (error != 0)
        snprintf(message, size, "ncclGetVersion fails: %s", nccl->ncclGetErrorString(error));
    else if (nccl->version < OLDEST)
        snprintf(message, size, "%s is older than 2.18", nccl->name);
    return error == 0 && nccl->version >= OLDEST;
}

bool bench_nccl_make_id(const struct bench_nccl *nccl, uint32_t rank, struct bench_nccl_id *id,
                        char *message, size_t size)
{
    const int error = rank == 0 ? nccl->ncclGetUniqueId(id) : 0;
    if (error != 0)
        snprintf(message, size, "ncclGetUniqueId fails: %s", nccl->ncclGetErrorString(error));
    return error == 0;
}

weir_status bench_nccl_share(weir_device *device, weir_queue *queue, weir_comm *comm,
                             struct bench_nccl_id *id)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .label = "bench/id",
                                              .size = sizeof *id};
    weir_buffer *buffer = NULL;
    weir_status status = weir_buffer_create(device, &params, &buffer);
    if (status == WEIR_OK)
        status = weir_upload(queue, buffer, 0, id, sizeof *id);
    if (status == WEIR_OK)
        status = weir_queue_broadcast(queue, comm, buffer, 0, buffer, 0, sizeof *id, WEIR_U8, 0);
    if (status == WEIR_OK)
        status = weir_download(queue, id, buffer, 0, sizeof *id);
    weir_buffer_destroy(&buffer);
    return status;
}

static weir_status refuse(weir_status status, const char *call, int code, const char *name)
{
    struct weir_error detail = {.status = status, .native_code = code};
    snprintf(detail.message, sizeof detail.message, "a raw call was refused");
    snprintf(detail.native_call, sizeof detail.native_call, "%s", call);
    snprintf(detail.native_name, sizeof detail.native_name, "%s", name);
    return weir_error_set(&detail);
}

weir_status bench_nccl_refuse(const struct bench_nccl *nccl, const char *call, int code)
{
    return refuse(WEIR_ERROR_COMM, call, code, nccl->ncclGetErrorString(code));
}

weir_status bench_driver_refuse(const char *call, int code)
{
    return refuse(WEIR_ERROR_DEVICE, call, code, "");
}
