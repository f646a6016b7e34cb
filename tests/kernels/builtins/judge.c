// Results against the reference.
#include <string.h>

#include "tests/kernels/builtins/table.h"

static size_t print_value(char *out, size_t size, enum type type, const struct value *value)
{
    const int length = is_real(type) ? snprintf(out, size, "%.17Lg", value->x)
                       : is_signed(type)
                           ? snprintf(out, size, "%lld", (long long)value->i)
                           : snprintf(out, size, "%llu", (unsigned long long)value->i);
    return length < 0 ? 0 : (size_t)length;
}

static void describe(const struct row *row, const struct call *call, enum type result,
                     const struct value *got, const struct value *wanted, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "%s of %s, width %u:", row->name,
                                   type_name(call->type), call->width);
    for (size_t k = 0; row->arguments[k] != '\0'; k++) {
        out[used++] = ' ';
        used += print_value(out + used, size - used,
                            letter_type(row->arguments[k], call->type, call->width > 1),
                            &call->argument[k]);
    }
    used += (size_t)snprintf(out + used, size - used, ": ");
    used += print_value(out + used, size - used, result, got);
    used += (size_t)snprintf(out + used, size - used, ", not ");
    print_value(out + used, size - used, result, wanted);
}

static struct value wrapped(enum type type, integer value)
{
    const uint64_t image = (uint64_t)value;
    return load_value(type, &image);
}

// The calls that a kernel made with vectors of this width, in which a scalar argument is the first
// of its vector's.
static void take_width(const struct row *row, unsigned width, const struct call *calls,
                       struct call *out_made)
{
    for (unsigned i = 0; i < COUNT; i++) {
        const unsigned lane = i % CHUNK % width;
        out_made[i] = calls[i];
        out_made[i].width = width;
        out_made[i].lane = lane;
        for (size_t k = 0; row->arguments[k] != '\0'; k++)
            if (letter_is_scalar(row->arguments[k]))
                out_made[i].argument[k] = calls[i - lane].argument[k];
    }
}

static void judge_one(const struct row *row, const struct call *call, const void *result,
                      struct verdict *verdict)
{
    const enum type type = letter_type(row->result, call->type, true);
    const struct value got = load_value(type, result);
    const integer exact = row->whole(call);
    const struct value wanted = wrapped(type, row->truth && call->width > 1 ? -exact : exact);
    if (got.i == wanted.i)
        return;
    if (verdict->wrong++ == 0)
        describe(row, call, type, &got, &wanted, verdict->example, sizeof verdict->example);
}

void judge(const struct row *row, enum type type, const struct call *calls, const void *results,
           struct verdict *out)
{
    static struct call made[COUNT];
    const size_t size = type_size(letter_type(row->result, type, true));
    *out = (struct verdict){0};
    for (size_t w = 0; w < WIDTHS; w++) {
        const unsigned width = widths[w], filled = CHUNK / width * width;
        const char *of_width = (const char *)results + w * COUNT * size;
        take_width(row, width, calls, made);
        for (size_t i = 0; i < COUNT; i++)
            if (i % CHUNK < filled)
                judge_one(row, &made[i], of_width + i * size, out);
    }
}
