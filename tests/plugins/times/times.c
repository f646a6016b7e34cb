// A plugin for tests that only requests times of operations, so that queues
// keep them for the tests to fetch.
#include <weir/module/module.h>

static const struct weir_module_ops times_ops = {
    .open = NULL,
};

static const struct weir_module times_module = {
    .abi = WEIR_MODULE_ABI,
    .struct_size = sizeof times_module,
    .kind = WEIR_MODULE_PLUGIN,
    .name = "times",
    .version = WEIR_VERSION_STRING,
    .build_id = "",
    .sanitizer = WEIR_MODULE_SANITIZER,
    .slot_count = WEIR_MODULE_SLOT_COUNT,
    .operation_kinds = WEIR_OPERATION_KINDS,
    .ops = &times_ops,
    .wants = WEIR_MODULE_WANTS_TIMES,
};

const struct weir_module *weir_module_query(uint32_t host_abi, const struct weir_host *host)
{
    (void)host_abi;
    (void)host;
    return &times_module;
}
