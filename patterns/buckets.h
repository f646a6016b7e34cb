// Buckets: the gradients of a model, which all ranks of a communicator average while the backward
// pass still computes others. Gradients lie one after another in one DEVICE buffer, in the order in
// which the pass makes them, and are views of it: nothing is copied. A bucket is a run of them
// that is reduced by one all-reduce, on a queue of the pattern's own.
//
//     const struct weir_bucket_parameter parameters[] = { // the last layer first
//         {.struct_size = sizeof *parameters, .name = "fc2", .count = 10 * 512},
//         {.struct_size = sizeof *parameters, .name = "fc1", .count = 512 * 784},
//     };
//     const struct weir_buckets_params params = {
//         .struct_size = sizeof params, .comm = comm, .label = "grads", .element = WEIR_F32,
//         .parameters = parameters, .parameter_count = 2, .parameter_size = sizeof *parameters,
//     };
//     weir_buckets_create(&params, &buckets); // on all ranks
//     weir_buckets_get_view(buckets, 0, &view);
//     ...
//     weir_buckets_begin(buckets, true);
//     backward_fc2(queue, view.buffer, view.offset), weir_buckets_ready(buckets, 0, queue);
//     backward_fc1(queue, ...), weir_buckets_ready(buckets, 1, queue);
//     weir_buckets_finish(buckets, queue);
//     optimizer(queue, ...); // after all reductions, without a wait on the host
//
// Steps and passes. A step is one or more passes over the model, each from begin() to finish(), in
// which every parameter is marked once: with ready() when its gradient is submitted, or, if it is
// optional, with skip(). Only the last pass of a step reduces, so K micro-batches take one reduction.
// The first pass of a step writes the gradients, the later ones add to them: weir_buckets_pass().
// Gradients are averaged over ranks, not over passes.
//
// Order. Which parameters make a bucket is fixed at creation and the same on all ranks. A bucket is
// submitted once all of its parameters are marked and the buckets before it are submitted, so that
// marks in another order than that of `parameters` cost overlap, and nothing else.
//
// Failure. When a step cannot be completed on one rank, since a queue has failed or a parameter was
// never marked, the communicator is aborted with that cause: no other rank waits for it. Queues that
// wait for the reduction fail with the first cause. Destroy the buckets and the communicator then.
#ifndef WEIR_PATTERNS_BUCKETS_H
#define WEIR_PATTERNS_BUCKETS_H

#include <weir/weir.h>

typedef struct weir_buckets weir_buckets;

// For `cap_bytes`: chosen by what reductions of several sizes take on the communicator. Larger ones than
// the first that takes the slowest rank more than 50 ms are not measured.
#define WEIR_BUCKETS_AUTO SIZE_MAX

struct weir_bucket_parameter {
    size_t struct_size;
    const char *name; // copied; names it in errors
    size_t count;     // elements, > 0
    bool optional;    // a pass may leave it out; its gradient is zero then
};

struct weir_buckets_params {
    size_t struct_size;
    weir_comm *comm;
    const char *label;        // copied; names queues, buffers ("LABEL/comm") and errors
    weir_datatype element;    // of the gradients
    weir_reduction reduction; // 0: WEIR_AVERAGE
    // In the order in which the backward pass makes their gradients: the last layer's first.
    const struct weir_bucket_parameter *parameters;
    uint32_t parameter_count; // > 0
    size_t parameter_size;    // sizeof(struct weir_bucket_parameter)
    // The largest bucket, of several parameters; a larger parameter is a bucket of its own. 0:
    // 25 MiB. WEIR_BUCKETS_AUTO: measured.
    size_t cap_bytes;
    // The same of the first bucket, which is small so that communication begins early. 0: 1 MiB, but
    // never more than cap_bytes; with WEIR_BUCKETS_AUTO as the others.
    size_t first_bytes;
    // For WEIR_BUCKETS_AUTO: how long the backward pass computes; the longest of all ranks counts. 0:
    // twice as long as one reduction of all gradients.
    uint64_t backward_ns;
    // WEIR_BF16: F32 gradients are rounded to bf16 (to nearest even), reduced as bf16, and widened
    // again. Takes half as many bytes of DEVICE memory again. 0, or `element`: as they are.
    weir_datatype wire;
    // Times every reduction, for the statistics. Ignored if the device keeps no times
    // (limits.timing_history is 0).
    bool timing;
    int32_t priority; // of the queues; 0: normal
};

// Plans the buckets, and creates the buffer, filled with zeros, and the queues. All ranks call it, in
// the same place among their collectives: it compares the plans, and measures for WEIR_BUCKETS_AUTO.
// Waits for the other ranks, up to the communicator's timeout. The pattern itself allocates nothing later.
// Where one rank cannot create its buckets, the communicator is aborted with the cause.
//
// Ownership: outlived by the communicator.
// Threads: not safe; the caller must serialise calls on one object.
// Errors: WEIR_ERROR_INVALID, naming what is wrong, or the rank whose parameters differ;
// WEIR_ERROR_OUT_OF_MEMORY; those of buffers, queues and collectives.
WEIR_CALL weir_status weir_buckets_create_at(const struct weir_buckets_params *params,
                                             weir_buckets **out_buckets, const char *file,
                                             int line);
#define weir_buckets_create(...) weir_buckets_create_at(__VA_ARGS__, __FILE__, __LINE__)

// The same for several devices of this process, whose ranks one thread serves: buckets i belong to
// comms[i], which takes the place of params->comm. On error none is created. `out_buckets` has room
// for `count` of them.
WEIR_CALL weir_status weir_buckets_create_all_at(const struct weir_buckets_params *params,
                                                 weir_comm *const *comms, uint32_t count,
                                                 weir_buckets **out_buckets, const char *file,
                                                 int line);
#define weir_buckets_create_all(...) weir_buckets_create_all_at(__VA_ARGS__, __FILE__, __LINE__)

// Destroys the buckets with their buffer and queues. Never waits: submitted work runs to completion.
WEIR_API void weir_buckets_destroy(weir_buckets **buckets);

// Where gradients lie. Closed.
struct weir_bucket_view {
    weir_buffer *buffer; // the same for all
    size_t offset;       // bytes, a multiple of limits.argument_alignment_bytes
    size_t size;         // bytes
};

// Stores the place of parameter `index`'s gradient.
//
// Errors: WEIR_ERROR_INVALID for an index past the last parameter.
WEIR_CALL weir_status weir_buckets_get_view(const weir_buckets *buckets, uint32_t index,
                                            struct weir_bucket_view *out_view);

// Begins a pass. `reduce`: it is the last of its step.
//
// Errors: WEIR_ERROR_INVALID if a pass has begun already; the communicator's first failure.
WEIR_CALL weir_status weir_buckets_begin(weir_buckets *buckets, bool reduce);

// The number of the pass in its step, from 0; between passes that of the next one. 0: gradients are
// written, else added to.
WEIR_API uint32_t weir_buckets_pass(const weir_buckets *buckets);

// Marks parameter `index`: its gradient is complete after everything submitted to `queue` so far. If
// that completes buckets they are submitted. The gradient must not be written again in this step
// once the last pass has marked it. `queue` must exist until finish().
//
// Errors: WEIR_ERROR_INVALID outside a pass, for an index past the last parameter, one that is marked
// already, or a queue of another device: nothing was done. The failure of `queue` or of the
// communicator.
WEIR_CALL weir_status weir_buckets_ready(weir_buckets *buckets, uint32_t index, weir_queue *queue);

// Marks an optional parameter that this pass does not compute. If no pass of the step has written
// it so far, `queue` fills its gradient with zeros, at the place in its order where the gradient
// would be written. Told by skip() rather than by finish(), it holds up no bucket.
//
// Errors: as weir_buckets_ready(); WEIR_ERROR_INVALID for a parameter that is not optional.
WEIR_CALL weir_status weir_buckets_skip(weir_buckets *buckets, uint32_t index, weir_queue *queue);

// Ends the pass. Optional parameters that are not marked are skipped, on `queue`. If the pass
// reduces, the step ends with it, and `queue` waits on the device for all reductions: its later work
// reads the reduced gradients, and may write those of the next step.
//
// Errors: WEIR_ERROR_INVALID outside a pass; or naming the parameters that were never marked, with
// which the communicator is aborted. The failure of `queue` or of the communicator.
WEIR_CALL weir_status weir_buckets_finish(weir_buckets *buckets, weir_queue *queue);

// One bucket: its parameters, and where their gradients lie. Closed.
struct weir_bucket {
    uint32_t index;
    uint32_t first; // parameter
    uint32_t count; // parameters
    size_t offset;  // bytes, of the buffer
    size_t size;    // bytes, with the gaps between views
};

// Stores bucket `index`.
//
// Errors: WEIR_ERROR_INVALID for an index past the last bucket.
WEIR_CALL weir_status weir_buckets_get_bucket(const weir_buckets *buckets, uint32_t index,
                                              struct weir_bucket *out_bucket);

// Makes `queue` wait on the device for the reduction of one bucket of this step or, between
// steps, of the last one: for an optimizer that starts while later buckets are under way. Where no
// bucket of that index has been submitted yet, the error says so.
//
// Errors: WEIR_ERROR_INVALID; the failure of `queue` or of the communicator.
WEIR_CALL weir_status weir_buckets_wait(weir_buckets *buckets, uint32_t index, weir_queue *queue);

// The plan, with 0 and WEIR_BUCKETS_AUTO replaced by what was chosen.
struct weir_buckets_plan {
    uint32_t bucket_count;
    size_t bytes; // of the buffer
    size_t cap_bytes;
    size_t first_bytes;
    // Measured for WEIR_BUCKETS_AUTO, the slowest rank's; else 0. A large all-reduce of n bytes takes
    // latency_ns + n / bytes_per_ns.
    double latency_ns;
    double bytes_per_ns;
    // With WEIR_BUCKETS_AUTO the last buckets become smaller, each at most half of what is left, down
    // to this; else cap_bytes.
    size_t last_bytes;
};

// Stores what the buckets are.
WEIR_API void weir_buckets_get_plan_sized(const weir_buckets *buckets,
                                          struct weir_buckets_plan *out_plan, size_t size);
#define weir_buckets_get_plan(buckets, out_plan) \
    weir_buckets_get_plan_sized(buckets, out_plan, sizeof(struct weir_buckets_plan))

// Times over the timed steps, in nanoseconds of the device. Communication is the time from when a
// bucket is due until it is reduced; that includes the wait for ranks that are late. It is exposed as
// far as it lies after the point at which the queue of finish() has come there, else hidden.
struct weir_buckets_statistics {
    uint64_t steps;
    uint64_t passes;
    uint64_t reductions;    // all-reduces submitted
    uint64_t reduced_bytes; // of these, as they travel
    uint64_t skipped;       // optional parameters that a pass left out
    uint64_t timed_steps;   // the rest had not ended yet, or their times had expired
    uint64_t hidden_ns;
    uint64_t exposed_ns;
};

// Stores the figures of the steps that have ended so far. Zeros for NULL.
WEIR_API void weir_buckets_get_statistics_sized(weir_buckets *buckets,
                                                struct weir_buckets_statistics *out_statistics,
                                                size_t size);
#define weir_buckets_get_statistics(buckets, out_statistics)   \
    weir_buckets_get_statistics_sized(buckets, out_statistics, \
                                      sizeof(struct weir_buckets_statistics))

#endif
