// Runtimes and devices as the options of a command name them.
#include "cli/runtime/open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/cli.h"
#include "cli/common/folder.h"
#include "patterns/pipeline.h"
#include "pipelines/arr_coc/arr_coc.h"

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

// `plugins`: NULL for those of the configuration.
static weir_status open_with(const char *config, const char *plugins, weir_load_report **out_report,
                             weir_runtime **out_runtime)
{
    struct weir_open_params params = cli_open_params(config);
    params.plugins = plugins;
    params.out_report = out_report;
    // Not the macro: lines of the command are of no use to its users, in messages about their files and
    // devices.
    return weir_open_at(&params, out_runtime, NULL, 0);
}

weir_status cli_open(const char *config, weir_load_report **out_report, weir_runtime **out_runtime)
{
    return open_with(config, NULL, out_report, out_runtime);
}

weir_status cli_open_plain(const char *config, weir_runtime **out_runtime)
{
    return open_with(config, "", NULL, out_runtime);
}

// Whether they are one device of the machine. A driver lists equal GPUs under one name; what has nothing
// native has names of its own.
static bool is_same(weir_device *a, weir_device *b)
{
    struct weir_native_device one, other;
    if (weir_device_get_native(a, &one) == WEIR_OK && weir_device_get_native(b, &other) == WEIR_OK)
        return one.device == other.device && one.ordinal == other.ordinal;
    return strcmp(weir_device_get_info(a)->name, weir_device_get_info(b)->name) == 0;
}

weir_status cli_open_other(weir_runtime *runtime, weir_device *device, weir_device **out_other)
{
    const size_t count = weir_device_count(runtime);
    weir_status status = WEIR_OK;
    *out_other = NULL;
    for (size_t i = 0; i < count && status >= 0; i++) {
        char index[32];
        snprintf(index, sizeof index, "%zu", i);
        const struct weir_device_params params = {.struct_size = sizeof params,
                                                  .label = "other",
                                                  .select = index};
        status = weir_device_open_at(runtime, &params, out_other, NULL, 0);
        if (status >= 0 && !is_same(device, *out_other))
            return WEIR_OK;
        if (status >= 0)
            status = weir_device_close(out_other);
    }
    return status;
}

int cli_close(weir_device **device, weir_runtime **runtime, int code)
{
    if (weir_device_close(device) == WEIR_OK && weir_close(runtime) == WEIR_OK)
        return code;
    cli_weir_error();
    return code == CLI_OK ? CLI_FAILED : code;
}

enum {
    DIGITS_MOST = 6
};

bool cli_is_pocl(const struct weir_device_info *info)
{
    return strcmp(info->platform, "Portable Computing Language") == 0;
}

// Adds the index in `length` characters of text.
static bool add_index(struct cli_devices *devices, const char *text, size_t length)
{
    if (length == 0 || length > DIGITS_MOST || strspn(text, "0123456789") < length) {
        cli_error("--devices takes indices from `weir devices`, such as 0,1, or all; not '%.*s'",
                  (int)length, text);
        return false;
    }
    const uint32_t index = (uint32_t)strtoul(text, NULL, 10);
    for (uint32_t i = 0; i < devices->count; i++)
        if (devices->indices[i] == index) {
            cli_error("--devices names device %u twice", (unsigned)index);
            return false;
        }
    if (devices->count == CLI_DEVICES_MAX) {
        cli_error("--devices takes at most %d devices", CLI_DEVICES_MAX);
        return false;
    }
    devices->indices[devices->count++] = index;
    return true;
}

bool cli_devices_parse(const char *text, struct cli_devices *out_devices)
{
    *out_devices = (struct cli_devices){.all = text && strcmp(text, "all") == 0};
    while (text && !out_devices->all) {
        const size_t length = strcspn(text, ",");
        if (!add_index(out_devices, text, length))
            return false;
        text = text[length] == ',' ? text + length + 1 : NULL;
    }
    return true;
}

static weir_status open_index(weir_runtime *runtime, uint32_t index, weir_device **out_device)
{
    char digits[16];
    const struct weir_device_params params = {.struct_size = sizeof params, .select = digits};
    snprintf(digits, sizeof digits, "%u", (unsigned)index);
    return weir_device_open_at(runtime, &params, out_device, NULL, 0);
}

weir_status cli_devices_open(weir_runtime *runtime, const struct cli_devices *devices,
                             weir_device *out_list[CLI_DEVICES_MAX], uint32_t *out_count)
{
    const size_t there = weir_device_count(runtime);
    uint32_t wanted = devices->all ? (uint32_t)there : devices->count;
    weir_status status = WEIR_OK;
    *out_count = 0;
    wanted = wanted < CLI_DEVICES_MAX ? wanted : CLI_DEVICES_MAX;
    for (uint32_t i = 0; i < wanted && status == WEIR_OK; i++) {
        status = open_index(runtime, devices->all ? i : devices->indices[i], &out_list[i]);
        *out_count += status == WEIR_OK;
    }
    if (wanted == 0) {
        status = weir_device_open_at(runtime, NULL, &out_list[0], NULL, 0);
        *out_count = status == WEIR_OK;
    }
    return status;
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
