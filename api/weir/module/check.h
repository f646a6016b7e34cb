// What the plugin `check` offers to programs through weir_runtime_extension(), under the name
// WEIR_CHECK_EXTENSION. The functions of <weir/check.h> call these.
#ifndef WEIR_MODULE_CHECK_H
#define WEIR_MODULE_CHECK_H

#include <weir/check.h>

#define WEIR_CHECK_EXTENSION "check"

// Valid until the runtime is closed. `user` is the first argument of each function.
//
// Threads: safe.
struct weir_check_extension {
    size_t struct_size;
    void *user;
    size_t (*count)(void *user);
    size_t (*error_count)(void *user);
    // False past the last one. Writes at most `size` bytes.
    bool (*get)(void *user, size_t index, struct weir_check_finding *out_finding, size_t size);
    void (*release)(void *user, const void *key);
    void (*acquire)(void *user, const void *key);
};

#endif
