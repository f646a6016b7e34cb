#include "cli/runtime/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/cli.h"

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
    return (weir_device_open)(runtime, &params, out_device);
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
        status = (weir_device_open)(runtime, NULL, &out_list[0]);
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
