// Distances are computed in three rows on the stack, so suggesting a name never
// allocates and can be used while reporting that memory ran out.
// NOLINTNEXTLINE(bugprone-reserved-identifier): for sigabbrev_np()
#define _GNU_SOURCE
#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"

enum {
    PATH_SHOWN = 160,
    MOST_FOR_A_BYTE = 4, // "\x1b"
    SENTENCE_SIZE = 1024
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

// How many single edits turn `a` into `b`: inserting, removing or replacing one byte, or swapping two neighbours.
// ASCII letters count as equal to their other case.
static size_t distance_of(const char *a, const char *b)
{
    size_t a_length = strlen(a);
    size_t b_length = strlen(b);
    if (a_length > WEIR_TEXT_NAME_LIMIT || b_length > WEIR_TEXT_NAME_LIMIT)
        return SIZE_MAX;

    size_t rows[3][WEIR_TEXT_NAME_LIMIT + 1];
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;

    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        const size_t *above_that = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            const char here = weir_text_lower(a[i - 1]);
            size_t replaced = above[j - 1] + (here != weir_text_lower(b[j - 1]));
            row[j] = smaller(replaced, smaller(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && here == weir_text_lower(b[j - 2]) &&
                weir_text_lower(a[i - 2]) == weir_text_lower(b[j - 1]))
                row[j] = smaller(row[j], above_that[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

const char *weir_text_nearer(const char *name, const char *best, const char *candidate)
{
    size_t length = strlen(name);
    size_t allowed = length < 6 ? 1 : length / 3;
    size_t distance = distance_of(name, candidate);
    if (distance > allowed || distance >= length)
        return best;
    if (best && distance_of(name, best) <= distance)
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

struct weir_quantity weir_text_signal(int number)
{
    const char *name = sigabbrev_np(number);
    struct weir_quantity shown;
    snprintf(shown.text, sizeof shown.text, "signal %d%s%s%s", number, name ? " (SIG" : "",
             name ? name : "", name ? ")" : "");
    return shown;
}

void weir_text_variable(char *text, size_t size, const char *section, const char *key)
{
    const bool is_own = strcmp(section, "weir") == 0;
    snprintf(text, size, "WEIR_%s%s%s", is_own ? "" : section, is_own ? "" : "_", key);
    for (; *text; text++)
        *text = *text == '-' ? '_' : weir_text_upper(*text);
}

bool weir_text_contains(const char *text, const char *part)
{
    for (;; text++) {
        size_t i = 0;
        while (part[i] && weir_text_lower(text[i]) == weir_text_lower(part[i]))
            i++;
        if (!part[i])
            return true;
        if (!*text)
            return false;
    }
}

static void append(char *text, size_t size, size_t *used, const char *format, va_list arguments)
{
    if (*used >= size)
        return;
    int length = weir_c_vformat(text + *used, size - *used, format, arguments);
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

// Three digits at any size; the smallest unit has no decimals.
static struct weir_quantity show(double value, double step, const char *const *units, size_t count)
{
    struct weir_quantity shown;
    size_t unit = 0;
    while (value >= 999.5 && unit + 1 < count) {
        value /= step;
        unit++;
    }
    const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    weir_c_format(shown.text, sizeof shown.text, "%.*f %s", decimals, value, units[unit]);
    return shown;
}

struct weir_quantity weir_text_duration(double ns)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    return show(ns, 1000.0, units, sizeof units / sizeof *units);
}

struct weir_quantity weir_text_bytes(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    return show((double)bytes, 1024.0, units, sizeof units / sizeof *units);
}

size_t weir_text_character(const char *text, size_t left)
{
    const unsigned char *bytes = (const unsigned char *)text;
    const unsigned char first = bytes[0];
    const size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if ((first >= 0x80 && first < 0xc2) || first > 0xf4 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
    // Shortest forms only, no surrogates, nothing above U+10FFFF.
    if ((first == 0xe0 && bytes[1] < 0xa0) || (first == 0xed && bytes[1] > 0x9f) ||
        (first == 0xf0 && bytes[1] < 0x90) || (first == 0xf4 && bytes[1] > 0x8f))
        return 0;
    return length;
}

// The number of the character, which has `length` bytes. Of those with four bytes none is
// escaped, so their number does not matter.
static unsigned number_of(const char *text, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)text;
    if (length == 2)
        return (bytes[0] & 0x1fu) << 6 | (bytes[1] & 0x3fu);
    if (length == 3)
        return (bytes[0] & 0x0fu) << 12 | (bytes[1] & 0x3fu) << 6 | (bytes[2] & 0x3fu);
    return length == 1 ? bytes[0] : 0xffff;
}

// Control characters, line separators, and characters that change the direction of text.
static bool is_acted_on(unsigned number)
{
    return number < 0x20 || (number >= 0x7f && number < 0xa0) || number == 0x61c ||
           number == 0x200e || number == 0x200f || (number >= 0x2028 && number <= 0x202e) ||
           (number >= 0x2066 && number <= 0x2069);
}

// Writes the escaped form of the character at `text` to `shown`, and returns the number of bytes of
// the character.
static size_t show_character(const char *text, const char *keep, char shown[8])
{
    const size_t length = weir_text_character(text, SIZE_MAX);
    const unsigned number = number_of(text, length);
    const char *mark = number == '\n' ? "\\n" : number == '\t' ? "\\t" : "\\r";
    if (length == 0)
        snprintf(shown, 8, "\\x%02x", (unsigned char)*text);
    else if (!is_acted_on(number) || (length == 1 && strchr(keep, *text)))
        snprintf(shown, 8, "%.*s", (int)length, text);
    else if (number == '\n' || number == '\t' || number == '\r')
        snprintf(shown, 8, "%s", mark);
    else
        snprintf(shown, 8, length == 1 ? "\\x%02x" : "\\u%04x", number);
    return length ? length : 1;
}

void weir_text_escape(char *out, size_t size, const char *text, const char *keep)
{
    size_t used = 0;
    size_t fits = 0; // the length that stays if "..." must follow
    while (*text) {
        char shown[8];
        text += show_character(text, keep, shown);
        const size_t length = strlen(shown);
        if (length >= size - used) {
            memcpy(out + fits, "...", 4);
            return;
        }
        memcpy(out + used, shown, length);
        used += length;
        if (size - used >= 4)
            fits = used;
    }
    out[used] = '\0';
}

char *weir_text_escaped(const char *text, const char *keep)
{
    const size_t size = strlen(text) * MOST_FOR_A_BYTE + 1;
    char *escaped = malloc(size);
    if (escaped)
        weir_text_escape(escaped, size, text, keep);
    return escaped;
}

bool weir_text_is_clean(const char *text, const char *keep)
{
    while (*text) {
        const size_t length = weir_text_character(text, SIZE_MAX);
        if (length == 0 ||
            (is_acted_on(number_of(text, length)) && !(length == 1 && strchr(keep, *text))))
            return false;
        text += length;
    }
    return true;
}

void weir_text_vabout(char *message, size_t size, const char *path, const char *format,
                      va_list arguments)
{
    if (size == 0)
        return;
    size_t used = 0;
    size_t length = strlen(path);
    const char *shown = length > PATH_SHOWN ? path + length - PATH_SHOWN : path;
    while (shown > path && ((unsigned char)*shown & 0xc0) == 0x80) // in mid-character
        shown++;
    weir_text_append(message, size, &used, "%s%s: ", shown > path ? "..." : "", shown);
    append(message, size, &used, format, arguments);
    if (size < 4 || weir_text_is_clean(message, ""))
        return;
    char raw[SENTENCE_SIZE];
    snprintf(raw, sizeof raw, "%s", message);
    weir_text_escape(message, size, raw, "");
}

void weir_text_about(char *message, size_t size, const char *path, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    weir_text_vabout(message, size, path, format, arguments);
    va_end(arguments);
}

// Tokens.

static const char *pass_comment(const char *at)
{
    if (at[1] == '/') {
        while (*at && *at != '\n') // a backslash continues it on the next line
            at += at[0] == '\\' && at[1] ? 2 : 1;
        return at;
    }
    const char *end = strstr(at + 2, "*/");
    return end ? end + 2 : at + strlen(at);
}

static const char *pass_quoted(const char *at)
{
    const char quote = *at++;
    while (*at && *at != quote && *at != '\n')
        at += at[0] == '\\' && at[1] ? 2 : 1;
    return at + (*at == quote);
}

// To the end of its last line. An apostrophe may be one of a word in #error.
static const char *pass_directive(const char *at)
{
    while (*at && *at != '\n') {
        if (at[0] == '/' && (at[1] == '/' || at[1] == '*'))
            at = pass_comment(at);
        else if (*at == '"')
            at = pass_quoted(at);
        else
            at += at[0] == '\\' && at[1] ? 2 : 1;
    }
    return at;
}

bool weir_token_next(const char **at, bool fresh, struct weir_token *out)
{
    const char *end = *at;
    for (;;) {
        if (end[0] == '/' && (end[1] == '/' || end[1] == '*')) {
            end = pass_comment(end);
        } else if (isspace((unsigned char)*end)) {
            fresh = fresh || *end == '\n';
            end++;
        } else {
            break;
        }
    }
    const char *start = end;
    *out = (struct weir_token){.start = start, .is_directive = fresh && *start == '#'};
    if (out->is_directive)
        end = pass_directive(start);
    else if (*start == '"' || *start == '\'')
        end = pass_quoted(start);
    else if (weir_text_is_word(*start))
        while (weir_text_is_word(*end))
            end++;
    else
        end += *start != '\0';
    out->length = (size_t)(end - start);
    *at = end;
    return out->length > 0;
}

bool weir_token_is(struct weir_token token, const char *text)
{
    return token.length == strlen(text) && memcmp(token.start, text, token.length) == 0;
}

bool weir_token_is_one_of(struct weir_token token, const char *const *names)
{
    while (*names && !weir_token_is(token, *names))
        names++;
    return *names != NULL;
}

bool weir_token_is_name(struct weir_token token)
{
    return token.length > 0 && weir_text_is_word(*token.start) &&
           !isdigit((unsigned char)*token.start);
}

bool weir_token_is_there(const char *text, const char *const *names)
{
    struct weir_token token;
    for (bool fresh = true; weir_token_next(&text, fresh, &token); fresh = false) {
        if (token.is_directive)
            text = token.start + 1;
        if (weir_token_is_one_of(token, names))
            return true;
    }
    return false;
}
