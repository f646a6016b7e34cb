#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/compiler/compiler.h"

// libclc of one version is read by clang of the same, so the newest is looked for first, and
// `clang` last.
static const char *const clangs[] = {"clang-24", "clang-23", "clang-22", "clang-21",
                                     "clang-20", "clang-19", "clang-18", "clang-17",
                                     "clang",    "clang-16", "clang-15", "clang-14"};

static const char *const libclcs[] = {
    "/usr/lib/clc/nvptx64--nvidiacl.bc",
    "/usr/share/clc/nvptx64--nvidiacl.bc",
    "/usr/local/share/clc/nvptx64--nvidiacl.bc",
};

static const char *const libdevices[] = {
    "/usr/local/cuda/nvvm/libdevice/libdevice.10.bc",
    "/usr/lib/cuda/nvvm/libdevice/libdevice.10.bc",
    "/usr/lib/nvidia-cuda-toolkit/libdevice/libdevice.10.bc",
};

static bool find_program(const char *name, char *out, size_t size)
{
    const char *path = getenv("PATH");
    bool found = false;
    while (path && *path && !found) {
        const size_t length = strcspn(path, ":");
        snprintf(out, size, "%.*s/%s", (int)length, path, name);
        found = length > 0 && access(out, X_OK) == 0;
        path += length + (path[length] == ':');
    }
    if (!found)
        out[0] = '\0';
    return found;
}

static void find_file(const char *const *paths, size_t count, char *out, size_t size)
{
    for (size_t i = 0; i < count && out[0] == '\0'; i++)
        if (access(paths[i], R_OK) == 0)
            snprintf(out, size, "%s", paths[i]);
}

static void find_libclc(struct kc_tools *tools)
{
    const char *named = getenv("WEIR_LIBCLC");
    if (!named || !*named)
        find_file(libclcs, sizeof libclcs / sizeof *libclcs, tools->libclc, sizeof tools->libclc);
    else if (strcmp(named, "none") != 0)
        find_file(&named, 1, tools->libclc, sizeof tools->libclc);
}

// Of the toolkit that CUDA_HOME names; "none" means that there is none.
static bool find_in_toolkit(struct kc_tools *tools)
{
    const char *home = getenv("CUDA_HOME");
    if (!home || !*home)
        return true;
    if (strcmp(home, "none") == 0)
        return false;
    if (tools->libdevice[0] == '\0')
        snprintf(tools->libdevice, sizeof tools->libdevice, "%s/nvvm/libdevice/libdevice.10.bc",
                 home);
    if (tools->ptxas[0] == '\0')
        snprintf(tools->ptxas, sizeof tools->ptxas, "%s/bin/ptxas", home);
    if (tools->nvcc[0] == '\0')
        snprintf(tools->nvcc, sizeof tools->nvcc, "%s/bin/nvcc", home);
    if (access(tools->libdevice, R_OK) != 0)
        tools->libdevice[0] = '\0';
    if (access(tools->ptxas, X_OK) != 0)
        tools->ptxas[0] = '\0';
    if (access(tools->nvcc, X_OK) != 0)
        tools->nvcc[0] = '\0';
    return true;
}

static void find_of_toolkit(const char *name, const char *usual, char *out, size_t size)
{
    if (out[0] == '\0' && !find_program(name, out, size))
        find_file(&usual, 1, out, size);
}

void kc_tools_find(struct kc_tools *tools)
{
    for (size_t i = 0; i < sizeof clangs / sizeof *clangs && tools->clang[0] == '\0'; i++)
        find_program(clangs[i], tools->clang, sizeof tools->clang);
    find_libclc(tools);
    if (!find_in_toolkit(tools))
        return;
    find_file(libdevices, sizeof libdevices / sizeof *libdevices, tools->libdevice,
              sizeof tools->libdevice);
    find_of_toolkit("ptxas", "/usr/local/cuda/bin/ptxas", tools->ptxas, sizeof tools->ptxas);
    find_of_toolkit("nvcc", "/usr/local/cuda/bin/nvcc", tools->nvcc, sizeof tools->nvcc);
}

const char *kc_tools_lack(const struct kc_tools *tools, bool cubins)
{
    if (tools->libclc[0] == '\0')
        return "libclc is not installed, and CUDA images need it; install the package libclc of "
               "clang's version, such as libclc-22";
    if (tools->libdevice[0] == '\0')
        return "libdevice.10.bc is not found, and CUDA images need it; it is a part of the CUDA "
               "toolkit (set CUDA_HOME) and of the package nvidia-cuda-toolkit";
    if (cubins && tools->ptxas[0] == '\0')
        return "ptxas is not found, and cubins need it; it is a part of the CUDA toolkit (set "
               "CUDA_HOME) and of the package nvidia-cuda-toolkit";
    return NULL;
}

const char *kc_tools_lack_nvcc(const struct kc_tools *tools)
{
    if (tools->nvcc[0] == '\0')
        return "nvcc is not found, and CUDA C++ needs it; it is a part of the CUDA toolkit (set "
               "CUDA_HOME) and of the package nvidia-cuda-toolkit";
    if (tools->ptxas[0] == '\0')
        return "ptxas is not found, and nvcc needs it; it is a part of the same CUDA toolkit";
    return NULL;
}
