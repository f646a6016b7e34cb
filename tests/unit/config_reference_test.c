// conf/reference.ini against the keys of the library, of the linked sections and of the modules.
//
// The file shows every key as a comment, ";key = default", in the section it
// belongs to, with its explanation on the comment lines beneath. So the shipped
// file sets nothing, and a key is enabled by deleting one character.
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/inspect.h>

#include "base/file.h"
#include "patterns/pipeline.h"
#include "pipelines/arr_coc/arr_coc.h"
#include "tests/support/test.h"

enum {
    SECTIONS = 14 // [weir], [comm], two linked ones, ten modules
};

static char *reference_text; // the file

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

// The explanation beneath a key holds the limits of an integer, "0 or 1" for a boolean, and every choice.
static void check_explained(const char *section, const struct weir_key *key)
{
    char text[2048];
    const char *line = find_key(find_section(reference_text, section), key->name);
    ASSERT_NOT_NULL(line);
    read_explanation(line, text, sizeof text);
    check_explanation(key, text);
}

struct pass {
    bool from_file; // every key is switched on
    char section[64];
    int sections;
};

// `module_path` is this test's own.
static bool check_setting(void *user, const char *section, const struct weir_setting *setting)
{
    struct pass *pass = user;
    if (!setting) {
        weir_test_fail(__FILE__, __LINE__, "there is no module '%s'", section);
        return false;
    }
    weir_test_note("key '%s' of [%s], origin %s", setting->key->name, section, setting->origin);
    pass->sections += strcmp(pass->section, section) != 0;
    snprintf(pass->section, sizeof pass->section, "%s", section);
    if (strcmp(setting->key->name, "module_path") != 0) {
        EXPECT_STR_EQ(setting->text, setting->key->fallback);
        EXPECT_CONTAINS(setting->origin, pass->from_file ? "reference.ini:" : "default");
    }
    check_explained(section, setting->key);
    weir_test_note(NULL);
    return true;
}

static void check_all(const char *text, bool from_file)
{
    const struct weir_section *const linked[] = {weir_pipeline_section(), weir_arr_coc_section()};
    struct pass pass = {.from_file = from_file};
    const weir_status status =
        weir_inspect_settings(WEIR_PARAMS(weir_open, .config_path = "reference.ini",
                                          .config_text = text,
                                          .module_path = weir_test_runfile("lib/weir"),
                                          .sections = linked, .section_count = 2),
                              check_setting, &pass);
    if (status < 0)
        WEIR_FAIL("%s", weir_last_error_text());
    EXPECT_INT_EQ(pass.sections, SECTIONS);
}

// Every setting has its default; with every key switched on at once, too, and then each comes from the file, which
// has no other keys.
WEIR_TEST(ConfigReference, HasEveryKeyWithItsDefaultAndExplainsIt)
{
    char message[512];
    void *data = NULL;
    size_t size = 0;
    unsetenv("WEIR_BACKEND");
    unsetenv("WEIR_PLUGINS");
    if (!weir_file_read(weir_test_runfile("conf/reference.ini"), SIZE_MAX, &data, &size, message,
                        sizeof message))
        WEIR_FAIL("%s", message);
    reference_text = data;
    ASSERT_UINT_EQ(strlen(reference_text), size);
    char *text = switch_on(reference_text);
    ASSERT_NOT_NULL(text);
    check_all(reference_text, false);
    check_all(text, true);
    free(text);
    free(reference_text);
}
