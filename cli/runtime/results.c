// Keeping and comparing results of ARR-COC.
#include "cli/runtime/results.h"

#include <string.h>

#include "cli/common/cli.h"
#include "cli/common/folder.h"

enum {
    PARTS = 5
};

struct part {
    const void *data;
    size_t size;
};

static void list_parts(const struct weir_arr_coc_output *output,
                       const struct weir_arr_coc_sizes *sizes, struct part parts[PARTS])
{
    const size_t map = (size_t)sizes->grid * sizes->grid * sizeof(float);
    parts[0] = (struct part){output->balance, 3 * sizeof(float)};
    parts[1] = (struct part){output->relevance, map};
    parts[2] = (struct part){output->scores, 3 * map};
    parts[3] = (struct part){output->patches, (size_t)output->patch_count * 3 * sizeof(int32_t)};
    parts[4] = (struct part){output->tokens,
                             (size_t)output->token_count * WEIR_ARR_COC_CHANNELS * sizeof(float)};
}

size_t cli_results_place(struct weir_arr_coc_output *output, const struct weir_arr_coc_sizes *sizes,
                         void *at)
{
    struct part parts[PARTS];
    void *places[PARTS];
    size_t used = 0;
    list_parts(output, sizes, parts);
    for (int i = 0; i < PARTS; used += parts[i++].size)
        places[i] = at ? (char *)at + used : NULL;
    output->balance = places[0];
    output->relevance = places[1];
    output->scores = places[2];
    output->patches = places[3];
    output->tokens = places[4];
    return used;
}

void cli_results_copy(const struct weir_arr_coc_output *output,
                      const struct weir_arr_coc_sizes *sizes, void *at,
                      struct weir_arr_coc_output *out_copy)
{
    struct part parts[PARTS];
    char *to = at;
    list_parts(output, sizes, parts);
    *out_copy = *output;
    cli_results_place(out_copy, sizes, at);
    for (int i = 0; i < PARTS; to += parts[i++].size)
        memcpy(to, parts[i].data, parts[i].size);
}

bool cli_results_same(const struct weir_arr_coc_output *a, const struct weir_arr_coc_output *b,
                      const struct weir_arr_coc_sizes *sizes)
{
    struct part one[PARTS], other[PARTS];
    bool same = a->patch_count == b->patch_count && a->token_count == b->token_count;
    list_parts(a, sizes, one);
    list_parts(b, sizes, other);
    for (int i = 0; i < PARTS && same; i++)
        same = memcmp(one[i].data, other[i].data, one[i].size) == 0;
    return same;
}

bool cli_find_weights(char *path, size_t size)
{
    char message[9000];
    if (cli_share_file("arr_coc_weights.safetensors",
                       "pipelines/arr_coc/weights/arr_coc_weights.safetensors", path, size, message,
                       sizeof message))
        return true;
    cli_error("no weights: %s; name a file with --weights", message);
    return false;
}
