#include "cli/open.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

static void print_log(void *user, weir_log_level level, const char *source, const char *message)
{
    (void)user;
    if (level == WEIR_LOG_ERROR)
        cli_error("%s: %s", source, message);
    else
        cli_warning("%s: %s", source, message);
}

void cli_log_to_stderr(void)
{
    weir_log_set(print_log, NULL, WEIR_LOG_WARNING);
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

bool cli_program_directory(char *directory, size_t size)
{
    const ssize_t length = readlink("/proc/self/exe", directory, size - 1);
    if (length <= 0)
        return false;
    directory[length] = '\0';
    char *slash = strrchr(directory, '/');
    if (!slash)
        return false;
    *slash = '\0';
    return true;
}

bool cli_share_file(const char *name, const char *build_path, char *path, size_t path_size,
                    char *message, size_t message_size)
{
    char directory[PATH_MAX];
    char installed[PATH_MAX + 64];
    if (!cli_program_directory(directory, sizeof directory)) {
        snprintf(message, message_size, "/proc/self/exe does not tell where the program lies");
        return false;
    }
    snprintf(installed, sizeof installed, "%s/../share/weir/%s", directory, name);
    snprintf(path, path_size, "%s", installed);
    if (access(path, F_OK) == 0)
        return true;
    snprintf(path, path_size, "%s/../%s", directory, build_path);
    if (access(path, F_OK) == 0)
        return true;
    snprintf(message, message_size, "there is neither %s nor %s", installed, path);
    return false;
}
