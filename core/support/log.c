// The log callback. Function, user pointer and level change together, so they are in one
// structure guarded by a lock; there is also a copy of the level, so that a message that is
// not logged costs one load.
#include "core/support/log.h"
#include "core/support/locks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static struct weir_lock lock = WEIR_LOCK_INITIALIZER(&weir__locks[WEIR__LOCK_LOG]);
static struct {
    weir_log_function function;
    void *user;
} target;
static atomic_int limit;

void weir_log_set(weir_log_function function, void *user, weir_log_level level)
{
    weir_lock_take(&lock);
    target.function = function;
    target.user = user;
    atomic_store(&limit, function ? (int)level : 0);
    weir_lock_release(&lock);
}

// Most callbacks print the message, which contains texts of users and of files. If memory runs
// out it is truncated.
static void call_escaped(weir_log_function function, void *user, weir_log_level level,
                         const char *source, const char *message)
{
    char truncated[1024];
    char *whole = weir_text_escaped(message, "\n\t");
    if (!whole)
        weir_text_escape(truncated, sizeof truncated, message, "\n\t");
    function(user, level, source, whole ? whole : truncated);
    free(whole);
}

void weir__log(weir_log_level level, const char *source, const char *message)
{
    if ((int)level > atomic_load_explicit(&limit, memory_order_relaxed))
        return;
    weir_lock_take(&lock);
    weir_log_function function = target.function;
    void *user = target.user;
    weir_lock_release(&lock);
    if (function && weir_text_is_clean(message, "\n\t"))
        function(user, level, source, message);
    else if (function)
        call_escaped(function, user, level, source, message);
}
