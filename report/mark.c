// See the header. A trace has one event a line, with its arguments last.
#include "report/mark.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "report/trace_out.h"
#include "report/trace_reader.h"

enum {
    LINE_LIMIT = 1 << 24,
    FLUSHED_BYTES = 1 << 20
};

struct mark {
    const struct weir_findings *findings;
    struct weir__out out;
    uint64_t marked;
};

static bool is_at(const struct weir_check_use *use, const char *file, json_int_t line)
{
    return use->line == line && strcmp(use->file, file) == 0;
}

static const struct weir_check_finding *find(const struct mark *mark, const char *file,
                                             json_int_t line)
{
    for (size_t i = 0; i < mark->findings->count; i++) {
        const struct weir_check_finding *finding = mark->findings->items[i];
        if ((int)finding->kind < WEIR_CHECK_FIRST_HINT && !finding->suppression &&
            (is_at(&finding->first, file, line) || is_at(&finding->second, file, line)))
            return finding;
    }
    return NULL;
}

// The finding of an operation's line that is not marked yet.
static const struct weir_check_finding *finding_of(const struct mark *mark, const json_t *event)
{
    const json_t *args = json_object_get(event, "args");
    const char *file = json_string_value(json_object_get(args, "weir.file"));
    const json_int_t line = json_integer_value(json_object_get(args, "weir.line"));
    return file && !json_object_get(args, "weir.finding") ? find(mark, file, line) : NULL;
}

static void write_arguments(struct weir__out *out, const struct weir_check_finding *finding)
{
    weir__out_string_field(out, "weir.finding", finding->message);
    weir__out_string_field(out, "weir.remedy", finding->remedy);
}

// An event at the beginning of the operation, on its row.
static void write_instant(struct weir__out *out, const json_t *event,
                          const struct weir_check_finding *finding)
{
    const double ts = json_number_value(json_object_get(event, "ts"));
    weir__out_raw(out, "{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"weir_check\"");
    weir__out_string_field(out, "name", weir_findings_kind_name(finding->kind));
    weir__out_int_field(out, "pid", json_integer_value(json_object_get(event, "pid")));
    weir__out_int_field(out, "tid", json_integer_value(json_object_get(event, "tid")));
    weir__out_us_field(out, "ts", (uint64_t)(ts * 1000 + 0.5));
    weir__out_key(out, "args");
    weir__out_raw(out, "{");
    write_arguments(out, finding);
    weir__out_raw(out, "}}");
}

static void write_marked(struct mark *mark, const char *text, size_t size, const json_t *event,
                         const struct weir_check_finding *finding)
{
    struct weir__out *out = &mark->out;
    const bool comma = text[size - 1] == ',';
    const size_t end = size - (comma ? 1 : 0) - 2; // of the arguments
    weir__out_bytes(out, text, end);
    write_arguments(out, finding);
    weir__out_raw(out, "}},\n");
    write_instant(out, event, finding);
    weir__out_raw(out, comma ? "," : "");
    mark->marked++;
}

static bool ends_in_arguments(const char *text, size_t size)
{
    if (size > 0 && text[size - 1] == ',')
        size--;
    return size > 3 && text[size - 1] == '}' && text[size - 2] == '}' && text[size - 3] != '{';
}

static void take_line(struct mark *mark, const char *text, size_t size)
{
    static const char start[] = "{\"ph\":\"X\"";
    const struct weir_check_finding *finding = NULL;
    json_t *event = NULL;
    if (size > sizeof start && memcmp(text, start, sizeof start - 1) == 0 &&
        ends_in_arguments(text, size))
        event = weir_json_load(text, size - (text[size - 1] == ',' ? 1 : 0), 0, NULL);
    if (event)
        finding = finding_of(mark, event);
    if (finding)
        write_marked(mark, text, size, event, finding);
    else
        weir__out_bytes(&mark->out, text, size);
    json_decref(event);
}

static bool take_lines(struct mark *mark, gzFile file, const char *trace, char *message,
                       size_t message_size)
{
    static const struct weir_trace_read_options options = {0};
    struct weir__source source = {.file = file, .options = &options};
    struct weir__lines lines = {.source = &source, .limit = LINE_LIMIT};
    enum weir__line_answer answer;
    const char *text;
    size_t size;
    bool whole;
    while ((answer = weir__lines_next(&lines, &text, &size, &whole)) == WEIR__LINE) {
        take_line(mark, text, size);
        weir__out_raw(&mark->out, whole ? "\n" : "");
        if (mark->out.used > FLUSHED_BYTES)
            weir__out_flush(&mark->out);
    }
    weir__lines_finish(&lines);
    if (answer == WEIR__LINE_NONE && !source.damaged)
        return true;
    weir_text_about(message, message_size, trace,
                    answer == WEIR__LINE_NO_MEMORY  ? "there is no memory to read it"
                    : answer == WEIR__LINE_TOO_LONG ? "a line is longer than 16 MiB; it is no trace"
                                                    : "the compressed data is damaged");
    return false;
}

static bool open_trace(const char *trace, gzFile *out_file, char *message, size_t message_size)
{
    int descriptor;
    uint64_t total;
    if (!weir_file_open(trace, &descriptor, &total, message, message_size))
        return false;
    *out_file = gzdopen(descriptor, "rb");
    if (*out_file)
        return true;
    close(descriptor);
    weir_text_about(message, message_size, trace, "there is no memory to read it");
    return false;
}

static bool write_file(struct mark *mark, const char *trace, const char *path, char *message,
                       size_t message_size)
{
    char late[512];
    gzFile file;
    if (!open_trace(trace, &file, message, message_size))
        return false;
    if (!weir__out_open(&mark->out, path, message, message_size)) {
        gzclose(file);
        return false;
    }
    bool fine = take_lines(mark, file, trace, message, message_size);
    gzclose(file);
    if (!weir__out_close(&mark->out, late, sizeof late) && fine) {
        snprintf(message, message_size, "%s", late);
        fine = false;
    }
    return fine;
}

static bool put_in_place(const char *part, const char *output, char *message, size_t message_size)
{
    if (rename(part, output) == 0)
        return true;
    weir_text_about(message, message_size, output,
                    "the trace cannot be put there (errno %d); choose another place for it", errno);
    return false;
}

bool weir_trace_mark(const char *trace, const struct weir_findings *findings, const char *output,
                     uint64_t *out_marked, char *message, size_t message_size)
{
    struct mark mark = {.findings = findings};
    const size_t length = strlen(output);
    const bool compressed = length > 3 && strcmp(output + length - 3, ".gz") == 0;
    const size_t size = length + sizeof ".part.gz";
    char *part = malloc(size);
    *out_marked = 0;
    if (!part) {
        weir_text_about(message, message_size, output, "there is no memory to write it");
        return false;
    }
    snprintf(part, size, "%s.part%s", output, compressed ? ".gz" : "");
    const bool fine = write_file(&mark, trace, part, message, message_size) &&
                      put_in_place(part, output, message, message_size);
    if (!fine)
        unlink(part);
    free(part);
    *out_marked = mark.marked;
    return fine;
}
