// Makes a weights file for the ARR-COC pipeline from a seed. No trained weights
// are public; this file has the names, shapes and magnitudes of trained ones, so
// that it loads and performs as they would.
//
// The bytes depend only on the seed and the query size, on any machine with IEEE
// doubles; see weights.c.
//
//   matrix [out, in]  normal, mean 0, deviation sqrt(2 / in) (He et al. 2015,
//                     https://arxiv.org/abs/1502.01852, for layers with relu)
//   bias              normal, mean 0, deviation 0.1: not zero, so that a bias that
//                     is forgotten or misplaced changes the result
//
// Every tensor has its own stream, so its values do not depend on the size of the
// tensors before it.

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "pipelines/arr_coc/weights.h"

enum {
    QUERY_SIZE_DEFAULT = 1536,
    QUERY_SIZE_MAX = 65536
};

static const uint64_t seed_default = 20240607;
static const double bias_deviation = 0.1;

static const char usage[] = "usage: generate [--query-size N] [--seed N] OUTPUT.safetensors\n"
                            "Writes seeded weights for the ARR-COC pipeline.\n"
                            "  --query-size N  numbers in a query, 1 to 65536 (default 1536)\n"
                            "  --seed N        a 64-bit number (default 20240607)\n";

static uint64_t element_count(const struct weir_io_tensor *tensor)
{
    return tensor->rank == 1 ? tensor->shape[0] : tensor->shape[0] * tensor->shape[1];
}

static bool write_weights(const char *path, uint64_t query_size, uint64_t seed)
{
    struct weir_io_tensor tensors[WEIR_ARR_COC_TENSORS];
    struct weir_io_error error;
    uint64_t total = 0;
    weir_arr_coc_weights_describe(query_size, tensors);
    for (int i = 0; i < WEIR_ARR_COC_TENSORS; i++) {
        total += element_count(&tensors[i]);
    }

    float *values = malloc(total * sizeof *values);
    if (!values) {
        fprintf(stderr,
                "generate: no memory for %" PRIu64 " numbers; "
                "a smaller --query-size needs less\n",
                total);
        return false;
    }
    float *next = values;
    for (int i = 0; i < WEIR_ARR_COC_TENSORS; i++) {
        uint64_t count = element_count(&tensors[i]);
        double deviation =
            tensors[i].rank == 2 ? sqrt(2.0 / (double)tensors[i].shape[1]) : bias_deviation;
        weir_arr_coc_fill_normal(next, count, deviation, weir_random_stream(seed, (uint64_t)i));
        tensors[i].dtype = WEIR_IO_F32;
        tensors[i].data = next;
        next += count;
    }
    bool written = weir_io_safetensors_write(path, tensors, WEIR_ARR_COC_TENSORS, &error);
    if (!written) {
        fprintf(stderr, "generate: %s\n", error.message);
    }
    free(values);
    return written;
}

// Parses a decimal number from `low` to `high`, or prints a message.
static bool parse_number(const char *option, const char *text, uint64_t low, uint64_t high,
                         uint64_t *out_number)
{
    char *end = NULL;
    errno = 0;
    unsigned long long number = text ? strtoull(text, &end, 10) : 0;
    if (!text || text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || number < low ||
        number > high) {
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
