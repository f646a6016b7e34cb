// CUDA's limits: of blocks and parameters, which the signature says; and of a kernel's own memory, the local arrays
// that it declares and what each work-item has, of which the PTX says:
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
    BLOCK_MOST = 1024,
    BLOCK_DEPTH_MOST = 64,
    SUB_GROUP = 32,
    PARAMETERS_MOST = 32764,
    LOCAL_MOST = 48 << 10,
    PRIVATE_MOST = 512 << 10,
    NAME_SIZE = 512
};

unsigned kc_parameter_bytes(const struct kc_kernel *kernel)
{
    unsigned bytes = 0;
    for (size_t i = 0; i < kernel->parameter_count; i++)
        bytes +=
            kernel->parameters[i].kind == KC_VALUE ? (kernel->parameters[i].size + 7) / 8 * 8 : 8;
    return bytes;
}

void kc_check_limits(struct kc_context *context, struct kc_kernel *kernel)
{
    const unsigned *block = kernel->block;
    const uint64_t items = (uint64_t)block[0] * block[1] * block[2];
    const unsigned bytes = kc_parameter_bytes(kernel);
    if (items > BLOCK_MOST)
        kc_refuse(
            context, kernel, NULL,
            "requires blocks of %u x %u x %u, %llu work-items: a block of CUDA has at most %d; "
            "require a smaller one",
            block[0], block[1], block[2], (unsigned long long)items, BLOCK_MOST);
    else if (block[2] > BLOCK_DEPTH_MOST)
        kc_refuse(
            context, kernel, NULL,
            "requires blocks of %u in the third dimension: CUDA has at most %d; use the first",
            block[2], BLOCK_DEPTH_MOST);
    if (kernel->sub_group > 0 && kernel->sub_group != SUB_GROUP)
        kc_refuse(context, kernel, NULL,
                  "requires sub-groups of %u work-items: CUDA's have %d; require these, or take "
                  "get_sub_group_size()",
                  kernel->sub_group, SUB_GROUP);
    if (bytes > PARAMETERS_MOST)
        kc_refuse(context, kernel, NULL,
                  "has parameters of %u bytes: CUDA takes at most %d; pass a buffer", bytes,
                  PARAMETERS_MOST);
}

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
