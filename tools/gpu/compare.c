// compare: whether two runs of `weir run arr-coc` agree. Each is a folder with its
// files. Relevance, scores and weights are compared within twice the difference
// that one backend may have from the reference, and so are the tokens of the
// patches that both took at the same size. The choice of patches is not compared:
// a difference of one unit in the last place may change it. Instead each run's
// patches must be exactly those that follow from its own relevance.
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/npy.h"
#include "pipelines/arr_coc/weights.h"

enum {
    SAME = 0,
    DIFFERENT = 1,
    UNUSABLE = 2
};
enum {
    CHANNELS = 13
};
enum {
    RELEVANCE,
    SCORES,
    TOKENS,
    PATCHES,
    ARRAYS
};

static const double relevance_limit = 2e-4;
static const double token_limit = 1e-4;

static const char *const array_names[ARRAYS] = {"relevance", "scores", "tokens", "patches"};
static const char *const weight_names[3] = {"propositional", "perspectival", "participatory"};

struct result {
    struct weir_io_npy arrays[ARRAYS];
    double weights[3];
    int64_t budget;
    char device[192];
};

// Reading.

static bool read_json(const char *folder, const char *name, struct result *result)
{
    char path[4096];
    json_error_t error;
    const char *module = "", *device = "", *platform = "";
    json_int_t budget = 0;
    snprintf(path, sizeof path, "%s/%s.json", folder, name);
    json_t *root = json_load_file(path, 0, &error);
    const bool fine =
        root &&
        json_unpack_ex(root, &error, 0, "{s:I, s:{s:F, s:F, s:F}, s:{s:s, s:s, s:s}}", "budget",
                       &budget, "weights", weight_names[0], &result->weights[0], weight_names[1],
                       &result->weights[1], weight_names[2], &result->weights[2], "device",
                       "module", &module, "name", &device, "platform", &platform) == 0;
    if (fine)
        snprintf(result->device, sizeof result->device, "%s, %s (%s)", module, device, platform);
    else
        fprintf(stderr, "compare: %s: %s\n", path, error.text);
    result->budget = budget;
    json_decref(root);
    return fine;
}

// The shapes that the code below relies on.
static bool check_shapes(const char *folder, const char *name, const struct weir_io_npy *arrays)
{
    const struct weir_io_npy *relevance = &arrays[RELEVANCE], *tokens = &arrays[TOKENS],
                             *patches = &arrays[PATCHES];
    const int32_t *patch = patches->data;
    bool fine = relevance->rank == 2 && relevance->count <= UINT32_MAX && tokens->rank == 2 &&
                patches->rank == 2 && tokens->shape[1] == CHANNELS && patches->shape[1] == 3 &&
                arrays[SCORES].count == 3 * relevance->count;
    uint64_t token = 0;
    for (uint64_t i = 0; fine && i < patches->shape[0]; i++, patch += 3) {
        fine = patch[0] >= 0 && (uint64_t)patch[0] < relevance->count && patch[1] > 0 &&
               patch[1] <= 64 && patch[2] >= 0 && (uint64_t)patch[2] == token;
        token += fine ? (uint64_t)patch[1] * (uint64_t)patch[1] : 0;
    }
    fine = fine && token == tokens->shape[0];
    if (!fine)
        fprintf(stderr, "compare: %s/%s: the arrays do not fit together\n", folder, name);
    return fine;
}

static bool read_result(const char *folder, const char *name, struct result *result)
{
    for (int i = 0; i < ARRAYS; i++) {
        char path[4096];
        struct weir_io_error error;
        snprintf(path, sizeof path, "%s/%s.%s.npy", folder, name, array_names[i]);
        if (!weir_io_npy_read(path, i == PATCHES ? WEIR_IO_I32 : WEIR_IO_F32, &result->arrays[i],
                              &error)) {
            fprintf(stderr, "compare: %s\n", error.message);
            return false;
        }
    }
    return read_json(folder, name, result) && check_shapes(folder, name, result->arrays);
}

// Comparing.

// Whether the patches are those that follow from the relevance.
static bool follows(const struct result *result)
{
    const struct weir_io_npy *relevance = &result->arrays[RELEVANCE];
    return weir_arr_coc_follows(relevance->data, (uint32_t)relevance->count, result->budget,
                                result->arrays[PATCHES].data,
                                (uint32_t)result->arrays[PATCHES].shape[0],
                                (int64_t)result->arrays[TOKENS].shape[0]);
}

// The largest difference; a NaN on either side counts as infinite.
static double farthest(const float *a, const float *b, uint64_t count)
{
    double most = 0;
    for (uint64_t i = 0; i < count; i++) {
        const double difference = fabs((double)a[i] - (double)b[i]);
        if (!(difference <= most))
            most = isnan(difference) ? INFINITY : difference;
    }
    return most;
}

static double farthest_of(const struct result *a, const struct result *b, int array)
{
    return farthest(a->arrays[array].data, b->arrays[array].data, a->arrays[array].count);
}

// The largest difference of tokens in patches with the same place and side, and
// the number of these patches.
static double compare_tokens(const struct result *a, const struct result *b, uint64_t *out_same)
{
    const int32_t *p = a->arrays[PATCHES].data, *q = b->arrays[PATCHES].data;
    const float *s = a->arrays[TOKENS].data, *t = b->arrays[TOKENS].data;
    double most = 0;
    *out_same = 0;
    for (uint64_t i = 0; i < a->arrays[PATCHES].shape[0]; i++)
        for (uint64_t k = 0; k < b->arrays[PATCHES].shape[0]; k++) {
            if (p[3 * i] != q[3 * k] || p[3 * i + 1] != q[3 * k + 1])
                continue;
            const uint64_t numbers = (uint64_t)p[3 * i + 1] * (uint64_t)p[3 * i + 1] * CHANNELS;
            most = fmax(most, farthest(s + CHANNELS * (size_t)p[3 * i + 2],
                                       t + CHANNELS * (size_t)q[3 * k + 2], numbers));
            ++*out_same;
        }
    return most;
}

static int compare_results(const char *name, const struct result *a, const struct result *b)
{
    if (memcmp(a->arrays[RELEVANCE].shape, b->arrays[RELEVANCE].shape, 2 * sizeof(uint64_t)) != 0 ||
        a->budget != b->budget) {
        printf("%s: the runs have other sizes: run both with the same configuration\n", name);
        return UNUSABLE;
    }
    uint64_t same;
    double weights = 0;
    const double relevance = farthest_of(a, b, RELEVANCE), scores = farthest_of(a, b, SCORES);
    const double tokens = compare_tokens(a, b, &same);
    for (int i = 0; i < 3; i++)
        weights = fmax(weights, fabs(a->weights[i] - b->weights[i]));
    const bool allocated = follows(a) && follows(b);
    const bool agree = relevance <= relevance_limit && scores <= relevance_limit &&
                       weights <= relevance_limit && tokens <= token_limit && allocated && same > 0;
    printf("%s: %s: relevance %.1e, scores %.1e, weights %.1e (at most %.0e); tokens %.1e (at most "
           "%.0e) in %" PRIu64 " common patches of %" PRIu64 " and %" PRIu64 "%s\n",
           name, agree ? "agree" : "DIFFER", relevance, scores, weights, relevance_limit, tokens,
           token_limit, same, a->arrays[PATCHES].shape[0], b->arrays[PATCHES].shape[0],
           allocated ? "" : "; the patches are not those that the relevance asks for");
    return agree ? SAME : DIFFERENT;
}

static int compare(const char *const folders[2], const char *name, bool say_devices)
{
    struct result results[2] = {{.budget = 0}};
    int answer = UNUSABLE;
    if (read_result(folders[0], name, &results[0]) && read_result(folders[1], name, &results[1])) {
        if (say_devices)
            printf("%s | %s\n", results[0].device, results[1].device);
        answer = compare_results(name, &results[0], &results[1]);
    }
    for (int i = 0; i < 2 * ARRAYS; i++)
        weir_io_npy_finish(&results[i / ARRAYS].arrays[i % ARRAYS]);
    return answer;
}

int main(int argc, char **argv)
{
    int worst = SAME;
    if (argc < 4) {
        fprintf(stderr, "usage: compare FOLDER FOLDER NAME...\n");
        return UNUSABLE;
    }
    const char *const folders[2] = {argv[1], argv[2]};
    for (int i = 3; i < argc; i++) {
        const int answer = compare(folders, argv[i], i == 3);
        worst = answer > worst ? answer : worst;
    }
    return worst;
}
