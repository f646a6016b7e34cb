// The joined text names each file in a "#line" directive. A source may have such directives of its
// own, whose files need not be there.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/kernels/kernels.h"

// As make reads it.
static void add_path(struct weir_long_text *out, const char *path)
{
    for (; *path; path++) {
        if (*path == '$')
            weir_long_text_add(out, "$");
        else if (*path == ' ' || *path == '#')
            weir_long_text_add(out, "\\");
        weir_long_text_add(out, "%c", *path);
    }
}

// The path in a line that begins with "#line".
static char *named_file(const char *line)
{
    const char *end = line + strcspn(line, "\n");
    const char *start = memchr(line, '"', (size_t)(end - line));
    const char *stop = start ? memchr(start + 1, '"', (size_t)(end - start - 1)) : NULL;
    char *name = stop ? strndup(start + 1, (size_t)(stop - start - 1)) : NULL;
    char *path = name ? realpath(name, NULL) : NULL;
    free(name);
    return path;
}

static void add_file(struct weir_long_text *out, struct weir_long_text *seen, const char *path)
{
    char *entry = malloc(strlen(path) + 3);
    if (entry) {
        snprintf(entry, strlen(path) + 3, "\n%s\n", path);
        if (!seen->text || !strstr(seen->text, entry)) {
            weir_long_text_add(seen, "%s", entry);
            weir_long_text_add(out, " \\\n  ");
            add_path(out, path);
        }
    }
    out->failed = out->failed || seen->failed || !entry;
    free(entry);
}

static void add_files(struct weir_long_text *out, struct weir_long_text *seen, const char *text)
{
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        char *path = strncmp(line, "#line ", 6) == 0 ? named_file(line) : NULL;
        if (path)
            add_file(out, seen, path);
        free(path);
    }
}

// The twin's source is read as the OpenCL C is, for what it includes.
static void add_twin(struct weir_long_text *out, struct weir_long_text *seen,
                     const struct kc_build *build)
{
    const struct kc_list source = {&build->twin.source, build->twin.source ? 1 : 0};
    const struct kc_list none = {NULL, 0};
    struct weir_long_text text = {0};
    struct weir_long_text report = {0};
    if (!kc_join(&source, &build->folders, &none, &text, &report))
        out->failed = true;
    add_files(out, seen, text.text);
    free(text.text);
    free(report.text);
    for (size_t i = 0; i < build->twin.images.count; i++) {
        char *path = realpath(build->twin.images.items[i], NULL);
        if (path)
            add_file(out, seen, path);
        free(path);
    }
}

int kernels_write_depfile(const char *depfile, const char *target, const struct kc_build *build,
                          const char *text)
{
    struct weir_long_text out = {0};
    struct weir_long_text seen = {0};
    char message[512] = "no memory for the names of files";
    add_path(&out, target);
    weir_long_text_add(&out, ":");
    add_files(&out, &seen, text);
    add_twin(&out, &seen, build);
    weir_long_text_add(&out, "\n");
    const bool fine =
        !out.failed && weir_file_write(depfile, out.text, out.used, message, sizeof message);
    if (!fine)
        cli_error("%s", message);
    free(seen.text);
    free(out.text);
    return fine ? CLI_OK : CLI_FAILED;
}
