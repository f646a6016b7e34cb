// A line is written whole, so that lines of several ranks never mix, on one pipe for standard output
// and standard error either.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/launch/launch.h"

static void add(struct sink *sink, const char *bytes, size_t size)
{
    memcpy(sink->bytes + sink->used, bytes, size);
    sink->used += size;
}

static void add_line(struct stream *stream)
{
    if (!stream->to->broken) {
        add(stream->to, stream->prefix, strlen(stream->prefix));
        add(stream->to, stream->line, stream->used);
        add(stream->to, "\n", 1);
    }
    stream->used = 0;
}

static void add_text(struct stream *stream, const char *text, size_t size)
{
    if (stream->used + size > LINE_LIMIT)
        add_line(stream);
    memcpy(stream->line + stream->used, text, size);
    stream->used += size;
    if (stream->used == LINE_LIMIT)
        add_line(stream);
}

// U+0080 to U+009F control terminals as ESC and a character do. In UTF-8 they follow a C2.
static bool is_control(const struct stream *stream, unsigned char byte)
{
    if (byte >= 0x80 && byte <= 0x9f)
        return stream->used > 0 && (unsigned char)stream->line[stream->used - 1] == 0xc2;
    return (byte < ' ' && byte != '\t') || byte == 0x7f;
}

static void add_escaped(struct stream *stream, unsigned char byte)
{
    char text[ESCAPE_SIZE + 1];
    snprintf(text, sizeof text, "\\x%02x", byte);
    stream->used -= byte >= 0x80;
    add_text(stream, text, ESCAPE_SIZE);
}

// What a terminal would act on is spelt out: a rank could write over other ranks' lines with it. A carriage
// return, which lines of progress end with, ends a line.
static void take(struct stream *stream, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const bool had_returned = stream->returned;
        stream->returned = bytes[i] == '\r' && (stream->used > 0 || had_returned);
        if (bytes[i] == '\r' ? stream->used > 0 : bytes[i] == '\n' && !had_returned)
            add_line(stream);
        else if (bytes[i] == '\r' || bytes[i] == '\n')
            continue;
        else if (is_control(stream, (unsigned char)bytes[i]))
            add_escaped(stream, (unsigned char)bytes[i]);
        else
            add_text(stream, &bytes[i], 1);
    }
}

void stream_end(struct stream *stream)
{
    if (stream->used)
        add_line(stream);
    close(stream->from);
    stream->from = -1;
}

size_t stream_read(struct stream *stream)
{
    char bytes[READ_SIZE];
    const ssize_t count = read(stream->from, bytes, sizeof bytes);
    if (count > 0)
        take(stream, bytes, (size_t)count);
    else
        stream_end(stream);
    return count > 0 ? (size_t)count : 0;
}

// Up to the end of the last line that fits.
static size_t part(const struct sink *sink)
{
    const char *from = sink->bytes + sink->written;
    const size_t left = sink->used - sink->written;
    size_t size = left < PIPE_BUF ? left : PIPE_BUF;
    while (size > 0 && from[size - 1] != '\n')
        size--;
    return size ? size : PIPE_BUF;
}

bool sink_write(struct sink *sink, bool *out_middle)
{
    const ssize_t count = write(sink->descriptor, sink->bytes + sink->written, part(sink));
    if (count < 0 && errno != EINTR && errno != EAGAIN) {
        sink->broken = true;
        sink->used = sink->written = 0;
        *out_middle = false;
        return false;
    }
    sink->written += count > 0 ? (size_t)count : 0;
    *out_middle = sink->written && sink->bytes[sink->written - 1] != '\n';
    if (sink->written == sink->used)
        sink->used = sink->written = 0;
    return true;
}
