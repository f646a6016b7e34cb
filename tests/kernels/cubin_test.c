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

// From memory of just that size, so that the address sanitizer sees what is read beyond it.
struct image {
    const char *format;
    char target[KC_TARGET_SIZE];
};

static bool read_file(const struct file *file, struct image *image, struct kc_kernels *entries,
                      char *message)
{
    struct weir_long_text report = {0};
    void *copy = malloc(file->size ? file->size : 1);
    *image = (struct image){.format = NULL};
    *entries = (struct kc_kernels){NULL, 0};
    if (!copy)
        exit(EXIT_FAILURE);
    memcpy(copy, file->data, file->size);
    const bool fine =
        kc_image_read("k.cubin", copy, file->size, &image->format, image->target, entries, &report);
    free(copy);
    snprintf(message, 256, "%s", report.text ? report.text : "");
    free(report.text);
    return fine;
}

static void expect_target(const struct file *file, const char *target)
{
    struct image image;
    struct kc_kernels entries;
    char message[256];
    if (!read_file(file, &image, &entries, message))
        weir_test_fail(__FILE__, __LINE__, "%s: %s", target, message);
    EXPECT_STR_EQ(image.format, WEIR_IMAGE_CUBIN);
    EXPECT_STR_EQ(image.target, target);
    ASSERT_UINT_EQ(entries.count, 1);
    EXPECT_STR_EQ(entries.items[0].name, "k");
    ASSERT_UINT_EQ(entries.items[0].parameter_count, 2);
    EXPECT_UINT_EQ(entries.items[0].parameters[0].size, 8);
    EXPECT_UINT_EQ(entries.items[0].parameters[1].size, 4);
    kc_kernels_finish(&entries);
}

static void expect_refused(const struct file *file, const char *part)
{
    struct image image;
    struct kc_kernels entries;
    char message[256];
    EXPECT_FALSE(read_file(file, &image, &entries, message));
    EXPECT_CONTAINS(message, "error: k.cubin ");
    EXPECT_CONTAINS(message, part);
    kc_kernels_finish(&entries);
}

// As CUDA 12 and 13 write them.
static const char no_letter[] = "-arch sm_90 -m 64", letter[] = "-arch sm_90a -m 64";

WEIR_TEST(Cubin, TellsItsGpuAndItsKernels)
{
    const struct file files[] = {
        make(7, 0x5a055a, ET_EXEC, ""),      make(7, 0x5a0d5a, ET_EXEC, ""),
        make(8, 0x6005a04, ET_EXEC, letter), make(8, 0x6005a04, ET_EXEC, no_letter),
        make(8, 0x6006402, ET_EXEC, letter),
    };
    expect_target(&files[0], "sm_90");
    expect_target(&files[1], "sm_90a");
    expect_target(&files[2], "sm_90a");
    expect_target(&files[3], "sm_90");
    expect_target(&files[4], "sm_100"); // the note is of something else
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
            struct image image;
            struct kc_kernels entries;
            char message[256];
            file.data[i] = values[v];
            if (read_file(&file, &image, &entries, message)) {
                taken++;
            } else {
                refused++;
                EXPECT_CONTAINS(message, "error: k.cubin ");
            }
            kc_kernels_finish(&entries);
        }
    EXPECT_TRUE(refused > 0 && taken > 0);
}

static const char ptx[] = "// text\n.version 9.0\n.target sm_90a\n.visible .entry k(\n"
                          ".param .u64 .ptr .align 1 k_param_0,\n.param .align 4 .b8 k_1[12]\n)\n"
                          "{\n}\n.entry l ( )\n{\n}\n.entry m";

WEIR_TEST(Ptx, TellsItsGpuAndItsKernels)
{
    struct file file = {.size = sizeof ptx - 1};
    struct image image;
    struct kc_kernels entries;
    char message[256];
    memcpy(file.data, ptx, sizeof ptx);
    EXPECT_TRUE(read_file(&file, &image, &entries, message));
    EXPECT_STR_EQ(image.format, WEIR_IMAGE_PTX);
    EXPECT_STR_EQ(image.target, "sm_90a");
    ASSERT_UINT_EQ(entries.count, 3);
    ASSERT_UINT_EQ(entries.items[0].parameter_count, 2);
    EXPECT_UINT_EQ(entries.items[0].parameters[0].size, 8);
    EXPECT_UINT_EQ(entries.items[0].parameters[1].size, 12);
    EXPECT_STR_EQ(entries.items[1].name, "l");
    EXPECT_UINT_EQ(entries.items[1].parameter_count + entries.items[2].parameter_count, 0);
    kc_kernels_finish(&entries);
}

// The driver refuses what is cut off in a kernel; here nothing is read beyond its end.
WEIR_TEST(Ptx, CutOff)
{
    struct file file = {.size = 0};
    const size_t head = (size_t)(strstr(ptx, "sm_9") + 4 - ptx);
    memcpy(file.data, ptx, sizeof ptx);
    for (; file.size < sizeof ptx; file.size++) {
        struct image image;
        struct kc_kernels entries;
        char message[256];
        EXPECT_INT_EQ(read_file(&file, &image, &entries, message), file.size >= head);
        EXPECT_TRUE(entries.count <= 3);
        kc_kernels_finish(&entries);
    }
}
