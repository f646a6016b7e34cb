// A set of descriptors, and the handlers of fork(). The lock is held while one is opened or closed, so that no
// fork comes between that and the set.
//
// NOLINTNEXTLINE(bugprone-reserved-identifier): for accept4()
#define _GNU_SOURCE
#include "transports/local/descriptors.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define WORD_BITS 64u

static pthread_mutex_t descriptors_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int handlers_error;
static uint64_t *words; // a bit for each descriptor
static size_t word_count;
static size_t held;
static unsigned forks;

static void before_fork(void)
{
    pthread_mutex_lock(&descriptors_lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&descriptors_lock);
}

// Nothing but close(): other threads of the parent may have held the allocator's locks.
static void in_child(void)
{
    for (size_t i = 0; i < word_count; i++) {
        for (unsigned bit = 0; words[i] && bit < WORD_BITS; bit++) {
            if (words[i] >> bit & 1)
                close((int)(i * WORD_BITS + bit));
        }
        words[i] = 0;
    }
    held = 0;
    forks++;
    pthread_mutex_unlock(&descriptors_lock);
}

static void set_handlers(void)
{
    handlers_error = pthread_atfork(before_fork, after_fork, in_child);
}

static bool has_room(size_t word)
{
    if (word < word_count)
        return true;
    uint64_t *more = realloc(words, (word + 1) * sizeof *more);
    if (!more)
        return false;
    memset(more + word_count, 0, (word + 1 - word_count) * sizeof *more);
    words = more;
    word_count = word + 1;
    return true;
}

// The descriptor, or -1 with errno. The lock is held.
static int keep(int descriptor)
{
    if (descriptor < 0)
        return -1;
    const size_t word = (size_t)descriptor / WORD_BITS;
    if (handlers_error || !has_room(word)) {
        close(descriptor);
        errno = ENOMEM;
        return -1;
    }
    words[word] |= UINT64_C(1) << (unsigned)descriptor % WORD_BITS;
    held++;
    return descriptor;
}

static void begin(void)
{
    pthread_once(&once, set_handlers);
    pthread_mutex_lock(&descriptors_lock);
}

static int end(int descriptor)
{
    const int error = errno;
    pthread_mutex_unlock(&descriptors_lock);
    errno = error;
    return descriptor;
}

int local_descriptor_socket(int family)
{
    begin();
    return end(keep(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
}

int local_descriptor_accept(int listener, struct sockaddr *address, socklen_t *size)
{
    begin();
    return end(keep(accept4(listener, address, size, SOCK_CLOEXEC | SOCK_NONBLOCK)));
}

int local_descriptor_event(void)
{
    begin();
    return end(keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
}

// Only changed where there is no other thread.
unsigned local_descriptor_forks(void)
{
    return forks;
}

// The set goes with its last one: nothing else would free it when the module is closed.
void local_descriptor_close(int descriptor)
{
    const size_t word = (size_t)descriptor / WORD_BITS;
    const uint64_t bit = UINT64_C(1) << (unsigned)descriptor % WORD_BITS;
    pthread_mutex_lock(&descriptors_lock);
    close(descriptor);
    if (word < word_count && words[word] & bit) {
        words[word] &= ~bit;
        held--;
    }
    if (held == 0) {
        free(words);
        words = NULL;
        word_count = 0;
    }
    pthread_mutex_unlock(&descriptors_lock);
}
