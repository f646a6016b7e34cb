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

static bool replace_line(struct joiner *joiner, const char *line, const char *end, unsigned number);

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

// What OpenCL C has and a bundle has not, on every device: images, samplers, pipes, queues of the
// device. A name that only a macro makes, or that stands in a part that is not compiled, has to be
// told from others, so clang lists the tokens that are left of the text after preprocessing:
//     image2d_t 'image2d_t'    [LeadingSpace] Loc=<k.cl:3:20 <Spelling=k.cl:1:13>>

enum {
    TOLD_MOST = 20, // as clang
    NAME_SIZE = 64
};

// A line of the list.
struct token {
    char name[NAME_SIZE]; // empty: it is no word
    bool is_keyword;      // and so never a name of the user's
};

static const struct {
    const char *name;
    const char *sentence;
    bool begins;      // keywords that begin with it
    bool from_20;     // in OpenCL C 1.2 it is a name of the user's
    bool before_word; // such as a type
} outside[] = {
    {"image", "images are not built for CUDA; use a buffer", true, false, false},
    {"sampler_t", "samplers are not built for CUDA; compute the coordinates", false, false, false},
    {"pipe", "pipes are not built for CUDA; use a buffer", false, true, true},
    {"queue_t", "kernels cannot enqueue kernels on CUDA; launch from the host", false, true, false},
    {"enqueue_kernel", "kernels cannot enqueue kernels on CUDA; launch from the host", false, true,
     false},
};

static const char *sentence_of(const struct token *token, const struct token *next, bool is_12)
{
    for (size_t i = 0; i < sizeof outside / sizeof *outside && token->name[0]; i++) {
        const size_t length = strlen(outside[i].name);
        const bool named =
            outside[i].begins
                ? token->is_keyword && strncmp(token->name, outside[i].name, length) == 0
                : strcmp(token->name, outside[i].name) == 0;
        if (named && !(is_12 && outside[i].from_20) &&
            (next->name[0] != '\0' || !outside[i].before_word))
            return outside[i].sentence;
    }
    return NULL;
}

// "KIND 'NAME'", where a keyword's kind is its name.
static void read_token(const char *line, struct token *out)
{
    const size_t kind = strcspn(line, " \n");
    const char *name = line + kind + 2;
    *out = (struct token){.name = ""};
    if (strncmp(line + kind, " '", 2) != 0 || !(isalpha((unsigned char)*name) || *name == '_'))
        return;
    const size_t length = strcspn(name, "'\n");
    if (length >= NAME_SIZE || name[length] != '\'')
        return;
    memcpy(out->name, name, length);
    out->is_keyword = length == kind && strncmp(line, name, length) == 0;
}

static void tell(const char *line, const char *name, const char *sentence,
                 struct weir_long_text *report)
{
    static const char mark[] = "Loc=<";
    const char *end = line + strcspn(line, "\n");
    const char *place = strstr(line, mark);
    if (place && place < end) {
        place += sizeof mark - 1;
        const char *stop = strstr(place, " <Spelling=");
        stop = stop && stop < end ? stop : end - 1;
        weir_long_text_add(report, "%.*s: ", (int)(stop - place), place);
    }
    weir_long_text_add(report, "error: '%s': %s\n", name, sentence);
}

static bool check_tokens(const char *tokens, bool is_12, struct weir_long_text *report)
{
    unsigned told = 0;
    struct token token, next;
    for (const char *line = tokens; *line && told < TOLD_MOST;) {
        const char *newline = strchr(line, '\n');
        const char *after = newline ? newline + 1 : line + strlen(line);
        read_token(line, &token);
        read_token(after, &next);
        const char *sentence = sentence_of(&token, &next, is_12);
        if (sentence) {
            tell(line, token.name, sentence, report);
            told++;
        }
        line = after;
    }
    return told == 0;
}

// Most texts have none of the words, and then clang need not be asked.
static bool may_have_some(const char *text)
{
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        if (strstr(text, outside[i].name))
            return true;
    return false;
}

bool kc_check_outside(const struct kc_tools *tools, const struct kc_language *language,
                      const char *text, const char *folder, struct weir_long_text *report)
{
    char source[1024], standard[64], message[512];
    if (!may_have_some(text))
        return true;
    snprintf(source, sizeof source, "%s/tokens.cl", folder);
    snprintf(standard, sizeof standard, "-cl-std=%s", language->standard);
    if (!weir_file_write(source, text, strlen(text), message, sizeof message)) {
        weir_long_text_add(report, "error: %s\n", message);
        return false;
    }
    struct kc_job job = {.arguments = {tools->clang, "-x", "cl", standard, "-target", "spir64",
                                       "-Xclang", KC_EXTENSIONS, KC_DEVICE_VERSION,
                                       "-U__IMAGE_SUPPORT__", "-fsyntax-only", "-Xclang",
                                       "-dump-tokens", source}};
    kc_run(&job, 1);
    const bool fine = check_tokens(job.errors ? job.errors : "",
                                   strcmp(language->standard, "CL1.2") == 0, report);
    kc_jobs_finish(&job, 1);
    return fine;
}
