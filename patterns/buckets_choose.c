// The sizes of buckets for WEIR_BUCKETS_AUTO: a step is computed on paper for many of them, and the
// shortest one counts.
//
// Fewer buckets use the link better. The last one's reduction has no computation beside it, so the
// buckets before the end may become smaller step by step.
#include "patterns/buckets_parts.h"

// What a nanosecond of communication costs the computation beside it, with which it shares
// processors and memory: measured, docs/buckets.md.
#define HIDDEN_COST 0.6

enum {
    LAST_SIZES = 6, // the cap, a half of it, a quarter, ...
    FINE = 16,      // counts of buckets up to here are all tried, larger ones in steps of 1/FINE
};

double weir__buckets_reduce_ns(const struct weir__buckets_curve *curve, size_t bytes)
{
    double ns_per_byte = curve->count ? curve->ns_per_byte[0] : 0;
    for (uint32_t i = 1; i < curve->count && bytes > curve->bytes[i - 1]; i++) {
        const double share =
            (double)(bytes - curve->bytes[i - 1]) / (double)(curve->bytes[i] - curve->bytes[i - 1]);
        ns_per_byte = share >= 1 ? curve->ns_per_byte[i]
                                 : curve->ns_per_byte[i - 1] +
                                       share * (curve->ns_per_byte[i] - curve->ns_per_byte[i - 1]);
    }
    return curve->latency_ns + (double)bytes * ns_per_byte;
}

static size_t on_the_way(const weir_buckets *buckets, size_t bytes)
{
    return bytes / buckets->element_size * buckets->wire_size;
}

// From the begin of the backward pass to the end of the last reduction.
static double step_ns(const weir_buckets *buckets, const struct weir_buckets_plan *plan,
                      const struct weir__buckets_curve *curve, double backward_ns)
{
    double end_ns = 0;
    double hidden_ns = 0;
    for (uint32_t first = 0; first < buckets->params.parameter_count;) {
        const uint32_t next = weir__buckets_end(buckets, plan, first);
        const struct weir__buckets_parameter *last = &buckets->parameters[next - 1];
        const size_t end = last->offset + last->size;
        const double due_ns = backward_ns * ((double)end / (double)plan->bytes);
        const double begin_ns = due_ns > end_ns ? due_ns : end_ns;
        const size_t size = on_the_way(buckets, end - buckets->parameters[first].offset);
        end_ns = begin_ns + weir__buckets_reduce_ns(curve, size);
        if (begin_ns < backward_ns)
            hidden_ns += (end_ns < backward_ns ? end_ns : backward_ns) - begin_ns;
        first = next;
    }
    return end_ns + HIDDEN_COST * hidden_ns;
}

static struct weir_buckets_plan plan_of(const weir_buckets *buckets, size_t count, int halvings)
{
    struct weir_buckets_plan plan = buckets->plan;
    plan.cap_bytes = plan.bytes / count + (plan.bytes % count != 0);
    plan.last_bytes = plan.cap_bytes >> halvings;
    if (plan.first_bytes > plan.cap_bytes)
        plan.first_bytes = plan.cap_bytes;
    return plan;
}

void weir__buckets_choose(weir_buckets *buckets, const struct weir__buckets_curve *curve,
                          double backward_ns)
{
    struct weir_buckets_plan best = {0};
    double best_ns = -1;
    if (backward_ns <= 0)
        backward_ns = 2 * weir__buckets_reduce_ns(curve, on_the_way(buckets, buckets->plan.bytes));
    for (size_t count = 1; count <= buckets->params.parameter_count; count += 1 + count / FINE)
        for (int halvings = 0; halvings < LAST_SIZES; halvings++) {
            const struct weir_buckets_plan plan = plan_of(buckets, count, halvings);
            const double ns = step_ns(buckets, &plan, curve, backward_ns);
            if (best_ns < 0 || ns < best_ns) {
                best_ns = ns;
                best = plan;
            }
        }
    buckets->plan = best;
}
