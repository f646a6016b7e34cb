// What every benchmark shares: command line, device, turns, failures, and what is printed.
#include "cli/bench/work.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/output.h"
#include "cli/common/signals.h"
#include "cli/runtime/open.h"
#include "kernels/conformance/conformance.h"

struct bench bench = {.turns = 11, .group = "weir bench"};

// The figures of a benchmark: tables on the terminal, JSON, and the plot.

// Filling.

struct bench_table *bench_table(const char *key, const char *title)
{
    const size_t index =
        bench.table_count < BENCH_TABLES_MAX ? bench.table_count++ : BENCH_TABLES_MAX - 1;
    struct bench_table *table = &bench.tables[index];
    *table = (struct bench_table){.key = key};
    snprintf(table->title, sizeof table->title, "%s", title);
    return table;
}

static void add_cell(struct bench_table *table, struct bench_column column, struct bench_cell cell)
{
    const struct bench_column *first = &table->columns[0];
    table->complete = table->complete || (table->count > 0 && strcmp(column.key, first->key) == 0);
    if (!table->complete && table->column_count < BENCH_COLUMNS_MAX)
        table->columns[table->column_count++] = column;
    table->cells = cli_grow(table->cells, table->count, &table->capacity, sizeof *table->cells);
    table->cells[table->count++] = cell;
}

void bench_text(struct bench_table *table, const char *key, const char *head, const char *text)
{
    struct bench_cell cell = {.empty = false};
    snprintf(cell.text, sizeof cell.text, "%s", text);
    add_cell(table, (struct bench_column){key, head, BENCH_TEXT, 0}, cell);
}

void bench_number(struct bench_table *table, const char *key, const char *head, double number)
{
    add_cell(table, (struct bench_column){key, head, BENCH_NUMBER, 0},
             (struct bench_cell){.number = number});
}

void bench_value(struct bench_table *table, const char *key, const char *head, int decimals,
                 struct bench_samples samples)
{
    add_cell(table, (struct bench_column){key, head, BENCH_SPREAD, decimals},
             (struct bench_cell){.empty = samples.count == 0, .spread = bench_spread(samples)});
}

// Plots.

void bench_plot(const char *title, const char *x, const char *y)
{
    struct cli_plot *plot = &bench.plot;
    snprintf(plot->title, sizeof plot->title, "%s", title);
    snprintf(plot->x_name, sizeof plot->x_name, "%s", x);
    snprintf(plot->y_name, sizeof plot->y_name, "%s", y);
}

void bench_plot_bar(const char *series, const char *group, struct bench_samples samples)
{
    const struct bench_spread spread = bench_spread(samples);
    if (samples.count > 0)
        cli_plot_add(cli_plot_series(&bench.plot, series),
                     (struct cli_plot_point){(double)cli_plot_group(&bench.plot, group),
                                             spread.median, spread.minimum, spread.maximum});
}

// How many turns were kept.
static unsigned long long turns_of(void)
{
    return cli_signal() && bench.turn <= bench.turns ? bench.turn - 1 : bench.turns;
}

// Text.

static void alignment_of(const struct bench_table *table, char *alignment)
{
    for (size_t i = 0; i < table->column_count; i++) {
        *alignment++ = table->columns[i].kind == BENCH_TEXT ? 'l' : 'r';
        if (table->columns[i].kind == BENCH_SPREAD)
            *alignment++ = 'l';
    }
    *alignment = '\0';
}

static void print_cell(struct weir_table *to, const struct bench_column *column,
                       const struct bench_cell *cell)
{
    const struct bench_spread *spread = &cell->spread;
    switch (column->kind) {
    case BENCH_TEXT:
        weir_table_add(to, "%s", cell->text);
        break;
    case BENCH_NUMBER:
        weir_table_add(to, "%.0f", cell->number);
        break;
    case BENCH_SPREAD:
        if (cell->empty) {
            weir_table_add(to, "%s", "");
            weir_table_add(to, "%s", "");
            break;
        }
        weir_table_add(to, "%.*f", column->decimals, spread->median);
        weir_table_add(to, "%.*f .. %.*f", column->decimals, spread->minimum, column->decimals,
                       spread->maximum);
        break;
    }
}

static void print_table(const struct bench_table *table)
{
    char alignment[64];
    struct weir_table to = {.alignment = alignment};
    alignment_of(table, alignment);
    for (size_t i = 0; i < table->column_count; i++) {
        weir_table_add(&to, "%s", table->columns[i].head);
        if (table->columns[i].kind == BENCH_SPREAD)
            weir_table_add(&to, "%s", "");
    }
    for (size_t i = 0; i < table->count; i++)
        print_cell(&to, &table->columns[i % table->column_count], &table->cells[i]);
    printf("\n%s\n", table->title);
    cli_table_print(&to, stdout, 2);
}

static void print_head(void)
{
    printf("%s", bench.command);
    if (bench.device) {
        const struct weir_device_info *info = weir_device_get_info(bench.device);
        printf(" on %s (%s, %s)", info->name, weir_runtime_backend(bench.runtime), info->driver);
    }
    printf("\nmedian of %llu turn%s, smallest .. largest", turns_of(), turns_of() == 1 ? "" : "s");
    for (size_t i = 0; i < bench.parameter_count; i++)
        printf("; %s %.6g", bench.parameters[i].key, bench.parameters[i].value);
    printf("; %llu results checked\n", (unsigned long long)bench.checked);
}

static void print_text(void)
{
    print_head();
    for (size_t i = 0; i < bench.table_count; i++)
        if (bench.tables[i].count > 0)
            print_table(&bench.tables[i]);
    for (size_t i = 0; i < bench.note_count; i++)
        printf("%snote: %s\n", i == 0 ? "\n" : "", bench.notes[i]);
}

// JSON.

static json_t *cell_value(const struct bench_column *column, const struct bench_cell *cell)
{
    if (column->kind == BENCH_TEXT)
        return cli_json_string(cell->text);
    if (column->kind == BENCH_NUMBER)
        return json_real(cell->number);
    if (cell->empty)
        return json_null();
    json_t *object = json_object();
    cli_json_set(object, "median", json_real(cell->spread.median));
    cli_json_set(object, "min", json_real(cell->spread.minimum));
    cli_json_set(object, "max", json_real(cell->spread.maximum));
    return object;
}

static json_t *row_value(const struct bench_table *table, size_t first)
{
    json_t *row = json_object();
    for (size_t i = 0; i < table->column_count; i++)
        cli_json_set(row, table->columns[i].key,
                     cell_value(&table->columns[i], &table->cells[first + i]));
    return row;
}

static json_t *table_value(const struct bench_table *table)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < table->count; i += table->column_count)
        cli_json_append(rows, row_value(table, i));
    return rows;
}

static void set_device(json_t *root)
{
    if (!bench.device)
        return;
    const struct weir_device_info *info = weir_device_get_info(bench.device);
    cli_json_set(root, "backend", cli_json_string(weir_runtime_backend(bench.runtime)));
    cli_json_set(root, "device", cli_json_string(info->name));
    cli_json_set(root, "driver", cli_json_string(info->driver));
}

static json_t *report_value(void)
{
    json_t *root = json_object();
    json_t *parameters = json_object();
    json_t *tables = json_object();
    json_t *notes = json_array();
    for (size_t i = 0; i < bench.parameter_count; i++)
        cli_json_set(parameters, bench.parameters[i].key, json_real(bench.parameters[i].value));
    for (size_t i = 0; i < bench.table_count; i++)
        cli_json_set(tables, bench.tables[i].key, table_value(&bench.tables[i]));
    for (size_t i = 0; i < bench.note_count; i++)
        cli_json_append(notes, cli_json_string(bench.notes[i]));
    cli_json_set(root, "weir", json_string(weir_version()));
    cli_json_set(root, "benchmark", json_string(bench.name));
    set_device(root);
    cli_json_set(root, "turns", weir_json_count(turns_of()));
    cli_json_set(root, "results_checked", weir_json_count(bench.checked));
    cli_json_set(root, "parameters", parameters);
    cli_json_set(root, "tables", tables);
    cli_json_set(root, "notes", notes);
    return root;
}

static int save_json(void)
{
    size_t size = 0;
    json_t *root = report_value();
    char *text = cli_json_text(root, CLI_JSON_TEXT, &size);
    return cli_write_file(bench.save_path, text, size, "the JSON text") ? CLI_OK : CLI_FAILED;
}

// Under the title of the plot: where the figures come from.
static void write_subtitle(void)
{
    struct cli_plot *plot = &bench.plot;
    const struct weir_device_info *info = bench.device ? weir_device_get_info(bench.device) : NULL;
    snprintf(plot->subtitle, sizeof plot->subtitle,
             "%s%s%s%smedian of %llu turns, with the smallest and the largest",
             info ? info->name : "", info ? " (" : "",
             info ? weir_runtime_backend(bench.runtime) : "", info ? "), " : "", turns_of());
}

// Prints the text or the JSON, draws the plot, returns the exit code.
static int bench_report(void)
{
    int code = CLI_OK;
    if (bench.json)
        code = cli_json_print(report_value(), CLI_OK);
    else
        print_text();
    if (bench.save_path && save_json() != CLI_OK)
        code = CLI_FAILED;
    if (bench.plot_path) {
        write_subtitle();
        cli_plot_write(&bench.plot, bench.plot_path);
    }
    return code;
}

enum {
    OPTIONS_MAX = 24
};

// Figures.

static int compare_numbers(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

void bench_sort(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_numbers);
}

struct bench_spread bench_spread(struct bench_samples samples)
{
    double *sorted = samples.values;
    const size_t count = samples.count;
    if (count == 0)
        return (struct bench_spread){0};
    bench_sort(sorted, count);
    return (struct bench_spread){
        .median = count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2,
        .minimum = sorted[0],
        .maximum = sorted[count - 1],
    };
}

struct bench_samples bench_ratio(struct bench_samples a, struct bench_samples b)
{
    a.count = a.count < b.count ? a.count : b.count;
    for (size_t i = 0; i < a.count; i++)
        a.values[i] = b.values[i] != 0 ? a.values[i] / b.values[i] : 0;
    return a;
}

struct bench_samples bench_difference(struct bench_samples a, struct bench_samples b)
{
    a.count = a.count < b.count ? a.count : b.count;
    for (size_t i = 0; i < a.count; i++)
        a.values[i] -= b.values[i];
    return a;
}

struct bench_samples bench_rate(struct bench_samples samples, double amount)
{
    for (size_t i = 0; i < samples.count; i++)
        samples.values[i] = samples.values[i] > 0 ? amount / samples.values[i] : 0;
    return samples;
}

struct bench_samples bench_scaled(struct bench_samples samples, double by)
{
    for (size_t i = 0; i < samples.count; i++)
        samples.values[i] *= by;
    return samples;
}

void bench_parameter(const char *key, double value)
{
    if (bench.parameter_count == BENCH_PARAMETERS_MAX)
        return;
    bench.parameters[bench.parameter_count].key = key;
    bench.parameters[bench.parameter_count++].value = value;
}

void bench_note(const char *format, ...)
{
    if (bench.note_count == BENCH_NOTES_MAX)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(bench.notes[bench.note_count++], sizeof bench.notes[0], format, arguments);
    va_end(arguments);
}

// Ending.

static void leave_turns(void)
{
    cli_progress_end(&bench.progress);
    cli_signals_resume();
}

static void leave_bench(void *object)
{
    (void)object;
    leave_turns();
    cli_clock_use(NULL);
}

static pthread_mutex_t wrong_lock = PTHREAD_MUTEX_INITIALIZER;

bool bench_wrong(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&wrong_lock);
    if (!bench.wrong[0])
        vsnprintf(bench.wrong, sizeof bench.wrong, format, arguments);
    pthread_mutex_unlock(&wrong_lock);
    va_end(arguments);
    return false;
}

void bench_judge(void)
{
    if (bench.wrong[0])
        cli_fail(CLI_FAILED, "%s", bench.wrong);
}

// Turns.

void bench_start(void)
{
    bench.turn = UINT64_MAX;
    bench.served[0] = '\0';
    cli_progress_start(&bench.progress, !bench.quiet, bench.turns + 1, NULL);
    cli_signals_defer(NULL, NULL);
}

// The line of the turn that has ended, after the first one the head. Then waits for a line.
static bool serve_turn(void)
{
    if (bench.turn == 0)
        printf("{\"peer\": \"%s\", \"device\": \"%s\", \"checked\": %llu}\n", bench.command,
               weir_device_get_info(bench.device)->name, (unsigned long long)bench.checked);
    else
        printf("{\"round\": %llu, \"ms\": {%s}}\n", (unsigned long long)bench.turn - 1,
               bench.served);
    fflush(stdout);
    bench.served[0] = '\0';
    for (int c = getchar(); c != '\n'; c = getchar())
        if (c == EOF)
            return false;
    return true;
}

bool bench_turn(void)
{
    const bool goes_on = !bench.serve || bench.turn == UINT64_MAX || serve_turn();
    bench.turn++; // from UINT64_MAX to 0
    if (goes_on && (bench.turn <= bench.turns || bench.serve) && !cli_signal())
        return true;
    leave_turns();
    return false;
}

void bench_keep(struct bench_samples *samples, double value)
{
    char name[32];
    snprintf(name, sizeof name, "turn %llu", (unsigned long long)bench.turn);
    cli_progress_update(&bench.progress, bench.turn, bench.turn == 0 ? "warming up" : name);
    if (bench.turn > 0 && samples->count < BENCH_TURNS_MAX)
        samples->values[samples->count++] = value;
    bench.kept += bench.turn > 0;
}

void bench_figure(struct bench_samples *samples, double ms, const char *format, ...)
{
    char name[96];
    const size_t used = strlen(bench.served);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    bench_keep(samples, ms);
    if (bench.serve)
        snprintf(bench.served + used, sizeof bench.served - used, "%s\"%s\": %.6f",
                 used ? ", " : "", name, ms);
}

// Lists.

static bool parse_word(const char *text, size_t length, const char *const *words, uint64_t *out)
{
    for (size_t i = 0; words && words[i]; i++)
        if (strlen(words[i]) == length && strncmp(words[i], text, length) == 0) {
            *out = BENCH_WORD + i;
            return true;
        }
    return false;
}

static bool parse_number(const char *text, size_t length, uint64_t *out)
{
    static const char suffixes[] = "KMGT";
    char *end;
    if (length == 0 || length > 18 || text[0] < '0' || text[0] > '9')
        return false;
    *out = strtoull(text, &end, 10);
    const char *suffix = end < text + length ? strchr(suffixes, *end) : NULL;
    if (suffix) {
        const unsigned shift = 10 * (unsigned)(suffix - suffixes + 1);
        if (*out > UINT64_MAX >> shift)
            return false;
        *out <<= shift;
        end++;
    }
    return end == text + length;
}

// "auto, engine".
static void join(const char *const *words, char *text, size_t size)
{
    text[0] = '\0';
    for (size_t i = 0; words && words[i]; i++)
        snprintf(text + strlen(text), size - strlen(text), "%s%s", i ? ", " : "", words[i]);
}

static _Noreturn void refuse_item(const char *option, const struct bench_list *list,
                                  const char *item, size_t length)
{
    char names[128];
    join(list->words, names, sizeof names);
    if (list->maximum == 0)
        cli_fail(CLI_USAGE, "--%s takes some of %s, with commas between them, not '%.*s'", option,
                 names, (int)length, item);
    cli_fail(CLI_USAGE,
             "--%s takes whole numbers from %llu to %llu%s%s%s, with commas between them, "
             "not '%.*s'",
             option, (unsigned long long)list->minimum, (unsigned long long)list->maximum,
             list->maximum >= 1 << 20 ? ", such as 64K or 16M" : "", list->words ? ", and " : "",
             names, (int)length, item);
}

void bench_parse_list(const char *option, struct bench_list *list)
{
    const size_t most = list->most ? list->most : BENCH_LIST_MAX;
    for (const char *text = list->text; text; text = *text ? text + 1 : NULL) {
        const size_t length = strcspn(text, ",");
        uint64_t value = 0;
        const bool number = list->maximum > 0 && parse_number(text, length, &value) &&
                            value >= list->minimum && value <= list->maximum;
        if (!number && !parse_word(text, length, list->words, &value))
            refuse_item(option, list, text, length);
        if (list->count == most)
            cli_fail(CLI_USAGE, "--%s takes at most %zu value%s; name fewer", option, most,
                     most == 1 ? "" : "s");
        list->values[list->count++] = value;
        text += length;
    }
}

static void parse_lists(const struct bench_program *program)
{
    for (size_t i = 0; i < program->option_count; i++)
        if (program->options[i].kind == CLI_VALUES)
            bench_parse_list(program->options[i].name, program->options[i].out);
}

// The device.

// Runs a kernel that adds 1 to 0, and returns the result.
static uint32_t increment_once(weir_device *device)
{
    static weir_queue *queue;
    static weir_program *program;
    static weir_kernel *kernel;
    static weir_buffer *buffer;
    uint32_t value = 0;
    bench_queue(device, "bench/probe", 0, &queue);
    bench_kernel(device, &conformance_kernels, "increment", &program, &kernel);
    bench_buffer(device, NULL, sizeof value, WEIR_PLACE_DEVICE, &buffer);
    cli_fine(weir_upload(queue, buffer, 0, &value, sizeof value));
    cli_fine(weir_queue_launch(queue, kernel, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                               weir_inout(buffer, 0, sizeof value), 1u, 1u));
    cli_fine(weir_download(queue, &value, buffer, 0, sizeof value));
    return value;
}

static void open_device(const struct bench_program *program)
{
    bench.runtime = cli_open(bench.config);
    bench.device = cli_device(bench.runtime, bench.select, NULL);
    bench.limits = weir_device_limits(bench.device);
    cli_clock_use(weir_runtime_extension(bench.runtime, WEIR_HOST_CLOCK));
    if (program->launches_nothing)
        return;
    bench.runs_kernels = increment_once(bench.device) != 0;
    if (cli_clock_is_virtual())
        bench_note("times are those of the modelled GPU, in virtual time");
    else if (!bench.runs_kernels)
        bench_note("this device runs no kernels: results were checked as copies, and times "
                   "are those of calls");
}

// The command.

// Only figures in tables have a plot, and a file of JSON.
static bool has_option(const struct bench_program *program, const void *out)
{
    if (out == &bench.serve)
        return program->serves;
    return !program->report || (out != &bench.plot_path && out != &bench.save_path);
}

static void parse(const struct bench_program *program, int argc, char **argv)
{
    const struct cli_option common[] = {
        {"turns", "N", "turns of each measurement (11)", CLI_COUNT, &bench.turns, 1,
         BENCH_TURNS_MAX},
        {"plot", "F.svg", "also draw the figures into this file", CLI_FILE, &bench.plot_path, 0, 0},
        {"output", "F.json", "also write the figures into this file, as JSON", CLI_FILE,
         &bench.save_path, 0, 0},
        {"json", NULL, "print the figures as JSON", CLI_FLAG, &bench.json, 0, 0},
        {"quiet", NULL, "no progress line and no notes on standard error", CLI_FLAG, &bench.quiet,
         0, 0},
        {"serve", NULL, "measure a turn for each line of the input", CLI_FLAG, &bench.serve, 0, 0},
        // Last, because benchmarks that choose their devices themselves do not have it.
        CLI_CONFIG(&bench.config),
    };
    const size_t common_count = sizeof common / sizeof *common - !program->opens_device;
    struct cli_option options[OPTIONS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < program->option_count; i++)
        options[count++] = program->options[i];
    for (size_t i = 0; i < common_count; i++)
        if (has_option(program, common[i].out))
            options[count++] = common[i];
    bench.name = argv[0];
    snprintf(bench.command, sizeof bench.command, "%s %s", bench.group, bench.name);
    const struct cli_usage usage = {
        .command = bench.command,
        .operands = program->operands ? program->operands : "",
        .operand = "an image",
        .about = program->about,
        .manual = program->manual ? program->manual : "weir-bench(1)",
        .options = options,
        .option_count = count,
        .operand_maximum = program->operands ? 64 : 0,
    };
    bench.operands = argv;
    bench.operand_count = cli_parse(&usage, argc, argv);
}

// After an interrupt the whole turns measured so far are reported, if there are any.
static int finish_run(const struct bench_program *program, void *user)
{
    int code = CLI_OK;
    if (cli_signal() && bench.kept == 0)
        cli_fail(CLI_SIGNALLED + cli_signal(),
                 "interrupted before the first turn was over: there are no figures");
    if (program->report)
        code = program->report(user);
    else if (!bench.silent && !bench.serve)
        code = bench_report();
    return cli_signal() ? CLI_SIGNALLED + cli_signal() : code;
}

int bench_main(const struct bench_program *program, void *user, int argc, char **argv)
{
    parse(program, argc, argv);
    parse_lists(program);
    cli_quiet = bench.quiet;
    cli_log_to_stderr();
    cli_need_writable(bench.plot_path);
    cli_need_writable(bench.save_path);
    cli_signals_start();
    cli_own(leave_bench, NULL);
    if (program->select)
        bench.select = *program->select;
    if (program->check)
        program->check(user);
    if (program->opens_device)
        open_device(program);
    program->run(user);
    leave_turns();
    return finish_run(program, user);
}
