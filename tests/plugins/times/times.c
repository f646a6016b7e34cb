// A plugin for tests that only requests times of operations, so that queues
// keep them for the tests to fetch.
#include <weir/module/module.h>

static const struct weir_module_ops times_ops = {
    .open = NULL,
};

WEIR_MODULE(WEIR_MODULE_PLUGIN, "times", WEIR_VERSION_STRING, WEIR_MODULE_OPS(times_ops),
            .wants = WEIR_MODULE_WANTS_TIMES)
