#include "report/grid.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *format_text(const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = length < 0 ? NULL : malloc((size_t)length + 1);
    if (text)
        vsnprintf(text, (size_t)length + 1, format, arguments);
    return text;
}

static void append(struct weir__text *text, const char *from, size_t size)
{
    if (text->failed)
        return;
    if (text->capacity - text->used <= size) {
        size_t capacity = text->capacity ? text->capacity : 1024;
        while (capacity - text->used <= size)
            capacity *= 2;
        char *grown = realloc(text->text, capacity);
        if (!grown) {
            text->failed = true;
            return;
        }
        text->text = grown;
        text->capacity = capacity;
    }
    memcpy(text->text + text->used, from, size);
    text->used += size;
    text->text[text->used] = '\0';
}

void weir__text_add(struct weir__text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *line = format_text(format, arguments);
    va_end(arguments);
    if (line)
        append(text, line, strlen(line));
    else
        text->failed = true;
    free(line);
}

void weir__grid_add(struct weir__grid *grid, const char *format, ...)
{
    if (grid->count == grid->capacity) {
        const size_t capacity = grid->capacity ? 2 * grid->capacity : 64;
        char **cells = realloc(grid->cells, capacity * sizeof *cells);
        if (!cells) {
            grid->failed = true;
            return;
        }
        grid->cells = cells;
        grid->capacity = capacity;
    }
    va_list arguments;
    va_start(arguments, format);
    char *cell = format_text(format, arguments);
    va_end(arguments);
    if (cell)
        grid->cells[grid->count++] = cell;
    else
        grid->failed = true;
}

// In characters of UTF-8, not bytes.
static size_t width(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

static size_t column_width(const struct weir__grid *grid, size_t column, size_t columns)
{
    size_t widest = 0;
    for (size_t i = column; i < grid->count; i += columns)
        if (width(grid->cells[i]) > widest)
            widest = width(grid->cells[i]);
    return widest;
}

static void add_row(const struct weir__grid *grid, const size_t *widths, size_t row, size_t columns,
                    struct weir__text *text)
{
    for (size_t i = 0; i < columns && row + i < grid->count; i++) {
        const char *cell = grid->cells[row + i];
        const int pad = (int)(widths[i] - width(cell));
        const bool right = grid->alignment[i] == 'r';
        const bool last = i + 1 == columns;
        weir__text_add(text, "  %*s%s%*s%s", right ? pad : 0, "", cell, right || last ? 0 : pad, "",
                       last ? "\n" : "");
    }
}

void weir__grid_end(struct weir__grid *grid, struct weir__text *text)
{
    size_t widths[16];
    const size_t columns = strlen(grid->alignment);
    text->failed = text->failed || grid->failed;
    for (size_t i = 0; i < columns && i < 16; i++)
        widths[i] = column_width(grid, i, columns);
    for (size_t i = 0; i < grid->count && !grid->failed; i += columns)
        add_row(grid, widths, i, columns, text);
    for (size_t i = 0; i < grid->count; i++)
        free(grid->cells[i]);
    free(grid->cells);
    *grid = (struct weir__grid){.alignment = grid->alignment};
}
