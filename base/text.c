// Distances are computed in three rows on the stack, so suggesting a name never
// allocates and can be used while reporting that memory ran out.
#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum {
    PATH_SHOWN = 160
};

static int lower(char c)
{
    unsigned char byte = (unsigned char)c;
    return byte >= 'A' && byte <= 'Z' ? byte - 'A' + 'a' : byte;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t weir_text_distance(const char *a, const char *b)
{
    size_t a_length = strlen(a);
    size_t b_length = strlen(b);
    if (a_length > WEIR_TEXT_NAME_LIMIT || b_length > WEIR_TEXT_NAME_LIMIT)
        return WEIR_TEXT_FAR;

    size_t rows[3][WEIR_TEXT_NAME_LIMIT + 1];
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;

    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        const size_t *above_that = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            int here = lower(a[i - 1]);
            size_t replaced = above[j - 1] + (here != lower(b[j - 1]));
            row[j] = smaller(replaced, smaller(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && here == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
                row[j] = smaller(row[j], above_that[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

const char *weir_text_nearer(const char *name, const char *best, const char *candidate)
{
    size_t length = strlen(name);
    size_t allowed = length < 6 ? 1 : length / 3;
    size_t distance = weir_text_distance(name, candidate);
    if (distance > allowed || distance >= length)
        return best;
    if (best && weir_text_distance(name, best) <= distance)
        return best;
    return candidate;
}

const char *weir_text_nearest(const char *name, const char *const *candidates, size_t count)
{
    const char *best = NULL;
    for (size_t i = 0; i < count; i++)
        best = weir_text_nearer(name, best, candidates[i]);
    return best;
}

const char *weir_text_line_with(const char *text, const char *part)
{
    const char *at = strstr(text, part);
    while (at && at > text && at[-1] != '\n')
        at--;
    return at ? at : text;
}

static void append(char *text, size_t size, size_t *used, const char *format, va_list arguments)
{
    if (*used >= size)
        return;
    int length = vsnprintf(text + *used, size - *used, format, arguments);
    if (length > 0)
        *used = smaller(*used + (size_t)length, size - 1);
}

void weir_text_append(char *text, size_t size, size_t *used, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    append(text, size, used, format, arguments);
    va_end(arguments);
}

// Three digits, whatever the size; of the smallest unit there are no parts.
static const char *show(char *text, double value, double step, const char *const *units,
                        size_t count)
{
    size_t unit = 0;
    while (value >= 999.5 && unit + 1 < count) {
        value /= step;
        unit++;
    }
    const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    snprintf(text, WEIR_TEXT_QUANTITY_SIZE, "%.*f %s", decimals, value, units[unit]);
    return text;
}

const char *weir_text_duration(char *text, double ns)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    return show(text, ns, 1000.0, units, sizeof units / sizeof *units);
}

const char *weir_text_bytes(char *text, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    return show(text, (double)bytes, 1024.0, units, sizeof units / sizeof *units);
}

void weir_text_vabout(char *message, size_t size, const char *path, const char *format,
                      va_list arguments)
{
    if (size == 0)
        return;
    size_t used = 0;
    size_t length = strlen(path);
    if (length > PATH_SHOWN)
        weir_text_append(message, size, &used, "...%s: ", path + length - PATH_SHOWN);
    else
        weir_text_append(message, size, &used, "%s: ", path);
    append(message, size, &used, format, arguments);

    for (size_t i = 0; i < used; i++) {
        unsigned char byte = (unsigned char)message[i];
        if (byte < 0x20 || byte == 0x7f)
            message[i] = '?';
    }
}

void weir_text_about(char *message, size_t size, const char *path, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    weir_text_vabout(message, size, path, format, arguments);
    va_end(arguments);
}
