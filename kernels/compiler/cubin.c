// A cubin is an ELF file. The GPU is in the flags of its header, whose layout changed with the version
// of the ABI (7, and 8 from CUDA 13 on); a letter ("sm_90a") stands in a note only, from 8 on. A
// kernel is a symbol with the mark ENTRY, and section ".nv.info.NAME" has its parameters, as
// records of NVIDIA's: format, attribute, and with format 4 the size of what follows.
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/compiler/compiler.h"

enum {
    MACHINE_CUDA = 190,
    ABI_7 = 7,
    ABI_8 = 8,
    FLAG_ACCELERATORS = 0x800, // of ABI 7: the letter 'a'
    SYMBOL_ENTRY = 0x10,       // of a symbol's st_other
    FORMAT_SIZED = 4,
    ATTRIBUTE_PARAMETER = 0x17,
    PARAMETER_BYTES = 12,
    PARAMETERS_MOST = 4096
};

struct cubin {
    const char *name;
    const unsigned char *data;
    size_t size;
    Elf64_Ehdr head;
    Elf64_Shdr names; // the section with the sections' names
    struct kc_entries *entries;
    struct weir_long_text *report;
};

static bool refuse(const struct cubin *cubin, const char *sentence)
{
    weir_long_text_add(cubin->report, "error: %s %s\n", cubin->name, sentence);
    return false;
}

static bool is_damaged(const struct cubin *cubin)
{
    return refuse(cubin, "is a damaged cubin: make it again");
}

// Copies `count` bytes from there; false: they are not in the file.
static bool get(const struct cubin *cubin, uint64_t at, void *out, size_t count)
{
    if (at > cubin->size || count > cubin->size - at)
        return false;
    memcpy(out, cubin->data + at, count);
    return true;
}

static bool get_section(const struct cubin *cubin, unsigned index, Elf64_Shdr *out)
{
    return get(cubin, cubin->head.e_shoff + (uint64_t)index * sizeof *out, out, sizeof *out) &&
           (out->sh_type == SHT_NOBITS ||
            (out->sh_offset <= cubin->size && out->sh_size <= cubin->size - out->sh_offset));
}

// Whether all sections are in the file.
static bool is_whole(const struct cubin *cubin)
{
    Elf64_Shdr section;
    for (unsigned i = 0; i < cubin->head.e_shnum; i++)
        if (!get_section(cubin, i, &section))
            return false;
    return true;
}

// A text of a section of texts; "" if there is none.
static const char *text_at(const struct cubin *cubin, const Elf64_Shdr *texts, uint32_t at)
{
    const char *start = (const char *)cubin->data + texts->sh_offset;
    if (texts->sh_type == SHT_NOBITS || at >= texts->sh_size ||
        !memchr(start + at, '\0', texts->sh_size - at))
        return "";
    return start + at;
}

// The first section of that name; false: there is none.
static bool find_section(const struct cubin *cubin, const char *name, Elf64_Shdr *out)
{
    for (unsigned i = 0; i < cubin->head.e_shnum; i++)
        if (get_section(cubin, i, out) &&
            strcmp(text_at(cubin, &cubin->names, out->sh_name), name) == 0)
            return out->sh_type != SHT_NOBITS;
    return false;
}

// The letter of "-arch sm_90a" in the note about the tools.
static char letter_of(const struct cubin *cubin, unsigned sm)
{
    Elf64_Shdr note;
    char wanted[32];
    const size_t length = (size_t)snprintf(wanted, sizeof wanted, "-arch sm_%u", sm);
    if (!find_section(cubin, ".note.nv.tkinfo", &note))
        return '\0';
    const unsigned char *at = cubin->data + note.sh_offset;
    for (uint64_t i = 0; i + length < note.sh_size; i++)
        if (memcmp(at + i, wanted, length) == 0 && at[i + length] >= 'a' && at[i + length] <= 'z')
            return (char)at[i + length];
    return '\0';
}

static bool read_target(const struct cubin *cubin, struct kc_image *image)
{
    const Elf64_Ehdr *head = &cubin->head;
    const unsigned abi = head->e_ident[EI_ABIVERSION];
    const unsigned sm = abi == ABI_7 ? head->e_flags & 0xff : head->e_flags >> 8 & 0xff;
    char letter[2] = "";
    if (head->e_machine != MACHINE_CUDA)
        return refuse(cubin, "is an ELF file, but not for an NVIDIA GPU: name a file that nvcc "
                             "-cubin has made");
    if ((abi != ABI_7 && abi != ABI_8) || sm == 0)
        return refuse(cubin, "is a cubin of a form that is not known here, so its GPU cannot be "
                             "read: make it with CUDA 11, 12 or 13, or use PTX");
    if (head->e_type != ET_EXEC)
        return refuse(cubin, "is a cubin that is not linked: make it with nvcc -cubin, without "
                             "-rdc=true");
    letter[0] = abi == ABI_8                        ? letter_of(cubin, sm)
                : head->e_flags & FLAG_ACCELERATORS ? 'a'
                                                    : '\0';
    image->format = "CUBIN";
    snprintf(image->target, sizeof image->target, "sm_%u%s", sm, letter);
    return true;
}

// The parameters are in any order.
static bool read_parameters(const struct cubin *cubin, const Elf64_Shdr *info,
                            struct kc_entry *entry)
{
    unsigned sizes[PARAMETERS_MOST] = {0};
    size_t count = 0;
    for (uint64_t at = 0; at + 4 <= info->sh_size;) {
        const unsigned char *record = cubin->data + info->sh_offset + at;
        const uint64_t size = record[0] == FORMAT_SIZED ? record[2] | record[3] << 8u : 0;
        if (size > info->sh_size - at - 4)
            return false;
        if (record[0] == FORMAT_SIZED && record[1] == ATTRIBUTE_PARAMETER) {
            if (size < PARAMETER_BYTES)
                return false;
            const unsigned number = record[8] | (unsigned)record[9] << 8;
            uint32_t packed;
            if (number >= PARAMETERS_MOST)
                return false;
            memcpy(&packed, record + 12, sizeof packed);
            sizes[number] = packed >> 18;
            count = number >= count ? number + 1 : count;
        }
        at += 4 + size;
    }
    for (size_t i = 0; i < count; i++)
        if (!kc_entry_add_size(entry, sizes[i]))
            return false;
    return true;
}

static bool read_kernel(const struct cubin *cubin, const char *name)
{
    Elf64_Shdr info;
    char section[1024];
    struct kc_entry *entry = kc_entry_add(cubin->entries, name, strlen(name));
    snprintf(section, sizeof section, ".nv.info.%s", name);
    return entry && (!find_section(cubin, section, &info) || read_parameters(cubin, &info, entry));
}

static bool read_kernels(const struct cubin *cubin)
{
    Elf64_Shdr symbols, names;
    Elf64_Sym symbol;
    if (!find_section(cubin, ".symtab", &symbols) || !get_section(cubin, symbols.sh_link, &names))
        return false;
    for (uint64_t at = 0; at + sizeof symbol <= symbols.sh_size; at += sizeof symbol) {
        if (!get(cubin, symbols.sh_offset + at, &symbol, sizeof symbol))
            return false;
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_other & SYMBOL_ENTRY &&
            !read_kernel(cubin, text_at(cubin, &names, symbol.st_name)))
            return false;
    }
    return true;
}

bool kc_cubin_read(const char *name, const void *data, size_t size, struct kc_image *out_image,
                   struct kc_entries *out_entries, struct weir_long_text *report)
{
    struct cubin cubin = {
        .name = name, .data = data, .size = size, .entries = out_entries, .report = report};
    if (!get(&cubin, 0, &cubin.head, sizeof cubin.head) ||
        cubin.head.e_ident[EI_CLASS] != ELFCLASS64 || !is_whole(&cubin) ||
        !get_section(&cubin, cubin.head.e_shstrndx, &cubin.names))
        return is_damaged(&cubin);
    return read_target(&cubin, out_image) && (read_kernels(&cubin) || is_damaged(&cubin));
}
