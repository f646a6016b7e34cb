// The module's header: its name, its keys, and its ops table, which is a table of contents of the
// other files. weir_module_query only returns static data; everything that can fail belongs in
// `open`.
#include "backends/null/null.h"

// A real backend opens its vendor library here. If that fails, its error names, for the user, the
// missing file and the package that contains it.
weir_status null_open(struct weir_link *link, const struct weir_setting *const *settings,
                      void **out_state)
{
    struct null_module *module = link->host->allocate(sizeof *module);
    if (!module)
        return weir_host_no_memory(link->host, "the null backend");

    module->device_count = (size_t)settings[NULL_KEY_DEVICES]->integer;
    *out_state = module;
    return WEIR_OK;
}

// Vendor libraries are never closed: they start threads and install exit handlers.
void null_close(const struct weir_link *link)
{
    link->host->release(link->state);
}

static const struct weir_key null_keys[NULL_KEY_COUNT] = {
    [NULL_KEY_DEVICES] =
        WEIR_INTEGER_KEY("devices", "1", 0, 16, "How many devices the backend lists."),
};

#define ENTRY(slot) .slot = null_##slot,
static const struct weir_module_ops null_ops = {NULL_SLOTS(ENTRY)};

static const char *const about[] = {
    "summary",
    "Buffers in host memory, work that is done at submit, and no kernels: for tests, and to "
    "measure "
    "the library alone.",
    NULL,
};

WEIR_MODULE(WEIR_MODULE_BACKEND, "null", WEIR_VERSION_STRING, WEIR_MODULE_OPS(null_ops),
            .keys = null_keys, .key_count = NULL_KEY_COUNT, .about = about)
