// One run of the program: what it changes, of the model and of the program, and the run itself. The environment
// names the GPU, so that a model that cannot be used is found here, before the program is started.
// NOLINTNEXTLINE(bugprone-reserved-identifier): for realpath()
#define _XOPEN_SOURCE 700
#include <ctype.h>
#include <string.h>
#include <sys/stat.h>

#include <weir/runtime.h>

#include "cli/sim/sim.h"

static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t", text[length - 1]))
        length--;
    text[length] = '\0';
    return text;
}

void cli_sim_list_read(struct sim_list *list, const char *text, const char *option)
{
    char *rest = NULL;
    char *copy = cli_copy(text ? text : "");
    *list = (struct sim_list){.count = 0};
    for (char *item = strtok_r(copy, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        item = trim(item);
        if (*item && list->count == SIM_LIST)
            cli_fail(CLI_USAGE, "%s has %d items at most", option, SIM_LIST);
        if (*item)
            list->items[list->count++] = item;
    }
}

bool cli_sim_cut(char *text, char **out_key, char **out_value)
{
    char *equals = strchr(text, '=');
    if (!equals)
        return false;
    *equals = '\0';
    *out_key = trim(text);
    *out_value = trim(equals + 1);
    return **out_key && **out_value;
}

// {KEY} or {KEY=VALUE}.
struct place {
    size_t size; // 0: there is none
    const char *value;
    size_t value_size;
};

static struct place place_at(const char *text, const char *key)
{
    const size_t length = strlen(key);
    if (text[0] != '{' || strncmp(text + 1, key, length) != 0)
        return (struct place){0};
    const char *rest = text + 1 + length;
    const char *end = strchr(rest, '}');
    if (!end || (*rest != '}' && *rest != '='))
        return (struct place){0};
    struct place place = {.size = (size_t)(end + 1 - text)};
    if (*rest == '=') {
        place.value = rest + 1;
        place.value_size = (size_t)(end - place.value);
    }
    return place;
}

// What follows "--KEY" in the word, or NULL.
static const char *after_option(const char *word, const char *key)
{
    const size_t length = strlen(key);
    if (strncmp(word, "--", 2) != 0 || strncmp(word + 2, key, length) != 0)
        return NULL;
    return word + 2 + length;
}

// Places go before options.
static enum sim_owner owner_of(const char *key, char *const *command)
{
    enum sim_owner owner = strchr(key, '.') ? SIM_OF_SECTION : SIM_OF_MODEL;
    for (; *command; command++) {
        const char *rest = after_option(*command, key);
        if (rest && (*rest == '=' || (*rest == '\0' && command[1])))
            owner = SIM_OF_OPTION;
        for (const char *at = *command; *at; at++)
            if (place_at(at, key).size)
                return SIM_OF_PLACES;
    }
    return owner;
}

// The command of a run.

// Returns the size of what it added a value for; 0: nothing.
static size_t add_place(struct weir_long_text *out, const char *text,
                        const struct sim_setting *setting)
{
    const struct place place = place_at(text, setting->key);
    if (place.size == 0)
        return 0;
    if (!setting->value && !place.value)
        cli_fail(CLI_USAGE, "{%s} has no value without --what-if; write one, such as {%s=1}",
                 setting->key, setting->key);
    if (setting->value)
        weir_long_text_add(out, "%s", setting->value);
    else
        weir_long_text_add(out, "%.*s", (int)place.value_size, place.value);
    return place.size;
}

static void add_word(struct weir_long_text *out, const char *word,
                     const struct sim_settings *settings)
{
    weir_long_text_add(out, "%s", "");
    while (*word) {
        size_t size = 0;
        for (size_t i = 0; i < settings->count && size == 0; i++)
            size = add_place(out, word, &settings->items[i]);
        if (size == 0)
            weir_long_text_add(out, "%c", *word);
        word += size ? size : 1;
    }
}

// --KEY=VALUE, or VALUE after --KEY. False: the word is neither.
static bool add_option(struct weir_long_text *out, char *const *command, size_t index,
                       const struct sim_settings *settings)
{
    for (size_t i = 0; i < settings->count; i++) {
        const struct sim_setting *setting = &settings->items[i];
        if (setting->owner != SIM_OF_OPTION || !setting->value)
            continue;
        const char *joined = after_option(command[index], setting->key);
        const char *before = index > 0 ? after_option(command[index - 1], setting->key) : NULL;
        if (joined && *joined == '=')
            weir_long_text_add(out, "--%s=%s", setting->key, setting->value);
        else if (before && *before == '\0')
            weir_long_text_add(out, "%s", setting->value);
        else
            continue;
        return true;
    }
    return false;
}

static void make_command(struct sim_run *run, char *const *command)
{
    size_t count = 0;
    while (command[count])
        count++;
    run->command = cli_allocate(count + 1, sizeof *run->command);
    for (size_t i = 0; i < count; i++) {
        struct weir_long_text text = {0};
        if (!add_option(&text, command, i, &run->settings))
            add_word(&text, command[i], &run->settings);
        run->command[i] = cli_take_text(&text);
    }
}

// "WEIR_PIPELINE_SLOTS=2" for pipeline.slots.
static const char *variable_of(const struct sim_setting *setting)
{
    char *variable = cli_text("WEIR_%s=%s", setting->key, setting->value);
    for (char *at = variable; *at != '='; at++)
        *at = *at == '.' || *at == '-' ? '_' : (char)toupper((unsigned char)*at);
    return variable;
}

static void add_setting(struct weir_long_text *out, const struct sim_setting *setting)
{
    weir_long_text_add(out, "%s%s=%s", out->used ? ", " : "", setting->key, setting->value);
}

void cli_sim_make_run(struct sim_run *run, const char *gpu, char *const *command,
                      struct sim_settings settings)
{
    struct weir_long_text all = {0}, changes = {0};
    *run = (struct sim_run){.gpu = gpu, .settings = settings};
    weir_long_text_add(&all, "%s", "");
    weir_long_text_add(&changes, "%s", "");
    for (size_t i = 0; i < settings.count; i++) {
        struct sim_setting *setting = &run->settings.items[i];
        setting->owner = owner_of(setting->key, command);
        if (!setting->value)
            continue;
        add_setting(&all, setting);
        if (setting->owner == SIM_OF_MODEL)
            add_setting(&changes, setting);
        if (setting->owner == SIM_OF_SECTION)
            run->variables[run->variable_count++] = variable_of(setting);
    }
    run->what_if = cli_take_text(&all);
    run->changes = cli_take_text(&changes);
    make_command(run, command);
}

// The environment of a run.

// A file of a model or of costs is the same wherever the program looks for it.
static void set_file(const char *variable, const char *path)
{
    char *absolute = realpath(path, NULL);
    setenv(variable, absolute ? absolute : path, 1);
    free(absolute);
}

static void set_run(const struct sim_run *run)
{
    const size_t length = strlen(run->gpu);
    if (strchr(run->gpu, '/') || (length > 4 && strcmp(run->gpu + length - 4, ".ini") == 0))
        set_file("WEIR_SIM_GPU", run->gpu);
    else
        setenv("WEIR_SIM_GPU", run->gpu, 1);
    setenv("WEIR_SIM_CHANGES", run->changes, 1);
    setenv("WEIR_TRACE_FILE", run->trace ? run->trace : "", 1);
}

void cli_sim_prepare(const struct sim_common *common)
{
    if (common->costs)
        set_file("WEIR_SIM_COSTS", common->costs);
    if (common->scale) {
        setenv("WEIR_SIM_KERNELS", "scale", 1);
        setenv("WEIR_SIM_KERNEL_SCALE", common->scale, 1);
    }
    if (common->host)
        setenv("WEIR_SIM_HOST", common->host, 1);
    // trace is the outermost: it sees the times of sim.
    cli_program_add_plugin("sim");
    cli_program_add_plugin("trace");
}

// Opens the plugin alone, which says what is wrong with the model.
void cli_sim_check(const struct sim_run *run)
{
    weir_runtime *runtime = NULL;
    set_run(run);
    const bool fine = weir_open_at(WEIR_PARAMS(weir_open, .backend = "null", .plugins = "sim"),
                                   &runtime, NULL, 0) >= 0;
    const int code = fine ? CLI_OK : cli_weir_error();
    if (!fine && *run->changes)
        cli_error(
            "%s: taken for keys of the model, since COMMAND has neither an option --KEY nor a word "
            "with {KEY}; for the configuration write SECTION.KEY, as in pipeline.slots=2",
            run->changes);
    WEIR_IGNORE(weir_close(&runtime));
    cli_go_on(code);
}

// Running.

void cli_sim_name_trace(struct sim_run *run, const char *output, size_t number)
{
    const char *file = strrchr(run->gpu, '/') ? strrchr(run->gpu, '/') + 1 : run->gpu;
    const char *base = strrchr(output, '/') ? strrchr(output, '/') : output;
    const char *end = strchr(base + (base[0] == '.'), '.');
    const size_t stem = end ? (size_t)(end - output) : strlen(output);
    run->trace = cli_program_take_trace(number == 0 ? output
                                                    : cli_text("%.*s.%zu.%.*s%s", (int)stem, output,
                                                               number, (int)strcspn(file, "."),
                                                               file, end ? end : ""));
}

// "k20c", or "k20c with slots=3".
static const char *with(const struct sim_run *run)
{
    return *run->what_if ? " with " : "";
}

static int no_trace(const struct sim_run *run, int code)
{
    const char *command = run->command[0];
    if (code != CLI_OK) {
        cli_error("%s ended with %d on %s%s%s, and wrote no trace", command, code, run->gpu,
                  with(run), run->what_if);
        return code;
    }
    cli_error("%s wrote no trace to %s: it opened no runtime of Weir's, or one whose plugins the "
              "program names itself; list trace and sim there",
              command, run->trace);
    return CLI_FAILED;
}

int cli_sim_once(struct sim_run *run, int output)
{
    const struct cli_program program = {
        .command = run->command,
        .variables = run->variables,
        .variable_count = run->variable_count,
        .output = output,
    };
    struct stat status;
    set_run(run);
    const struct cli_program_end end = cli_program_run(&program);
    if (stat(run->trace, &status) != 0)
        return no_trace(run, end.code);
    if (weir_report_read(run->trace, NULL, &run->report) < 0) {
        cli_error("%s", weir_last_error_text());
        return end.code ? end.code : CLI_FAILED;
    }
    if (end.code)
        cli_error("%s ended with %d on %s%s%s", run->command[0], end.code, run->gpu, with(run),
                  run->what_if);
    return end.code;
}
