// A copy, a launch, a record and a wait, as `weir bench submit` repeats them, on a device whose
// context is current. One of the last repetitions writes to `step` before and after each call;
// run.sh finds these writes in the trace of all accesses.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <weir/interop.h>
#include <weir/weir.h>

#include "kernels/conformance/conformance.h"

enum {
    BATCHES = 8,
    BATCH = 100,
    COUNTED = 50, // of the last batch
    LAUNCHED = 64,
    BYTES = 4096
};

static volatile int step;

struct sequence {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue, *other;
    weir_kernel *increment;
    weir_buffer *memory, *pinned;
};

static weir_status make_buffer(struct sequence *s, weir_placement placement,
                               weir_buffer **out_buffer)
{
    return weir_buffer_create(s->device,
                              WEIR_PARAMS(weir_buffer, .size = BYTES, .placement = placement),
                              out_buffer);
}

static weir_status open_all(struct sequence *s)
{
    weir_status status;
    if ((status =
             weir_open(WEIR_PARAMS(weir_open, .config_path = "", .backend = "cuda", .plugins = ""),
                       &s->runtime)) < 0 ||
        (status = weir_device_open(s->runtime, NULL, &s->device)) ||
        (status = weir_queue_create(s->device, NULL, &s->queue)) ||
        (status = weir_queue_create(s->device, NULL, &s->other)) ||
        (status = weir_kernel_load(s->device, &conformance_kernels, "increment", &s->increment)) ||
        (status = make_buffer(s, WEIR_PLACE_DEVICE, &s->memory)))
        return status;
    return make_buffer(s, WEIR_PLACE_HOST, &s->pinned);
}

static void close_all(struct sequence *s)
{
    weir_buffer_destroy(&s->pinned);
    weir_buffer_destroy(&s->memory);
    weir_kernel_destroy(&s->increment);
    weir_queue_destroy(&s->other);
    weir_queue_destroy(&s->queue);
    WEIR_IGNORE(weir_device_close(&s->device));
    WEIR_IGNORE(weir_close(&s->runtime));
}

static bool make_context_current(weir_device *device)
{
    struct weir_native_device native;
    int (*look_up)(const char *, void **, int, uint64_t, void *) = NULL;
    int (*set)(void *) = NULL;
    void *library = dlopen("libcuda.so.1", RTLD_LAZY);
    void *address = library ? dlsym(library, "cuGetProcAddress_v2") : NULL;
    memcpy(&look_up, &address, sizeof look_up);
    if (!look_up || look_up("cuCtxSetCurrent", &address, 4000, 0, NULL) != 0)
        return false;
    memcpy(&set, &address, sizeof set);
    return set && weir_device_get_native(device, &native) == WEIR_OK && set(native.context) == 0;
}

static weir_status run_once(struct sequence *s, bool counted)
{
    const struct weir_extent grid = weir_dim(1, 1, 1), block = weir_dim(LAUNCHED, 1, 1);
    struct weir_event event;
    weir_status status;
    if (counted)
        step = 1;
    status = weir_queue_copy(s->queue, s->memory, 0, s->pinned, 0, BYTES);
    if (counted)
        step = 2;
    if (status == WEIR_OK)
        status = weir_queue_launch(s->queue, s->increment, grid, block,
                                   weir_inout(s->memory, 0, BYTES), 1u, (uint32_t)LAUNCHED);
    if (counted)
        step = 3;
    if (status == WEIR_OK)
        status = weir_queue_record(s->queue, &event);
    if (counted)
        step = 4;
    if (status == WEIR_OK)
        status = weir_queue_wait(s->other, event);
    if (counted)
        step = 5;
    return status;
}

static weir_status run_all(struct sequence *s)
{
    weir_status status = WEIR_OK;
    for (int batch = 0; batch < BATCHES && status == WEIR_OK; batch++) {
        for (int i = 0; i < BATCH && status == WEIR_OK; i++)
            status = run_once(s, batch == BATCHES - 1 && i == COUNTED);
        if (status == WEIR_OK)
            status = weir_queue_sync(s->queue, WEIR_FOREVER);
        if (status == WEIR_OK)
            status = weir_queue_sync(s->other, WEIR_FOREVER);
    }
    return status;
}

// The address of `step`, and the program's own mappings, which name the addresses of the trace.
static void print_places(void)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    printf("step %p\n", (void *)&step);
    while (maps && fgets(line, sizeof line, maps))
        fputs(line, stdout);
    if (maps)
        fclose(maps);
}

int main(void)
{
    struct sequence s = {0};
    const bool fine =
        open_all(&s) == WEIR_OK && make_context_current(s.device) && run_all(&s) == WEIR_OK;
    print_places();
    close_all(&s);
    if (!fine)
        fprintf(stderr, "sequence: not run: %s\n", weir_last_error_text());
    return !fine;
}
