// weir bench overlap: one large job through patterns/chunks, cut and ordered in many
// ways, beside the bare copies of the same bytes in both directions at once.
//
// Every variant has queues of its own. They are created together, so that a device that
// assigns its channels in turn gives them different ones, and kept, because a queue is
// warm only when it has created all events of its ring.
#include "cli/bench/overlap.h"

#include <stdlib.h>

enum {
    WAYS_MAX = 512,
};

#define SIZE_LEAST UINT64_C(4096)
#define SIZE_MOST (UINT64_C(1) << 33) // 2^31 numbers, which a launch counts in 32 bits
#define SIZE_CPU (UINT64_C(16) << 20)
#define SIZE_GPU (UINT64_C(1) << 30)
#define ROUNDS_MOST 1000000

const char *const overlap_orders[] = {"auto", "depth", "breadth", "interleaved", NULL};
static const char *const queue_words[] = {"auto", "engine", NULL};
static const char *const chunk_words[] = {"auto", NULL};
const char *const overlap_kernels[] = {"light", "heavy", NULL};

static bool list_references(struct overlap *o)
{
    for (size_t s = 0; s < o->sizes.count; s++)
        for (size_t k = 0; k < o->kernels.count; k++) {
            if (o->reference_count == OVERLAP_CASES_MAX)
                return bench_fail(o->bench, CLI_USAGE,
                                  "more than %d pairs of a size and a kernel; name fewer",
                                  OVERLAP_CASES_MAX);
            struct overlap_reference *reference = &o->references[o->reference_count++];
            reference->size = (size_t)o->sizes.values[s] / sizeof(uint32_t) * sizeof(uint32_t);
            reference->kernel = o->kernels.values[k];
        }
    return true;
}

// `auto` is one way; the other orders are combined with the lists of queues and chunks.
static void list_order(struct overlap *o, size_t reference, uint64_t order)
{
    if (order == BENCH_WORD + OVERLAP_AUTO) {
        o->ways[o->way_count++] = (struct overlap_way){.reference = reference,
                                                       .order = order,
                                                       .queues = BENCH_WORD,
                                                       .chunks = BENCH_WORD};
        return;
    }
    for (size_t q = 0; q < o->queues.count; q++)
        for (size_t c = 0; c < o->chunks.count; c++)
            o->ways[o->way_count++] = (struct overlap_way){.reference = reference,
                                                           .order = order,
                                                           .queues = o->queues.values[q],
                                                           .chunks = o->chunks.values[c]};
}

static bool list_ways(struct overlap *o)
{
    const size_t most = o->reference_count * o->orders.count * o->queues.count * o->chunks.count;
    if (most > WAYS_MAX)
        return bench_fail(o->bench, CLI_USAGE,
                          "%zu ways to run the job, and at most %d are measured; name fewer", most,
                          WAYS_MAX);
    o->ways = calloc(most, sizeof *o->ways);
    if (!o->ways)
        return bench_fail(o->bench, CLI_FAILED, "no memory for the figures");
    for (size_t i = 0; i < o->reference_count; i++)
        for (size_t k = 0; k < o->orders.count; k++)
            list_order(o, i, o->orders.values[k]);
    return true;
}

// The command.

static bool check(struct bench *bench, void *user)
{
    struct overlap *o = user;
    o->bench = bench;
    return (!o->asked_sizes || bench_parse_list(bench, "size", o->asked_sizes, NULL, SIZE_LEAST,
                                                SIZE_MOST, &o->sizes)) &&
           bench_parse_list(bench, "chunks", o->asked_chunks, chunk_words, 1, WEIR_CHUNKS_MAX,
                            &o->chunks) &&
           bench_parse_list(bench, "orders", o->asked_orders, overlap_orders, 0, 0, &o->orders) &&
           bench_parse_list(bench, "queues", o->asked_queues, queue_words, 1,
                            WEIR_CHUNKS_QUEUES_MAX, &o->queues) &&
           bench_parse_list(bench, "kernel", o->asked_kernels, overlap_kernels, 1, ROUNDS_MOST,
                            &o->kernels);
}

static bool run(struct bench *bench, void *user)
{
    struct overlap *o = user;
    const struct weir_limits *limits = bench->limits;
    if (!o->asked_sizes)
        o->sizes = (struct bench_list){
            1, {limits->unified_memory && !limits->copy_engines_to_device ? SIZE_CPU : SIZE_GPU}};
    const bool fine = list_references(o) && list_ways(o) && overlap_make(o) && overlap_check(o) &&
                      overlap_measure(o);
    if (fine)
        overlap_report(o);
    overlap_destroy(o);
    return fine;
}

static int overlap_main(int argc, char **argv)
{
    static struct overlap o = {
        .asked_chunks = "4,16,64,256",
        .asked_orders = "auto,depth,breadth,interleaved",
        .asked_queues = "auto",
        .asked_kernels = "light,heavy",
    };
    const struct cli_option options[] = {
        {"size", "LIST", "bytes each way: 16M,1G (16M where the processor is the\ndevice, else 1G)",
         CLI_TEXT, &o.asked_sizes, 0, 0},
        {"chunks", "LIST", "how many: numbers, or auto (4,16,64,256)", CLI_TEXT, &o.asked_chunks, 0,
         0},
        {"orders", "LIST",
         "of depth, breadth, interleaved, and auto, for which\nWeir chooses everything (all)",
         CLI_TEXT, &o.asked_orders, 0, 0},
        {"queues", "LIST",
         "numbers, or auto, or engine: one a direction and one\nfor kernels "
         "(auto)",
         CLI_TEXT, &o.asked_queues, 0, 0},
        {"kernel", "LIST",
         "light (1 round), heavy (as long as the copies), or\nrounds (light,heavy)", CLI_TEXT,
         &o.asked_kernels, 0, 0},
    };
    const struct bench_program program = {
        .name = "overlap",
        .about = "Uploads a job, runs a kernel over it and downloads it, in chunks, in every\n"
                 "combination of the lists below; beside it the bare copies of the same bytes in\n"
                 "both directions at once, which are the limit, and the job in one queue in one\n"
                 "piece.\n\n"
                 "  weir bench overlap --plot overlap.svg\n"
                 "  weir bench overlap --size 64M,1G --orders auto --kernel light",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .opens_device = true,
        .check = check,
        .run = run,
    };
    return bench_main(&program, &o, argc, argv);
}

const struct cli_command cli_bench_overlap = {
    .name = "overlap",
    .summary = "copies and kernels in chunks, beside the limit of bare copies",
    .main = overlap_main,
};
