// Looks up the ten tensors. D is the size of participatory.2.bias; the other
// shapes follow from it.
#include "pipelines/arr_coc/weights.h"

#include <stdint.h>
#include <stdlib.h>

#include "io/safetensors.h"

struct weir_arr_coc_weights {
    weir_io_safetensors *file;
    size_t query_size;
    struct arr_coc_tensors tensors;
};

struct wanted {
    const char *name;
    int rank;
    uint64_t shape[2];
    const float **out_values;
};

static bool find(const char *path, const weir_io_safetensors *file, const struct wanted *wanted,
                 struct weir_io_error *error)
{
    uint64_t count = wanted->shape[0] * (wanted->rank == 2 ? wanted->shape[1] : 1);
    return weir_io_safetensors_find(file, wanted->name, wanted->rank, wanted->shape,
                                    wanted->out_values, error) &&
           weir_io_check_finite(path, wanted->name, *wanted->out_values, (size_t)count, error);
}

static bool find_all(const char *path, weir_arr_coc_weights *weights, struct weir_io_error *error)
{
    const uint64_t any = WEIR_IO_ANY_SIZE;
    const float *unused;
    if (!weir_io_safetensors_find(weights->file, "participatory.2.bias", 1, &any, &unused, error))
        return false;
    const uint64_t d = weir_io_safetensors_get(weights->file, "participatory.2.bias")->shape[0];
    if (d == 0)
        return weir_io_fail(error, path,
                            "participatory.2.bias is empty; a query needs at least "
                            "one number");

    struct arr_coc_tensors *t = &weights->tensors;
    const struct wanted list[] = {
        {"participatory.0.weight", 2, {64, 13}, &t->participatory_0_weight},
        {"participatory.0.bias", 1, {64}, &t->participatory_0_bias},
        {"participatory.2.weight", 2, {d, 64}, &t->participatory_2_weight},
        {"participatory.2.bias", 1, {d}, &t->participatory_2_bias},
        {"balancer.0.weight", 2, {128, 9 + d}, &t->balancer_0_weight},
        {"balancer.0.bias", 1, {128}, &t->balancer_0_bias},
        {"balancer.2.weight", 2, {128, 128}, &t->balancer_2_weight},
        {"balancer.2.bias", 1, {128}, &t->balancer_2_bias},
        {"balancer.4.weight", 2, {3, 128}, &t->balancer_4_weight},
        {"balancer.4.bias", 1, {3}, &t->balancer_4_bias},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (!find(path, weights->file, &list[i], error))
            return false;
    weights->query_size = (size_t)d;
    return true;
}

bool weir_arr_coc_weights_load(const char *path, weir_arr_coc_weights **out_weights,
                               struct weir_io_error *error)
{
    *out_weights = NULL;
    weir_arr_coc_weights *weights = calloc(1, sizeof *weights);
    if (!weights)
        return weir_io_fail(error, path, "no memory");
    if (!weir_io_safetensors_open(path, &weights->file, error) || !find_all(path, weights, error)) {
        weir_arr_coc_weights_destroy(&weights);
        return false;
    }
    *out_weights = weights;
    return true;
}

void weir_arr_coc_weights_destroy(weir_arr_coc_weights **weights)
{
    if (!weights || !*weights)
        return;
    weir_io_safetensors_destroy(&(*weights)->file);
    free(*weights);
    *weights = NULL;
}

size_t weir_arr_coc_weights_query_size(const weir_arr_coc_weights *weights)
{
    return weights->query_size;
}

const struct arr_coc_tensors *weir_arr_coc_weights_tensors(const weir_arr_coc_weights *weights)
{
    return &weights->tensors;
}
