// The log callback. Function, user pointer and level change together, so they
// sit in one structure behind a lock; the level is also kept apart, so that a
// message nobody wants costs one load.
#include "core/support/log.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    weir_log_function function;
    void *user;
} target;
static atomic_int limit;

void weir_log_set(weir_log_function function, void *user, weir_log_level level)
{
    pthread_mutex_lock(&lock);
    target.function = function;
    target.user = user;
    atomic_store(&limit, function ? (int)level : 0);
    pthread_mutex_unlock(&lock);
}

void weir__log(weir_log_level level, const char *source, const char *message)
{
    if ((int)level > atomic_load_explicit(&limit, memory_order_relaxed))
        return;
    pthread_mutex_lock(&lock);
    weir_log_function function = target.function;
    void *user = target.user;
    pthread_mutex_unlock(&lock);
    if (function)
        function(user, level, source, message);
}
