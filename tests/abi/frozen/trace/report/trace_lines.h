// The source of the reader's bytes, which is a file, compressed or not, or memory; and its lines.
#ifndef WEIR_REPORT_TRACE_LINES_H
#define WEIR_REPORT_TRACE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "tests/abi/frozen/trace/report/trace.h"

enum {
    WEIR__TRACE_CHUNK = 1 << 18 // bytes that are read at once
};

// Either `file` or `memory` is set.
struct weir__source {
    gzFile file;
    const char *memory;
    size_t memory_size;
    size_t memory_at;
    uint64_t total; // of the file, compressed or not
    bool damaged;   // the compressed data is
    const struct weir_trace_read_options *options;
};

// Fetches at most `size` bytes and reports progress. 0: there are no more.
size_t weir__source_fetch(struct weir__source *source, char *data, size_t size);

void weir__source_rewind(struct weir__source *source);

// Zeroed but for `source` and `limit`, which may change between two lines.
struct weir__lines {
    struct weir__source *source;
    size_t limit; // of a line
    char *data;
    size_t capacity;
    size_t begin;
    size_t end;
    uint64_t number; // of the line that was last read
    bool over;
};

enum weir__line_answer {
    WEIR__LINE,
    WEIR__LINE_NONE, // the source has ended
    WEIR__LINE_NO_MEMORY,
    WEIR__LINE_TOO_LONG // longer than the limit
};

// The next line without its end; `*out_whole` is false for a last line without one. It stays
// valid until the next call.
enum weir__line_answer weir__lines_next(struct weir__lines *lines, const char **out_text,
                                        size_t *out_size, bool *out_whole);

void weir__lines_finish(struct weir__lines *lines);

#endif
