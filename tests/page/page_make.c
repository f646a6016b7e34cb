// Writes the pages that page_test.sh opens: a small one with known contents, or,
// with a number, a large one.
#include <stdio.h>
#include <stdlib.h>

#include "report/page.h"
#include "report/trace.h"

static const struct weir_trace_device device = {
    .name = "NVIDIA H200",
    .platform = "NVIDIA CUDA",
    .label = "the \"one\"",
    .copy_engines_to_device = 1,
    .copy_engines_to_host = 1,
    .concurrent_kernels = 128,
};

static const struct weir_trace_queue queues[] = {
    {.id = 65537, .label = "first"},
    {.id = 65538, .label = "</script><b>second"},
};

static struct weir_trace_operation copy_in(unsigned queue, uint64_t sequence, uint64_t start,
                                           uint64_t end)
{
    return (struct weir_trace_operation){
        .queue = queues[queue].id,
        .sequence = sequence,
        .kind = WEIR_TRACE_COPY,
        .engine = WEIR_ENGINE_TO_DEVICE,
        .bytes = (end - start) * 50,
        .dst_label = "input",
        .src_label = "frames",
        .dst_memory = WEIR_TRACE_DEVICE_MEMORY,
        .src_memory = WEIR_TRACE_PINNED_MEMORY,
        .file = "program.c",
        .line = 10,
        .region = "frame 7/upload",
        .thread = 42,
        .submit_ns = start / 4,
        .submit_end_ns = start / 4 + 900,
        .timed = true,
        .start_ns = start,
        .end_ns = end,
    };
}

static struct weir_trace_operation launch(unsigned queue, uint64_t sequence, uint64_t start,
                                          uint64_t end)
{
    struct weir_trace_operation operation = copy_in(queue, sequence, start, end);
    operation.kind = WEIR_TRACE_LAUNCH;
    operation.engine = WEIR_ENGINE_KERNELS;
    operation.bytes = 0;
    operation.name = "scale";
    operation.dst_label = operation.src_label = "";
    operation.dst_memory = operation.src_memory = WEIR_TRACE_NO_MEMORY;
    operation.grid[0] = 4;
    operation.grid[1] = operation.grid[2] = 1;
    operation.block[0] = 256;
    operation.block[1] = operation.block[2] = 1;
    operation.line = 20;
    operation.region = "frame 7/scale";
    return operation;
}

static struct weir_trace_operation copy_out(unsigned queue, uint64_t sequence, uint64_t start,
                                            uint64_t end)
{
    struct weir_trace_operation operation = copy_in(queue, sequence, start, end);
    operation.engine = WEIR_ENGINE_TO_HOST;
    operation.dst_memory = WEIR_TRACE_PINNED_MEMORY;
    operation.src_memory = WEIR_TRACE_DEVICE_MEMORY;
    operation.line = 30;
    return operation;
}

static void write_small(weir_trace_writer *writer)
{
    const struct weir_trace_wait wait = {.queue = queues[1].id,
                                         .sequence = 2,
                                         .file = "program.c",
                                         .line = 19};
    // The kernel's comes when its queue is still at work; this one holds its copy up.
    const struct weir_trace_wait binding = {.queue = queues[1].id,
                                            .sequence = 1,
                                            .file = "program.c",
                                            .line = 9};
    const struct weir_trace_span span = {.kind = WEIR_TRACE_REGION,
                                         .thread = 42,
                                         .name = "frame",
                                         .number = 7,
                                         .begin_ns = 1000,
                                         .end_ns = 700000};
    struct weir_trace_operation operations[] = {
        copy_in(1, 1, 100000, 900000),    copy_in(0, 1, 900000, 1500000),
        launch(0, 3, 1600000, 2400000),   copy_out(1, 4, 1000000, 1900000),
        copy_out(0, 4, 2400000, 3300000),
    };
    operations[1].waits = &binding;
    operations[1].wait_count = 1;
    operations[2].waits = &wait;
    operations[2].wait_count = 1;
    operations[2].start_is_earliest = true;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        weir_trace_writer_operation(writer, &operations[i]);
    weir_trace_writer_span(writer, &span);
}

static void write_large(weir_trace_writer *writer, uint64_t count)
{
    for (uint64_t i = 0; i < count / 3; i++) {
        const uint64_t start = 5000 + 3000 * i;
        const unsigned queue = i % 2;
        const struct weir_trace_operation operations[] = {
            copy_in(queue, 3 * i + 1, start, start + 2500 + i % 7 * 50),
            launch(queue, 3 * i + 2, start + 3000, start + 5000 + i % 5 * 300),
            copy_out(queue, 3 * i + 3, start + 7000, start + 9500 + i % 3 * 100),
        };
        for (size_t k = 0; k < 3; k++)
            weir_trace_writer_operation(writer, &operations[k]);
    }
}

static bool write_trace(const char *path, uint64_t count, char *message, size_t size)
{
    const struct weir_trace_meta meta = {.program = "page_make", .backend = "cuda", .process = 42};
    const struct weir_trace_meta end = {.end_ns = 4000000};
    const struct weir_trace_thread thread = {.id = 42, .name = "main"};
    weir_trace_writer *writer = weir_trace_writer_create(path, &meta, message, size);
    if (!writer)
        return false;
    weir_trace_writer_device(writer, &device);
    weir_trace_writer_queue(writer, &queues[0]);
    weir_trace_writer_queue(writer, &queues[1]);
    weir_trace_writer_thread(writer, &thread);
    if (count)
        write_large(writer, count);
    else
        write_small(writer);
    return weir_trace_writer_close(&writer, &end, message, size);
}

// The small page has a finding about the copies to the device and the kernel.
static bool write_marked(const char *path, const weir_report *report, char *message, size_t size)
{
    const struct weir_check_use use = {
        .operation = "", .queue = "", .kernel = "", .file = "program.c", .line = 10, .region = ""};
    struct weir_check_finding finding = {
        .kind = WEIR_CHECK_READ_AFTER_WRITE,
        .count = 3,
        .buffer = "",
        .message = "the launch of '<b>scale' reads what a copy writes",
        .remedy = "record, and wait",
        .first = use,
        .second = use,
    };
    const struct weir_findings findings = {.program = "page_make",
                                           .items = &finding,
                                           .count = 1,
                                           .suppressions = ""};
    finding.second.line = 20;
    return weir_page_write(path, report, &findings, message, size);
}

int main(int argc, char **argv)
{
    char message[512] = "";
    weir_report *report = NULL;
    if (argc < 3) {
        fprintf(stderr, "usage: page_make TRACE PAGE [OPERATIONS]\n");
        return 2;
    }
    const uint64_t count = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    bool made = write_trace(argv[1], count, message, sizeof message);
    if (made && weir_report_read(argv[1], NULL, &report) < 0) {
        snprintf(message, sizeof message, "%s", weir_last_error_text());
        made = false;
    }
    made = made && (count ? weir_page_write(argv[2], report, NULL, message, sizeof message)
                          : write_marked(argv[2], report, message, sizeof message));
    weir_report_destroy(&report);
    if (!made)
        fprintf(stderr, "page_make: %s\n", message);
    return made ? 0 : 1;
}
