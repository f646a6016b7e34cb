// The table of OpenCL C's built-in functions, on the device that the environment names: a test for
// each program. WEIR_BUILTINS_TABLE=FILE appends a line for each function, type and device to FILE.

#include "tests/kernels/builtins/table.h"
#include "tests/support/device.h"

enum {
    MOST_PROGRAMS = 128
};

struct session {
    const struct program *program;
    unsigned device;
    struct test_device on;
    weir_program *loaded;
    weir_buffer *arguments[ARGUMENTS], *results;
    struct call *calls;
    char *bytes; // of one argument or of the results
};

static size_t argument_bytes(void)
{
    return COUNT * sizeof(uint64_t);
}

static unsigned device_of(weir_device *device)
{
    if (weir_device_limits(device)->cuda_source)
        return CUDA;
    return strstr(weir_device_get_info(device)->platform, "NVIDIA") ? NVIDIA : POCL;
}

static bool start(struct session *session, const struct program *program)
{
    *session = (struct session){.program = program,
                                .calls = calloc(COUNT, sizeof *session->calls),
                                .bytes = malloc(RESULT_BYTES)};
    if (!session->calls || !session->bytes || !test_device_open(&session->on) ||
        !IS_OK(weir_program_create(session->on.device,
                                   WEIR_PARAMS(weir_program, .bundle = program->bundle),
                                   &session->loaded)))
        return false;
    weir_device *device = session->on.device;
    for (size_t k = 0; k < ARGUMENTS; k++)
        session->arguments[k] =
            test_buffer(device, "argument", argument_bytes(), WEIR_PLACE_DEVICE);
    session->results = test_buffer(device, "results", RESULT_BYTES, WEIR_PLACE_DEVICE);
    session->device = device_of(device);
    return !weir_test_has_failed();
}

static void finish(struct session *session)
{
    weir_buffer_destroy(&session->results);
    for (size_t k = 0; k < ARGUMENTS; k++)
        weir_buffer_destroy(&session->arguments[k]);
    weir_program_destroy(&session->loaded);
    test_device_close(&session->on);
    free(session->bytes);
    free(session->calls);
}

static void upload_arguments(struct session *session, const struct row *row)
{
    for (size_t k = 0; row->arguments[k] != '\0'; k++) {
        const enum type type = letter_type(row->arguments[k], session->program->type, true);
        for (size_t i = 0; i < COUNT; i++)
            store_value(type, &session->calls[i].argument[k], session->bytes + i * type_size(type));
        EXPECT_OK(weir_upload(session->on.queue, session->arguments[k], 0, session->bytes,
                              COUNT * type_size(type)));
    }
}

// A launch for each width.
static void launch(struct session *session, const struct row *row, weir_kernel *kernel)
{
    weir_buffer *const *from = session->arguments;
    const unsigned place = row_place(session->program->group, session->program->type, row);
    for (unsigned w = 0; w < WIDTHS; w++)
        if (row_has_width(row, session->program->type, w))
            EXPECT_OK(weir_queue_launch(
                session->on.queue, kernel, weir_dim(COUNT / CHUNK * (CHUNK / widths[w]), 1, 1),
                weir_dim(1, 1, 1), weir_in(from[0], 0, argument_bytes()),
                weir_in(from[1], 0, argument_bytes()), weir_in(from[2], 0, argument_bytes()),
                weir_out(session->results, 0, RESULT_BYTES), place % KERNEL_ROWS * WIDTHS + w));
}

static void run_kernel(struct session *session, const struct row *row)
{
    char name[64];
    weir_kernel *kernel = NULL;
    memset(session->bytes, 0xa5, RESULT_BYTES);
    snprintf(name, sizeof name, "%s_%u", session->program->group->name,
             row_place(session->program->group, session->program->type, row) / KERNEL_ROWS);
    EXPECT_OK(weir_kernel_create(session->loaded, name, &kernel));
    EXPECT_OK(weir_upload(session->on.queue, session->results, 0, session->bytes, RESULT_BYTES));
    if (kernel)
        launch(session, row, kernel);
    EXPECT_OK(weir_download(session->on.queue, session->bytes, session->results, 0, RESULT_BYTES));
    weir_kernel_destroy(&kernel);
}

static const struct known *known_of(const struct session *session, const struct row *row)
{
    for (size_t i = 0; i < sizeof row->known / sizeof *row->known; i++)
        if (row->known[i].devices & session->device &&
            row->known[i].types >> session->program->type & 1)
            return &row->known[i];
    return NULL;
}

// A line of the table, which tools/gpu/run.sh reads.
static void report(const struct session *session, const struct row *row,
                   const struct verdict *verdict, const struct known *known)
{
    const char *path = getenv("WEIR_BUILTINS_TABLE");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    fprintf(file, "%-20s  %-6s  %-24.24s  ", row->name, type_name(session->program->type),
            weir_device_get_info(session->on.device)->name);
    if (is_real(letter_type(row->result, session->program->type, true)))
        fprintf(file, "%9.3g ulp at (%s)%s  ", verdict->worst, verdict->at,
                verdict->flushed ? ", flushed" : "");
    if (known && known->hangs)
        fprintf(file, "expected: %s\n", known->reason);
    else if (verdict->wrong == 0)
        fprintf(file, "ok\n");
    else if (known)
        fprintf(file, "expected: %s (%s)\n", known->reason, verdict->example);
    else
        fprintf(file, "WRONG: %zu results; %s\n", verdict->wrong, verdict->example);
    fclose(file);
}

static void run_row(struct session *session, const struct row *row)
{
    struct verdict verdict = {0};
    const struct known *known = known_of(session, row);
    if (known && known->hangs) {
        report(session, row, &verdict, known);
        return;
    }
    make_calls(row, session->program->type, session->calls);
    upload_arguments(session, row);
    run_kernel(session, row);
    judge(row, session->program->type, session->device, session->calls, session->bytes, &verdict);
    report(session, row, &verdict, known);
    if (verdict.wrong > 0 && !known)
        weir_test_fail(__FILE__, __LINE__, "%zu results are wrong; %s", verdict.wrong,
                       verdict.example);
    if (verdict.wrong == 0 && known && !known->varies)
        weir_test_fail(__FILE__, __LINE__,
                       "%s of %s is right: take the expected failure out of the table (%s)",
                       row->name, type_name(session->program->type), known->reason);
}

static void run_program(void)
{
    struct session session;
    const struct program *program = weir_test_data();
    if (start(&session, program))
        for (size_t i = 0; i < program->group->count; i++)
            if (program->group->rows[i].types >> program->type & 1)
                run_row(&session, &program->group->rows[i]);
    finish(&session);
}

__attribute__((constructor)) static void add_tests(void)
{
    static struct weir_test tests[MOST_PROGRAMS];
    for (size_t i = 0; i < program_count && i < MOST_PROGRAMS; i++) {
        tests[i] = (struct weir_test){.suite = "Builtins",
                                      .name = programs[i].name,
                                      .file = __FILE__,
                                      .line = __LINE__,
                                      .run = run_program,
                                      .data = (void *)&programs[i]};
        weir_test_add(&tests[i]);
    }
}
