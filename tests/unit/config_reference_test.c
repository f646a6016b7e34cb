// conf/reference.ini against the key tables of core and of the modules.
//
// The file shows every key as a comment, ";key = default", in the section it
// belongs to, with its explanation on the comment lines beneath. So the shipped
// file sets nothing, and a key is enabled by deleting one character. Texts are
// loaded as a runtime loads them: [weir], then every other table, then the names
// of the sections.
#include <ctype.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/module/module.h>

#include "base/file.h"
#include "core/config/config.h"
#include "patterns/pipeline.h"
#include "pipelines/arr_coc/arr_coc.h"
#include "tests/support/test.h"

enum {
    LINKED = 4,
    MODULES = 10
};

// [weir] and every other section.
static const struct weir_section *tables[LINKED + MODULES];
static char *reference_text; // the file

struct loaded {
    struct weir__config *config;
    const struct weir_setting *const *settings[LINKED + MODULES]; // of each table
};

static weir_status check_names(const struct weir__config *config)
{
    const char *names[LINKED + MODULES];
    for (size_t i = 0; i < LINKED + MODULES; i++)
        names[i] = tables[i]->name;
    return weir__config_check_sections(config, names, LINKED + MODULES);
}

static weir_status load(const char *text, struct loaded *loaded)
{
    weir_status status = weir__config_load(WEIR_PARAMS(weir_open, .config_path = "reference.ini",
                                                       .config_text = text),
                                           &loaded->config);
    for (size_t i = 0; i < LINKED + MODULES && status == WEIR_OK; i++) {
        loaded->settings[i] = weir__config_section(loaded->config, tables[i], false);
        status = loaded->settings[i] ? WEIR_OK : weir_last_error()->status;
    }
    if (status == WEIR_OK)
        status = check_names(loaded->config);
    if (status != WEIR_OK)
        weir__config_destroy(&loaded->config);
    return status;
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

// The table is in the module, which therefore stays loaded.
static bool read_table(const char *path, struct weir_section *section)
{
    void *library = dlopen(weir_test_runfile(path), RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, WEIR_MODULE_QUERY_SYMBOL) : NULL;
    if (!symbol) {
        weir_test_fail(__FILE__, __LINE__, "%s", dlerror());
        return false;
    }
    weir_module_query_function query;
    memcpy(&query, &symbol, sizeof query);
    const struct weir_host host = {.struct_size = sizeof host};
    const struct weir_module *module = query(WEIR_MODULE_ABI, &host);
    *section = (struct weir_section){sizeof *section, module->name, module->keys, module->key_count,
                                     module->key_size};
    return true;
}

static void read_reference(void)
{
    static const char *const module_paths[MODULES] = {
        "backends/cuda/weir_cuda.so",     "backends/null/weir_null.so",
        "backends/opencl/weir_opencl.so", "plugins/check/weir_check.so",
        "plugins/fault/weir_fault.so",    "plugins/perturb/weir_perturb.so",
        "plugins/sim/weir_sim.so",        "plugins/trace/weir_trace.so",
        "transports/local/weir_local.so", "transports/mpi/weir_mpi.so",
    };
    static struct weir_section module_sections[MODULES];
    char message[512];
    void *data = NULL;
    size_t size = 0;
    unsetenv("WEIR_BACKEND");
    unsetenv("WEIR_PLUGINS");
    unsetenv("WEIR_MODULE_PATH");
    tables[0] = &weir__config_weir_table;
    tables[1] = &weir__config_comm_table;
    tables[2] = weir_pipeline_section();
    tables[3] = weir_arr_coc_section();
    for (size_t i = 0; i < MODULES; i++) {
        ASSERT_TRUE(read_table(module_paths[i], &module_sections[i]));
        tables[LINKED + i] = &module_sections[i];
    }
    if (!weir_file_read(weir_test_runfile("conf/reference.ini"), WEIR__CONFIG_FILE_LIMIT, &data,
                        &size, message, sizeof message))
        WEIR_FAIL("%s", message);
    ASSERT_UINT_EQ(strlen(data), size);
    reference_text = data;
}

#define REFERENCE_TEST(name) \
    WEIR_TEST_BETWEEN(ConfigReference, name, read_reference(), free(reference_text))

static void check_all_defaults(const struct loaded *loaded, bool from_file)
{
    for (size_t i = 0; i < LINKED + MODULES; i++)
        for (size_t k = 0; k < tables[i]->key_count; k++) {
            const struct weir_setting *setting = loaded->settings[i][k];
            weir_test_note("key '%s', origin %s", setting->key->name, setting->origin);
            EXPECT_STR_EQ(setting->text, setting->key->fallback);
            if (from_file)
                EXPECT_CONTAINS(setting->origin, "reference.ini:");
            else
                EXPECT_STR_EQ(setting->origin, "default");
        }
    weir_test_note(NULL);
}

// Every setting of every table has its default; with every key switched on at once, too, and then each comes from
// the file, which has no other keys.
REFERENCE_TEST(HasEveryKeyWithItsDefault)
{
    struct loaded loaded;
    if (load(reference_text, &loaded) != WEIR_OK)
        WEIR_FAIL("the file does not load: %s", weir_last_error_text());
    check_all_defaults(&loaded, false);
    weir__config_destroy(&loaded.config);

    char *text = switch_on(reference_text);
    ASSERT_NOT_NULL(text);
    if (load(text, &loaded) == WEIR_OK) {
        check_all_defaults(&loaded, true);
        weir__config_destroy(&loaded.config);
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

// The explanation beneath a key holds the limits of an integer, "0 or 1" for a boolean, and every choice.
REFERENCE_TEST(ExplainsEveryKey)
{
    char text[2048];
    for (size_t i = 0; i < LINKED + MODULES; i++) {
        const struct weir_section *table = tables[i];
        const char *section = find_section(reference_text, table->name);
        for (uint32_t k = 0; k < table->key_count; k++) {
            weir_test_note("key '%s' of [%s]", table->keys[k].name, table->name);
            const char *line = find_key(section, table->keys[k].name);
            ASSERT_NOT_NULL(line);
            read_explanation(line, text, sizeof text);
            check_explanation(&table->keys[k], text);
        }
    }
}
