#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/kernels/kernels.h"

enum {
    LOWEST = 75, // that libdevice and the code around the kernels are made for
    HIGHEST = 999
};

static void add(struct kernels_architectures *list, const char *name, size_t length)
{
    for (size_t i = 0; i < list->count; i++)
        if (strlen(list->names[i]) == length && strncmp(list->names[i], name, length) == 0)
            return;
    snprintf(list->names[list->count], sizeof *list->names, "%.*s", (int)length, name);
    list->count++;
}

void kernels_architectures_add(struct kernels_architectures *list, unsigned number)
{
    char name[16];
    snprintf(name, sizeof name, "%u", number);
    add(list, name, strlen(name));
}

// How many characters: "90", and with a letter "90a". 0: it is none.
static size_t architecture(const char *text, bool letters)
{
    char *end;
    const unsigned long number = strtoul(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *text == '0' || number < LOWEST || number > HIGHEST)
        return 0;
    if (letters && islower((unsigned char)*end))
        end++;
    return *end == ',' || *end == '\0' ? (size_t)(end - text) : 0;
}

bool kernels_architectures_parse(const char *option, const char *text, bool letters,
                                 struct kernels_architectures *out)
{
    *out = (struct kernels_architectures){0};
    if (strcmp(text, "none") == 0)
        return true;
    for (const char *at = text;; at++) {
        const size_t length = architecture(at, letters);
        if (length == 0) {
            cli_error("--%s takes architectures from %d on, separated by commas, such as 80,90; "
                      "not '%s'",
                      option, LOWEST, text);
            return false;
        }
        if (out->count == KERNELS_ARCHITECTURES_MOST) {
            cli_error("--%s takes %d architectures at most", option, KERNELS_ARCHITECTURES_MOST);
            return false;
        }
        add(out, at, length);
        at += length;
        if (*at == '\0')
            return true;
    }
}

// The help of ptxas has a list of them: 'sm_89','sm_90','sm_90a'.
bool kernels_architectures_keep_known(const struct kc_tools *tools,
                                      struct kernels_architectures *list)
{
    struct kc_job job = {.output_too = true};
    size_t kept = 0;
    kc_job_add(&job, tools->ptxas);
    kc_job_add(&job, "--help");
    kc_run(&job, 1);
    const bool told = job.status == 0 && job.errors && strstr(job.errors, "'sm_");
    for (size_t i = 0; told && i < list->count; i++) {
        char quoted[16];
        snprintf(quoted, sizeof quoted, "'sm_%s'", list->names[i]);
        if (strstr(job.errors, quoted))
            memmove(list->names[kept++], list->names[i], sizeof *list->names);
    }
    list->count = kept;
    kc_jobs_finish(&job, 1);
    if (!told)
        cli_error("%s --help does not list GPUs: mend the CUDA toolkit, or leave it out with "
                  "CUDA_HOME=none",
                  tools->ptxas);
    return told;
}

bool kernels_architectures_are_known(const struct kc_tools *tools,
                                     const struct kernels_architectures *list)
{
    struct kernels_architectures known = *list;
    if (!kernels_architectures_keep_known(tools, &known))
        return false;
    size_t i = 0;
    while (i < known.count && strcmp(known.names[i], list->names[i]) == 0)
        i++;
    if (i == list->count)
        return true;
    cli_error("%s makes no cubins for %s: install a CUDA toolkit that does, or name another "
              "architecture",
              tools->ptxas, list->names[i]);
    return false;
}

struct kc_list kernels_architectures_list(struct kernels_architectures *list)
{
    for (size_t i = 0; i < list->count; i++)
        list->items[i] = list->names[i];
    return (struct kc_list){list->items, list->count};
}
