// Which GPU a cubin of both versions of the ABI is for, made here, as no toolkit is needed to read them; and what is
// left of one that is damaged, or of PTX.
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/compiler/compiler.h"
#include "tests/support/test.h"

enum {
    FILE_SIZE = 512,
    MACHINE = 190
};

struct file {
    unsigned char data[FILE_SIZE];
    size_t size;
};

// The note is at the end.
static struct file make(unsigned abi, unsigned flags, unsigned type, const char *note)
{
    struct file file = {.size = FILE_SIZE};
    Elf64_Ehdr head = {.e_type = (Elf64_Half)type, .e_machine = MACHINE, .e_flags = flags};
    memcpy(head.e_ident, "\177ELF", 4);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_ident[EI_ABIVERSION] = (unsigned char)abi;
    memcpy(file.data, &head, sizeof head);
    memcpy(file.data + FILE_SIZE - strlen(note), note, strlen(note));
    return file;
}

// What was read last.
static struct {
    const char *format;
    char target[KC_TARGET_SIZE];
    struct kc_kernels kernels;
    char message[256];
} found;

// From memory of just that size, so that the address sanitizer sees what is read beyond it.
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

static void expect_target(const struct file *file, const char *format, const char *target)
{
    EXPECT_TRUE(read_file(file));
    EXPECT_STR_EQ(found.format, format);
    EXPECT_STR_EQ(found.target, target);
}

static void expect_refused(const struct file *file, const char *part)
{
    EXPECT_FALSE(read_file(file));
    EXPECT_CONTAINS(found.message, "error: k.cubin ");
    EXPECT_CONTAINS(found.message, part);
}

// As CUDA 12 and 13 write them.
static const char no_letter[] = "-arch sm_90 -m 64", letter[] = "-arch sm_90a -m 64",
                  cut_off[] = "-arch sm_90";

WEIR_TEST(Cubin, TellsItsGpu)
{
    static const struct {
        unsigned abi, flags;
        const char *note, *target;
    } rows[] = {
        {7, 0x5a055a, "", "sm_90"},
        {7, 0x5a0d5a, "", "sm_90a"},
        {8, 0x6005a04, letter, "sm_90a"},
        {8, 0x6005a04, no_letter, "sm_90"},
        {8, 0x6005a04, cut_off, "sm_90"},
        {8, 0x6006402, letter, "sm_100"}, // the note is of something else
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct file file = make(rows[i].abi, rows[i].flags, ET_EXEC, rows[i].note);
        expect_target(&file, WEIR_IMAGE_CUBIN, rows[i].target);
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
    ((Elf64_Ehdr *)(void *)file.data)->e_machine = EM_X86_64;
    expect_refused(&file, "is an ELF file, but not for an NVIDIA GPU");
    file.data[EI_CLASS] = ELFCLASS32;
    expect_refused(&file, "is a damaged cubin");
    file = make(8, 0x6005a04, ET_EXEC, letter);
    for (file.size = 5; file.size < sizeof(Elf64_Ehdr); file.size++)
        expect_refused(&file, "is a damaged cubin");
}

static const char ptx[] = "// text\n.version 9.0\n.target sm_90a\n.visible .entry k(\n"
                          ".param .u64 .ptr .align 1 k_param_0,\n.param .align 4 .b8 k_1[12]\n)\n"
                          "{\n}\n.entry l ( )\n{\n}\n.entry m";

WEIR_TEST(Ptx, TellsItsGpuAndItsKernels)
{
    struct file file = {.size = sizeof ptx - 1};
    memcpy(file.data, ptx, sizeof ptx);
    expect_target(&file, WEIR_IMAGE_PTX, "sm_90a");
    ASSERT_UINT_EQ(found.kernels.count, 3);
    const struct kc_kernel *kernels = found.kernels.items;
    EXPECT_STR_EQ(kernels[0].name, "k");
    EXPECT_STR_EQ(kernels[1].name, "l");
    ASSERT_UINT_EQ(kernels[0].parameter_count, 2);
    EXPECT_UINT_EQ(kernels[0].parameters[0].size, 8);
    EXPECT_UINT_EQ(kernels[0].parameters[1].size, 12);
    EXPECT_UINT_EQ(kernels[1].parameter_count + kernels[2].parameter_count, 0);
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
