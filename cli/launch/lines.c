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

static void take(struct stream *stream, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != '\n')
            stream->line[stream->used++] = bytes[i];
        if (bytes[i] == '\n' || stream->used == LINE_LIMIT)
            add_line(stream);
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
