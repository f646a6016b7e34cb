// Makes a weights file for the ARR-COC pipeline from a seed. No trained weights
// are public; this file has the names, shapes and magnitudes of trained ones, so
// that it loads and performs as they would.
//
// The bytes depend only on the query size, on any machine with IEEE doubles; see
// weights.c.
//
//   matrix [out, in]  normal, mean 0, deviation sqrt(2 / in) (He et al. 2015,
//                     https://arxiv.org/abs/1502.01852, for layers with relu)
//   bias              normal, mean 0, deviation 0.1: not zero, so that a bias that
//                     is forgotten or misplaced changes the result
//
// Every tensor has its own stream, so its values do not depend on the size of the
// tensors before it.

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "pipelines/arr_coc/weights.h"

enum {
    QUERY_SIZE_DEFAULT = 1536,
    QUERY_SIZE_MAX = 65536
};

static const uint64_t seed = 20240607;
static const double bias_deviation = 0.1;

static uint64_t element_count(const struct weir_io_tensor *tensor)
{
    return tensor->rank == 1 ? tensor->shape[0] : tensor->shape[0] * tensor->shape[1];
}

static bool write_weights(const char *path, uint64_t query_size)
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
        fprintf(stderr, "generate: no memory for %" PRIu64 " numbers\n", total);
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

int main(int argc, char **argv)
{
    const long query_size = argc > 2 ? strtol(argv[2], NULL, 10) : QUERY_SIZE_DEFAULT;
    if (argc < 2 || argc > 3 || query_size < 1 || query_size > QUERY_SIZE_MAX) {
        fprintf(stderr, "usage: generate OUTPUT.safetensors [numbers in a query, 1 to %d]\n",
                QUERY_SIZE_MAX);
        return EXIT_FAILURE;
    }
    return write_weights(argv[1], (uint64_t)query_size) ? EXIT_SUCCESS : EXIT_FAILURE;
}
