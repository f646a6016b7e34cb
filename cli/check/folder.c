// The folder of reports. The plugin puts the number of the process, and of the runtime in it, into
// the name of each.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/check/check.h"

bool cli_check_folder_create(struct cli_check_folder *folder)
{
    const char *named = getenv("TMPDIR");
    const char *parent = named && *named ? named : "/tmp";
    const int length = snprintf(folder->path, sizeof folder->path, "%s/weir-check-XXXXXX", parent);
    errno = ENAMETOOLONG;
    if (length < (int)sizeof folder->path && mkdtemp(folder->path))
        return true;
    cli_error("no folder for the findings can be created in %s: %s; set TMPDIR to another one",
              parent, strerror(errno));
    return false;
}

static int is_report(const struct dirent *entry)
{
    const size_t length = strlen(entry->d_name);
    return entry->d_name[0] != '.' && length > 5 &&
           strcmp(entry->d_name + length - 5, ".json") == 0;
}

static bool read_one(const struct cli_check_folder *folder, const char *name,
                     weir_findings_reader *reader)
{
    char path[PATH_MAX + 300];
    char message[512];
    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    if (weir_findings_read(reader, path, message, sizeof message))
        return true;
    cli_error("%s", message);
    return false;
}

bool cli_check_folder_read(const struct cli_check_folder *folder, weir_findings_reader *reader,
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

void cli_check_folder_remove(const struct cli_check_folder *folder)
{
    char path[PATH_MAX + 300];
    const struct dirent *entry;
    DIR *stream = opendir(folder->path);
    while (stream && (entry = readdir(stream))) {
        snprintf(path, sizeof path, "%s/%s", folder->path, entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlink(path);
    }
    if (stream)
        closedir(stream);
    rmdir(folder->path);
}
