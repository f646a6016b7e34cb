// Preloaded, it makes one lock in sixteen of any library late by up to 200 us, so that windows between two locks of a
// driver are open for longer.
#define _GNU_SOURCE // RTLD_NEXT
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "tests/support/numbers.h"

__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static int (*real)(pthread_mutex_t *);
    static _Thread_local uint32_t state;
    if (!real) {
        void *found = dlsym(RTLD_NEXT, "pthread_mutex_lock");
        memcpy(&real, &found, sizeof real);
    }
    if (state == 0)
        state = (uint32_t)(uintptr_t)&state | 1;
    if (test_next(&state) % 16 == 0)
        usleep(state % 200);
    return real(mutex);
}
