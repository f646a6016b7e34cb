// The command line, the figures, the device and work on it that is timed, and what becomes of the figures: the model
// as an INI file, a table, or JSON.
#include <math.h>

#include "base/file.h"
#include "cli/calibrate/calibrate.h"
#include "cli/common/signals.h"
#include "kernels/bench/bench.h"

enum unit {
    WORD, // engine or stream
    NUMBER,
    GB_PER_S,
    NS,
};

static const struct about {
    const char *name;
    enum unit unit;
    const char *how;
} keys[CAL_KEYS] = {
#define X(key, name, unit, how) {name, unit, how},
    CAL_FIGURES(X)
#undef X
};

// Figures.

// A difference of times that is negative was too small to be measured.
struct cal_figure cal_median(struct calibration *c, cal_measure measure, size_t at)
{
    struct bench_samples samples = {.count = 0};
    c->at = at;
    if (!cli_clock_is_virtual())
        measure(c); // warms up
    while (samples.count < bench.turns) {
        if (cli_signal())
            cli_fail(CLI_SIGNALLED + cli_signal(), "interrupted: there is no model");
        samples.values[samples.count++] = measure(c);
    }
    const struct bench_spread spread = bench_spread(samples);
    return (struct cal_figure){.measured = true,
                               .spreads = true,
                               .value = fmax(spread.median, 0),
                               .least = fmax(spread.minimum, 0),
                               .most = fmax(spread.maximum, 0)};
}

void cal_measure_figure(struct calibration *c, enum cal_key key, cal_measure measure)
{
    c->figures[key] = cal_median(c, measure, key);
}

void cal_figure_set(struct calibration *c, enum cal_key key, double value)
{
    c->figures[key] = (struct cal_figure){.measured = true, .value = value};
}

void cal_figure_leave(struct calibration *c, enum cal_key key, const char *why)
{
    c->figures[key] = (struct cal_figure){.why = why};
}

// The device, its queues, buffers and graphs, and work on them that is timed.

#define LARGE_GPU ((size_t)64 << 20)
#define LARGE_CPU ((size_t)4 << 20)
#define LARGE_VIRTUAL ((size_t)16 << 20) // the bytes are copied too
#define SMALL ((size_t)4 << 10)

void cal_reserve_queues(struct calibration *c, size_t count)
{
    for (; c->queue_count < count; c->queue_count++)
        bench_queue(bench.device, "calibrate", 0, &c->queues[c->queue_count]);
}

static weir_status do_nothing(void *user)
{
    return WEIR_OK;
}

// Kernels of different queues have numbers of their own.
static weir_status submit_one(struct calibration *c, size_t queue, const struct cal_work *work)
{
    const size_t bytes = CAL_BLOCK * sizeof(uint32_t);
    weir_queue *on = c->queues[queue];
    switch (work->kind) {
    case CAL_LAUNCH:
        return weir_queue_launch(on, c->kernel, weir_dim(1, 1, 1), weir_dim(CAL_BLOCK, 1, 1),
                                 weir_inout(c->numbers, queue * bytes, bytes), work->rounds,
                                 (uint32_t)CAL_BLOCK);
    case CAL_CALL:
        return weir_queue_host_call(on, do_nothing, NULL);
    case CAL_GRAPH:
    case CAL_CHAIN:
    case CAL_LONG:
    case CAL_FORK:
        return weir_queue_graph(on, c->graphs[work->kind - CAL_GRAPH]);
    default:
        return weir_queue_copy(on, c->to[work->kind], 0, c->from[work->kind], 0, work->bytes);
    }
}

void cal_submit(struct calibration *c, size_t queue, const struct cal_work *work, uint64_t count)
{
    for (; count > 0; count--)
        cli_fine(submit_one(c, queue, work));
}

void cal_sync(struct calibration *c, size_t queue)
{
    struct weir_event end;
    cli_fine(weir_queue_record(c->queues[queue], &end));
    cli_fine(weir_event_sync(end, WEIR_FOREVER));
}

void cal_gate(struct calibration *c, size_t queue)
{
    const struct cal_work large = {.kind = CAL_UP, .bytes = c->large};
    cal_submit(c, queue, &large, c->gate_count);
}

void cal_prepare(struct calibration *c, size_t queue, const struct cal_work *work)
{
    cal_submit(c, queue, work, 1);
    cal_sync(c, queue);
}

double cal_time(struct calibration *c, const struct cal_work *work, uint64_t count)
{
    cal_prepare(c, 0, work);
    const uint64_t began = cli_now_ns();
    cal_submit(c, 0, work, count);
    cal_sync(c, 0);
    return (double)(cli_now_ns() - began);
}

static double time_turns(struct calibration *c, const struct cal_work *works, size_t kinds,
                         uint64_t turns)
{
    const struct cal_work small = {.kind = CAL_UP, .bytes = c->sizes[0]};
    cal_prepare(c, 0, &small);
    const uint64_t began = cli_now_ns();
    cal_gate(c, 0);
    for (uint64_t i = 0; i < kinds * turns; i++)
        cal_submit(c, 0, &works[i % kinds], 1);
    cal_sync(c, 0);
    return (double)(cli_now_ns() - began);
}

double cal_each(struct calibration *c, const struct cal_work *works, size_t kinds, uint64_t turns)
{
    const double few = time_turns(c, works, kinds, turns);
    return (time_turns(c, works, kinds, 2 * turns) - few) / (double)turns;
}

double cal_submits(struct calibration *c, size_t queues, const struct cal_work *works, size_t kinds)
{
    for (size_t i = 0; i < queues; i++)
        cal_prepare(c, i, &works[0]);
    const uint64_t began = cli_now_ns();
    for (size_t i = 0; i < CAL_SUBMITS; i++)
        cal_submit(c, i / kinds % queues, &works[i % kinds], 1);
    const double ns = (double)(cli_now_ns() - began) / CAL_SUBMITS;
    for (size_t i = 0; i < queues; i++)
        cal_sync(c, i);
    return ns;
}

// The device.

static void create_buffers(struct calibration *c)
{
    const weir_placement host = WEIR_PLACE_HOST, device = WEIR_PLACE_DEVICE;
    const bool cpu = bench.limits->kind == WEIR_DEVICE_CPU;
    const size_t most = cli_clock_is_virtual() ? LARGE_VIRTUAL : cpu ? LARGE_CPU : LARGE_GPU;
    weir_device *on = bench.device;
    for (size_t size = SMALL; size <= most; size *= 4)
        c->sizes[c->size_count++] = c->large = size;
    c->gate_count = 1;
    for (int kind = CAL_UP; kind <= CAL_WITHIN; kind++) {
        bench_buffer(on, "calibrate", c->large, kind == CAL_UP ? host : device, &c->from[kind]);
        bench_buffer(on, "calibrate", c->large, kind == CAL_DOWN ? host : device, &c->to[kind]);
    }
    bench_buffer(on, "calibrate", CAL_QUEUES * (CAL_BLOCK * sizeof(uint32_t)), device, &c->numbers);
}

// Graphs.

static const struct cal_work single = {.kind = CAL_LAUNCH, .rounds = 1};

// The first queue's kernel, and after it one in each of several queues, which the first waits for.
static void submit_fork(struct calibration *c)
{
    struct weir_event event;
    cal_submit(c, 0, &single, 1);
    cli_fine(weir_queue_record(c->queues[0], &event));
    for (size_t i = 1; i < CAL_BRANCHES; i++)
        cli_fine(weir_queue_wait(c->queues[i], event));
    for (size_t i = 0; i < CAL_BRANCHES; i++)
        cal_submit(c, i, &single, 1);
    for (size_t i = 1; i < CAL_BRANCHES; i++) {
        cli_fine(weir_queue_record(c->queues[i], &event));
        cli_fine(weir_queue_wait(c->queues[0], event));
    }
}

CLI_DESTROYER(destroy_graph, weir_graph_destroy)

static void create_graph(struct calibration *c, enum cal_kind kind)
{
    const uint64_t length = kind == CAL_LONG ? CAL_LENGTH : kind == CAL_CHAIN ? 2 : 1;
    weir_graph **graph = &c->graphs[kind - CAL_GRAPH];
    cli_fine(weir_capture_begin(c->queues[0]));
    if (kind == CAL_FORK)
        submit_fork(c);
    else
        cal_submit(c, 0, &single, length);
    cli_fine(weir_capture_end(c->queues[0], NULL, graph));
    cli_own(destroy_graph, graph);
}

// Runs the kernel once on zeros.
static void check_times(struct calibration *c)
{
    static const uint32_t zero = 0;
    const size_t bytes = CAL_BLOCK * sizeof zero;
    uint32_t number = 0;
    if (cli_clock_is_virtual())
        return;
    cli_fine(weir_queue_fill(c->queues[0], c->numbers, 0, bytes, &zero, sizeof zero));
    cal_submit(c, 0, &single, 1);
    cli_fine(weir_download(c->queues[0], &number, c->numbers, 0, sizeof number));
    if (number == 0)
        cli_fail(
            CLI_SETUP,
            "the device '%s' of the backend %s runs no kernels, so its times tell nothing of a "
            "GPU; choose another backend, or a modelled GPU with weir sim",
            weir_device_get_info(bench.device)->name, weir_runtime_backend(bench.runtime));
}

// What is written.

static const char *show(enum unit unit, double value)
{
    if (unit == WORD)
        return value > 0 ? "stream" : "engine";
    return cli_text(unit == GB_PER_S ? "%.3f" : "%.0f", value);
}

// The model.

static void write_head(struct weir_long_text *ini)
{
    const struct weir_device_info *info = weir_device_get_info(bench.device);
    weir_long_text_add(ini, "; %s, driver %s, backend %s: measured by weir calibrate %s; medians\n",
                       info->name, info->driver, weir_runtime_backend(bench.runtime),
                       weir_version());
    weir_long_text_add(ini, "; of %llu turns, with the least and the most.\n",
                       (unsigned long long)bench.turns);
    const bool processor = bench.limits->kind == WEIR_DEVICE_CPU;
    if (cli_clock_is_virtual())
        weir_long_text_add(ini, "; The times are those of a modelled GPU.\n");
    else if (processor)
        weir_long_text_add(ini, "; The device is the machine's processors: these are no figures of "
                                "a GPU.\n");
    weir_long_text_add(ini, "\n[gpu]\nname = %s\nkind = %s\n", info->name,
                       processor ? "cpu" : "gpu");
}

static void write_key(const struct cal_figure *figure, const struct about *about,
                      struct weir_long_text *ini)
{
    if (!figure->measured) {
        weir_long_text_add(ini, "; %s was not measured: %s\n", about->name, figure->why);
        return;
    }
    weir_long_text_add(ini, "; %s", about->how);
    if (figure->spreads)
        weir_long_text_add(ini, "; %s to %s", show(about->unit, figure->least),
                           show(about->unit, figure->most));
    weir_long_text_add(ini, "\n%s = %s\n", about->name, show(about->unit, figure->value));
}

// The table.

static void add_number(struct weir_table *table, bool known, enum unit unit, double value,
                       const char *unknown)
{
    weir_table_add(table, "%s", known ? show(unit, value) : unknown);
}

static void print_table(const struct calibration *c)
{
    struct weir_table table = {.alignment = "lrrrl"};
    for (size_t i = 0; i < CAL_KEYS; i++) {
        const struct cal_figure *figure = &c->figures[i];
        weir_table_add(&table, "%s", keys[i].name);
        add_number(&table, figure->measured, keys[i].unit, figure->value, "-");
        add_number(&table, figure->spreads, keys[i].unit, figure->least, "");
        add_number(&table, figure->spreads, keys[i].unit, figure->most, "");
        weir_table_add(&table, "%s", figure->measured ? keys[i].how : figure->why);
    }
    cli_table_print(&table, stdout, 0);
}

// JSON.

static json_t *value_json(const struct cal_figure *figure, enum unit unit)
{
    if (figure->spreads)
        return json_pack("{s:f, s:f, s:f}", "median", figure->value, "least", figure->least, "most",
                         figure->most);
    return unit == WORD ? json_string(figure->value > 0 ? "stream" : "engine")
                        : json_real(figure->value);
}

static int print_json(const struct calibration *c)
{
    json_t *figures = json_array();
    const struct weir_device_info *info = weir_device_get_info(bench.device);
    for (size_t i = 0; i < CAL_KEYS; i++) {
        const struct cal_figure *it = &c->figures[i];
        cli_json_append(figures, json_pack("{s:s, s:o, s:s}", "key", keys[i].name,
                                           it->measured ? "value" : "not_measured",
                                           it->measured ? value_json(it, keys[i].unit)
                                                        : json_string(it->why),
                                           "how", keys[i].how));
    }
    json_t *root = json_pack("{s:s, s:o, s:o, s:o, s:b, s:o, s:o}", "weir", weir_version(),
                             "backend", cli_json_string(weir_runtime_backend(bench.runtime)),
                             "device", cli_json_string(info->name), "driver",
                             cli_json_string(info->driver), "virtual", (int)cli_clock_is_virtual(),
                             "turns", weir_json_count(bench.turns), "figures", figures);
    return cli_json_print(root, CLI_OK);
}

static int report(void *user)
{
    const struct calibration *c = user;
    struct weir_long_text ini = {0};
    char message[512];
    write_head(&ini);
    for (size_t i = 0; i < CAL_KEYS; i++)
        write_key(&c->figures[i], &keys[i], &ini);
    const size_t size = ini.used;
    const char *text = cli_take_text(&ini);
    if (c->out && !weir_file_write(c->out, text, size, message, sizeof message))
        cli_fail(CLI_FAILED, "%s", message);
    if (bench.json)
        return print_json(c);
    if (c->out)
        print_table(c);
    else
        fputs(text, stdout);
    return CLI_OK;
}

// The command.

static const char description[] =
    "Measures a device and prints the model of it for the plugin sim: bandwidths and latencies of\n"
    "copies, alone and both ways, what submits, waits and memory that is not pinned take the\n"
    "host, engines, channels, graphs, kernels at once, and copies to another device. Each figure\n"
    "has how it was measured, and its spread. The machine should do nothing else meanwhile.\n\n"
    "  weir calibrate --output card.ini\n"
    "  weir sim --gpu card.ini ./program";

static void check(void *user)
{
    const struct calibration *c = user;
    cli_need_writable(c->out);
}

static void run(void *user)
{
    struct calibration *c = user;
    cli_signals_defer(NULL, NULL);
    create_buffers(c);
    cal_reserve_queues(c, CAL_BRANCHES);
    bench_kernel(bench.device, &bench_kernels, "advance", &c->kernel);
    check_times(c);
    for (int kind = CAL_GRAPH; kind < CAL_KINDS; kind++)
        create_graph(c, (enum cal_kind)kind);
    cal_measure_all(c);
    bench.kept = bench.turns;
}

int cli_calibrate(int argc, char **argv)
{
    static struct calibration c;
    static const struct cli_option options[] = {
        {"output", "FILE", "write the model to FILE, and print a table", CLI_FILE, &c.out, 0, 0},
        {"device", "WHICH",
         "the device's index, or a part of its name; without it,\nthe "
         "configuration's",
         CLI_TEXT, &bench.select, 0, 0},
    };
    static const struct bench_program program = {
        .about = description,
        .options = options,
        .option_count = BENCH_COUNT(options),
        .launches_nothing = true,
        .check = check,
        .run = run,
        .report = report,
    };
    bench.group = "weir";
    return bench_main(&program, &c, argc, argv);
}
