// Reads traces in pieces, of which one at a time is in memory. Those of Weir have one event a line: an invalid line
// loses only its own event, and a file without an end is read as far as it goes.
#define _GNU_SOURCE // memmem
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/c_locale.h"
#include "base/file.h"
#include "base/grow.h"
#include "base/json/json.h"
#include "base/text.h"
#include "report/trace_reader.h"

enum {
    CHUNK = 1 << 18, // bytes that are read at once
    PIECE_LIMIT = 1 << 26,
    // Commas and brackets of a text that is parsed: each may become a value of a hundred bytes,
    // and an event of a trace has few.
    ITEM_LIMIT = 1 << 17,
    BAD_LINE_LIMIT = 1000,
    DEFAULT_OPERATIONS = 10 * 1000 * 1000
};

// Pieces. Only brackets and strings are examined: jansson parses a piece, and skipped values may be anything.

enum answer {
    PIECE,
    PIECE_NONE, // the list, or the object, has ended
    PIECE_NO_MEMORY,
    PIECE_BROKEN, // `why` has the reason
    PIECE_REFUSED // the message is written
};

struct pieces {
    gzFile file;    // compressed or not
    uint64_t total; // of its bytes
    bool damaged;   // the compressed data is
    const struct weir_trace_read_options *options;
    uint64_t read;
    int byte;   // the next one; -1: the end
    char *text; // the piece
    size_t size;
    size_t capacity;
    uint64_t line;  // the present line, from 0
    uint64_t begin; // the line in which the piece begins
    size_t items;   // its commas and brackets
    bool by_lines;  // a value ends with its line
    char why[JSON_ERROR_TEXT_LENGTH];
    uint64_t broken_line;
};

// At intervals, and at the end.
static void look(struct pieces *pieces)
{
    int error = Z_OK;
    gzerror(pieces->file, &error);
    pieces->damaged = error != Z_OK && error != Z_STREAM_END;
    if (pieces->options->progress)
        pieces->options->progress(pieces->options->user, (uint64_t)gzoffset(pieces->file),
                                  pieces->total);
}

static void pass(struct pieces *pieces)
{
    pieces->line += pieces->byte == '\n';
    pieces->byte = gzgetc(pieces->file);
    if (pieces->byte < 0 || ++pieces->read % CHUNK == 0)
        look(pieces);
}

// Skips white space and returns the next byte without consuming it; -1 at the end.
static int next_byte(struct pieces *pieces)
{
    while (pieces->byte == ' ' || pieces->byte == '\t' || pieces->byte == '\r' ||
           pieces->byte == '\n')
        pass(pieces);
    return pieces->byte;
}

// Consumes `byte`, after white space. False if the next byte is another one.
static bool skip(struct pieces *pieces, char byte)
{
    if (next_byte(pieces) != byte)
        return false;
    pass(pieces);
    return true;
}

static enum answer broken_at(struct pieces *pieces, uint64_t line, const char *why)
{
    snprintf(pieces->why, sizeof pieces->why, "%s", why);
    pieces->broken_line = line;
    return PIECE_BROKEN;
}

static enum answer broken(struct pieces *pieces, const char *why)
{
    return broken_at(pieces, pieces->line, why);
}

static enum answer put(struct pieces *pieces, int byte)
{
    if (pieces->size == pieces->capacity) {
        if (pieces->size == PIECE_LIMIT)
            return broken(pieces, "a value is longer than 64 MiB");
        char *text = weir_grow(pieces->text, pieces->size, &pieces->capacity, 1);
        if (!text)
            return PIECE_NO_MEMORY;
        pieces->text = text;
    }
    pieces->text[pieces->size++] = (char)byte;
    return PIECE;
}

// The depth of brackets, and the state within a string.
struct place {
    uint64_t depth;
    bool in_string;
    bool escaped;
};

static void step(struct pieces *pieces, struct place *place, int byte)
{
    if (place->in_string) {
        place->in_string = place->escaped || byte != '"';
        place->escaped = !place->escaped && byte == '\\';
    } else if (byte == '"') {
        place->in_string = true;
    } else if (byte == '{' || byte == '[') {
        place->depth++;
        pieces->items++;
    } else if ((byte == '}' || byte == ']') && place->depth > 0) {
        place->depth--;
    } else if (byte == ',') {
        pieces->items++;
    }
}

static bool ends_scalar(int byte)
{
    return byte < 0 || strchr(",:]} \t\r\n", byte);
}

// Consumes one value; with `keep` its text becomes the piece.
static enum answer take_value(struct pieces *pieces, bool keep)
{
    struct place place = {0};
    const int first = next_byte(pieces);
    const bool scalar = first != '"' && first != '{' && first != '[';
    pieces->size = pieces->items = 0;
    pieces->begin = pieces->line;
    if (first < 0 || (scalar && ends_scalar(first)))
        return broken(pieces, first < 0 ? "it ends early" : "there is no value");
    do {
        const int byte = pieces->byte;
        if (byte < 0)
            return broken(pieces, "it ends early");
        if (byte == '\n' && pieces->by_lines)
            return broken(pieces, "a line ends within a value");
        const enum answer answer = keep ? put(pieces, byte) : PIECE;
        if (answer != PIECE)
            return answer;
        step(pieces, &place, byte);
        pass(pieces);
    } while (scalar ? !ends_scalar(pieces->byte) : place.depth > 0 || place.in_string);
    return PIECE;
}

// The next element of a list, or key of an object, that is open; `close` ends it. `first` is
// true before the first one, and false then.
static enum answer take_next(struct pieces *pieces, char close, bool *first)
{
    if (skip(pieces, close))
        return PIECE_NONE;
    if (!*first && !skip(pieces, ','))
        return broken(pieces,
                      next_byte(pieces) < 0 ? "it ends early" : "a comma or a bracket is missing");
    *first = false;
    return take_value(pieces, true);
}

static bool is(const char *text, size_t size, const char *what)
{
    return strlen(what) == size && memcmp(text, what, size) == 0;
}

struct reader {
    struct pieces pieces;
    struct weir__rows rows;
    bool spread; // a value of the head has several lines, which Weir writes none of
    bool found;  // the events
    bool done;   // nothing is to be read after them, or the file of Weir's ends before them
    uint64_t bad_lines;
    uint64_t first_bad;
};

static bool refuse(struct reader *reader, const char *sentence)
{
    weir_text_about(reader->rows.message, reader->rows.message_size, reader->rows.name, "%s",
                    sentence);
    return false;
}

static bool refuse_piece(struct reader *reader, uint64_t line, const char *why)
{
    if (reader->pieces.damaged)
        return refuse(reader, "its compressed data is damaged, and nothing can be read of it");
    weir_text_about(reader->rows.message, reader->rows.message_size, reader->rows.name,
                    "this is no trace, or a damaged one: line %" PRIu64 ": %s", line + 1, why);
    return false;
}

// A trace of Weir's that just ends is read up to there.
static bool refuse_answer(struct reader *reader, struct pieces *pieces, enum answer answer)
{
    if (answer == PIECE_REFUSED)
        return false;
    if (answer == PIECE_NO_MEMORY)
        return weir__rows_no_memory(&reader->rows);
    reader->done = reader->rows.own && pieces->byte < 0;
    return reader->done || refuse_piece(reader, pieces->broken_line, pieces->why);
}

// The piece as a value.
static enum answer parse_piece(struct pieces *pieces, json_t **out_value)
{
    json_error_t error;
    if (pieces->items > ITEM_LIMIT)
        return broken_at(pieces, pieces->begin, "a value of it has more than 131072 parts");
    *out_value = weir_json_load(pieces->text, pieces->size, JSON_DECODE_ANY, &error);
    if (*out_value)
        return PIECE;
    return json_error_code(&error) == json_error_out_of_memory
               ? PIECE_NO_MEMORY
               : broken_at(pieces, pieces->begin + (uint64_t)error.line - 1, error.text);
}

// Rows for other programs: arrows, and the host's calls, whose category follows name, pid and tid, and precedes
// everything that may be long.
static bool is_for_others(const struct pieces *pieces)
{
    static const char arrow[] = "{\"ph\":\"";
    static const char call[] = "\"cat\":\"cuda_runtime\"";
    const char *text = pieces->text;
    if (pieces->size >= sizeof arrow && memcmp(text, arrow, sizeof arrow - 1) == 0 &&
        (text[sizeof arrow - 1] == 's' || text[sizeof arrow - 1] == 'f'))
        return true;
    return memmem(text, pieces->size < 180 ? pieces->size : 180, call, sizeof call - 1);
}

static enum answer take_event(struct reader *reader, struct pieces *pieces)
{
    json_t *event = NULL;
    if (pieces->text[0] != '{' || (pieces->by_lines && is_for_others(pieces)))
        return PIECE;
    const enum answer answer = parse_piece(pieces, &event);
    const bool kept = answer != PIECE || weir__rows_event(&reader->rows, event);
    json_decref(event);
    return kept ? answer : PIECE_REFUSED;
}

// A bad line costs itself only. False: there are too many.
static bool pass_line(struct reader *reader, struct pieces *pieces)
{
    while (pieces->byte >= 0 && pieces->byte != '\n')
        pass(pieces);
    if (reader->bad_lines++ == 0)
        reader->first_bad = pieces->begin + 1;
    return reader->bad_lines <= BAD_LINE_LIMIT ||
           refuse(reader, "more than 1000 lines of it cannot be read; it is damaged, or no trace");
}

// The list of events is open. In Weir's own layout, with its head before them, each has a line.
static bool take_events(struct reader *reader, struct pieces *pieces)
{
    bool first = true;
    reader->found = true;
    pieces->by_lines = reader->rows.own && !reader->spread;
    reader->done = pieces->by_lines;
    for (;;) {
        first = first || pieces->by_lines; // a line may have lost its comma
        while (pieces->by_lines && skip(pieces, ','))
            continue;
        enum answer answer = take_next(pieces, ']', &first);
        if (answer == PIECE_NONE)
            return true;
        if (answer == PIECE)
            answer = take_event(reader, pieces);
        if (answer == PIECE)
            continue;
        if (answer != PIECE_BROKEN || !pieces->by_lines || pieces->byte < 0)
            return refuse_answer(reader, pieces, answer);
        if (!pass_line(reader, pieces))
            return false;
    }
}

// The value of a key of the root.
static bool take_head_value(struct reader *reader, struct pieces *pieces, const char *key)
{
    const enum answer answer = take_value(pieces, key);
    if (answer != PIECE)
        return refuse_answer(reader, pieces, answer);
    reader->spread = reader->spread || pieces->begin != pieces->line;
    if (!key)
        return true;
    json_t *value = NULL;
    const enum answer parsed = parse_piece(pieces, &value);
    if (parsed != PIECE)
        return refuse_answer(reader, pieces, parsed);
    weir__rows_head(&reader->rows, key, value);
    json_decref(value);
    return true;
}

// The key that the piece is, with its quotes, if its value is wanted.
static const char *wanted_key(const struct pieces *pieces)
{
    static const char *const keys[] = {"weir", "baseTimeNanoseconds", "deviceProperties"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (pieces->size > 2 && is(pieces->text + 1, pieces->size - 2, keys[i]))
            return keys[i];
    return NULL;
}

// The members of the root.
static bool take_members(struct reader *reader, struct pieces *pieces)
{
    bool first = true;
    for (;;) {
        const enum answer answer = take_next(pieces, '}', &first);
        if (answer == PIECE_NONE)
            return true;
        if (answer != PIECE)
            return refuse_answer(reader, pieces, answer);
        const bool is_events = is(pieces->text, pieces->size, "\"traceEvents\"");
        const char *key = wanted_key(pieces);
        if (!skip(pieces, ':'))
            return refuse_answer(reader, pieces, broken(pieces, "a key has no value"));
        const bool ok = is_events && skip(pieces, '[') ? take_events(reader, pieces)
                                                       : take_head_value(reader, pieces, key);
        if (!ok || reader->done)
            return ok;
    }
}

static bool take_whole(struct reader *reader)
{
    struct pieces *pieces = &reader->pieces;
    bool ok;
    pass(pieces); // to the first byte
    if (next_byte(pieces) < 0 && !pieces->damaged)
        ok = refuse(reader, "the file is empty: nothing was traced, or it was not flushed");
    else if (skip(pieces, '['))
        ok = take_events(reader, pieces);
    else if (skip(pieces, '{'))
        ok = take_members(reader, pieces);
    else
        ok = refuse_piece(reader, pieces->line, "it is no object and no list");
    while (ok && pieces->byte >= 0) // damage after the root is noticed, too
        pass(pieces);
    free(pieces->text);
    if (ok && !reader->found && !reader->done)
        return refuse(reader, "this is JSON without \"traceEvents\", so no trace");
    return ok;
}

static bool tell_bad_lines(struct reader *reader)
{
    struct weir__rows *rows = &reader->rows;
    const bool one = reader->bad_lines == 1;
    if (reader->pieces.damaged &&
        !weir__rows_note(rows, "the compressed data breaks off, or is damaged from there on"))
        return false;
    if (reader->bad_lines == 0)
        return true;
    rows->trace->meta.truncated = true;
    return weir__rows_note(rows,
                           "%llu line%s cannot be read and %s left out, the first of them line "
                           "%llu",
                           (unsigned long long)reader->bad_lines, one ? "" : "s",
                           one ? "was" : "were", (unsigned long long)reader->first_bad);
}

static struct weir_trace *new_trace(void)
{
    struct weir_trace *trace = calloc(1, sizeof *trace);
    struct weir_names *texts = trace ? weir_names_create() : NULL;
    if (!texts) {
        free(trace);
        return NULL;
    }
    trace->texts = texts;
    trace->meta = (struct weir_trace_meta){
        .program = "", .weir = "", .backend = "", .plugins = "", .source = ""};
    return trace;
}

// The file is open, and the fields that messages need are set.
static bool read_source(struct reader *reader, struct weir_trace **out_trace)
{
    const size_t limit = reader->pieces.options->operation_limit;
    reader->rows.trace = new_trace();
    reader->rows.operation_limit = limit ? limit : DEFAULT_OPERATIONS;
    const locale_t before = weir_c_locale_enter(); // jansson reads numbers with strtod()
    bool ok = reader->rows.trace
                  ? take_whole(reader) && tell_bad_lines(reader) && weir__rows_finish(&reader->rows)
                  : weir__rows_no_memory(&reader->rows);
    weir_c_locale_leave(before);
    free(reader->rows.calls);
    if (ok)
        *out_trace = reader->rows.trace;
    else
        weir_trace_destroy(&reader->rows.trace);
    return ok;
}

bool weir_trace_read(const char *path, const struct weir_trace_read_options *options,
                     struct weir_trace **out_trace, char *message, size_t message_size)
{
    static const struct weir_trace_read_options none = {0};
    struct reader reader = {
        .pieces = {.options = options ? options : &none},
        .rows = {.name = path, .message = message, .message_size = message_size},
    };
    int descriptor;
    *out_trace = NULL;
    if (!weir_file_open(path, &descriptor, &reader.pieces.total, message, message_size))
        return false;
    reader.pieces.file = gzdopen(descriptor, "rb");
    if (!reader.pieces.file) {
        close(descriptor);
        weir_text_about(message, message_size, path, "there is no memory to read it");
        return false;
    }
    gzbuffer(reader.pieces.file, CHUNK);
    const bool ok = read_source(&reader, out_trace);
    gzclose(reader.pieces.file);
    return ok;
}

void weir_trace_destroy(struct weir_trace **trace)
{
    struct weir_trace *it = trace ? *trace : NULL;
    if (!it)
        return;
    for (size_t i = 0; i < it->operation_count; i++) {
        free((void *)it->operations[i].waits);
        free((void *)it->operations[i].scalars);
        free((void *)it->operations[i].collective);
    }
    free(it->devices);
    free(it->queues);
    free(it->threads);
    free(it->operations);
    free(it->spans);
    free(it->notes);
    weir_names_destroy(it->texts);
    free(it);
    *trace = NULL;
}
