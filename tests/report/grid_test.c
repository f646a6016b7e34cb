// The report against a grid: random traces whose times are whole cells, in which each
// quantity is counted cell by cell, directly by its definition in <weir/report.h>.

#include "report/report.h"
#include "tests/report/made.h"

enum {
    CELL = 1000,
    ROUNDS = 300,
    TABLES_EVERY = 16
};

// One operation, in cells.
struct ran {
    const struct weir_trace_operation *operation;
    uint32_t device;
    uint64_t begin;
    uint64_t certain;
    uint64_t end;
    bool of_device;
};

struct grid {
    struct ran ran[MADE_OPERATIONS];
    size_t count;
    uint64_t cells; // after the last end
    const struct made *made;
};

static bool same_engine(const struct ran *a, const struct ran *b)
{
    return a->device == b->device && a->operation->engine == b->operation->engine;
}

static void make_grid(struct grid *grid, const struct made *made)
{
    *grid = (struct grid){.count = made->operation_count, .made = made};
    for (size_t i = 0; i < grid->count; i++) {
        const struct weir_trace_operation *operation = &made->operations[i];
        grid->ran[i] = (struct ran){
            .operation = operation,
            .device = made->queues[operation->queue - 10].device,
            .begin = operation->start_ns / CELL,
            .certain = operation->start_ns / CELL,
            .end = operation->end_ns / CELL,
            .of_device = operation->engine != WEIR_ENGINE_HOST,
        };
        if (grid->ran[i].end >= grid->cells)
            grid->cells = grid->ran[i].end + 1;
    }
    for (size_t i = 0; i < grid->count; i++) {
        struct ran *it = &grid->ran[i];
        for (size_t k = 0; it->operation->start_is_earliest && k < grid->count; k++)
            if (k != i && same_engine(it, &grid->ran[k]) && grid->ran[k].end < it->end &&
                grid->ran[k].end > it->certain)
                it->certain = grid->ran[k].end;
    }
    // A direction has one engine on these devices.
    for (size_t i = 0; i < grid->count; i++) {
        const enum weir_trace_engine engine = grid->ran[i].operation->engine;
        if (engine == WEIR_ENGINE_TO_DEVICE || engine == WEIR_ENGINE_TO_HOST)
            grid->ran[i].begin = grid->ran[i].certain;
    }
}

static bool runs_at(const struct ran *it, uint64_t cell, bool certain)
{
    return cell >= (certain ? it->certain : it->begin) && cell < it->end;
}

typedef bool (*belongs)(const struct grid *grid, const struct ran *it, const void *what);

static bool is_any(const struct grid *grid, const struct ran *it, const void *what)
{
    return it->of_device;
}

static bool is_compute(const struct grid *grid, const struct ran *it, const void *what)
{
    return it->operation->engine == WEIR_ENGINE_KERNELS &&
           !strstr(it->operation->name, "ncclKernel");
}

static bool is_of_set(const struct grid *grid, const struct ran *it, const void *what)
{
    const enum weir_trace_engine engine = it->operation->engine;
    const char *set = what;
    if (strcmp(set, "copy") == 0)
        return engine >= WEIR_ENGINE_TO_DEVICE && engine <= WEIR_ENGINE_ON_DEVICE;
    if (strcmp(set, "all") == 0)
        return it->of_device;
    return strcmp(weir_trace_engine_name(engine), set) == 0;
}

static bool is_of_queue(const struct grid *grid, const struct ran *it, const void *what)
{
    return it->of_device && it->operation->queue == *(const uint64_t *)what;
}

static bool is_on_lane(const struct grid *grid, const struct ran *it, const void *what)
{
    const struct weir_report_row *row = what;
    return it->device == row->device &&
           strcmp(weir_trace_engine_name(it->operation->engine), row->name) == 0;
}

static bool has_title(const struct grid *grid, const struct ran *it, const void *what)
{
    return strcmp(weir_trace_operation_title(it->operation).text, what) == 0;
}

// Cells in which something of the set runs.
static uint64_t busy(const struct grid *grid, belongs member, const void *what, bool certain)
{
    uint64_t cells = 0;
    for (uint64_t cell = 0; cell < grid->cells; cell++) {
        bool any = false;
        for (size_t i = 0; i < grid->count && !any; i++)
            any = runs_at(&grid->ran[i], cell, certain) && member(grid, &grid->ran[i], what);
        cells += any;
    }
    return cells;
}

// Cells in which an operation of the first set and another operation of the second
// set run.
static uint64_t both(const struct grid *grid, const char *first, const char *second, bool certain)
{
    uint64_t cells = 0;
    for (uint64_t cell = 0; cell < grid->cells; cell++) {
        bool any = false;
        for (size_t i = 0; i < grid->count && !any; i++)
            for (size_t k = 0; k < grid->count && !any; k++)
                any = i != k && runs_at(&grid->ran[i], cell, certain) &&
                      runs_at(&grid->ran[k], cell, certain) &&
                      is_of_set(grid, &grid->ran[i], first) &&
                      is_of_set(grid, &grid->ran[k], second);
        cells += any;
    }
    return cells;
}

static void check_busy(const struct grid *grid, const struct weir_report_row *row, belongs member,
                       const void *what)
{
    EXPECT_UINT_EQ(row->busy.most_ns, busy(grid, member, what, false) * CELL);
    EXPECT_UINT_EQ(row->busy.least_ns, busy(grid, member, what, true) * CELL);
}

static void check_tables(const struct grid *grid, const weir_report *report)
{
    for (size_t i = 0; i < weir_report_row_count(report, WEIR_REPORT_QUEUES); i++) {
        const struct weir_report_row *row = weir_report_get_row(report, WEIR_REPORT_QUEUES, i);
        check_busy(grid, row, is_of_queue, &row->queue);
    }
    for (size_t i = 0; i < weir_report_row_count(report, WEIR_REPORT_ENGINES); i++) {
        const struct weir_report_row *row = weir_report_get_row(report, WEIR_REPORT_ENGINES, i);
        check_busy(grid, row, is_on_lane, row);
    }
    for (size_t i = 0; i < weir_report_row_count(report, WEIR_REPORT_NAMES); i++) {
        const struct weir_report_row *row = weir_report_get_row(report, WEIR_REPORT_NAMES, i);
        check_busy(grid, row, has_title, row->name);
    }
}

static void check_overlaps(const struct grid *grid, const weir_report *report)
{
    static const char *const sets[] = {"copy",      "kernels", "to_device", "to_host",
                                       "on_device", "all",     "host"};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) {
            struct weir_report_overlap overlap;
            ASSERT_OK(weir_report_get_overlap(report, sets[i], sets[k], &overlap));
            EXPECT_UINT_EQ(overlap.both.most_ns, both(grid, sets[i], sets[k], false) * CELL);
            EXPECT_UINT_EQ(overlap.both.least_ns, both(grid, sets[i], sets[k], true) * CELL);
            EXPECT_UINT_EQ(overlap.first.most_ns, busy(grid, is_of_set, sets[i], false) * CELL);
            EXPECT_UINT_EQ(overlap.second.least_ns, busy(grid, is_of_set, sets[k], true) * CELL);
            EXPECT_DOUBLE_LE(overlap.least, overlap.most + 1e-12);
            EXPECT_DOUBLE_LE(overlap.most, 1.0);
        }
}

// Gaps of one device, by walking its cells.
static void count_bubbles(const struct grid *grid, uint32_t device, uint64_t *count,
                          uint64_t *total, uint64_t *longest)
{
    uint64_t gap = 0;
    bool begun = false;
    for (uint64_t cell = 0; cell < grid->cells; cell++) {
        bool any = false;
        for (size_t i = 0; i < grid->count; i++)
            any = any || (grid->ran[i].of_device && grid->ran[i].device == device &&
                          runs_at(&grid->ran[i], cell, false));
        if (any && begun && gap > 0) {
            *count += 1;
            *total += gap;
            *longest = gap > *longest ? gap : *longest;
        }
        begun = begun || any;
        gap = any ? 0 : gap + 1;
    }
}

static void check_bubbles(const struct grid *grid, const weir_report *report)
{
    const struct weir_report_summary *summary = weir_report_get_summary(report);
    uint64_t count = 0;
    uint64_t total = 0;
    uint64_t longest = 0;
    for (uint32_t device = 0; device < grid->made->device_count; device++)
        count_bubbles(grid, device, &count, &total, &longest);
    EXPECT_UINT_EQ(summary->bubbles, count);
    EXPECT_UINT_EQ(summary->bubbles_ns, total * CELL);
    EXPECT_UINT_EQ(summary->longest_bubble_ns, longest * CELL);
    EXPECT_UINT_EQ(weir_report_bubble_count(report, false), count);
    // The idle intervals of the bound are exactly the parts of the span in which it
    // is not busy.
    uint64_t idle = 0;
    for (size_t i = 0; i < weir_report_bubble_count(report, true); i++) {
        const struct weir_report_bubble *bubble = weir_report_get_bubble(report, true, i);
        EXPECT_STR_NE(bubble->sentence, "");
        idle += bubble->end_ns - bubble->begin_ns;
    }
    if (summary->bound_ns > 0)
        EXPECT_UINT_EQ(idle + summary->bound_ns, summary->span_ns);
}

static void check_summary(const struct grid *grid, const weir_report *report)
{
    const struct weir_report_summary *summary = weir_report_get_summary(report);
    uint64_t begin = grid->cells;
    uint64_t end = 0;
    double most = 0;
    double least = 0;
    for (size_t i = 0; i < grid->count; i++) {
        const struct ran *it = &grid->ran[i];
        if (!it->of_device)
            continue;
        begin = it->begin < begin ? it->begin : begin;
        end = it->end > end ? it->end : end;
        most += (double)(it->end - it->begin) * CELL;
        least += (double)(it->end - it->certain) * CELL;
    }
    begin = begin == grid->cells ? 0 : begin;
    EXPECT_UINT_EQ(summary->span_ns, (end - begin) * CELL);
    EXPECT_UINT_EQ(summary->compute_ns, busy(grid, is_compute, NULL, false) * CELL);
    EXPECT_UINT_EQ(summary->idle_ns, summary->span_ns - busy(grid, is_any, NULL, false) * CELL);
    EXPECT_UINT_EQ(summary->idle_ns + summary->compute_ns + summary->non_compute_ns,
                   summary->span_ns);
    if (summary->span_ns > 0) {
        EXPECT_NEAR(summary->speedup_most, most / (double)summary->span_ns, 1e-9);
        EXPECT_NEAR(summary->speedup_least, least / (double)summary->span_ns, 1e-9);
    }
}

// The path covers the span, each nanosecond once.
static void check_path(const weir_report *report)
{
    const struct weir_report_summary *summary = weir_report_get_summary(report);
    uint64_t sum = 0;
    for (size_t i = 0; i < weir_report_row_count(report, WEIR_REPORT_PATH); i++)
        sum += weir_report_get_row(report, WEIR_REPORT_PATH, i)->busy.most_ns;
    EXPECT_UINT_EQ(sum, summary->span_ns);
    if (summary->span_ns > 0)
        EXPECT_NEAR(summary->device_share + summary->host_share + summary->latency_share, 1, 1e-9);
}

WEIR_TEST(Grid, RandomTracesAreMeasuredAsTheCellsAre)
{
    size_t apart = 0; // traces in which least and most are not the same
    for (uint32_t seed = 1; seed <= ROUNDS && !weir_test_has_failed(); seed++) {
        struct made made;
        struct grid grid;
        weir_test_note("seed %u", (unsigned)seed);
        made_random(&made, seed, CELL);
        make_grid(&grid, &made);
        own_report report = made_report(&made, NULL);
        ASSERT_NOT_NULL(report);
        apart += !weir_report_get_summary(report)->exact;
        check_summary(&grid, report);
        check_bubbles(&grid, report);
        check_path(report);
        if (seed % TABLES_EVERY == 0) {
            check_tables(&grid, report);
            check_overlaps(&grid, report);
        }
    }
    EXPECT_UINT_GT(apart, ROUNDS / 10);
    EXPECT_UINT_LT(apart, ROUNDS * 9 / 10);
}

WEIR_TEST(Intervals, LengthsReachTheEndOfTime)
{
    struct weir__cover it = {0};
    weir__cover_add(&it, 5, UINT64_MAX);
    weir__cover_add(&it, 0, 1);
    weir__cover_add(&it, 0, 0);
    EXPECT_UINT_EQ(it.covered, UINT64_MAX - 4);
}
