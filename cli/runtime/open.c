#include "cli/runtime/open.h"

#include <pthread.h>

#include "patterns/pipeline.h"
#include "pipelines/arr_coc/arr_coc.h"

// weir_open() keeps the pointer to the sections.
static struct weir_section declared[CLI_SECTION_COUNT];
static pthread_once_t declared_once = PTHREAD_ONCE_INIT;

static void declare(void)
{
    cli_sections(declared);
}

void cli_sections(struct weir_section sections[CLI_SECTION_COUNT])
{
    sections[0] = *weir_pipeline_section();
    sections[1] = *weir_arr_coc_section();
}

weir_status cli_open(const char *config, weir_load_report **out_report, weir_runtime **out_runtime)
{
    pthread_once(&declared_once, declare);
    const struct weir_open_params params = {
        .struct_size = sizeof params,
        .config_path = config,
        .sections = declared,
        .section_count = CLI_SECTION_COUNT,
        .out_report = out_report,
    };
    return weir_open(&params, out_runtime);
}
