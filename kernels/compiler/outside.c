// What OpenCL C has and a bundle has not, on every device: images, samplers, pipes, queues of the
// device. A name that only a macro makes, or that stands in a part that is not compiled, has to be
// told from others, so clang lists the tokens that are left of the text after preprocessing:
//
//     image2d_t 'image2d_t'    [LeadingSpace] Loc=<k.cl:3:20 <Spelling=k.cl:1:13>>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "kernels/compiler/compiler.h"

enum {
    TOLD_MOST = 20, // as clang
    NAME_SIZE = 64
};

// A line of the list.
struct token {
    char name[NAME_SIZE]; // empty: it is no word
    bool is_keyword;      // and so never a name of the user's
};

static const struct {
    const char *name;
    const char *sentence;
    bool begins;      // keywords that begin with it
    bool from_20;     // in OpenCL C 1.2 it is a name of the user's
    bool before_word; // such as a type
} outside[] = {
    {"image", "images are not built for CUDA; use a buffer", true, false, false},
    {"sampler_t", "samplers are not built for CUDA; compute the coordinates", false, false, false},
    {"pipe", "pipes are not built for CUDA; use a buffer", false, true, true},
    {"queue_t", "kernels cannot enqueue kernels on CUDA; launch from the host", false, true, false},
    {"enqueue_kernel", "kernels cannot enqueue kernels on CUDA; launch from the host", false, true,
     false},
};

static const char *sentence_of(const struct token *token, const struct token *next, bool is_12)
{
    for (size_t i = 0; i < sizeof outside / sizeof *outside && token->name[0]; i++) {
        const size_t length = strlen(outside[i].name);
        const bool named =
            outside[i].begins
                ? token->is_keyword && strncmp(token->name, outside[i].name, length) == 0
                : strcmp(token->name, outside[i].name) == 0;
        if (named && !(is_12 && outside[i].from_20) &&
            (next->name[0] != '\0' || !outside[i].before_word))
            return outside[i].sentence;
    }
    return NULL;
}

// "KIND 'NAME'", where a keyword's kind is its name.
static void read_token(const char *line, struct token *out)
{
    const size_t kind = strcspn(line, " \n");
    const char *name = line + kind + 2;
    *out = (struct token){.name = ""};
    if (strncmp(line + kind, " '", 2) != 0 || !(isalpha((unsigned char)*name) || *name == '_'))
        return;
    const size_t length = strcspn(name, "'\n");
    if (length >= NAME_SIZE || name[length] != '\'')
        return;
    memcpy(out->name, name, length);
    out->is_keyword = length == kind && strncmp(line, name, length) == 0;
}

static void tell(const char *line, const char *name, const char *sentence,
                 struct weir_long_text *report)
{
    static const char mark[] = "Loc=<";
    const char *end = line + strcspn(line, "\n");
    const char *place = strstr(line, mark);
    if (place && place < end) {
        place += sizeof mark - 1;
        const char *stop = strstr(place, " <Spelling=");
        stop = stop && stop < end ? stop : end - 1;
        weir_long_text_add(report, "%.*s: ", (int)(stop - place), place);
    }
    weir_long_text_add(report, "error: '%s': %s\n", name, sentence);
}

static bool check_tokens(const char *tokens, bool is_12, struct weir_long_text *report)
{
    unsigned told = 0;
    struct token token, next;
    for (const char *line = tokens; *line && told < TOLD_MOST;) {
        const char *newline = strchr(line, '\n');
        const char *after = newline ? newline + 1 : line + strlen(line);
        read_token(line, &token);
        read_token(after, &next);
        const char *sentence = sentence_of(&token, &next, is_12);
        if (sentence) {
            tell(line, token.name, sentence, report);
            told++;
        }
        line = after;
    }
    return told == 0;
}

// Most texts have none of the words, and then clang need not be asked.
static bool may_have_some(const char *text)
{
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        if (strstr(text, outside[i].name))
            return true;
    return false;
}

bool kc_check_outside(const struct kc_tools *tools, const struct kc_language *language,
                      const char *text, const char *folder, struct weir_long_text *report)
{
    char source[1024], standard[64], message[512];
    if (!may_have_some(text))
        return true;
    snprintf(source, sizeof source, "%s/tokens.cl", folder);
    snprintf(standard, sizeof standard, "-cl-std=%s", language->standard);
    if (!weir_file_write(source, text, strlen(text), message, sizeof message)) {
        weir_long_text_add(report, "error: %s\n", message);
        return false;
    }
    struct kc_job job = {.arguments = {tools->clang, "-x", "cl", standard, "-target", "spir64",
                                       "-Xclang", KC_EXTENSIONS, KC_DEVICE_VERSION,
                                       "-U__IMAGE_SUPPORT__", "-fsyntax-only", "-Xclang",
                                       "-dump-tokens", source}};
    kc_run(&job, 1);
    const bool fine = check_tokens(job.errors ? job.errors : "",
                                   strcmp(language->standard, "CL1.2") == 0, report);
    kc_jobs_finish(&job, 1);
    return fine;
}
