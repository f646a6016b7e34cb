#include "tests/abi/frozen/trace/report/trace_lines.h"

#include <stdlib.h>
#include <string.h>

size_t weir__source_fetch(struct weir__source *source, char *data, size_t size)
{
    if (!source->file) {
        const size_t left = source->memory_size - source->memory_at;
        const size_t count = size < left ? size : left;
        if (count > 0)
            memcpy(data, source->memory + source->memory_at, count);
        source->memory_at += count;
        return count;
    }
    const int count = gzread(source->file, data, (unsigned)size);
    int error = Z_OK;
    gzerror(source->file, &error);
    if (count < 0 || (error != Z_OK && error != Z_STREAM_END))
        source->damaged = true;
    if (source->options->progress)
        source->options->progress(source->options->user, (uint64_t)gzoffset(source->file),
                                  source->total);
    return count > 0 ? (size_t)count : 0;
}

void weir__source_rewind(struct weir__source *source)
{
    source->memory_at = 0;
    source->damaged = false;
    if (source->file)
        gzrewind(source->file);
}

static enum weir__line_answer read_more(struct weir__lines *lines)
{
    if (lines->begin > 0) {
        memmove(lines->data, lines->data + lines->begin, lines->end - lines->begin);
        lines->end -= lines->begin;
        lines->begin = 0;
    }
    if (lines->capacity - lines->end < WEIR__TRACE_CHUNK) {
        const size_t capacity =
            lines->capacity ? 2 * lines->capacity : 2 * (size_t)WEIR__TRACE_CHUNK;
        if (lines->end > lines->limit)
            return WEIR__LINE_TOO_LONG;
        char *data = realloc(lines->data, capacity);
        if (!data)
            return WEIR__LINE_NO_MEMORY;
        lines->data = data;
        lines->capacity = capacity;
    }
    const size_t count =
        weir__source_fetch(lines->source, lines->data + lines->end, WEIR__TRACE_CHUNK);
    lines->end += count;
    lines->over = count == 0;
    return WEIR__LINE;
}

enum weir__line_answer weir__lines_next(struct weir__lines *lines, const char **out_text,
                                        size_t *out_size, bool *out_whole)
{
    size_t looked = 0;
    for (;;) {
        const size_t have = lines->end - lines->begin;
        const char *text = have > 0 ? lines->data + lines->begin : "";
        const char *newline = have > looked ? memchr(text + looked, '\n', have - looked) : NULL;
        looked = have;
        if (newline || (lines->over && have > 0)) {
            *out_text = text;
            *out_size = newline ? (size_t)(newline - text) : have;
            *out_whole = newline != NULL;
            lines->begin += *out_size + (newline != NULL);
            lines->number++;
            return WEIR__LINE;
        }
        if (lines->over)
            return WEIR__LINE_NONE;
        const enum weir__line_answer answer = read_more(lines);
        if (answer != WEIR__LINE)
            return answer;
    }
}

void weir__lines_finish(struct weir__lines *lines)
{
    free(lines->data);
    *lines = (struct weir__lines){.source = lines->source};
}
