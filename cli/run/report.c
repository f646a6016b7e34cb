// The figures of a run: those of its first frames, of the warm ones, and the closing table.
#include <inttypes.h>

#include "cli/common/signals.h"
#include "cli/run/run.h"

// Only the first frames' times include what the driver compiles and loads at first
// launches, so their figures are subtracted from those of all frames. Percentiles, and the
// waits for the end of the first frames, cannot be subtracted and are collected as frames
// are delivered.

void run_take_figures(struct run_device *device, const struct weir_pipeline_result *result)
{
    struct run *run = device->run;
    const uint32_t stages = result->spans ? result->stage_count : 0;
    if (!run->first.done) {
        for (uint32_t i = 0; i < stages; i++)
            device->ends_ns[i] = result->spans[i].end_ns;
        return;
    }
    // The pipeline counts the wait between the last of the first frames and the next one.
    for (uint32_t i = 0; i < stages && !device->gaps_known; i++)
        if (device->ends_ns[i] > 0 && result->spans[i].begin_ns > device->ends_ns[i])
            run->first.gaps_ns[i] += result->spans[i].begin_ns - device->ends_ns[i];
    device->gaps_known = device->gaps_known || stages > 0;
    weir__histogram_add(&run->latency, result->latency_ns);
}

// So long it takes a driver that compiles nothing at most; PoCL takes seconds.
#define FIRST_NS UINT64_C(1000000000)

void run_take_first(struct run *run)
{
    bool done = true;
    if (weir_pipeline_group_drain(run->group, FIRST_NS) != WEIR_OK) {
        // A terminal has the progress line, for images.
        if (!run->quiet && !run->progress.shown && !run->first.told && run_rank(run) == 0 &&
            !cli_signal())
            cli_note("the first frame takes long: many drivers compile the kernels then, and keep "
                     "them for later runs");
        run->first.told = true;
        WEIR_IGNORE(weir_pipeline_group_drain(run->group, WEIR_FOREVER));
    }
    for (uint32_t i = 0; i < run->device_count; i++) {
        struct weir_pipeline_statistics one;
        weir_pipeline_get_statistics(weir_arr_coc_pipeline(run->devices[i].arr_coc), &one);
        done = done && one.succeeded > 0;
    }
    weir_pipeline_group_get_statistics(run->group, &run->first.statistics);
    run->first.done = done;
}

static struct weir_pipeline_statistics warm_statistics(const struct run *run)
{
    const struct weir_pipeline_statistics *first = &run->first.statistics;
    struct weir_pipeline_statistics warm = run->statistics;
    warm.succeeded -= first->succeeded;
    warm.wall_ns -= first->wall_ns;
    warm.timed_frames -= first->timed_frames;
    warm.busy_ns -= first->busy_ns;
    warm.covered_ns -= first->covered_ns;
    warm.overlap_ns -= first->overlap_ns;
    for (uint32_t i = 0; i < warm.stage_count; i++) {
        warm.stages[i].busy_ns -= first->stages[i].busy_ns;
        warm.stages[i].wait_ns -= first->stages[i].wait_ns + run->first.gaps_ns[i];
    }
    weir__statistics_set_latency(&warm, &run->latency);
    return warm;
}

// The closing figures.

static double frames_per_second(const struct weir_pipeline_statistics *statistics)
{
    if (statistics->wall_ns == 0)
        return 0;
    return (double)statistics->succeeded * 1e9 / (double)statistics->wall_ns;
}

static double share(uint64_t part, uint64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static size_t count_written(const struct run *run)
{
    size_t written = 0;
    for (size_t i = 0; i < run->image_count; i++)
        written += run->images[i].written;
    return written;
}

static void add_warm(struct weir_table *table, const struct weir_pipeline_statistics *warm)
{
    weir_table_add(table, "warm");
    if (warm->succeeded == 0) {
        weir_table_add(table, "no frame; --repeat N runs each image N times");
        return;
    }
    weir_table_add(table,
                   "%" PRIu64 " frame%s in %s, up to %" PRIu32 " in flight: %.2f frames/s, %s each",
                   warm->succeeded, warm->succeeded == 1 ? "" : "s",
                   weir_text_duration((double)warm->wall_ns).text, warm->in_flight_max,
                   frames_per_second(warm),
                   weir_text_duration((double)warm->wall_ns / (double)warm->succeeded).text);
    weir_table_add(table, "latency\tp50 %s, p99 %s, min %s, max %s, waits for a slot included",
                   weir_text_duration((double)warm->latency_p50_ns).text,
                   weir_text_duration((double)warm->latency_p99_ns).text,
                   weir_text_duration((double)warm->latency_min_ns).text,
                   weir_text_duration((double)warm->latency_max_ns).text);
}

// One frame's time does not include its failed predecessors'.
static double first_ns(const struct run *run)
{
    const struct weir_pipeline_statistics *first = &run->first.statistics;
    return first->succeeded == 1 ? (double)first->latency_max_ns : (double)first->wall_ns;
}

static void print_summary(const struct run *run, const struct weir_pipeline_statistics *warm)
{
    struct weir_table table = {.alignment = "ll"};

    for (uint32_t i = 0; i < run->shown_count; i++) {
        const struct weir_device_info *info = &run->shown[i].info;
        weir_table_add(&table, "device");
        weir_table_add(&table, "%s (%s; %s), module %s %s", info->name, info->platform,
                       info->driver, weir_runtime_backend(run->runtime), run->module_version);
    }
    if (run->kind->add) {
        run->kind->add(&table, run);
    } else {
        weir_table_add(&table, "images");
        weir_table_add(&table, "%zu of %zu written to %s", count_written(run), run->image_count,
                       run->output);
    }
    if (run->first.statistics.succeeded > 0) {
        const uint64_t frames = run->first.statistics.succeeded;
        weir_table_add(&table,
                       "first\t%" PRIu64
                       " frame%s in %s: the driver compiles kernels at their first "
                       "launch, unless its cache has them",
                       frames, frames == 1 ? "" : "s", weir_text_duration(first_ns(run)).text);
        add_warm(&table, warm);
    }
    cli_table_print(&table, stdout, 0);
}

static void add_duration(struct weir_table *table, uint64_t total_ns, uint64_t count)
{
    weir_table_add(table, "%s", weir_text_duration((double)total_ns / (double)count).text);
}

// What the rows of stages are parts of.
struct whole {
    const struct weir_pipeline_statistics *first, *warm;
    uint64_t warm_ns; // of all devices
};

// One row: the times of a first frame, and of the frames after those, if there are any.
static void add_row(struct weir_table *table, const char *name, uint64_t first_ns, uint64_t busy_ns,
                    const struct whole *whole)
{
    const struct weir_pipeline_statistics *warm = whole->warm;
    weir_table_add(table, "%s", name);
    add_duration(table, first_ns, whole->first->timed_frames);
    if (warm->timed_frames == 0)
        return;
    add_duration(table, busy_ns, warm->timed_frames);
    add_duration(table, busy_ns, 1);
    weir_table_add(table, "%.1f %%", share(busy_ns, whole->warm_ns));
}

static void print_stages(const struct whole *whole)
{
    const struct weir_pipeline_statistics *first = whole->first, *warm = whole->warm;
    const bool is_warm = warm->timed_frames > 0;
    struct weir_table table = {.alignment = is_warm ? "lrrrrr" : "lr"};

    weir_table_add(&table, "stage\tfirst frame");
    if (is_warm)
        weir_table_add(&table, "warm frame\twarm in all\tof the time\twaiting");
    for (uint32_t i = 0; i < warm->stage_count; i++) {
        add_row(&table, warm->stages[i].name, first->stages[i].busy_ns, warm->stages[i].busy_ns,
                whole);
        if (is_warm)
            add_duration(&table, warm->stages[i].wait_ns, 1);
    }
    add_row(&table, "any of them", first->covered_ns, warm->covered_ns, whole);
    if (is_warm)
        weir_table_add(&table, "%s", "");
    printf("\n");
    cli_table_print(&table, stdout, 0);
    if (is_warm)
        printf("\noverlap: %s, %.1f %% of the stages' busy time ran beside another stage\n",
               weir_text_duration((double)warm->overlap_ns).text,
               share(warm->overlap_ns, warm->busy_ns));
}

static void print_devices(const struct run *run)
{
    struct weir_table table = {.alignment = "lrrr"};

    weir_table_add(&table, "device\tframes\tbusy\tof the time");
    for (uint32_t i = 0; i < run->shown_count; i++) {
        const struct weir_pipeline_statistics *s = &run->shown[i].statistics;
        weir_table_add(&table, "%u: %s", (unsigned)i, run->shown[i].info.name);
        if (s->timed_frames == 0)
            weir_table_add(&table, "%" PRIu64 "\t\t", s->succeeded);
        else
            weir_table_add(&table, "%" PRIu64 "\t%s\t%.1f %%", s->succeeded,
                           weir_text_duration((double)s->covered_ns).text,
                           share(s->covered_ns, run->statistics.wall_ns));
    }
    printf("\n");
    cli_table_print(&table, stdout, 0);
}

// JSON.

static json_t *stage_list(const struct weir_pipeline_statistics *s)
{
    json_t *list = json_array();
    for (uint32_t i = 0; s->timed_frames > 0 && i < s->stage_count; i++) {
        json_t *stage = json_object();
        cli_json_set(stage, "name", json_string(s->stages[i].name));
        cli_json_set(stage, "busy_ns", weir_json_count(s->stages[i].busy_ns));
        cli_json_set(stage, "wait_ns", weir_json_count(s->stages[i].wait_ns));
        cli_json_append(list, stage);
    }
    return list;
}

static json_t *image_list(const struct run *run)
{
    json_t *list = json_array();
    for (size_t i = 0; i < run->image_count; i++) {
        const struct run_image *image = &run->images[i];
        json_t *entry = json_object();
        cli_json_set(entry, "path", cli_json_string(image->path));
        cli_json_set(entry, "name", cli_json_string(image->name));
        cli_json_set(entry, "written", json_boolean(image->written));
        cli_json_set(entry, "failed", json_boolean(image->failed));
        cli_json_set(entry, "runs", weir_json_count(image->times.count));
        cli_json_set(entry, "runs_that_differ", weir_json_count(image->different));
        cli_json_append(list, entry);
    }
    return list;
}

static json_t *latency(const struct weir_pipeline_statistics *s)
{
    json_t *object = json_object();
    cli_json_set(object, "min", weir_json_count(s->latency_min_ns));
    cli_json_set(object, "mean", weir_json_count(s->latency_mean_ns));
    cli_json_set(object, "p50", weir_json_count(s->latency_p50_ns));
    cli_json_set(object, "p99", weir_json_count(s->latency_p99_ns));
    cli_json_set(object, "max", weir_json_count(s->latency_max_ns));
    return object;
}

static void set_figures(json_t *object, const struct weir_pipeline_statistics *s)
{
    cli_json_set(object, "frames", weir_json_count(s->succeeded));
    cli_json_set(object, "frames_failed", weir_json_count(s->failed));
    cli_json_set(object, "in_flight_max", weir_json_count(s->in_flight_max));
    cli_json_set(object, "wall_ns", weir_json_count(s->wall_ns));
    cli_json_set(object, "busy_ns", weir_json_count(s->busy_ns));
    cli_json_set(object, "covered_ns", weir_json_count(s->covered_ns));
    cli_json_set(object, "latency_ns", latency(s));
    cli_json_set(object, "stages", stage_list(s));
}

static json_t *device_list(const struct run *run)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < run->shown_count; i++) {
        json_t *entry = json_object();
        cli_json_set(entry, "device", cli_json_string(run->shown[i].info.name));
        set_figures(entry, &run->shown[i].statistics);
        cli_json_append(list, entry);
    }
    return list;
}

static json_t *warm_frames(const struct run *run)
{
    const struct weir_pipeline_statistics warm = warm_statistics(run);
    json_t *object = json_object();
    cli_json_set(object, "frames", weir_json_count(warm.succeeded));
    cli_json_set(object, "wall_ns", weir_json_count(warm.wall_ns));
    cli_json_set(object, "frames_per_second", json_real(frames_per_second(&warm)));
    cli_json_set(object, "latency_ns", latency(&warm));
    cli_json_set(object, "stages", stage_list(&warm));
    return object;
}

static int print_json(const struct run *run, int code)
{
    const struct weir_pipeline_statistics *s = &run->statistics, *first = &run->first.statistics;
    json_t *root = json_object();
    cli_json_set(root, "weir", json_string(weir_version()));
    cli_json_set(root, "module", cli_json_string(weir_runtime_backend(run->runtime)));
    cli_json_set(root, "module_version", cli_json_string(run->module_version));
    cli_json_set(root, "device", cli_json_string(run->shown[0].info.name));
    cli_json_set(root, "platform", cli_json_string(run->shown[0].info.platform));
    cli_json_set(root, "driver", cli_json_string(run->shown[0].info.driver));
    cli_json_set(root, "output", cli_json_string(run->output));
    cli_json_set(root, "frames_per_second", json_real(frames_per_second(s)));
    set_figures(root, s);
    cli_json_set(root, "frames_cancelled", weir_json_count(s->cancelled));
    cli_json_set(root, "timed_frames", weir_json_count(s->timed_frames));
    cli_json_set(root, "overlap_ns", weir_json_count(s->overlap_ns));
    cli_json_set(root, "first_frames", weir_json_count(first->succeeded));
    cli_json_set(root, "first_frame_ns", weir_json_count(first->latency_max_ns));
    cli_json_set(root, "warm", warm_frames(run));
    cli_json_set(root, "devices", device_list(run));
    if (run->kind->describe)
        cli_json_set(root, "video", run->kind->describe(run));
    else
        cli_json_set(root, "images", image_list(run));
    return cli_json_print_as(root, run->video ? CLI_JSON_LINE : CLI_JSON_TEXT, code);
}

int run_report(const struct run *run, bool was_run)
{
    const int code = run->kind->count(run);
    if (run->json)
        return print_json(run, code);
    if (!was_run || run->quiet)
        return code;
    const struct weir_pipeline_statistics warm = warm_statistics(run);
    const struct whole whole = {&run->first.statistics, &warm, warm.wall_ns * run->shown_count};
    print_summary(run, &warm);
    if (run->shown_count > 1)
        print_devices(run);
    if (!run->ranks && run->first.statistics.timed_frames > 0)
        print_stages(&whole);
    else if (!run->ranks && run->statistics.succeeded > 0)
        printf("\nno times of stages: the device keeps none, timing = 0, or graphs = 1\n");
    return code;
}
