// The head of each kernel in PTX: ".visible .entry NAME(", then parameters such as
// ".param .u64 .ptr .global .align 4 NAME_param_0" and ".param .align 8 .b8 NAME_param_1[16]".
#include <ctype.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/compiler/compiler.h"

// A cubin is an ELF file. The GPU is in the flags of its header, whose layout changed with the version
// of the ABI (7, and 8 from CUDA 13 on); a letter ("sm_90a") stands in a note only, from 8 on. A
// kernel is a symbol with the mark ENTRY, and section ".nv.info.NAME" has its parameters, as
// records of NVIDIA's: format, attribute, and with format 4 the size of what follows.

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

static bool refuse_cubin(const struct cubin *cubin, const char *sentence)
{
    weir_long_text_add(cubin->report, "error: %s %s\n", cubin->name, sentence);
    return false;
}

static bool is_damaged(const struct cubin *cubin)
{
    return refuse_cubin(cubin, "is a damaged cubin: make it again");
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

static bool read_cubin_target(const struct cubin *cubin, struct kc_image *image)
{
    const Elf64_Ehdr *head = &cubin->head;
    const unsigned abi = head->e_ident[EI_ABIVERSION];
    const unsigned sm = abi == ABI_7 ? head->e_flags & 0xff : head->e_flags >> 8 & 0xff;
    char letter[2] = "";
    if (head->e_machine != MACHINE_CUDA)
        return refuse_cubin(cubin,
                            "is an ELF file, but not for an NVIDIA GPU: name a file that nvcc "
                            "-cubin has made");
    if ((abi != ABI_7 && abi != ABI_8) || sm == 0)
        return refuse_cubin(cubin,
                            "is a cubin of a form that is not known here, so its GPU cannot be "
                            "read: make it with CUDA 11, 12 or 13, or use PTX");
    if (head->e_type != ET_EXEC)
        return refuse_cubin(cubin,
                            "is a cubin that is not linked: make it with nvcc -cubin, without "
                            "-rdc=true");
    letter[0] = abi == ABI_8                        ? letter_of(cubin, sm)
                : head->e_flags & FLAG_ACCELERATORS ? 'a'
                                                    : '\0';
    image->format = "CUBIN";
    snprintf(image->target, sizeof image->target, "sm_%u%s", sm, letter);
    return true;
}

static bool kc_entry_add_size(struct kc_entry *entry, unsigned size)
{
    unsigned *grown = realloc(entry->sizes, (entry->count + 1) * sizeof *grown);
    if (!grown)
        return false;
    entry->sizes = grown;
    grown[entry->count++] = size;
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

static struct kc_entry *kc_entry_add(struct kc_entries *entries, const char *name, size_t length)
{
    struct kc_entry *grown = realloc(entries->items, (entries->count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    entries->items = grown;
    grown += entries->count;
    *grown = (struct kc_entry){.name = malloc(length + 1)};
    if (!grown->name)
        return NULL;
    memcpy(grown->name, name, length);
    grown->name[length] = '\0';
    entries->count++;
    return grown;
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

static bool kc_cubin_read(const char *name, const void *data, size_t size,
                          struct kc_image *out_image, struct kc_entries *out_entries,
                          struct weir_long_text *report)
{
    struct cubin cubin = {
        .name = name, .data = data, .size = size, .entries = out_entries, .report = report};
    if (!get(&cubin, 0, &cubin.head, sizeof cubin.head) ||
        cubin.head.e_ident[EI_CLASS] != ELFCLASS64 || !is_whole(&cubin) ||
        !get_section(&cubin, cubin.head.e_shstrndx, &cubin.names))
        return is_damaged(&cubin);
    return read_cubin_target(&cubin, out_image) && (read_kernels(&cubin) || is_damaged(&cubin));
}

struct reader {
    const char *name;
    struct kc_entries *entries;
    struct weir_long_text *report;
};

static bool refuse(const struct reader *reader, const char *sentence)
{
    weir_long_text_add(reader->report, "error: %s %s\n", reader->name, sentence);
    return false;
}

void kc_entries_finish(struct kc_entries *entries)
{
    for (size_t i = 0; i < entries->count; i++) {
        free(entries->items[i].name);
        free(entries->items[i].sizes);
    }
    free(entries->items);
    *entries = (struct kc_entries){0};
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '%';
}

// The next word, or character that is none; false at the end.
static bool next_token(const char **at, const char *end, char *out, size_t size)
{
    while (*at < end && isspace((unsigned char)**at))
        (*at)++;
    if (*at == end)
        return false;
    const char *start = *at;
    while (*at < end && is_word(**at))
        (*at)++;
    if (*at == start)
        (*at)++;
    snprintf(out, size, "%.*s", (int)(*at - start), start);
    return true;
}

// 4 for ".u32"; 0 for what is no type.
static unsigned type_size(const char *token)
{
    if (token[0] != '.' || !token[1] || !strchr("busf", token[1]))
        return 0;
    return (unsigned)strtoul(token + 2, NULL, 10) / 8;
}

// One parameter, until a ',' or ')'.
static bool read_parameter(const struct reader *reader, const char **at, const char *end,
                           struct kc_entry *entry, bool *out_last)
{
    char token[64] = "";
    unsigned size = 0, count = 1;
    while (next_token(at, end, token, sizeof token) && *token != ',' && *token != ')') {
        if (strcmp(token, ".shared") == 0)
            return refuse(reader, "has a kernel with a pointer to shared memory as a parameter, "
                                  "which CUDA's driver does not load; build the OpenCL C that it "
                                  "comes from");
        if (size == 0)
            size = type_size(token);
        if (*token == '[' && next_token(at, end, token, sizeof token))
            count = (unsigned)strtoul(token, NULL, 10);
    }
    *out_last = *token != ',';
    if (size == 0)
        return true; // an empty list
    return kc_entry_add_size(entry, size * count) || refuse(reader, "does not fit into memory");
}

static bool read_entry(const struct reader *reader, const char **at, const char *end)
{
    char token[64];
    const char *name = *at;
    while (name < end && isspace((unsigned char)*name))
        name++;
    size_t length = 0;
    while (name + length < end && is_word(name[length]))
        length++;
    *at = name + length;
    struct kc_entry *entry = kc_entry_add(reader->entries, name, length);
    if (!entry)
        return refuse(reader, "does not fit into memory");
    bool last = !next_token(at, end, token, sizeof token) || *token != '(';
    while (!last)
        if (!read_parameter(reader, at, end, entry, &last))
            return false;
    return true;
}

// After a directive of that name at the start of a line; NULL: there is none.
static const char *find_directive(const char *text, const char *end, const char *name)
{
    const size_t length = strlen(name);
    for (const char *line = text; line < end; line++) {
        while (line < end && isspace((unsigned char)*line))
            line++;
        if ((size_t)(end - line) > length && memcmp(line, name, length) == 0 &&
            !is_word(line[length]))
            return line + length;
        line = memchr(line, '\n', (size_t)(end - line));
        if (!line)
            break;
    }
    return NULL;
}

// "sm_90" and what follows it.
static bool read_target(const struct reader *reader, const char *text, const char *end,
                        struct kc_image *image)
{
    const char *at = find_directive(text, end, ".target");
    char token[64];
    if (!at)
        return refuse(reader, "is neither a cubin nor PTX: name a file that nvcc -cubin or nvcc "
                              "-ptx has made");
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (!next_token(&at, end, token, sizeof token) || strncmp(token, "sm_", 3) != 0 ||
        !isdigit((unsigned char)token[3]) || strlen(token) >= sizeof image->target)
        return refuse(reader, "is PTX for something else than an sm_ architecture");
    snprintf(image->target, sizeof image->target, "%.15s", token);
    while (next_token(&at, stop ? stop : end, token, sizeof token))
        if (strcmp(token, "texmode_independent") == 0)
            return refuse(reader, "is PTX of an OpenCL compiler (texmode_independent), which "
                                  "CUDA's driver does not load; build the OpenCL C that it comes "
                                  "from");
    return true;
}

static bool read_ptx(const struct reader *reader, const char *text, size_t size,
                     struct kc_image *image)
{
    static const char mark[] = ".entry";
    const char *end = text + size;
    image->format = "PTX";
    if (!read_target(reader, text, end, image))
        return false;
    for (const char *at = text; (at = memchr(at, '.', (size_t)(end - at)));) {
        const bool is_entry = (size_t)(end - at) > sizeof mark &&
                              memcmp(at, mark, sizeof mark - 1) == 0 &&
                              isspace((unsigned char)at[sizeof mark - 1]);
        at += is_entry ? sizeof mark : 1;
        if (is_entry && !read_entry(reader, &at, end))
            return false;
    }
    return true;
}

bool kc_image_read(const char *name, const void *data, size_t size, struct kc_image *out_image,
                   struct kc_entries *out_entries, struct weir_long_text *report)
{
    static const unsigned char fatbin[] = {0x50, 0xed, 0x55, 0xba};
    const struct reader reader = {name, out_entries, report};
    if (size > 4 && memcmp(data, "\177ELF", 4) == 0)
        return kc_cubin_read(name, data, size, out_image, out_entries, report);
    if (size > 4 && memcmp(data, fatbin, sizeof fatbin) == 0)
        return refuse(&reader, "is a fatbin: take the cubins out of it with cuobjdump "
                               "--extract-elf all");
    if (memchr(data, '\0', size))
        return refuse(&reader, "is neither a cubin nor PTX: name a file that nvcc -cubin or nvcc "
                               "-ptx has made");
    return read_ptx(&reader, data, size, out_image);
}
