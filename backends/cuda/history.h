// Histories of queues, which the reports of faults read.
//
// After a fault the driver answers every call with the same code, also questions about
// events that are complete, and does not name the kernel. So each queue keeps a history of the
// operations that it was given, and its stream writes its progress into pinned memory: such a
// progress word survives the fault.
//
// Writing a word costs the submitter about 0.8 us on an H200, so one is written before
// a record only, when WORD_DISTANCE operations have followed the last one. With
// `attribute_faults` every operation is followed by a word.
//
// Before a record, not after it: a queue is destroyed when its last record is
// complete, and its word may then be given to another queue.
//
// Histories are written by one thread and read by any, while it writes: an entry's
// sequence is 0 while the rest of it changes, and entries read in that state are left out.
#ifndef WEIR_BACKENDS_CUDA_HISTORY_H
#define WEIR_BACKENDS_CUDA_HISTORY_H

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
    CU_IDLE,       // everything is known to have finished
    CU_UNFINISHED, // and no more is known
    CU_RUNNING,    // the oldest unfinished operation had nothing to wait for
    CU_WAITING,    // for another queue
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
    const struct cu_queue *waits_for; // CU_WAITING
};

struct cu_history {
    struct cu_entry entries[CU_HISTORY_KEPT]; // ring
    atomic_uint_fast64_t count;               // entries so far
    atomic_uint_fast64_t written;             // what the last word says, or will
    atomic_uint *word;                        // NULL: there is none left
    CUdeviceptr word_address;
    unsigned unwritten; // operations since the last word; of the thread that submits
    struct cu_finding finding;
};

#endif
