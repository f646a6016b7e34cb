// A plugin for tests that only requests times of operations, so that queues
// keep them for the tests to fetch.
#include "tests/plugins/plugin.h"

static const struct weir_module_ops times_ops = {
    .open = NULL,
};

TEST_PLUGIN("times", times_ops, .wants = WEIR_MODULE_WANTS_TIMES)
