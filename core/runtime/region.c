// Regions only exist for plugins that use them, so nothing is stored here.
#include <weir/region.h>

#include "core/runtime/runtime.h"
#include "core/support/debug.h"
#include "core/support/thread.h"

// Also in a child process after a fork, where nothing may be used.
static bool is_wanted(const weir_runtime *runtime)
{
    return WEIR_IS_ALIVE(runtime) && runtime->chain.regions && !atomic_load(&weir__forked);
}

void weir_region_push(weir_runtime *runtime, const char *name, uint64_t number)
{
    if (!is_wanted(runtime))
        return;
    const struct weir_link *first = weir__chain_first(&runtime->chain);
    first->ops->region(first, name ? name : "", number);
}

void weir_region_pop(weir_runtime *runtime)
{
    if (!is_wanted(runtime))
        return;
    const struct weir_link *first = weir__chain_first(&runtime->chain);
    first->ops->region(first, NULL, WEIR_NO_NUMBER);
}
