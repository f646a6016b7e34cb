#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/kernels/kernels.h"

static const char about[] =
    "Compiles the files, as one program, to a bundle: OUT.c has the OpenCL C and images for CUDA,\n"
    "OUT.h declares it. Without --cubin and --ptx the images are those that the CUDA toolkit of\n"
    "this machine can make, which may be none; with them what they name, or an error.\n"
    "With --cuda the images come from CUDA C++, and with --cuda-image they are there already. The\n"
    "kernels have the same names and parameters as in the OpenCL C, which other devices run.";

static const unsigned usual_cubins[] = {75, 80, 86, 89, 90, 100, 120};
static const unsigned usual_ptx[] = {75, 120};

struct request {
    struct kernels_source source;
    const char *out;
    const char *symbol;
    const char *cubin_text;
    const char *ptx_text;
    const char *depfile;
    struct kernels_twin twin;
    struct kernels_architectures cubins;
    struct kernels_architectures ptx;
    // What follows from `out`: "dir/tone.c".
    char prefix[1024]; // "dir/tone"
    char header[512];  // "tone.h"
    char label[512];   // "tone"
    char name[512];    // "tone_kernels"
};

static bool name_files(struct request *request)
{
    const char *out = request->out;
    const size_t length = strlen(out);
    const char *slash = strrchr(out, '/');
    const char *file = slash ? slash + 1 : out;
    const int stem = (int)(out + length - 2 - file);
    if (length < 2 || strcmp(out + length - 2, ".c") != 0 || stem < 1 || !kernels_is_plain(file)) {
        cli_error("-o takes the name of a C file, such as kernels.c, not '%s'", out);
        return false;
    }
    if (length >= sizeof request->prefix || (size_t)stem + 16 > sizeof request->name) {
        cli_error("the name after -o is too long; %zu characters are the most for the file",
                  sizeof request->name - 16);
        return false;
    }
    snprintf(request->prefix, sizeof request->prefix, "%.*s", (int)length - 2, out);
    snprintf(request->label, sizeof request->label, "%.*s", stem, file);
    snprintf(request->header, sizeof request->header, "%.*s.h", stem, file);
    snprintf(request->name, sizeof request->name, "%s%.*s_kernels",
             isdigit((unsigned char)*file) ? "_" : "", stem, file);
    for (char *at = request->name; *at; at++)
        if (!isalnum((unsigned char)*at))
            *at = '_';
    return true;
}

static bool check_symbol(const struct request *request)
{
    const char *symbol = request->symbol;
    if (!symbol || (kernels_identifier(symbol) == strlen(symbol)))
        return true;
    cli_error("--symbol takes a name of C, letters, digits and '_', not '%s'", symbol);
    return false;
}

static bool parse_architectures(struct request *request)
{
    const bool letters = request->twin.cuda != NULL;
    return (!request->cubin_text ||
            kernels_architectures_parse("cubin", request->cubin_text, letters, &request->cubins)) &&
           (!request->ptx_text ||
            kernels_architectures_parse("ptx", request->ptx_text, letters, &request->ptx));
}

static bool parse(struct request *request, int argc, char **argv, int *out_exit)
{
    const struct cli_option options[] = {
        {"output", "OUT.c", "the file to write; the header is OUT.h", CLI_FILE, &request->out, 0,
         0},
        {"symbol", "NAME", "the name of the bundle in C; without it,\nOUT_kernels", CLI_TEXT,
         &request->symbol, 0, 0},
        {"cubin", "LIST", "make cubins for these architectures, such as\n80,90; or none", CLI_TEXT,
         &request->cubin_text, 0, 0},
        {"ptx", "LIST", "make PTX for these, which drivers compile for\nlater GPUs; or none",
         CLI_TEXT, &request->ptx_text, 0, 0},
        {"depfile", "FILE", "write which files OUT.c depends on to FILE, as\na rule of make's",
         CLI_FILE, &request->depfile, 0, 0},
        {"cuda", "FILE.cu", "the same kernels in CUDA C++, for CUDA devices", CLI_FILE,
         &request->twin.cuda, 0, 0},
        {"nvcc-option", "O", "an option of nvcc for it; may be repeated", CLI_LIST,
         &request->twin.nvcc_options, 0, 0},
        {"cuda-image", "FILE", "a cubin or PTX of the same kernels; may be\nrepeated", CLI_FILES,
         &request->twin.images, 0, 0},
    };
    const struct cli_usage usage =
        CLI_FORM_PLAIN("weir kernels build", about, "weir-kernels(1)", options);
    if (!kernels_parse(&request->source, usage, argc, argv, out_exit))
        return false;
    *out_exit = CLI_USAGE;
    if (!request->out)
        cli_error("weir kernels build needs --output OUT.c, the file to write");
    return request->out && name_files(request) && check_symbol(request) &&
           kernels_twin_take(&request->twin, request->cubin_text || request->ptx_text,
                             &request->source) &&
           parse_architectures(request);
}

// What was asked for is made, or the command fails.
static bool check_named(struct request *request)
{
    const struct kc_tools *tools = &request->source.build.tools;
    const char *lack = request->twin.cuda ? kc_tools_lack_nvcc(tools)
                                          : kc_tools_lack(tools, request->cubins.count > 0);
    if (request->cubins.count + request->ptx.count == 0)
        return true;
    if (lack)
        cli_error("%s", lack);
    return !lack &&
           (request->cubins.count == 0 || kernels_architectures_are_known(tools, &request->cubins));
}

static bool add_usual(struct request *request, bool cubins)
{
    for (size_t i = 0; i < sizeof usual_ptx / sizeof *usual_ptx; i++)
        kernels_architectures_add(&request->ptx, usual_ptx[i]);
    for (size_t i = 0; i < sizeof usual_cubins / sizeof *usual_cubins && cubins; i++)
        kernels_architectures_add(&request->cubins, usual_cubins[i]);
    return !cubins ||
           kernels_architectures_keep_known(&request->source.build.tools, &request->cubins);
}

static bool choose_usual(struct request *request)
{
    const struct kc_tools *tools = &request->source.build.tools;
    const char *no_ptx = kc_tools_lack(tools, false);
    const char *no_cubins = kc_tools_lack(tools, true);
    if (no_ptx) {
        cli_note("the bundle has no CUDA images: %s", no_ptx);
        return true;
    }
    if (no_cubins)
        cli_note("the bundle has PTX and no cubins: %s", no_cubins);
    return add_usual(request, !no_cubins);
}

static bool choose_usual_of_twin(struct request *request)
{
    const char *lack = kc_tools_lack_nvcc(&request->source.build.tools);
    if (!lack)
        return add_usual(request, true);
    cli_note("%s is not compiled, and CUDA devices will refuse the bundle: %s", request->twin.cuda,
             lack);
    return true;
}

static bool choose(struct request *request)
{
    if (request->twin.images.count > 0)
        return true;
    if (request->cubin_text || request->ptx_text)
        return check_named(request);
    return request->twin.cuda ? choose_usual_of_twin(request) : choose_usual(request);
}

// A header of the same name as the kernels may be one that they include.
static bool is_ours(const char *prefix, char suffix)
{
    static const char mark[] = "// Generated by weir kernels.";
    char path[sizeof((struct request *)0)->prefix + 2];
    char start[sizeof mark] = "";
    char message[512];
    uint64_t size;
    int file;
    snprintf(path, sizeof path, "%s.%c", prefix, suffix);
    if (access(path, F_OK) != 0)
        return true;
    if (!weir_file_open(path, &file, &size, message, sizeof message)) {
        cli_error("%s", message);
        return false;
    }
    const size_t length = size < sizeof mark ? (size_t)size : sizeof mark - 1;
    const bool read = weir_file_read_exactly(file, path, start, length, message, sizeof message);
    close(file);
    if (size == 0 || (read && strcmp(start, mark) == 0))
        return true;
    cli_error("%s exists and was not made by this command; remove it, or name another file with -o",
              path);
    return false;
}

int kernels_build_main(int argc, char **argv)
{
    struct request request = {0};
    struct kc_result result = {0};
    int code;
    if (!parse(&request, argc, argv, &code))
        return code;
    if (!is_ours(request.prefix, 'c') || !is_ours(request.prefix, 'h'))
        return CLI_FAILED;
    if (!choose(&request))
        return CLI_SETUP;
    const struct kc_bundle bundle = {
        .symbol = request.symbol ? request.symbol : request.name,
        .label = request.label,
        .header = request.header,
        .out = request.prefix,
    };
    request.source.build.cubins = kernels_architectures_list(&request.cubins);
    request.source.build.ptx = kernels_architectures_list(&request.ptx);
    request.source.build.bundle = &bundle;
    code = kernels_compile(&request.source.build, &result);
    if (code == CLI_OK && request.depfile)
        code = kernels_write_depfile(request.depfile, request.out, &request.source.build, &result);
    kc_result_finish(&result);
    return code;
}
