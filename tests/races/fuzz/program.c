// A run from its beginning to its end, and the comparison.
#include "tests/races/fuzz/program.h"

#include <dlfcn.h>

#include "base/lock_listener.h"
#include "tests/races/fuzz/steps.h"
#include "tests/races/races.h"

static weir_status open_device(struct ground *ground)
{
    weir_status status = weir_device_open(ground->runtime, NULL, &ground->device);
    if (status == WEIR_OK)
        status =
            weir_program_create(ground->device, WEIR_PARAMS(weir_program, .bundle = &races_kernels),
                                &ground->program);
    if (status == WEIR_OK)
        status = weir_kernel_create(ground->program, "sum", &ground->sum);
    return status;
}

static bool sees_locks(void)
{
    return dlsym(RTLD_DEFAULT, WEIR_LOCK_SOURCE) != NULL;
}

weir_status ground_open(struct ground *ground, enum ground_order order)
{
    const bool strict = order != GROUND_ONE;
    *ground = (struct ground){.line = 1, .order = order};
    if (order == GROUND_LOCKS && !sees_locks())
        return WEIR_ERROR_UNSUPPORTED;
    weir_status status =
        weir_open(WEIR_PARAMS(weir_open, .config_path = "fuzz.ini",
                              .config_text = strict ? "[check]\nthreads = strict\n" : "",
                              .backend = "null", .plugins = "check"),
                  &ground->runtime);
    if (status == WEIR_OK)
        status = open_device(ground);
    for (int i = 1; i < PROGRAM_THREADS && strict && status == WEIR_OK; i++)
        if (!ground_thread_start(&ground->threads[i]))
            status = WEIR_ERROR_SYSTEM;
    return status;
}

void ground_close(struct ground *ground)
{
    for (int i = 1; i < PROGRAM_THREADS; i++)
        ground_thread_stop(&ground->threads[i]);
    weir_kernel_destroy(&ground->sum);
    weir_program_destroy(&ground->program);
    WEIR_IGNORE(weir_device_close(&ground->device));
    WEIR_IGNORE(weir_close(&ground->runtime));
}

// Setting up, by the first step: 2 to 4 queues, of which one may be the legacy queue, and how much of
// each buffer is written.

static void make_queues(struct run *run, const uint8_t *setup)
{
    run->queue_count = 2 + setup[0] % (QUEUES - 1);
    for (int i = 0; i < run->queue_count; i++)
        ok(run, make_queue(run, i));
    if (setup[1] % 4 != 0)
        return;
    const int last = run->queue_count - 1;
    weir_queue_destroy(&run->queues[last]);
    ok(run, weir_legacy_queue(run->ground->device, &run->queues[last]));
    run->oracle->legacy = run->numbers[last];
    SAY(run, "q%d is the legacy queue", last);
}

// Half of the programs have written all of it.
static void make_buffer(struct run *run, struct slot *slot, uint8_t written)
{
    const size_t size = written & 1 ? ORACLE_BYTES : written % ORACLE_BYTES;
    void *pointer;

    slot->id = run->next_buffer++;
    ok(run, weir_buffer_create(run->ground->device,
                               WEIR_PARAMS(weir_buffer, .size = ORACLE_BYTES,
                                           .placement = WEIR_PLACE_HOST),
                               &slot->buffer));
    run->oracle->unwritten[slot->id] = UINT64_MAX;
    if (size == 0)
        return;
    SAY(run, "host writes b%u[0..%zu]", slot->id, size - 1);
    ok(run, weir_host_begin_at(slot->buffer, 0, size, WEIR_ACCESS_WRITE, &pointer, FILE_NAME,
                               line(run)));
    ok(run, weir_host_end_at(slot->buffer, 0, size, WEIR_ACCESS_WRITE, FILE_NAME, line(run)));
    oracle_use(run->oracle, oracle_add(run->oracle, ORACLE_HOST), slot->id, WEIR_ACCESS_WRITE,
               bits(0, size));
}

static void set_up(struct run *run, const uint8_t *setup)
{
    const struct weir_pool_params pool = {.struct_size = sizeof pool, .placement = WEIR_PLACE_HOST};
    for (size_t i = 0; i < EVENTS; i++)
        run->events[i].node = -1;
    for (size_t i = 0; i < PROGRAM_GRAPHS; i++)
        run->launched[i] = -1;
    make_queues(run, setup);
    for (size_t i = 0; i < PLAIN; i++)
        make_buffer(run, &run->slots[i], setup[2] & 1 ? 1 : setup[3 + i]);
    ok(run, weir_pool_create(run->ground->device, &pool, &run->pool));
}

// Everything has finished before anything is destroyed, so that the end of a program finds nothing.
static void tear_down(struct run *run)
{
    open_gate(run);
    end_child(run);
    if (run->ground->order != GROUND_ONE)
        gather_threads(run);
    for (int i = 0; i < run->queue_count; i++)
        ok(run, weir_queue_sync(run->queues[i], WEIR_FOREVER));
    while (run->oracle->open_count > 0)
        close_access(run, 0);
    for (size_t i = 0; i < PLAIN + POOLED; i++)
        weir_buffer_destroy(&run->slots[i].buffer);
    for (size_t i = 0; i < PROGRAM_GRAPHS; i++) {
        weir_graph_destroy(&run->graphs[i]);
        weir_queue_destroy(&run->captured[i][0]);
        weir_queue_destroy(&run->captured[i][1]);
    }
    weir_pool_destroy(&run->pool);
    for (int i = 0; i < run->queue_count; i++)
        if (run->numbers[i] != run->oracle->legacy)
            weir_queue_destroy(&run->queues[i]);
}

static void (*const steps[])(struct run *run) = {
    step_copy,   step_fill,       step_launch, step_copy_box, step_fill_box,  step_after,
    step_after,  step_record,     step_wait,   step_sync,     step_host,      step_host_end,
    step_host,   step_sync_event, step_copy,   step_transfer, step_host_call, step_pool,
    step_pool,   step_capture,    step_graph,  step_graph,    step_new_queue, step_wait,
    step_record, step_launch,
};

static void do_step(struct run *run)
{
    steps[run->step[0] % (sizeof steps / sizeof *steps)](run);
}

static void *run_in_thread(void *user)
{
    do_step(user);
    return NULL;
}

// On another thread, which orders nothing.
static void run_step(struct run *run, bool threaded)
{
    pthread_t thread;
    if (threaded && pthread_create(&thread, NULL, run_in_thread, run) == 0)
        pthread_join(thread, NULL);
    else
        do_step(run);
}

// With `threads = strict` each step is of one of three threads. One of the steps before is a
// release, or an acquire.
static void do_strict_step(struct run *run)
{
    if (run->step[0] < 0xd8)
        do_step(run);
    else if (run->ground->order == GROUND_LOCKS)
        step_lock(run);
    else
        (run->step[0] & 1 ? step_acquire : step_release)(run);
}

static void run_strict_step(struct run *run)
{
    const int thread = (run->step[0] / 32 + run->step[7]) % PROGRAM_THREADS;
    run_on_thread(run, thread, do_strict_step);
}

static void lock_first_mutex(struct run *run)
{
    lock_mutex(run, 0);
}

// One thread tells all others.
static void tell_threads(struct run *run, int thread)
{
    const bool locks = run->ground->order == GROUND_LOCKS;
    run_on_thread(run, thread, locks ? lock_first_mutex : step_release);
    for (int i = 0; i < PROGRAM_THREADS; i++)
        if (i != thread)
            run_on_thread(run, i, locks ? lock_first_mutex : step_acquire);
}

static bool has_room(const struct run *run)
{
    return run->oracle->count + NODES_OF_A_STEP <= ORACLE_NODES;
}

// In half of the programs edges are so frequent that little is out of order.
static void run_steps(struct run *run, const uint8_t *bytes, size_t size)
{
    for (size_t at = STEP_BYTES; at + STEP_BYTES <= size; at += STEP_BYTES) {
        const uint8_t *step = bytes + at;
        const uint8_t edge[STEP_BYTES] = {0, step[1], step[7]};
        run->step = edge;
        if (bytes[6] & 1 && has_room(run))
            step_after(run);
        run->step = step;
        if (has_room(run))
            run_step(run, (bytes[6] & 6) == 6 && step[0] >= 0xe0);
    }
}

// The buffers are thread 0's at first, unless it tells. In some programs threads tell each other so
// often that little is out of order.
static void run_strict_steps(struct run *run, const uint8_t *bytes, size_t size)
{
    run->step = bytes;
    if (bytes[6] & 6)
        tell_threads(run, 0);
    for (size_t at = STEP_BYTES; at + STEP_BYTES <= size; at += STEP_BYTES) {
        const uint8_t *step = bytes + at;
        const uint8_t edge[STEP_BYTES] = {step[0], step[1], step[7], [7] = step[6]};
        run->step = edge;
        if (bytes[6] & 1 && has_room(run))
            run_on_thread(run, edge[7] % PROGRAM_THREADS, step_after);
        if (bytes[6] & 8 && step[5] & 1 && has_room(run))
            tell_threads(run, edge[7] % PROGRAM_THREADS);
        run->step = step;
        if (has_room(run))
            run_strict_step(run);
    }
}

// Returns a call's failure.
static weir_status program_run(struct ground *ground, const uint8_t *bytes, size_t size,
                               struct program_notes *out_notes, FILE *text)
{
    struct run run = {.ground = ground,
                      .notes = out_notes,
                      .oracle = &out_notes->oracle,
                      .text = text};

    out_notes->graph_count = 0;
    memset(out_notes->launches, 0, sizeof out_notes->launches);
    out_notes->line = ground->line;
    ground->line += PROGRAM_LINES;
    oracle_init(run.oracle);
    run.oracle->strict = ground->order != GROUND_ONE;
    if (size < STEP_BYTES)
        return WEIR_OK;
    set_up(&run, bytes);
    if (ground->order == GROUND_LOCKS)
        forget_posts();
    (run.oracle->strict ? run_strict_steps : run_steps)(&run, bytes, size);
    tear_down(&run);
    return run.status;
}

// The comparison.

// The graph at whose nodes the line is, 0 for none, and the place there, or in the program.
static int place_of(const struct program_notes *notes, int line, struct oracle_place *out_place,
                    struct oracle_place *out_inside)
{
    const int at = line - notes->line, part = at / GRAPH_LINES;

    *out_place = (struct oracle_place){.count = 0};
    *out_inside = *out_place;
    if (at < 0 || part > notes->graph_count)
        return 0;
    if (part == 0 && at < notes->oracle.count)
        out_place->nodes[out_place->count++] = at;
    if (part == 0)
        return 0;
    if (at % GRAPH_LINES < notes->graphs[part - 1].count)
        out_inside->nodes[out_inside->count++] = at % GRAPH_LINES;
    for (int i = 0; i < notes->oracle.count; i++)
        if (notes->launches[part - 1] >> i & 1)
            out_place->nodes[out_place->count++] = i;
    return part;
}

// Two nodes of a graph race within it; else launches do.
static void compare_finding(struct comparison *parts, const struct program_notes *notes,
                            const struct weir_check_finding *finding)
{
    struct oracle_place first, second, first_inside, second_inside;
    const int a = place_of(notes, finding->first.line, &first, &first_inside);
    const int b = place_of(notes, finding->second.line, &second, &second_inside);

    if (a == b && a > 0)
        comparison_add(&parts[a], finding, &first_inside, &second_inside);
    else
        comparison_add(&parts[0], finding, &first, &second);
}

// A graph that is never launched is not looked at.
static bool compare(struct ground *ground, const struct program_notes *notes, size_t begin,
                    char difference[256])
{
    struct comparison parts[1 + PROGRAM_GRAPHS];
    bool equal = true;

    comparison_begin(&parts[0], &notes->oracle);
    for (int i = 0; i < notes->graph_count; i++)
        comparison_begin(&parts[1 + i], &notes->graphs[i]);
    for (size_t i = begin; i < weir_check_count(ground->runtime); i++) {
        struct weir_check_finding finding;
        WEIR_IGNORE(weir_check_get(ground->runtime, i, &finding));
        compare_finding(parts, notes, &finding);
    }
    for (int i = 0; i <= notes->graph_count && equal; i++) {
        equal = (i > 0 && !notes->launches[i - 1]) || comparison_end(&parts[i]);
        snprintf(difference, 256, "%s%.240s", i > 0 ? "graph: " : "", parts[i].difference);
    }
    return equal;
}

static void say_findings(const struct ground *ground, const struct program_notes *notes,
                         size_t begin, FILE *text)
{
    struct weir_check_finding finding;
    for (size_t i = begin; weir_check_get(ground->runtime, i, &finding) == WEIR_OK; i++)
        if (finding.kind < WEIR_CHECK_FIRST_HINT)
            fprintf(text, "found: %s of %d and %d, buffer %s at %zu + %zu\n",
                    weir_check_kind_name(finding.kind), finding.first.line - notes->line,
                    finding.second.line - notes->line, finding.buffer, finding.offset,
                    finding.size);
}

bool program_agrees(struct ground *ground, const uint8_t *bytes, size_t size, FILE *text,
                    char difference[256])
{
    struct program_notes notes;
    const size_t first = weir_check_count(ground->runtime);
    if (program_run(ground, bytes, size, &notes, text) != WEIR_OK) {
        snprintf(difference, 256, "a call fails: %s", weir_last_error_text());
        return false;
    }
    if (text)
        say_findings(ground, &notes, first, text);
    return compare(ground, &notes, first, difference);
}
