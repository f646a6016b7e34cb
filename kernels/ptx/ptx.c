// See the header. PTX is rewritten line by line, as both LLVM and the driver's compiler write it:
// one parameter or one instruction in a line. Whatever differs from that is refused rather than
// passed on.
// NOLINTNEXTLINE(bugprone-reserved-identifier): for memmem(), strsep()
#define _GNU_SOURCE
#include "kernels/ptx/ptx.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/table.h"

#define LOCAL_SPACE ".ptr .shared"
#define TEXTURE_MODE ", texmode_independent"
#define PRINTF ".func  (.param .b32 func_retval0) vprintf"
#define BLANK " \t"
#define NAME "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_$%."

struct rewriter {
    struct weir_long_text out;
    bool declared;       // the dynamic shared memory
    bool has_local;      // some parameter is in local memory
    bool in_head;        // of a kernel, before its body
    const char **locals; // names of the kernel's parameters that are, in lines that were read
    size_t local_count, local_capacity;
    char *message;
    size_t message_size;
    bool failed;
};

static void fail(struct rewriter *rewriter, const char *sentence, const char *line)
{
    const char *quote = *line ? "'" : "";
    if (!rewriter->failed)
        snprintf(rewriter->message, rewriter->message_size, "%s%s%s%.200s%s", sentence,
                 *line ? ": " : "", quote, line, quote);
    rewriter->failed = true;
}

static void add(struct rewriter *rewriter, const char *line)
{
    weir_long_text_add(&rewriter->out, "%s", line);
}

// Without the part of it that begins at `at`.
static void add_without(struct rewriter *rewriter, const char *line, const char *at, size_t length)
{
    weir_long_text_add(&rewriter->out, "%.*s%s", (int)(at - line), line, at + length);
}

// The line of a parameter in local memory: ".param .u64 .ptr .shared .align 4 NAME,".
static void rewrite_parameter(struct rewriter *rewriter, char *line, const char *space)
{
    char *name = line + (space - line) + strlen(LOCAL_SPACE);
    int alignment = 0;
    sscanf(name, " .align %*[0-9]%n", &alignment);
    name += alignment;
    name += strspn(name, BLANK);
    const size_t length = strspn(name, NAME);
    if (length == 0 || !(strstr(line, ".u64") || strstr(line, ".b64"))) {
        fail(rewriter, "a pointer to local memory is not declared as expected", line);
        return;
    }
    add_without(rewriter, line, space, (size_t)(name - space));
    const char **grown = weir_grow(rewriter->locals, rewriter->local_count,
                                   &rewriter->local_capacity, sizeof *grown);
    rewriter->out.failed = rewriter->out.failed || !grown;
    if (!grown)
        return;
    name[length] = '\0'; // the line has been added
    rewriter->locals = grown;
    rewriter->locals[rewriter->local_count++] = name;
}

static bool is_local(const struct rewriter *rewriter, const char *name, size_t length)
{
    bool found = false;
    for (size_t i = 0; i < rewriter->local_count; i++)
        found = found || (strlen(rewriter->locals[i]) == length &&
                          memcmp(rewriter->locals[i], name, length) == 0);
    return found;
}

// An instruction that loads a parameter: "ld.param.u64 %rd1, [NAME];" of one in local memory adds
// the address of the dynamic shared memory.
static void rewrite_load(struct rewriter *rewriter, const char *line, const char *load)
{
    const size_t type = strcspn(load, BLANK);
    const char *target = load + type + strspn(load + type, BLANK);
    const char *bracket = strchr(load, '[');
    const char *name = bracket ? bracket + strcspn(bracket, NAME) : "";
    const size_t length = strspn(name, NAME);
    add(rewriter, line);
    if (!is_local(rewriter, name, length))
        return;
    const bool plain = line[strcspn(line, NAME)] == 'l' && *target == '%' && name[length] == ']' &&
                       memmem(load, type, "64", 2) && !memmem(load, type, ".v", 2);
    if (!plain) {
        fail(rewriter, "a pointer to local memory is not loaded as expected", line);
        return;
    }
    const int register_length = (int)strspn(target, NAME);
    weir_long_text_add(&rewriter->out,
                       "\n{ .reg .b64 %%weir; mov.u64 %%weir, weir_dynamic_local; "
                       "add.s64 %.*s, %.*s, %%weir; }",
                       register_length, target, register_length, target);
}

// Any other use of such a parameter, its address for example, is not understood.
static void check_use(struct rewriter *rewriter, const char *line)
{
    const char *at = rewriter->local_count > 0 ? line + strcspn(line, NAME) : "";
    for (; *at; at += strcspn(at, NAME)) {
        const size_t length = strspn(at, NAME);
        if (is_local(rewriter, at, length))
            fail(rewriter, "a pointer to local memory is not used as expected", line);
        at += length;
    }
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
static const char *find_word(const char *line, size_t *out_index)
{
    const char *first = NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *found = strstr(line, words[i][0]);
        if (found && (!first || found < first)) {
            first = found;
            *out_index = i;
        }
    }
    return first;
}

// A line with nothing else to change.
static void add_line(struct rewriter *rewriter, const char *line)
{
    size_t index;
    const char *found;
    while ((found = find_word(line, &index))) {
        weir_long_text_add(&rewriter->out, "%.*s%s", (int)(found - line), line, words[index][1]);
        line = found + strlen(words[index][0]);
    }
    if (strstr(line, "%envreg"))
        fail(rewriter, "a register of the launch has no known meaning", line);
    add(rewriter, line);
}

static void rewrite_line(struct rewriter *rewriter, char *line)
{
    const char *found;
    // Of a parameter's line, which is cut.
    const bool is_body = strchr(line, '{'), is_last_of_head = strstr(line, ".address_size");
    if (strncmp(line, PRINTF, strlen(PRINTF)) == 0)
        add(rewriter, ".extern ");
    if (strstr(line, ".entry")) {
        rewriter->in_head = true;
        rewriter->local_count = 0;
    }
    if (strstr(line, ".target") && (found = strstr(line, TEXTURE_MODE))) {
        add_without(rewriter, line, found, strlen(TEXTURE_MODE));
    } else if (rewriter->in_head && (found = strstr(line, LOCAL_SPACE))) {
        rewrite_parameter(rewriter, line, found);
    } else if (!rewriter->in_head && (found = strstr(line, "ld.param"))) {
        rewrite_load(rewriter, line, found);
    } else {
        if (!rewriter->in_head)
            check_use(rewriter, line);
        // kernels/library's barrier reads the registers that CUDA sets
        (strstr(line, "weir_grid_") ? add : add_line)(rewriter, line);
    }
    if (is_body)
        rewriter->in_head = false;
    if (is_last_of_head && rewriter->has_local && !rewriter->declared)
        weir_long_text_add(&rewriter->out, "\n.extern .shared .align %d .b8 weir_dynamic_local[];",
                           WEIR_PTX_LOCAL_ALIGNMENT);
    rewriter->declared = rewriter->declared || is_last_of_head;
}

char *weir_ptx_for_cuda(const char *ptx, size_t size, char *message, size_t message_size)
{
    struct rewriter rewriter = {.message = message, .message_size = message_size};
    char *text = calloc(1, size + 1), *rest = text, *line;
    rewriter.out.failed = !text;
    if (text)
        memcpy(text, ptx, size);
    rewriter.has_local = text && strstr(text, LOCAL_SPACE);
    while ((line = strsep(&rest, "\n")) && !rewriter.failed && !rewriter.out.failed) {
        rewrite_line(&rewriter, line);
        if (rest)
            add(&rewriter, "\n");
    }
    if (rewriter.has_local && !rewriter.declared)
        fail(&rewriter, "the text has no line '.address_size'", "");
    if (rewriter.out.used == 0)
        fail(&rewriter, "the PTX is empty", "");
    if (rewriter.out.failed)
        snprintf(message, message_size, "no memory for %zu bytes of PTX", size);
    free(rewriter.locals);
    free(text);
    if (!rewriter.failed && !rewriter.out.failed)
        return rewriter.out.text;
    free(rewriter.out.text);
    return NULL;
}
