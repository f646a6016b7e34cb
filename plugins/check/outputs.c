// The files are written whole each time, so that they are well-formed whenever the process ends.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "plugins/check/finding_parts.h"

static void program_name(char *name, size_t size)
{
    char path[512];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    const char *slash = strrchr(path, '/');
    weir_text_escape(name, size, slash ? slash + 1 : path, "");
}

bool check_outputs_claim(struct check_outputs *outputs, const struct check_findings_params *params)
{
    program_name(outputs->program, sizeof outputs->program);
    return weir_output_path_claim(params->text, outputs->text) &&
           weir_output_path_claim(params->json, outputs->json) &&
           weir_output_path_claim(params->sarif, outputs->sarif);
}

void check_outputs_give_back(struct check_outputs *outputs)
{
    weir_output_path_give_back(outputs->text);
    weir_output_path_give_back(outputs->json);
    weir_output_path_give_back(outputs->sarif);
}

static void write_one(struct check_outputs *outputs, const char *path,
                      const struct weir_findings *findings,
                      char *(*make)(const struct weir_findings *findings))
{
    char message[512];
    if (!path[0] || outputs->failure[0])
        return;
    char *text = make(findings);
    if (!text)
        weir_text_about(outputs->failure, sizeof outputs->failure, path,
                        "no memory is left for the report; free some memory of the host");
    else if (!weir_file_write(path, text, strlen(text), message, sizeof message))
        weir_text_escape(outputs->failure, sizeof outputs->failure, message, "");
    free(text);
}

void check_outputs_write(struct check_findings *findings, bool complete)
{
    struct check_outputs *outputs = &findings->outputs;
    const struct weir_findings all = {
        .program = outputs->program,
        .process = (uint64_t)getpid(),
        .complete = complete,
        .items = findings->items,
        .count = findings->count,
        .dropped = findings->dropped,
        .suppressions = findings->suppressions,
        .rules = (const struct weir_suppression *const *)findings->rules.items,
        .rule_count = findings->rules.count,
    };
    write_one(outputs, outputs->text, &all, weir_findings_text);
    write_one(outputs, outputs->json, &all, weir_findings_json);
    write_one(outputs, outputs->sarif, &all, weir_findings_sarif);
}
