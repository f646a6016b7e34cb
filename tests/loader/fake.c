// A module with one defect, or none. The BUILD file compiles it once for each
// fake, with different FAKE_ macros. Slots that must not be called end the
// program, so that a loader that calls or reads too much fails its test.
#include <stdlib.h>
#include <string.h>

#include <weir/module/module.h>

#ifndef FAKE_ABI
#define FAKE_ABI WEIR_MODULE_ABI
#endif
#ifndef FAKE_SIZE
#define FAKE_SIZE sizeof(struct weir_module)
#endif
#ifndef FAKE_KIND
#define FAKE_KIND WEIR_MODULE_BACKEND
#endif
#ifndef FAKE_SANITIZER
#define FAKE_SANITIZER WEIR_MODULE_SANITIZER
#endif
#ifndef FAKE_SLOTS
#define FAKE_SLOTS WEIR_MODULE_SLOT_COUNT
#endif
#ifndef FAKE_REFUSES
#define FAKE_REFUSES 0
#endif
static void never(void)
{
    abort();
}

#ifdef FAKE_UNRESOLVED
void weir_fake_absent_function(void);
#endif

static weir_status fake_open(struct weir_link *link, const struct weir_setting *const *settings,
                             void **out_state)
{
#ifdef FAKE_UNRESOLVED
    weir_fake_absent_function();
#endif
#ifdef FAKE_FAILS
    const struct weir_error error = {
        .status = WEIR_ERROR_MODULE,
        .message = "libabsent.so.1: cannot open shared object file",
        .remedy = "install the package libabsent1",
    };
    return link->host->error(&error, sizeof error);
#else
    return WEIR_OK;
#endif
}

static void fake_close(const struct weir_link *link)
{
}

#ifdef FAKE_NO_DEVICES
static size_t no_devices(const struct weir_link *link)
{
    return 0;
}
#endif

static struct weir_module_ops ops = {.open = fake_open, .close = fake_close};
static const struct weir_key keys[] = {WEIR_INTEGER_KEY("depth", "1", 0, 9, "Depth.")};
static const struct weir_module module = {
    .abi = FAKE_ABI,
    .struct_size = (uint32_t)(FAKE_SIZE),
    .kind = FAKE_KIND,
    .name = FAKE_NAME,
    .version = "9.8.7",
    .sanitizer = FAKE_SANITIZER,
    .keys = keys,
    .key_count = sizeof keys / sizeof keys[0],
    .key_size = sizeof keys[0],
    .slot_count = FAKE_SLOTS,
    .operation_kinds = WEIR_OPERATION_KINDS,
    .ops = &ops,
};

// The slots of a backend are all set; those of a plugin only past its slot
// count, where the loader must not look.
static void fill_slots(void)
{
    size_t first = module.kind == WEIR_MODULE_BACKEND ? 2 : module.slot_count;

    for (size_t i = first; i < WEIR_MODULE_SLOT_COUNT; i++) {
        void (*function)(void) = never;
        memcpy((char *)&ops + i * sizeof function, &function, sizeof function);
    }
#ifdef FAKE_NO_DEVICES
    ops.device_count = no_devices;
#endif
#ifdef FAKE_WITHOUT
    ops.FAKE_WITHOUT = NULL;
#endif
}

#ifndef FAKE_SYMBOL
#define FAKE_SYMBOL weir_module_query
#endif
WEIR_API const struct weir_module *FAKE_SYMBOL(uint32_t host_abi, const struct weir_host *host);

const struct weir_module *FAKE_SYMBOL(uint32_t host_abi, const struct weir_host *host)
{
    fill_slots();
    return FAKE_REFUSES ? NULL : &module;
}
