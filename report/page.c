// The page of a trace: operations, findings and the report, as the data of page.html.
#include "report/page.h"

#include <string.h>

#include "base/file.h"
#include "report/findings.h"
#include "report/page_html.h"
#include "report/report.h"
#include "report/trace_format.h"

// The page is a template (page.html) with places for the trace, the report and the findings, all as JSON; the
// report and the findings are those of weir_report_json() and weir_findings_json().
// Operations and waits are rows of numbers, which page.html names, and each text is written once: 100,000 operations are
// about 10 MB.
// All are in script elements, which only "<" could end early, so it is escaped. It only occurs in
// strings.

struct page {
    const weir_report *report;
    const struct weir_trace *trace;
    const struct weir_findings *findings; // NULL: none
    struct weir_names *texts;
    struct weir_long_text *out;
    weir_file_writer *file;
    bool any_row; // in the list that is written
    bool no_memory;
};

static void write_escaped(struct page *page, const char *text, size_t size)
{
    size_t done = 0;
    while (done < size) {
        const char *rest = text + done;
        const char *next = memchr(rest, '<', size - done);
        const size_t plain = next ? (size_t)(next - rest) : size - done;
        weir_file_writer_append(page->file, rest, plain);
        if (next)
            weir_file_writer_append(page->file, "\\u003c", 6);
        done += plain + (next ? 1 : 0);
    }
}

// Moves the buffered text to the file.
static void hand_over(struct page *page)
{
    write_escaped(page, page->out->text, page->out->used);
    page->out->used = 0;
}

// Frees the text. NULL: there was no memory for it.
static void write_json(struct page *page, char *text)
{
    if (text)
        write_escaped(page, text, strlen(text));
    page->no_memory = page->no_memory || !text;
    free(text);
}

static void raw(struct page *page, const char *text)
{
    weir__out_raw(page->out, text);
}

// The trace.

static uint64_t text_number(struct page *page, const char *text)
{
    const size_t number = weir_names_number(page->texts, text ? text : "");
    page->no_memory = page->no_memory || number == SIZE_MAX;
    return number == SIZE_MAX ? 0 : number;
}

static uint64_t grid_number(struct page *page, const struct weir_trace_operation *operation)
{
    char text[128] = "";
    if (operation->grid[0])
        snprintf(text, sizeof text, "%u × %u × %u blocks of %u × %u × %u", operation->grid[0],
                 operation->grid[1], operation->grid[2], operation->block[0], operation->block[1],
                 operation->block[2]);
    return text_number(page, text);
}

static uint64_t flags_of(const struct weir_trace_operation *operation)
{
    return (operation->timed ? 1u : 0) | (operation->start_is_earliest ? 2u : 0) |
           (operation->failed ? 4u : 0);
}

static void write_row(struct page *page, const uint64_t *numbers, size_t count)
{
    raw(page, page->any_row ? ",\n[" : "\n[");
    for (size_t i = 0; i < count; i++) {
        raw(page, i ? "," : "");
        weir__out_uint(page->out, numbers[i]);
    }
    raw(page, "]");
    page->any_row = true;
    hand_over(page);
}

static void write_operation(struct page *page, const struct weir_trace_operation *it)
{
    const uint64_t numbers[] = {
        it->queue_index,
        it->sequence,
        it->engine,
        flags_of(it),
        it->bytes,
        text_number(page, weir_trace_operation_title(it).text),
        text_number(page, it->label),
        text_number(page, it->dst_label),
        text_number(page, it->src_label),
        grid_number(page, it),
        text_number(page, it->file),
        it->line > 0 ? (uint64_t)it->line : 0,
        text_number(page, it->region),
        it->thread,
        it->submit_ns,
        it->submit_end_ns,
        it->start_ns,
        it->latest_start_ns,
        it->end_ns,
    };
    write_row(page, numbers, sizeof numbers / sizeof *numbers);
}

// The waits of an operation: its index, and that of the one that it waits for, which may be past all.
static void write_waits(struct page *page, size_t index)
{
    const struct weir_trace_operation *it = &page->trace->operations[index];
    for (size_t i = 0; i < it->wait_count; i++) {
        const uint64_t numbers[] = {index, it->waits[i].operation,
                                    text_number(page, it->waits[i].file),
                                    it->waits[i].line > 0 ? (uint64_t)it->waits[i].line : 0};
        write_row(page, numbers, sizeof numbers / sizeof *numbers);
    }
}

// What is not of operations.

static const struct weir__field device_fields[] = {
    WEIR__ALWAYS(weir_trace_device, name, WEIR__TEXT, "name"),
    WEIR__ALWAYS(weir_trace_device, label, WEIR__TEXT, "label"),
    {0},
};

static const struct weir__field queue_fields[] = {
    WEIR__ALWAYS(weir_trace_queue, label, WEIR__TEXT, "label"),
    WEIR__ALWAYS(weir_trace_queue, id, WEIR__COUNT, "id"),
    WEIR__ALWAYS(weir_trace_queue, device, WEIR__SMALL, "device"),
    {0},
};

static const struct weir__field thread_fields[] = {
    WEIR__ALWAYS(weir_trace_thread, name, WEIR__TEXT, "name"),
    WEIR__ALWAYS(weir_trace_thread, id, WEIR__COUNT, "id"),
    {0},
};

static const struct weir__field span_fields[] = {
    WEIR__ALWAYS(weir_trace_span, number, WEIR__NUMBER, "number"),
    WEIR__ALWAYS(weir_trace_span, name, WEIR__TEXT, "name"),
    WEIR__ALWAYS(weir_trace_span, kind, WEIR__SMALL, "kind"),
    WEIR__ALWAYS(weir_trace_span, thread, WEIR__COUNT, "thread"),
    WEIR__ALWAYS(weir_trace_span, begin_ns, WEIR__COUNT, "begin"),
    WEIR__ALWAYS(weir_trace_span, end_ns, WEIR__COUNT, "end"),
    {0},
};

static void write_trace(struct page *page)
{
    const struct weir_trace *trace = page->trace;
    text_number(page, ""); // the first, so that 0 is no text
    raw(page, "{");
    weir__out_items(page->out, "devices", device_fields, trace->devices, trace->device_count,
                    sizeof *trace->devices);
    weir__out_items(page->out, "queues", queue_fields, trace->queues, trace->queue_count,
                    sizeof *trace->queues);
    weir__out_items(page->out, "threads", thread_fields, trace->threads, trace->thread_count,
                    sizeof *trace->threads);
    weir__out_items(page->out, "spans", span_fields, trace->spans, trace->span_count,
                    sizeof *trace->spans);
    raw(page, ",\n\"operations\":[");
    for (size_t i = 0; i < trace->operation_count; i++)
        write_operation(page, &trace->operations[i]);
    page->any_row = false;
    raw(page, "],\n\"waits\":[");
    for (size_t i = 0; i < trace->operation_count; i++)
        write_waits(page, i);
    raw(page, "],\n\"texts\":[");
    for (size_t i = 0; i < weir_names_count(page->texts); i++) {
        raw(page, i ? ",\n" : "");
        weir__out_string(page->out, weir_names_text(page->texts, i));
    }
    raw(page, "]}");
    hand_over(page);
}

// Writes the template from the end of the previous place up to the next one.
static const char *copy_template(struct page *page, const char *from, const char *place)
{
    const char *end = strstr(from, place);
    weir_file_writer_append(page->file, from, (size_t)(end - from));
    return end + strlen(place);
}

static void write_page(struct page *page)
{
    const char *rest = copy_template(page, weir_report_page_html, "@COLOURS@");
    for (unsigned i = WEIR_ENGINE_NONE + 1; i < WEIR_ENGINE_COUNT; i++) {
        raw(page, i > 1 ? " --" : "--");
        raw(page, weir_trace_engine_name((enum weir_trace_engine)i));
        raw(page, ": ");
        raw(page, weir_trace_engine_colour((enum weir_trace_engine)i));
        raw(page, ";");
    }
    hand_over(page);
    rest = copy_template(page, rest, "@TRACE@");
    write_trace(page);
    rest = copy_template(page, rest, "@REPORT@");
    write_json(page, weir_report_json(page->report));
    rest = copy_template(page, rest, "@FINDINGS@");
    if (page->findings)
        write_json(page, weir_findings_json(page->findings));
    else
        weir_file_writer_append(page->file, "null", 4);
    weir_file_writer_append(page->file, rest, strlen(rest));
}

bool weir_page_write(const char *path, const weir_report *report,
                     const struct weir_findings *findings, char *message, size_t message_size)
{
    struct weir_long_text out = {.text = NULL};
    struct page page = {
        .report = report,
        .trace = report->trace,
        .findings = findings,
        .texts = weir_names_create(),
        .out = &out,
    };
    page.no_memory = !page.texts;
    page.file = page.no_memory ? NULL : weir_file_writer_create(path, message, message_size);
    if (page.file)
        write_page(&page);
    bool written = false;
    if (page.no_memory || out.failed)
        weir_text_about(message, message_size, path,
                        "the page was not written: there is no memory");
    else if (page.file)
        written = weir_file_writer_commit(&page.file, message, message_size);
    weir_file_writer_destroy(&page.file);
    free(out.text);
    weir_names_destroy(page.texts);
    return written;
}
