// A kernel's format never reaches the C library: each conversion is read here, and one of its own is
// made for each value.
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/print.h"

#define MARK "<?>"

enum {
    FLAGS_MOST = 5,
    WIDTH_MOST = 1023,
    LANES_MOST = 16
};

// One "%" and what follows it.
struct conversion {
    char flags[FLAGS_MOST + 1];
    int width;
    int precision;  // -1: none
    unsigned lanes; // 0: no vector
    unsigned halves;
    unsigned longs;
    char letter;
};

// What of a record is left.
struct reader {
    const unsigned char *arguments;
    size_t argument_bytes;
    size_t offset;
    const char *texts;
    size_t text_bytes;
    bool is_lost; // the places of values are not known any more
};

static bool is_one_of(char letter, const char *letters)
{
    return letter != '\0' && strchr(letters, letter) != NULL;
}

static int read_number(const char **at, int most)
{
    int number = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++)
        number = number <= most ? 10 * number + (**at - '0') : number;
    return number <= most ? number : most;
}

// From after "%" to after the letter. False: it is none of OpenCL C's.
static bool read_conversion(const char **at, struct conversion *out)
{
    size_t flags = 0;
    *out = (struct conversion){.precision = -1};
    for (; is_one_of(**at, "-+ #0"); (*at)++)
        if (!is_one_of(**at, out->flags))
            out->flags[flags++] = **at;
    out->width = read_number(at, WIDTH_MOST);
    if (**at == '.') {
        ++*at;
        out->precision = read_number(at, WIDTH_MOST);
    }
    const bool is_vector = **at == 'v';
    if (is_vector) {
        ++*at;
        out->lanes = (unsigned)read_number(at, LANES_MOST + 1);
    }
    for (; **at == 'h'; (*at)++)
        out->halves++;
    for (; **at == 'l'; (*at)++)
        out->longs++;
    out->letter = **at;
    *at += **at != '\0';
    const bool is_size = out->lanes == 2 || out->lanes == 3 || out->lanes == 4 || out->lanes == 8 ||
                         out->lanes == 16;
    return is_one_of(out->letter, is_vector ? "diouxXcfFeEgGaA" : "diouxXcfFeEgGaAsp") &&
           (!is_vector || is_size);
}

static bool is_real(char letter)
{
    return is_one_of(letter, "fFeEgGaA");
}

// Of one component, as it lies among the arguments.
static size_t size_of(const struct conversion *conversion)
{
    if (conversion->lanes == 0)
        return conversion->longs > 0 || is_real(conversion->letter) ||
                       is_one_of(conversion->letter, "sp")
                   ? 8
                   : 4;
    if (conversion->longs > 0)
        return conversion->halves > 0 ? 4 : 8;
    if (conversion->halves == 0)
        return conversion->letter == 'c' ? 1 : 4;
    return conversion->halves == 1 ? 2 : 1;
}

// The place of the next argument, or NULL.
static const unsigned char *take(struct reader *reader, const struct conversion *conversion)
{
    const size_t components = conversion->lanes == 0   ? 1
                              : conversion->lanes == 3 ? 4
                                                       : conversion->lanes;
    const size_t bytes = components * size_of(conversion);
    const size_t start = (reader->offset + bytes - 1) / bytes * bytes;
    if (start + bytes > reader->argument_bytes)
        return NULL;
    reader->offset = start + bytes;
    return reader->arguments + start;
}

static uint64_t bits_of(const unsigned char *place, size_t bytes)
{
    uint64_t bits = 0;
    memcpy(&bits, place, bytes); // both are little-endian
    return bits;
}

static double half_of(uint64_t bits)
{
    const int exponent = (int)(bits >> 10 & 31);
    const double digits = (double)(bits & 1023);
    double value = exponent == 0 ? ldexp(digits, -24) : ldexp(1024 + digits, exponent - 25);
    if (exponent == 31)
        value = digits > 0 ? (double)NAN : (double)INFINITY;
    return bits >> 15 & 1 ? -value : value;
}

static double real_of(uint64_t bits, size_t bytes)
{
    double wide;
    float narrow;
    const uint32_t low = (uint32_t)bits;
    memcpy(&wide, &bits, sizeof wide);
    memcpy(&narrow, &low, sizeof narrow);
    return bytes == 8 ? wide : bytes == 4 ? (double)narrow : half_of(bits);
}

// "h" and "hh" say of which part of an int the value is.
static size_t width_of(const struct conversion *conversion, size_t bytes)
{
    if (conversion->lanes > 0 || conversion->longs > 0 || conversion->halves == 0)
        return bytes;
    return conversion->halves == 1 ? 2 : 1;
}

static long long signed_of(uint64_t bits, size_t bytes)
{
    const uint64_t sign = UINT64_C(1) << (8 * bytes - 1);
    const uint64_t kept = bytes == 8 ? bits : bits & (2 * sign - 1);
    return (long long)(int64_t)((kept ^ sign) - sign);
}

static unsigned long long unsigned_of(uint64_t bits, size_t bytes)
{
    return bytes == 8 ? bits : bits & ((UINT64_C(1) << 8 * bytes) - 1);
}

static void add_value(const struct conversion *conversion, const unsigned char *place,
                      struct weir_long_text *out)
{
    char format[FLAGS_MOST + 8];
    const size_t bytes = size_of(conversion);
    const uint64_t bits = bits_of(place, bytes);
    const char letter = conversion->letter;
    const bool is_signed = letter == 'd' || letter == 'i';
    snprintf(format, sizeof format, "%%%s*.*%s%c", conversion->flags, is_real(letter) ? "" : "ll",
             letter);
    if (is_real(letter))
        weir_long_text_add(out, format, conversion->width, conversion->precision,
                           real_of(bits, bytes));
    else if (is_signed)
        weir_long_text_add(out, format, conversion->width, conversion->precision,
                           signed_of(bits, width_of(conversion, bytes)));
    else
        weir_long_text_add(out, format, conversion->width, conversion->precision,
                           unsigned_of(bits, width_of(conversion, bytes)));
}

// A message has no zero in it: the character zero is left out.
static void add_character(const struct conversion *conversion, const unsigned char *place,
                          struct weir_long_text *out)
{
    const char text[2] = {(char)*place, '\0'};
    const bool is_left = is_one_of('-', conversion->flags);
    weir_long_text_add(out, is_left ? "%-*s" : "%*s", conversion->width, text);
}

static void add_text(struct reader *reader, const struct conversion *conversion,
                     const unsigned char *place, struct weir_long_text *out)
{
    const bool is_left = is_one_of('-', conversion->flags);
    const char *text = "(null)";
    if (bits_of(place, 8) != 0) {
        const size_t length = strnlen(reader->texts, reader->text_bytes);
        if (length == reader->text_bytes) { // it has no end
            reader->is_lost = true;
            weir_long_text_add(out, MARK);
            return;
        }
        text = reader->texts;
        reader->texts += length + 1;
        reader->text_bytes -= length + 1;
    }
    weir_long_text_add(out, is_left ? "%-*.*s" : "%*.*s", conversion->width, conversion->precision,
                       text);
}

static void add_argument(struct reader *reader, const struct conversion *conversion,
                         struct weir_long_text *out)
{
    const unsigned char *place = take(reader, conversion);
    const unsigned lanes = conversion->lanes > 0 ? conversion->lanes : 1;
    if (!place) {
        reader->is_lost = true;
        weir_long_text_add(out, MARK);
        return;
    }
    for (unsigned i = 0; i < lanes; i++, place += size_of(conversion)) {
        if (i > 0)
            weir_long_text_add(out, ",");
        if (conversion->letter == 's')
            add_text(reader, conversion, place, out);
        else if (conversion->letter == 'c')
            add_character(conversion, place, out);
        else if (conversion->letter == 'p')
            weir_long_text_add(out, "%#*llx", conversion->width,
                               (unsigned long long)bits_of(place, 8));
        else
            add_value(conversion, place, out);
    }
}

static void add_conversion(struct reader *reader, const char **at, struct weir_long_text *out)
{
    struct conversion conversion;
    if (**at == '%') {
        ++*at;
        weir_long_text_add(out, "%%");
        return;
    }
    if (!read_conversion(at, &conversion))
        reader->is_lost = true;
    if (reader->is_lost)
        weir_long_text_add(out, MARK);
    else
        add_argument(reader, &conversion, out);
}

void cu_print_format(const unsigned char *contents, size_t size, size_t argument_bytes,
                     struct weir_long_text *out)
{
    const size_t rest = argument_bytes < size ? size - argument_bytes : 0;
    const char *at = (const char *)contents + argument_bytes;
    const size_t length = rest > 0 ? strnlen(at, rest) : 0;
    if (length == rest) // no format, or one without an end
        return;
    struct reader reader = {
        .arguments = contents,
        .argument_bytes = argument_bytes,
        .texts = at + length + 1,
        .text_bytes = rest - length - 1,
    };
    while (*at) {
        const size_t plain = strcspn(at, "%");
        weir_long_text_add(out, "%.*s", (int)plain, at);
        at += plain;
        if (*at == '%') {
            at++;
            add_conversion(&reader, &at, out);
        }
    }
}
