// A program whose output is kept, and what the plugin perturb reports of its runs.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json/json.h"
#include "cli/program/program.h"

bool cli_content_read(const char *path, struct cli_content *out_content)
{
    char message[512];
    void *bytes = NULL;
    *out_content = (struct cli_content){NULL, 0};
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return true;
    if (!weir_file_read(path, SIZE_MAX / 2, &bytes, &out_content->size, message, sizeof message)) {
        cli_error("what the program wrote is lost: %s", message);
        return false;
    }
    out_content->bytes = bytes;
    return true;
}

static int open_file(const char *path, int flags)
{
    const int descriptor = open(path, flags | O_CLOEXEC, 0600);
    if (descriptor < 0)
        cli_error("%s cannot be opened: %s; free space, or set TMPDIR to another folder", path,
                  strerror(errno));
    return descriptor;
}

bool cli_program_capture(const struct cli_program *program, const struct cli_folder *folder,
                         struct cli_program_end *out_end, struct cli_content *out_output,
                         struct cli_content *out_messages)
{
    static const char *const names[] = {"output", "messages"};
    struct cli_content *const contents[] = {out_output, out_messages};
    const size_t count = out_messages ? 2 : 1;
    char paths[2][CLI_FOLDER_PATH_SIZE];
    int files[3] = {open_file("/dev/null", O_RDONLY), -1, -1};
    bool ok = files[0] >= 0;
    for (size_t i = 0; i < count && ok; i++) {
        cli_folder_place(folder, names[i], paths[i]);
        files[1 + i] = open_file(paths[i], O_WRONLY | O_CREAT | O_TRUNC);
        ok = files[1 + i] >= 0;
    }
    struct cli_program own = *program;
    own.input = files[0];
    own.output = files[1];
    own.messages = files[count];
    ok = ok && cli_program_run(&own, out_end);
    for (size_t i = 0; i < 3; i++)
        if (files[i] >= 0)
            close(files[i]);
    for (size_t i = 0; i < count && ok; i++)
        ok = cli_content_read(paths[i], contents[i]);
    return ok;
}

static uint64_t number_of(const json_t *line, const char *name)
{
    const json_int_t number = json_integer_value(json_object_get(line, name));
    return number > 0 ? (uint64_t)number : 0;
}

void cli_perturb_read(const char *path, struct cli_perturb_counts *out_counts)
{
    char text[1024];
    FILE *file = fopen(path, "re");
    while (file && fgets(text, sizeof text, file)) {
        json_t *line = weir_json_load(text, strlen(text), 0, NULL);
        out_counts->runtimes += line != NULL;
        out_counts->operations += number_of(line, "operations");
        out_counts->choices += number_of(line, "choices");
        out_counts->idle += number_of(line, "idle");
        out_counts->stalled += number_of(line, "stalled");
        out_counts->reversed += number_of(line, "reversed");
        json_decref(line);
    }
    if (file)
        fclose(file);
}
