// What a plugin asks of the chain that it is in.
#ifndef WEIR_PLUGINS_KIT_CHAIN_H
#define WEIR_PLUGINS_KIT_CHAIN_H

#include <string.h>

#include <weir/module/error.h>
#include <weir/module/module.h>

// For plugins that may be in a chain once only. `remedy` says what to do about a second one.
//
// Errors: WEIR_ERROR_CONFIG if a link after this one is of the same plugin.
static inline weir_status plugin_refuse_second(const struct weir_link *link, const char *remedy)
{
    for (const struct weir_link *at = link->next; at; at = at->next)
        if (strcmp(at->name, link->name) == 0)
            return weir_host_fail(link->host, WEIR_ERROR_CONFIG, remedy,
                                  "the plugin %.60s is twice in the chain", link->name);
    return WEIR_OK;
}

#endif
