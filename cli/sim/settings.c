// KEY=VALUE: a key that the words of COMMAND have is COMMAND's, SECTION.KEY the configuration's, any
// other one the model's.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
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

bool cli_sim_list_init(struct sim_list *list, const char *text, const char *option)
{
    char *rest = NULL;
    *list = (struct sim_list){.text = strdup(text ? text : "")};
    if (!list->text)
        cli_error("no memory for %s", option);
    for (char *item = list->text ? strtok_r(list->text, ",", &rest) : NULL; item;
         item = strtok_r(NULL, ",", &rest)) {
        item = trim(item);
        if (*item && list->count == SIM_LIST) {
            cli_error("%s has %d items at most", option, SIM_LIST);
            return false;
        }
        if (*item)
            list->items[list->count++] = item;
    }
    return list->text != NULL;
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

void cli_sim_list_finish(struct sim_list *list)
{
    free(list->text);
    *list = (struct sim_list){0};
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

static bool has_place(char *const *command, const char *key)
{
    for (; *command; command++)
        for (const char *at = *command; *at; at++)
            if (place_at(at, key).size)
                return true;
    return false;
}

// What follows "--KEY" in the word, or NULL.
static const char *after_option(const char *word, const char *key)
{
    const size_t length = strlen(key);
    if (strncmp(word, "--", 2) != 0 || strncmp(word + 2, key, length) != 0)
        return NULL;
    return word + 2 + length;
}

static bool has_option(char *const *command, const char *key)
{
    for (; *command; command++) {
        const char *rest = after_option(*command, key);
        if (rest && (*rest == '=' || (*rest == '\0' && command[1])))
            return true;
    }
    return false;
}

void cli_sim_settle(struct sim_settings *settings, char *const *command)
{
    for (size_t i = 0; i < settings->count; i++) {
        struct sim_setting *setting = &settings->items[i];
        setting->owner = has_place(command, setting->key)    ? SIM_OF_PLACES
                         : has_option(command, setting->key) ? SIM_OF_OPTION
                         : strchr(setting->key, '.')         ? SIM_OF_SECTION
                                                             : SIM_OF_MODEL;
    }
}

// The command of a run.

// Returns what it added a value for, 0 for none; SIZE_MAX after a message.
static size_t add_place(struct weir_long_text *out, const char *text,
                        const struct sim_setting *setting)
{
    const struct place place = place_at(text, setting->key);
    if (place.size == 0)
        return 0;
    if (setting->value) {
        weir_long_text_add(out, "%s", setting->value);
    } else if (place.value) {
        weir_long_text_add(out, "%.*s", (int)place.value_size, place.value);
    } else {
        cli_error("{%s} has no value without --what-if; write one, such as {%s=1}", setting->key,
                  setting->key);
        return SIZE_MAX;
    }
    return place.size;
}

static bool add_word(struct weir_long_text *out, const char *word,
                     const struct sim_settings *settings)
{
    weir_long_text_add(out, "%s", "");
    while (*word) {
        size_t size = 0;
        for (size_t i = 0; i < settings->count && size == 0; i++)
            size = add_place(out, word, &settings->items[i]);
        if (size == SIZE_MAX)
            return false;
        if (size == 0)
            weir_long_text_add(out, "%c", *word);
        word += size ? size : 1;
    }
    return true;
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

static char *end_text(struct weir_long_text *text)
{
    if (!text->failed)
        return text->text;
    cli_error("no memory for what a run changes");
    free(text->text);
    return NULL;
}

static char *make_word(char *const *command, size_t index, const struct sim_settings *settings)
{
    struct weir_long_text text = {0};
    if (add_option(&text, command, index, settings) || add_word(&text, command[index], settings))
        return end_text(&text);
    free(text.text);
    return NULL;
}

static bool make_command(struct sim_run *run, char *const *command,
                         const struct sim_settings *settings)
{
    size_t count = 0;
    while (command[count])
        count++;
    run->command = (char **)calloc(count + 1, sizeof *run->command);
    if (!run->command)
        cli_error("no memory for what a run changes");
    for (size_t i = 0; run->command && i < count; i++)
        if (!(run->command[i] = make_word(command, i, settings)))
            return false;
    return run->command != NULL;
}

// The configuration.

// "WEIR_PIPELINE_SLOTS" for pipeline.slots.
static char *name_variable(const char *key)
{
    struct weir_long_text text = {0};
    weir_long_text_add(&text, "WEIR_%s", key);
    for (char *at = text.text; at && *at; at++)
        *at = *at == '.' || *at == '-' ? '_' : (char)toupper((unsigned char)*at);
    return end_text(&text);
}

static bool add_variables(struct sim_run *run, const struct sim_settings *settings)
{
    for (size_t i = 0; i < settings->count; i++) {
        const struct sim_setting *setting = &settings->items[i];
        if (setting->owner != SIM_OF_SECTION || !setting->value)
            continue;
        char *name = name_variable(setting->key);
        char *value = strdup(setting->value);
        run->variables[run->variable_count++] = (struct cli_program_variable){name, value};
        if (name && !value)
            cli_error("no memory for what a run changes");
        if (!name || !value)
            return false;
    }
    return true;
}

// `model`: only the keys of the model.
static char *join(const struct sim_settings *settings, bool model)
{
    struct weir_long_text text = {0};
    weir_long_text_add(&text, "%s", "");
    for (size_t i = 0; i < settings->count; i++) {
        const struct sim_setting *setting = &settings->items[i];
        if (setting->value && (!model || setting->owner == SIM_OF_MODEL))
            weir_long_text_add(&text, "%s%s=%s", text.used ? ", " : "", setting->key,
                               setting->value);
    }
    return end_text(&text);
}

bool cli_sim_run_init(struct sim_run *run, const char *gpu, char *const *command,
                      const struct sim_settings *settings)
{
    *run = (struct sim_run){.gpu = strdup(gpu)};
    run->what_if = join(settings, false);
    run->changes = join(settings, true);
    if (!run->gpu)
        cli_error("no memory for the name of a GPU");
    if (run->gpu && run->what_if && run->changes && make_command(run, command, settings) &&
        add_variables(run, settings))
        return true;
    cli_sim_run_finish(run);
    return false;
}

void cli_sim_run_finish(struct sim_run *run)
{
    for (char **word = run->command; word && *word; word++)
        free(*word);
    free((void *)run->command);
    for (size_t i = 0; i < run->variable_count; i++) {
        free((char *)(uintptr_t)run->variables[i].name);
        free((char *)(uintptr_t)run->variables[i].value);
    }
    free(run->gpu);
    free(run->changes);
    free(run->what_if);
    weir_report_destroy(&run->report);
    *run = (struct sim_run){0};
}
