// See control.h.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/libraries.h"
#include "tests/support/libnvrtc/control.h"

#define EXPORT __attribute__((visibility("default")))
#define DECLARE(result, name, parameters) EXPORT result name parameters;
NVRTC_SYMBOLS(DECLARE)
#undef DECLARE

static const char *const names[] = {
#define NAME(result, name, parameters) #name,
    NVRTC_SYMBOLS(NAME)
#undef NAME
};

#define NAME_COUNT (sizeof names / sizeof *names)
#define FAILED ((nvrtcResult)11)

struct _nvrtcProgram {
    char *image;
    char *log;
};

static long calls[NAME_COUNT];
static long live;
static int newest = 90;
static char last_options[1024];
static struct {
    size_t index;
    long left;
    long struck;
} failure = {.index = NAME_COUNT};

static size_t index_of(const char *name)
{
    size_t index = 0;
    while (index < NAME_COUNT && strcmp(names[index], name) != 0)
        index++;
    return index;
}

static bool admit(const char *name)
{
    const size_t index = index_of(name);
    calls[index]++;
    const bool strikes = index == failure.index && --failure.left == 0;
    failure.struck += strikes;
    return !strikes;
}

#define ADMIT()           \
    if (!admit(__func__)) \
    return FAILED

const char *nvrtcGetErrorString(nvrtcResult result)
{
    (void)admit(__func__);
    return result == NVRTC_SUCCESS             ? "NVRTC_SUCCESS"
           : result == NVRTC_ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION"
                                               : "NVRTC_ERROR_INTERNAL_ERROR";
}

nvrtcResult nvrtcVersion(int *major, int *minor)
{
    ADMIT();
    *major = 13;
    *minor = 0;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetNumSupportedArchs(int *count)
{
    ADMIT();
    *count = 2;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int *known)
{
    ADMIT();
    known[0] = newest < 75 ? newest : 75;
    known[1] = newest;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *out, const char *text, const char *name, int headers,
                               const char *const *texts, const char *const *includes)
{
    (void)name;
    (void)headers;
    (void)texts;
    (void)includes;
    ADMIT();
    *out = calloc(1, sizeof **out);
    if (!*out || asprintf(&(*out)->image, "fake image: %s", text) < 0)
        abort();
    live++;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    const bool admitted = admit(__func__);
    free((*program)->image);
    free((*program)->log);
    free(*program);
    *program = NULL;
    live--;
    return admitted ? NVRTC_SUCCESS : FAILED;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options)
{
    size_t used = 0;
    ADMIT();
    last_options[0] = '\0';
    for (int i = 0; i < count && used < sizeof last_options; i++)
        used +=
            (size_t)snprintf(last_options + used, sizeof last_options - used, "%s ", options[i]);
    if (!strstr(program->image, "not_declared"))
        return NVRTC_SUCCESS;
    program->log = strdup("source(1): error: identifier \"not_declared\" is undefined\n");
    return NVRTC_ERROR_COMPILATION;
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size)
{
    ADMIT();
    *size = program->log ? strlen(program->log) + 1 : 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log)
{
    ADMIT();
    memcpy(log, program->log ? program->log : "", program->log ? strlen(program->log) + 1 : 1);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *size)
{
    ADMIT();
    *size = strlen(program->image) + 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *image)
{
    ADMIT();
    memcpy(image, program->image, strlen(program->image) + 1);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *size)
{
    ADMIT();
    *size = strlen(program->image) + 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *image)
{
    ADMIT();
    memcpy(image, program->image, strlen(program->image) + 1);
    return NVRTC_SUCCESS;
}

static void set_failure(const char *name, long n)
{
    failure.index = name ? index_of(name) : NAME_COUNT;
    failure.left = n;
    failure.struck = 0;
}

static long count_struck(void)
{
    return failure.struck;
}

static const char *name_of(size_t index)
{
    return index < NAME_COUNT ? names[index] : NULL;
}

static long count_calls(const char *name)
{
    const size_t index = index_of(name);
    return index < NAME_COUNT ? calls[index] : -1;
}

static long count_live(void)
{
    return live;
}

static void set_newest(int architecture)
{
    newest = architecture;
}

static const char *get_options(void)
{
    return last_options;
}

EXPORT extern const struct weir_test_nvrtc weir_test_nvrtc;
const struct weir_test_nvrtc weir_test_nvrtc = {
    .fail = set_failure,
    .struck = count_struck,
    .name = name_of,
    .calls = count_calls,
    .live = count_live,
    .set_newest = set_newest,
    .options = get_options,
};
