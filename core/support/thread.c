// Core's data about the calling thread, and the classes of its locks.
#include "core/support/thread.h"

#include "core/support/debug.h"
#include "core/support/locks.h"

// Driver threads and locks do not survive a fork, so in the child every call
// returns an error instead of hanging.

atomic_bool weir__forked;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local struct weir__call_scope inside;

static void in_child(void)
{
    atomic_store(&weir__forked, true);
    atomic_fetch_or(&weir__unusual, WEIR__UNUSUAL_FORKED);
}

static void watch(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

void weir__watch_fork(void)
{
    pthread_once(&once, watch);
}

void weir__report_forked(const char *function, const char *file, int line)
{
    weir__report_at(
        file, line, NULL, WEIR_ERROR_FORKED,
        "open a runtime in the child before the parent opens one, or use exec",
        "%.*s: this process was forked after Weir was used; drivers do not survive that",
        weir__name_length(function), function);
}

bool weir__in_host_call(void)
{
    return inside.host || inside.native;
}

bool weir__in_native_call(void)
{
    return inside.native;
}

weir_status weir__refuse_host_call(const char *function, const char *file, int line,
                                   const char *label, const char *remedy)
{
    weir__report_at(file, line, label, WEIR_ERROR_INVALID, remedy,
                    "%.*s: a host call may submit work, and may not wait",
                    weir__name_length(function), function);
    weir__tell();
    return WEIR_ERROR_INVALID;
}

static struct weir__call_scope enter(struct weir__call_scope scope)
{
    const struct weir__call_scope outer = inside;
    inside = scope;
    return outer;
}

struct weir__call_scope weir__enter_host_call(void)
{
    return enter((struct weir__call_scope){.host = true});
}

struct weir__call_scope weir__enter_native_call(void)
{
    return enter((struct weir__call_scope){.host = inside.host, .native = true});
}

void weir__leave_call(struct weir__call_scope outer)
{
    inside = outer;
}

const struct weir_lock_kind weir__locks[] = {
#define WEIR__LOCK(name, text) {text, WEIR__LOCK_##name},
    WEIR__LOCKS(WEIR__LOCK)
#undef WEIR__LOCK
};
