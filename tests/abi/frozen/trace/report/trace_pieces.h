// Reads the pieces of a JSON text from a source: the members of its root, and the elements of a
// list, one after another. Only the present piece is in memory.
#ifndef WEIR_REPORT_TRACE_PIECES_H
#define WEIR_REPORT_TRACE_PIECES_H

#include "tests/abi/frozen/trace/report/trace_lines.h"

enum {
    // Commas and brackets of a text that is parsed: each may become a value of a hundred bytes,
    // and an event of a trace has few.
    WEIR__ITEM_LIMIT = 1 << 17
};

enum weir__piece_answer {
    WEIR__PIECE,
    WEIR__PIECE_NONE, // the list, or the object, has ended
    WEIR__PIECE_NO_MEMORY,
    WEIR__PIECE_BROKEN // `why` has the reason
};

// Zeroed but for `source`.
struct weir__pieces {
    struct weir__source *source;
    char *chunk; // of the source
    size_t at;
    size_t end;
    char *text; // the piece
    size_t size;
    size_t capacity;
    uint64_t line;  // the present line, from 0
    uint64_t begin; // the line in which the piece begins
    const char *why;
};

// Skips white space and returns the next byte without consuming it; -1 at the end.
int weir__pieces_peek(struct weir__pieces *pieces);

// Consumes `byte`, after white space. False if the next byte is another one.
bool weir__pieces_skip(struct weir__pieces *pieces, char byte);

// Consumes one value; with `keep` its text becomes the piece.
enum weir__piece_answer weir__pieces_value(struct weir__pieces *pieces, bool keep);

// The next element of a list, or key of an object, that is open; `close` ends it. `first` is
// true before the first one, and false then.
enum weir__piece_answer weir__pieces_next(struct weir__pieces *pieces, char close, bool *first);

void weir__pieces_finish(struct weir__pieces *pieces);

// Whether a text has more values than are parsed at once.
bool weir__has_many_items(const char *text, size_t size);

#endif
