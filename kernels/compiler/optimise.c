// Optimising the module: how far loops are unrolled, by what comes of that.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/compiler/compiler.h"

// Limits of unrolling: the size of a loop that is unrolled whole, and of one that is unrolled in part.
struct limits {
    const char *whole;
    const char *part;
};

// What the time for making code grows with.
enum {
    BLOCK,  // the most instructions between two labels
    BLOCKS, // the most labels of a function
    ALL,    // instructions
    EXTENTS
};

// From here on it is worth to make less code of the same source.
static const size_t large[EXTENTS] = {[BLOCK] = 900, [BLOCKS] = 400, [ALL] = 8000};

enum {
    HUGE_BLOCK = 2500,
    PATH_SIZE = 1024
};

// A module on its way: the text of what came out, and its extents.
struct outcome {
    char *ir;
    size_t extents[EXTENTS];
};

static void measure(const char *ir, size_t out[EXTENTS])
{
    size_t block = 0, blocks = 0;
    memset(out, 0, EXTENTS * sizeof *out);
    for (const char *line = ir; line; line = kc_next_line(line)) {
        const bool instruction = kc_starts_with(line, "  ");
        block = instruction ? block + 1 : 0;
        blocks = *line == '}' ? 0 : blocks + (kc_in_line(line, ":  ") && !instruction);
        out[ALL] += instruction;
        out[BLOCK] = block > out[BLOCK] ? block : out[BLOCK];
        out[BLOCKS] = blocks > out[BLOCKS] ? blocks : out[BLOCKS];
    }
}

static bool optimise_within(const struct kc_context *context, const char *in, struct limits limits,
                            const char *path, struct outcome *out)
{
    struct kc_job job = {0};
    size_t size;
    KC_ADD(&job, context->tools->clang, KC_NO_CRASH_FILES, "-target", KC_TARGET, "-x", "ir", "-O3",
           KC_MARCH_LOWEST, "-S", "-emit-llvm", in, "-o", path, "-mllvm", limits.whole, "-mllvm",
           limits.part);
    // A loop whose number of turns takes some instructions to compute is unrolled too, and one of more
    // than 256 turns gains nothing by being unrolled wholly.
    KC_ADD(&job, "-mllvm", "-scev-cheap-expansion-budget=40", "-mllvm",
           "-unroll-full-max-count=256");
    // Both sides of `i < n && j < n` are computed before one branch, so that reads of ids and parameters do not wait
    // for each other.
    KC_ADD(&job, "-mllvm", "-bonus-inst-threshold=10", "-mllvm", "-instcombine-code-sinking=0");
    if (!kc_run_well(&job, 1, "clang cannot optimise the kernels for CUDA", context->report) ||
        !kc_read(path, &out->ir, &size, context->report))
        return false;
    measure(out->ir, out->extents);
    return true;
}

static bool is_large(const struct outcome *outcome)
{
    bool any = false;
    for (size_t i = 0; i < EXTENTS; i++)
        any = any || outcome->extents[i] > large[i];
    return any;
}

static bool is_halved(const struct outcome *far, const struct outcome *near)
{
    bool any = false;
    for (size_t i = 0; i < EXTENTS; i++)
        any = any || (far->extents[i] > large[i] && near->extents[i] <= far->extents[i] / 2);
    return any;
}

// Puts the module of lower limits in the place of that of the higher ones, if it is much smaller.
static bool make_less(const struct kc_context *context, const char *in, struct limits limits,
                      const char *path, struct outcome *outcome)
{
    char other[PATH_SIZE];
    struct outcome less = {0};
    snprintf(other, sizeof other, "%s/less.ll", context->folder);
    bool fine = optimise_within(context, in, limits, other, &less);
    if (fine && is_halved(outcome, &less)) {
        const struct outcome more = *outcome;
        *outcome = less;
        less = more;
        fine = rename(other, path) == 0 ||
               kc_error(context->report, "a file on the way cannot be renamed");
    }
    free(less.ir);
    return fine;
}

// A GPU hides the time of loads by issuing many, so loops are unrolled further than on a CPU: with
// LLVM's own limits the relevance of ARR-COC took 46 us on an H200, and 26 with the first of these. Where code comes of
// that which takes minutes to make (its largest block, the number of blocks, which loops with conditions in them
// multiply, or all), the next limits hold if they halve it: 64 turns of tanh are unrolled by eight, as nvcc has it.
// The last hold for modules that are large before, and for kernels with images, whose loops of reads
// would take so many registers that few blocks run at once: a convolution of 3 x 3 took 909 us with the
// first, and 347.
bool kc_optimise(const struct kc_context *context, const char *ir, bool images, const char *path,
                 char **out_ir, bool *out_huge)
{
    static const struct limits falling[] = {
        {"-unroll-threshold=2000", "-unroll-partial-threshold=1000"},
        {"-unroll-threshold=300", "-unroll-partial-threshold=300"},
        {"-unroll-threshold=300", "-unroll-partial-threshold=150"},
    };
    enum {
        COUNT = sizeof falling / sizeof *falling
    };
    char in[PATH_SIZE];
    size_t before[EXTENTS];
    struct outcome outcome = {0};
    snprintf(in, sizeof in, "%s/changed.ll", context->folder);
    measure(ir, before);
    size_t at = images || before[ALL] > large[ALL] ? COUNT - 1 : 0;
    bool fine = kc_write(in, ir, context->report) &&
                optimise_within(context, in, falling[at], path, &outcome);
    while (fine && is_large(&outcome) && ++at < COUNT)
        fine = make_less(context, in, falling[at], path, &outcome);
    *out_huge = outcome.extents[BLOCK] > HUGE_BLOCK;
    *out_ir = fine ? outcome.ir : NULL;
    if (!fine)
        free(outcome.ir);
    return fine;
}
