// What the history of queues (history.c) and the report of a fault (fault.c) share.
#ifndef WEIR_BACKENDS_CUDA_FAULT_PARTS_H
#define WEIR_BACKENDS_CUDA_FAULT_PARTS_H

#include <stdatomic.h>

#include "backends/cuda/cu.h"

// The driver takes about a thousand operations before a submit blocks, and waits are
// kept too. A power of two.
#define CU_HISTORY_KEPT 2048

struct cu_entry {
    atomic_uint_fast64_t sequence; // 0: the rest is being written
    _Atomic(const char *) file;
    _Atomic(const char *) name;    // of the kernel or the graph; else NULL
    atomic_uint_fast64_t producer; // WAIT only: the queue that is waited for, by its id,
    atomic_uint_fast64_t reached;  // and how far it must have come
    atomic_int line;
    atomic_int kind;
};

// An entry that was read.
struct cu_note {
    uint64_t sequence;
    const char *file;
    const char *name;
    uint64_t producer;
    uint64_t reached;
    int line;
    int kind;
};

enum cu_state {
    CU_STATE_IDLE,       // everything is known to have finished
    CU_STATE_UNFINISHED, // and no more is known
    CU_STATE_RUNNING,    // the oldest unfinished operation had nothing to wait for
    CU_STATE_WAITING,    // for another queue
};

// What is found out about a queue once there is a fault. Under the device's lock.
struct cu_finding {
    enum cu_state state;
    uint64_t known;     // up to here everything has finished
    uint64_t passed_on; // how much of that its producers have learned
    uint64_t front;     // up to before this it has begun, if attributed
    struct cu_note oldest;
    struct cu_note newest;
    bool launches;                    // there are kernels among the unfinished operations
    bool cut;                         // older ones are not kept
    bool told;                        // it is in the message
    const struct cu_queue *waits_for; // WAITING
};

struct cu_history {
    struct cu_entry entries[CU_HISTORY_KEPT]; // ring
    atomic_uint_fast64_t count;               // entries so far
    atomic_uint_fast64_t written;             // what the last word says, or will
    atomic_uint *word;                        // NULL: there is none left
    CUdeviceptr word_address;
    // Of the thread that submits.
    unsigned unwritten; // operations since the last word
    unsigned waited;    // and waits
    uint64_t tick;      // when that was
    struct cu_finding finding;
};

// An entry is written between cu_entry_begin() and cu_entry_end(). Release on every store orders
// them after the first store, as acquire on every load orders them before the last load.
static inline struct cu_entry *cu_entry_begin(struct cu_history *history)
{
    const uint64_t count = atomic_load_explicit(&history->count, memory_order_relaxed);
    struct cu_entry *entry = &history->entries[count % CU_HISTORY_KEPT];
    atomic_store_explicit(&entry->sequence, 0, memory_order_relaxed);
    return entry;
}

static inline void cu_entry_end(struct cu_history *history, struct cu_entry *entry,
                                const struct weir_operation *operation)
{
    const uint64_t count = atomic_load_explicit(&history->count, memory_order_relaxed);
    atomic_store_explicit(&entry->file, operation->file, memory_order_release);
    atomic_store_explicit(&entry->line, operation->line, memory_order_release);
    atomic_store_explicit(&entry->kind, (int)operation->kind, memory_order_release);
    atomic_store_explicit(&entry->sequence, operation->sequence, memory_order_release);
    atomic_store_explicit(&history->count, count + 1, memory_order_release);
}

// Of an operation that is no record or wait.
static inline void cu_history_add(struct cu_history *history,
                                  const struct weir_operation *operation, const char *name)
{
    struct cu_entry *entry = cu_entry_begin(history);
    atomic_store_explicit(&entry->name, name, memory_order_release);
    history->unwritten++;
    cu_entry_end(history, entry, operation);
}

struct cu_words {
    void *page; // pinned
    CUdeviceptr address;
    atomic_bool off; // the device writes none
    // The clock's last tick in which a queue asked for a word; how many did, and how many of those
    // that tell of others.
    atomic_uint_fast64_t tick;
    atomic_uint in_tick[2];
    bool used[CU_WORD_COUNT];
    struct kept_name *names;
};

// Whether it is a launch, a copy or the like: no record and no wait.
bool cu_is_work(int kind);
// What a native call hands to the driver is not known.
bool cu_runs_kernels(int kind);
// False where the entry is no more, or not yet.
bool cu_history_read(struct cu_history *history, uint64_t index, struct cu_note *out_note);
// How far the queue is known to have come, of itself.
uint64_t cu_history_known(const struct cu_queue *queue);

#endif
