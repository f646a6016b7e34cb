// PTX is text. Machine code is shown by nvdisasm or cuobjdump, which a toolkit may have or not.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/kernels/kernels.h"

static const char ptx_about[] = "Prints the PTX that a bundle has for an architecture.";
static const char sass_about[] = "Prints the machine code that a cubin has for an architecture, by "
                                 "nvdisasm or cuobjdump of the\n"
                                 "CUDA toolkit.";

bool kernels_architecture_parse(const char *text, struct kernels_architectures *out)
{
    if (!kernels_architectures_parse("arch", text ? text : "90", false, out))
        return false;
    if (out->count != 1)
        cli_error("--arch takes one architecture, such as 90, not '%s'", text);
    return out->count == 1;
}

bool kernels_can_make(const struct kernels_source *source, bool cubin, int *out_exit)
{
    const char *lack = kc_tools_lack(&source->build.tools, cubin);
    *out_exit = CLI_SETUP;
    if (lack)
        cli_error("%s", lack);
    return !lack;
}

struct request {
    struct kernels_source source;
    struct kernels_architectures architecture;
};

static bool parse(struct request *request, const char *command, const char *about, int argc,
                  char **argv, int *out_exit)
{
    const char *architecture = NULL;
    const struct cli_option options[] = {
        {"arch", "A", "the architecture; without it, 90", CLI_TEXT, &architecture, 0, 0},
    };
    const struct cli_usage usage = {
        .command = command,
        .about = about,
        .options = options,
        .option_count = sizeof options / sizeof *options,
    };
    if (!kernels_parse(&request->source, usage, argc, argv, out_exit))
        return false;
    *out_exit = CLI_USAGE;
    return kernels_architecture_parse(architecture, &request->architecture);
}

int kernels_ptx_main(int argc, char **argv)
{
    struct request request;
    struct kc_result result = {0};
    int code;
    if (!parse(&request, "weir kernels ptx", ptx_about, argc, argv, &code) ||
        !kernels_can_make(&request.source, false, &code))
        return code;
    request.source.build.ptx = kernels_architectures_list(&request.architecture);
    code = kernels_compile(&request.source.build, &result);
    if (code == CLI_OK)
        fwrite(result.images.items[0].data, 1, result.images.items[0].size, stdout);
    kc_result_finish(&result);
    return code;
}

static bool find_in(const char *folder, size_t length, char *out, size_t size)
{
    static const char *const names[] = {"nvdisasm", "cuobjdump"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(out, size, "%.*s/%s", (int)length, folder, names[i]);
        if (access(out, X_OK) == 0)
            return true;
    }
    return false;
}

// Beside ptxas, and then in the folders of PATH.
static bool find_disassembler(const struct kc_tools *tools, char *out, size_t size)
{
    const char *path = getenv("PATH");
    const char *slash = strrchr(tools->ptxas, '/');
    bool found = slash && find_in(tools->ptxas, (size_t)(slash - tools->ptxas), out, size);
    for (const char *at = path; at && *at && !found;) {
        const size_t length = strcspn(at, ":");
        found = length > 0 && find_in(at, length, out, size);
        at += length + (at[length] == ':');
    }
    return found;
}

bool kernels_run_on(const struct kc_image *image, struct kc_job *job)
{
    char folder[512], path[600], message[512];
    struct weir_long_text report = {0};
    bool fine = false;
    if (!kc_folder_create(folder, sizeof folder, &report)) {
        kernels_print_report(&report);
        return false;
    }
    snprintf(path, sizeof path, "%s/kernels", folder);
    kc_job_add(job, path);
    if (weir_file_write(path, image->data, image->size, message, sizeof message)) {
        kc_run(job, 1);
        fine = job->status == 0;
        const char *said = job->errors ? job->errors : "";
        if (!fine)
            cli_error("%s fails: %.*s", job->arguments[0], (int)strcspn(said, "\n"), said);
    } else {
        cli_error("%s", message);
    }
    kc_folder_remove(folder);
    return fine;
}

static int disassemble(const char *disassembler, const struct kc_image *cubin)
{
    struct kc_job job = {.output_too = true};
    kc_job_add(&job, disassembler);
    if (strcmp(strrchr(disassembler, '/'), "/cuobjdump") == 0)
        kc_job_add(&job, "-sass");
    const bool fine = kernels_run_on(cubin, &job);
    if (fine && job.errors)
        fputs(job.errors, stdout);
    kc_jobs_finish(&job, 1);
    return fine ? CLI_OK : CLI_FAILED;
}

int kernels_sass_main(int argc, char **argv)
{
    struct request request;
    struct kc_result result = {0};
    char disassembler[1024];
    int code;
    if (!parse(&request, "weir kernels sass", sass_about, argc, argv, &code) ||
        !kernels_can_make(&request.source, true, &code))
        return code;
    if (!kernels_architectures_are_known(&request.source.build.tools, &request.architecture))
        return CLI_SETUP;
    if (!find_disassembler(&request.source.build.tools, disassembler, sizeof disassembler)) {
        cli_error(
            "neither nvdisasm nor cuobjdump is found, and machine code needs one to be "
            "shown; they are parts of the CUDA toolkit and of the package nvidia-cuda-toolkit");
        return CLI_SETUP;
    }
    request.source.build.cubins = kernels_architectures_list(&request.architecture);
    code = kernels_compile(&request.source.build, &result);
    if (code == CLI_OK)
        code = disassemble(disassembler, &result.images.items[0]);
    kc_result_finish(&result);
    return code;
}
