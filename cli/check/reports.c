// The reports. The plugin puts the number of the process, and of the runtime in it, into the name of
// each.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/check/check.h"

static int is_report(const struct dirent *entry)
{
    const size_t length = strlen(entry->d_name);
    return entry->d_name[0] != '.' && length > 5 &&
           strcmp(entry->d_name + length - 5, ".json") == 0;
}

static bool read_one(const struct cli_folder *folder, const char *name,
                     weir_findings_reader *reader)
{
    char path[CLI_FOLDER_PATH_SIZE];
    char message[512];
    cli_folder_place(folder, name, path);
    if (weir_findings_read(reader, path, message, sizeof message))
        return true;
    cli_error("%s", message);
    return false;
}

bool cli_check_read(const struct cli_folder *folder, weir_findings_reader *reader,
                    size_t *out_count)
{
    struct dirent **entries;
    const int count = scandir(folder->path, &entries, is_report, alphasort);
    bool ok = count >= 0;
    *out_count = ok ? (size_t)count : 0;
    if (!ok)
        cli_error("%s: the findings cannot be read: %s; leave the folder alone while the command "
                  "runs",
                  folder->path, strerror(errno));
    for (int i = 0; i < count; i++) {
        ok = ok && read_one(folder, entries[i]->d_name, reader);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return ok;
}
