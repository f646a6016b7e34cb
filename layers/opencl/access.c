// What kernels do with their pointers and images. The driver tells of `const`, if the program was built for that. A clang, if
// there is one, is given the source, and says of each pointer whether nothing is read, or nothing written, through it: the
// optimiser's attributes `writeonly` and `readonly` of the parameters. What neither decides may be read and written.
//
// clang is run once a program, when the first kernel with an undecided argument is made, or the program is asked for its
// binary. What it says is kept on disk, for the same source, and for the binary, which comes without a source the next time.
#define _GNU_SOURCE // memfd_create
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/disk_cache.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/program.h"
#include "layers/opencl/layer.h"

#define DEADLINE_NS (UINT64_C(20) * 1000000000u)
#define CACHE_BYTES (UINT64_C(16) << 20)

enum {
    ARGUMENTS = 128,
    OUTPUT_MOST = 256 << 20,
    BINARIES = 64, // of one program
};

// What the driver tells.

static bool ask(cl_kernel kernel, cl_uint index, cl_kernel_arg_info name, void *value, size_t size)
{
    return layer.driver->clGetKernelArgInfo(kernel, index, name, size, value, NULL) == CL_SUCCESS;
}

static struct parameter parameter_of(cl_kernel kernel, cl_uint index)
{
    cl_kernel_arg_address_qualifier memory = 0;
    cl_kernel_arg_access_qualifier image = CL_KERNEL_ARG_ACCESS_NONE;
    cl_kernel_arg_type_qualifier type = 0;
    if (!ask(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, &memory, sizeof memory))
        return (struct parameter){0, false};
    (void)ask(kernel, index, CL_KERNEL_ARG_ACCESS_QUALIFIER, &image, sizeof image);
    (void)ask(kernel, index, CL_KERNEL_ARG_TYPE_QUALIFIER, &type, sizeof type);
    if (image == CL_KERNEL_ARG_ACCESS_READ_ONLY)
        return (struct parameter){WEIR_ACCESS_READ, true};
    if (image == CL_KERNEL_ARG_ACCESS_WRITE_ONLY)
        return (struct parameter){WEIR_ACCESS_WRITE, true};
    if (memory == CL_KERNEL_ARG_ADDRESS_CONSTANT || type & CL_KERNEL_ARG_TYPE_CONST)
        return (struct parameter){WEIR_ACCESS_READ, true};
    if (memory == CL_KERNEL_ARG_ADDRESS_GLOBAL || image != CL_KERNEL_ARG_ACCESS_NONE)
        return (struct parameter){0, false};
    return (struct parameter){0, true};
}

// What clang tells: the parameters of a definition, which are separated by commas outside of brackets.

static bool has_word(const char *text, size_t size, const char *word)
{
    const size_t length = strlen(word);
    for (size_t i = 0; i + length <= size; i++)
        if (memcmp(text + i, word, length) == 0)
            return true;
    return false;
}

static struct parameter parameter_in(const char *text, size_t size)
{
    const bool image = has_word(text, size, "spirv.Image") || has_word(text, size, "opencl.image");
    if (image && (has_word(text, size, "_ro_t") || has_word(text, size, ", 0)")))
        return (struct parameter){WEIR_ACCESS_READ, true};
    if (image && (has_word(text, size, "_wo_t") || has_word(text, size, ", 1)")))
        return (struct parameter){WEIR_ACCESS_WRITE, true};
    if (image)
        return (struct parameter){WEIR_ACCESS_READ_WRITE, true};
    if (has_word(text, size, "addrspace(2)"))
        return (struct parameter){WEIR_ACCESS_READ, true};
    if (!has_word(text, size, "addrspace(1)"))
        return (struct parameter){0, true};
    if (has_word(text, size, "readnone"))
        return (struct parameter){0, true};
    if (has_word(text, size, "readonly"))
        return (struct parameter){WEIR_ACCESS_READ, true};
    return (struct parameter){has_word(text, size, "writeonly") ? WEIR_ACCESS_WRITE
                                                                : WEIR_ACCESS_READ_WRITE,
                              true};
}

// The list after "@NAME(", or NULL.
static const char *find_list(const char *text, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = text; (at = strstr(at, name)); at += length)
        if (at > text && at[-1] == '@' && at[length] == '(')
            return at + length + 1;
    return NULL;
}

// Fills in what the driver has not decided. A list of another length is of another kernel.
static void take(struct kernel *kernel, const char *list)
{
    struct parameter *found = calloc(kernel->count + 1, sizeof *found);
    uint32_t count = 0;
    int depth = 0;
    const char *from = list;
    for (const char *at = list; found && *at && *at != '\n' && depth >= 0; at++) {
        depth += (*at == '(') - (*at == ')');
        if ((*at != ',' || depth != 0) && depth >= 0)
            continue;
        if (count < kernel->count)
            found[count] = parameter_in(from, (size_t)(at - from));
        count += at > from;
        from = at + 1;
    }
    for (uint32_t i = 0; found && count == kernel->count && i < count; i++)
        if (!kernel->parameters[i].known)
            kernel->parameters[i] = found[i];
    free(found);
}

// Running clang.

static const char *find_clang(void)
{
    static _Thread_local char found[4096]; // kernels are made by several threads
    const char *wanted = getenv("WEIR_OPENCL_CLANG");
    if (wanted)
        return *wanted ? wanted : NULL;
    return weir_program_find_clang(found, sizeof found) ? found : NULL;
}

// Takes a word from `*at`, which it writes over: quotes and backslashes as a shell has them. NULL at the end.
static char *next_word(char **at)
{
    char *from = *at + strspn(*at, " \t\r\n");
    char *to = from;
    char *word = from;
    char quote = '\0';
    if (!*from)
        return NULL;
    for (; *from && (quote || !strchr(" \t\r\n", *from)); from++) {
        if (quote ? *from == quote : *from == '"' || *from == '\'')
            quote = quote ? '\0' : *from;
        else if (*from == '\\' && quote != '\'' && from[1])
            *to++ = *++from;
        else
            *to++ = *from;
    }
    *at = from + (*from != '\0');
    *to = '\0';
    return word;
}

// Definitions, folders and OpenCL's own options; others are a driver's.
static size_t add_options(char **arguments, size_t count, char *options)
{
    bool standard = false;
    char *word;
    while (options && (word = next_word(&options)) && count + 4 < ARGUMENTS) {
        const bool pair = strcmp(word, "-D") == 0 || strcmp(word, "-I") == 0;
        if (strncmp(word, "-cl-kernel-arg-info", 19) == 0)
            continue;
        if (strncmp(word, "-D", 2) == 0 || strncmp(word, "-I", 2) == 0 ||
            strncmp(word, "-U", 2) == 0 || strncmp(word, "-cl-", 4) == 0)
            arguments[count++] = word;
        standard = standard || strncmp(word, "-cl-std=", 8) == 0;
        if (pair && (word = next_word(&options)))
            arguments[count++] = word;
    }
    if (!standard)
        arguments[count++] = (char *)(uintptr_t) "-cl-std=CL1.2";
    arguments[count] = NULL;
    return count;
}

// The lines of the file that define kernels.
static char *keep_lines(int file)
{
    const off_t size = lseek(file, 0, SEEK_END);
    if (size <= 0 || size > OUTPUT_MOST)
        return NULL;
    const char *text = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, file, 0);
    char *lines = text != MAP_FAILED ? malloc((size_t)size + 1) : NULL;
    size_t used = 0;
    for (const char *at = text; lines && at < text + size;) {
        const char *end = memchr(at, '\n', (size_t)(text + size - at));
        const size_t length = (size_t)((end ? end + 1 : text + size) - at);
        if (length > 7 && memcmp(at, "define ", 7) == 0 && has_word(at, length, "spir_kernel")) {
            memcpy(lines + used, at, length);
            used += length;
        }
        at += length;
    }
    if (text != MAP_FAILED)
        munmap((void *)(uintptr_t)text, (size_t)size);
    if (!lines)
        return NULL;
    lines[used] = '\0';
    char *fitting = realloc(lines, used + 1);
    return fitting ? fitting : lines;
}

static bool write_text(int file, const char *text)
{
    size_t left = strlen(text);
    while (left > 0) {
        const ssize_t done = write(file, text, left);
        if (done <= 0)
            return false;
        text += done;
        left -= (size_t)done;
    }
    return lseek(file, 0, SEEK_SET) == 0;
}

// NULL if clang has made nothing.
static char *compile(const char *clang, const char *source, char *options)
{
    static const char *const fixed[] = {"-x",         "cl", "-target", "spir64", "-O2", "-S",
                                        "-emit-llvm", "-w", "-o",      "-",      "-"};
    char *arguments[ARGUMENTS];
    char *lines = NULL;
    const int input = memfd_create("weir source", MFD_CLOEXEC);
    const int output = memfd_create("weir kernels", MFD_CLOEXEC);
    size_t count = 0;
    arguments[count++] = (char *)(uintptr_t)clang;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        arguments[count++] = (char *)(uintptr_t)fixed[i];
    add_options(arguments, count, options);
    const bool written = input >= 0 && output >= 0 && write_text(input, source);
    if (written) {
        const pid_t child = child_start(arguments, input, output, -1);
        if (child_wait(child, DEADLINE_NS))
            lines = keep_lines(output);
    }
    if (input >= 0)
        close(input);
    if (output >= 0)
        close(output);
    return lines;
}

// What is kept on disk: lines, by all that they were made from. Without a folder for it clang runs each time.

static weir_disk_cache *cache;

static void open_cache(void)
{
    char message[256];
    cache = weir_disk_cache_create(NULL, "opencl-layer", CACHE_BYTES, message, sizeof message);
}

static char *read_kept(const char *key)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    void *lines = NULL;
    size_t size = 0;
    pthread_once(&once, open_cache);
    if (!cache || !key || !weir_disk_cache_read(cache, key, strlen(key), &lines, &size))
        return NULL;
    if (size > 0 && ((char *)lines)[size - 1] == '\0')
        return lines;
    free(lines);
    return NULL;
}

static void keep(const char *key, const char *lines)
{
    char message[512];
    if (cache && key)
        (void)weir_disk_cache_write(cache, key, strlen(key), lines, strlen(lines) + 1, message,
                                    sizeof message);
}

// Whether a source may include a file: it has the word outside of its comments. Quotes end with their line.
static bool may_include(const char *source)
{
    char quote = '\0';
    for (const char *at = source; *at; at++) {
        if (!quote && at[0] == '/' && (at[1] == '/' || at[1] == '*')) {
            const char *end = strstr(at + 2, at[1] == '/' ? "\n" : "*/");
            if (!end || end[-1] == '\\') // a line that goes on
                return end != NULL;
            at = end + (*end == '*');
        } else if (strncmp(at, "include", 7) == 0) {
            return true;
        } else if (quote ? *at == quote || *at == '\n' : *at == '"' || *at == '\'') {
            quote = quote ? '\0' : *at;
        } else if (quote && *at == '\\' && at[1]) {
            at++;
        }
    }
    return false;
}

// NULL if the lines do not follow from the source alone: a file that it includes may change.
static char *source_key(const char *clang, const char *options, const char *source)
{
    struct stat status;
    char *key = NULL;
    if (may_include(source) || stat(clang, &status) != 0 ||
        asprintf(&key, "%s %lld %lld\n%s\n%s", clang, (long long)status.st_mtime,
                 (long long)status.st_size, options ? options : "", source) < 0)
        return NULL;
    return key;
}

static void binary_key(const void *binary, size_t size, char key[64])
{
    snprintf(key, 64, "binary %zu %016" PRIx64 "%016" PRIx64, size, weir_hash(0, binary, size),
             weir_hash(1, binary, size));
}

// "" if there is no clang that takes the source.
static char *analyse(const char *source, char *options)
{
    const char *clang = find_clang();
    char *key = clang ? source_key(clang, options, source) : NULL;
    char *lines = read_kept(key);
    if (!lines && clang && (lines = compile(clang, source, options)))
        keep(key, lines);
    free(key);
    return lines ? lines : strdup("");
}

static void make_lines(struct program *program)
{
    layer_lock();
    char *source = program->kernels || !program->source ? NULL : strdup(program->source);
    char *options = program->options ? strdup(program->options) : NULL;
    layer_unlock();
    char *lines = source ? analyse(source, options) : NULL;
    layer_lock();
    if (!program->kernels) {
        program->kernels = lines;
        lines = NULL;
    }
    layer_unlock();
    free(lines);
    free(source);
    free(options);
}

char *access_of_binary(const void *binary, size_t size)
{
    char key[64];
    binary_key(binary, size, key);
    return read_kept(key);
}

void access_keep_binaries(struct program *program, cl_program handle,
                          unsigned char *const *binaries, size_t count)
{
    size_t sizes[BINARIES];
    size_t used = 0;
    char key[64];
    if (layer.driver->clGetProgramInfo(handle, CL_PROGRAM_BINARY_SIZES, sizeof sizes, sizes,
                                       &used) != CL_SUCCESS)
        return;
    if (count > used / sizeof *sizes) // the program's array may be longer than it need be
        count = used / sizeof *sizes;
    make_lines(program);
    layer_lock();
    char *lines = program->kernels ? strdup(program->kernels) : NULL;
    layer_unlock();
    for (size_t i = 0; lines && *lines && i < count; i++) {
        if (!binaries[i] || !sizes[i])
            continue;
        binary_key(binaries[i], sizes[i], key);
        keep(key, lines);
    }
    free(lines);
}

void access_of_kernel(struct kernel *kernel, cl_kernel handle, struct program *program)
{
    char name[256] = "kernel";
    bool decided = true;
    layer.driver->clGetKernelInfo(handle, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
    kernel->name = place_keep(name);
    for (uint32_t i = 0; i < kernel->count; i++) {
        kernel->parameters[i] = parameter_of(handle, i);
        decided = decided && kernel->parameters[i].known;
    }
    if (decided || !program)
        return;
    make_lines(program);
    layer_lock();
    const char *list = program->kernels ? find_list(program->kernels, name) : NULL;
    if (list)
        take(kernel, list);
    layer_unlock();
}
