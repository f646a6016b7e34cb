// The findings are the plugin's; nothing is kept here.
#include <weir/module/check.h>
#include <weir/module/size.h>
#include <weir/runtime.h>

#include "base/text.h"
#include "core/runtime/runtime.h"
#include "core/support/error.h"
#include "core/support/thread.h"

static const struct weir_check_extension *plugin_of(const weir_runtime *runtime)
{
    if (atomic_load(&weir__forked))
        return NULL;
    return weir_runtime_extension(runtime, WEIR_CHECK_EXTENSION);
}

const char *weir_check_kind_name(weir_check_kind kind)
{
    switch (kind) {
#define KIND(name, value, id) \
    case name:                \
        return id;
        WEIR_CHECK_KIND_TABLE(KIND)
#undef KIND
    }
    return "unknown";
}

bool weir_check_is_on(const weir_runtime *runtime)
{
    return plugin_of(runtime) != NULL;
}

size_t weir_check_count(const weir_runtime *runtime)
{
    const struct weir_check_extension *plugin = plugin_of(runtime);
    return plugin ? plugin->count(plugin->user) : 0;
}

size_t weir_check_error_count(const weir_runtime *runtime)
{
    const struct weir_check_extension *plugin = plugin_of(runtime);
    return plugin ? plugin->error_count(plugin->user) : 0;
}

// A plugin that is older than the library writes less.
static void clear(struct weir_check_finding *out_finding, size_t size)
{
    static const struct weir_check_use none = {
        .operation = "", .queue = "", .kernel = "", .file = "", .region = ""};
    const struct weir_check_finding empty = {
        .buffer = "", .first = none, .second = none, .message = "", .remedy = ""};
    if (size > sizeof empty)
        memset(out_finding, 0, size);
    weir_write(out_finding, size, &empty, sizeof empty);
}

weir_status weir_check_get_sized(const weir_runtime *runtime, size_t index,
                                 struct weir_check_finding *out_finding, size_t size)
{
    const struct weir_check_extension *plugin = plugin_of(runtime);
    WEIR_REQUIRE(NULL, out_finding);
    clear(out_finding, size);
    if (!plugin)
        return weir__fail(WEIR_ERROR_NOT_FOUND,
                          "add it to `plugins` in [weir] or WEIR_PLUGINS, or run the program with "
                          "`weir check`",
                          "the plugin check is not in the runtime's chain");
    if (!plugin->get(plugin->user, index, out_finding, size))
        return weir__fail(WEIR_ERROR_NOT_FOUND, "ask for weir_check_count() first",
                          "there is no finding %zu, only %zu", index, plugin->count(plugin->user));
    return WEIR_OK;
}

void weir_check_release(weir_runtime *runtime, const void *key)
{
    const struct weir_check_extension *plugin = plugin_of(runtime);
    if (plugin)
        plugin->release(plugin->user, key);
}

void weir_check_acquire(weir_runtime *runtime, const void *key)
{
    const struct weir_check_extension *plugin = plugin_of(runtime);
    if (plugin)
        plugin->acquire(plugin->user, key);
}

static void describe_all(const struct weir_check_extension *plugin, char *text, size_t size,
                         size_t used)
{
    struct weir_check_finding finding;
    for (size_t i = 0; plugin->get(plugin->user, i, &finding, sizeof finding); i++)
        if (finding.kind < WEIR_CHECK_FIRST_HINT && !finding.suppression)
            weir_text_append(text, size, &used, "%s: %s\n    to do: %s\n",
                             weir_check_kind_name(finding.kind), finding.message, finding.remedy);
}

bool weir_check_describe(const weir_runtime *runtime, const char *file, int line, char *text,
                         size_t size)
{
    const struct weir_check_extension *plugin = plugin_of(runtime);
    const size_t errors = weir_check_error_count(runtime);
    size_t used = 0;
    if (!text || size == 0)
        return !plugin || errors > 0;
    text[0] = '\0';
    if (!plugin) {
        weir_text_append(text, size, &used,
                         "%s:%d: nothing was checked: the plugin check is not in the runtime's "
                         "chain; add it to WEIR_PLUGINS, or run the program with `weir check`\n",
                         file, line);
        return true;
    }
    if (errors == 0)
        return false;
    weir_text_append(text, size, &used, "%s:%d: %zu finding%s of the plugin check\n", file, line,
                     errors, errors == 1 ? "" : "s");
    describe_all(plugin, text, size, used);
    return true;
}
