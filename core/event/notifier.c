// Drivers have no common way to signal a descriptor, so a thread looks at the
// watched events in turn and sleeps between, 20 µs to 1 ms. It holds a duplicate
// of each descriptor, so the user may close theirs at any time.
#include "core/event/notifier.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "core/object/device.h"
#include "core/support/error.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

struct watch {
    struct watch *next;
    struct weir_event event;
    int fd;
};

struct weir__notifier {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct watch *list;
    bool stop;
};

static void signal_fd(int fd)
{
    const uint64_t one = 1;
    // Fails only if nobody holds the descriptor any more or it is signalled.
    ssize_t written = write(fd, &one, sizeof one);
    (void)written;
}

static void release(struct watch *watch)
{
    signal_fd(watch->fd);
    close(watch->fd);
    weir__release(watch);
}

// Called with the lock held. Returns whether any event completed.
static bool look(struct weir__notifier *notifier)
{
    bool any = false;
    for (struct watch **at = &notifier->list; *at;) {
        struct watch *watch = *at;
        if (weir_event_query(watch->event) == WEIR_NOT_READY) {
            at = &watch->next;
            continue;
        }
        *at = watch->next;
        release(watch);
        any = true;
    }
    return any;
}

static void *run(void *argument)
{
    struct weir__notifier *notifier = argument;
    uint64_t pause_ns = 20000;

    pthread_mutex_lock(&notifier->lock);
    while (!notifier->stop) {
        if (!notifier->list) {
            pthread_cond_wait(&notifier->changed, &notifier->lock);
            pause_ns = 20000;
            continue;
        }
        if (look(notifier)) {
            pause_ns = 20000;
            continue;
        }
        pthread_mutex_unlock(&notifier->lock);
        weir_clock_sleep_ns(pause_ns);
        pause_ns = pause_ns < 500000 ? 2 * pause_ns : 1000000;
        pthread_mutex_lock(&notifier->lock);
    }
    pthread_mutex_unlock(&notifier->lock);
    return NULL;
}

// Called with the device's notifier lock held.
static struct weir__notifier *create(void)
{
    struct weir__notifier *notifier = weir__allocate(sizeof *notifier);
    if (!notifier)
        return NULL;
    pthread_mutex_init(&notifier->lock, NULL);
    pthread_cond_init(&notifier->changed, NULL);
    if (weir__thread_create(&notifier->thread, run, notifier))
        return notifier;
    pthread_cond_destroy(&notifier->changed);
    pthread_mutex_destroy(&notifier->lock);
    weir__release(notifier);
    return NULL;
}

static weir_status watch_event(weir_device *device, struct weir_event event, int fd)
{
    struct watch *watch = weir__allocate(sizeof *watch);
    int copy = watch ? dup(fd) : -1;

    pthread_mutex_lock(&device->notifier_lock);
    if (copy >= 0 && !device->notifier)
        device->notifier = create();
    struct weir__notifier *notifier = copy >= 0 ? device->notifier : NULL;
    pthread_mutex_unlock(&device->notifier_lock);
    if (!notifier) {
        if (copy >= 0)
            close(copy);
        weir__release(watch);
        return weir__fail(WEIR_ERROR_SYSTEM, "raise the limit of open files or threads",
                          "weir_event_fd: no memory, descriptor or thread to watch the event with");
    }
    *watch = (struct watch){.event = event, .fd = copy};
    pthread_mutex_lock(&notifier->lock);
    watch->next = notifier->list;
    notifier->list = watch;
    pthread_cond_signal(&notifier->changed);
    pthread_mutex_unlock(&notifier->lock);
    return WEIR_OK;
}

weir_status weir__notifier_add(weir_device *device, struct weir_event event, int *out_fd)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return weir__fail(WEIR_ERROR_SYSTEM, "raise the limit of open files",
                          "weir_event_fd: eventfd: %s", strerror(errno));
    if (!device) {
        signal_fd(fd);
    } else {
        weir_status status = watch_event(device, event, fd);
        if (status < 0) {
            close(fd);
            return status;
        }
    }
    *out_fd = fd;
    return WEIR_OK;
}

void weir__notifier_destroy(weir_device *device)
{
    struct weir__notifier *notifier = device->notifier;
    if (!notifier)
        return;
    pthread_mutex_lock(&notifier->lock);
    notifier->stop = true;
    pthread_cond_signal(&notifier->changed);
    pthread_mutex_unlock(&notifier->lock);
    pthread_join(notifier->thread, NULL);
    for (struct watch *watch = notifier->list; watch;) {
        struct watch *next = watch->next;
        release(watch);
        watch = next;
    }
    pthread_cond_destroy(&notifier->changed);
    pthread_mutex_destroy(&notifier->lock);
    weir__release(notifier);
    device->notifier = NULL;
}
