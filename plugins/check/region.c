// Regions: the innermost one of a thread is part of what the thread submits. A thread keeps its
// regions for one link at a time, the last one that it called.
#include <string.h>

#include "base/thread_local.h"
#include "plugins/check/parts.h"

enum {
    DEPTH = 8 // deeper ones count as the last of these
};

struct level {
    const char *name;
    uint64_t number;
};

static WEIR_MODULE_THREAD_LOCAL struct {
    const struct check *check;
    uint32_t depth; // may exceed DEPTH
    struct level levels[DEPTH];
} regions;

void check_region_fill(const struct check *check, struct check_origin *origin)
{
    if (regions.check != check || regions.depth == 0)
        return;
    const struct level *level =
        &regions.levels[regions.depth < DEPTH ? regions.depth - 1 : DEPTH - 1];
    origin->region = level->name;
    origin->region_number = level->number;
}

static void enter(struct check *check, const char *name, uint64_t number)
{
    check_lock(check);
    check->has_regions = true;
    const char *kept = check_name_keep(check, name);
    check_unlock(check);
    if (regions.depth < DEPTH)
        regions.levels[regions.depth] = (struct level){kept, number};
    regions.depth++;
}

void check_region(const struct weir_link *link, const char *name, uint64_t number)
{
    struct check *check = check_of(link);
    if (regions.check != check)
        regions.depth = 0;
    regions.check = check;
    if (name)
        enter(check, name, number);
    else if (regions.depth > 0)
        regions.depth--;
    link->next->ops->region(link->next, name, number);
}
