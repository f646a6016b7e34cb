// See the header. PTX is rewritten line by line, as both LLVM and the driver's compiler write it:
// one parameter or one instruction in a line. Whatever differs from that is refused rather than
// passed on.
// NOLINTNEXTLINE(bugprone-reserved-identifier): for memmem()
#define _GNU_SOURCE
#include "kernels/ptx/ptx.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "base/text.h"

#define LOCAL_SPACE ".ptr .shared"
#define TEXTURE_MODE ", texmode_independent"
#define PRINTF ".func  (.param .b32 func_retval0) vprintf"

// A part of the text.
struct part {
    const char *start;
    size_t length;
};

struct rewriter {
    struct weir_long_text out;
    bool declared;       // the dynamic shared memory
    bool has_local;      // some parameter is in local memory
    bool in_head;        // of a kernel, before its body
    struct part *locals; // names of the kernel's parameters that are
    size_t local_count;
    char *message;
    size_t message_size;
    bool failed;
};

static void fail(struct rewriter *rewriter, const char *sentence, struct part line)
{
    if (!rewriter->failed)
        snprintf(rewriter->message, rewriter->message_size, "%s: '%.*s'", sentence,
                 (int)(line.length < 200 ? line.length : 200), line.start);
    rewriter->failed = true;
}

static void add(struct rewriter *rewriter, struct part part)
{
    weir_long_text_add(&rewriter->out, "%.*s", (int)part.length, part.start);
}

// Where `word` begins in the part, or NULL.
static const char *find(struct part part, struct part word)
{
    return memmem(part.start, part.length, word.start, word.length);
}

static const char *find_text(struct part part, const char *word)
{
    return find(part, (struct part){word, strlen(word)});
}

static bool contains(struct part part, const char *word)
{
    return find_text(part, word) != NULL;
}

static struct part until(struct part whole, const char *end)
{
    return (struct part){whole.start, (size_t)(end - whole.start)};
}

static struct part from(struct part whole, const char *start)
{
    return (struct part){start, (size_t)(whole.start + whole.length - start)};
}

static bool is_name(char c)
{
    return weir_text_is_word(c) || c == '$' || c == '%' || c == '.';
}

static struct part name_at(const char *start, const char *end)
{
    while (start < end && !is_name(*start))
        start++;
    const char *stop = start;
    while (stop < end && is_name(*stop))
        stop++;
    return (struct part){start, (size_t)(stop - start)};
}

// The line of a parameter in local memory: ".param .u64 .ptr .shared .align 4 NAME,".
static void rewrite_parameter(struct rewriter *rewriter, struct part line, const char *space)
{
    const char *end = line.start + line.length;
    const char *at = space + strlen(LOCAL_SPACE);
    struct part word = name_at(at, end);
    if (word.length == 6 && memcmp(word.start, ".align", 6) == 0) {
        const struct part number = name_at(word.start + word.length, end);
        word = name_at(number.start + number.length, end);
    }
    if (word.length == 0 || !(contains(line, ".u64") || contains(line, ".b64"))) {
        fail(rewriter, "a pointer to local memory is not declared as expected", line);
        return;
    }
    struct part *grown = realloc(rewriter->locals, (rewriter->local_count + 1) * sizeof *grown);
    rewriter->out.failed = rewriter->out.failed || !grown;
    if (!grown)
        return;
    rewriter->locals = grown;
    rewriter->locals[rewriter->local_count++] = word;
    add(rewriter, until(line, space));
    add(rewriter, from(line, word.start));
}

static bool is_local(const struct rewriter *rewriter, struct part name)
{
    bool found = false;
    for (size_t i = 0; i < rewriter->local_count; i++)
        found = found || (rewriter->locals[i].length == name.length &&
                          memcmp(rewriter->locals[i].start, name.start, name.length) == 0);
    return found;
}

// An instruction that loads a parameter: "ld.param.u64 %rd1, [NAME];" of one in local memory adds
// the address of the dynamic shared memory.
static void rewrite_load(struct rewriter *rewriter, struct part line, const char *load)
{
    const char *end = line.start + line.length;
    const char *bracket = memchr(load, '[', (size_t)(end - load));
    const struct part name = bracket ? name_at(bracket, end) : (struct part){load, 0};
    add(rewriter, line);
    if (!is_local(rewriter, name))
        return;
    const struct part type = name_at(load, end); // "ld.param.u64"
    const struct part target = name_at(type.start + type.length, bracket);
    const char *after = name.start + name.length;
    const bool plain = *name_at(line.start, end).start == 'l' && target.length > 0 &&
                       *target.start == '%' && after < end && *after == ']' &&
                       (contains(type, "64")) && !contains(type, ".v");
    if (!plain) {
        fail(rewriter, "a pointer to local memory is not loaded as expected", line);
        return;
    }
    weir_long_text_add(&rewriter->out,
                       "{ .reg .b64 %%weir; mov.u64 %%weir, weir_dynamic_local; "
                       "add.s64 %.*s, %.*s, %%weir; }\n",
                       (int)target.length, target.start, (int)target.length, target.start);
}

// Any other use of such a parameter, its address for example, is not understood.
static void check_use(struct rewriter *rewriter, struct part line)
{
    for (size_t i = 0; i < rewriter->local_count && !rewriter->failed; i++) {
        const struct part name = rewriter->locals[i];
        const char *at = find(line, name);
        const char *end = line.start + line.length;
        if (at && !(at > line.start && is_name(at[-1])) &&
            !(at + name.length < end && is_name(at[name.length])))
            fail(rewriter, "a pointer to local memory is not used as expected", line);
    }
}

static void declare(struct rewriter *rewriter)
{
    if (rewriter->has_local && !rewriter->declared)
        weir_long_text_add(&rewriter->out, ".extern .shared .align %d .b8 weir_dynamic_local[];\n",
                           WEIR_PTX_LOCAL_ALIGNMENT);
    rewriter->declared = true;
}

// Words of a line that are replaced wherever they stand.
static const char *const words[][2] = {
    {"ld.const", "ld.global"},
    {".ptr .const", ".ptr .global"},
    {".const .align", ".global .align"},
    {"cvta.const", "cvta.global"},
    {"cvta.to.const", "cvta.to.global"},
    {"%envreg0;", "0;"},
    {"%envreg1;", "0;"},
    {"%envreg2;", "0;"},
    {"%envreg3;", "0;"},
    {"%envreg4;", "0;"},
    {"%envreg5;", "0;"},
    {"%envreg6;", "%nctaid.x;"},
    {"%envreg7;", "%nctaid.y;"},
    {"%envreg8;", "%nctaid.z;"},
    {"%envreg9;", "3;"},
};

// Where the first of the words begins, and its index.
static const char *find_word(struct part part, size_t *out_index)
{
    const char *first = NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *found = find_text(part, words[i][0]);
        if (found && (!first || found < first)) {
            first = found;
            *out_index = i;
        }
    }
    return first;
}

// A line with nothing else to change.
static void add_line(struct rewriter *rewriter, struct part line)
{
    size_t index;
    const char *found;
    while ((found = find_word(line, &index))) {
        add(rewriter, until(line, found));
        weir_long_text_add(&rewriter->out, "%s", words[index][1]);
        line = from(line, found + strlen(words[index][0]));
    }
    if (contains(line, "%envreg"))
        fail(rewriter, "a register of the launch has no known meaning", line);
    add(rewriter, line);
}

static void rewrite_line(struct rewriter *rewriter, struct part line)
{
    const char *found = find_text(line, PRINTF);
    if (found == line.start)
        weir_long_text_add(&rewriter->out, ".extern ");
    if (contains(line, ".entry")) {
        rewriter->in_head = true;
        rewriter->local_count = 0;
    }
    if (contains(line, ".target") && (found = find_text(line, TEXTURE_MODE))) {
        add(rewriter, until(line, found));
        add(rewriter, from(line, found + strlen(TEXTURE_MODE)));
    } else if (rewriter->in_head && (found = find_text(line, LOCAL_SPACE))) {
        rewrite_parameter(rewriter, line, found);
    } else if (!rewriter->in_head && (found = find_text(line, "ld.param"))) {
        rewrite_load(rewriter, line, found);
    } else {
        if (!rewriter->in_head)
            check_use(rewriter, line);
        if (contains(line,
                     "weir_grid_")) // kernels/library's barrier reads the registers that CUDA sets
            add(rewriter, line);
        else
            add_line(rewriter, line);
    }
    if (contains(line, "{"))
        rewriter->in_head = false;
    if (contains(line, ".address_size"))
        declare(rewriter);
}

char *weir_ptx_for_cuda(const char *ptx, size_t size, char *message, size_t message_size)
{
    struct rewriter rewriter = {.message = message, .message_size = message_size};
    struct part text = {ptx, strnlen(ptx, size)};
    rewriter.has_local = contains(text, LOCAL_SPACE);
    while (text.length > 0 && !rewriter.failed && !rewriter.out.failed) {
        const char *newline = memchr(text.start, '\n', text.length);
        const struct part line = newline ? until(text, newline + 1) : text;
        rewrite_line(&rewriter, line);
        text = from(text, line.start + line.length);
    }
    if (rewriter.has_local && !rewriter.declared)
        fail(&rewriter, "the text has no line '.address_size'", (struct part){"", 0});
    free(rewriter.locals);
    if (rewriter.out.failed && !rewriter.failed)
        snprintf(message, message_size, "no memory for %zu bytes of PTX", size);
    if (!rewriter.out.failed && !rewriter.failed && rewriter.out.text)
        return rewriter.out.text;
    if (!rewriter.out.failed && !rewriter.failed)
        snprintf(message, message_size, "the PTX is empty");
    free(rewriter.out.text);
    return NULL;
}
