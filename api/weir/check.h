// Missing waits, found: the findings of the plugin `check` as data, for tests and programs.
//
// The plugin (docs/check.md) knows what each operation reads and writes, and what orders the
// operations. Two uses of the same bytes, at least one of them a write, that nothing orders are a
// finding, with the line of each and the call to add. `weir check PROGRAM` prints the findings of
// a program. A test asks for them itself:
//
//     const struct weir_open_params params = {.struct_size = sizeof params, .plugins = "check"};
//     weir_open(&params, &runtime);
//     ... work, until it is synchronised ...
//     WEIR_EXPECT_NO_RACES(runtime);
//
// A pair of lines is one finding, which counts how often it was seen. Findings stay until
// weir_close(), in the order in which they were found.
//
// Threads: all functions are safe, also while others submit.
#ifndef WEIR_CHECK_H
#define WEIR_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include <weir/buffer.h>
#include <weir/common.h>
#include <weir/status.h>

// The one table of kinds: X(name, value, id, meaning). Of two operations the second is the one that was submitted
// later. Kinds from 100 on are hints: nothing is wrong, but something is needless or slow.
#define WEIR_CHECK_KIND_TABLE(X)                                                                   \
    X(WEIR_CHECK_READ_AFTER_WRITE, 1, "read-after-write",                                          \
      "An operation reads bytes that another queue writes, unordered.")                            \
    X(WEIR_CHECK_WRITE_AFTER_READ, 2, "write-after-read",                                          \
      "An operation writes bytes that another queue reads, unordered.")                            \
    X(WEIR_CHECK_WRITE_AFTER_WRITE, 3, "write-after-write",                                        \
      "Two queues write the same bytes, unordered.")                                               \
    X(WEIR_CHECK_HOST_READ, 4, "host-read", "The host reads bytes that a queue may still write.")  \
    X(WEIR_CHECK_HOST_WRITE, 5, "host-write", "The host writes bytes that a queue may still use.") \
    X(WEIR_CHECK_OPEN_ACCESS, 6, "open-access",                                                    \
      "An operation uses bytes that the host has not ended its access to.")                        \
    X(WEIR_CHECK_AFTER_FREE, 7, "after-free",                                                      \
      "Memory of a pool is used after its free, or freed while it is used.")                       \
    X(WEIR_CHECK_UNWRITTEN, 8, "unwritten", "An operation reads bytes that nothing has written.")  \
    X(WEIR_CHECK_OUTSIDE, 9, "outside",                                                            \
      "A kernel uses bytes outside the range that its launch declares.")                           \
    X(WEIR_CHECK_IMPLIED_WAIT, 100, "implied-wait",                                                \
      "A queue waits for work after which it comes already.")                                      \
    X(WEIR_CHECK_NEEDLESS_WAIT, 101, "needless-wait",                                              \
      "A queue waits for work that no use of memory depends on.")                                  \
    X(WEIR_CHECK_FALSE_SHARING, 102, "false-sharing",                                              \
      "A queue waits for another that uses different bytes of a buffer.")                          \
    X(WEIR_CHECK_NEEDLESS_SYNC, 103, "needless-sync",                                              \
      "The host waits for work that no use of memory depends on.")

typedef enum weir_check_kind {
#define WEIR_CHECK_KIND_ENTRY(name, value, id, meaning) name = value,
    WEIR_CHECK_KIND_TABLE(WEIR_CHECK_KIND_ENTRY)
#undef WEIR_CHECK_KIND_ENTRY
} weir_check_kind;

#define WEIR_CHECK_FIRST_HINT 100

// The id of a kind ("read-after-write"), or "unknown".
WEIR_API const char *weir_check_kind_name(weir_check_kind kind);

// One of the two uses of memory in a finding. Texts are never NULL. Closed.
struct weir_check_use {
    // "copy", "launch", "pool free", …; "host access", "sync"; "" if there is none
    const char *operation;
    weir_access access;
    const char *queue;      // its label; "" for the host
    uint64_t queue_id;      // as in struct weir_event; 0 for the host
    uint64_t sequence;      // the operation's in its queue, from 1; 0 for the host
    const char *kernel;     // of a launch; the name of a note; else ""
    const char *file;       // the line of the program that submitted it; "" if not known
    int line;               // 0 if not known
    size_t offset;          // the bytes that it uses, from the first to the last
    size_t size;            // 0 if it uses none
    const char *region;     // the innermost region of its thread, else ""
    uint64_t region_number; // WEIR_NO_NUMBER if there is none
    bool assumed;           // a note's guess: the bytes may not be used, or only be read
};

struct weir_check_finding {
    weir_check_kind kind;
    uint64_t count;     // how often the two lines were found
    const char *buffer; // its label; "" if the finding is about none
    uint64_t buffer_id;
    size_t offset; // the bytes in question, those of the first time
    size_t size;
    struct weir_check_use first; // the one that was submitted earlier
    struct weir_check_use second;
    const char *message;     // what is wrong, one sentence
    const char *remedy;      // the calls to add, and where
    const char *suppression; // the reason in the file of suppressions; NULL if there is none
};

// Whether the plugin is in the runtime's chain. Without it nothing is found.
WEIR_API bool weir_check_is_on(const weir_runtime *runtime);

// The number of findings so far, with hints and with those that are suppressed.
WEIR_API size_t weir_check_count(const weir_runtime *runtime);

// The number of findings that are neither hints nor suppressed.
WEIR_API size_t weir_check_error_count(const weir_runtime *runtime);

// Stores finding `index`. Its texts are valid until weir_close().
//
// Errors: WEIR_ERROR_NOT_FOUND past the last one, and without the plugin.
WEIR_CALL weir_status weir_check_get_sized(const weir_runtime *runtime, size_t index,
                                           struct weir_check_finding *out_finding, size_t size);
#define weir_check_get(runtime, index, out_finding) \
    weir_check_get_sized(runtime, index, out_finding, sizeof(struct weir_check_finding))

// For `threads = strict` in [check], where only what the program tells orders its threads: what
// the calling thread has done comes before what a thread does after it acquires the same key. A
// mutex is a natural key: acquire after locking it, release before unlocking. A release in the
// function of a host call includes the call; an acquire there is for what the function submits. Both
// do nothing with `threads = one`, and without the plugin.
WEIR_API void weir_check_release(weir_runtime *runtime, const void *key);
WEIR_API void weir_check_acquire(weir_runtime *runtime, const void *key);

// What WEIR_EXPECT_NO_RACES() calls with a text of several lines. Define it before the include to
// report in the way of a test framework; as it is, it prints the text and aborts.
#ifndef WEIR_CHECK_FAILED
#define WEIR_CHECK_FAILED(text) (fputs((text), stderr), abort())
#endif

// Fails a test if the plugin has found anything that is neither a hint nor suppressed, and also if
// the plugin is not in the chain, since then nothing was checked.
#define WEIR_EXPECT_NO_RACES(runtime)                                            \
    do {                                                                         \
        char weir_check_text_[4096];                                             \
        if (weir_check_describe((runtime), __FILE__, __LINE__, weir_check_text_, \
                                sizeof weir_check_text_))                        \
            WEIR_CHECK_FAILED(weir_check_text_);                                 \
    } while (0)

// Writes what WEIR_EXPECT_NO_RACES() at file:line reports, cut to `size` bytes. False, and an empty
// text, if there is nothing to report.
WEIR_API bool weir_check_describe(const weir_runtime *runtime, const char *file, int line,
                                  char *text, size_t size);

#endif
