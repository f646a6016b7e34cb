// weir bench submit: what Weir adds to a call. Results are verified before anything
// is timed, and no time is judged here: the targets stand in the manual.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/table.h"

enum {
    OPERATION_LIMIT = 100000000
};

struct bench_row *bench_row(struct bench *bench, const char *name, const char *about)
{
    const size_t index =
        bench->row_count < BENCH_ROWS_MAX ? bench->row_count++ : BENCH_ROWS_MAX - 1;
    struct bench_row *row = &bench->rows[index];
    row->name = name;
    row->about = about;
    return row;
}

void bench_note(struct bench *bench, const char *format, ...)
{
    if (bench->note_count == sizeof bench->notes / sizeof *bench->notes)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(bench->notes[bench->note_count++], sizeof bench->notes[0], format, arguments);
    va_end(arguments);
}

static int compare_numbers(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

struct bench_spread bench_spread(const double *values, size_t count)
{
    double sorted[BENCH_TURNS_MAX];
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_numbers);
    const struct bench_spread spread = {
        .median = count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2,
        .minimum = sorted[0],
        .maximum = sorted[count - 1],
    };
    return spread;
}

// Of each turn: the difference of its two times, and their ratio.
static struct bench_spread added(const struct bench_row *row)
{
    double values[BENCH_TURNS_MAX];
    for (size_t i = 0; i < row->turns; i++)
        values[i] = row->weir_ns[i] - row->other_ns[i];
    return bench_spread(values, row->turns);
}

static struct bench_spread ratio(const struct bench_row *row)
{
    double values[BENCH_TURNS_MAX];
    for (size_t i = 0; i < row->turns; i++)
        values[i] = row->weir_ns[i] / row->other_ns[i];
    return bench_spread(values, row->turns);
}

// Text.

static void add_spread(struct cli_table *table, struct bench_spread spread, int decimals)
{
    cli_table_add(table, "%.*f", decimals, spread.median);
    cli_table_add(table, "%.*f .. %.*f", decimals, spread.minimum, decimals, spread.maximum);
}

static bool of_opencl(const struct bench_row *row)
{
    return strncmp(row->name, "opencl_", 7) == 0;
}

// A ratio to the null backend's slots, which do next to nothing, says nothing.
static void print_rows(const struct bench *bench, const char *title, const char *other, bool opencl)
{
    struct cli_table table = {.alignment = opencl ? "lrlrlrlrl" : "lrlrlrl"};
    const char *const head[] = {title, "weir", "", other, "", "added", "", "ratio", ""};
    const size_t columns = strlen(table.alignment);
    bool any = false;
    for (size_t i = 0; i < columns; i++)
        cli_table_add(&table, "%s", head[i]);
    for (size_t i = 0; i < bench->row_count; i++) {
        const struct bench_row *row = &bench->rows[i];
        if (of_opencl(row) != opencl)
            continue;
        any = true;
        cli_table_add(&table, "%s", row->about);
        add_spread(&table, bench_spread(row->weir_ns, row->turns), 1);
        add_spread(&table, bench_spread(row->other_ns, row->turns), 1);
        add_spread(&table, added(row), 1);
        if (opencl)
            add_spread(&table, ratio(row), 4);
    }
    if (any) {
        printf("\n");
        cli_table_print(&table, stdout, 0);
    }
    cli_table_finish(&table);
}

static void print_text(const struct bench *bench)
{
    printf("nanoseconds a call: the median of %zu turns, smallest .. largest; %llu calls a turn\n",
           bench->turns, (unsigned long long)bench->operations);
    print_rows(bench, "above the null backend", "its slot", false);
    print_rows(bench, "beside plain OpenCL", "OpenCL", true);
    if (bench->device[0][0] || bench->device[1][0])
        printf("\nlong operations on %s, empty ones on %s\n",
               bench->device[0][0] ? bench->device[0] : "no device",
               bench->device[1][0] ? bench->device[1] : "no device");
    for (size_t i = 0; i < bench->note_count; i++)
        printf("\nnot measured: %s\n", bench->notes[i]);
}

// JSON.

static json_t *spread_object(struct bench_spread spread, bool *ok)
{
    json_t *object = json_object();
    cli_json_set(object, "median", json_real(spread.median), ok);
    cli_json_set(object, "min", json_real(spread.minimum), ok);
    cli_json_set(object, "max", json_real(spread.maximum), ok);
    return object;
}

static json_t *row_object(const struct bench_row *row, bool *ok)
{
    json_t *object = json_object();
    cli_json_set(object, "name", json_string(row->name), ok);
    cli_json_set(object, "weir_ns", spread_object(bench_spread(row->weir_ns, row->turns), ok), ok);
    cli_json_set(object, "other_ns", spread_object(bench_spread(row->other_ns, row->turns), ok),
                 ok);
    cli_json_set(object, "added_ns", spread_object(added(row), ok), ok);
    if (of_opencl(row))
        cli_json_set(object, "ratio", spread_object(ratio(row), ok), ok);
    return object;
}

static int print_json(const struct bench *bench)
{
    bool ok = true;
    json_t *root = json_object();
    json_t *rows = json_array();
    json_t *notes = json_array();
    for (size_t i = 0; i < bench->row_count; i++)
        cli_json_append(rows, row_object(&bench->rows[i], &ok), &ok);
    for (size_t i = 0; i < bench->note_count; i++)
        cli_json_append(notes, cli_json_string(bench->notes[i]), &ok);
    cli_json_set(root, "weir", json_string(weir_version()), &ok);
    cli_json_set(root, "turns", json_integer((json_int_t)bench->turns), &ok);
    cli_json_set(root, "operations", json_integer((json_int_t)bench->operations), &ok);
    cli_json_set(root, "long_device", cli_json_string(bench->device[0]), &ok);
    cli_json_set(root, "empty_device", cli_json_string(bench->device[1]), &ok);
    cli_json_set(root, "rows", rows, &ok);
    cli_json_set(root, "not_measured", notes, &ok);
    return cli_json_print(root, ok, CLI_OK);
}

static int run_bench(uint64_t turns, uint64_t operations, bool as_json)
{
    struct bench *bench = calloc(1, sizeof *bench);
    if (!bench) {
        cli_error("no memory for the figures");
        return CLI_FAILED;
    }
    int code = CLI_SETUP;
    bench->turns = (size_t)turns;
    bench->operations = operations;
    if (bench_null(bench) && bench_opencl(bench)) {
        code = CLI_OK;
        if (as_json)
            code = print_json(bench);
        else
            print_text(bench);
    }
    free(bench);
    return code;
}

static int submit_main(int argc, char **argv)
{
    uint64_t turns = 11;
    uint64_t operations = 10000;
    bool as_json = false;
    const struct cli_option options[] = {
        {"turns", "N", "turns of each measurement (11)", CLI_COUNT, &turns, 1, BENCH_TURNS_MAX},
        {"operations", "N", "calls in a turn (10000)", CLI_COUNT, &operations, 1, OPERATION_LIMIT},
        {"json", NULL, "print the figures as JSON", CLI_FLAG, &as_json, 0, 0},
    };
    const struct cli_usage usage = {
        .command = "weir bench submit",
        .operands = "",
        .operand = "",
        .about =
            "Measures what a call costs above the null backend, and Weir on PoCL beside a plain\n"
            "OpenCL program that does the same work in the same run.",
        .manual = "weir-bench(1)",
        .options = options,
        .option_count = sizeof options / sizeof *options,
    };
    size_t operands;
    int code;
    if (!cli_parse(&usage, argc, argv, &operands, &code))
        return code;
    return run_bench(turns, operations, as_json);
}

const struct cli_command cli_bench_submit = {
    .name = "submit",
    .summary = "the cost of submitting work",
    .main = submit_main,
};
