#include "cli/runtime/open.h"

#include <stdio.h>
#include <string.h>

#include "cli/common/cli.h"
#include "patterns/pipeline.h"
#include "pipelines/arr_coc/arr_coc.h"

void cli_sections(const struct weir_section *sections[CLI_SECTION_COUNT])
{
    sections[0] = weir_pipeline_section();
    sections[1] = weir_arr_coc_section();
}

// `plugins`: NULL for those of the configuration.
static weir_status open_with(const char *config, const char *plugins, weir_load_report **out_report,
                             weir_runtime **out_runtime)
{
    const struct weir_section *sections[CLI_SECTION_COUNT];
    cli_sections(sections);
    const struct weir_open_params params = {
        .struct_size = sizeof params,
        .config_path = config,
        .plugins = plugins,
        .sections = sections,
        .section_count = CLI_SECTION_COUNT,
        .out_report = out_report,
    };
    // Not the macro: lines of the command are of no use to its users, in messages about their files and
    // devices.
    return (weir_open)(&params, out_runtime);
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
        status = (weir_device_open)(runtime, &params, out_other);
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
