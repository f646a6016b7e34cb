// What the sources of the patterns share: their errors, which are the thread's error detail, where users find all
// other errors too; the place of a creation; and their locks. Errors are for pipelines too.
#ifndef WEIR_PATTERNS_SHARED_H
#define WEIR_PATTERNS_SHARED_H

#include <pthread.h>
#include <stdio.h>

#include <weir/buffer.h>
#include <weir/check.h>
#include <weir/device.h>
#include <weir/queue.h>
#include <weir/status.h>

#include "base/clock.h"
#include "base/try.h"
#include "base/wait.h"

// A pattern's label, or what stands for it where none was given; and for a message the label of an object.
static inline const char *weir__pattern_label(const char *label, const char *otherwise)
{
    return label && label[0] ? label : otherwise;
}

#define WEIR__PATTERN_SHOWN(label) weir__pattern_label(label, "(no label)")

// A pattern keeps as much of its label as struct weir_error shows.
#define WEIR__PATTERN_LABEL_SIZE 64

// Keeps a pattern's label, or `otherwise`, and returns what was kept.
static inline const char *weir__pattern_keep(char kept[WEIR__PATTERN_LABEL_SIZE], const char *label,
                                             const char *otherwise)
{
    snprintf(kept, WEIR__PATTERN_LABEL_SIZE, "%s", weir__pattern_label(label, otherwise));
    return kept;
}

// Sets the thread's error detail, for the object with that label, and returns
// `status`. `remedy` may be NULL.
weir_status weir__pattern_fail(const char *label, weir_status status, const char *remedy,
                               const char *format, ...) WEIR_PRINTF(4, 5);

// The same with WEIR_ERROR_INVALID.
#define weir__pattern_refuse(label, ...) weir__pattern_fail(label, WEIR_ERROR_INVALID, __VA_ARGS__)

// Refuses the handle `name` of that function, which is NULL.
weir_status weir__pattern_refuse_null(const char *function, const char *name);

// Fails with WEIR_ERROR_OUT_OF_MEMORY; `what` there is no memory for.
weir_status weir__pattern_no_memory(const char *label, const char *what);

// Reads a user's params as <base/sized.h> says, with its refusal as the thread's detail.
// `function` is the one that was called, `type` the structure's name.
weir_status weir__pattern_params(const char *function, const char *type, const void *params,
                                 void *known, size_t size);

// The same of an item of an array; `given_size` is the distance between its items.
weir_status weir__pattern_item(const char *function, const char *type, const void *item,
                               size_t given_size, void *known, size_t size);

// Clears an old detail, so that it is not mistaken for the detail of the callback
// that is called next.
void weir__pattern_forget(void);

// Turns a callback's return value into an error with a detail: the callback's own if
// it left one.
weir_status weir__pattern_callback_failed(const char *label, const char *what, weir_status status);

// The first failure of several calls, with its detail, whatever is called after it. Zeroed: none so far.
struct weir__pattern_first {
    weir_status status; // before a failure that of a call that succeeded with another than WEIR_OK
    struct weir_error error;
};

void weir__pattern_note(struct weir__pattern_first *first, weir_status status);

// Returns its status, with its detail as the thread's.
weir_status weir__pattern_first(const struct weir__pattern_first *first);

// The remedy where a thread of the library's cannot be started.
#define WEIR__THREADS_REMEDY "raise the limit on threads (ulimit -u)"

// The line of the program that creates a pattern, which what the pattern creates gets too.
struct weir__place {
    const char *file; // NULL: unknown
    int line;
};

// Returns `status`. An error of the call without a place gets this one.
weir_status weir__pattern_placed(weir_status status, const char *file, int line);

// Creates a queue of a pattern. The format gives its label.
weir_status weir__pattern_queue(weir_device *device, int32_t priority, bool timing,
                                struct weir__place place, weir_queue **out_queue,
                                const char *format, ...) WEIR_PRINTF(6, 7);

// A pattern's lock. What its threads hand over under it is in order for the plugin check too, which sees
// the program's locks only.
struct weir__pattern_lock {
    pthread_mutex_t mutex;
    weir_runtime *checked; // NULL: without the plugin
};

// Works with that device from now on. What the calling thread has done comes before what others do with
// the lock.
static inline void weir__pattern_lock_use(struct weir__pattern_lock *lock,
                                          const weir_device *device)
{
    weir_runtime *runtime = device ? weir_device_runtime(device) : NULL;
    lock->checked = runtime && weir_check_is_on(runtime) ? runtime : NULL;
    if (lock->checked)
        weir_check_release(lock->checked, lock);
}

static inline void weir__pattern_lock_take(struct weir__pattern_lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
    if (lock->checked)
        weir_check_acquire(lock->checked, lock);
}

static inline void weir__pattern_lock_release(struct weir__pattern_lock *lock)
{
    if (lock->checked)
        weir_check_release(lock->checked, lock);
    pthread_mutex_unlock(&lock->mutex);
}

// As weir_wait_until().
static inline int weir__pattern_lock_wait(struct weir__pattern_lock *lock,
                                          pthread_cond_t *condition, uint64_t deadline_ns)
{
    if (lock->checked)
        weir_check_release(lock->checked, lock);
    const int error = weir_wait_until(condition, &lock->mutex, deadline_ns);
    if (lock->checked)
        weir_check_acquire(lock->checked, lock);
    return error;
}

#endif
