// What calls look at first: whether the process is a forked child, in which they are refused, and debug mode.
//
// The debug mode is `debug = 1` in [weir]. It finds objects that are used after they were destroyed,
// that are destroyed twice, or that a cast made of another type, and wrapped memory that the program
// has unmapped.
//
// It begins when a runtime asks for it, and then stays for the process. All objects are noted from
// then on, by address: a pointer is looked up, never followed, before a call uses it. A destroyed
// object's memory is kept for some time, so that no other object gets its address.
//
// Calls pay nothing for it while it is off: the check for a forked process reads one word, and
// the mode is a bit of that word.
//
// Threads: safe.
#ifndef WEIR_CORE_SUPPORT_DEBUG_H
#define WEIR_CORE_SUPPORT_DEBUG_H

#include <stdatomic.h>
#include <weir/common.h>
#include <weir/launch.h>

#include "base/cold.h"
#include "core/support/error.h"

// Objects that were destroyed and whose memory is kept; then the oldest is freed.
#define WEIR__DEBUG_KEPT 4096

// Not 0: the process is a forked child, or in debug mode.
extern atomic_uint weir__unusual;
enum {
    WEIR__UNUSUAL_FORKED = 1,
    WEIR__UNUSUAL_DEBUG = 2,
};

static inline bool weir__is_unusual(void)
{
    return atomic_load_explicit(&weir__unusual, memory_order_relaxed) != 0;
}

static inline bool weir__is_forked(void)
{
    return atomic_load_explicit(&weir__unusual, memory_order_relaxed) & WEIR__UNUSUAL_FORKED;
}

static inline bool weir__debugging(void)
{
    return atomic_load_explicit(&weir__unusual, memory_order_relaxed) & WEIR__UNUSUAL_DEBUG;
}

// Refuses the call, made at file:line, in a forked child.
#define WEIR_REFUSE_FORK_AT(file, line) WEIR_REFUSE_FORK_OF(__func__, file, line)
#define WEIR_REFUSE_FORK_OF(function, file, line)                                  \
    do {                                                                           \
        if (weir__is_forked())                                                     \
            return (weir__report_forked(function, file, line), WEIR_ERROR_FORKED); \
    } while (0)
void weir__report_forked(const char *function, const char *file, int line);

// The kind of an object is the name of its type: "queue".
#define WEIR__KIND_OF(object)                                                        \
    _Generic((object), WEIR__KIND(runtime, "runtime"), WEIR__KIND(device, "device"), \
             WEIR__KIND(queue, "queue"), WEIR__KIND(buffer, "buffer"),               \
             WEIR__KIND(program, "program"), WEIR__KIND(kernel, "kernel"),           \
             WEIR__KIND(graph, "graph"), WEIR__KIND(pool, "pool"),                   \
             WEIR__KIND(comm, "communicator"))
#define WEIR__KIND(type, name) weir_##type * : name, const weir_##type * : name

// An object that a call was given, and what the call's source names it.
struct weir__use {
    const void *object; // NULL: not looked at
    const char *kind;
    const char *name;
};

#define WEIR__USE(given)                      \
    {                                         \
        (given), WEIR__KIND_OF(given), #given \
    }
#define WEIR__USES_1(a) WEIR__USE(a)
#define WEIR__USES_2(a, b) WEIR__USE(a), WEIR__USE(b)
#define WEIR__USES_3(a, b, c) WEIR__USE(a), WEIR__USE(b), WEIR__USE(c)
#define WEIR__USES_OF(a, b, c, count, ...) WEIR__USES_##count
#define WEIR__USES(...) WEIR__USES_OF(__VA_ARGS__, 3, 2, 1, 0)(__VA_ARGS__)

WEIR_COLD weir_status weir__enter(const char *function, const char *file, int line,
                                  const struct weir__use *uses, size_t count);

// At the beginning of a call, once its outputs are set: refuses it in a forked child, and in debug
// mode if one of its one to three objects is none, or not any more.
#define WEIR_LOOK_AT(file, line, ...) WEIR_ENTER_OF(__func__, file, line, __VA_ARGS__)
#define WEIR_ENTER_OF(function, file, line, ...)                                        \
    do {                                                                                \
        if (weir__is_unusual()) {                                                       \
            const struct weir__use uses_[] = {WEIR__USES(__VA_ARGS__)};                 \
            const weir_status refused_ =                                                \
                weir__enter(function, file, line, uses_, sizeof uses_ / sizeof *uses_); \
            if (refused_ < 0)                                                           \
                return refused_;                                                        \
        }                                                                               \
    } while (0)

// The same of a call that needs the first of them.
#define WEIR_ENTER(...) WEIR_ENTER_AT(NULL, 0, __VA_ARGS__)
#define WEIR_ENTER_AT(file, line, ...)                                            \
    do {                                                                          \
        WEIR_LOOK_AT(file, line, __VA_ARGS__);                                    \
        if (!(WEIR__FIRST(__VA_ARGS__, 0)))                                       \
            return (weir__report_broken(file, line, NULL, __func__,               \
                                        WEIR__TEXT(WEIR__FIRST(__VA_ARGS__, 0))), \
                    WEIR_ERROR_INVALID);                                          \
    } while (0)

// The same of a call that makes an object, which `*out` is when the call ends well, and else NULL.
#define WEIR_ENTER_FOR(file, line, out, ...)    \
    do {                                        \
        WEIR_REQUIRE_AT(file, line, NULL, out); \
        *(out) = NULL;                          \
        WEIR_ENTER_AT(file, line, __VA_ARGS__); \
    } while (0)

#define WEIR__FIRST(first, ...) first
#define WEIR__TEXT(...) WEIR__TEXT_OF(__VA_ARGS__)
#define WEIR__TEXT_OF(...) #__VA_ARGS__

// The same for the buffers among a launch's arguments, in debug mode.
WEIR_COLD weir_status weir__enter_arguments(const char *function, const char *file, int line,
                                            const struct weir_argument *arguments, size_t count);

#define WEIR_ENTER_ARGUMENTS(file, line, arguments, count)                                     \
    do {                                                                                       \
        const weir_status refused_ =                                                           \
            weir__is_unusual() ? weir__enter_arguments(__func__, file, line, arguments, count) \
                               : WEIR_OK;                                                      \
        if (refused_ < 0)                                                                      \
            return refused_;                                                                   \
    } while (0)

// Whether a getter may read the object: false for NULL, and in debug mode for what
// WEIR_ENTER() refuses, which is then the thread's error and in the log.
#define WEIR_IS_ALIVE(given) \
    ((given) &&              \
     (!weir__debugging() || weir__is_alive(__func__, &(struct weir__use)WEIR__USE(given))))
WEIR_COLD bool weir__is_alive(const char *function, const struct weir__use *use);

// Whether a destroy function may destroy the object: not in a forked child, and in debug mode not
// if WEIR_ENTER() would refuse it, which is then the thread's error and in the log.
#define WEIR_MAY_END(given, file, line) \
    (!weir__is_unusual() ||             \
     weir__may_end(__func__, file, line, &(struct weir__use)WEIR__USE(given)))
WEIR_COLD bool weir__may_end(const char *function, const char *file, int line,
                             const struct weir__use *use);

// A runtime was opened, in debug mode or not.
void weir__debug_opened(bool debug);

// What follows does nothing outside debug mode.

// An object exists from now on. `kind` is a constant.
void weir__debug_begin(const void *object, const char *kind, const char *label);

// The line that created it.
void weir__debug_place(const void *object, const char *file, int line);

// It was destroyed at that line; NULL: not known. A line that is known stays.
void weir__debug_end(const void *object, const char *file, int line);

// It ends; with what it belongs to, unless it was destroyed before.
void weir__debug_went(const void *object);

// `block`, which contains the object, is to be freed. True: it is kept, and freed later.
bool weir__debug_keep(const void *object, void *block);

// The buffer wraps memory of the program's.
void weir__debug_wraps(const void *buffer, const void *memory, size_t size);

// Refuses the call if memory that a buffer wraps, which is not destroyed yet, is not mapped any more.
weir_status weir__debug_check_memory(const char *function, const char *file, int line);

// Refuses the call if memory of the program's, which it gives or is to get, may not be used: it is not mapped,
// or the address sanitizer knows that it was freed. `name` is the call's word for it.
WEIR_COLD weir_status weir__debug_check_host(const char *function, const char *file, int line,
                                             const char *name, const void *memory, size_t size);

// The log is told if the buffer, which was destroyed while a graph uses it or its device works, wraps
// memory.
void weir__debug_deferred(const void *buffer, bool in_graph);

#endif
