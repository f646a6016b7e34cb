// The variables of the environment that take precedence over the keys of the same names, so that
// `weir check` need not change a configuration.
#define _GNU_SOURCE // secure_getenv

#include <stdlib.h>
#include <string.h>

#include "plugins/check/finding_parts.h"

static void replace(const char *variable, const char **value)
{
    const char *named = secure_getenv(variable);
    if (named && *named)
        *value = named;
}

weir_status check_variables_read(struct check_findings_params *params)
{
    const char *report = "";
    replace("WEIR_CHECK_SUPPRESSIONS", &params->suppressions);
    replace("WEIR_CHECK_TEXT", &params->text);
    replace("WEIR_CHECK_JSON", &params->json);
    replace("WEIR_CHECK_SARIF", &params->sarif);
    replace("WEIR_CHECK_REPORT", &report);
    if (!*report)
        return WEIR_OK;
    params->fail = strcmp(report, "fail") == 0;
    if (params->fail || strcmp(report, "log") == 0)
        return WEIR_OK;
    return weir_host_fail(params->link->host, WEIR_ERROR_CONFIG, "set it to log or fail",
                          "WEIR_CHECK_REPORT is '%.64s'", report);
}
