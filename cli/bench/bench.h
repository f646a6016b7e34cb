// What the benchmarks of `weir bench`, and the jobs of tests/bench, share. Each is a file, <name>.c, and one
// line in the table of command.c.
//
// A benchmark checks its results first, and is then run in turns: everything that it
// compares is measured once in every turn, so that other load on the machine affects all
// of it alike. The first turn warms up and is not kept. Figures are medians over the turns,
// with the smallest and the largest; ratios are those of single turns.
//
// With a plugin in virtual time, such as sim, in the chain, figures are those of its clock: what the
// modelled GPU would have taken.
//
// What was measured goes into rows of JSON, from which the text is made, and into the plot.
//
// Ownership: what the functions below make is destroyed when the benchmark ends, last first.
// Threads: those of bench_main(), unless a comment says something else.
// Errors: they end the command after a sentence, with its exit code.
#ifndef WEIR_CLI_BENCH_H
#define WEIR_CLI_BENCH_H

#include <weir/weir.h>

#include "cli/common/cli.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/own.h"
#include "cli/common/plot.h"
#include "cli/common/progress.h"
#include "cli/runtime/open.h"

enum {
    BENCH_TURNS_MAX = 101,
    BENCH_TABLES_MAX = 8,
    BENCH_COLUMNS_MAX = 12,
    BENCH_LIST_MAX = 16,
    BENCH_BLOCK = 256 // work-items, where no limit is lower
};

#define BENCH_COUNT(array) (sizeof(array) / sizeof *(array))

// One figure of every turn that was kept.
struct bench_samples {
    size_t count;
    double values[BENCH_TURNS_MAX];
};

struct bench_spread {
    double median;
    double minimum;
    double maximum;
};

struct bench_spread bench_spread(struct bench_samples samples);
// In rising order.
void bench_sort(double *values, size_t count);

// Of each turn: a / b; a - b; amount / it; a multiple.
struct bench_samples bench_ratio(struct bench_samples a, struct bench_samples b);
struct bench_samples bench_difference(struct bench_samples a, struct bench_samples b);
struct bench_samples bench_rate(struct bench_samples samples, double amount);
struct bench_samples bench_scaled(struct bench_samples samples, double by);

// Tables.

struct bench_column {
    const char *key;       // in JSON
    const char *head;      // on the terminal
    const char *alignment; // "l", "r", or "rl": a spread, which takes two columns on the terminal
    int decimals;          // of a spread
};

struct bench_table {
    const char *title;
    struct bench_column columns[BENCH_COLUMNS_MAX]; // those of the first row
    size_t column_count;
    json_t *rows;
};

// Lists on the command line: `out` of options that are CLI_VALUES. Reads "16M,1G,auto": numbers from
// `minimum` to `maximum`, in which K, M, G and T are binary, and `words`. A `maximum` of 0: words alone.
struct bench_list {
    const char *text; // as given, or the default; NULL: the list is empty
    uint64_t minimum, maximum;
    const char *const *words; // NULL-terminated, or NULL
    size_t most;              // values; 0: BENCH_LIST_MAX
    size_t count;
    uint64_t values[BENCH_LIST_MAX];
};

// For a `text` that was chosen later. The message of a wrong one names the option.
void bench_parse_list(const char *option, struct bench_list *list);

// The words of --graphs, and how a pipeline is called in a plot.
extern const char *const bench_off_on[];
const char *bench_slots(uint32_t slots, bool graphs, uint32_t devices);

// The value of the first of a list's words; the next one is + 1.
#define BENCH_WORD UINT64_C(0x8000000000000000)

struct bench {
    // The command line.
    const char *config;
    const char *plot_path;
    const char *save_path;
    uint64_t turns;
    bool json;
    bool quiet;
    bool serve;  // a turn for each line of the input: bench_serve()
    bool silent; // another rank of the same run reports
    char **operands;
    size_t operand_count;
    const char *group; // "weir bench", unless main() says another one
    const char *name;  // "overlap"
    char command[64];  // both

    // Where it runs, if the benchmark opens a device: the one that `select` names as the configuration does, or, if
    // that is NULL, those that are `wanted`.
    const char *select;
    struct cli_devices wanted;
    weir_runtime *runtime;
    weir_device *devices[CLI_DEVICES_MAX], *device; // the latter is the first
    uint32_t device_count;
    const struct weir_limits *limits;
    bool runs_kernels; // false on a device whose kernels do nothing, as null's; not
                       // determined for a benchmark that launches nothing

    // The figures.
    struct bench_table tables[BENCH_TABLES_MAX];
    size_t table_count;
    json_t *rows;       // of the tables, by their keys
    json_t *parameters; // and `notes`, in their order
    json_t *notes;
    uint64_t checked;     // results that were compared with their expected values
    char wrong[512];      // of bench_wrong()
    struct cli_plot plot; // without series: there is nothing to plot

    // The turns.
    uint64_t turn; // 0 warms up
    uint64_t kept;
    char served[8192]; // figures of this turn, as members of a JSON object
    struct cli_progress progress;
};

// The benchmark that this process runs.
extern struct bench bench;

struct bench_program {
    const char *about;                // NULL: the command's summary
    const char *operands;             // as in the help; NULL: none
    const struct cli_option *options; // its own; the common ones follow
    size_t option_count;
    bool opens_devices; // itself; else it is on those that the configuration or bench.wanted names
    // It launches no kernels, so it runs on devices that the command has no kernels for.
    bool launches_nothing;
    bool serves; // has --serve
    // Checks what the options say, before anything is opened; may be NULL.
    void (*check)(void *user);
    void (*run)(void *user);
    // In place of the tables: prints what was found, and returns the exit code. NULL: the tables.
    int (*report)(void *user);
};

// What the `main` of a benchmark's cli_command does: parses, opens the device that
// the configuration names, runs, reports. `user` is handed to `check` and `run`.
int bench_main(const struct bench_program *program, void *user, int argc, char **argv);

// Whether the processor is the device, and copies are its work.
bool bench_is_processor(void);

// Starts a table.
struct bench_table *bench_table(const char *key, const char *title);
// Add a cell, row by row; all rows have the same columns: `key` in JSON, `head` on the terminal. A value without
// samples is an empty cell, null in JSON.
void bench_text(struct bench_table *table, const char *key, const char *head, const char *text);
void bench_number(struct bench_table *table, const char *key, const char *head, double number);
void bench_value(struct bench_table *table, const char *key, const char *head, int decimals,
                 struct bench_samples samples);

// The number, such as "16.0 MiB".
const char *bench_bytes(uint64_t bytes);

// A fact about the run, in the first lines of the text and under "parameters".
void bench_parameter(const char *key, double value);

// Notes what could not be measured, or what a reader of the figures should know.
void bench_note(const char *format, ...) WEIR_PRINTF(1, 2);

// After a wrong result, on any thread: keeps the first such sentence. Returns false.
bool bench_wrong(const char *format, ...) WEIR_PRINTF(1, 2);
// Ends the command if there is one.
void bench_judge(void);

// Turns:
//
//     for (bench_start(); bench_turn();)
//         for (i = 0; i < count; i++)
//             bench_keep(&rows[i].ns, measure(i));
//
// An interrupt ends the run after the turn in progress.
void bench_start(void);
bool bench_turn(void);
// Adds `value` to the samples unless this turn warms up.
void bench_keep(struct bench_samples *samples, double value);

// With --serve another program takes turns with this one (tests/bench/peers): after a line that says how many
// results were checked there is a turn for each line of the input, and no report. The line of the turn has the
// milliseconds under this name.
void bench_serve(double ms, const char *format, ...) WEIR_PRINTF(2, 3);

// The names of the plot and its axes; `x` may be "".
void bench_plot(const char *title, const char *x, const char *y);
// A level to compare with.
void bench_plot_level(const char *name, double level);
// In the plot, a point of a line; and a bar of a group. Without samples: nothing.
void bench_plot_point(const char *series, double x, struct bench_samples samples);
void bench_plot_bar(const char *series, const char *group, struct bench_samples samples);

// The work that benchmarks run on a device: a kernel with a chosen duration and a known
// result, and buffers of numbers for it.

struct bench_work {
    weir_kernel *kernel;
    weir_queue *queue; // for calibration and set-up, which are not part of the times
};

void bench_work_open(struct bench_work *out_work);

// Launches the kernel, with `rounds` rounds, on the numbers in `size` bytes of the buffer.
// `size` is a multiple of 4. Errors: returned.
weir_status bench_work_launch(const struct bench_work *work, weir_queue *queue, weir_buffer *buffer,
                              size_t offset, size_t size, uint32_t rounds);

// Nanoseconds of the kernel alone over these bytes, from submit to sync.
double bench_work_time(const struct bench_work *work, weir_buffer *buffer, size_t size,
                       uint32_t rounds);

// The rounds with which the kernel takes about `wanted_ns` over these bytes, at least 1.
// 1 on a device that runs no kernels, unless they take virtual time.
uint32_t bench_work_calibrate(const struct bench_work *work, weir_buffer *buffer, size_t size,
                              double wanted_ns);

// Fills memory of any kind, or a buffer of the host's, with numbers that depend on `seed`.
void bench_work_numbers(uint32_t *numbers, size_t size, uint32_t seed);
void bench_work_fill(weir_buffer *buffer, size_t size, uint32_t seed);

// Checks that a range holds the kernel's results for the numbers of `seed`, counts it as
// checked, and spoils it. The message of a wrong result names `what`.
//
// Threads: any. Errors: false after bench_wrong().
bool bench_work_compare(uint32_t *numbers, size_t size, uint32_t seed, uint32_t rounds,
                        const char *what);
bool bench_work_check(weir_buffer *buffer, size_t size, uint32_t seed, uint32_t rounds,
                      const char *what);

// Objects.
void bench_buffer(weir_device *device, const char *label, size_t size, weir_placement placement,
                  weir_buffer **out_buffer);
void bench_queue(weir_device *device, const char *label, int32_t priority, weir_queue **out_queue);
void bench_kernel(weir_device *device, const struct weir_bundle *bundle, const char *name,
                  weir_kernel **out_kernel);

// cli_fine() of a call that is timed: in place while all is well.
static inline void bench_fine(weir_status status)
{
    if (status != WEIR_OK)
        cli_fine(status);
}

// Waits for the queue.
void bench_sync(weir_queue *queue);
// Fills a range with bytes that are no right result, and waits.
void bench_fill(weir_queue *queue, weir_buffer *buffer, size_t size);

#endif
