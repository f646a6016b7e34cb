#include "cli/runtime/open.h"

#include "cli/common/cli.h"
#include "patterns/pipeline.h"
#include "pipelines/arr_coc/arr_coc.h"

void cli_sections(const struct weir_section *sections[CLI_SECTION_COUNT])
{
    sections[0] = weir_pipeline_section();
    sections[1] = weir_arr_coc_section();
}

weir_status cli_open(const char *config, weir_load_report **out_report, weir_runtime **out_runtime)
{
    const struct weir_section *sections[CLI_SECTION_COUNT];
    cli_sections(sections);
    const struct weir_open_params params = {
        .struct_size = sizeof params,
        .config_path = config,
        .sections = sections,
        .section_count = CLI_SECTION_COUNT,
        .out_report = out_report,
    };
    return weir_open(&params, out_runtime);
}

int cli_close(weir_device **device, weir_runtime **runtime, int code)
{
    if (weir_device_close(device) == WEIR_OK && weir_close(runtime) == WEIR_OK)
        return code;
    cli_weir_error();
    return code == CLI_OK ? CLI_FAILED : code;
}
