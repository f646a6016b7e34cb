// What a run leaves: its exit status, what it printed, and the files that it is asked to compare.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/perturb/perturb.h"

void result_finish(struct result *result)
{
    free(result->output.bytes);
    free(result->messages.bytes);
    for (size_t i = 0; i < CLI_LIST_LIMIT; i++)
        free(result->files[i].bytes);
    *result = (struct result){.took_ns = 0};
}

static bool grow(struct content *content, size_t *capacity)
{
    if (content->size < *capacity)
        return true;
    const size_t more = *capacity ? 2 * *capacity : 4096;
    char *bytes = realloc(content->bytes, more);
    if (!bytes)
        return false;
    content->bytes = bytes;
    *capacity = more;
    return true;
}

bool content_read(FILE *file, struct content *out_content)
{
    size_t capacity = 0;
    size_t count = 1;
    *out_content = (struct content){NULL, 0};
    while (count > 0 && grow(out_content, &capacity)) {
        count =
            fread(out_content->bytes + out_content->size, 1, capacity - out_content->size, file);
        out_content->size += count;
    }
    if (count == 0 && !ferror(file))
        return true;
    cli_error("no memory for what the program writes, or it cannot be read");
    return false;
}

bool content_load(const char *path, struct content *out_content)
{
    *out_content = (struct content){NULL, 0};
    char message[512];
    uint64_t size;
    int descriptor;
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return true;
    if (!weir_file_open(path, &descriptor, &size, message, sizeof message)) {
        cli_error("%s", message);
        return false;
    }
    FILE *file = fdopen(descriptor, "rb");
    const bool ok = file && content_read(file, out_content);
    if (file)
        fclose(file);
    else
        close(descriptor);
    return ok;
}

uint64_t content_line(const struct content *a, const struct content *b)
{
    const size_t size = a->size < b->size ? a->size : b->size;
    uint64_t line = 1;
    for (size_t i = 0; i < size; i++) {
        if (a->bytes[i] != b->bytes[i])
            return line;
        line += a->bytes[i] == '\n';
    }
    return a->size == b->size && !a->bytes == !b->bytes ? 0 : line;
}

bool result_differs(const struct settings *settings, const struct result *a, const struct result *b)
{
    bool differs = a->end.code != b->end.code || a->end.late != b->end.late;
    if (settings->compare)
        differs = differs || content_line(&a->output, &b->output);
    for (size_t i = 0; i < settings->files.count; i++)
        differs = differs || content_line(&a->files[i], &b->files[i]);
    return differs;
}
