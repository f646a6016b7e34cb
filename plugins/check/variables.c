// The variables of the environment that take precedence over the keys of the same names, so that
// `weir check` need not change a configuration.
#define _GNU_SOURCE // secure_getenv

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/check/finding_parts.h"

static void replace(const char *variable, const char **value)
{
    const char *named = secure_getenv(variable);
    if (named && *named)
        *value = named;
}

// One of two words.
static weir_status choose(const struct weir_link *link, const char *variable, const char *off,
                          const char *on, bool *value)
{
    const char *named = "";
    replace(variable, &named);
    if (!*named)
        return WEIR_OK;
    *value = strcmp(named, on) == 0;
    if (*value || strcmp(named, off) == 0)
        return WEIR_OK;
    char remedy[64];
    snprintf(remedy, sizeof remedy, "set it to %s or %s", off, on);
    return weir_host_fail(link->host, WEIR_ERROR_CONFIG, remedy, "%s is '%.64s'", variable, named);
}

weir_status check_variables_read(struct check_findings_params *params)
{
    replace("WEIR_CHECK_SUPPRESSIONS", &params->suppressions);
    replace("WEIR_CHECK_TEXT", &params->text);
    replace("WEIR_CHECK_JSON", &params->json);
    replace("WEIR_CHECK_SARIF", &params->sarif);
    return choose(params->link, "WEIR_CHECK_REPORT", "log", "fail", &params->fail);
}

weir_status check_variables_of_engine(const struct weir_link *link, bool *strict, bool *hints,
                                      bool *verify)
{
    weir_status status = choose(link, "WEIR_CHECK_THREADS", "one", "strict", strict);
    if (status >= 0)
        status = choose(link, "WEIR_CHECK_HINTS", "0", "1", hints);
    return status < 0 ? status : choose(link, "WEIR_CHECK_VERIFY", "0", "1", verify);
}
