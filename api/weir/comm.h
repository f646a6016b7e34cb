// Communicators and collectives: the ranks of a program, which are devices of one process or of
// several, combine and exchange what their buffers hold.
//
// A collective is an operation of a queue like any other: asynchronous, after what was submitted to
// the queue before it and before what comes after, with its caller's file:line. All ranks of a
// communicator submit the same collectives, with the same arguments, in the same order; SEND, RECV
// and EXCHANGE concern only the ranks that they name. Collectives of one communicator run in the
// order of submission, also on different queues.
//
// A collective can be captured (<weir/graph.h>): each launch of the graph submits it again, with the
// next number, so all ranks launch graphs with the same collectives in the same order.
//
// Nothing waits for ever: when a rank dies, stops, skips a collective or submits another one, each
// collective fails on every other rank within the timeout, and at once where a connection ends. The
// first cause names the rank, the collective, its number, and both lines. The queue has failed then
// (<weir/queue.h>), and the communicator is dead: recover the queue, destroy the communicator,
// create another, or shrink it to the ranks that are left.
//
// Arithmetic: integers wrap. float16 and bfloat16 are computed in float32 and rounded to nearest even
// after each step. AVERAGE is the sum divided by the count of ranks, of integers towards zero. The
// order of the steps is fixed, so that all ranks get the same bits, and so does each run with as many
// ranks. If an element is a NaN on some rank, MINIMUM and MAXIMUM of it are unspecified.
#ifndef WEIR_COMM_H
#define WEIR_COMM_H

#include <string.h>

#include <weir/buffer.h>
#include <weir/common.h>
#include <weir/status.h>

// What each rank reads (`src`) and writes (`dst`), with n ranks and this one rank r; `count` in
// elements. In place: `dst` and `src` are one range, or where the sizes differ the smaller one is
// part r of the larger. Other overlaps are refused.
typedef enum weir_collective {
    WEIR_ALL_REDUCE = 1,     // src: count; dst: count, the reduction over all ranks
    WEIR_REDUCE = 2,         // src: count; dst of the root: count
    WEIR_BROADCAST = 3,      // src of the root: count; dst: count, also the root's, unless in place
    WEIR_ALL_GATHER = 4,     // src: count; dst: n * count, in the order of ranks
    WEIR_REDUCE_SCATTER = 5, // src: n * count; dst: count, part r of the reduction
    WEIR_ALL_TO_ALL = 6,     // src: n * count, part i for rank i; dst: n * count, part i of rank i
    WEIR_GATHER = 7,         // src: count; dst of the root: n * count
    WEIR_SCATTER = 8,        // src of the root: n * count; dst: count
    WEIR_SEND = 9,           // src: count, for the peer
    WEIR_RECV = 10,          // dst: count, from the peer
    WEIR_EXCHANGE = 11,      // several sends and receives at once
    WEIR_BARRIER = 12,       // nothing
} weir_collective;

// The type of an element.
typedef enum weir_datatype {
    WEIR_I8 = 1,
    WEIR_U8 = 2,
    WEIR_I16 = 3,
    WEIR_U16 = 4,
    WEIR_I32 = 5,
    WEIR_U32 = 6,
    WEIR_I64 = 7,
    WEIR_U64 = 8,
    WEIR_F16 = 9,
    WEIR_BF16 = 10,
    WEIR_F32 = 11,
    WEIR_F64 = 12,
} weir_datatype;

typedef enum weir_reduction {
    WEIR_SUM = 1,
    WEIR_PRODUCT = 2,
    WEIR_MINIMUM = 3,
    WEIR_MAXIMUM = 4,
    WEIR_AVERAGE = 5,
} weir_reduction;

// The size of an element in bytes; 0 for an unknown one.
static inline size_t weir_datatype_size(weir_datatype element)
{
    static const unsigned char sizes[] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
    return (unsigned)element < sizeof sizes ? sizes[element] : 0;
}

// "all-reduce", "f32", "sum", for messages; "unknown" for other values.
static inline const char *weir_collective_name(weir_collective kind)
{
    static const char *const names[] = {"unknown",    "all-reduce",     "reduce",     "broadcast",
                                        "all-gather", "reduce-scatter", "all-to-all", "gather",
                                        "scatter",    "send",           "recv",       "exchange",
                                        "barrier"};
    return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : names[0];
}
static inline const char *weir_datatype_name(weir_datatype element)
{
    static const char *const names[] = {"unknown", "i8",  "u8",  "i16",  "u16", "i32", "u32",
                                        "i64",     "u64", "f16", "bf16", "f32", "f64"};
    return (unsigned)element < sizeof names / sizeof *names ? names[element] : names[0];
}
static inline const char *weir_reduction_name(weir_reduction reduction)
{
    static const char *const names[] = {"unknown", "sum",     "product",
                                        "minimum", "maximum", "average"};
    return (unsigned)reduction < sizeof names / sizeof *names ? names[reduction] : names[0];
}

// The color of a rank that gets no part of a split.
#define WEIR_NO_COLOR (-1)

struct weir_comm_params {
    size_t struct_size;
    const char *label; // copied; shown in errors, also those of other ranks
    // This rank, and the count of ranks. A count of 0: both from WEIR_COMM_RANK and WEIR_COMM_COUNT,
    // else from [comm] of the configuration, else from the variables of torchrun (RANK, WORLD_SIZE),
    // Open MPI (OMPI_COMM_WORLD_RANK, _SIZE), PMI (PMI_RANK, PMI_SIZE) or Slurm (SLURM_PROCID,
    // SLURM_NTASKS); where none of these is set it is one rank.
    uint32_t rank;
    uint32_t count;
    // Where the ranks meet: "tcp://HOST:PORT", of rank 0; "unix:PATH", a file in a folder that this
    // user alone can enter; "file:PATH", a file that rank 0 makes and all machines see; "process:NAME" for
    // ranks of one process. Ranks of several machines share a secret, WEIR_COMM_SECRET. NULL: WEIR_COMM_RENDEZVOUS,
    // else [comm], else MASTER_ADDR and MASTER_PORT, else under Slurm the first host of the step with a port that
    // follows from the job's number, else the transport's own way, if it has one.
    const char *rendezvous;
    // Of the creation, and of each collective from when the work before it is done; 0: the `timeout`
    // of [comm].
    uint64_t timeout_ns;
    // Compare kind, element, reduction, count and root on all ranks before each collective; also
    // switched on by `check` of [comm]. The transports `local` and `mpi` always do.
    bool check;
};

// Makes the device one rank of a new communicator. Waits until all ranks are there, at most the
// timeout. `params` may be NULL.
//
// Threads: safe; two communicators are created in the same order on all ranks.
// Errors: WEIR_ERROR_COMM, with the ranks that are missing or what they disagree in;
// WEIR_ERROR_CONFIG for variables that contradict each other; WEIR_ERROR_MODULE if the transport
// cannot be loaded; WEIR_ERROR_INVALID, also in a host call, which may not wait.
WEIR_CALL weir_status weir_comm_create_at(weir_device *device,
                                          const struct weir_comm_params *params,
                                          weir_comm **out_comm, const char *file, int line);
#define weir_comm_create(...) weir_comm_create_at(__VA_ARGS__, __FILE__, __LINE__)

// The same for several devices of this process: device i becomes rank params->rank + i. With a
// count of 0, or with no `params`, the communicator has `device_count` ranks and needs no
// rendezvous. On error none is created. `out_comms` has room for device_count of them.
WEIR_CALL weir_status weir_comm_create_all_at(weir_device *const *devices, uint32_t device_count,
                                              const struct weir_comm_params *params,
                                              weir_comm **out_comms, const char *file, int line);
#define weir_comm_create_all(...) weir_comm_create_all_at(__VA_ARGS__, __FILE__, __LINE__)

// Makes one communicator out of the ranks with the same color, in the order of `key` and, where
// keys are equal, of their ranks. All ranks call it, in the same place among their collectives.
// Waits for the collectives submitted before, and for the other ranks. WEIR_NO_COLOR: this rank gets
// none, and NULL is stored. `label` may be NULL.
//
// Errors: as weir_comm_create().
WEIR_CALL weir_status weir_comm_split_at(weir_comm *comm, int32_t color, int32_t key,
                                         const char *label, weir_comm **out_part, const char *file,
                                         int line);
#define weir_comm_split(...) weir_comm_split_at(__VA_ARGS__, __FILE__, __LINE__)

// A communicator of the same ranks, whose collectives have an order of their own. A split with one
// color for all.
#define weir_comm_duplicate(comm, label, out_copy) \
    weir_comm_split_at(comm, 0, 0, label, out_copy, __FILE__, __LINE__)

// Ends the communicator on all ranks, for example before this one exits: its collectives, those
// under way too, fail soon on every rank with `why`, a sentence, as their first cause. Does not
// wait. After the first failure it does nothing.
WEIR_CALL weir_status weir_comm_abort_at(weir_comm *comm, const char *why, const char *file,
                                         int line);
#define weir_comm_abort(comm, why) weir_comm_abort_at(comm, why, __FILE__, __LINE__)

// WEIR_OK, or the first failure, which becomes the thread's error.
WEIR_CALL weir_status weir_comm_error(weir_comm *comm);

// Makes a communicator of the ranks that are left after others have died: all that are left call
// it, each with its part of the communicator that has failed, and keep their order. If `comm` has not
// failed, this ends it, as weir_comm_abort() does. Ranks that have died, or have destroyed theirs, are not
// waited for; one that does not come within a quarter of the timeout after the others is left out,
// and its own call fails. Waits, at most twice the timeout. `label` may be NULL. `comm` is still to
// be destroyed.
//
// Errors: as weir_comm_create(); WEIR_ERROR_UNSUPPORTED if the transport cannot (`mpi`);
// WEIR_ERROR_INVALID while another thread shrinks it; WEIR_ERROR_COMM if the others have gone on without this
// rank, or on all of them if one has died, or has stopped after it called this, or cannot join the others: call it
// again.
WEIR_CALL weir_status weir_comm_shrink_at(weir_comm *comm, const char *label, weir_comm **out_comm,
                                          const char *file, int line);
#define weir_comm_shrink(...) weir_comm_shrink_at(__VA_ARGS__, __FILE__, __LINE__)

// This rank and the count of ranks; the label, "" if it has none; the device. 0, "" and NULL for
// NULL.
WEIR_API uint32_t weir_comm_rank(const weir_comm *comm);
WEIR_API uint32_t weir_comm_count(const weir_comm *comm);
WEIR_API const char *weir_comm_label(const weir_comm *comm);
WEIR_API weir_device *weir_comm_device(const weir_comm *comm);

// What carries its collectives out: an engine of the device, such as "NCCL 2.28.9", or a transport of
// the host, such as "local". "" for NULL.
WEIR_API const char *weir_comm_engine(const weir_comm *comm);

// Destroys the communicator. Legal while collectives are under way: they still run. Does not wait
// for them; with an engine of the device it waits, a second at most, until the other ranks know.
// Other ranks that still submit collectives get an error that says so.
WEIR_API void weir_comm_destroy_at(weir_comm **comm, const char *file, int line);
#define weir_comm_destroy(comm) weir_comm_destroy_at(comm, __FILE__, __LINE__)

// One send or receive of an exchange. Closed.
struct weir_exchange {
    weir_buffer *buffer;
    size_t offset;
    size_t count;
    weir_datatype element;
    uint32_t peer;
    bool receive; // else send
};

// One collective, for weir_queue_collective(). Offsets are multiples of the element's size.
struct weir_collective_params {
    size_t struct_size;
    weir_collective kind;
    weir_datatype element;    // of all but EXCHANGE and BARRIER
    weir_reduction reduction; // of ALL_REDUCE, REDUCE, REDUCE_SCATTER
    uint32_t root;            // of REDUCE, BROADCAST, GATHER, SCATTER; the peer of SEND and RECV
    weir_buffer *dst;         // unused, may be NULL, where this rank writes nothing
    size_t dst_offset;
    weir_buffer *src; // unused, may be NULL, where this rank reads nothing
    size_t src_offset;
    size_t count;                          // see weir_collective
    const struct weir_exchange *exchanges; // of EXCHANGE; read before the call returns
    uint32_t exchange_count;
};

// Submits a collective. The functions below are short forms of it. Through the host, where the
// device's memory is not the host's, the bytes pass through pinned memory, which the communicator
// keeps: as much as its largest collective needs. An engine of the device has its own arithmetic:
// sums of float16 and bfloat16 may be rounded otherwise, the order of steps is the engine's, and a
// reduction of an element that it lacks (NCCL: i16 and u16) still runs through the host.
//
// Errors: WEIR_ERROR_INVALID for a wrong operand, ranges outside their buffers or overlapping, a
// buffer or queue of another device than the communicator's: nothing was submitted, and the other
// ranks do not know of it. The communicator's or the queue's first failure.
WEIR_CALL weir_status weir_queue_collective_at(weir_queue *queue, weir_comm *comm,
                                               const struct weir_collective_params *params,
                                               const char *file, int line);
#define weir_queue_collective(...) weir_queue_collective_at(__VA_ARGS__, __FILE__, __LINE__)

static inline WEIR_CHECKED weir_status weir__queue_collective(
    weir_queue *queue, weir_comm *comm, weir_collective kind, weir_buffer *dst, size_t dst_offset,
    weir_buffer *src, size_t src_offset, size_t count, weir_datatype element,
    weir_reduction reduction, uint32_t root, const char *file, int line)
{
    struct weir_collective_params params;
    memset(&params, 0, sizeof params);
    params.struct_size = sizeof params;
    params.kind = kind;
    params.element = element;
    params.reduction = reduction;
    params.root = root;
    params.dst = dst;
    params.dst_offset = dst_offset;
    params.src = src;
    params.src_offset = src_offset;
    params.count = count;
    return weir_queue_collective_at(queue, comm, &params, file, line);
}
#define weir_queue_all_reduce(queue, comm, dst, dst_offset, src, src_offset, count, element,      \
                              reduction)                                                          \
    weir__queue_collective(queue, comm, WEIR_ALL_REDUCE, dst, dst_offset, src, src_offset, count, \
                           element, reduction, 0, __FILE__, __LINE__)
#define weir_queue_reduce(queue, comm, dst, dst_offset, src, src_offset, count, element,      \
                          reduction, root)                                                    \
    weir__queue_collective(queue, comm, WEIR_REDUCE, dst, dst_offset, src, src_offset, count, \
                           element, reduction, root, __FILE__, __LINE__)
#define weir_queue_broadcast(queue, comm, dst, dst_offset, src, src_offset, count, element, root) \
    weir__queue_collective(queue, comm, WEIR_BROADCAST, dst, dst_offset, src, src_offset, count,  \
                           element, WEIR_SUM, root, __FILE__, __LINE__)
#define weir_queue_all_gather(queue, comm, dst, dst_offset, src, src_offset, count, element)      \
    weir__queue_collective(queue, comm, WEIR_ALL_GATHER, dst, dst_offset, src, src_offset, count, \
                           element, WEIR_SUM, 0, __FILE__, __LINE__)
#define weir_queue_reduce_scatter(queue, comm, dst, dst_offset, src, src_offset, count, element, \
                                  reduction)                                                     \
    weir__queue_collective(queue, comm, WEIR_REDUCE_SCATTER, dst, dst_offset, src, src_offset,   \
                           count, element, reduction, 0, __FILE__, __LINE__)
#define weir_queue_all_to_all(queue, comm, dst, dst_offset, src, src_offset, count, element)      \
    weir__queue_collective(queue, comm, WEIR_ALL_TO_ALL, dst, dst_offset, src, src_offset, count, \
                           element, WEIR_SUM, 0, __FILE__, __LINE__)
#define weir_queue_gather(queue, comm, dst, dst_offset, src, src_offset, count, element, root) \
    weir__queue_collective(queue, comm, WEIR_GATHER, dst, dst_offset, src, src_offset, count,  \
                           element, WEIR_SUM, root, __FILE__, __LINE__)
#define weir_queue_scatter(queue, comm, dst, dst_offset, src, src_offset, count, element, root) \
    weir__queue_collective(queue, comm, WEIR_SCATTER, dst, dst_offset, src, src_offset, count,  \
                           element, WEIR_SUM, root, __FILE__, __LINE__)
#define weir_queue_send(queue, comm, src, src_offset, count, element, peer)                  \
    weir__queue_collective(queue, comm, WEIR_SEND, NULL, 0, src, src_offset, count, element, \
                           WEIR_SUM, peer, __FILE__, __LINE__)
#define weir_queue_recv(queue, comm, dst, dst_offset, count, element, peer)                  \
    weir__queue_collective(queue, comm, WEIR_RECV, dst, dst_offset, NULL, 0, count, element, \
                           WEIR_SUM, peer, __FILE__, __LINE__)

// Later work of the queue waits until every rank's queue has come here.
#define weir_queue_barrier(queue, comm)                                                          \
    weir__queue_collective(queue, comm, WEIR_BARRIER, NULL, 0, NULL, 0, 0, WEIR_U8, WEIR_SUM, 0, \
                           __FILE__, __LINE__)

// Several sends and receives at once, in any order, so that none waits for another.
static inline WEIR_CHECKED weir_status weir__queue_exchange(weir_queue *queue, weir_comm *comm,
                                                            const struct weir_exchange *exchanges,
                                                            uint32_t exchange_count,
                                                            const char *file, int line)
{
    struct weir_collective_params params;
    memset(&params, 0, sizeof params);
    params.struct_size = sizeof params;
    params.kind = WEIR_EXCHANGE;
    params.element = WEIR_U8;
    params.reduction = WEIR_SUM;
    params.exchanges = exchanges;
    params.exchange_count = exchange_count;
    return weir_queue_collective_at(queue, comm, &params, file, line);
}
#define weir_queue_exchange(...) weir__queue_exchange(__VA_ARGS__, __FILE__, __LINE__)

#endif
