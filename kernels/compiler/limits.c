// CUDA's room for a kernel's own memory: the local arrays that it declares, and what each work-item has. The PTX
// says both:
//
//     .shared .align 4 .b8 NAME_$_VARIABLE[65536];
//     .visible .entry NAME(
//         .local .align 4 .b8 __local_depot0[800000];
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/compiler/compiler.h"

enum {
    LOCAL_MOST = 48 << 10,
    PRIVATE_MOST = 512 << 10,
    NAME_SIZE = 512
};

static struct kc_kernel *find_kernel(struct kc_kernels *kernels, const char *name, size_t length)
{
    for (size_t i = 0; i < kernels->count; i++)
        if (strlen(kernels->items[i].name) == length &&
            memcmp(kernels->items[i].name, name, length) == 0)
            return &kernels->items[i];
    return NULL;
}

// "NAME[65536]" at the end of a declaration.
static unsigned long long bytes_of(const char *line)
{
    const char *open = kc_in_line(line, "[");
    return open ? strtoull(open + 1, NULL, 10) : 0;
}

// The kernel of a variable in local memory.
static struct kc_kernel *owner_of(struct kc_kernels *kernels, const char *line)
{
    const char *mark = kc_in_line(line, "_$_");
    const char *start = mark;
    while (start && start > line && !isspace((unsigned char)start[-1]))
        start--;
    return mark ? find_kernel(kernels, start, (size_t)(mark - start)) : NULL;
}

static struct kc_kernel *entry_of(struct kc_kernels *kernels, const char *line)
{
    const char *at = kc_in_line(line, ".entry ");
    return at ? find_kernel(kernels, at + 7, strcspn(at + 7, "( \t\n")) : NULL;
}

static void check_local(struct kc_context *context, struct kc_kernel *kernel,
                        unsigned long long bytes)
{
    if (bytes > LOCAL_MOST && !kernel->refused)
        kc_refuse(
            context, kernel, NULL,
            "has __local arrays of %llu bytes: CUDA has %d for what a kernel declares; pass a "
            "__local pointer (weir_local())",
            bytes, LOCAL_MOST);
}

static void check_private(struct kc_context *context, struct kc_kernel *kernel,
                          unsigned long long bytes)
{
    if (bytes > PRIVATE_MOST && !kernel->refused)
        kc_refuse(context, kernel, NULL,
                  "has %llu bytes of variables in each work-item: CUDA has %d; use a buffer", bytes,
                  PRIVATE_MOST);
}

void kc_check_memory(struct kc_context *context, const char *ptx, struct kc_kernels *kernels)
{
    unsigned long long *local = calloc(kernels->count + 1, sizeof *local);
    struct kc_kernel *current = NULL, *found;
    for (const char *line = ptx; line && local; line = kc_next_line(line)) {
        const char *at = line + strspn(line, " \t");
        if (strncmp(at, ".shared ", 8) == 0 && (found = owner_of(kernels, line)))
            local[found - kernels->items] += bytes_of(line);
        else if (kc_in_line(line, ".entry ") || kc_in_line(line, ".func "))
            current = entry_of(kernels, line);
        else if (strncmp(at, ".local ", 7) == 0 && current)
            check_private(context, current, bytes_of(line));
    }
    for (size_t i = 0; i < kernels->count && local; i++)
        check_local(context, &kernels->items[i], local[i]);
    context->report->failed = context->report->failed || !local;
    free(local);
}
