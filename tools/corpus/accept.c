// Builds OpenCL C at run time on the first device of a backend, as a program with a source of its
// own does. Exits with 0 if the driver's compiler takes it, with 1 and the reason if not.
#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

static char *read_all(FILE *file)
{
    long size;
    if (fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0 || fseek(file, 0, SEEK_SET))
        return NULL;
    char *text = malloc((size_t)size + 1);
    if (text)
        text[fread(text, 1, (size_t)size, file)] = '\0';
    return text;
}

static char *read_source(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = file ? read_all(file) : NULL;
    if (file)
        (void)fclose(file);
    return text;
}

static weir_status build(weir_runtime *runtime, const char *source, const char *options)
{
    const struct weir_program_params params = {.struct_size = sizeof params,
                                               .source = source,
                                               .options = options};
    weir_device *device = NULL;
    weir_program *program = NULL;
    weir_status status = weir_device_open(runtime, NULL, &device);
    if (status == WEIR_OK)
        status = weir_program_create(device, &params, &program);
    if (status != WEIR_OK)
        fprintf(stderr, "%s\n", weir_last_error_text());
    weir_program_destroy(&program);
    WEIR_IGNORE(weir_device_close(&device));
    return status;
}

int main(int argc, char **argv)
{
    const struct weir_open_params params = {.struct_size = sizeof params,
                                            .config_path = "accept.ini",
                                            .config_text = "[opencl]\ncache = 0\n",
                                            .backend = argc > 1 ? argv[1] : NULL,
                                            .plugins = ""};
    weir_runtime *runtime = NULL;
    if (argc != 4) {
        fprintf(stderr, "usage: accept BACKEND SOURCE OPTIONS\n");
        return 2;
    }
    char *source = read_source(argv[2]);
    if (!source || weir_open(&params, &runtime) < 0) {
        fprintf(stderr, "accept: %s\n", source ? weir_last_error_text() : "cannot read the source");
        free(source);
        return 2;
    }
    const weir_status status = build(runtime, source, argv[3]);
    WEIR_IGNORE(weir_close(&runtime));
    free(source);
    return status != WEIR_OK;
}
