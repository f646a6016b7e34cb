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

#include "tests/support/calls.h"

struct _nvrtcProgram {
    char *image;
    char *log;
};

static long live;
static int newest = 90;
static char last_options[1024];
#define ADMIT()                 \
    if (calls_strike(__func__)) \
    return FAILED

const char *nvrtcGetErrorString(nvrtcResult result)
{
    (void)calls_strike(__func__);
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
    ADMIT();
    *out = calloc(1, sizeof **out);
    if (!*out || asprintf(&(*out)->image, "fake image: %s", text) < 0)
        abort();
    live++;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    const bool struck = calls_strike(__func__);
    free((*program)->image);
    free((*program)->log);
    free(*program);
    *program = NULL;
    live--;
    return struck ? FAILED : NVRTC_SUCCESS;
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

// The size of a text, with its zero byte, and the text.
#define TEXT(name, text)                                                 \
    nvrtcResult nvrtcGet##name##Size(nvrtcProgram program, size_t *size) \
    {                                                                    \
        ADMIT();                                                         \
        *size = strlen(text) + 1;                                        \
        return NVRTC_SUCCESS;                                            \
    }                                                                    \
    nvrtcResult nvrtcGet##name(nvrtcProgram program, char *out)          \
    {                                                                    \
        ADMIT();                                                         \
        memcpy(out, text, strlen(text) + 1);                             \
        return NVRTC_SUCCESS;                                            \
    }
TEXT(ProgramLog, program->log ? program->log : "")
TEXT(CUBIN, program->image)
TEXT(PTX, program->image)
#undef TEXT

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
    .fail = calls_fail,
    .struck = calls_struck,
    .name = calls_name,
    .calls = calls_count,
    .live = count_live,
    .set_newest = set_newest,
    .options = get_options,
};
