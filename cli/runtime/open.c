#include "cli/runtime/open.h"

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
