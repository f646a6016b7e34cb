// See the header.
#include "base/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool weir_program_find(const char *name, char *out, size_t size)
{
    const char *path = getenv("PATH");
    while (path && *path) {
        const size_t length = strcspn(path, ":");
        const int used = snprintf(out, size, "%.*s/%s", (int)length, path, name);
        if (length > 0 && used >= 0 && (size_t)used < size && access(out, X_OK) == 0)
            return true;
        path += length + (path[length] == ':');
    }
    out[0] = '\0';
    return false;
}

bool weir_program_find_clang(char *out, size_t size)
{
    static const char *const names[] = {"clang-24", "clang-23", "clang-22", "clang-21",
                                        "clang-20", "clang-19", "clang-18", "clang-17",
                                        "clang",    "clang-16", "clang-15", "clang-14"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (weir_program_find(names[i], out, size))
            return true;
    return false;
}
