// One text of all sources. clang puts what they include in the place of each #include, and leaves every other
// directive as it is (-frewrite-includes): conditions on a device's own macros are for the device's compiler.
// What clang adds to tell what it did is taken out again.
#include <ctype.h>
#include <unistd.h>

#include "base/file.h"
#include "kernels/compiler/compiler.h"
#include "kernels/images/images.h"

enum {
    SOURCE_LIMIT = 64 << 20
};

#define MADE " by -frewrite-includes */"
#define EXPANDED " expanded" MADE
#define DISABLED "#if 0 /* disabled" MADE
#define END_DISABLED "#endif /* disabled" MADE
#define EVALUATED " /* evaluated" MADE
#define HIDDEN "#if 0 /*" EXPANDED
#define END_HIDDEN "#endif /*" EXPANDED
#define EITHER "#if defined(__CLANG_REWRITTEN_INCLUDES) /*"

// Files on the way, in a folder.
#define NAMES "%s/names.cl"
#define DEPENDS "%s/text.d"

struct cleaner {
    const char *at; // the next line; NULL: there is none
    struct weir_long_text *out;
};

static const char *take(struct cleaner *cleaner)
{
    const char *line = cleaner->at;
    if (line)
        cleaner->at = kc_next_line(line);
    return line;
}

static bool ends(const char *line, const char *text)
{
    const size_t length = kc_line_length(line), wanted = strlen(text);
    return length >= wanted && memcmp(line + length - wanted, text, wanted) == 0;
}

static bool is(const char *line, const char *text)
{
    return kc_line_length(line) == strlen(text) && kc_starts_with(line, text);
}

static void add(struct cleaner *cleaner, const char *line)
{
    weir_long_text_add(cleaner->out, "%.*s\n", (int)kc_line_length(line), line);
}

// "#line NUMBER "PATH"": the path, without the "./" of files beside the standard input. NULL: another line.
static const char *path_of(const char *line, size_t *out_length)
{
    const char *quote = kc_starts_with(line, "#line ") ? kc_in_line(line, "\"") : NULL;
    if (!quote || !ends(line, "\""))
        return NULL;
    const char *stop = line + kc_line_length(line) - 1;
    const char *start = quote + (stop - quote > 3 && kc_starts_with(quote, "\"./") ? 3 : 1);
    *out_length = stop > start ? (size_t)(stop - start) : 0;
    return *out_length > 0 ? start : NULL;
}

// A condition stands first as it is, between DISABLED and END_DISABLED, and then as what it was: 1 or 0. An #elif
// has an "#if 0" before it, and all have an #endif after them.
static void keep_condition(struct cleaner *cleaner)
{
    const char *line, *before = NULL;
    size_t count = 0;
    while ((line = take(cleaner)) && !kc_starts_with(line, END_DISABLED)) {
        const bool of_elif = count == 1 && is(before, "#if 0") && !is(line, "#endif");
        if (before && !of_elif)
            add(cleaner, before);
        before = line;
        count++;
    }
    if (cleaner->at && ends(cleaner->at, EVALUATED))
        take(cleaner);
}

// Whether the text that follows, or that was there before, is of a file with this name.
static bool is_included(const struct cleaner *cleaner, const char *name, size_t name_length)
{
    struct cleaner rest = *cleaner;
    char end[KC_PATH_SIZE];
    if (name_length + 3 > sizeof end)
        return true;
    for (int i = 0; i < 2 && rest.at; i++) {
        size_t length;
        const char *path = path_of(take(&rest), &length);
        if (path && length >= name_length &&
            memcmp(path + length - name_length, name, name_length) == 0)
            return true;
    }
    snprintf(end, sizeof end, "%.*s\"\n", (int)name_length, name);
    return cleaner->out->text && strstr(cleaner->out->text, end);
}

// An #include of a part that was not compiled: a device that compiles this part is told.
static void leave_out(struct cleaner *cleaner, const char *hidden, const char *limit)
{
    const char *word = memmem(hidden, (size_t)(limit - hidden), "include", strlen("include"));
    const char *open = word ? word + strcspn(word, "\"<") : limit;
    if (open >= limit)
        return;
    const char *stop = memchr(open + 1, *open == '<' ? '>' : '"', (size_t)(limit - open - 1));
    const size_t length = stop ? (size_t)(stop - open - 1) : 0;
    if (length > 0 && !is_included(cleaner, open + 1, length))
        weir_long_text_add(cleaner->out,
                           "#error %.*s is not in this text: its condition did not hold when the "
                           "kernels were built\n",
                           (int)length, open + 1);
}

static void skip_hidden(struct cleaner *cleaner, const char *end)
{
    const char *start = cleaner->at, *line;
    while ((line = take(cleaner)) && !(kc_starts_with(line, end) && ends(line, EXPANDED))) {
    }
    if (start)
        leave_out(cleaner, start, line ? line : start + strlen(start));
}

static void clean_line(struct cleaner *cleaner, const char *line)
{
    size_t length;
    const char *path = path_of(line, &length);
    const char *hidden = ends(line, EXPANDED) ? kc_in_line(line, HIDDEN) : NULL;
    const char *either = ends(line, EXPANDED) ? kc_in_line(line, EITHER) : NULL;
    if (hidden || either) { // after a comment, perhaps
        const char *mark = hidden ? hidden : either;
        if (mark > line)
            weir_long_text_add(cleaner->out, "%.*s\n", (int)(mark - line), line);
        skip_hidden(cleaner, hidden ? END_HIDDEN : "#else /* ");
    } else if (kc_starts_with(line, DISABLED)) {
        keep_condition(cleaner);
    } else if (path) {
        if (!kc_starts_with(path, "<built-in>"))
            weir_long_text_add(cleaner->out, "%.*s\"%.*s\"\n", (int)strcspn(line, "\""), line,
                               (int)length, path);
    } else if (!(kc_starts_with(line, "#endif /* ") && ends(line, EXPANDED))) {
        add(cleaner, line);
    }
}

// What the driver gets too.
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

static bool refuse(struct weir_long_text *report, const char *path, const char *sentence)
{
    weir_long_text_add(report, "%s: error: %s\n", path, sentence);
    return false;
}

// The standard input has no name that #include takes, so its text itself is added.
static bool add_input(struct weir_long_text *out, struct weir_long_text *report)
{
    char buffer[65536];
    ssize_t got;
    weir_long_text_add(out, "#line 1 \"<stdin>\"\n");
    while ((got = read(STDIN_FILENO, buffer, sizeof buffer)) > 0) {
        if (memchr(buffer, '\0', (size_t)got))
            return refuse(report, "<stdin>", "there is a NUL byte in it, which is no OpenCL C");
        if (out->used + (size_t)got > SOURCE_LIMIT)
            return refuse(report, "<stdin>", "it has more than 64 MiB");
        weir_long_text_add(out, "%.*s", (int)got, buffer);
    }
    weir_long_text_add(out, "\n");
    return got == 0 || refuse(report, "<stdin>", "it cannot be read");
}

// A missing file is told here as what it is, and not as one that is included.
static bool add_file(struct weir_long_text *out, const char *path, struct weir_long_text *report)
{
    char message[512];
    void *text;
    size_t size;
    if (strcmp(path, "-") == 0)
        return add_input(out, report);
    weir_long_text_add(out, "#include \"%s\"\n", path);
    if (!weir_file_read(path, SOURCE_LIMIT, &text, &size, message, sizeof message)) {
        const size_t length = strlen(path);
        const bool named = strncmp(message, path, length) == 0 && message[length] == ':';
        return refuse(report, path, named ? message + length + 2 : message);
    }
    const bool plain = !memchr(text, '\0', size);
    free(text);
    return plain || refuse(report, path, "there is a NUL byte in it, which is no OpenCL C");
}

bool kc_is_definition(const char *text)
{
    const size_t length = strlen(text);
    size_t name = 0;
    while (weir_text_is_word(text[name]))
        name++;
    return name > 0 && !isdigit((unsigned char)*text) && strchr("=(", text[name]) &&
           !strchr(text, '\n') && text[length - 1] != '\\';
}

static bool define(struct weir_long_text *out, const char *definition,
                   struct weir_long_text *report)
{
    if (!kc_is_definition(definition))
        return kc_error(report, KC_DEFINITIONS ", not '%s'", definition);
    const char *equal = strchr(definition, '=');
    if (equal)
        weir_long_text_add(out, "#define %.*s %s\n", (int)(equal - definition), definition,
                           equal + 1);
    else
        weir_long_text_add(out, "#define %s 1\n", definition);
    return true;
}

// Lines of clang's about the text that names the files say nothing, and it calls files beside it "./FILE".
static void add_report(const char *errors, struct weir_long_text *report)
{
    static const char from[] = "In file included from ";
    for (const char *line = *errors ? errors : NULL; line; line = kc_next_line(line)) {
        const size_t kept = kc_starts_with(line, from) ? sizeof from - 1 : 0;
        const char *rest = line + kept + (kc_starts_with(line + kept, "./") ? 2 : 0);
        if (kept == 0 || !kc_starts_with(rest, "<stdin>"))
            weir_long_text_add(report, "%.*s%.*s\n", (int)kept, line, (int)kc_line_length(rest),
                               rest);
    }
}

// Has the preprocessor put includes into the place of their directives in the file FOLDER/names.cl; with `whole` it
// expands macros and conditions too.
static bool expand(const struct kc_context *context, bool whole, const char *out)
{
    const struct weir_words *folders = &context->build->sources.folders;
    char in[KC_PATH_SIZE];
    snprintf(in, sizeof in, NAMES, context->folder);
    struct kc_job job = {.input = in};
    kc_job_add_language(&job, context->build);
    kc_job_add_cuda(&job, &context->build->language);
    KC_ADD(&job, "-w", "-E", "-cl-no-stdinc", "-Xclang", "-fuse-line-directives");
    if (!whole)
        kc_job_add(&job, "-frewrite-includes");
    for (size_t i = 0; i < folders->count; i++)
        KC_ADD(&job, "-I", folders->items[i]);
    KC_ADD(&job, "-MMD", "-MF");
    kc_job_add(&job, DEPENDS, context->folder);
    KC_ADD(&job, "-MT", "text", "-o", out, "-");
    kc_run(&job, 1);
    const bool fine = job.status == 0;
    if (job.errors && !fine)
        add_report(job.errors, context->report);
    kc_jobs_finish(&job, 1);
    return fine;
}

static bool read_expanded(const struct kc_context *context, bool whole, struct weir_long_text *out)
{
    char message[512], path[KC_PATH_SIZE];
    void *text;
    size_t size;
    snprintf(path, sizeof path, "%s/expanded.cl", context->folder);
    if (!expand(context, whole, path))
        return false;
    if (!weir_file_read(path, SOURCE_LIMIT, &text, &size, message, sizeof message))
        return kc_error(context->report,
                        "the sources with what they include cannot be read, or have more than %d "
                        "MiB: %s",
                        SOURCE_LIMIT >> 20, message);
    struct cleaner cleaner = {*(const char *)text ? text : NULL, out};
    while (cleaner.at)
        clean_line(&cleaner, take(&cleaner));
    free(text);
    return !out->failed;
}

// A kernel's images, and samplers, must stand in the text as such: where macros may hide them, it is preprocessed.
static bool change_images(const struct kc_context *context, struct weir_long_text *text)
{
    struct weir_long_text changed = {0}, whole = {0};
    bool fine = true;
    if (!text->text || !weir_images_are_named(text->text))
        return true;
    if (!weir_images_rewrite(text->text, &changed)) {
        changed.used = 0;
        fine = read_expanded(context, true, &whole);
        if (fine && whole.text)
            weir_images_rewrite(whole.text, &changed);
    }
    free(whole.text);
    free(text->text);
    *text = changed;
    return fine && !text->failed;
}

void kc_add_depends(const char *path, struct weir_long_text *out)
{
    struct weir_long_text ignored = {0};
    char *rule;
    size_t size;
    if (kc_read(path, &rule, &size, &ignored)) {
        const char *colon = strchr(rule, ':');
        weir_long_text_add(out, "%s", colon ? colon + 1 : "");
        free(rule);
    }
    free(ignored.text);
}

bool kc_join(const struct kc_context *context)
{
    const struct kc_sources *sources = &context->build->sources;
    struct weir_long_text *out = &context->result->text, *report = context->report;
    struct weir_long_text names = {0}, text = {0};
    char path[KC_PATH_SIZE], message[512];
    bool fine = true;
    snprintf(path, sizeof path, NAMES, context->folder);
    for (size_t i = 0; i < sources->definitions.count && fine; i++)
        fine = define(&names, sources->definitions.items[i], report);
    for (size_t i = 0; i < sources->files.count && fine; i++)
        fine = add_file(&names, sources->files.items[i], report);
    if (fine &&
        (names.failed || !weir_file_write(path, names.text, names.used, message, sizeof message)))
        fine = refuse(report, "weir kernels", names.failed ? "no memory for the sources" : message);
    free(names.text);
    fine = fine && read_expanded(context, false, &text) && change_images(context, &text);
    snprintf(path, sizeof path, DEPENDS, context->folder);
    kc_add_depends(path, &context->result->depends);
    if (fine && text.text && strstr(text.text, KC_GRID_BARRIER))
        declare_barrier(&text);
    if (fine && text.text)
        weir_long_text_add(out, "%s", text.text);
    free(text.text);
    return fine && !text.failed && !out->failed;
}
