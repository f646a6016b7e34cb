// The module that clang makes of OpenCL C, and libclc and libdevice are linked into, made fit for CUDA as text:
//   - clang 20 and later put a kernel's code into a function beside it, `__clang_ocl_kern_imp_`,
//     and never inline that: here it is. Functions that are no kernels become internal; so do those that
//     are declared `inline`, which clang else takes to be defined elsewhere too.
//   - The architecture of the first step is taken away.
//   - What a `restrict` pointer points to is taken to change at barriers.
//   - The block that a kernel requires, which clang does not pass on, is added.
//   - Memory of the address space `constant` becomes global memory: that of CUDA has 64 KiB and no
//     pointers from the host, and caches for data that is only read are as good: loads
//     from it are marked as invariant, so that they become ld.global.nc.
//   - The code of a kernel with images is there for RGBA of float, and for other formats.
//   - printf becomes the driver's vprintf: LLVM puts its arguments into memory as that wants them, and
//     kernels/ptx replaces it.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "kernels/compiler/compiler.h"

#define INLINED "#999999"

// How many bytes to leave out at `at`, and what to put there.
static size_t change(const char *at, const char **out_instead)
{
    static const char constant[] = "addrspace(4)";
    static const char print[] = "@printf(";
    *out_instead = "";
    if (kc_starts_with(at, print)) {
        *out_instead = "@vprintf(";
        return sizeof print - 1;
    }
    if (kc_starts_with(at, constant)) {
        *out_instead = "addrspace(1)";
        return sizeof constant - 1;
    }
    if (kc_starts_with(at, "\"target-cpu\"=\"") || kc_starts_with(at, "\"target-features\"=\"")) {
        const char *value = strchr(at, '=') + 2;
        const char *end = strchr(value, '"');
        return end ? (size_t)(end + 1 - at) : 0;
    }
    return 0;
}

// A name in quotes, @"gr\C3\B6\C3\9Fe": PTX has the letters of ASCII only. Returns what follows.
static const char *add_ascii(const char *at, const char *end, struct weir_long_text *out)
{
    const char *stop = memchr(at + 2, '"', (size_t)(end - at - 2));
    weir_long_text_add(out, "@weir_utf8_");
    for (at += 2; at < end && at < stop; at++)
        weir_long_text_add(out, "%c", weir_text_is_word(*at) ? *at : '_');
    return stop ? stop + 1 : end;
}

static void change_part(const char *line, const char *end, struct weir_long_text *out)
{
    const char *kept = line;
    for (const char *at = line; at < end;) {
        const char *instead;
        if (*at == '@' && at + 2 < end && at[1] == '"') {
            weir_long_text_add(out, "%.*s", (int)(at - kept), kept);
            kept = at = add_ascii(at, end, out);
            continue;
        }
        const size_t length = *at == 'a' || *at == '"' || *at == '@' ? change(at, &instead) : 0;
        if (length == 0) { // what a program's own string says is left alone
            at = *at == '"' ? kc_string_end(at) : at + 1;
            continue;
        }
        weir_long_text_add(out, "%.*s%s", (int)(at - kept), kept, instead);
        kept = at += length;
    }
    weir_long_text_add(out, "%.*s", (int)(end - kept), kept);
}

// Formats of <weir/image.h>, and what says that one is none of these. The first one is any with pixels of 16 bytes.
#define RGBA_32 0x10de10b5u
#define RGBA_HALF 0x10dd10b5u
#define RGBA_UNORM8 0x10d210b5u
#define ANY_FORMAT 0x80000000u // WEIR__ANY of images.cl

// The first number of nodes that the module does not have.
#define FIRST_NODE 1000000u
#define NO_FIELDS "!999998"

// Whether the line loads from __constant memory.
static bool loads_constant(const char *line)
{
    const char *load = line + strspn(line, " ");
    load += strcspn(load, " \n");
    if (!kc_starts_with(load, " = load ") || kc_starts_with(load, " = load volatile"))
        return false;
    const char *from = kc_in_line(load, ", ptr");
    return from && kc_starts_with(from, ", ptr addrspace(4) ");
}

static void change_line(const char *line, const char *end, struct weir_long_text *out)
{
    change_part(line, end, out);
    weir_long_text_add(out, "%s\n", loads_constant(line) ? ", !invariant.load " NO_FIELDS : "");
}

static const struct kc_kernel *kernel_of(const struct kc_kernels *kernels, const char *line)
{
    const char *name = kc_in_line(line, KC_KERNEL_CODE);
    name = name ? name + strlen(KC_KERNEL_CODE) : kc_in_line(line, "ptx_kernel void @");
    name += name && kc_starts_with(name, "ptx_kernel ") ? strlen("ptx_kernel void @") : 0;
    for (size_t i = 0; name && i < kernels->count; i++) {
        const size_t length = strlen(kernels->items[i].name);
        if (strncmp(name, kernels->items[i].name, length) == 0 && name[length] == '(')
            return &kernels->items[i];
    }
    return NULL;
}

static bool any_waits(const struct kc_kernels *kernels)
{
    bool any = false;
    for (size_t i = 0; i < kernels->count; i++)
        any = any || kernels->items[i].waits;
    return any;
}

// LLVM takes it that a barrier leaves alone what a `noalias` pointer points to, although other work-items write that:
// such a pointer is to global memory, and in a kernel that waits for others it is const.
static bool may_be_noalias(const struct kc_kernels *kernels, const struct kc_kernel *kernel,
                           size_t index)
{
    if (!kernel)
        return !any_waits(kernels);
    return index < kernel->parameter_count &&
           (!kernel->waits || !kernel->parameters[index].writable);
}

// Adds a definition with `noalias` where that is right.
static void change_parameters(const struct kc_language *language, const struct kc_kernels *kernels,
                              const char *line, const char *end, struct weir_long_text *out)
{
    static const char noalias[] = " noalias", global[] = "ptr addrspace(1)",
                      constant[] = "ptr addrspace(4)";
    const struct kc_kernel *kernel = kernel_of(kernels, line);
    const char *kept = line, *at = kc_in_line(line, "@");
    size_t depth = 0, index = 0;
    bool is_fit = false;
    at = at ? at + strcspn(at, "(\n") : end;
    for (bool begins = true; at < end && (begins || depth > 0); at++) {
        depth += *at == '(';
        depth -= *at == ')';
        index += depth == 1 && *at == ',';
        if (begins || (depth == 1 && *at == ',')) {
            const char *type = at + (begins ? 1 : 2);
            is_fit = (kc_starts_with(type, global) || kc_starts_with(type, constant)) &&
                     may_be_noalias(kernels, kernel, index);
            begins = false;
            if (is_fit && language->restricted && kernel) {
                type += sizeof global - 1;
                weir_long_text_add(out, "%.*s%s", (int)(type - kept), kept,
                                   kc_starts_with(type, noalias) ? "" : noalias);
                kept = type;
            }
        }
        if (!is_fit && kc_starts_with(at, noalias)) {
            weir_long_text_add(out, "%.*s", (int)(at - kept), kept);
            kept = at + sizeof noalias - 1;
        }
    }
    weir_long_text_add(out, "%.*s", (int)(end - kept), kept);
}

// A definition. Only kernels are visible from outside; a kernel's code is always inlined.
static void change_definition(const char *line, const char *end, struct weir_long_text *out)
{
    static const char visible[] = "define dso_local ";
    static const char inline_only[] = "define available_externally dso_local ";
    const char *code = kc_in_line(line, KC_KERNEL_CODE);
    const char *rest = line + sizeof visible - 1;
    const char *attributes = NULL;
    if (kc_starts_with(line, inline_only)) {
        weir_long_text_add(out, "define internal ");
        change_line(line + sizeof inline_only - 1, end, out);
        return;
    }
    if (!kc_starts_with(line, visible) || kc_starts_with(rest, "ptx_kernel ")) {
        change_line(line, end, out);
        return;
    }
    weir_long_text_add(out, "define internal ");
    for (const char *at = rest; code && code < end && at + 2 < end; at++)
        if (at[0] == ' ' && at[1] == '#' && isdigit((unsigned char)at[2]))
            attributes = at + 1;
    if (attributes) {
        change_part(rest, attributes, out);
        weir_long_text_add(out, INLINED);
        rest = attributes + strcspn(attributes, " \n");
    }
    change_line(rest, end, out);
}

// Reads the format of each layout among the arguments of a call, and whether they are the same. Returns how many there
// are.
static size_t add_layouts(const char *line, const char *end, struct weir_long_text *out)
{
    static const char layout[] = "byval(%struct.weir_image_layout) align 4 %";
    size_t k = 0;
    for (const char *at = line; at < end && (at = kc_in_line(at, layout)); k++) {
        at += sizeof layout - 1;
        const unsigned long value = strtoul(at, NULL, 10);
        weir_long_text_add(out,
                           "  %%weir.at.%zu = getelementptr i8, ptr %%%lu, i64 20\n"
                           "  %%weir.bytes.%zu = getelementptr i8, ptr %%%lu, i64 24\n"
                           "  %%weir.format.%zu = load i32, ptr %%weir.at.%zu, align 4\n"
                           "  %%weir.size.%zu = load i32, ptr %%weir.bytes.%zu, align 4\n"
                           "  %%weir.plain.%zu = and i32 %%weir.format.%zu, %u\n"
                           "  %%weir.long.%zu = icmp eq i32 %%weir.size.%zu, 16\n",
                           k, value, k, value, k, k, k, k, k, k, ~ANY_FORMAT, k, k);
        weir_long_text_add(
            out,
            "  %%weir.key.%zu = select i1 %%weir.long.%zu, i32 %u, "
            "i32 %%weir.format.%zu\n"
            "  %%weir.is.%zu = icmp eq i32 %%weir.key.%zu, %%weir.key.0\n"
            "  %%weir.same.%zu = select i1 %%weir.is.%zu, i32 %%weir.%s.%zu, i32 0\n",
            k, k, RGBA_32, k, k, k, k, k, k > 0 ? "same" : "key", k - (k > 0));
    }
    return k;
}

// A kernel with images is there for each of some formats that all of its images may have, where no access has branches
// that keep loads apart and take registers, and for any formats. Its code is inlined in all places. Whether the line is
// the call of such a kernel.
static bool add_formats(const char *line, const char *end, struct weir_long_text *out)
{
    static const char call[] = "  call void " KC_KERNEL_CODE;
    static const unsigned formats[] = {RGBA_32, RGBA_HALF, RGBA_UNORM8}, bytes[] = {16, 8, 4};
    const size_t count = kc_starts_with(line, call) ? add_layouts(line, end, out) : 0;
    if (count == 0)
        return false;
    weir_long_text_add(out, "  switch i32 %%weir.same.%zu, label %%weir.any [", count - 1);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        weir_long_text_add(out, " i32 %u, label %%weir.known.%zu", formats[i], i);
    weir_long_text_add(out, " ]\n");
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        weir_long_text_add(out, "weir.known.%zu:\n", i);
        for (size_t k = 0; k < count; k++)
            weir_long_text_add(out,
                               "  %%weir.%zu.%zu = select i1 %s, i32 %%weir.plain.%zu, i32 %u\n"
                               "  store i32 %%weir.%zu.%zu, ptr %%weir.at.%zu, align 4\n"
                               "  store i32 %u, ptr %%weir.bytes.%zu, align 4\n",
                               i, k, formats[i] == RGBA_32 ? "true" : "false", k, formats[i], i, k,
                               k, bytes[i], k);
        change_line(line, end, out);
        weir_long_text_add(out, "  ret void\n");
    }
    weir_long_text_add(out, "weir.any:\n");
    for (size_t k = 0; k < count; k++)
        weir_long_text_add(out,
                           "  %%weir.any.%zu = or i32 %%weir.format.%zu, %u\n"
                           "  store i32 %%weir.any.%zu, ptr %%weir.at.%zu, align 4\n",
                           k, k, ANY_FORMAT, k, k);
    return true;
}

static void add_blocks(const struct kc_kernels *kernels, struct weir_long_text *out)
{
    for (size_t i = 0; i < kernels->count; i++) {
        const struct kc_kernel *kernel = &kernels->items[i];
        if (kernel->block[0] > 0)
            weir_long_text_add(out,
                               "!nvvm.annotations = !{!%zu}\n"
                               "!%zu = !{ptr @%s, !\"reqntidx\", i32 %u, !\"reqntidy\", i32 %u, "
                               "!\"reqntidz\", i32 %u}\n",
                               FIRST_NODE + i, FIRST_NODE + i, kernel->name, kernel->block[0],
                               kernel->block[1], kernel->block[2]);
    }
}

bool kc_change_module(const struct kc_context *context, const struct kc_kernels *kernels,
                      const char *ir, struct weir_long_text *out)
{
    bool images = false;
    for (const char *line = ir; *line;) {
        const char *newline = strchr(line, '\n');
        const char *end = newline ? newline : line + strlen(line);
        if (kc_starts_with(line, "define ")) {
            struct weir_long_text definition = {0};
            change_parameters(context->language, kernels, line, end, &definition);
            if (definition.text)
                change_definition(definition.text, definition.text + definition.used, out);
            out->failed = out->failed || definition.failed;
            free(definition.text);
        } else {
            images = add_formats(line, end, out) || images;
            change_line(line, end, out);
        }
        line = newline ? newline + 1 : end;
    }
    weir_long_text_add(out,
                       "attributes " INLINED
                       " = { alwaysinline convergent norecurse nounwind }\n" NO_FIELDS " = !{}\n");
    add_blocks(kernels, out);
    if (context->language->fast) // libdevice asks by __nvvm_reflect("__CUDA_FTZ")
        weir_long_text_add(out,
                           "!llvm.module.flags = !{!%u}\n"
                           "!%u = !{i32 4, !\"nvvm-reflect-ftz\", i32 1}\n",
                           FIRST_NODE - 1, FIRST_NODE - 1);
    return images;
}
