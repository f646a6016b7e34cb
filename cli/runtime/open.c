// Runtimes and devices as the options of a command name them.
#include "cli/runtime/open.h"

#include <inttypes.h>

#include "cli/common/folder.h"
#include "cli/common/own.h"

struct weir_open_params cli_open_params(const char *config)
{
    static const struct weir_section *sections[2];
    sections[0] = weir_pipeline_section();
    sections[1] = weir_arr_coc_section();
    return (struct weir_open_params){.struct_size = sizeof(struct weir_open_params),
                                     .config_path = config,
                                     .sections = sections,
                                     .section_count = 2};
}

static void tell_close(weir_status status)
{
    if (status == WEIR_OK)
        return;
    cli_weir_error();
    cli_fail_late();
}

static void close_runtime(void *object)
{
    weir_runtime *runtime = object;
    tell_close(weir_close(&runtime));
}

static void close_device(void *object)
{
    weir_device *device = object;
    tell_close(weir_device_close(&device));
}

void cli_own_runtime(weir_runtime *runtime)
{
    cli_own(close_runtime, runtime);
}

void cli_own_device(weir_device *device)
{
    cli_own(close_device, device);
}

// Not the macros: lines of the command are of no use to its users, in messages about their files and
// devices.
weir_runtime *cli_open_with(const struct weir_open_params *params)
{
    weir_runtime *runtime;
    cli_fine(weir_open_at(params, &runtime, NULL, 0));
    cli_own_runtime(runtime);
    return runtime;
}

weir_runtime *cli_open(const char *config)
{
    const struct weir_open_params params = cli_open_params(config);
    return cli_open_with(&params);
}

weir_device *cli_device(weir_runtime *runtime, const char *select, const char *label)
{
    weir_device *device;
    cli_fine(weir_device_open_at(runtime,
                                 WEIR_PARAMS(weir_device, .label = label, .select = select),
                                 &device, NULL, 0));
    cli_own_device(device);
    return device;
}

enum {
    DIGITS_MOST = 6
};

struct cli_devices cli_devices_read(const char *text)
{
    struct cli_devices devices = {.all = text && strcmp(text, "all") == 0};
    while (text && !devices.all) {
        const size_t length = strcspn(text, ",");
        if (length == 0 || length > DIGITS_MOST || strspn(text, "0123456789") < length)
            cli_fail(CLI_USAGE,
                     "--devices takes indices from `weir devices`, such as 0,1, or all; not '%.*s'",
                     (int)length, text);
        const uint32_t index = (uint32_t)strtoul(text, NULL, 10);
        for (uint32_t i = 0; i < devices.count; i++)
            if (devices.indices[i] == index)
                cli_fail(CLI_USAGE, "--devices names device %u twice", (unsigned)index);
        if (devices.count == CLI_DEVICES_MAX)
            cli_fail(CLI_USAGE, "--devices takes at most %d devices", CLI_DEVICES_MAX);
        devices.indices[devices.count++] = index;
        text = text[length] == ',' ? text + length + 1 : NULL;
    }
    return devices;
}

uint32_t cli_devices_open(weir_runtime *runtime, const struct cli_devices *devices,
                          weir_device *out_list[CLI_DEVICES_MAX])
{
    const size_t there = weir_device_count(runtime);
    uint32_t wanted = devices->all ? (uint32_t)there : devices->count;
    wanted = wanted < CLI_DEVICES_MAX ? wanted : CLI_DEVICES_MAX;
    for (uint32_t i = 0; i < wanted; i++) {
        const char *index = cli_text("%" PRIu32, devices->all ? i : devices->indices[i]);
        out_list[i] = cli_device(runtime, index, NULL);
    }
    if (wanted > 0)
        return wanted;
    out_list[0] = cli_device(runtime, NULL, NULL);
    return 1;
}

bool cli_local_rank(uint32_t *out_rank)
{
    *out_rank = 0;
    static const char *const names[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "MPI_LOCALRANKID", "SLURM_LOCALID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        if (text && text[0] >= '0' && text[0] <= '9') {
            *out_rank = (uint32_t)strtoul(text, NULL, 10);
            return true;
        }
    }
    return false;
}

void cli_devices_of_rank(weir_runtime *runtime, struct cli_devices *out_devices)
{
    const size_t there = weir_device_count(runtime);
    uint32_t rank;
    *out_devices = (struct cli_devices){.count = cli_local_rank(&rank) && there > 1};
    if (out_devices->count > 0)
        out_devices->indices[0] = (uint32_t)(rank % there);
}

// Keeping and comparing results of ARR-COC.

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

bool cli_results_keep(const struct weir_arr_coc_output *output,
                      const struct weir_arr_coc_sizes *sizes, struct cli_results *out_results)
{
    struct weir_arr_coc_output copy = *output;
    out_results->memory = malloc(cli_results_place(&copy, sizes, NULL));
    if (out_results->memory)
        cli_results_copy(output, sizes, out_results->memory, &out_results->output);
    return out_results->memory;
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

CLI_DESTROYER(destroy_weights, weir_arr_coc_weights_destroy)

weir_arr_coc_weights *cli_load_weights(const char **path)
{
    static weir_arr_coc_weights *weights;
    struct weir_io_error error;
    if (!*path)
        *path = cli_find_own("share/weir/arr_coc_weights.safetensors",
                             "pipelines/arr_coc/weights/arr_coc_weights.safetensors", CLI_FAILED,
                             "no weights", "name a file with --weights");
    if (!weir_arr_coc_weights_load(*path, &weights, &error))
        cli_fail(CLI_FAILED, "%s", error.message);
    cli_own(destroy_weights, &weights);
    return weights;
}
