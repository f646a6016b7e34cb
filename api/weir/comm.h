// Communicators and collectives: the ranks of a program, which are devices of one process or of
// several, combine and exchange what their buffers hold.
//
// A collective is an operation of a queue like any other: asynchronous, after what was submitted to
// the queue before it and before what comes after, with its caller's file:line. All ranks of a
// communicator submit the same collectives, with the same arguments, in the same order; SEND, RECV
// and EXCHANGE concern only the ranks that they name. Collectives of one communicator run in the
// order of submission, also on different queues.
//
// Nothing waits for ever: when a rank dies, stops, skips a collective or submits another one, each
// collective fails on every other rank within the timeout, and at once where a connection ends. The
// first cause names the rank, the collective, its number, and both lines. The queue has failed then
// (<weir/queue.h>), and the communicator is dead: recover the queue, destroy the communicator,
// create another.
//
// Arithmetic: integers wrap. float16 and bfloat16 are computed in float32 and rounded to nearest even
// after each step. AVERAGE is the sum divided by the count of ranks, of integers towards zero. The
// order of the steps is fixed, so that all ranks get the same bits, and so does each run with as many
// ranks. If an element is a NaN on some rank, MINIMUM and MAXIMUM of it are unspecified.
#ifndef WEIR_COMM_H
#define WEIR_COMM_H

#include <weir/common.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

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
    switch (element) {
    case WEIR_I8:
    case WEIR_U8:
        return 1;
    case WEIR_I16:
    case WEIR_U16:
    case WEIR_F16:
    case WEIR_BF16:
        return 2;
    case WEIR_I32:
    case WEIR_U32:
    case WEIR_F32:
        return 4;
    case WEIR_I64:
    case WEIR_U64:
    case WEIR_F64:
        return 8;
    }
    return 0;
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

#ifdef __cplusplus
}
#endif

#endif
