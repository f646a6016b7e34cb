#include "cli/table.h"

#include <stdarg.h>
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

void cli_table_add(struct cli_table *table, const char *format, ...)
{
    if (table->count == table->capacity) {
        const size_t capacity = table->capacity ? 2 * table->capacity : 32;
        char **cells = realloc(table->cells, capacity * sizeof *cells);
        if (!cells)
            return;
        table->cells = cells;
        table->capacity = capacity;
    }
    va_list arguments;
    va_start(arguments, format);
    table->cells[table->count++] = format_text(format, arguments);
    va_end(arguments);
}

static const char *cell(const struct cli_table *table, size_t index)
{
    return index < table->count && table->cells[index] ? table->cells[index] : "";
}

// In characters of UTF-8, not bytes.
static int width(const char *text)
{
    int count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

static int column_width(const struct cli_table *table, size_t column, size_t columns)
{
    int widest = 0;
    for (size_t i = column; i < table->count; i += columns)
        if (width(cell(table, i)) > widest)
            widest = width(cell(table, i));
    return widest;
}

static void print_row(const struct cli_table *table, FILE *to, size_t first, size_t columns)
{
    for (size_t column = 0; column < columns; column++) {
        const char *text = cell(table, first + column);
        const int pad = column_width(table, column, columns) - width(text);
        const bool right = table->alignment[column] == 'r';
        const bool last = column + 1 == columns;
        fprintf(to, "%*s%s%*s%s", right ? pad : 0, "", text, right || last ? 0 : pad, "",
                last ? "\n" : "  ");
    }
}

void cli_table_print(struct cli_table *table, FILE *to, int indent)
{
    const size_t columns = strlen(table->alignment);
    for (size_t i = 0; i < table->count; i += columns) {
        fprintf(to, "%*s", indent, "");
        print_row(table, to, i, columns);
    }
    cli_table_finish(table);
}

void cli_table_finish(struct cli_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->cells[i]);
    free(table->cells);
    *table = (struct cli_table){.alignment = table->alignment};
}

// Three digits, whatever the size.
static const char *scaled(char *text, double value, double step, const char *const *units,
                          size_t count)
{
    size_t unit = 0;
    while (value >= 999.5 && unit + 1 < count) {
        value /= step;
        unit++;
    }
    const int decimals = value >= 99.95 || value == 0 ? 0 : value >= 9.995 ? 1 : 2;
    snprintf(text, CLI_TEXT_SIZE, "%.*f %s", decimals, value, units[unit]);
    return text;
}

const char *cli_duration(char *text, double ns)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    return scaled(text, ns, 1000.0, units, sizeof units / sizeof *units);
}

const char *cli_bytes(char *text, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    return scaled(text, (double)bytes, 1024.0, units, sizeof units / sizeof *units);
}
