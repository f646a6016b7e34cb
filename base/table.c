// NOLINTNEXTLINE(bugprone-reserved-identifier): for vasprintf()
#define _GNU_SOURCE
#include "base/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/grow.h"

static char *format_text(const char *format, va_list arguments)
{
    char *text;
    const locale_t before = weir_c_locale_enter();
    const int length = vasprintf(&text, format, arguments);
    weir_c_locale_leave(before);
    return length < 0 ? NULL : text;
}

void weir_long_text_put(struct weir_long_text *text, const char *from, size_t size)
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

void weir_long_text_add(struct weir_long_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *piece = format_text(format, arguments);
    va_end(arguments);
    if (piece)
        weir_long_text_put(text, piece, strlen(piece));
    else
        text->failed = true;
    free(piece);
}

void weir_long_text_add_shown(struct weir_long_text *text, const char *from)
{
    char *shown = weir_text_escaped(from, "");
    if (shown)
        weir_long_text_put(text, shown, strlen(shown));
    else
        text->failed = true;
    free(shown);
}

static void add_cell(struct weir_table *table, const char *text)
{
    char **cells = weir_grow(table->cells, table->count, &table->capacity, sizeof *cells);
    if (!cells) {
        table->failed = true;
        return;
    }
    table->cells = cells;
    char *cell = weir_text_escaped(text, "");
    if (cell)
        table->cells[table->count++] = cell;
    else
        table->failed = true;
}

void weir_table_add(struct weir_table *table, const char *format, ...)
{
    const bool several = strchr(format, '\t');
    va_list arguments;
    va_start(arguments, format);
    char *raw = format_text(format, arguments);
    va_end(arguments);
    table->failed = table->failed || !raw;
    for (char *cell = raw, *next; cell; cell = next) {
        next = several ? strchr(cell, '\t') : NULL;
        if (next)
            *next++ = '\0';
        add_cell(table, cell);
    }
    free(raw);
}

// In characters of UTF-8, not bytes.
static size_t width(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

static void add_row(const struct weir_table *table, const size_t *widths, size_t row,
                    size_t columns, struct weir_long_text *text)
{
    for (size_t i = 0; i < columns; i++) {
        const char *cell = row + i < table->count ? table->cells[row + i] : "";
        const int pad = (int)(widths[i] - width(cell));
        const bool right = table->alignment[i] == 'r';
        const bool last = i + 1 == columns;
        weir_long_text_add(text, "%*s%s%*s%s", right ? pad : 0, "", cell, right || last ? 0 : pad,
                           "", last ? "\n" : "  ");
    }
}

void weir_table_end(struct weir_table *table, size_t indent, struct weir_long_text *text)
{
    size_t widths[WEIR_TABLE_COLUMNS];
    const size_t letters = strlen(table->alignment);
    const size_t columns = letters < WEIR_TABLE_COLUMNS ? letters : WEIR_TABLE_COLUMNS;
    text->failed = text->failed || table->failed;
    for (size_t i = 0; i < columns; i++) {
        widths[i] = 0;
        for (size_t k = i; k < table->count; k += columns)
            if (width(table->cells[k]) > widths[i])
                widths[i] = width(table->cells[k]);
    }
    for (size_t i = 0; i < table->count && !table->failed; i += columns) {
        weir_long_text_add(text, "%*s", (int)indent, "");
        add_row(table, widths, i, columns, text);
    }
    weir_table_finish(table);
}

void weir_table_finish(struct weir_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->cells[i]);
    free(table->cells);
    *table = (struct weir_table){.alignment = table->alignment};
}
