// Libraries that a program loads though it does not know of Weir. They lie beside the modules, and a
// variable of the program's environment names them by their whole path.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/inspect.h>

#include "base/text.h"
#include "cli/program/program.h"

static const struct {
    const char *file;
    const char *variable;
    const char *loss; // what is missing without it
} libraries[] = {
    [CLI_PRELOAD_OPENCL] = {"libweir_opencl_layer.so", "OPENCL_LAYERS",
                            "the program's own OpenCL calls are not seen"},
    [CLI_PRELOAD_LOCKS] = {"libweir_locks.so", "LD_PRELOAD",
                           "the program's own locks are not seen"},
};

static bool take_module_path(void *user, const char *section, const struct weir_setting *setting)
{
    const bool found =
        strcmp(section, "weir") == 0 && strcmp(setting->key->name, "module_path") == 0;
    if (found)
        snprintf(user, PATH_MAX, "%s", setting->text);
    return !found;
}

// Whether the folder of a module's file has the library. Stores its absolute path.
static bool is_beside(const char *module, const char *file, char path[PATH_MAX])
{
    char place[PATH_MAX];
    const char *slash = strrchr(module, '/');
    const int folder = slash ? (int)(slash - module) + 1 : 0;
    const int length = snprintf(place, sizeof place, "%.*s%s", folder, module, file);
    return length < (int)sizeof place && realpath(place, path) && access(path, R_OK) == 0;
}

static bool find(const char *file, char path[PATH_MAX])
{
    char directories[PATH_MAX] = "";
    weir_load_report *report = NULL;
    bool found = false;
    if (weir_inspect_settings(NULL, take_module_path, directories) < 0 ||
        weir_inspect_modules(directories, &report) < 0)
        return false;
    for (size_t i = 0; i < weir_load_report_count(report) && !found; i++)
        found = is_beside(weir_load_report_entry(report, i)->path, file, path);
    weir_load_report_destroy(&report);
    return found;
}

bool cli_preload_find(enum cli_preload_library library, struct cli_preload *out)
{
    const char *file = libraries[library].file;
    const char *variable = libraries[library].variable;
    const char *before = getenv(variable);
    char path[PATH_MAX];
    *out = (struct cli_preload){.variable = {variable, before}};
    if (!find(file, path)) {
        cli_warning("there is no %s beside the modules, so %s; install all of Weir", file,
                    libraries[library].loss);
        return false;
    }
    // Both lists have these separators, and no way to write them in a name.
    if (strpbrk(path, ": ")) {
        cli_warning("%s cannot be named in %s, because of a space or colon in its path, so %s; "
                    "install Weir elsewhere",
                    path, variable, libraries[library].loss);
        return false;
    }
    const int length = snprintf(out->text, sizeof out->text, "%s%s%s", path,
                                before && *before ? ":" : "", before ? before : "");
    if (length >= (int)sizeof out->text) {
        cli_warning("%s is too long to add %s to it, so %s; shorten it", variable, file,
                    libraries[library].loss);
        return false;
    }
    out->variable.value = out->text;
    return true;
}

size_t cli_program_add_opencl(struct cli_opencl *opencl, bool times,
                              struct cli_program_variable *variables)
{
    size_t count = 0;
    size_t used = 0;
    if (opencl->off || !cli_preload_find(CLI_PRELOAD_OPENCL, &opencl->layer))
        return 0;
    for (size_t i = 0; i < opencl->skip.count; i++)
        weir_text_append(opencl->skips, sizeof opencl->skips, &used, "%s%s", i ? ":" : "",
                         opencl->skip.items[i]);
    variables[count++] = opencl->layer.variable;
    if (used)
        variables[count++] = (struct cli_program_variable){"WEIR_OPENCL_SKIP", opencl->skips};
    if (times)
        variables[count++] = (struct cli_program_variable){"WEIR_OPENCL_TIMES", "1"};
    return count;
}
