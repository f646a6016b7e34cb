// Comments, literals and preprocessor lines, in which there can be no kernel, are first replaced by
// blanks. The text keeps its length and its newlines, so that a position gives the line.
//
// A first pass over the text counts kernels and parameters, a second one stores them, so that all
// of them are in one block of memory.
#include <weir/kit/signature.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/module/error.h>

#define TOKENS_OF_PARAMETER 16

struct scalar_type {
    const char *name;
    weir_scalar scalar;
    uint32_t size;
};

static const struct scalar_type types[] = {
    {"char", WEIR_SCALAR_I8, 1},       {"uchar", WEIR_SCALAR_U8, 1},
    {"short", WEIR_SCALAR_I16, 2},     {"ushort", WEIR_SCALAR_U16, 2},
    {"int", WEIR_SCALAR_I32, 4},       {"uint", WEIR_SCALAR_U32, 4},
    {"long", WEIR_SCALAR_I64, 8},      {"ulong", WEIR_SCALAR_U64, 8},
    {"float", WEIR_SCALAR_F32, 4},     {"float2", WEIR_SCALAR_OTHER, 8},
    {"float4", WEIR_SCALAR_OTHER, 16}, {"int2", WEIR_SCALAR_OTHER, 8},
    {"int4", WEIR_SCALAR_OTHER, 16},   {"uint2", WEIR_SCALAR_OTHER, 8},
    {"uint4", WEIR_SCALAR_OTHER, 16},
};

// A name, a number or one other character.
struct token {
    const char *text;
    size_t length;
};

// A pass. It only counts if `all` is NULL.
struct reader {
    const struct weir_host *host;
    const char *clean;
    const char *at;
    struct weir_kit_signatures *all;
    char *strings; // the place of the next one
    size_t kernel_count;
    size_t parameter_count;
    size_t string_bytes;
};

// Blanking.

static void blank(char *from, const char *to)
{
    for (; from < to; from++) {
        if (*from != '\n')
            *from = ' ';
    }
}

static char *end_of_line(char *at)
{
    while (*at && *at != '\n') {
        if (at[0] == '\\' && at[1])
            at++; // a continued line
        at++;
    }
    return at;
}

static char *end_of_literal(char *at)
{
    const char quote = *at++;
    while (*at && *at != quote && *at != '\n') {
        if (at[0] == '\\' && at[1])
            at++;
        at++;
    }
    return *at == quote ? at + 1 : at;
}

static char *end_of_comment(char *at)
{
    if (at[1] == '/')
        return end_of_line(at);
    char *end = strstr(at + 2, "*/");
    return end ? end + 2 : at + strlen(at);
}

static void make_blank(char *text)
{
    bool line_start = true;
    for (char *at = text; *at;) {
        char *end = at + 1;
        if (at[0] == '/' && (at[1] == '/' || at[1] == '*'))
            end = end_of_comment(at);
        else if (at[0] == '"' || at[0] == '\'')
            end = end_of_literal(at);
        else if (at[0] == '#' && line_start)
            end = end_of_line(at);
        if (end > at + 1 || *at == '#')
            blank(at, end);
        line_start = *at == '\n' || (line_start && isspace((unsigned char)*at));
        at = end;
    }
}

// Tokens.

static bool in_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static struct token next(struct reader *reader)
{
    while (isspace((unsigned char)*reader->at))
        reader->at++;
    struct token token = {reader->at, 0};
    while (in_name(token.text[token.length]))
        token.length++;
    if (token.length == 0 && *token.text)
        token.length = 1;
    reader->at += token.length;
    return token;
}

static bool is(struct token token, const char *text)
{
    return token.length == strlen(text) && memcmp(token.text, text, token.length) == 0;
}

static bool is_name(struct token token)
{
    return token.length > 0 && in_name(token.text[0]) && !isdigit((unsigned char)token.text[0]);
}

static weir_status refuse(const struct reader *reader, struct token at, const char *kernel,
                          size_t length, const char *what)
{
    unsigned line = 1;
    for (const char *c = reader->clean; c < at.text; c++)
        line += *c == '\n';
    return weir_host_fail(
        reader->host, WEIR_ERROR_BUILD,
        "docs/kernels.md tells what a kernel's parameters may be; they must be spelt "
        "out, without macros",
        "source:%u: kernel '%.*s': %s, at '%.*s'", line, (int)length, kernel, what, (int)at.length,
        at.text);
}

// Stores a string made of up to three parts.
static const char *keep(struct reader *reader, const char *before, struct token token,
                        const char *after)
{
    const size_t size = strlen(before) + token.length + strlen(after) + 1;
    reader->string_bytes += size;
    if (!reader->all)
        return NULL;
    char *string = reader->strings;
    reader->strings += size;
    snprintf(string, size, "%s%.*s%s", before, (int)token.length, token.text, after);
    return string;
}

// Parameters.

struct declaration {
    struct token tokens[TOKENS_OF_PARAMETER];
    size_t count;
};

// The meaning of a parameter's tokens.
struct parts {
    bool is_global;
    bool is_local;
    bool is_const; // the data, for a pointer
    unsigned stars;
    struct token type;
    struct token name;
};

static const char *sort_token(struct parts *parts, struct token token)
{
    if (is(token, "__global"))
        parts->is_global = true;
    else if (is(token, "const"))
        parts->is_const = parts->is_const || parts->stars == 0;
    else if (is(token, "restrict") || is(token, "struct"))
        return parts->stars == 0 && is(token, "restrict") ? "restrict stands before the *" : NULL;
    else if (is(token, "*"))
        parts->stars++;
    else if (!is_name(token))
        return "this is not understood";
    else if (is(token, "__local") || is(token, "__constant"))
        return "kernels take __global and WEIR_LOCAL_PARAM pointers only";
    else if (parts->type.length == 0)
        parts->type = token;
    else if (parts->name.length == 0)
        parts->name = token;
    else
        return "one word too many";
    return NULL;
}

static const char *sort_local(const struct declaration *declaration, struct parts *parts)
{
    const struct token *tokens = declaration->tokens;
    parts->is_local = true;
    if (declaration->count != 5 || !is(tokens[1], "(") || !is_name(tokens[2]) ||
        !is(tokens[3], ")") || !is_name(tokens[4]))
        return "a local parameter is WEIR_LOCAL_PARAM(type) name";
    parts->type = tokens[2];
    parts->name = tokens[4];
    return NULL;
}

static const char *sort_tokens(const struct declaration *declaration, struct parts *parts)
{
    if (is(declaration->tokens[0], "WEIR_LOCAL_PARAM"))
        return sort_local(declaration, parts);
    for (size_t i = 0; i < declaration->count; i++) {
        const char *what = sort_token(parts, declaration->tokens[i]);
        if (what)
            return what;
    }
    if (parts->name.length == 0)
        return "a parameter needs a type and a name";
    if (parts->stars > 1 || parts->is_global != (parts->stars == 1))
        return "a pointer is __global, or in WEIR_LOCAL_PARAM";
    return NULL;
}

static void describe_value(struct weir_parameter *parameter, struct token type)
{
    parameter->kind = WEIR_PARAMETER_VALUE;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (is(type, types[i].name)) {
            parameter->scalar = types[i].scalar;
            parameter->size = types[i].size;
        }
    }
}

static void store_parameter(struct reader *reader, const struct parts *parts)
{
    const bool pointer = parts->is_local || parts->stars == 1;
    const bool marked = pointer && parts->is_const;
    struct weir_parameter parameter = {
        .struct_size = sizeof parameter,
        .kind = parts->is_local ? WEIR_PARAMETER_LOCAL : WEIR_PARAMETER_BUFFER,
        .writable = parts->is_global && !parts->is_const,
    };
    parameter.name = keep(reader, "", parts->name, "");
    parameter.type_name = keep(reader, marked ? "const " : "", parts->type, pointer ? " *" : "");
    if (!pointer)
        describe_value(&parameter, parts->type);
    if (reader->all)
        reader->all->parameters[reader->parameter_count] = parameter;
    reader->parameter_count++;
}

// Collects tokens up to the comma or the parenthesis that ends a parameter.
static struct token collect(struct reader *reader, struct declaration *declaration)
{
    unsigned depth = 0;
    declaration->count = 0;
    for (;;) {
        const struct token token = next(reader);
        const bool ends = depth == 0 && (is(token, ",") || is(token, ")"));
        if (token.length == 0 || ends)
            return token;
        depth += is(token, "(");
        depth -= is(token, ")");
        if (declaration->count < TOKENS_OF_PARAMETER)
            declaration->tokens[declaration->count++] = token;
    }
}

static weir_status read_parameters(struct reader *reader, struct token kernel)
{
    struct declaration declaration;
    size_t count = 0;
    for (;;) {
        const struct token end = collect(reader, &declaration);
        struct parts parts = {.is_global = false};
        const bool none = count == 0 && is(end, ")") &&
                          (declaration.count == 0 ||
                           (declaration.count == 1 && is(declaration.tokens[0], "void")));
        if (none)
            return WEIR_OK;
        const char *what = "a parameter is missing";
        if (end.length == 0)
            what = "its parameters do not end";
        else if (declaration.count > 0)
            what = sort_tokens(&declaration, &parts);
        if (what)
            return refuse(reader, declaration.count > 0 ? declaration.tokens[0] : end, kernel.text,
                          kernel.length, what);
        store_parameter(reader, &parts);
        count++;
        if (is(end, ")"))
            return WEIR_OK;
    }
}

// Kernels.

static bool read_number(struct reader *reader, const char *end, uint32_t *out_number)
{
    const struct token token = next(reader);
    char *end_of_number = NULL;
    if (token.length == 0 || !isdigit((unsigned char)token.text[0]))
        return false;
    *out_number = (uint32_t)strtoul(token.text, &end_of_number, 0);
    const bool unsigned_suffix = *end_of_number == 'u' || *end_of_number == 'U';
    return end_of_number + unsigned_suffix == token.text + token.length && is(next(reader), end);
}

static bool read_block(struct reader *reader, struct weir_extent *out_block)
{
    return is(next(reader), "(") && read_number(reader, ",", &out_block->x) &&
           read_number(reader, ",", &out_block->y) && read_number(reader, ")", &out_block->z);
}

static bool is_known(const struct reader *reader, struct token name)
{
    for (size_t i = 0; reader->all && i < reader->kernel_count; i++) {
        if (is(name, reader->all->kernels[i].name))
            return true;
    }
    return false;
}

static weir_status read_kernel(struct reader *reader)
{
    struct weir_kernel_signature kernel = {.struct_size = sizeof kernel};
    struct token token = next(reader);
    if (is(token, "WEIR_BLOCK")) {
        if (!read_block(reader, &kernel.required_block))
            return refuse(reader, token, "?", 1, "a block is WEIR_BLOCK(x, y, z), three numbers");
        token = next(reader);
    }
    if (!is(token, "void"))
        return refuse(reader, token, "?", 1, "void is expected after __kernel");
    const struct token name = next(reader);
    token = next(reader);
    if (!is_name(name) || !is(token, "("))
        return refuse(reader, name, "?", 1, "a name and ( are expected after void");

    const size_t first = reader->parameter_count;
    weir_status status = read_parameters(reader, name);
    // A declaration is followed by its definition, and #if may hold two of one name.
    if (status < 0 || is_known(reader, name))
        return status;
    kernel.name = keep(reader, "", name, "");
    if (reader->all) {
        kernel.parameters = reader->all->parameters + first;
        kernel.parameter_count = (uint32_t)(reader->parameter_count - first);
        reader->all->kernels[reader->kernel_count] = kernel;
    }
    reader->kernel_count++;
    return WEIR_OK;
}

static weir_status walk(struct reader *reader)
{
    weir_status status = WEIR_OK;
    reader->at = reader->clean;
    reader->kernel_count = 0;
    reader->parameter_count = 0;
    reader->string_bytes = 0;
    for (struct token token = next(reader); token.length > 0 && status == WEIR_OK;
         token = next(reader)) {
        if (is(token, "__kernel"))
            status = read_kernel(reader);
    }
    return status;
}

// One block for the structure, its arrays and its strings.
static struct weir_kit_signatures *allocate(struct reader *reader)
{
    const size_t kernels = reader->kernel_count * sizeof(struct weir_kernel_signature);
    const size_t parameters = reader->parameter_count * sizeof(struct weir_parameter);
    struct weir_kit_signatures *all =
        reader->host->allocate(sizeof *all + kernels + parameters + reader->string_bytes);
    if (!all)
        return NULL;
    char *rest = (char *)(all + 1);
    all->kernels = (struct weir_kernel_signature *)(void *)rest;
    all->parameters = (struct weir_parameter *)(void *)(rest + kernels);
    reader->strings = rest + kernels + parameters;
    return all;
}

weir_status weir_kit_signatures_read(const struct weir_host *host, const char *source,
                                     struct weir_kit_signatures **out_signatures)
{
    *out_signatures = NULL;
    char *clean = host->allocate(strlen(source) + 1);
    if (!clean)
        return weir_host_no_memory(host, "the signatures of a program");
    memcpy(clean, source, strlen(source) + 1);
    make_blank(clean);

    struct reader reader = {.host = host, .clean = clean};
    weir_status status = walk(&reader);
    if (status == WEIR_OK) {
        struct weir_kit_signatures *all = allocate(&reader);
        if (all) {
            reader.all = all;
            status = walk(&reader);
            all->kernel_count = (uint32_t)reader.kernel_count;
            *out_signatures = all;
        } else {
            status = weir_host_no_memory(host, "the signatures of a program");
        }
    }
    host->release(clean);
    return status;
}
