// The interface of modules that carry collectives between the memories of hosts.
//
// A module of kind WEIR_MODULE_TRANSPORT is no link of a chain: weir_module.ops is NULL, and
// weir_module.transport has the functions below. A runtime loads the transport that its
// configuration names ([comm] transport) when the first communicator is created. The front end
// brings the bytes of device memory to the host and back, so a transport sees host memory only.
#ifndef WEIR_MODULE_TRANSPORT_H
#define WEIR_MODULE_TRANSPORT_H

#include <weir/comm.h>
#include <weir/module/module.h>

// One rank that joins a group.
struct weir_transport_setup {
    size_t struct_size;
    const char *label; // the communicator's, for messages; never NULL, valid during the call
    uint32_t rank;     // < count
    uint32_t count;    // >= 1
    // Where the ranks meet: "tcp://HOST:PORT", where rank 0 listens, "unix:PATH", a file of this
    // machine, "file:PATH", one that other machines see too, or "process:NAME" for ranks that are all in this
    // process. NULL: with a count of 1, or for a transport that needs none (MPI); others refuse.
    const char *rendezvous;
    uint64_t timeout_ns; // for join() to return
    const char
        *file; // of the call that creates the communicator; kept for the process, may be NULL
    int line;
};

// One rank's part in a split.
struct weir_transport_split {
    size_t struct_size;
    const char *label; // of the part; never NULL, valid during the call
    int32_t color;     // ranks of one color form a part; WEIR_NO_COLOR: this rank gets none
    int32_t key;       // the order of ranks in the part; ranks with equal keys keep their order
    uint64_t number;   // as weir_transport_call.number: a split takes a number too
    uint64_t timeout_ns;
    const char *file;
    int line;
};

// One rank's part in making a group of the ranks that are left.
struct weir_transport_shrink {
    size_t struct_size;
    const char *label; // of the new group; never NULL, valid during the call
    uint64_t timeout_ns;
};

// A SEND, a RECV, or one of an EXCHANGE.
struct weir_transport_part {
    size_t struct_size; // also the distance between parts
    uint32_t peer;
    bool receive;               // else send
    enum weir_datatype element; // with `count`, for messages and comparison
    uint64_t count;
    void *memory; // not written if it is a send
};

// One collective. What `src` and `dst` hold, aligned as elements are, is stated at each kind in
// <weir/comm.h>, as is what in place means. If a collective has neither, it is compared with those of the
// other ranks, and moves nothing; a barrier is so. Sizes in bytes never exceed SIZE_MAX. Everything is
// valid during the call only, except `file`.
struct weir_transport_call {
    size_t struct_size;
    enum weir_collective kind;
    enum weir_datatype element;    // of all kinds but EXCHANGE and BARRIER
    enum weir_reduction reduction; // of ALL_REDUCE, REDUCE, REDUCE_SCATTER
    uint32_t root;  // of REDUCE, BROADCAST, GATHER, SCATTER; of SEND and RECV the peer
    uint64_t count; // elements; may be 0
    // Of kinds in which all ranks take part; NULL if this rank reads, or writes, nothing.
    const void *src;
    void *dst;
    const struct weir_transport_part *parts; // of SEND, RECV and EXCHANGE
    uint32_t part_count;
    // 1, 2, 3 … in the order of the communicator, the same on all ranks of a right program. SEND, RECV
    // and EXCHANGE do not count, since only some ranks take part: they have the number of the last
    // one that did.
    uint64_t number;
    uint64_t timeout_ns; // from the call of run()
    const char *file;    // of the program's call; kept for the process, may be NULL
    int line;
};

// What a rank has done, or has not, that ended a group.
enum weir_transport_fault {
    WEIR_FAULT_OTHER = 0, // what the sentence says
    WEIR_FAULT_DIED,
    WEIR_FAULT_SILENT, // has not come, or has not finished, in the timeout
    WEIR_FAULT_LEFT,
    WEIR_FAULT_DIFFERS, // has called something else
    WEIR_FAULT_ABORTED,
};

// The first cause of a group that has failed.
struct weir_transport_cause {
    size_t struct_size;
    enum weir_transport_fault fault;
    uint32_t rank; // at fault, < count; UINT32_MAX: none is known
};

// Returns part `index`.
static inline const struct weir_transport_part *weir_transport_part_at(
    const struct weir_transport_call *call, uint32_t index)
{
    const char *first = (const char *)call->parts;
    return (const struct weir_transport_part *)(const void *)(first +
                                                              index * call->parts->struct_size);
}

// All are mandatory except those marked O.
//
// Threads: any thread may call any function, and calls for different groups are concurrent. For
// one group, run(), split(), shrink() and leave() come one at a time; abort() may come while one of the
// first three is under way, never while or after leave().
//
// Errors: each function that returns a status has told host->error the reason: the rank, the
// collective, its number and label, both lines, and the remedy. Statuses: WEIR_ERROR_COMM for what
// happens between ranks (a rank that died, is late, has called something else, has aborted);
// WEIR_ERROR_UNSUPPORTED, WEIR_ERROR_INVALID, WEIR_ERROR_CONFIG, WEIR_ERROR_SYSTEM,
// WEIR_ERROR_OUT_OF_MEMORY for what happens on this rank alone. The sentence begins with the
// collective and names the rank that was at fault:
//
//     all-reduce 17 of 'grads', app.c:120: rank 1 has submitted 16 (broadcast, app.c:99)
//
// A group in which a call has failed is dead: every later call returns the first cause at once, on
// all ranks.
struct weir_transport_ops {
    // Prepares the transport; loads libraries of the system. `settings` has one entry for each key of
    // the module, in order, and lives until close(). Called once for a runtime.
    weir_status (*open)(const struct weir_host *host, const struct weir_setting *const *settings,
                        void **out_state);
    // No groups are left.
    void (*close)(void *state);

    // Makes this process (or, with "process:", this thread) rank `setup->rank` of a new group. Blocks
    // until all ranks are there, at most setup->timeout_ns. On failure it names the ranks that
    // are missing, and the others fail too.
    weir_status (*join)(void *state, const struct weir_transport_setup *setup, void **out_group);
    // Collective: all ranks of the group call it. The parts live on without `group`. Stores NULL with
    // WEIR_NO_COLOR.
    weir_status (*split)(void *group, const struct weir_transport_split *split, void **out_part);
    // Stores this rank, and the count of ranks, of a group.
    void (*place)(const void *group, uint32_t *out_rank, uint32_t *out_count);

    // Runs one collective, and returns when `dst` holds the result and `src` is no longer read. All
    // ranks get the same bits, and so does every run with as many ranks; see <weir/comm.h> for the
    // arithmetic. Never takes much longer than call->timeout_ns.
    weir_status (*run)(void *group, const struct weir_transport_call *call);

    // A run() or split() that is under way, and all later ones, return soon with WEIR_ERROR_COMM; the other
    // ranks are told `reason`, a sentence, and fail too. Does not wait for other ranks. A second call
    // does nothing.
    void (*abort)(void *group, const char *reason);
    // Leaves the group and frees it. Other ranks that still want this one fail with a sentence that
    // says it has left. Does not wait for other ranks.
    void (*leave)(void *group);

    // O: no library. The library below and its version, such as "Open MPI 4.1.4".
    const char *(*library)(const void *state);

    // O: WEIR_ERROR_UNSUPPORTED. Makes a group of the ranks of one that has failed: of those that call it,
    // in their order. Does not wait for ranks that have died or left; those that do not come
    // within a quarter of the timeout are left out, and their calls fail. May be called again.
    weir_status (*shrink)(void *group, const struct weir_transport_shrink *shrink,
                          void **out_group);

    // O: true. Whether run() carries any count of bytes between all ranks of the group; false: only what an engine's
    // communicator needs to be made and watched, at most 64 KiB a rank and call, since ranks are on several
    // machines. All ranks get the same answer.
    bool (*carries_data)(const void *group);

    // O: sentences are all that is known. Stores the first cause of a group that has failed; false
    // if it has not. All ranks that have been told of it store the same. What is told by another
    // process is held to the ranges above.
    bool (*cause)(void *group, struct weir_transport_cause *out_cause);
};

#define WEIR_TRANSPORT_SLOT_COUNT (sizeof(struct weir_transport_ops) / sizeof(void (*)(void)))

#endif
