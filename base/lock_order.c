// The locks that a thread holds are a short list of kinds. They may be released in any order.
#include "base/lock.h"

#ifdef WEIR_CHECK_LOCKS

#include <stdio.h>
#include <stdlib.h>

#define HELD_MAX 16

static _Thread_local const struct weir_lock_kind *held[HELD_MAX];
static _Thread_local unsigned held_count;

static void refuse(const char *task, const struct weir_lock_kind *holder)
{
    fprintf(stderr, "lock order: %s while the thread holds %s\n", task, holder->name);
    abort();
}

void weir_lock_order_enter(const struct weir_lock_kind *kind)
{
    char task[128];
    for (unsigned i = 0; i < held_count; i++) {
        if (held[i]->rank < kind->rank)
            continue;
        snprintf(task, sizeof task, "%s is taken", kind->name);
        refuse(task, held[i]);
    }
    if (held_count == HELD_MAX)
        refuse("too many locks are taken", held[0]);
    held[held_count++] = kind;
}

void weir_lock_order_leave(const struct weir_lock_kind *kind)
{
    for (unsigned i = held_count; i-- > 0;) {
        if (held[i] != kind)
            continue;
        held[i] = held[--held_count];
        return;
    }
}

void weir_lock_order_expect_none(const char *task)
{
    if (held_count > 0)
        refuse(task, held[0]);
}

#else

// ISO C has no empty source file.
typedef int weir_lock_order_is_not_checked;

#endif
