// In place of the allocator and of the creation of threads: WEIR_TEST_STARVED names those that
// fail, "memory", "threads", or "later" for memory after two allocations that succeed.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);

static int lacks(const char *what)
{
    const char *named = getenv("WEIR_TEST_STARVED");
    return named && strcmp(named, what) == 0;
}

static int lacks_later(void)
{
    static int allocations;
    allocations = lacks("later") ? allocations + 1 : 0;
    return allocations > 2;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return lacks("memory") || lacks_later() ? NULL : __real_calloc(count, size);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument)
{
    return lacks("threads") ? EAGAIN : __real_pthread_create(thread, attributes, run, argument);
}
