// The head of each kernel in PTX: ".visible .entry NAME(", then parameters such as
// ".param .u64 .ptr .global .align 4 NAME_param_0" and ".param .align 8 .b8 NAME_param_1[16]".
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/compiler/compiler.h"

struct reader {
    const char *name;
    struct kc_entries *entries;
    struct weir_long_text *report;
};

static bool refuse(const struct reader *reader, const char *sentence)
{
    weir_long_text_add(reader->report, "error: %s %s\n", reader->name, sentence);
    return false;
}

struct kc_entry *kc_entry_add(struct kc_entries *entries, const char *name, size_t length)
{
    struct kc_entry *grown = realloc(entries->items, (entries->count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    entries->items = grown;
    grown += entries->count;
    *grown = (struct kc_entry){.name = malloc(length + 1)};
    if (!grown->name)
        return NULL;
    memcpy(grown->name, name, length);
    grown->name[length] = '\0';
    entries->count++;
    return grown;
}

bool kc_entry_add_size(struct kc_entry *entry, unsigned size)
{
    unsigned *grown = realloc(entry->sizes, (entry->count + 1) * sizeof *grown);
    if (!grown)
        return false;
    entry->sizes = grown;
    grown[entry->count++] = size;
    return true;
}

void kc_entries_finish(struct kc_entries *entries)
{
    for (size_t i = 0; i < entries->count; i++) {
        free(entries->items[i].name);
        free(entries->items[i].sizes);
    }
    free(entries->items);
    *entries = (struct kc_entries){0};
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '%';
}

// The next word, or character that is none; false at the end.
static bool next_token(const char **at, const char *end, char *out, size_t size)
{
    while (*at < end && isspace((unsigned char)**at))
        (*at)++;
    if (*at == end)
        return false;
    const char *start = *at;
    while (*at < end && is_word(**at))
        (*at)++;
    if (*at == start)
        (*at)++;
    snprintf(out, size, "%.*s", (int)(*at - start), start);
    return true;
}

// 4 for ".u32"; 0 for what is no type.
static unsigned type_size(const char *token)
{
    if (token[0] != '.' || !token[1] || !strchr("busf", token[1]))
        return 0;
    return (unsigned)strtoul(token + 2, NULL, 10) / 8;
}

// One parameter, until a ',' or ')'.
static bool read_parameter(const struct reader *reader, const char **at, const char *end,
                           struct kc_entry *entry, bool *out_last)
{
    char token[64] = "";
    unsigned size = 0, count = 1;
    while (next_token(at, end, token, sizeof token) && *token != ',' && *token != ')') {
        if (strcmp(token, ".shared") == 0)
            return refuse(reader, "has a kernel with a pointer to shared memory as a parameter, "
                                  "which CUDA's driver does not load; build the OpenCL C that it "
                                  "comes from");
        if (size == 0)
            size = type_size(token);
        if (*token == '[' && next_token(at, end, token, sizeof token))
            count = (unsigned)strtoul(token, NULL, 10);
    }
    *out_last = *token != ',';
    if (size == 0)
        return true; // an empty list
    return kc_entry_add_size(entry, size * count) || refuse(reader, "does not fit into memory");
}

static bool read_entry(const struct reader *reader, const char **at, const char *end)
{
    char token[64];
    const char *name = *at;
    while (name < end && isspace((unsigned char)*name))
        name++;
    size_t length = 0;
    while (name + length < end && is_word(name[length]))
        length++;
    *at = name + length;
    struct kc_entry *entry = kc_entry_add(reader->entries, name, length);
    if (!entry)
        return refuse(reader, "does not fit into memory");
    bool last = !next_token(at, end, token, sizeof token) || *token != '(';
    while (!last)
        if (!read_parameter(reader, at, end, entry, &last))
            return false;
    return true;
}

// After a directive of that name at the start of a line; NULL: there is none.
static const char *find_directive(const char *text, const char *end, const char *name)
{
    const size_t length = strlen(name);
    for (const char *line = text; line < end; line++) {
        while (line < end && isspace((unsigned char)*line))
            line++;
        if ((size_t)(end - line) > length && memcmp(line, name, length) == 0 &&
            !is_word(line[length]))
            return line + length;
        line = memchr(line, '\n', (size_t)(end - line));
        if (!line)
            break;
    }
    return NULL;
}

// "sm_90" and what follows it.
static bool read_target(const struct reader *reader, const char *text, const char *end,
                        struct kc_image *image)
{
    const char *at = find_directive(text, end, ".target");
    char token[64];
    if (!at)
        return refuse(reader, "is neither a cubin nor PTX: name a file that nvcc -cubin or nvcc "
                              "-ptx has made");
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (!next_token(&at, end, token, sizeof token) || strncmp(token, "sm_", 3) != 0 ||
        !isdigit((unsigned char)token[3]) || strlen(token) >= sizeof image->target)
        return refuse(reader, "is PTX for something else than an sm_ architecture");
    snprintf(image->target, sizeof image->target, "%.15s", token);
    while (next_token(&at, stop ? stop : end, token, sizeof token))
        if (strcmp(token, "texmode_independent") == 0)
            return refuse(reader, "is PTX of an OpenCL compiler (texmode_independent), which "
                                  "CUDA's driver does not load; build the OpenCL C that it comes "
                                  "from");
    return true;
}

static bool read_ptx(const struct reader *reader, const char *text, size_t size,
                     struct kc_image *image)
{
    static const char mark[] = ".entry";
    const char *end = text + size;
    image->format = "PTX";
    if (!read_target(reader, text, end, image))
        return false;
    for (const char *at = text; (at = memchr(at, '.', (size_t)(end - at)));) {
        const bool is_entry = (size_t)(end - at) > sizeof mark &&
                              memcmp(at, mark, sizeof mark - 1) == 0 &&
                              isspace((unsigned char)at[sizeof mark - 1]);
        at += is_entry ? sizeof mark : 1;
        if (is_entry && !read_entry(reader, &at, end))
            return false;
    }
    return true;
}

bool kc_image_read(const char *name, const void *data, size_t size, struct kc_image *out_image,
                   struct kc_entries *out_entries, struct weir_long_text *report)
{
    static const unsigned char fatbin[] = {0x50, 0xed, 0x55, 0xba};
    const struct reader reader = {name, out_entries, report};
    if (size > 4 && memcmp(data, "\177ELF", 4) == 0)
        return kc_cubin_read(name, data, size, out_image, out_entries, report);
    if (size > 4 && memcmp(data, fatbin, sizeof fatbin) == 0)
        return refuse(&reader, "is a fatbin: take the cubins out of it with cuobjdump "
                               "--extract-elf all");
    if (memchr(data, '\0', size))
        return refuse(&reader, "is neither a cubin nor PTX: name a file that nvcc -cubin or nvcc "
                               "-ptx has made");
    return read_ptx(&reader, data, size, out_image);
}
