// Signatures of kernels, read from the text of a program.
//
// Comments, literals and preprocessor lines of a program, in which there can be no kernel, are passed over.
//
// A first pass over the text counts kernels and parameters, a second one stores them, so that all
// of them are in one block of memory.
#include <weir/kit/signature.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/module/error.h>

#include "base/text.h"

#define TOKENS_OF_PARAMETER 32

// Reading.

// A pass. It only counts if `all` is NULL.
struct reader {
    const struct weir_host *host;
    const char *source;
    const char *at;
    bool cuda;      // CUDA C++, where `kernel` is a name like another
    bool has_lines; // those of `source` are the caller's
    bool barrier;   // each kernel of a text that names it may come to it
    struct weir_kit_signatures *all;
    char *strings;
    size_t kernel_count;
    size_t parameter_count;
    size_t string_bytes;
};

// One block, which one call frees, for what a first pass has counted. False: out of memory.
static bool make_room(struct reader *reader)
{
    const size_t kernels_size = reader->kernel_count * sizeof(struct weir_kernel_signature);
    const size_t parameters_size = reader->parameter_count * sizeof(struct weir_parameter);
    struct weir_kit_signatures *all =
        reader->host->allocate(sizeof *all + kernels_size + parameters_size + reader->string_bytes);
    if (!all)
        return false;
    char *rest = (char *)(all + 1);
    all->kernels = (struct weir_kernel_signature *)(void *)rest;
    all->parameters = (struct weir_parameter *)(void *)(rest + kernels_size);
    reader->strings = rest + kernels_size + parameters_size;
    reader->all = all;
    return true;
}

// Tokens.

// The next token outside directives that is no literal; empty at the end.
static struct weir_token next(struct reader *reader)
{
    struct weir_token token;
    do
        weir_token_next(&reader->at, reader->at == reader->source, &token);
    while (token.is_directive || (token.length > 0 && strchr("\"'", *token.start)));
    return token;
}

// Whether lines are numbered by a `#line`, or a `# 7 "file"` of a preprocessor.
static bool numbers_lines(const char *text)
{
    struct weir_token token;
    for (bool fresh = true; weir_token_next(&text, fresh, &token); fresh = false) {
        const char *word = token.start + 1;
        word += strspn(word, " \t");
        if (token.is_directive && (strncmp(word, "line", 4) == 0 || isdigit((unsigned char)*word)))
            return true;
    }
    return false;
}

bool weir_kit_names_barrier(const char *source)
{
    return weir_token_is_there(source, (const char *const[]){WEIR_KIT_GRID_BARRIER, NULL});
}

static unsigned line_of(const struct reader *reader, struct weir_token token)
{
    unsigned line = 1;
    for (const char *c = reader->source; c < token.start; c++)
        line += *c == '\n';
    return line;
}

static weir_status refuse(const struct reader *reader, struct weir_token at,
                          struct weir_token kernel, const char *what)
{
    char place[32] = "";
    if (reader->has_lines)
        snprintf(place, sizeof place, "source:%u: ", line_of(reader, at));
    return weir_host_fail(
        reader->host, WEIR_ERROR_BUILD,
        "spell the kernel and its parameters out, without macros: docs/kernels.md",
        "%skernel '%.*s': %s, at '%.*s'", place, (int)kernel.length, kernel.start, what,
        (int)at.length, at.start);
}

// Stores `before`, the tokens with spaces between words, and `after` as a string.
static const char *keep(struct reader *reader, const char *before, const struct weir_token *tokens,
                        size_t count, const char *after)
{
    size_t size = strlen(before) + strlen(after) + 1;
    for (size_t i = 0; i < count; i++)
        size += tokens[i].length + 1;
    reader->string_bytes += size;
    if (!reader->all)
        return NULL;
    char *string = reader->strings;
    reader->strings += size;
    size_t used = (size_t)snprintf(string, size, "%s", before);
    for (size_t i = 0; i < count; i++) {
        const bool spaced = i > 0 && weir_text_is_word(tokens[i].start[0]) &&
                            weir_text_is_word(tokens[i - 1].start[0]);
        used += (size_t)snprintf(string + used, size - used, "%s%.*s", spaced ? " " : "",
                                 (int)tokens[i].length, tokens[i].start);
    }
    snprintf(string + used, size - used, "%s", after);
    return string;
}

// Parameters.

enum space {
    PRIVATE,
    GLOBAL,
    CONSTANT,
    LOCAL
};

// The meaning of a parameter's tokens.
struct parts {
    enum space space;
    bool is_const; // the data, for a pointer
    unsigned stars;
    struct weir_token type[TOKENS_OF_PARAMETER];
    size_t type_count;
    struct weir_token name;
    uint32_t size; // a structure's, if it is told
};

static bool is_space(struct weir_token token, enum space *out_space)
{
    static const char *const names[] = {
        [PRIVATE] = "private",
        [GLOBAL] = "global",
        [CONSTANT] = "constant",
        [LOCAL] = "local",
    };
    const size_t skipped = token.length > 2 && memcmp(token.start, "__", 2) == 0 ? 2 : 0;
    const struct weir_token name = {token.start + skipped, token.length - skipped, false};
    for (enum space space = PRIVATE; space <= LOCAL; space++) {
        if (weir_token_is(name, names[space])) {
            *out_space = space;
            return true;
        }
    }
    return false;
}

static void sort_token(struct parts *parts, struct weir_token token, bool cuda)
{
    static const char *const ignored[] = {"restrict", "__restrict__",      "__restrict",
                                          "volatile", "__grid_constant__", NULL};
    if (is_space(token, &parts->space) || weir_token_is_one_of(token, ignored) ||
        (cuda && weir_token_is(token, "typename")))
        return;
    if (weir_token_is(token, "const"))
        parts->is_const = parts->is_const || parts->stars == 0;
    else if (weir_token_is(token, "*") || weir_token_is(token, "["))
        parts->stars++;
    else if (parts->stars > 0 && parts->name.length == 0)
        parts->name = token;
    else if (parts->stars == 0)
        parts->type[parts->type_count++] = token;
}

// The last word of a value is its name, and so is that of an array.
static void find_name(struct parts *parts)
{
    if ((parts->name.length == 0 || !weir_token_is_name(parts->name)) && parts->type_count > 1 &&
        weir_token_is_name(parts->type[parts->type_count - 1]))
        parts->name = parts->type[--parts->type_count];
}

static const char *sort_tokens(const struct weir_token *tokens, size_t count, bool cuda,
                               struct parts *parts)
{
    for (size_t i = 0; i < count; i++) {
        if (weir_token_is(tokens[i], "&"))
            return "a kernel takes no references";
        if (weir_token_is(tokens[i], ":") && i + 1 < count &&
            isdigit((unsigned char)tokens[i + 1].start[0]))
            parts->size = (uint32_t)strtoul(tokens[++i].start, NULL, 10);
        else
            sort_token(parts, tokens[i], cuda);
    }
    find_name(parts);
    if (parts->type_count == 0 || !weir_token_is_name(parts->type[0]) ||
        !weir_token_is_name(parts->name))
        return "a parameter needs a type and a name";
    if (parts->stars > 1)
        return "a pointer to pointers cannot be passed";
    if (!cuda && (parts->space != PRIVATE) != (parts->stars == 1))
        return "a pointer is __global, __constant or __local";
    if (cuda && parts->stars == 1)
        parts->space = GLOBAL;
    if (cuda && parts->stars == 0 && weir_token_is(parts->type[0], "weir_local"))
        parts->space = LOCAL;
    return NULL;
}

static void store_parameter(struct reader *reader, const struct parts *parts)
{
    const bool marked = parts->stars == 1 && (parts->is_const || parts->space == CONSTANT);
    struct weir_parameter parameter = {
        .struct_size = sizeof parameter,
        .kind = parts->space == PRIVATE ? WEIR_PARAMETER_VALUE
                : parts->space == LOCAL ? WEIR_PARAMETER_LOCAL
                                        : WEIR_PARAMETER_BUFFER,
        .writable = parts->space == GLOBAL && !parts->is_const,
        .constant = parts->space == CONSTANT,
    };
    parameter.name = keep(reader, "", &parts->name, 1, "");
    parameter.type_name = keep(reader, marked ? "const " : "", parts->type, parts->type_count,
                               parts->stars == 1 ? " *" : "");
    if (reader->all) {
        weir_kit_parameter_describe(&parameter, reader->cuda);
        parameter.size = parts->size ? parts->size : parameter.size;
        reader->all->parameters[reader->parameter_count] = parameter;
    }
    reader->parameter_count++;
}

// Collects tokens up to the comma or the bracket that ends a parameter.
static struct weir_token collect(struct reader *reader, struct weir_token *tokens,
                                 size_t *out_count)
{
    int depth = 0;
    *out_count = 0;
    for (;;) {
        const struct weir_token token = next(reader);
        const bool ends = depth == 0 && (weir_token_is(token, ",") || weir_token_is(token, ")"));
        if (token.length == 0 || ends)
            return token;
        depth += weir_token_is(token, "(") || weir_token_is(token, "<");
        depth -= weir_token_is(token, ")") || weir_token_is(token, ">");
        if (*out_count < TOKENS_OF_PARAMETER)
            tokens[(*out_count)++] = token;
    }
}

static weir_status read_parameters(struct reader *reader, struct weir_token kernel)
{
    struct weir_token tokens[TOKENS_OF_PARAMETER];
    size_t token_count;
    for (size_t count = 0;; count++) {
        const struct weir_token end = collect(reader, tokens, &token_count);
        struct parts parts = {.space = PRIVATE};
        if (count == 0 && weir_token_is(end, ")") &&
            (token_count == 0 || (token_count == 1 && weir_token_is(tokens[0], "void"))))
            return WEIR_OK;
        const char *what = "a parameter is missing";
        if (end.length == 0)
            what = "its parameters do not end";
        else if (token_count > 0)
            what = sort_tokens(tokens, token_count, reader->cuda, &parts);
        if (what)
            return refuse(reader, token_count > 0 ? tokens[0] : end, kernel, what);
        store_parameter(reader, &parts);
        if (weir_token_is(end, ")"))
            return WEIR_OK;
    }
}

// Kernels.

static bool read_number(struct reader *reader, const char *end, uint32_t *out_number)
{
    const struct weir_token token = next(reader);
    char *end_of_number = NULL;
    if (token.length == 0 || !isdigit((unsigned char)token.start[0]))
        return false;
    *out_number = (uint32_t)strtoul(token.start, &end_of_number, 0);
    const bool unsigned_suffix = *end_of_number == 'u' || *end_of_number == 'U';
    return end_of_number + unsigned_suffix == token.start + token.length &&
           weir_token_is(next(reader), end);
}

static bool read_block(struct reader *reader, struct weir_extent *out_block)
{
    return weir_token_is(next(reader), "(") && read_number(reader, ",", &out_block->x) &&
           read_number(reader, ",", &out_block->y) && read_number(reader, ")", &out_block->z);
}

// After the name of an attribute: `__attribute__((...))`, `__launch_bounds__(...)`.
static const char *read_attribute(struct reader *reader, struct weir_extent *out_block)
{
    int depth = 0;
    do {
        const struct weir_token token = next(reader);
        depth += weir_token_is(token, "(");
        depth -= weir_token_is(token, ")");
        if (token.length == 0)
            return "an attribute does not end";
        if ((weir_token_is(token, "reqd_work_group_size") ||
             weir_token_is(token, "__reqd_work_group_size__")) &&
            !read_block(reader, out_block))
            return "a required block is three numbers";
    } while (depth > 0);
    return NULL;
}

// The words between the mark of a kernel and its parameters, of which the last is its name.
static const char *read_name(struct reader *reader, struct weir_token *out_name,
                             struct weir_extent *out_block)
{
    static const char missing[] = "void, a name and ( are expected";
    static const char *const attributes[] = {
        "__attribute__", "__attribute", "__launch_bounds__", "__cluster_dims__", "__block_size__",
        "__maxnreg__",   NULL};
    struct weir_token word = next(reader);
    const char *what = NULL;
    while (weir_token_is_name(word) && !what) {
        const struct reader here = *reader;
        const struct weir_token after = next(reader);
        if (weir_token_is(after, "(") && !weir_token_is_one_of(word, attributes)) {
            *out_name = word;
            return weir_token_is(word, "void") ? missing : NULL;
        }
        *reader = here;
        if (weir_token_is(after, "("))
            what = read_attribute(reader, out_block);
        word = next(reader);
    }
    *out_name = word;
    return what ? what : missing;
}

static bool is_known(const struct reader *reader, struct weir_token name)
{
    for (size_t i = 0; reader->all && i < reader->kernel_count; i++) {
        if (weir_token_is(name, reader->all->kernels[i].name))
            return true;
    }
    return false;
}

static weir_status read_kernel(struct reader *reader)
{
    struct weir_kernel_signature kernel = {.struct_size = sizeof kernel,
                                           .grid_barrier = reader->barrier};
    struct weir_token name;
    const char *what = read_name(reader, &name, &kernel.required_block);
    if (what)
        return refuse(reader, name, (struct weir_token){"?", 1, false}, what);

    const size_t first = reader->parameter_count;
    weir_status status = read_parameters(reader, name);
    // A declaration is followed by its definition, and #if may hold two of one name.
    if (status < 0 || is_known(reader, name))
        return status;
    kernel.name = keep(reader, "", &name, 1, "");
    if (reader->all) {
        kernel.parameters = reader->all->parameters + first;
        kernel.parameter_count = (uint32_t)(reader->parameter_count - first);
        reader->all->kernels[reader->kernel_count] = kernel;
    }
    reader->kernel_count++;
    return WEIR_OK;
}

static bool marks_kernel(const struct reader *reader, struct weir_token token)
{
    return reader->cuda ? weir_token_is(token, "__global__")
                        : weir_token_is(token, "__kernel") || weir_token_is(token, "kernel");
}

static bool is_cuda(const char *source)
{
    struct reader reader = {.source = source, .at = source};
    struct weir_token token;
    do
        token = next(&reader);
    while (token.length > 0 && !weir_token_is(token, "__global__"));
    return token.length > 0;
}

static weir_status walk(struct reader *reader)
{
    weir_status status = WEIR_OK;
    reader->at = reader->source;
    reader->kernel_count = 0;
    reader->parameter_count = 0;
    reader->string_bytes = 0;
    for (struct weir_token token = next(reader); token.length > 0 && status == WEIR_OK;
         token = next(reader)) {
        if (marks_kernel(reader, token))
            status = read_kernel(reader);
    }
    return status;
}

weir_status weir_kit_signatures_read(const struct weir_host *host, const char *source,
                                     struct weir_kit_signatures **out_signatures)
{
    *out_signatures = NULL;
    struct reader reader = {
        .host = host,
        .source = source,
        .cuda = is_cuda(source),
        .has_lines = !numbers_lines(source),
        .barrier = weir_kit_names_barrier(source),
    };
    weir_status status = walk(&reader);
    if (status == WEIR_OK)
        status = make_room(&reader) ? walk(&reader)
                                    : weir_host_no_memory(host, "the signatures of a program");
    if (reader.all)
        reader.all->kernel_count = (uint32_t)reader.kernel_count;
    *out_signatures = reader.all;
    return status;
}

unsigned weir_kit_parameter_line(const char *source, const char *kernel, const char *parameter)
{
    struct reader reader = {.source = source, .at = source};
    struct weir_token before = {source, 0, false};
    unsigned line = 0;
    unsigned definitions = 0;
    bool in_head = false;
    for (struct weir_token token = next(&reader); token.length > 0; token = next(&reader)) {
        if (weir_token_is(before, "void") && weir_token_is(token, kernel)) {
            definitions++;
            in_head = true;
        } else if (in_head && weir_token_is(token, parameter)) {
            line = line_of(&reader, token);
        }
        in_head = in_head && !weir_token_is(token, "{");
        before = token;
    }
    return definitions == 1 && !numbers_lines(source) ? line : 0;
}
