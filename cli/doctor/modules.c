// The module files that are installed, in the chain or not. The directories to look in
// are those of the load report.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/doctor/doctor.h"
#include "core/module/check.h"
#include "core/module/load_report.h"
#include "core/module/loader.h"
#include "core/runtime/runtime.h"

enum {
    DIRECTORY_LIMIT = 16,
    NAME_LIMIT = 64
};

struct directories {
    char paths[DIRECTORY_LIMIT][4096];
    size_t count;
};

static void add_directory(struct directories *directories, const char *file)
{
    const char *slash = strrchr(file, '/');
    if (!slash || directories->count == DIRECTORY_LIMIT)
        return;
    char *path = directories->paths[directories->count];
    snprintf(path, sizeof directories->paths[0], "%.*s", (int)(slash - file), file);
    for (size_t i = 0; i < directories->count; i++)
        if (strcmp(directories->paths[i], path) == 0)
            return;
    directories->count++;
}

// "weir_NAME.so" to NAME.
static bool module_name(const char *file, char name[NAME_LIMIT])
{
    const size_t length = strlen(file);
    if (length <= 8 || length - 8 >= NAME_LIMIT || strncmp(file, "weir_", 5) != 0 ||
        strcmp(file + length - 3, ".so") != 0)
        return false;
    snprintf(name, NAME_LIMIT, "%.*s", (int)(length - 8), file + 5);
    return true;
}

static const struct weir_load_entry *last_entry(const weir_load_report *report)
{
    const size_t count = weir_load_report_count(report);
    return count > 0 ? weir_load_report_entry(report, count - 1) : NULL;
}

static void add_about(struct doctor *doctor, const struct weir_module *module)
{
    for (const char *const *about = module->about; about && about[0] && about[1]; about += 2)
        doctor_add(doctor, DOCTOR_OK, "module", NULL, "%s, %s: %s", module->name, about[0],
                   about[1]);
}

static void add_module(struct doctor *doctor, const struct weir__loaded *loaded)
{
    const struct weir_module *module = loaded->module;
    const bool is_plain = !module->sanitizer[0];
    doctor_add(doctor, DOCTOR_OK, "module", NULL, "%s %s, a %s, ABI %u, %s%s%s: %s", module->name,
               module->version, weir__module_kind_name(module->kind), (unsigned)module->abi,
               is_plain ? "" : "built with the ", module->sanitizer,
               is_plain ? "plain build" : " sanitizer", loaded->path);
    add_about(doctor, module);
}

static void try_module(struct doctor *doctor, const char *name, const char *directory)
{
    weir_load_report *report = weir__load_report_create();
    struct weir__loaded loaded;
    const weir_status status = weir__loader_load(name, 0, directory, &weir__host, report, &loaded);
    const struct weir_load_entry *entry = last_entry(report);
    if (status == WEIR_OK)
        add_module(doctor, &loaded);
    else
        doctor_add(doctor, DOCTOR_NOTE, "module", NULL, "%s cannot be used: %s", name,
                   entry && entry->reason[0] ? entry->reason : weir_last_error()->message);
    weir_load_report_destroy(&report);
}

static int compare_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void look_into(struct doctor *doctor, const char *directory)
{
    char names[NAME_LIMIT][NAME_LIMIT];
    size_t count = 0;
    const struct dirent *file;
    DIR *stream = opendir(directory);
    if (!stream)
        return;
    while (count < NAME_LIMIT && (file = readdir(stream)))
        count += module_name(file->d_name, names[count]);
    closedir(stream);
    qsort(names, count, sizeof names[0], compare_text);
    for (size_t i = 0; i < count; i++)
        try_module(doctor, names[i], directory);
}

static void add_entry(struct doctor *doctor, const struct weir_load_entry *entry)
{
    switch (entry->outcome) {
    case WEIR_LOAD_USED:
        doctor_add(doctor, DOCTOR_OK, "chain", NULL, "%s is used%s%s", entry->module,
                   entry->driver[0] ? ", driver " : "", entry->driver);
        break;
    case WEIR_LOAD_REFUSED:
        doctor_add(doctor, DOCTOR_NOTE, "chain", NULL, "%s was refused: %s", entry->module,
                   entry->reason);
        break;
    case WEIR_LOAD_MISSING:
        doctor_add(doctor, DOCTOR_NOTE, "chain", NULL, "%s is not there: no %s", entry->module,
                   entry->path);
        break;
    }
}

void doctor_modules(struct doctor *doctor)
{
    struct directories *directories = calloc(1, sizeof *directories);
    const struct weir_load_entry *entry;
    if (!directories) {
        doctor->incomplete = true;
        return;
    }
    for (size_t i = 0; (entry = weir_load_report_entry(doctor->report, i)); i++) {
        add_entry(doctor, entry);
        add_directory(directories, entry->path);
    }
    for (size_t i = 0; i < directories->count; i++)
        look_into(doctor, directories->paths[i]);
    free(directories);
}
