// The section [arr_coc], and the query that is used in place of a real one.
#include <string.h>

#include "pipelines/arr_coc/normal.h"
#include "pipelines/arr_coc/parts.h"

static const struct weir_key keys[] = {
    {.name = "side",
     .type = WEIR_KEY_INTEGER,
     .fallback = "1024",
     .minimum = 32,
     .maximum = 4096,
     .help = "Working size in pixels; images are resized to side x side. A multiple of grid."},
    {.name = "grid",
     .type = WEIR_KEY_INTEGER,
     .fallback = "32",
     .minimum = 1,
     .maximum = 256,
     .help = "Patches per side."},
    {.name = "budget",
     .type = WEIR_KEY_INTEGER,
     .fallback = "4096",
     .minimum = 64,
     .maximum = 1048576,
     .help = "Tokens that an image may cost."},
    {.name = "max_pixels",
     .type = WEIR_KEY_INTEGER,
     .fallback = "67108864",
     .minimum = 1,
     .maximum = 1073741824,
     .help = "Larger images are refused; the largest image that is run sizes the slots."},
};

static const struct weir_section section = {
    .struct_size = sizeof section,
    .name = "arr_coc",
    .keys = keys,
    .key_count = sizeof keys / sizeof *keys,
    .key_size = sizeof keys[0],
};

const struct weir_section *weir_arr_coc_section(void)
{
    return &section;
}

weir_status weir_arr_coc_params_from_settings(const weir_runtime *runtime,
                                              struct weir_arr_coc_params *params)
{
    const struct weir_setting *values[sizeof keys / sizeof *keys];
    struct weir_pipeline_params pipeline = {.struct_size = sizeof pipeline};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!(values[i] = weir_runtime_setting(runtime, section.name, keys[i].name))) {
            struct weir_error error = {
                .status = WEIR_ERROR_NOT_FOUND,
                .message = "the section [arr_coc] was not declared to weir_open()",
                .remedy = "put weir_arr_coc_section() into weir_open_params.sections",
            };
            return weir_error_set(&error);
        }
    weir_status status = weir_pipeline_params_from_settings(runtime, NULL, &pipeline);
    if (status < 0)
        return status;
    params->sizes.side = (uint32_t)values[0]->integer;
    params->sizes.grid = (uint32_t)values[1]->integer;
    params->sizes.budget = (uint32_t)values[2]->integer;
    params->max_pixels = (uint64_t)values[3]->integer;
    params->slot_count = pipeline.slot_count;
    params->full = pipeline.full;
    params->backlog = pipeline.backlog;
    params->timing = pipeline.timing;
    params->graphs = pipeline.graphs;
    return WEIR_OK;
}

void weir_arr_coc_seeded_query(uint64_t seed, float *query, size_t query_size)
{
    weir_arr_coc_fill_normal(query, query_size, 1.0, weir_arr_coc_stream(seed, 0));
}
