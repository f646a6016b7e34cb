// Cubins of both versions of the ABI, made here, as no toolkit is needed to read them; and what is left
// of one that is damaged, or of PTX.
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/compiler/compiler.h"
#include "tests/support/test.h"

enum {
    SECTIONS = 6,
    FILE_SIZE = 2048,
    AT_SECTIONS = 64,
    AT_TEXTS = 512,
    AT_SYMBOLS = 1024,
    AT_INFO = 1280,
    AT_NOTE = 1536,
    MACHINE = 190
};

// The names of the sections and of the kernel, and where each begins.
static const char texts[] = "\0.symtab\0.nv.info.k\0.note.nv.tkinfo\0.strtab\0k\0helper";
enum {
    TEXT_SYMTAB = 1,
    TEXT_INFO = 9,
    TEXT_NOTE = 20,
    TEXT_STRTAB = 36,
    TEXT_K = 44,
    TEXT_HELPER = 46
};

struct file {
    unsigned char data[FILE_SIZE];
    size_t size;
};

static void put(struct file *file, size_t at, const void *from, size_t size)
{
    memcpy(file->data + at, from, size);
}

static void put_section(struct file *file, unsigned index, unsigned name, unsigned type, size_t at,
                        size_t size)
{
    const Elf64_Shdr section = {
        .sh_name = name, .sh_type = type, .sh_offset = at, .sh_size = size, .sh_link = 2};
    put(file, AT_SECTIONS + index * sizeof section, &section, sizeof section);
}

static void put_head(struct file *file, unsigned abi, unsigned flags, unsigned type)
{
    Elf64_Ehdr head = {.e_type = (Elf64_Half)type,
                       .e_machine = MACHINE,
                       .e_flags = flags,
                       .e_shoff = AT_SECTIONS,
                       .e_shnum = SECTIONS,
                       .e_shstrndx = 2};
    memcpy(head.e_ident, "\177ELF", 4);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_ident[EI_ABIVERSION] = (unsigned char)abi;
    put(file, 0, &head, sizeof head);
}

// A record of a parameter: its number, its offset, and its size.
static void put_parameter(struct file *file, size_t index, unsigned number, unsigned size)
{
    const uint32_t packed = size << 18 | 0x1f000u;
    unsigned char record[16] = {4, 0x17, 12, 0, 0, 0, 0, 0, (unsigned char)number, 0, 8, 0};
    memcpy(record + 12, &packed, sizeof packed);
    put(file, AT_INFO + 4 + index * sizeof record, record, sizeof record);
}

static struct file make(unsigned abi, unsigned flags, unsigned type, const char *note)
{
    struct file file = {.size = FILE_SIZE};
    const unsigned char no_parameter[] = {3, 0x1b, 0xff, 0};
    const Elf64_Sym symbols[] = {
        {0},
        {.st_name = TEXT_K, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_other = 0x10},
        {.st_name = TEXT_HELPER, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)},
    };
    put_head(&file, abi, flags, type);
    put_section(&file, 1, TEXT_SYMTAB, SHT_SYMTAB, AT_SYMBOLS, sizeof symbols);
    put_section(&file, 2, TEXT_STRTAB, SHT_STRTAB, AT_TEXTS, sizeof texts);
    put_section(&file, 3, TEXT_INFO, SHT_PROGBITS, AT_INFO, 4 + 2 * 16);
    put_section(&file, 4, TEXT_NOTE, SHT_NOTE, AT_NOTE, strlen(note) + 1);
    put_section(&file, 5, 0, SHT_NOBITS, 1u << 30, 1u << 30);
    put(&file, AT_TEXTS, texts, sizeof texts);
    put(&file, AT_SYMBOLS, symbols, sizeof symbols);
    put(&file, AT_INFO, no_parameter, sizeof no_parameter);
    put_parameter(&file, 0, 1, 4);
    put_parameter(&file, 1, 0, 8);
    put(&file, AT_NOTE, note, strlen(note) + 1);
    return file;
}

// What was read last.
static struct {
    const char *format;
    char target[KC_TARGET_SIZE];
    struct kc_kernels kernels;
    char message[256];
} found;

// From memory of just that size and a zero, so that the address sanitizer sees what is read beyond it.
static bool read_file(const struct file *file)
{
    struct weir_long_text report = {0};
    char *copy = malloc(file->size + 1);
    kc_kernels_finish(&found.kernels);
    if (!copy)
        exit(EXIT_FAILURE);
    memcpy(copy, file->data, file->size);
    copy[file->size] = '\0';
    const bool fine = kc_image_read("k.cubin", copy, file->size, &found.format, found.target,
                                    &found.kernels, &report);
    free(copy);
    snprintf(found.message, sizeof found.message, "%s", report.text ? report.text : "");
    free(report.text);
    return fine;
}

static void expect_target(const struct file *file, const char *format, const char *target,
                          size_t count, unsigned second)
{
    EXPECT_TRUE(read_file(file));
    EXPECT_STR_EQ(found.format, format);
    EXPECT_STR_EQ(found.target, target);
    ASSERT_UINT_EQ(found.kernels.count, count);
    const struct kc_kernel *first = &found.kernels.items[0];
    EXPECT_STR_EQ(first->name, "k");
    ASSERT_UINT_EQ(first->parameter_count, 2);
    EXPECT_UINT_EQ(first->parameters[0].size, 8);
    EXPECT_UINT_EQ(first->parameters[1].size, second);
}

static void expect_refused(const struct file *file, const char *part)
{
    EXPECT_FALSE(read_file(file));
    EXPECT_CONTAINS(found.message, "error: k.cubin ");
    EXPECT_CONTAINS(found.message, part);
}

// As CUDA 12 and 13 write them.
static const char no_letter[] = "-arch sm_90 -m 64", letter[] = "-arch sm_90a -m 64";

WEIR_TEST(Cubin, TellsItsGpuAndItsKernels)
{
    static const struct {
        unsigned abi, flags;
        const char *note, *target;
    } rows[] = {
        {7, 0x5a055a, "", "sm_90"},       {7, 0x5a0d5a, "", "sm_90a"},
        {8, 0x6005a04, letter, "sm_90a"}, {8, 0x6005a04, no_letter, "sm_90"},
        {8, 0x6006402, letter, "sm_100"}, // the note is of something else
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct file file = make(rows[i].abi, rows[i].flags, ET_EXEC, rows[i].note);
        expect_target(&file, WEIR_IMAGE_CUBIN, rows[i].target, 1, 4);
    }
}

WEIR_TEST(Cubin, OfAnotherKindIsRefused)
{
    struct file file = make(9, 0x6005a04, ET_EXEC, letter);
    expect_refused(&file, "is a cubin of a form that is not known here");
    file = make(7, 0x500, ET_EXEC, letter);
    expect_refused(&file, "is a cubin of a form that is not known here");
    file = make(8, 0x6005a04, ET_REL, letter);
    expect_refused(&file, "is a cubin that is not linked");
    file = make(8, 0x6005a04, ET_EXEC, letter);
    ((Elf64_Ehdr *)(void *)file.data)->e_machine = EM_X86_64;
    expect_refused(&file, "is an ELF file, but not for an NVIDIA GPU");
    file = make(8, 0x6005a04, ET_EXEC, letter);
    file.data[EI_CLASS] = ELFCLASS32;
    expect_refused(&file, "is a damaged cubin");
}

WEIR_TEST(Cubin, CutOffIsRefused)
{
    struct file file = make(8, 0x6005a04, ET_EXEC, letter);
    for (file.size = 5; file.size < AT_INFO; file.size++)
        expect_refused(&file, "is a damaged cubin");
}

// A record without its bytes, at the very end of the file.
WEIR_TEST(Cubin, ParameterCutOff)
{
    struct file file = make(8, 0x6005a04, ET_EXEC, letter);
    const unsigned char record[] = {4, 0x17, 0, 0};
    put_section(&file, 3, TEXT_INFO, SHT_PROGBITS, FILE_SIZE - sizeof record, sizeof record);
    put(&file, FILE_SIZE - sizeof record, record, sizeof record);
    expect_refused(&file, "is a damaged cubin");
}

// Nothing is read beyond the file, whatever it says.
WEIR_TEST(Cubin, DamagedInOnePlace)
{
    static const unsigned char values[] = {0, 1, 0x7f, 0xff};
    const struct file whole = make(8, 0x6005a04, ET_EXEC, letter);
    size_t refused = 0, taken = 0;
    for (size_t i = 0; i < whole.size; i++)
        for (size_t v = 0; v < sizeof values; v++) {
            struct file file = whole;
            file.data[i] = values[v];
            const bool fine = read_file(&file);
            *(fine ? &taken : &refused) += 1;
            if (!fine)
                EXPECT_CONTAINS(found.message, "error: k.cubin ");
        }
    EXPECT_TRUE(refused > 0 && taken > 0);
}

static const char ptx[] = "// text\n.version 9.0\n.target sm_90a\n.visible .entry k(\n"
                          ".param .u64 .ptr .align 1 k_param_0,\n.param .align 4 .b8 k_1[12]\n)\n"
                          "{\n}\n.entry l ( )\n{\n}\n.entry m";

WEIR_TEST(Ptx, TellsItsGpuAndItsKernels)
{
    struct file file = {.size = sizeof ptx - 1};
    memcpy(file.data, ptx, sizeof ptx);
    expect_target(&file, WEIR_IMAGE_PTX, "sm_90a", 3, 12);
    const struct kc_kernel *others = found.kernels.items + 1;
    EXPECT_STR_EQ(others->name, "l");
    EXPECT_UINT_EQ(others[0].parameter_count + others[1].parameter_count, 0);
}

// The driver refuses what is cut off in a kernel; here nothing is read beyond its end.
WEIR_TEST(Ptx, CutOff)
{
    struct file file = {.size = 0};
    const size_t head = (size_t)(strstr(ptx, "sm_9") + 4 - ptx);
    memcpy(file.data, ptx, sizeof ptx);
    for (; file.size < sizeof ptx; file.size++) {
        EXPECT_INT_EQ(read_file(&file), file.size >= head);
        EXPECT_TRUE(found.kernels.count <= 3);
    }
}
