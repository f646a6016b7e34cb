// Runs a program's launches on the first device of a backend. The program is OpenCL C, or a bundle in
// a shared library (whose path ends in .so). The script on stdin is whole.py's:
//
//     buffer BYTES PATH         the next buffer, with a file's bytes, or zeros if PATH is -
//     launch KERNEL X Y Z x y z ARGUMENT...    blocks, work-items of a block
//     save BUFFER PATH
//     time                      prints the nanoseconds since the last `time`, all work finished
//
// An ARGUMENT is b0 (the first buffer), l64 (local memory) or v, and the value's bytes in
// hexadecimal.
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weir/weir.h>

enum {
    LINE = 4096,
    BUFFERS = 32,
    ARGUMENTS = 32,
    KERNELS = 16,
    VALUE = 64
};

struct session {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_program *program;
    weir_buffer *buffers[BUFFERS];
    size_t sizes[BUFFERS];
    size_t buffer_count;
    weir_kernel *kernels[KERNELS];
    char names[KERNELS][LINE];
    size_t kernel_count;
    struct timespec last;
};

static char *read_file(const char *path, size_t *out_size)
{
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    long size = -1;
    if (file && !fseek(file, 0, SEEK_END) && (size = ftell(file)) >= 0 &&
        !fseek(file, 0, SEEK_SET) && (bytes = malloc((size_t)size + 1))) {
        *out_size = fread(bytes, 1, (size_t)size, file);
        bytes[*out_size] = '\0';
    }
    if (file)
        (void)fclose(file);
    return bytes;
}

static weir_status add_buffer(struct session *s, char *words)
{
    size_t size = strtoull(words, &words, 10);
    const struct weir_buffer_params params = {.struct_size = sizeof params, .size = size};
    const size_t index = s->buffer_count++;
    const uint32_t zero = 0;
    size_t read = 0;
    weir_status status = weir_buffer_create(s->device, &params, &s->buffers[index]);
    s->sizes[index] = size;
    if (status != WEIR_OK || strcmp(words, " -") == 0)
        return status != WEIR_OK
                   ? status
                   : weir_queue_fill(s->queue, s->buffers[index], 0, size / 4 * 4, &zero, 4);
    char *bytes = read_file(words + 1, &read);
    status = bytes && read == size ? weir_upload(s->queue, s->buffers[index], 0, bytes, size)
                                   : WEIR_ERROR_NOT_FOUND;
    free(bytes);
    return status;
}

static weir_kernel *kernel(struct session *s, const char *name)
{
    for (size_t i = 0; i < s->kernel_count; i++)
        if (strcmp(s->names[i], name) == 0)
            return s->kernels[i];
    const size_t index = s->kernel_count;
    if (index == KERNELS || weir_kernel_create(s->program, name, &s->kernels[index]) != WEIR_OK)
        return NULL;
    snprintf(s->names[index], sizeof s->names[index], "%s", name);
    s->kernel_count++;
    return s->kernels[index];
}

static size_t parse_hex(const char *text, unsigned char *out)
{
    size_t size = 0;
    char digits[3] = {0};
    for (; text[0] && text[1] && size < VALUE; text += 2) {
        memcpy(digits, text, 2);
        out[size++] = (unsigned char)strtoul(digits, NULL, 16);
    }
    return size;
}

// A const pointer's range is only read; the access is checked against the signature.
static struct weir_argument range(const struct session *s, size_t buffer,
                                  const struct weir_kernel_signature *signature, uint32_t index)
{
    const bool reads = signature && index < signature->parameter_count &&
                       !weir_signature_parameter(signature, index)->writable;
    return reads ? weir_in(s->buffers[buffer], 0, s->sizes[buffer])
                 : weir_inout(s->buffers[buffer], 0, s->sizes[buffer]);
}

static weir_status launch(struct session *s, char *words)
{
    struct weir_argument arguments[ARGUMENTS];
    unsigned char values[ARGUMENTS][VALUE];
    uint32_t extents[6];
    uint32_t count = 0;
    char *rest = NULL;
    weir_kernel *which = kernel(s, strtok_r(words, " ", &rest));
    if (!which)
        return WEIR_ERROR_NOT_FOUND;
    for (int i = 0; i < 6; i++)
        extents[i] = (uint32_t)strtoul(strtok_r(NULL, " ", &rest), NULL, 10);
    for (char *word; count < ARGUMENTS && (word = strtok_r(NULL, " ", &rest)); count++) {
        const size_t number = strtoull(word + 1, NULL, 10);
        if (word[0] == 'b')
            arguments[count] = range(s, number, weir_kernel_get_signature(which), count);
        else if (word[0] == 'l')
            arguments[count] = weir_local(number);
        else
            arguments[count] = weir_value(values[count], parse_hex(word + 1, values[count]));
    }
    return weir_queue_launch_array(s->queue, which, weir_dim(extents[0], extents[1], extents[2]),
                                   weir_dim(extents[3], extents[4], extents[5]), arguments, count);
}

static weir_status save(struct session *s, char *words)
{
    const size_t index = strtoull(words, &words, 10);
    char *bytes = malloc(s->sizes[index] + 1);
    weir_status status = bytes
                             ? weir_download(s->queue, bytes, s->buffers[index], 0, s->sizes[index])
                             : WEIR_ERROR_OUT_OF_MEMORY;
    FILE *file = status == WEIR_OK ? fopen(words + 1, "wb") : NULL;
    const bool written = file && fwrite(bytes, 1, s->sizes[index], file) == s->sizes[index];
    if (file && fclose(file) == 0 && written)
        status = WEIR_OK;
    else if (status == WEIR_OK)
        status = WEIR_ERROR_NOT_FOUND;
    free(bytes);
    return status;
}

static weir_status print_time(struct session *s)
{
    struct timespec now;
    const weir_status status = weir_queue_sync(s->queue, WEIR_FOREVER);
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("%.0f\n",
           (double)(now.tv_sec - s->last.tv_sec) * 1e9 + (double)(now.tv_nsec - s->last.tv_nsec));
    s->last = now;
    return status;
}

static weir_status step(struct session *s, char *line)
{
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "buffer ", 7) == 0 && s->buffer_count < BUFFERS)
        return add_buffer(s, line + 7);
    if (strncmp(line, "launch ", 7) == 0)
        return launch(s, line + 7);
    if (strncmp(line, "save ", 5) == 0)
        return save(s, line + 5);
    return strcmp(line, "time") == 0 ? print_time(s) : WEIR_ERROR_INVALID;
}

static bool is_library(const char *path)
{
    const size_t length = strlen(path);
    return length > 3 && strcmp(path + length - 3, ".so") == 0;
}

// What the program is made of; false if the file cannot be read. The library stays loaded, as a
// bundle outlives its programs.
static bool read_program(const char *path, const char *options, struct weir_program_params *out)
{
    size_t size;
    *out = (struct weir_program_params){.struct_size = sizeof *out};
    if (is_library(path)) {
        void *library = dlopen(path, RTLD_NOW);
        out->bundle = library ? dlsym(library, "whole_kernels") : NULL;
    } else {
        out->source = read_file(path, &size);
        out->options = options;
    }
    return out->bundle || out->source;
}

static weir_status run(struct session *s, const char *backend,
                       const struct weir_program_params *params)
{
    const struct weir_open_params open = {.struct_size = sizeof open,
                                          .backend = backend,
                                          .plugins = ""};
    char line[LINE];
    weir_status status = weir_open(&open, &s->runtime);
    if (status < 0 || (status = weir_device_open(s->runtime, NULL, &s->device)) != WEIR_OK ||
        (status = weir_queue_create(s->device, NULL, &s->queue)) != WEIR_OK ||
        (status = weir_program_create(s->device, params, &s->program)) != WEIR_OK)
        return status;
    clock_gettime(CLOCK_MONOTONIC, &s->last);
    while (status == WEIR_OK && fgets(line, sizeof line, stdin))
        status = step(s, line);
    return status;
}

static void end(struct session *s)
{
    for (size_t i = 0; i < s->buffer_count; i++)
        weir_buffer_destroy(&s->buffers[i]);
    for (size_t i = 0; i < s->kernel_count; i++)
        weir_kernel_destroy(&s->kernels[i]);
    weir_program_destroy(&s->program);
    weir_queue_destroy(&s->queue);
    WEIR_IGNORE(weir_device_close(&s->device));
    WEIR_IGNORE(weir_close(&s->runtime));
}

int main(int argc, char **argv)
{
    static struct session session;
    struct weir_program_params params;
    if (argc != 4) {
        fprintf(stderr, "usage: whole BACKEND SOURCE|LIBRARY OPTIONS <SCRIPT\n");
        return 2;
    }
    const bool read = read_program(argv[2], argv[3], &params);
    const weir_status status = read ? run(&session, argv[1], &params) : WEIR_ERROR_NOT_FOUND;
    if (status != WEIR_OK)
        fprintf(stderr, "whole: %s\n", read ? weir_last_error_text() : "cannot read the program");
    end(&session);
    free((char *)params.source);
    return status != WEIR_OK;
}
