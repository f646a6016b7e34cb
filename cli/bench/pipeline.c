// weir bench pipeline: frames through patterns/pipeline in three stages (upload, kernel,
// download) with one slot and with more, where the kernel takes as long as a copy, much
// longer, and much shorter.
//
// Frames are in pinned memory when they are submitted: what is timed is the pipeline,
// not a host that writes pixels.
#include "cli/bench/bench.h"

enum {
    SETTINGS = 3,
    SLOTS_MOST = 64,
    LINES_MOST = 2 * BENCH_LIST_MAX,
    HEAVY = 4, // how much longer, or shorter, one part is than the other
    FRAMES_MOST = 1000000,
    COPIES = 16,
    CHECKED_FRAMES = 7 // of each pipeline, beyond two for each slot
};

#define SIZE_LEAST UINT64_C(1024)
#define SIZE_MOST (UINT64_C(1) << 30)
#define SIZE_CPU (UINT64_C(1) << 20)
#define SIZE_GPU (UINT64_C(8) << 20)

static const struct {
    const char *name;
    double kernel; // times as long as a copy
} settings[SETTINGS] = {
    {"compute-heavy", HEAVY},
    {"balanced", 1},
    {"copy-heavy", 1.0 / HEAVY},
};

struct slot {
    weir_buffer *in, *values, *out; // HOST, DEVICE, HOST
};

// One pipeline: a setting with a number of slots.
struct line {
    struct pipeline_bench *owner;
    const char *setting;
    weir_pipeline *pipeline;
    uint32_t rounds;
    uint32_t slots;
    bool graphs;
    bool checking;
    struct slot memory[SLOTS_MOST];
    struct bench_samples rate; // frames a second
};

struct pipeline_bench {
    uint64_t frames;
    struct bench_list sizes, slots, graphs;
    size_t line_count; // of each setting
    struct bench_work work;
    size_t size;
    weir_buffer *host, *values; // for measuring a copy and a kernel
    uint32_t rounds[SETTINGS];
    struct bench_samples up, down, kernels[SETTINGS]; // nanoseconds, alone
    struct line lines[SETTINGS * LINES_MOST];
};

static weir_status take_slot(void *user, weir_device *device, uint32_t index, void **out_slot)
{
    struct line *line = user;
    *out_slot = &line->memory[index];
    return WEIR_OK;
}

// Stages, and what surrounds them. All run on threads of the pipeline. A frame is the seed of its numbers.

static weir_status prepare(void *user, void *slot_pointer, void *frame)
{
    const struct line *line = user;
    const struct slot *slot = slot_pointer;
    const size_t size = line->owner->size;
    void *in;
    if (!line->checking)
        return WEIR_OK;
    const weir_status status = weir_host_begin(slot->in, 0, size, WEIR_ACCESS_WRITE, &in);
    if (status < 0)
        return status;
    bench_work_numbers(in, size, *(const uint32_t *)frame);
    return weir_host_end(slot->in, 0, size, WEIR_ACCESS_WRITE);
}

static weir_status upload(void *user, void *slot_pointer, void *frame, weir_queue *queue)
{
    const struct line *line = user;
    const struct slot *slot = slot_pointer;
    return weir_queue_copy(queue, slot->values, 0, slot->in, 0, line->owner->size);
}

static weir_status compute(void *user, void *slot_pointer, void *frame, weir_queue *queue)
{
    const struct line *line = user;
    const struct slot *slot = slot_pointer;
    return bench_work_launch(&line->owner->work, queue, slot->values, 0, line->owner->size,
                             line->rounds);
}

static weir_status download(void *user, void *slot_pointer, void *frame, weir_queue *queue)
{
    const struct line *line = user;
    const struct slot *slot = slot_pointer;
    return weir_queue_copy(queue, slot->out, 0, slot->values, 0, line->owner->size);
}

// All frames of a slot are alike.
static uint64_t repeat(void *user, void *slot, void *frame)
{
    return 0;
}

static void deliver(void *user, void *frame, void *slot_pointer,
                    const struct weir_pipeline_result *result)
{
    struct line *line = user;
    const struct slot *slot = slot_pointer;
    const uint32_t seed = *(const uint32_t *)frame;
    char what[64];
    if (!line->checking || result->status != WEIR_OK)
        return;
    snprintf(what, sizeof what, "%s, %u slots%s, frame %u", line->setting, (unsigned)line->slots,
             line->graphs ? ", graphs" : "", (unsigned)seed);
    (void)bench_work_check(slot->out, line->owner->size, seed, line->rounds, what);
}

static void destroy_line(void *object)
{
    struct line *line = object;
    WEIR_IGNORE(weir_pipeline_destroy(&line->pipeline));
}

static void create_line(struct line *line)
{
    static const struct weir_pipeline_stage stages[] = {
        {.name = "upload", .submit = upload},
        {.name = "compute", .depends_on = WEIR_PIPELINE_AFTER(0), .submit = compute},
        {.name = "download", .depends_on = WEIR_PIPELINE_AFTER(1), .submit = download},
    };
    const struct weir_pipeline_params params = {
        .struct_size = sizeof params,
        .device = bench.device,
        .label = "bench",
        .stages = stages,
        .stage_count = 3,
        .stage_size = sizeof(struct weir_pipeline_stage),
        .slot_count = line->slots,
        .slot_create = take_slot,
        .prepare = prepare,
        .deliver = deliver,
        .user = line,
        .graphs = line->graphs,
        .repeat = repeat,
    };
    for (uint32_t i = 0; i < line->slots; i++) {
        struct slot *slot = &line->memory[i];
        bench_buffer(bench.device, "in", line->owner->size, WEIR_PLACE_HOST, &slot->in);
        bench_buffer(bench.device, "values", line->owner->size, WEIR_PLACE_DEVICE, &slot->values);
        bench_buffer(bench.device, "out", line->owner->size, WEIR_PLACE_HOST, &slot->out);
    }
    cli_fine(weir_pipeline_create(&params, &line->pipeline));
    cli_own(destroy_line, line);
}

// Submits frames with seeds from 0 on, or all with 0, drains, and sees that all of them succeeded.
static void run_frames(struct line *line, uint32_t *seeds, uint64_t count)
{
    struct weir_pipeline_statistics statistics;
    for (uint64_t i = 0; i < count; i++)
        cli_fine(weir_pipeline_submit(line->pipeline, &seeds[line->checking ? i : 0]));
    cli_fine(weir_pipeline_drain(line->pipeline, WEIR_FOREVER));
    weir_pipeline_get_statistics(line->pipeline, &statistics);
    if (statistics.failed)
        cli_fail(CLI_FAILED, "%s, %u slots: %llu frames failed", line->setting,
                 (unsigned)line->slots, (unsigned long long)statistics.failed);
}

// Checking and measuring.

static void check_line(struct line *line)
{
    uint32_t seeds[2 * SLOTS_MOST + CHECKED_FRAMES];
    for (uint32_t i = 0; i < BENCH_COUNT(seeds); i++)
        seeds[i] = i;
    line->checking = true;
    run_frames(line, seeds, 2 * line->slots + CHECKED_FRAMES);
    line->checking = false;
    bench_judge();
}

static double time_copies(struct pipeline_bench *p, bool up)
{
    weir_buffer *to = up ? p->values : p->host, *from = up ? p->host : p->values;
    const uint64_t began = cli_now_ns();
    for (int i = 0; i < COPIES; i++)
        cli_fine(weir_queue_copy(p->work.queue, to, 0, from, 0, p->size));
    bench_sync(p->work.queue);
    return (double)(cli_now_ns() - began) / COPIES;
}

static void calibrate(struct pipeline_bench *p)
{
    double up = 0, down = 0;
    for (int i = 0; i < 3; i++) { // the last one counts
        up = time_copies(p, true);
        down = time_copies(p, false);
    }
    for (int i = 0; i < SETTINGS; i++)
        p->rounds[i] = bench_work_calibrate(&p->work, p->values, p->size,
                                            settings[i].kernel * (up > down ? up : down));
}

static void make_lines(struct pipeline_bench *p)
{
    p->line_count = p->slots.count * p->graphs.count;
    for (size_t i = 0; i < SETTINGS * p->line_count; i++) {
        struct line *line = &p->lines[i];
        const size_t setting = i / p->line_count, k = i % p->line_count;
        line->owner = p;
        line->setting = settings[setting].name;
        line->rounds = p->rounds[setting];
        line->slots = (uint32_t)p->slots.values[k % p->slots.count];
        line->graphs = p->graphs.values[k / p->slots.count] == BENCH_WORD + 1;
        create_line(line);
        check_line(line);
    }
}

static void measure_line(struct pipeline_bench *p, struct line *line)
{
    uint32_t seed = 0;
    const uint64_t began = cli_now_ns();
    run_frames(line, &seed, p->frames);
    bench_keep(&line->rate, (double)p->frames * 1e9 / (double)(cli_now_ns() - began));
}

static void measure(struct pipeline_bench *p)
{
    for (bench_start(); bench_turn();) {
        bench_keep(&p->up, time_copies(p, true));
        bench_keep(&p->down, time_copies(p, false));
        for (int i = 0; i < SETTINGS; i++)
            bench_keep(&p->kernels[i], bench_work_time(&p->work, p->values, p->size, p->rounds[i]));
        for (size_t i = 0; i < SETTINGS * p->line_count; i++)
            measure_line(p, &p->lines[i]);
    }
}

// Reporting.

static void put_part(struct bench_table *table, const char *name, struct bench_samples ns)
{
    bench_text(table, "part", "a frame's", name);
    bench_value(table, "us", "us", 1, bench_scaled(ns, 1e-3));
}

static void report_lines(struct pipeline_bench *p)
{
    struct bench_table *table =
        bench_table("pipeline", "the pipeline, and its speed-up to the first number of slots");
    for (size_t i = 0; i < SETTINGS * p->line_count; i++) {
        const struct line *line = &p->lines[i];
        const struct bench_samples gain =
            bench_ratio(line->rate, p->lines[i - i % p->line_count].rate);
        bench_text(table, "setting", "setting", line->setting);
        bench_number(table, "slots", "slots", line->slots);
        bench_text(table, "graphs", "graphs", bench_off_on[line->graphs]);
        bench_value(table, "frames_per_second", "frames/s", 1, line->rate);
        bench_value(table, "speed_up", "x first", 3, gain);
        bench_plot_bar(bench_slots(line->slots, line->graphs, 1), line->setting, gain);
    }
}

// The command.

static void run(void *user)
{
    struct pipeline_bench *p = user;
    p->size = (size_t)(p->sizes.count         ? p->sizes.values[0]
                       : bench_is_processor() ? SIZE_CPU
                                              : SIZE_GPU);
    p->size -= p->size % sizeof(uint32_t);
    bench_work_open(&p->work);
    bench_buffer(bench.device, "host", p->size, WEIR_PLACE_HOST, &p->host);
    bench_buffer(bench.device, "values", p->size, WEIR_PLACE_DEVICE, &p->values);
    bench_work_fill(p->host, p->size, 0);
    calibrate(p);
    make_lines(p);
    measure(p);
    bench_parameter("frames", (double)p->frames);
    bench_parameter("frame bytes", (double)p->size);
    bench_plot(cli_text("Pipeline of frames of %s: speed-up by slots", bench_bytes(p->size)), "",
               "frames/s, as a multiple of the first bar's");
    bench_plot_level("no gain", 1);
    struct bench_table *table = bench_table("alone", "each part alone");
    put_part(table, "upload", p->up);
    put_part(table, "download", p->down);
    for (int i = 0; i < SETTINGS; i++)
        put_part(table, cli_text("kernel, %s", settings[i].name), p->kernels[i]);
    report_lines(p);
}

int cli_bench_pipeline(int argc, char **argv)
{
    static struct pipeline_bench p = {
        .frames = 100,
        .sizes = {.minimum = SIZE_LEAST, .maximum = SIZE_MOST, .most = 1},
        .slots = {.text = "1,2,3,4", .minimum = 1, .maximum = SLOTS_MOST},
        .graphs = {.text = "off", .words = bench_off_on, .most = 2},
    };
    static const struct cli_option options[] = {
        {"frames", "N", "frames of a run (100)", CLI_COUNT, &p.frames, 1, FRAMES_MOST},
        {"size", "BYTES",
         "of a frame, in and out: 8M (1M where the processor is\nthe device, else 8M)", CLI_VALUES,
         &p.sizes, 0, 0},
        {"slots", "LIST", "numbers of slots; the first is compared with (1,2,3,4)", CLI_VALUES,
         &p.slots, 0, 0},
        {"graphs", "LIST", "off, on or both: each frame is a launch of a graph (off)", CLI_VALUES,
         &p.graphs, 0, 0},
    };
    static const struct bench_program program = {
        .about =
            "Runs frames through upload, kernel and download with several numbers of slots.\n"
            "The kernel is made to take as long as a copy, four times as long, and a quarter,\n"
            "by what copies take in this run. Frames are in pinned memory from the start.\n\n"
            "  weir bench pipeline --plot pipeline.svg\n"
            "  weir bench pipeline --slots 1,3 --size 4M --frames 1000",
        .options = options,
        .option_count = BENCH_COUNT(options),
        .run = run,
    };
    return bench_main(&program, &p, argc, argv);
}
