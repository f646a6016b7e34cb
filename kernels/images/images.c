// The text is read as tokens. Nothing is preprocessed here: directives are passed over.
#include "kernels/images/images.h"

#include <stdlib.h>

#include "kernels/images/library.h"

enum {
    NESTED_MOST = 64, // conditions
    NAME_MOST = 200
};

struct rewriter {
    const char *at;
    const char *kept;    // from here on nothing was added
    const char *counted; // up to here lines are counted
    unsigned long line;
    struct weir_long_text *out;
    struct weir_long_text body; // what the body of the kernel that is read begins with
    bool has_images, has_conditions;
    int braces, parentheses;
    int before[NESTED_MOST]; // braces at each condition that is open
    int conditions;
    bool in_kernel, in_constant, hidden;
};

static const char *const types[] = {"sampler_t", // and those of images
                                    "image1d_t", "image1d_buffer_t", "image1d_array_t",
                                    "image2d_t", "image2d_array_t",  "image3d_t",
                                    NULL};

static bool is_image(struct weir_token token)
{
    return weir_token_is_one_of(token, types + 1);
}

static bool is_kernel(struct weir_token token)
{
    return weir_token_is(token, "__kernel") || weir_token_is(token, "kernel");
}

bool weir_images_are_named(const char *text)
{
    return weir_token_is_there(text, types);
}

// Adds what comes before the token, and leaves that out.
static void replace(struct rewriter *rewriter, struct weir_token token)
{
    weir_long_text_add(rewriter->out, "%.*s", (int)(token.start - rewriter->kept), rewriter->kept);
    rewriter->kept = token.start + token.length;
}

// A definition of a macro hides what must be seen if it has one of these words.
static bool hides(struct weir_token directive)
{
    const char *at = directive.start + 1, *end = directive.start + directive.length;
    struct weir_token token;
    if (!weir_token_next(&at, false, &token) || !weir_token_is(token, "define"))
        return false;
    while (weir_token_next(&at, false, &token) && token.start < end)
        if (weir_token_is_one_of(token, types) || is_kernel(token))
            return true;
    return false;
}

// The word of a directive that begins, parts or ends a condition; empty for others.
static struct weir_token condition_of(struct weir_token directive)
{
    static const char *const names[] = {"if", "ifdef", "ifndef", "elif", "else", "endif", NULL};
    const char *at = directive.start + 1;
    struct weir_token token;
    if (directive.is_directive && weir_token_next(&at, false, &token) &&
        token.start < directive.start + directive.length && weir_token_is_one_of(token, names))
        return token;
    return (struct weir_token){.length = 0};
}

// Each branch of a condition begins with the braces that were open before it.
static void pass_condition(struct rewriter *rewriter, struct weir_token directive)
{
    const struct weir_token token = condition_of(directive);
    const bool opens = weir_token_is(token, "if") || weir_token_is(token, "ifdef") ||
                       weir_token_is(token, "ifndef");
    const int deepest = rewriter->conditions - 1;
    if (opens) {
        if (rewriter->conditions < NESTED_MOST)
            rewriter->before[rewriter->conditions] = rewriter->braces;
        rewriter->conditions++;
    } else if (weir_token_is(token, "endif")) {
        rewriter->conditions -= rewriter->conditions > 0;
    } else if (token.length > 0 && deepest >= 0 && deepest < NESTED_MOST) {
        rewriter->braces = rewriter->before[deepest];
    }
}

// What is known of a parameter, once it is read. Before its qualifiers may stand macros, which may have
// parameters of their own.
struct parameter {
    struct weir_token first, type, name;
    bool writable;
};

static void note(struct parameter *parameter, struct weir_token token)
{
    static const char *const writes[] = {"write_only", "__write_only", "read_write", "__read_write",
                                         NULL};
    static const char *const others[] = {"read_only", "__read_only", "const",    "__const",
                                         "private",   "__private",   "restrict", NULL};
    const bool qualifier =
        weir_token_is_one_of(token, writes) || weir_token_is_one_of(token, others);
    if (parameter->type.length > 0) {
        if (parameter->name.length == 0 && weir_token_is_name(token) && !qualifier)
            parameter->name = token;
        return;
    }
    parameter->writable = (parameter->writable && (qualifier || is_image(token))) ||
                          weir_token_is_one_of(token, writes);
    if (is_image(token))
        parameter->type = token;
    if (parameter->first.length == 0 && (qualifier || is_image(token)))
        parameter->first = token;
    else if (!qualifier && !is_image(token))
        parameter->first = (struct weir_token){.length = 0};
}

static void change_parameter(struct rewriter *rewriter, const struct parameter *parameter)
{
    const struct weir_token *name = &parameter->name, *type = &parameter->type;
    const int length = (int)name->length;
    if (type->length == 0)
        return;
    if (length == 0 || length > NAME_MOST) {
        rewriter->hidden = true;
        return;
    }
    const char *start = parameter->first.start, *end = name->start + length;
    replace(rewriter, (struct weir_token){.start = start, .length = (size_t)(end - start)});
    for (const char *at = start; at < end; at++)
        if (*at == '\n')
            weir_long_text_add(rewriter->out, "\n");
    weir_long_text_add(rewriter->out,
                       "%s__global uint4 *restrict %.*s__pixels, weir_image_layout %.*s__layout",
                       parameter->writable ? "" : "const ", length, name->start, length,
                       name->start);
    weir_long_text_add(&rewriter->body, " %.*s %.*s = WEIR__IMAGE(%.*s); (void)%.*s;",
                       (int)type->length, type->start, length, name->start, length, name->start,
                       length, name->start);
    rewriter->has_images = true;
}

static void pass_line(struct rewriter *rewriter, struct weir_token directive)
{
    const char *at = directive.start + 1;
    struct weir_token token;
    if (!weir_token_next(&at, false, &token) || !weir_token_is(token, "line"))
        return;
    rewriter->counted = directive.start + directive.length;
    rewriter->line = strtoul(at, NULL, 10) - 1;
}

static void begin_kernel(struct rewriter *rewriter)
{
    rewriter->body.used = 0;
    if (rewriter->body.text)
        *rewriter->body.text = '\0';
    rewriter->has_images = rewriter->has_conditions = false;
}

// From after the parenthesis on to after the one that closes. The conditions among the parameters stand in the body too.
static void change_head(struct rewriter *rewriter)
{
    struct parameter parameter = {.writable = false};
    struct weir_token token;
    int depth = 1;
    begin_kernel(rewriter);
    while (depth > 0 && weir_token_next(&rewriter->at, false, &token)) {
        const bool condition = condition_of(token).length > 0;
        depth += weir_token_is(token, "(") ? 1 : weir_token_is(token, ")") ? -1 : 0;
        if (condition || depth == 0 || (depth == 1 && weir_token_is(token, ","))) {
            change_parameter(rewriter, &parameter);
            parameter = (struct parameter){.writable = false};
        } else if (token.is_directive) {
            pass_line(rewriter, token);
        } else {
            note(&parameter, token);
        }
        if (condition) {
            weir_long_text_add(&rewriter->body, "\n%.*s\n", (int)token.length, token.start);
            rewriter->has_conditions = true;
        }
    }
}

static void begin_body(struct rewriter *rewriter, struct weir_token brace)
{
    brace.length = 0;
    brace.start++;
    replace(rewriter, brace);
    weir_long_text_add(rewriter->out, "%s", rewriter->body.text);
    for (; rewriter->counted < brace.start; rewriter->counted++) // lines since the last #line
        rewriter->line += *rewriter->counted == '\n';
    if (rewriter->has_conditions)
        weir_long_text_add(rewriter->out, "\n#line %lu\n", rewriter->line);
    begin_kernel(rewriter);
}

// A token outside of functions, after `previous`.
static void change_outer(struct rewriter *rewriter, struct weir_token previous,
                         struct weir_token token)
{
    if (is_kernel(token)) {
        rewriter->in_kernel = true;
    } else if (weir_token_is(token, "(") && rewriter->in_kernel && weir_token_is_name(previous) &&
               !weir_token_is(previous, "__attribute__") &&
               !weir_token_is(previous, "__attribute")) {
        rewriter->in_kernel = false;
        change_head(rewriter);
        rewriter->parentheses--;
    } else if (weir_token_is(token, "sampler_t") && !rewriter->in_constant) {
        replace(rewriter, token);
        weir_long_text_add(rewriter->out, "weir__sampler_of_program");
    } else if (weir_token_is(token, "__constant") || weir_token_is(token, "constant")) {
        rewriter->in_constant = true;
    } else if (weir_token_is(token, ";") || weir_token_is(token, "}")) {
        rewriter->in_constant = rewriter->in_kernel = false;
        begin_kernel(rewriter);
    } else if (weir_token_is(token, "{") && rewriter->has_images && rewriter->body.text) {
        begin_body(rewriter, token);
    }
}

static void change(struct rewriter *rewriter)
{
    struct weir_token token, previous = {.length = 0};
    for (bool fresh = true; weir_token_next(&rewriter->at, fresh, &token); fresh = false) {
        if (token.is_directive) {
            rewriter->hidden = rewriter->hidden || hides(token);
            pass_condition(rewriter, token);
            pass_line(rewriter, token);
            continue;
        }
        const bool outer = rewriter->braces == 0 && rewriter->parentheses == 0;
        rewriter->parentheses += weir_token_is(token, "(") ? 1 : weir_token_is(token, ")") ? -1 : 0;
        if (outer)
            change_outer(rewriter, previous, token);
        rewriter->braces += weir_token_is(token, "{") ? 1 : weir_token_is(token, "}") ? -1 : 0;
        if (rewriter->braces <= 0 && weir_token_is(token, "}"))
            rewriter->braces = rewriter->parentheses = rewriter->in_constant = 0;
        previous = token;
    }
    weir_long_text_add(rewriter->out, "%s", rewriter->kept);
}

bool weir_images_rewrite(const char *text, struct weir_long_text *out)
{
    struct rewriter rewriter = {.at = text, .kept = text, .counted = text, .line = 1, .out = out};
    weir_long_text_add(out, "#line 1 \"weir_images.cl\"\n%s#line 1 \"source\"\n",
                       weir_images_library);
    change(&rewriter);
    out->failed = out->failed || rewriter.body.failed;
    free(rewriter.body.text);
    return !rewriter.hidden;
}
