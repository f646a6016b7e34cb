// What every benchmark shares: command line, device, turns, failures, and what is printed.
#include "cli/bench/bench.h"

#include <pthread.h>

#include "cli/common/signals.h"
#include "kernels/conformance/conformance.h"

struct bench bench = {.turns = 11, .group = "weir bench"};

// The figures of a benchmark: tables on the terminal, JSON, and the plot.

// Filling.

struct bench_table *bench_table(const char *key, const char *title)
{
    const size_t index =
        bench.table_count < BENCH_TABLES_MAX ? bench.table_count++ : BENCH_TABLES_MAX - 1;
    bench.tables[index] = (struct bench_table){.title = cli_copy(title), .rows = json_array()};
    cli_json_set(bench.rows, key, bench.tables[index].rows);
    return &bench.tables[index];
}

static void put(struct bench_table *table, struct bench_column column, json_t *value)
{
    json_t *row = json_array_get(table->rows, json_array_size(table->rows) - 1);
    if (!row || json_object_get(row, column.key)) {
        row = json_object();
        cli_json_append(table->rows, row);
    }
    if (json_array_size(table->rows) == 1 && table->column_count < BENCH_COLUMNS_MAX)
        table->columns[table->column_count++] = column;
    cli_json_set(row, column.key, value);
}

void bench_text(struct bench_table *table, const char *key, const char *head, const char *text)
{
    put(table, (struct bench_column){key, head, "l", 0}, cli_json_string(text));
}

void bench_number(struct bench_table *table, const char *key, const char *head, double number)
{
    put(table, (struct bench_column){key, head, "r", 0}, json_real(number));
}

void bench_value(struct bench_table *table, const char *key, const char *head, int decimals,
                 struct bench_samples samples)
{
    const struct bench_spread spread = bench_spread(samples);
    json_t *value = samples.count > 0 ? json_pack("{s:f, s:f, s:f}", "median", spread.median, "min",
                                                  spread.minimum, "max", spread.maximum)
                                      : json_null();
    put(table, (struct bench_column){key, head, "rl", decimals}, value);
}

// Plots.

void bench_plot(const char *title, const char *x, const char *y)
{
    struct cli_plot *plot = &bench.plot;
    snprintf(plot->title, sizeof plot->title, "%s", title);
    snprintf(plot->x_name, sizeof plot->x_name, "%s", x);
    snprintf(plot->y_name, sizeof plot->y_name, "%s", y);
}

void bench_plot_point(const char *series, double x, struct bench_samples samples)
{
    const struct bench_spread spread = bench_spread(samples);
    if (samples.count > 0)
        cli_plot_add(cli_plot_series(&bench.plot, series),
                     (struct cli_plot_point){x, spread.median, spread.minimum, spread.maximum});
}

void bench_plot_bar(const char *series, const char *group, struct bench_samples samples)
{
    if (samples.count > 0)
        bench_plot_point(series, (double)cli_plot_group(&bench.plot, group), samples);
}

void bench_plot_level(const char *name, double level)
{
    snprintf(bench.plot.level_name, sizeof bench.plot.level_name, "%s", name);
    bench.plot.level = level;
}

// How many turns were kept.
static unsigned long long turns_of(void)
{
    return cli_signal() && bench.turn <= bench.turns ? bench.turn - 1 : bench.turns;
}

// Text.

static double part(const json_t *spread, const char *key)
{
    return json_real_value(json_object_get(spread, key));
}

static void print_cell(struct weir_table *to, const struct bench_column *column,
                       const json_t *value)
{
    const int decimals = column->decimals;
    if (json_is_string(value))
        weir_table_add(to, "%s", json_string_value(value));
    else if (json_is_real(value))
        weir_table_add(to, "%.0f", json_real_value(value));
    else if (json_is_null(value))
        weir_table_add(to, "\t");
    else
        weir_table_add(to, "%.*f\t%.*f .. %.*f", decimals, part(value, "median"), decimals,
                       part(value, "min"), decimals, part(value, "max"));
}

static void print_table(const struct bench_table *table)
{
    char alignment[2 * BENCH_COLUMNS_MAX + 1] = "";
    struct weir_table to = {.alignment = alignment};
    size_t index;
    json_t *row;
    for (size_t i = 0; i < table->column_count; i++) {
        strcat(alignment, table->columns[i].alignment);
        weir_table_add(&to, table->columns[i].alignment[1] ? "%s\t" : "%s", table->columns[i].head);
    }
    json_array_foreach(table->rows, index, row)
    {
        for (size_t i = 0; i < table->column_count; i++)
            print_cell(&to, &table->columns[i], json_object_get(row, table->columns[i].key));
    }
    printf("\n%s\n", table->title);
    cli_table_print(&to, stdout, 2);
}

// The device; "" without one.
static const char *place(void)
{
    if (!bench.device)
        return "";
    const struct weir_device_info *info = weir_device_get_info(bench.device);
    return cli_text("%s (%s, %s)", info->name, weir_runtime_backend(bench.runtime), info->driver);
}

static void print_text(void)
{
    size_t index;
    json_t *note;
    const char *key;
    json_t *value;
    printf("%s%s%s\nmedian of %llu turn%s, smallest .. largest", bench.command,
           bench.device ? " on " : "", place(), turns_of(), turns_of() == 1 ? "" : "s");
    json_object_foreach(bench.parameters, key, value)
    {
        printf("; %s %.6g", key, json_real_value(value));
    }
    printf("; %llu results checked\n", (unsigned long long)bench.checked);
    for (size_t i = 0; i < bench.table_count; i++)
        if (json_array_size(bench.tables[i].rows) > 0)
            print_table(&bench.tables[i]);
    json_array_foreach(bench.notes, index, note)
    {
        printf("%snote: %s\n", index == 0 ? "\n" : "", json_string_value(note));
    }
}

// JSON.

static json_t *report_value(void)
{
    json_t *root = json_pack("{s:s, s:s, s:o, s:o, s:O, s:O, s:O}", "weir", weir_version(),
                             "benchmark", bench.name, "turns", weir_json_count(turns_of()),
                             "results_checked", weir_json_count(bench.checked), "parameters",
                             bench.parameters, "tables", bench.rows, "notes", bench.notes);
    if (bench.device) {
        const struct weir_device_info *info = weir_device_get_info(bench.device);
        cli_json_set(root, "backend", cli_json_string(weir_runtime_backend(bench.runtime)));
        cli_json_set(root, "device", cli_json_string(info->name));
        cli_json_set(root, "driver", cli_json_string(info->driver));
    }
    return root;
}

// Prints the text or the JSON, draws the plot, returns the exit code.
static int bench_report(void)
{
    int code = CLI_OK;
    if (bench.json)
        code = cli_json_print(report_value(), CLI_OK);
    else
        print_text();
    if (bench.save_path) {
        size_t size = 0;
        char *text = cli_json_text(report_value(), CLI_JSON_TEXT, &size);
        if (!cli_write_file(bench.save_path, text, size, "the JSON text"))
            code = CLI_FAILED;
    }
    if (bench.plot_path) {
        snprintf(bench.plot.subtitle, sizeof bench.plot.subtitle,
                 "%s%smedian of %llu turns, with the smallest and the largest", place(),
                 bench.device ? ", " : "", turns_of());
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

const char *bench_bytes(uint64_t bytes)
{
    return cli_copy(weir_text_bytes(bytes).text);
}

const char *const bench_off_on[] = {"off", "on", NULL};

const char *bench_slots(uint32_t slots, bool graphs, uint32_t devices)
{
    return cli_text("%u slot%s%s%s", (unsigned)slots, slots == 1 ? "" : "s",
                    graphs ? ", graphs" : "",
                    devices > 1 ? cli_text(", %u devices", (unsigned)devices) : "");
}

bool bench_is_processor(void)
{
    return bench.limits->unified_memory && bench.limits->copy_engines_to_device == 0;
}

void bench_parameter(const char *key, double value)
{
    cli_json_set(bench.parameters, key, json_real(value));
}

void bench_note(const char *format, ...)
{
    char note[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(note, sizeof note, format, arguments);
    va_end(arguments);
    cli_json_append(bench.notes, cli_json_string(note));
}

// Ending.

static void leave_turns(void)
{
    cli_progress_end(&bench.progress);
    cli_signals_resume();
}

static void leave_bench(void *object)
{
    leave_turns();
    cli_clock_use(NULL);
    json_decref(bench.rows);
    json_decref(bench.parameters);
    json_decref(bench.notes);
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

void bench_serve(double ms, const char *format, ...)
{
    char name[96];
    const size_t used = strlen(bench.served);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    snprintf(bench.served + used, sizeof bench.served - used, "%s\"%s\": %.6f", used ? ", " : "",
             name, ms);
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

static _Noreturn void refuse_item(const char *option, const struct bench_list *list,
                                  const char *item, size_t length)
{
    char names[128] = "";
    for (size_t i = 0; list->words && list->words[i]; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "",
                 list->words[i]);
    const char *numbers =
        cli_text("whole numbers from %llu to %llu%s%s", (unsigned long long)list->minimum,
                 (unsigned long long)list->maximum,
                 list->maximum >= 1 << 20 ? ", such as 64K or 16M" : "",
                 list->words ? ", and " : "");
    cli_fail(CLI_USAGE, "--%s takes %s%s, with commas between them, not '%.*s'", option,
             list->maximum ? numbers : "some of ", names, (int)length, item);
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

// The device.

// Runs a kernel that adds 1 to 0, and returns the result.
static uint32_t increment_once(weir_device *device)
{
    static weir_queue *queue;
    static weir_kernel *kernel;
    static weir_buffer *buffer;
    uint32_t value = 0;
    bench_queue(device, "bench/probe", 0, &queue);
    bench_kernel(device, &conformance_kernels, "increment", &kernel);
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
    if (bench.select)
        bench.devices[bench.device_count++] = cli_device(bench.runtime, bench.select, NULL);
    else
        bench.device_count = cli_devices_open(bench.runtime, &bench.wanted, bench.devices);
    bench.device = bench.devices[0];
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
        CLI_CONFIG(&bench.config),
    };
    struct cli_option options[OPTIONS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < program->option_count; i++)
        options[count++] = program->options[i];
    for (size_t i = 0; i < BENCH_COUNT(common); i++)
        if (has_option(program, common[i].out))
            options[count++] = common[i];
    bench.name = argv[0];
    snprintf(bench.command, sizeof bench.command, "%s %s", bench.group, bench.name);
    const struct cli_usage usage = {
        .command = bench.command,
        .operands = program->operands ? program->operands : "",
        .operand = "an image",
        .about = program->about,
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
    bench.rows = json_object();
    bench.parameters = json_object();
    bench.notes = json_array();
    parse(program, argc, argv);
    for (size_t i = 0; i < program->option_count; i++)
        if (program->options[i].kind == CLI_VALUES)
            bench_parse_list(program->options[i].name, program->options[i].out);
    cli_quiet = bench.quiet;
    cli_log_to_stderr();
    cli_need_writable(bench.plot_path);
    cli_need_writable(bench.save_path);
    cli_signals_start();
    cli_own(leave_bench, NULL);
    if (program->check)
        program->check(user);
    if (!program->opens_devices)
        open_device(program);
    program->run(user);
    leave_turns();
    return finish_run(program, user);
}
