// Texts are loaded as a runtime loads them: [weir], then every other table, then
// the names of the sections.
#include "tests/unit/config_reference.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/config/config.h"
#include "tests/support/test.h"

static const char label[] = "reference.ini";

// The settings of all tables, one after the other.
struct loaded {
    struct weir__config *config;
    struct weir_setting *settings;
    size_t count;
};

static size_t count_keys(const struct config_reference *reference)
{
    size_t count = 0;
    for (size_t i = 0; i < reference->table_count; i++)
        count += reference->tables[i]->key_count;
    return count;
}

static weir_status check_names(const struct config_reference *reference,
                               const struct weir__config *config)
{
    const char *names[WEIR__CONFIG_SECTION_LIMIT];
    for (size_t i = 0; i < reference->table_count; i++)
        names[i] = reference->tables[i]->name;
    return weir__config_check_sections(config, names, reference->table_count);
}

static void unload(struct loaded *loaded)
{
    weir__config_destroy(&loaded->config);
    free(loaded->settings);
    loaded->settings = NULL;
}

static weir_status load(const struct config_reference *reference, const char *text,
                        struct loaded *loaded)
{
    loaded->count = count_keys(reference);
    loaded->settings = calloc(loaded->count + 1, sizeof *loaded->settings);
    struct weir_setting *next = loaded->settings;
    weir_status status =
        weir__config_load(WEIR_PARAMS(weir_open, .config_path = label, .config_text = text),
                          &loaded->config);
    for (size_t i = 0; i < reference->table_count && status == WEIR_OK; i++) {
        status = weir__config_section(loaded->config, reference->tables[i], next);
        next += reference->tables[i]->key_count;
    }
    if (status == WEIR_OK)
        status = check_names(reference, loaded->config);
    if (status != WEIR_OK)
        unload(loaded);
    return status;
}

static bool same_value(const struct weir_setting *a, const struct weir_setting *b)
{
    return strcmp(a->text, b->text) == 0 && a->integer == b->integer;
}

static size_t line_length(const char *line)
{
    return strcspn(line, "\n");
}

static const char *line_after(const char *line)
{
    line += line_length(line);
    return *line ? line + 1 : NULL;
}

// The length of the key's name if the line shows one (";key ="), else 0.
static size_t shown_key(const char *line)
{
    if (*line != ';')
        return 0;
    size_t length = 0;
    while (isalnum((unsigned char)line[1 + length]) || line[1 + length] == '_' ||
           line[1 + length] == '-')
        length++;
    return length > 0 && strncmp(line + 1 + length, " =", 2) == 0 ? length : 0;
}

// A copy of the text without the ';' before every key.
static char *switch_on(const char *text)
{
    char *copy = calloc(strlen(text) + 1, 1);
    char *out = copy;
    for (const char *line = text; line && copy; line = line_after(line)) {
        size_t skip = shown_key(line) > 0;
        size_t size = line_length(line) + (line[line_length(line)] == '\n') - skip;
        memcpy(out, line + skip, size);
        out += size;
    }
    return copy;
}

static void check_all_defaults(const struct loaded *loaded, bool from_file)
{
    for (size_t i = 0; i < loaded->count; i++) {
        const struct weir_setting *setting = &loaded->settings[i];
        weir_test_note("key '%s', origin %s", setting->key->name, setting->origin);
        EXPECT_STR_EQ(setting->text, setting->key->fallback);
        if (from_file)
            EXPECT_CONTAINS(setting->origin, "reference.ini:");
        else
            EXPECT_STR_EQ(setting->origin, "default");
    }
    weir_test_note(NULL);
}

void config_reference_check_loads(const struct config_reference *reference)
{
    struct loaded loaded;
    if (load(reference, reference->text, &loaded) != WEIR_OK)
        WEIR_FAIL("the file does not load: %s", weir_last_error_text());
    check_all_defaults(&loaded, false);
    unload(&loaded);

    char *text = switch_on(reference->text);
    ASSERT_NOT_NULL(text);
    if (load(reference, text, &loaded) == WEIR_OK) {
        check_all_defaults(&loaded, true);
        unload(&loaded);
    } else {
        weir_test_fail(__FILE__, __LINE__, "switched on, it does not load: %s",
                       weir_last_error_text());
    }
    free(text);
}

// The first line of a section after its header, or NULL.
static const char *find_section(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = text; line; line = line_after(line))
        if (*line == '[' && strncmp(line + 1, name, length) == 0 && line[1 + length] == ']')
            return line_after(line);
    return NULL;
}

static const char *find_key(const char *section, const char *name)
{
    for (const char *line = section; line && *line != '['; line = line_after(line))
        if (shown_key(line) == strlen(name) && strncmp(line + 1, name, strlen(name)) == 0)
            return line;
    return NULL;
}

// The explanation beneath a key, on one line.
static void read_explanation(const char *line, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    while ((line = line_after(line)) != NULL && strncmp(line, "; ", 2) == 0) {
        int length =
            snprintf(text + used, size - used, "%.*s ", (int)line_length(line) - 2, line + 2);
        used += (size_t)length;
        if (used >= size)
            WEIR_FAIL("an explanation is longer than %zu bytes", size);
    }
}

static void check_explanation(const struct weir_key *key, const char *text)
{
    char limits[64];
    EXPECT_STR_NE(text, "");
    snprintf(limits, sizeof limits, "from %" PRId64 " to %" PRId64, key->minimum, key->maximum);
    if (key->type == WEIR_KEY_INTEGER)
        EXPECT_CONTAINS(text, limits);
    if (key->type == WEIR_KEY_BOOLEAN)
        EXPECT_CONTAINS(text, "0 or 1");
    if (key->type == WEIR_KEY_CHOICE)
        for (const char *const *choice = key->choices; *choice; choice++)
            EXPECT_CONTAINS(text, *choice);
}

static void check_key_complete(const struct weir_key *key, const char *section)
{
    char expected[256];
    char text[2048];
    const char *line = find_key(section, key->name);
    if (!line)
        WEIR_FAIL("the key has no line ';%s = %s'", key->name, key->fallback);
    snprintf(expected, sizeof expected, ";%s =%s%s", key->name, key->fallback[0] ? " " : "",
             key->fallback);
    snprintf(text, sizeof text, "%.*s", (int)line_length(line), line);
    EXPECT_STR_EQ(text, expected);
    read_explanation(line, text, sizeof text);
    check_explanation(key, text);
}

// Every key that the section's lines show is one of the table's.
static void check_nothing_stale(const struct weir_section *table, const char *section)
{
    for (const char *line = section; line && *line != '['; line = line_after(line)) {
        size_t length = shown_key(line);
        bool known = length == 0;
        for (uint32_t i = 0; i < table->key_count && !known; i++)
            known = strlen(table->keys[i].name) == length &&
                    strncmp(table->keys[i].name, line + 1, length) == 0;
        if (!known)
            weir_test_fail(__FILE__, __LINE__, "[%s] has no key '%.*s'", table->name, (int)length,
                           line + 1);
    }
}

void config_reference_check_complete(const struct config_reference *reference)
{
    for (size_t i = 0; i < reference->table_count; i++) {
        const struct weir_section *table = reference->tables[i];
        const char *section = find_section(reference->text, table->name);
        if (!section)
            WEIR_FAIL("the file has no section [%s]", table->name);
        for (uint32_t k = 0; k < table->key_count; k++) {
            weir_test_note("key '%s' of [%s]", table->keys[k].name, table->name);
            check_key_complete(&table->keys[k], section);
        }
        weir_test_note(NULL);
        check_nothing_stale(table, section);
    }
}

// The permitted effects of a deletion, apart from an error that names its line.
enum allowance {
    NO_VALUE_CHANGES,
    VALUE_OF_THE_LINE_CHANGES,
};

static void check_settings(const struct loaded *before, const struct loaded *after,
                           const char *line_origin, enum allowance allowance)
{
    for (size_t i = 0; i < before->count; i++) {
        if (same_value(&before->settings[i], &after->settings[i]))
            continue;
        if (allowance == NO_VALUE_CHANGES)
            WEIR_FAIL("'%s' silently became '%s'", before->settings[i].key->name,
                      after->settings[i].text);
        EXPECT_STR_EQ(before->settings[i].origin, line_origin);
        EXPECT_STR_EQ(after->settings[i].origin, line_origin);
    }
}

static void check_deletion(const struct config_reference *reference, const struct loaded *before,
                           const char *text, unsigned line, enum allowance allowance)
{
    char origin[64];
    char prefix[72];
    struct loaded after;
    snprintf(origin, sizeof origin, "%s:%u", label, line);
    snprintf(prefix, sizeof prefix, "%s: ", origin);
    if (load(reference, text, &after) == WEIR_OK) {
        check_settings(before, &after, origin, allowance);
        unload(&after);
        return;
    }
    EXPECT_INT_EQ(weir_last_error()->status, WEIR_ERROR_CONFIG);
    if (strncmp(weir_last_error()->message, prefix, strlen(prefix)) != 0)
        WEIR_FAIL("the error does not name line %u: %s", line, weir_last_error_text());
}

// Inside a comment every byte is like the next; its begin and its end are not.
static bool is_inside_a_comment(const char *text, size_t at)
{
    size_t begin = at;
    while (begin > 0 && text[begin - 1] != '\n')
        begin--;
    return strncmp(text + begin, "; ", 2) == 0 && at > begin + 2 && text[at] != '\n';
}

static void check_deletions(const struct config_reference *reference, const char *text,
                            enum allowance allowance)
{
    struct loaded before;
    if (load(reference, text, &before) != WEIR_OK)
        WEIR_FAIL("it does not load: %s", weir_last_error_text());
    size_t size = strlen(text);
    char *shorter = calloc(size + 1, 1);
    EXPECT_NOT_NULL(shorter);

    unsigned line = 1;
    for (size_t i = 0; i < size && !weir_test_has_failed(); i++) {
        if (is_inside_a_comment(text, i))
            continue;
        memcpy(shorter, text, i);
        memcpy(shorter + i, text + i + 1, size - i);
        weir_test_note("byte %zu ('%c') of line %u deleted", i, text[i] == '\n' ? '$' : text[i],
                       line);
        check_deletion(reference, &before, shorter, line, allowance);
        line += text[i] == '\n';
    }
    weir_test_note(NULL);
    unload(&before);
    free(shorter);
}

void config_reference_check_deletions(const struct config_reference *reference)
{
    check_deletions(reference, reference->text, NO_VALUE_CHANGES);
}

void config_reference_check_deletions_switched_on(const struct config_reference *reference)
{
    char *text = switch_on(reference->text);
    ASSERT_NOT_NULL(text);
    check_deletions(reference, text, VALUE_OF_THE_LINE_CHANGES);
    free(text);
}
