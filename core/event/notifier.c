// Drivers have no common way to signal a descriptor, so a thread checks the watched events in
// turn and sleeps in between, 20 µs to 1 ms. It holds a duplicate of each descriptor, so the
// user may close theirs at any time.
#include "core/event/notifier.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "core/event/event.h"
#include "core/object/device.h"
#include "core/support/error.h"
#include "core/support/locks.h"
#include "core/support/memory.h"

#define PAUSE_MIN_NS UINT64_C(20000)
#define PAUSE_MAX_NS UINT64_C(1000000)

struct watch {
    struct watch *next;
    struct weir_event event;
    int fd;
};

struct weir__notifier {
    struct weir_thread thread;
    struct weir_lock lock;
    pthread_cond_t changed;
    struct watch *list;
    bool stop;
};

static void signal_fd(int fd)
{
    const uint64_t one = 1;
    // Fails only if all other descriptors of it are closed or it is signalled.
    ssize_t written = write(fd, &one, sizeof one);
    (void)written;
}

static void release(struct watch *watch)
{
    signal_fd(watch->fd);
    close(watch->fd);
    weir__release(watch);
}

static struct watch *take_list(struct weir__notifier *notifier)
{
    struct watch *list = notifier->list;
    notifier->list = NULL;
    return list;
}

static void put_back(struct weir__notifier *notifier, struct watch *list)
{
    struct watch **end = &list;
    while (*end)
        end = &(*end)->next;
    *end = notifier->list;
    notifier->list = list;
}

// Removes and releases watches whose events are complete. Returns whether there were any.
static bool look(struct watch **list)
{
    const struct weir__host_caller caller = {.flags = WEIR_HOST_NOTE_INTERNAL};
    bool any = false;
    for (struct watch **at = list; *at;) {
        struct watch *watch = *at;
        if (weir__event_query("weir_event_fd", watch->event, &caller) == WEIR_NOT_READY) {
            at = &watch->next;
            continue;
        }
        *at = watch->next;
        release(watch);
        any = true;
    }
    return any;
}

// Checks once and sleeps for `pause_ns` if nothing is complete. Called with the lock held,
// which is released meanwhile: a query to a driver may take long.
static bool look_or_sleep(struct weir__notifier *notifier, uint64_t pause_ns)
{
    struct watch *list = take_list(notifier);
    weir_lock_release(&notifier->lock);
    const bool any = look(&list);
    if (!any)
        weir_clock_sleep_ns(pause_ns);
    weir_lock_take(&notifier->lock);
    put_back(notifier, list);
    return any;
}

static void run(void *argument)
{
    struct weir__notifier *notifier = argument;
    uint64_t pause_ns = PAUSE_MIN_NS;

    weir_lock_take(&notifier->lock);
    while (!notifier->stop) {
        if (!notifier->list) {
            weir_lock_wait(&notifier->lock, &notifier->changed);
            pause_ns = PAUSE_MIN_NS;
        } else if (look_or_sleep(notifier, pause_ns)) {
            pause_ns = PAUSE_MIN_NS;
        } else {
            pause_ns = pause_ns < PAUSE_MAX_NS / 2 ? 2 * pause_ns : PAUSE_MAX_NS;
        }
    }
    weir_lock_release(&notifier->lock);
}

// Called with the device's notifier lock held.
static struct weir__notifier *create(void)
{
    struct weir__notifier *notifier = weir__allocate(sizeof *notifier);
    if (!notifier)
        return NULL;
    weir_lock_init(&notifier->lock, &weir__locks[WEIR__LOCK_NOTIFIER]);
    pthread_cond_init(&notifier->changed, NULL);
    if (weir_thread_start(&notifier->thread, run, notifier) == 0)
        return notifier;
    pthread_cond_destroy(&notifier->changed);
    weir_lock_finish(&notifier->lock);
    weir__release(notifier);
    return NULL;
}

static weir_status watch_event(weir_device *device, struct weir_event event, int fd)
{
    struct watch *watch = weir__allocate(sizeof *watch);
    int copy = watch ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;

    weir_lock_take(&device->notifier_lock);
    if (copy >= 0 && !device->notifier)
        device->notifier = create();
    struct weir__notifier *notifier = copy >= 0 ? device->notifier : NULL;
    weir_lock_release(&device->notifier_lock);
    if (!notifier) {
        if (copy >= 0)
            close(copy);
        weir__release(watch);
        return weir__fail(WEIR_ERROR_SYSTEM, "raise the limit of open files or threads",
                          "weir_event_fd: no memory, descriptor or thread to watch the event with");
    }
    *watch = (struct watch){.event = event, .fd = copy};
    weir_lock_take(&notifier->lock);
    watch->next = notifier->list;
    notifier->list = watch;
    pthread_cond_signal(&notifier->changed);
    weir_lock_release(&notifier->lock);
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
    weir_lock_take(&notifier->lock);
    notifier->stop = true;
    pthread_cond_signal(&notifier->changed);
    weir_lock_release(&notifier->lock);
    weir_thread_join(&notifier->thread);
    for (struct watch *watch = notifier->list; watch;) {
        struct watch *next = watch->next;
        release(watch);
        watch = next;
    }
    pthread_cond_destroy(&notifier->changed);
    weir_lock_finish(&notifier->lock);
    weir__release(notifier);
    device->notifier = NULL;
}
