// What every benchmark shares: command line, device, turns, failures.
#include "cli/bench/bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/signals.h"
#include "cli/runtime/open.h"
#include "kernels/conformance/conformance.h"

enum {
    OPTIONS_MAX = 24
};

// Figures.

static int compare_numbers(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

struct bench_spread bench_spread(const struct bench_samples *samples)
{
    double sorted[BENCH_TURNS_MAX];
    const size_t count = samples->count;
    if (count == 0)
        return (struct bench_spread){0};
    memcpy(sorted, samples->values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_numbers);
    return (struct bench_spread){
        .median = count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2,
        .minimum = sorted[0],
        .maximum = sorted[count - 1],
    };
}

struct bench_samples bench_ratio(const struct bench_samples *a, const struct bench_samples *b)
{
    struct bench_samples result = {.count = a->count < b->count ? a->count : b->count};
    for (size_t i = 0; i < result.count; i++)
        result.values[i] = b->values[i] != 0 ? a->values[i] / b->values[i] : 0;
    return result;
}

struct bench_samples bench_difference(const struct bench_samples *a, const struct bench_samples *b)
{
    struct bench_samples result = {.count = a->count < b->count ? a->count : b->count};
    for (size_t i = 0; i < result.count; i++)
        result.values[i] = a->values[i] - b->values[i];
    return result;
}

void bench_parameter(struct bench *bench, const char *key, double value)
{
    if (bench->parameter_count == BENCH_PARAMETERS_MAX)
        return;
    bench->parameters[bench->parameter_count].key = key;
    bench->parameters[bench->parameter_count++].value = value;
}

void bench_note(struct bench *bench, const char *format, ...)
{
    if (bench->note_count == BENCH_NOTES_MAX)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(bench->notes[bench->note_count++], sizeof bench->notes[0], format, arguments);
    va_end(arguments);
}

// Failures.

static bool fail(struct bench *bench, int code, const char *format, va_list arguments)
{
    char text[2048];
    vsnprintf(text, sizeof text, format, arguments);
    cli_error("%s", text);
    bench->code = code;
    return false;
}

bool bench_fail(struct bench *bench, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(bench, code, format, arguments);
    va_end(arguments);
    return false;
}

bool bench_fail_result(struct bench *bench, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(bench, CLI_FAILED, format, arguments);
    va_end(arguments);
    return false;
}

bool bench_fail_weir(struct bench *bench)
{
    bench->code = cli_weir_error();
    return false;
}

bool bench_fine(struct bench *bench, weir_status status)
{
    return status == WEIR_OK || bench_fail_weir(bench);
}

// Turns.

void bench_start(struct bench *bench)
{
    bench->turn = UINT64_MAX;
    bench->served[0] = '\0';
    cli_progress_start(&bench->progress, !bench->quiet, bench->turns + 1, NULL);
    cli_signals_defer(NULL, NULL);
}

// The line of the turn that has ended, after the first one the head. Then waits for a line.
static bool serve_turn(struct bench *bench)
{
    if (bench->turn == 0)
        printf("{\"peer\": \"%s\", \"device\": \"%s\", \"checked\": %llu}\n", bench->command,
               weir_device_get_info(bench->device)->name, (unsigned long long)bench->checked);
    else
        printf("{\"round\": %llu, \"ms\": {%s}}\n", (unsigned long long)bench->turn - 1,
               bench->served);
    fflush(stdout);
    bench->served[0] = '\0';
    for (int c = getchar(); c != '\n'; c = getchar())
        if (c == EOF)
            return false;
    return true;
}

bool bench_turn(struct bench *bench)
{
    const bool goes_on = !bench->serve || bench->turn == UINT64_MAX || serve_turn(bench);
    bench->turn++; // from UINT64_MAX to 0
    if (goes_on && (bench->turn <= bench->turns || bench->serve) && !cli_signal())
        return true;
    cli_progress_end(&bench->progress);
    cli_signals_resume();
    return false;
}

void bench_keep(struct bench *bench, struct bench_samples *samples, double value)
{
    char name[32];
    snprintf(name, sizeof name, "turn %llu", (unsigned long long)bench->turn);
    cli_progress_update(&bench->progress, bench->turn, bench->turn == 0 ? "warming up" : name);
    bench_add(bench, samples, value);
    bench->kept += bench->turn > 0;
}

void bench_add(const struct bench *bench, struct bench_samples *samples, double value)
{
    if (bench->turn > 0 && samples->count < BENCH_TURNS_MAX)
        samples->values[samples->count++] = value;
}

void bench_figure(struct bench *bench, struct bench_samples *samples, double ms, const char *format,
                  ...)
{
    char name[96];
    const size_t used = strlen(bench->served);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    bench_keep(bench, samples, ms);
    if (bench->serve)
        snprintf(bench->served + used, sizeof bench->served - used, "%s\"%s\": %.6f",
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

static bool refuse_item(struct bench *bench, const char *option, const char *item, size_t length,
                        const char *const *words, uint64_t minimum, uint64_t maximum)
{
    char names[128];
    join(words, names, sizeof names);
    if (maximum == 0)
        return bench_fail(bench, CLI_USAGE,
                          "--%s takes some of %s, with commas between them, not '%.*s'", option,
                          names, (int)length, item);
    return bench_fail(bench, CLI_USAGE,
                      "--%s takes whole numbers from %llu to %llu%s%s%s, with commas between them, "
                      "not '%.*s'",
                      option, (unsigned long long)minimum, (unsigned long long)maximum,
                      maximum >= 1 << 20 ? ", such as 64K or 16M" : "", words ? ", and " : "",
                      names, (int)length, item);
}

bool bench_parse_list(struct bench *bench, const char *option, const char *text,
                      const char *const *words, uint64_t minimum, uint64_t maximum,
                      struct bench_list *out_list)
{
    *out_list = (struct bench_list){0};
    for (;; text++) {
        const size_t length = strcspn(text, ",");
        uint64_t value = 0;
        const bool number = maximum > 0 && parse_number(text, length, &value) && value >= minimum &&
                            value <= maximum;
        if (!number && !parse_word(text, length, words, &value))
            return refuse_item(bench, option, text, length, words, minimum, maximum);
        if (out_list->count == BENCH_LIST_MAX)
            return bench_fail(bench, CLI_USAGE, "--%s takes at most %d values; name fewer", option,
                              BENCH_LIST_MAX);
        out_list->values[out_list->count++] = value;
        text += length;
        if (*text == '\0')
            return true;
    }
}

// The device.

// Runs a kernel that adds 1 to 0 and stores the result. Errors are those of Weir.
static weir_status increment_once(const struct bench *bench, uint32_t *out_value)
{
    weir_queue *queue = NULL;
    weir_program *program = NULL;
    weir_kernel *kernel = NULL;
    weir_buffer *buffer = NULL;
    weir_status status;
    *out_value = 0;
    if ((status = weir_queue_create(bench->device, WEIR_PARAMS(weir_queue, .label = "bench/probe"),
                                    &queue)) == WEIR_OK &&
        (status = weir_program_create(bench->device,
                                      WEIR_PARAMS(weir_program, .bundle = &conformance_kernels),
                                      &program)) == WEIR_OK &&
        (status = weir_kernel_create(program, "increment", &kernel)) == WEIR_OK &&
        (status =
             weir_buffer_create(bench->device, WEIR_PARAMS(weir_buffer, .size = sizeof *out_value),
                                &buffer)) == WEIR_OK &&
        (status = weir_upload(queue, buffer, 0, out_value, sizeof *out_value)) == WEIR_OK &&
        (status = weir_queue_launch(queue, kernel, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                    weir_inout(buffer, 0, sizeof *out_value), 1u, 1u)) == WEIR_OK)
        status = weir_download(queue, out_value, buffer, 0, sizeof *out_value);
    weir_buffer_destroy(&buffer);
    weir_kernel_destroy(&kernel);
    weir_program_destroy(&program);
    weir_queue_destroy(&queue);
    return status;
}

static bool open_device(const struct bench_program *program, struct bench *bench)
{
    const struct weir_device_params params = {.struct_size = sizeof params,
                                              .select = bench->select};
    uint32_t value;
    if (cli_open(bench->config, NULL, &bench->runtime) < 0 ||
        weir_device_open_at(bench->runtime, &params, &bench->device, NULL, 0) < 0)
        return bench_fail_weir(bench);
    bench->limits = weir_device_limits(bench->device);
    cli_clock_use(weir_runtime_extension(bench->runtime, WEIR_HOST_CLOCK));
    if (program->launches_nothing)
        return true;
    if (increment_once(bench, &value) < 0)
        return bench_fail_weir(bench);
    bench->runs_kernels = value != 0;
    if (cli_clock_is_virtual())
        bench_note(bench, "times are those of the modelled GPU, in virtual time");
    else if (!bench->runs_kernels)
        bench_note(bench, "this device runs no kernels: results were checked as copies, and times "
                          "are those of calls");
    return true;
}

// The command.

static bool parse(const struct bench_program *program, struct bench *bench, int argc, char **argv,
                  int *out_code)
{
    const struct cli_option common[] = {
        {"turns", "N", "turns of each measurement (11)", CLI_COUNT, &bench->turns, 1,
         BENCH_TURNS_MAX},
        {"plot", "F.svg", "also draw the figures into this file", CLI_FILE, &bench->plot_path, 0,
         0},
        {"output", "F.json", "also write the figures into this file, as JSON", CLI_FILE,
         &bench->save_path, 0, 0},
        {"json", NULL, "print the figures as JSON", CLI_FLAG, &bench->json, 0, 0},
        {"quiet", NULL, "no progress line and no notes on standard error", CLI_FLAG, &bench->quiet,
         0, 0},
        {"serve", NULL, "measure a turn for each line of the input", CLI_FLAG, &bench->serve, 0, 0},
        // Last, because benchmarks that choose their devices themselves do not have it.
        CLI_CONFIG(&bench->config),
    };
    const size_t common_count = sizeof common / sizeof *common - !program->opens_device;
    struct cli_option options[OPTIONS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < program->option_count; i++)
        options[count++] = program->options[i];
    for (size_t i = 0; i < common_count; i++)
        if (common[i].out != &bench->serve || program->serves)
            options[count++] = common[i];
    snprintf(bench->command, sizeof bench->command, "%s %s",
             program->group ? program->group : "weir bench", program->name);
    const struct cli_usage usage = {
        .command = bench->command,
        .operands = program->operands ? program->operands : "",
        .operand = "an image",
        .about = program->about,
        .manual = "weir-bench(1)",
        .options = options,
        .option_count = count,
        .operand_maximum = program->operands ? 64 : 0,
    };
    bench->operands = argv;
    return cli_parse(&usage, argc, argv, &bench->operand_count, out_code);
}

// After an interrupt the whole turns measured so far are reported, if there are any.
static void finish_run(struct bench *bench, const char *name, bool fine)
{
    if (!fine)
        return;
    if (cli_signal() && bench->kept == 0)
        bench_fail(bench, CLI_SIGNALLED + cli_signal(),
                   "interrupted before the first turn was over: there are no figures");
    else if (!bench->silent && !bench->serve)
        bench->code = bench_report(bench, name);
    if (cli_signal())
        bench->code = CLI_SIGNALLED + cli_signal();
}

int bench_main(const struct bench_program *program, void *user, int argc, char **argv)
{
    struct bench *bench = calloc(1, sizeof *bench);
    int code = CLI_FAILED;
    if (!bench) {
        cli_error("no memory for the figures");
        return code;
    }
    bench->turns = 11;
    if (parse(program, bench, argc, argv, &code)) {
        cli_set_quiet(bench->quiet);
        cli_log_to_stderr();
        if (cli_can_write(bench->plot_path) && cli_can_write(bench->save_path) &&
            cli_signals_start()) {
            const bool fine = (!program->check || program->check(bench, user)) &&
                              (!program->opens_device || open_device(program, bench)) &&
                              program->run(bench, user);
            cli_progress_end(&bench->progress);
            cli_signals_resume();
            finish_run(bench, program->name, fine);
            cli_clock_use(NULL);
            bench->code = cli_close(&bench->device, &bench->runtime, bench->code);
            cli_signals_end();
        } else {
            bench->code = CLI_FAILED;
        }
        code = bench->code;
    }
    for (size_t i = 0; i < bench->table_count; i++)
        free(bench->tables[i].cells);
    free(bench);
    return code;
}
