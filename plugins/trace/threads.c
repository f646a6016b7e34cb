// One key of the process gives each thread its list, which has an entry for each link that the
// thread has called; usually there is one. An entry is shared by the link and the thread, and freed
// with the later of the two.
#define _GNU_SOURCE // syscall

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "plugins/trace/parts.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;

static void release_user(struct trace_thread *thread)
{
    if (atomic_fetch_sub_explicit(&thread->users, 1, memory_order_acq_rel) == 1)
        free(thread);
}

// The thread ends.
static void release_all(void *list)
{
    for (struct trace_thread *thread = list; thread;) {
        struct trace_thread *next = thread->next_of_own;
        release_user(thread);
        thread = next;
    }
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, release_all) == 0;
}

// Removes the entries of closed links from the calling thread's list.
static struct trace_thread *prune(struct trace_thread *list)
{
    for (struct trace_thread **at = &list; *at;) {
        struct trace_thread *thread = *at;
        if (!atomic_load_explicit(&thread->closed, memory_order_acquire)) {
            at = &thread->next_of_own;
            continue;
        }
        *at = thread->next_of_own;
        release_user(thread);
    }
    return list;
}

static struct trace_thread *make(struct trace *trace, struct trace_thread *list)
{
    list = prune(list);
    struct trace_thread *thread = calloc(1, sizeof *thread);
    if (thread) {
        atomic_init(&thread->users, 2);
        thread->trace = trace;
        thread->id = (uint64_t)syscall(SYS_gettid);
        thread->next_of_own = list;
        list = thread;
        if (trace->clock)
            prctl(PR_GET_NAME, thread->name);
        if (strncmp(thread->name, "weir/", 5) == 0)
            thread->name[4] = '\0'; // what follows is not the same in two runs
        pthread_mutex_lock(&trace->lists);
        if (trace->clock)
            thread->id = ++trace->thread_count;
        thread->next = trace->threads;
        trace->threads = thread;
        pthread_mutex_unlock(&trace->lists);
    }
    pthread_setspecific(key, list);
    return thread;
}

struct trace_thread *trace_thread_self(struct trace *trace)
{
    pthread_once(&once, make_key);
    if (!has_key)
        return NULL;
    struct trace_thread *list = pthread_getspecific(key);
    // A new link may have the address of a closed one.
    for (struct trace_thread *thread = list; thread; thread = thread->next_of_own)
        if (thread->trace == trace && !atomic_load_explicit(&thread->closed, memory_order_relaxed))
            return thread;
    return make(trace, list);
}

// Takes it out of the link's list, in which newer ones may stand before it by now.
static void delist(struct trace *trace, const struct trace_thread *thread)
{
    pthread_mutex_lock(&trace->lists);
    struct trace_thread **at = &trace->threads;
    while (*at != thread)
        at = &(*at)->next;
    *at = thread->next;
    pthread_mutex_unlock(&trace->lists);
}

void trace_threads_sweep(struct trace *trace, struct trace_thread *list)
{
    for (struct trace_thread *thread = list; thread;) {
        struct trace_thread *next = thread->next;
        if (atomic_load_explicit(&thread->users, memory_order_acquire) == 1 &&
            atomic_load_explicit(&thread->head, memory_order_relaxed) ==
                atomic_load_explicit(&thread->tail, memory_order_relaxed)) {
            delist(trace, thread);
            trace->spans_dropped += atomic_load_explicit(&thread->dropped, memory_order_relaxed);
            release_user(thread);
        }
        thread = next;
    }
}

void trace_threads_finish(struct trace *trace)
{
    while (trace->threads) {
        struct trace_thread *thread = trace->threads;
        trace->threads = thread->next;
        atomic_store_explicit(&thread->closed, true, memory_order_release);
        release_user(thread);
    }
}

// Copies as much as fits, and returns its length without the zero. snprintf() takes ten
// times as long.
static size_t copy_text(char *to, size_t size, const char *from)
{
    size_t length = 0;
    while (length + 1 < size && from[length]) {
        to[length] = from[length];
        length++;
    }
    to[length] = '\0';
    return length;
}

static bool is_full(const struct trace_thread *thread, unsigned head)
{
    return head - atomic_load_explicit(&thread->tail, memory_order_acquire) == TRACE_SPANS;
}

void trace_thread_span(struct trace_thread *thread, enum weir_trace_span_kind kind,
                       const char *name, uint64_t number, uint64_t begin_ns)
{
    const unsigned head = atomic_load_explicit(&thread->head, memory_order_relaxed);
    if (thread->trace->clock && is_full(thread, head))
        trace_drain_now(thread->trace);
    if (is_full(thread, head)) {
        atomic_fetch_add_explicit(&thread->dropped, 1, memory_order_relaxed);
        return;
    }
    struct trace_span_entry *span = &thread->spans[head % TRACE_SPANS];
    span->kind = kind;
    span->number = number;
    span->begin_ns = begin_ns;
    span->end_ns = trace_now_ns(thread->trace);
    copy_text(span->name, sizeof span->name, name);
    atomic_store_explicit(&thread->head, head + 1, memory_order_release);
}

// Regions.

static const char *digits_of(uint64_t number, char text[24])
{
    char *at = text + 23;
    *at = '\0';
    do
        *--at = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    return at;
}

static void append(struct trace_thread *thread, const char *text)
{
    thread->path_length += copy_text(thread->path + thread->path_length,
                                     sizeof thread->path - thread->path_length, text);
}

// Appends "/name number" to the path; what does not fit is cut.
static void extend(struct trace_thread *thread, const char *name, uint64_t number)
{
    char digits[24];
    if (thread->path_length > 0)
        append(thread, "/");
    append(thread, name);
    if (number == WEIR_NO_NUMBER)
        return;
    append(thread, " ");
    append(thread, digits_of(number, digits));
}

static void push(struct trace_thread *thread, const char *name, uint64_t number)
{
    if (thread->depth++ >= TRACE_DEPTH)
        return;
    struct trace_level *level = &thread->levels[thread->depth - 1];
    level->begin_ns = trace_now_ns(thread->trace);
    level->number = number;
    level->length = thread->path_length;
    copy_text(level->name, sizeof level->name, name);
    extend(thread, level->name, number);
}

static void pop(struct trace_thread *thread)
{
    if (thread->depth == 0)
        return;
    if (thread->depth-- > TRACE_DEPTH)
        return;
    const struct trace_level *level = &thread->levels[thread->depth];
    trace_thread_span(thread, WEIR_TRACE_REGION, level->name, level->number, level->begin_ns);
    thread->path_length = level->length;
    thread->path[thread->path_length] = '\0';
}

void trace_region(const struct weir_link *link, const char *name, uint64_t number)
{
    struct trace_thread *thread = trace_thread_self(trace_of(link));
    if (thread && name)
        push(thread, name, number);
    else if (thread)
        pop(thread);
    link->next->ops->region(link->next, name, number);
}

// Waits of the host.

static void note_wait(const struct weir_link *link, const char *name, uint64_t begin_ns)
{
    struct trace_thread *thread = trace_thread_self(trace_of(link));
    if (thread)
        trace_thread_span(thread, WEIR_TRACE_SYNC, name, WEIR_NO_NUMBER, begin_ns);
}

weir_status trace_event_wait(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                             uint64_t timeout_ns)
{
    const uint64_t begin_ns = trace_now_ns(trace_of(link));
    weir_status status = link->next->ops->event_wait(link->next, object, sequence, timeout_ns);
    note_wait(link, "weir_event_sync", begin_ns);
    return status;
}

weir_status trace_queue_finish(const struct weir_link *link, weir_queue *object)
{
    const uint64_t begin_ns = trace_now_ns(trace_of(link));
    weir_status status = link->next->ops->queue_finish(link->next, object);
    note_wait(link, "weir_queue_recover", begin_ns);
    return status;
}
