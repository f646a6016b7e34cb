// The page of a trace: operations, findings and the report, as the data of page.html.
#include "report/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "report/findings.h"
#include "report/page_html.h"
#include "report/report.h"
#include "report/trace_format.h"

// The page is a template (page.html) with places for the trace, the report and the findings, all as JSON; the
// report and the findings are those of weir_report_json() and weir_findings_json().
// Operations are written as columns, and each text once: 100,000 operations are about 10 MB.
// All are in script elements, which only "<" could end early, so it is escaped. It only occurs in
// strings.

struct page {
    const weir_report *report;
    const struct weir_trace *trace;
    const struct weir_findings *findings; // NULL: none
    struct weir_names *texts;
    struct weir_long_text *out;
    weir_file_writer *file;
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

static uint64_t title_number(struct page *page, const struct weir_trace_operation *operation)
{
    return text_number(page, weir_trace_operation_title(operation).text);
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

// Where a column's numbers come from.
enum source {
    NUMBER, // uint64_t
    SMALL,  // uint32_t
    KEPT,   // a text
    TITLE,
    GRID,
    ENGINE,
    FLAGS,
    LINE,
};

#define FIELD(field) offsetof(struct weir_trace_operation, field)

static const struct column {
    const char *name;
    enum source source;
    size_t offset; // of the first three
} columns[] = {
    {"queue", SMALL, FIELD(queue_index)},
    {"sequence", NUMBER, FIELD(sequence)},
    {"engine", ENGINE, 0},
    {"flags", FLAGS, 0},
    {"bytes", NUMBER, FIELD(bytes)},
    {"title", TITLE, 0},
    {"label", KEPT, FIELD(label)},
    {"dst", KEPT, FIELD(dst_label)},
    {"src", KEPT, FIELD(src_label)},
    {"grid", GRID, 0},
    {"file", KEPT, FIELD(file)},
    {"line", LINE, 0},
    {"region", KEPT, FIELD(region)},
    {"thread", NUMBER, FIELD(thread)},
    {"submit", NUMBER, FIELD(submit_ns)},
    {"submit_end", NUMBER, FIELD(submit_end_ns)},
    {"start", NUMBER, FIELD(start_ns)},
    {"certain", NUMBER, FIELD(latest_start_ns)},
    {"end", NUMBER, FIELD(end_ns)},
};

static uint64_t number_of(struct page *page, const struct column *column, size_t index)
{
    const struct weir_trace_operation *operation = &page->trace->operations[index];
    const void *field = (const char *)operation + column->offset;
    switch (column->source) {
    case NUMBER:
        return *(const uint64_t *)field;
    case SMALL:
        return *(const uint32_t *)field;
    case KEPT:
        return text_number(page, *(const char *const *)field);
    case TITLE:
        return title_number(page, operation);
    case GRID:
        return grid_number(page, operation);
    case ENGINE:
        return operation->engine;
    case FLAGS:
        return flags_of(operation);
    case LINE:
        break;
    }
    return operation->line > 0 ? (uint64_t)operation->line : 0;
}

static void write_operations(struct page *page)
{
    for (size_t k = 0; k < sizeof columns / sizeof *columns; k++) {
        weir__out_key(page->out, columns[k].name);
        raw(page, "[");
        for (size_t i = 0; i < page->trace->operation_count; i++) {
            if (i > 0)
                raw(page, ",");
            weir__out_uint(page->out, number_of(page, &columns[k], i));
        }
        raw(page, "]\n");
        hand_over(page);
    }
}

static void write_waits(struct page *page)
{
    static const char *const names[] = {"to", "from", "file", "line"};
    for (size_t column = 0; column < sizeof names / sizeof *names; column++) {
        bool any = false;
        weir__out_key(page->out, names[column]);
        raw(page, "[");
        for (size_t i = 0; i < page->trace->operation_count; i++) {
            const struct weir_trace_operation *operation = &page->trace->operations[i];
            for (size_t w = 0; w < operation->wait_count; w++, any = true) {
                const struct weir_trace_wait *wait = &operation->waits[w];
                const int64_t from =
                    wait->operation == WEIR_TRACE_NO_INDEX ? -1 : (int64_t)wait->operation;
                const int64_t numbers[] = {(int64_t)i, from, (int64_t)text_number(page, wait->file),
                                           wait->line};
                raw(page, any ? "," : "");
                weir__out_int(page->out, numbers[column]);
            }
        }
        raw(page, "]\n");
        hand_over(page);
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
    raw(page, ",\n\"operations\":{");
    write_operations(page);
    raw(page, "},\n\"waits\":{");
    write_waits(page);
    raw(page, "},\n\"texts\":[");
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
