// What `weir kernels` needs. Programs run without all of it, so what is missing is a note.
#include "cli/doctor/doctor.h"
#include "kernels/compiler/compiler.h"

static void add_part(struct doctor *doctor, const char *name, const char *path)
{
    if (path[0] != '\0')
        doctor_add(doctor, DOCTOR_OK, "weir kernels", NULL, "%s: %s", name, path);
}

void doctor_kernel_compiler(struct doctor *doctor)
{
    struct kc_tools tools = {0};
    kc_tools_find(&tools);
    add_part(doctor, "clang", tools.clang);
    add_part(doctor, "libclc", tools.libclc);
    add_part(doctor, "libdevice", tools.libdevice);
    add_part(doctor, "ptxas", tools.ptxas);
    add_part(doctor, "nvcc", tools.nvcc); // only for CUDA C++, so not missed
    const char *lack = kc_tools_lack(&tools, true);
    if (tools.clang[0] == '\0')
        doctor_add(doctor, DOCTOR_NOTE, "weir kernels", NULL,
                   "clang is not installed, and compiling kernels needs it; install clang and "
                   "libclc of one version, such as clang-22 and libclc-22");
    else if (lack)
        doctor_add(doctor, DOCTOR_NOTE, "weir kernels", NULL, "%s", lack);
}
