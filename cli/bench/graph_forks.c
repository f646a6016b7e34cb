// See the header. The first kernel is on the first queue; the others are forked after it
// and joined again, so that a launch has the shape of a frame that several engines work
// on. Each queue has numbers of its own.
#include "cli/bench/graph_forks.h"

enum {
    NUMBERS = 256, // of each queue: 1 KiB, a multiple of what devices ask of offsets
    PENDING = 1000,
    PROOF = 3
};

#define BYTES ((size_t)4 * NUMBERS)

static weir_status launch(const struct bench_forks *forks, size_t queue, size_t times)
{
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < times && status == WEIR_OK; i++)
        status = weir_queue_launch(forks->queues[queue], forks->increment, weir_dim(1, 1, 1),
                                   weir_dim(NUMBERS, 1, 1),
                                   weir_inout(forks->values, queue * BYTES, BYTES), 1u,
                                   (uint32_t)NUMBERS);
    return status;
}

// How many of the kernels a queue gets; the first one has one more, before the fork.
static size_t share_of(size_t nodes, size_t queue)
{
    const size_t left = nodes - 1;
    return left / BENCH_FORKS_QUEUES + (queue < left % BENCH_FORKS_QUEUES);
}

static weir_status follow(weir_queue *to, weir_queue *from)
{
    struct weir_event event;
    weir_status status = weir_queue_record(from, &event);
    return status == WEIR_OK ? weir_queue_wait(to, event) : status;
}

static weir_status submit_once(const struct bench_forks *forks, size_t nodes)
{
    struct weir_event begun;
    weir_queue *first = forks->queues[0];
    weir_status status = launch(forks, 0, 1);
    if (status == WEIR_OK)
        status = weir_queue_record(first, &begun);
    for (size_t i = 1; i < BENCH_FORKS_QUEUES && status == WEIR_OK; i++) {
        status = weir_queue_wait(forks->queues[i], begun);
        if (status == WEIR_OK)
            status = launch(forks, i, share_of(nodes, i));
    }
    if (status == WEIR_OK)
        status = launch(forks, 0, share_of(nodes, 0));
    for (size_t i = 1; i < BENCH_FORKS_QUEUES && status == WEIR_OK; i++)
        status = follow(first, forks->queues[i]);
    return status;
}

static bool submit(struct bench_forks *forks, const struct bench_forks_case *it, bool as_graph,
                   size_t count)
{
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < count && status == WEIR_OK; i++)
        status = as_graph ? weir_queue_graph(forks->queues[0], it->graph)
                          : submit_once(forks, it->nodes);
    return status == WEIR_OK || bench_fail_weir(forks->bench);
}

// Set-up.

static bool capture(struct bench_forks *forks, struct bench_forks_case *it)
{
    const struct weir_graph_params params = {.struct_size = sizeof params, .label = "forked"};
    weir_queue *first = forks->queues[0];
    if (weir_capture_begin(first) == WEIR_OK && submit_once(forks, it->nodes) == WEIR_OK &&
        weir_capture_end(first, &params, &it->graph) == WEIR_OK)
        return true;
    bench_fail_weir(forks->bench);
    weir_capture_cancel(first);
    return false;
}

bool bench_forks_open(struct bench_forks *forks, const struct bench_list *nodes)
{
    for (size_t i = 0; i < BENCH_FORKS_QUEUES; i++)
        if (!bench_queue(forks->bench, "forked", 0, &forks->queues[i]))
            return false;
    if (!bench_buffer(forks->bench, "forked values", BENCH_FORKS_QUEUES * BYTES, WEIR_PLACE_DEVICE,
                      &forks->values))
        return false;
    for (size_t i = 0; i < nodes->count; i++) {
        if (nodes->values[i] <= BENCH_FORKS_QUEUES || forks->count == BENCH_FORKS_CASES)
            continue;
        struct bench_forks_case *it = &forks->cases[forks->count++];
        it->nodes = (size_t)nodes->values[i];
        if (!capture(forks, it))
            return false;
    }
    return true;
}

void bench_forks_close(struct bench_forks *forks)
{
    for (size_t i = 0; i < forks->count; i++)
        weir_graph_destroy(&forks->cases[i].graph);
    weir_buffer_destroy(&forks->values);
    for (size_t i = 0; i < BENCH_FORKS_QUEUES; i++)
        weir_queue_destroy(&forks->queues[i]);
}

// Checking.

static bool check_numbers(struct bench_forks *forks, const struct bench_forks_case *it,
                          const uint32_t *numbers)
{
    for (size_t i = 0; i < (size_t)BENCH_FORKS_QUEUES * NUMBERS; i++) {
        const size_t queue = i / NUMBERS;
        const uint32_t added = (uint32_t)((PROOF + 1) * (share_of(it->nodes, queue) + !queue));
        const uint32_t right = (uint32_t)i + (forks->bench->runs_kernels ? added : 0);
        if (numbers[i] != right)
            return bench_fail_result(forks->bench,
                                     "a forked graph of %zu nodes: number %zu is %u and must be "
                                     "%u; nothing was timed",
                                     it->nodes, i, (unsigned)numbers[i], (unsigned)right);
    }
    forks->bench->checked++;
    return true;
}

bool bench_forks_check(struct bench_forks *forks)
{
    uint32_t numbers[BENCH_FORKS_QUEUES * NUMBERS];
    weir_queue *first = forks->queues[0];
    for (size_t i = 0; i < forks->count; i++) {
        const struct bench_forks_case *it = &forks->cases[i];
        for (uint32_t n = 0; n < BENCH_FORKS_QUEUES * NUMBERS; n++)
            numbers[n] = n;
        if (weir_upload(first, forks->values, 0, numbers, sizeof numbers) != WEIR_OK)
            return bench_fail_weir(forks->bench);
        if (!submit(forks, it, true, PROOF) || !submit(forks, it, false, 1))
            return false;
        if (weir_download(first, numbers, forks->values, 0, sizeof numbers) != WEIR_OK)
            return bench_fail_weir(forks->bench);
        if (!check_numbers(forks, it, numbers))
            return false;
    }
    return true;
}

// Measuring.

static bool measure(struct bench_forks *forks, struct bench_forks_case *it, bool as_graph)
{
    struct bench_forks_figures *figures = as_graph ? &it->as_graph : &it->one_by_one;
    const size_t batch = it->nodes < PENDING ? PENDING / it->nodes : 1;
    double submitting = 0, all = 0;
    for (uint64_t done = 0; done < forks->launches;) {
        const uint64_t left = forks->launches - done;
        const size_t count = left < batch ? (size_t)left : batch;
        const uint64_t began = cli_now_ns();
        if (!submit(forks, it, as_graph, count))
            return false;
        submitting += (double)(cli_now_ns() - began);
        if (weir_queue_sync(forks->queues[0], WEIR_FOREVER) != WEIR_OK)
            return bench_fail_weir(forks->bench);
        all += (double)(cli_now_ns() - began);
        done += count;
    }
    const double launches = (double)forks->launches;
    bench_keep(forks->bench, &figures->submit_us, submitting * 1e-3 / launches);
    bench_keep(forks->bench, &figures->complete_us, all * 1e-3 / launches);
    return true;
}

bool bench_forks_measure(struct bench_forks *forks)
{
    const bool graph_first = forks->bench->turn % 2 == 0;
    for (size_t i = 0; i < forks->count; i++)
        if (!measure(forks, &forks->cases[i], graph_first) ||
            !measure(forks, &forks->cases[i], !graph_first))
            return false;
    return true;
}

uint64_t bench_forks_steps(const struct bench_forks *forks)
{
    return 4 * (uint64_t)forks->count;
}

void bench_forks_report(struct bench_forks *forks)
{
    static const struct bench_column columns[] = {
        {"nodes", "nodes", BENCH_NUMBER, 0},
        {"way", "", BENCH_TEXT, 0},
        {"submit_us", "submit us", BENCH_SPREAD, 2},
        {"complete_us", "complete us", BENCH_SPREAD, 2},
    };
    if (forks->count == 0)
        return;
    struct bench_table *table =
        bench_table(forks->bench, "forks", "the same, forked to four queues and joined", columns,
                    sizeof columns / sizeof *columns);
    for (size_t i = 0; i < forks->count; i++)
        for (int single = 0; single < 2; single++) {
            const struct bench_forks_case *it = &forks->cases[i];
            const struct bench_forks_figures *figures = single ? &it->one_by_one : &it->as_graph;
            bench_put_number(table, (double)it->nodes);
            bench_put_text(table, "%s", single ? "Weir, one by one" : "Weir, graph");
            bench_put(table, &figures->submit_us);
            bench_put(table, &figures->complete_us);
        }
}
