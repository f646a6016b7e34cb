// Makes a weights file for the ARR-COC pipeline from a seed. No trained weights
// are public; this file has the names, shapes and magnitudes of trained ones, so
// that it is loaded and costs what they would.
//
// The bytes depend on the seed and the query size alone, on any machine with
// IEEE doubles: integers, + - * / and sqrt are all that is used, no libm function
// whose last bit may vary, and the file is compiled without contraction.
//
//   matrix [out, in]  normal, mean 0, deviation sqrt(2 / in) (He et al. 2015,
//                     https://arxiv.org/abs/1502.01852, for layers with relu)
//   bias              normal, mean 0, deviation 0.1: not zero, so that a bias that
//                     is forgotten or misplaced changes the result
//
// Every tensor has a stream of its own, so its values do not depend on the
// size of the tensors before it.

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/safetensors.h"

enum { QUERY_SIZE_DEFAULT = 1536, QUERY_SIZE_MAX = 65536, TENSORS = 10 };

static const uint64_t seed_default = 20240607;
static const double bias_deviation = 0.1;

static const char usage[] =
    "usage: generate [--query-size N] [--seed N] OUTPUT.safetensors\n"
    "Writes seeded weights for the ARR-COC pipeline.\n"
    "  --query-size N  numbers in a query, 1 to 65536 (default 1536)\n"
    "  --seed N        a 64-bit number (default 20240607)\n";

// splitmix64, by Sebastiano Vigna, https://prng.di.unimi.it/splitmix64.c
static uint64_t next_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

// The start of stream `index`. Hashed, since the states of splitmix64 lie on one
// line: neighbouring seeds could run into each other.
static uint64_t stream(uint64_t seed, uint64_t index)
{
    uint64_t state = seed;
    state = next_bits(&state) + index;
    return next_bits(&state);
}

// In [-1, 1), a multiple of 2^-52.
static double next_uniform(uint64_t *state)
{
    return (double)(next_bits(state) >> 11) * 0x1p-52 - 1.0;
}

// The natural logarithm of x > 0: ln x = e ln 2 + 2 artanh((m - 1)/(m + 1)) with m
// near 1, where |z| <= 0.172 and the series is exact to a double after z^21.
static double logarithm(double x)
{
    int exponent = 0;
    double m = frexp(x, &exponent);
    if (m < 0.70710678118654752440) {
        m *= 2;
        exponent--;
    }
    double z = (m - 1) / (m + 1);
    double square = z * z;
    double sum = 0;
    for (int k = 21; k >= 1; k -= 2) {
        sum = sum * square + 1.0 / k;
    }
    return exponent * 0.69314718055994530942 + 2 * z * sum;
}

// Box and Muller's pair in Marsaglia's polar form, which needs neither sine nor
// cosine (https://doi.org/10.1137/1006063).
static void next_normals(uint64_t *state, double out[2])
{
    double x, y, s;
    do {
        x = next_uniform(state);
        y = next_uniform(state);
        s = x * x + y * y;
    } while (s >= 1.0 || s == 0.0);
    double scale = sqrt(-2.0 * logarithm(s) / s);
    out[0] = x * scale;
    out[1] = y * scale;
}

static void fill_normal(float *values, uint64_t count, double deviation, uint64_t state)
{
    for (uint64_t i = 0; i < count; i += 2) {
        double pair[2];
        next_normals(&state, pair);
        values[i] = (float)(pair[0] * deviation);
        if (i + 1 < count) {
            values[i + 1] = (float)(pair[1] * deviation);
        }
    }
}

static uint64_t element_count(const struct weir_io_tensor *tensor)
{
    return tensor->rank == 1 ? tensor->shape[0] : tensor->shape[0] * tensor->shape[1];
}

static void describe(uint64_t query_size, struct weir_io_tensor tensors[TENSORS])
{
    const struct weir_io_tensor list[TENSORS] = {
        {.name = "participatory.0.weight", .rank = 2, .shape = {64, 13}},
        {.name = "participatory.0.bias", .rank = 1, .shape = {64}},
        {.name = "participatory.2.weight", .rank = 2, .shape = {query_size, 64}},
        {.name = "participatory.2.bias", .rank = 1, .shape = {query_size}},
        {.name = "balancer.0.weight", .rank = 2, .shape = {128, 9 + query_size}},
        {.name = "balancer.0.bias", .rank = 1, .shape = {128}},
        {.name = "balancer.2.weight", .rank = 2, .shape = {128, 128}},
        {.name = "balancer.2.bias", .rank = 1, .shape = {128}},
        {.name = "balancer.4.weight", .rank = 2, .shape = {3, 128}},
        {.name = "balancer.4.bias", .rank = 1, .shape = {3}},
    };
    memcpy(tensors, list, sizeof list);
}

static bool write_weights(const char *path, uint64_t query_size, uint64_t seed)
{
    struct weir_io_tensor tensors[TENSORS];
    struct weir_io_error error;
    uint64_t total = 0;
    describe(query_size, tensors);
    for (int i = 0; i < TENSORS; i++) {
        total += element_count(&tensors[i]);
    }

    float *values = malloc(total * sizeof *values);
    if (!values) {
        fprintf(stderr, "generate: no memory for %" PRIu64 " numbers; "
                        "a smaller --query-size needs less\n", total);
        return false;
    }
    float *next = values;
    for (int i = 0; i < TENSORS; i++) {
        uint64_t count = element_count(&tensors[i]);
        double deviation =
            tensors[i].rank == 2 ? sqrt(2.0 / (double)tensors[i].shape[1]) : bias_deviation;
        fill_normal(next, count, deviation, stream(seed, (uint64_t)i));
        tensors[i].dtype = WEIR_IO_F32;
        tensors[i].data = next;
        next += count;
    }
    bool written = weir_io_safetensors_write(path, tensors, TENSORS, &error);
    if (!written) {
        fprintf(stderr, "generate: %s\n", error.message);
    }
    free(values);
    return written;
}

// A whole decimal number from `low` to `high`, or a sentence.
static bool parse_number(const char *option, const char *text, uint64_t low, uint64_t high,
                         uint64_t *out_number)
{
    char *end = NULL;
    errno = 0;
    unsigned long long number = text ? strtoull(text, &end, 10) : 0;
    if (!text || text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 ||
        number < low || number > high) {
        fprintf(stderr,
                "generate: %s takes a whole number from %" PRIu64 " to %" PRIu64 ", not '%s'\n",
                option, low, high, text ? text : "");
        return false;
    }
    *out_number = number;
    return true;
}

int main(int argc, char **argv)
{
    uint64_t query_size = QUERY_SIZE_DEFAULT, seed = seed_default;
    const char *path = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            fputs(usage, stdout);
            return EXIT_SUCCESS;
        } else if (strcmp(argv[i], "--query-size") == 0) {
            if (!parse_number(argv[i], argv[i + 1], 1, QUERY_SIZE_MAX, &query_size)) {
                return EXIT_FAILURE;
            }
            i++;
        } else if (strcmp(argv[i], "--seed") == 0) {
            if (!parse_number(argv[i], argv[i + 1], 0, UINT64_MAX, &seed)) {
                return EXIT_FAILURE;
            }
            i++;
        } else if (argv[i][0] == '-' || path) {
            fprintf(stderr, "generate: '%s' was not expected\n%s", argv[i], usage);
            return EXIT_FAILURE;
        } else {
            path = argv[i];
        }
    }
    if (!path) {
        fprintf(stderr, "generate: the file to write is missing\n%s", usage);
        return EXIT_FAILURE;
    }
    return write_weights(path, query_size, seed) ? EXIT_SUCCESS : EXIT_FAILURE;
}
