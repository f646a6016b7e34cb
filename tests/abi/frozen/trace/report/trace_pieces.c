// Only brackets and strings are examined: jansson parses a piece, and skipped values may be
// anything.
#include "tests/abi/frozen/trace/report/trace_pieces.h"

#include <stdlib.h>
#include <string.h>

enum {
    PIECE_LIMIT = 1 << 26
};

static bool fetch(struct weir__pieces *pieces)
{
    if (!pieces->chunk)
        pieces->chunk = malloc(WEIR__TRACE_CHUNK);
    pieces->at = 0;
    pieces->end =
        pieces->chunk ? weir__source_fetch(pieces->source, pieces->chunk, WEIR__TRACE_CHUNK) : 0;
    return pieces->end > 0;
}

// -1: the end, or no memory.
static int peek(struct weir__pieces *pieces)
{
    if (pieces->at == pieces->end && !fetch(pieces))
        return -1;
    return (unsigned char)pieces->chunk[pieces->at];
}

static void pass(struct weir__pieces *pieces)
{
    pieces->line += pieces->chunk[pieces->at] == '\n';
    pieces->at++;
}

int weir__pieces_peek(struct weir__pieces *pieces)
{
    int byte = peek(pieces);
    while (byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n') {
        pass(pieces);
        byte = peek(pieces);
    }
    return byte;
}

bool weir__pieces_skip(struct weir__pieces *pieces, char byte)
{
    if (weir__pieces_peek(pieces) != byte)
        return false;
    pass(pieces);
    return true;
}

static enum weir__piece_answer broken(struct weir__pieces *pieces, const char *why)
{
    pieces->why = why;
    return pieces->chunk ? WEIR__PIECE_BROKEN : WEIR__PIECE_NO_MEMORY;
}

static enum weir__piece_answer put(struct weir__pieces *pieces, int byte)
{
    if (pieces->size == pieces->capacity) {
        const size_t capacity = pieces->capacity ? 2 * pieces->capacity : 4096;
        if (capacity > PIECE_LIMIT)
            return broken(pieces, "a value is longer than 64 MiB");
        char *text = realloc(pieces->text, capacity);
        if (!text)
            return WEIR__PIECE_NO_MEMORY;
        pieces->text = text;
        pieces->capacity = capacity;
    }
    pieces->text[pieces->size++] = (char)byte;
    return WEIR__PIECE;
}

// The depth of brackets, and the state within a string.
struct place {
    uint64_t depth;
    bool in_string;
    bool escaped;
};

static void step(struct place *place, int byte)
{
    if (place->in_string) {
        place->in_string = place->escaped || byte != '"';
        place->escaped = !place->escaped && byte == '\\';
    } else if (byte == '"') {
        place->in_string = true;
    } else if (byte == '{' || byte == '[') {
        place->depth++;
    } else if ((byte == '}' || byte == ']') && place->depth > 0) {
        place->depth--;
    }
}

static bool ends_scalar(int byte)
{
    return byte < 0 || strchr(",:]} \t\r\n", byte);
}

enum weir__piece_answer weir__pieces_value(struct weir__pieces *pieces, bool keep)
{
    struct place place = {0};
    const int first = weir__pieces_peek(pieces);
    const bool scalar = first != '"' && first != '{' && first != '[';
    pieces->size = 0;
    pieces->begin = pieces->line;
    if (first < 0 || (scalar && ends_scalar(first)))
        return broken(pieces, first < 0 ? "it ends early" : "there is no value");
    do {
        const int byte = peek(pieces);
        if (byte < 0)
            return broken(pieces, "it ends early");
        const enum weir__piece_answer answer = keep ? put(pieces, byte) : WEIR__PIECE;
        if (answer != WEIR__PIECE)
            return answer;
        step(&place, byte);
        pass(pieces);
    } while (scalar ? !ends_scalar(peek(pieces)) : place.depth > 0 || place.in_string);
    return WEIR__PIECE;
}

enum weir__piece_answer weir__pieces_next(struct weir__pieces *pieces, char close, bool *first)
{
    if (weir__pieces_skip(pieces, close))
        return WEIR__PIECE_NONE;
    if (!*first && !weir__pieces_skip(pieces, ','))
        return broken(pieces, weir__pieces_peek(pieces) < 0 ? "it ends early"
                                                            : "a comma or a bracket is missing");
    *first = false;
    return weir__pieces_value(pieces, true);
}

void weir__pieces_finish(struct weir__pieces *pieces)
{
    free(pieces->chunk);
    free(pieces->text);
    *pieces = (struct weir__pieces){.source = pieces->source};
}

bool weir__has_many_items(const char *text, size_t size)
{
    struct place place = {0};
    size_t count = 0;
    for (size_t i = 0; i < size && count <= WEIR__ITEM_LIMIT; i++) {
        count += !place.in_string && (text[i] == ',' || text[i] == '[' || text[i] == '{');
        step(&place, text[i]);
    }
    return count > WEIR__ITEM_LIMIT;
}
