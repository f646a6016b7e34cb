// Opening, devices, limits, labels, priorities, the status tables, error
// details, the log and the counters.

#include "tests/conformance/suite.h"

#define SIZE ((size_t)4096)

CONFORM(Runtime, Open)
{
    weir_runtime *runtime = f->runtime;
    weir_load_report *report = NULL;

    EXPECT_INVALID(weir_open(NULL, NULL), "out_runtime");
    EXPECT_INVALID(weir_open(&(struct weir_open_params){.struct_size = 0}, &runtime),
                   "struct_size");
    EXPECT_NULL(runtime);
    ASSERT_OK(weir_open(WEIR_PARAMS(weir_open, .out_report = &report), &runtime));
    EXPECT_STR_EQ(weir_runtime_backend(runtime), weir_runtime_backend(f->runtime));
    EXPECT_UINT_EQ(weir_device_count(runtime), weir_device_count(f->runtime));
    ASSERT_NOT_NULL(report);
    const size_t count = weir_load_report_count(report);
    ASSERT_UINT_GT(count, 0);
    const struct weir_load_entry *entry = weir_load_report_entry(report, count - 1);
    EXPECT_INT_EQ(entry->outcome, WEIR_LOAD_USED);
    EXPECT_STR_EQ(entry->module, weir_runtime_backend(runtime));
    EXPECT_UINT_EQ(entry->device_count, weir_device_count(runtime));
    EXPECT_NULL(weir_load_report_entry(report, count));
    EXPECT_STR_EQ(weir_load_report_remedy(report), "");
    EXPECT_CONTAINS(weir_load_report_text(report), weir_runtime_backend(runtime));
    EXPECT_UINT_EQ(weir_load_report_count(weir_runtime_report(runtime)), count);
    ASSERT_OK(weir_close(&runtime));
    // The report is the caller's own.
    EXPECT_UINT_EQ(weir_load_report_count(report), count);
    weir_load_report_destroy(&report);
    EXPECT_NULL(report);
}

// Getters return no status; the value that they return for NULL can be printed
// without a crash.
CONFORM(Runtime, GettersOfNoObject)
{
    EXPECT_STR_EQ(weir_runtime_backend(NULL), "");
    EXPECT_NULL(weir_runtime_setting(NULL, "section", "key"));
    EXPECT_NULL(weir_runtime_report(NULL));
    EXPECT_UINT_EQ(weir_load_report_count(NULL), 0);
    EXPECT_NULL(weir_load_report_entry(NULL, 0));
    EXPECT_STR_EQ(weir_load_report_text(NULL), "");
    EXPECT_UINT_EQ(weir_device_count(NULL), 0);
    EXPECT_NULL(weir_device_limits(NULL));
    EXPECT_NULL(weir_device_get_info(NULL));
    EXPECT_STR_EQ(weir_queue_label(NULL), "");
    EXPECT_NULL(weir_queue_device(NULL));
    EXPECT_UINT_EQ(weir_buffer_size(NULL), 0);
    EXPECT_INT_EQ(weir_buffer_placement(NULL), WEIR_PLACE_DEVICE);
    EXPECT_NULL(weir_kernel_get_signature(NULL));
    EXPECT_NULL(weir_kernel_get_info(NULL));
    weir_counters_read(NULL);
}

CONFORM(Device, DescribeAndSelect)
{
    const size_t count = weir_device_count(f->runtime);
    struct weir_device_params params = {.struct_size = sizeof params, .label = "chosen"};
    struct weir_device_info info;
    weir_device *device;
    char beyond[32];

    ASSERT_UINT_GT(count, 0);
    for (size_t i = 0; i < count; i++) {
        ASSERT_OK(weir_device_describe(f->runtime, i, &info));
        EXPECT_STR_NE(info.name, "");
        EXPECT_STR_NE(info.platform, "");
        EXPECT_STR_NE(info.driver, "");
        EXPECT_UINT_GT(info.memory_bytes, 0);
    }
    EXPECT_REFUSED(weir_device_describe(f->runtime, count, &info), WEIR_ERROR_NO_DEVICE, "device");
    EXPECT_REFUSED(weir_device_describe(NULL, 0, &info), WEIR_ERROR_INVALID, "runtime");
    EXPECT_REFUSED(weir_device_describe(f->runtime, 0, NULL), WEIR_ERROR_INVALID, "out_info");

    params.select = "0";
    ASSERT_OK(weir_device_open(f->runtime, &params, &device));
    ASSERT_OK(weir_device_describe(f->runtime, 0, &info));
    EXPECT_STR_EQ(weir_device_get_info(device)->name, info.name);
    EXPECT_OK(weir_device_close(&device));
    EXPECT_NULL(device);

    snprintf(beyond, sizeof beyond, "%zu", count);
    params.select = beyond;
    EXPECT_REFUSED(weir_device_open(f->runtime, &params, &device), WEIR_ERROR_NO_DEVICE, info.name);
    EXPECT_NULL(device);
    params.select = "no such device anywhere";
    EXPECT_REFUSED(weir_device_open(f->runtime, &params, &device), WEIR_ERROR_NO_DEVICE, info.name);
    EXPECT_INVALID(weir_device_open(f->runtime, NULL, NULL), "out_device");
    params.struct_size = 0;
    EXPECT_INVALID(weir_device_open(f->runtime, &params, &device), "struct_size");
}

CONFORM(Device, SelectByName)
{
    struct weir_device_params params = {.struct_size = sizeof params};
    const char *name = weir_device_get_info(f->device)->name;
    own_device device = NULL;
    char part[128];

    if (weir_device_count(f->runtime) > 1)
        CONFORM_SKIP("several devices may share a name");
    snprintf(part, sizeof part, "%s", name);
    for (char *c = part; *c; c++) // ignoring case
        *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
    params.select = part;
    ASSERT_OK(weir_device_open(f->runtime, &params, &device));
    EXPECT_STR_EQ(weir_device_get_info(device)->name, name);
    EXPECT_OK(weir_device_close(&device));
    // Part of the name, which is no number.
    part[strlen(part) / 2] = '\0';
    ASSERT_OK(weir_device_open(f->runtime, &params, &device));
}

CONFORM(Device, Limits)
{
    const struct weir_limits *limits = f->limits;
    EXPECT_UINT_GT(limits->memory_bytes, 0);
    EXPECT_UINT_GT(limits->max_buffer_bytes, 0);
    EXPECT_UINT_GT(limits->max_block_items, 0);
    EXPECT_UINT_GT(limits->max_block.x, 0);
    EXPECT_UINT_GT(limits->max_block.y, 0);
    EXPECT_UINT_GT(limits->max_block.z, 0);
    EXPECT_UINT_GT(limits->max_grid.x, 0);
    EXPECT_UINT_GT(limits->max_local_bytes, 0);
    EXPECT_UINT_GT(limits->compute_units, 0);
    EXPECT_UINT_LE(limits->kind, WEIR_DEVICE_ACCELERATOR);
    EXPECT_UINT_GT(limits->concurrent_kernels, 0);
    EXPECT_UINT_EQ(limits->argument_alignment_bytes & (limits->argument_alignment_bytes - 1), 0);
    EXPECT_INT_EQ(limits->timing_history > 0, limits->timing_resolution_ns > 0);
    EXPECT_OK(weir_device_trim(f->device));
    EXPECT_REFUSED(weir_device_trim(NULL), WEIR_ERROR_INVALID, "device");
}

CONFORM(Queue, LabelsAndParams)
{
    struct weir_queue_params params = {.struct_size = sizeof params, .label = "my label"};
    weir_queue *queue;
    char label[] = "volatile";

    params.label = label;
    ASSERT_OK(weir_queue_create(f->device, &params, &queue));
    memset(label, 'x', sizeof label - 1);
    EXPECT_STR_EQ(weir_queue_label(queue), "volatile");
    EXPECT_PTR_EQ(weir_queue_device(queue), f->device);
    weir_queue_destroy(&queue);
    ASSERT_OK(weir_queue_create(f->device, NULL, &queue));
    EXPECT_STR_EQ(weir_queue_label(queue), "");
    weir_queue_destroy(&queue);
    EXPECT_INVALID(weir_queue_create(NULL, &params, &queue), "device");
    EXPECT_NULL(queue);
    EXPECT_INVALID(weir_queue_create(f->device, &params, NULL), "out_queue");
    static const size_t sizes[] = {0, sizeof params.struct_size - 1, 4097, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        params.struct_size = sizes[i];
        EXPECT_INVALID(weir_queue_create(f->device, &params, &queue), "struct_size");
    }
}

CONFORM(Queue, Priorities)
{
    const int32_t low = f->limits->priority_lowest;
    const int32_t high = f->limits->priority_highest;
    const int32_t least = low < high ? low : high;
    const int32_t most = low < high ? high : low;
    struct weir_queue_params params = {.struct_size = sizeof params, .label = "ranked"};
    weir_queue *queue;

    EXPECT_INT_LE(least, 0);
    EXPECT_INT_GE(most, 0);
    for (int32_t priority = least; priority <= most; priority++) {
        params.priority = priority;
        ASSERT_OK(weir_queue_create(f->device, &params, &queue));
        EXPECT_SYNC(queue);
        weir_queue_destroy(&queue);
    }
    params.priority = most + 1;
    EXPECT_INVALID(weir_queue_create(f->device, &params, &queue), "priority");
    EXPECT_NULL(queue);
    params.priority = least - 1;
    EXPECT_INVALID(weir_queue_create(f->device, &params, &queue), "priority");
}

CONFORM(Status, TableIsUnique)
{
    static const struct {
        weir_status status;
        const char *name;
        const char *text;
    } table[] = {
#define ROW(name, value, text) {name, #name, text},
        WEIR_STATUS_TABLE(ROW)
#undef ROW
    };
    const size_t count = sizeof table / sizeof table[0];

    for (size_t i = 0; i < count; i++) {
        EXPECT_STR_EQ(weir_status_name(table[i].status), table[i].name);
        EXPECT_STR_EQ(weir_status_text(table[i].status), table[i].text);
        for (size_t k = 0; k < i; k++) {
            EXPECT_INT_NE(table[i].status, table[k].status);
            EXPECT_STR_NE(table[i].name, table[k].name);
            EXPECT_STR_NE(table[i].text, table[k].text);
        }
    }
    EXPECT_STR_EQ(weir_status_name((weir_status)12345), "unknown status");
    EXPECT_STR_EQ(weir_status_text((weir_status)-12345), "unknown status");
    EXPECT_STR_EQ(weir_version(), WEIR_VERSION_STRING);
}

// The file:line of a refusal is that of the caller.
CONFORM(Status, CallSites)
{
    own_buffer buffer = conform_device_buffer(f, SIZE);
    char place[300];

    const int line = __LINE__ + 1;
    EXPECT_INT_EQ(weir_queue_copy(f->queue, buffer, SIZE, buffer, 0, 1), WEIR_ERROR_INVALID);
    const struct weir_error *error = weir_last_error();
    EXPECT_INT_EQ(error->status, WEIR_ERROR_INVALID);
    EXPECT_STR_EQ(error->file, __FILE__);
    EXPECT_INT_EQ(error->line, line);
    EXPECT_STR_EQ(error->object, "buffer");
    EXPECT_STR_EQ(error->native_call, "");
    EXPECT_INT_EQ(error->native_code, 0);
    snprintf(place, sizeof place, "(%s:%d)", __FILE__, line);
    EXPECT_CONTAINS(weir_last_error_text(), place);
    EXPECT_CONTAINS(weir_last_error_text(), "'buffer'");
    EXPECT_INT_EQ(weir_queue_copy_at(f->queue, NULL, 0, buffer, 0, 1, "elsewhere.c", 42),
                  WEIR_ERROR_INVALID);
    EXPECT_STR_EQ(weir_last_error()->file, "elsewhere.c");
    EXPECT_INT_EQ(weir_last_error()->line, 42);
    // A successful call does not change the detail.
    EXPECT_SYNC(f->queue);
    EXPECT_INT_EQ(weir_last_error()->line, 42);
    weir_error_set(NULL);
    EXPECT_OK(weir_last_error()->status);
}

struct log {
    int count;
    char last[256];
};

static void keep_message(void *user, weir_log_level level, const char *source, const char *message)
{
    struct log *log = user;
    log->count++;
    snprintf(log->last, sizeof log->last, "%d %s %s", (int)level, source, message);
}

// A section of a module that is not installed is legal, and is logged once.
CONFORM(Log, Callback)
{
    const struct weir_open_params params = {.struct_size = sizeof params,
                                            .config_path = "log.ini",
                                            .config_text = "[cuda]\nanything = 1\n"};
    weir_runtime *runtime = NULL;
    struct log log = {0};

    weir_log_set(keep_message, &log, WEIR_LOG_ERROR);
    weir_status status = weir_open(&params, &runtime);
    EXPECT_OK(weir_close(&runtime));
    if (status == WEIR_OK)           // debug mode logs a refused call
        EXPECT_INT_EQ(log.count, 0); // a warning is above the level
    weir_log_set(keep_message, &log, WEIR_LOG_DEBUG);
    EXPECT_INT_EQ(weir_open(&params, &runtime), status);
    EXPECT_OK(weir_close(&runtime));
    weir_log_set(NULL, NULL, WEIR_LOG_DEBUG);
    if (status != WEIR_OK)
        CONFORM_SKIP("the module is installed, and checks its keys");
    EXPECT_INT_GT(log.count, 0);
    const int before = log.count;
    EXPECT_OK(weir_open(&params, &runtime));
    EXPECT_OK(weir_close(&runtime));
    EXPECT_INT_EQ(log.count, before);
}

// A warm loop allocates nothing and creates no driver objects.
CONFORM(Counters, AWarmLoopIsFlat)
{
    own_queues queues = {conform_queue(f, "a"), conform_queue(f, "b")};
    own_buffer buffer = conform_device_buffer(f, SIZE);
    own_buffer host = conform_host_buffer(f, SIZE);
    own_kernel kernel = conform_kernel(f, "iota");
    struct weir_counters before = {0};
    struct weir_counters after;

    for (int i = 0; i < 60; i++) {
        if (i == 20)
            weir_counters_read(&before);
        ASSERT_OK(weir_queue_copy(queues[0], buffer, 0, host, 0, SIZE));
        follow(queues[1], queues[0]);
        ASSERT_OK(weir_queue_launch(queues[1], kernel, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                                    weir_out(buffer, 0, SIZE), 0u, 16u));
        ASSERT_OK(weir_queue_copy(queues[1], host, 0, buffer, 0, SIZE));
        ASSERT_SYNC(queues[1]);
    }
    weir_counters_read(&after);
    EXPECT_UINT_EQ(after.allocations, before.allocations);
    EXPECT_UINT_EQ(after.driver_objects, before.driver_objects);
}

// Held queues reuse the memory into which they copied operations.
CONFORM(Counters, AWarmLoopOfHostCallsIsFlat)
{
    own_buffer buffer = conform_device_buffer(f, SIZE);
    struct weir_counters before = {0};
    struct weir_counters after;
    const uint32_t value = 1;

    for (int i = 0; i < 60; i++) {
        own_gate gate = gate_create();
        if (i == 20)
            weir_counters_read(&before);
        ASSERT_OK(weir_queue_host_call(f->queue, gate_pass, gate));
        ASSERT_OK(weir_queue_fill(f->queue, buffer, 0, SIZE, &value, 4));
        // The sync's record may also be held if the worker is slow; during the
        // warm-up another operation takes its place, independently of the worker.
        if (i < 20)
            ASSERT_OK(weir_queue_fill(f->queue, buffer, 0, SIZE, &value, 4));
        gate_open(gate);
        ASSERT_SYNC(f->queue);
    }
    weir_counters_read(&after);
    EXPECT_UINT_EQ(after.allocations, before.allocations);
    EXPECT_UINT_EQ(after.driver_objects, before.driver_objects);
}
