// Includes are replaced without a look at the conditions around them, which depend on the device.
// A file that includes itself, or that says "#pragma once" and is there already, is left out;
// its own guards take care of the rest.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "kernels/compiler/compiler.h"

enum {
    SOURCE_LIMIT = 64 << 20,
    DEPTH_LIMIT = 64,
    PATH_SIZE = 1024
};

struct joiner {
    const struct kc_list *folders;
    struct weir_long_text *out;
    struct weir_long_text *report;
    const char *open[DEPTH_LIMIT]; // the files that include each other, the outermost first
    size_t depth;
    struct weir_long_text once; // files that say "#pragma once", each in lines of its own
    size_t total;
    bool failed;
};

static void join_file(struct joiner *joiner, const char *path);

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    return at;
}

// The rest of a directive of that name, or NULL.
static const char *directive(const char *line, const char *end, const char *name)
{
    const size_t length = strlen(name);
    const char *at = skip_blanks(line, end);
    if (at == end || *at != '#')
        return NULL;
    at = skip_blanks(at + 1, end);
    if ((size_t)(end - at) < length || memcmp(at, name, length) != 0)
        return NULL;
    at += length;
    return at == end || !(isalnum((unsigned char)*at) || *at == '_') ? skip_blanks(at, end) : NULL;
}

// The name of an #include "NAME".
static bool included_name(const char *line, const char *end, char *out_name)
{
    const char *at = directive(line, end, "include");
    if (!at || at == end || *at != '"')
        return false;
    const char *stop = memchr(at + 1, '"', (size_t)(end - at - 1));
    if (!stop || stop - at > PATH_SIZE / 2)
        return false;
    snprintf(out_name, PATH_SIZE, "%.*s", (int)(stop - at - 1), at + 1);
    return true;
}

// Whether there is such a file; a path that is too long is none.
static bool is_file(char *out_path, const char *folder, size_t length, const char *name)
{
    const int written = snprintf(out_path, PATH_SIZE, "%.*s%s", (int)length, folder, name);
    return written < PATH_SIZE && access(out_path, R_OK) == 0;
}

// Beside the file that contains the directive, and then in the folders.
static bool find_included(const struct joiner *joiner, const char *from, const char *name,
                          char *out_path)
{
    char folder[PATH_SIZE];
    const char *slash = strrchr(from, '/');
    if (name[0] == '/')
        return is_file(out_path, "", 0, name);
    if (is_file(out_path, from, slash ? (size_t)(slash - from + 1) : 0, name))
        return true;
    for (size_t i = 0; i < joiner->folders->count; i++) {
        const bool here = strcmp(joiner->folders->items[i], ".") == 0;
        snprintf(folder, sizeof folder, "%s/", joiner->folders->items[i]);
        if (is_file(out_path, folder, here ? 0 : strlen(folder), name))
            return true;
    }
    return false;
}

static bool is_left_out(const struct joiner *joiner, const char *path)
{
    for (size_t i = 0; i < joiner->depth; i++)
        if (strcmp(joiner->open[i], path) == 0)
            return true;
    char line[PATH_SIZE + 2];
    snprintf(line, sizeof line, "\n%s\n", path);
    return joiner->once.text && strstr(joiner->once.text, line);
}

static void note_once(struct joiner *joiner)
{
    weir_long_text_add(&joiner->once, "\n%s\n", joiner->open[joiner->depth - 1]);
    joiner->out->failed = joiner->out->failed || joiner->once.failed;
}

// Whether the line ends inside a comment of several lines.
static bool ends_in_comment(const char *at, const char *end, bool inside)
{
    char quote = '\0';
    for (; at < end; at++) {
        if (inside) {
            if (*at == '*' && at + 1 < end && at[1] == '/') {
                inside = false;
                at++;
            }
        } else if (quote) {
            if (*at == '\\')
                at++;
            else if (*at == quote)
                quote = '\0';
        } else if (*at == '"' || *at == '\'') {
            quote = *at;
        } else if (*at == '/' && at + 1 < end && at[1] == '/') {
            return false;
        } else if (*at == '/' && at + 1 < end && at[1] == '*') {
            inside = true;
            at++;
        }
    }
    return inside;
}

// True: the line was replaced.
static bool replace_line(struct joiner *joiner, const char *line, const char *end, unsigned number)
{
    const char *path = joiner->open[joiner->depth - 1];
    char name[PATH_SIZE];
    char found[PATH_SIZE];
    const char *once = directive(line, end, "pragma");
    if (once && end - once >= 4 && memcmp(once, "once", 4) == 0) {
        note_once(joiner);
        weir_long_text_add(joiner->out, "\n");
        return true;
    }
    if (!included_name(line, end, name) || !find_included(joiner, path, name, found))
        return false;
    if (is_left_out(joiner, found)) {
        weir_long_text_add(joiner->out, "\n");
        return true;
    }
    join_file(joiner, found);
    weir_long_text_add(joiner->out, "#line %u \"%s\"\n", number + 1, path);
    return true;
}

static void join_lines(struct joiner *joiner, const char *text, size_t size)
{
    const char *stop = text + size;
    bool in_comment = false;
    unsigned number = 1;
    for (const char *line = text; line < stop && !joiner->failed; number++) {
        const char *newline = memchr(line, '\n', (size_t)(stop - line));
        const char *end = newline ? newline : stop;
        if (in_comment || !replace_line(joiner, line, end, number))
            weir_long_text_add(joiner->out, "%.*s\n", (int)(end - line), line);
        in_comment = ends_in_comment(line, end, in_comment);
        line = newline ? newline + 1 : stop;
    }
}

static void join_file(struct joiner *joiner, const char *path)
{
    char message[512];
    void *text;
    size_t size;
    if (joiner->depth == DEPTH_LIMIT) {
        weir_long_text_add(joiner->report, "%s: error: more than %d files include each other\n",
                           path, DEPTH_LIMIT);
        joiner->failed = true;
        return;
    }
    if (!weir_file_read(path, SOURCE_LIMIT, &text, &size, message, sizeof message)) {
        const size_t length = strlen(path);
        const bool named = strncmp(message, path, length) == 0 && message[length] == ':';
        weir_long_text_add(joiner->report, "%s: error: %s\n", path,
                           named ? message + length + 2 : message);
        joiner->failed = true;
        return;
    }
    joiner->total += size;
    if (joiner->total > SOURCE_LIMIT) {
        weir_long_text_add(joiner->report,
                           "%s: error: the sources with their includes have more than "
                           "%d bytes\n",
                           path, SOURCE_LIMIT);
        joiner->failed = true;
    }
    joiner->open[joiner->depth++] = path;
    weir_long_text_add(joiner->out, "#line 1 \"%s\"\n", path);
    join_lines(joiner, text, size);
    joiner->depth--;
    free(text);
}

static void define(struct weir_long_text *out, const char *definition)
{
    const char *equal = strchr(definition, '=');
    if (equal)
        weir_long_text_add(out, "#define %.*s %s\n", (int)(equal - definition), definition,
                           equal + 1);
    else
        weir_long_text_add(out, "#define %s 1\n", definition);
}

static void declare_barrier(struct weir_long_text *text)
{
    struct weir_long_text whole = {0};
    weir_long_text_add(&whole,
                       "#ifdef WEIR_KERNELS\nvoid " KC_GRID_BARRIER "(void);\n#else\n"
                       "#define " KC_GRID_BARRIER "() "
                       "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)\n#endif\n%s",
                       text->text);
    free(text->text);
    *text = whole;
}

bool kc_join(const struct kc_list *files, const struct kc_list *folders,
             const struct kc_list *definitions, struct weir_long_text *out_text,
             struct weir_long_text *report)
{
    struct joiner joiner = {.folders = folders, .out = out_text, .report = report};
    for (size_t i = 0; i < definitions->count; i++)
        define(out_text, definitions->items[i]);
    for (size_t i = 0; i < files->count && !joiner.failed; i++)
        join_file(&joiner, files->items[i]);
    free(joiner.once.text);
    if (!out_text->failed && out_text->text && strstr(out_text->text, KC_GRID_BARRIER))
        declare_barrier(out_text);
    return !joiner.failed && !out_text->failed;
}
