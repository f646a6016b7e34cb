// conf/reference.ini against the key tables of core and of the modules, and the
// language against a section with one key of each type.
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

struct config_reference {
    const char *text;                         // of the file
    const struct weir_section *const *tables; // [weir] and every other section
    size_t table_count;
};

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

// The file loads, and so does a copy with every key switched on at once. Both give
// every setting of every table its default; in the copy the origin of each is its
// own line.
static void check_loads(const struct config_reference *reference)
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

// Each table has its section and each key its line with the default. The
// explanation beneath holds the limits of an integer, "0 or 1" for a boolean,
// and every choice. No line shows a key that its section does not have.
static void check_complete(const struct config_reference *reference)
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

// Each character of the file is deleted in turn. The rest still means the same,
// which is that every setting of every table has the text and the number that it
// had (not the origin), or it is an error that names the character's line. A
// deleted newline belongs to the line that it ended.
static void check_all_deletions(const struct config_reference *reference)
{
    check_deletions(reference, reference->text, NO_VALUE_CHANGES);
}

// The same with every key switched on. A value may now change, but only that of
// the key on the character's line, and its origin must be that line.
static void check_deletions_switched_on(const struct config_reference *reference)
{
    char *text = switch_on(reference->text);
    ASSERT_NOT_NULL(text);
    check_deletions(reference, text, VALUE_OF_THE_LINE_CHANGES);
    free(text);
}

static const struct weir_section *weir_section(void)
{
    return &weir__config_weir_table;
}

static const struct weir_section *comm_section(void)
{
    return &weir__config_comm_table;
}

// Sections whose tables are linked in, and modules that contain theirs.
static const struct weir_section *(*const linked_tables[])(void) = {
    weir_section,
    comm_section,
    weir_pipeline_section,
    weir_arr_coc_section,
};
static const char *const module_paths[] = {
    "backends/cuda/weir_cuda.so",  "backends/null/weir_null.so",  "backends/opencl/weir_opencl.so",
    "plugins/check/weir_check.so", "plugins/fault/weir_fault.so", "plugins/perturb/weir_perturb.so",
    "plugins/sim/weir_sim.so",     "plugins/trace/weir_trace.so", "transports/local/weir_local.so",
    "transports/mpi/weir_mpi.so",
};

enum {
    LINKED = sizeof linked_tables / sizeof linked_tables[0],
    MODULES = sizeof module_paths / sizeof module_paths[0],
};

static struct weir_section module_sections[MODULES];
static const struct weir_section *tables[LINKED + MODULES];
static char *reference_text;

static void clear_environment(void)
{
    static const char *const names[] = {"WEIR_CONFIG", "WEIR_BACKEND", "WEIR_PLUGINS",
                                        "WEIR_MODULE_PATH"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
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

static void read_reference(struct config_reference *out_reference)
{
    char message[512];
    void *data = NULL;
    size_t size = 0;
    clear_environment();
    *out_reference = (struct config_reference){NULL, tables, LINKED + MODULES};
    for (size_t i = 0; i < LINKED; i++)
        tables[i] = linked_tables[i]();
    for (size_t i = 0; i < MODULES; i++) {
        ASSERT_TRUE(read_table(module_paths[i], &module_sections[i]));
        tables[LINKED + i] = &module_sections[i];
    }
    if (!weir_file_read(weir_test_runfile("conf/reference.ini"), WEIR__CONFIG_FILE_LIMIT, &data,
                        &size, message, sizeof message))
        WEIR_FAIL("%s", message);
    free(reference_text);
    reference_text = data;
    ASSERT_UINT_EQ(strlen(reference_text), size);
    out_reference->text = reference_text;
}

static void check_reference(void (*check)(const struct config_reference *reference))
{
    struct config_reference reference;
    read_reference(&reference);
    if (reference.text)
        check(&reference);
    free(reference_text);
    reference_text = NULL;
}

WEIR_TEST(ConfigReference, Loads)
{
    check_reference(check_loads);
}

WEIR_TEST(ConfigReference, IsComplete)
{
    check_reference(check_complete);
}

WEIR_TEST(ConfigReference, EveryDeletionIsHarmlessOrNamesItsLine)
{
    check_reference(check_all_deletions);
}

WEIR_TEST(ConfigReference, EveryDeletionStaysInItsLineWithEveryKeyOn)
{
    check_reference(check_deletions_switched_on);
}

static const char *const order_choices[] = {"auto", "depth_first", "breadth_first", NULL};

// One key of each type, with defaults that some deletions change.
static const struct weir_key made_keys[] = {
    {.name = "slots", .type = WEIR_KEY_INTEGER, .fallback = "12", .minimum = 1, .maximum = 64},
    {.name = "timing", .type = WEIR_KEY_BOOLEAN, .fallback = "0"},
    {.name = "order", .type = WEIR_KEY_CHOICE, .fallback = "auto", .choices = order_choices},
    {.name = "options", .type = WEIR_KEY_TEXT, .fallback = "-w -g"},
};
static const struct weir_section made_section = {sizeof made_section, "made", made_keys, 4,
                                                 sizeof *made_keys};
static const struct weir_section *const made_tables[] = {&made_section};

WEIR_TEST(ConfigReference, HoldsForEveryTypeOfKey)
{
    const struct config_reference reference = {
        .text = "[made]\n"
                "\n"
                ";slots = 12\n"
                "; Frames in flight, from 1 to 64.\n"
                "\n"
                ";timing = 0\n"
                "; 0 or 1.\n"
                "\n"
                ";order = auto\n"
                "; auto, depth_first or breadth_first.\n"
                "\n"
                ";options = -w -g\n"
                "; What the compiler is told.\n",
        .tables = made_tables,
        .table_count = 1,
    };
    clear_environment();
    check_loads(&reference);
    check_complete(&reference);
    check_all_deletions(&reference);
    check_deletions_switched_on(&reference);
}

// Here a lost key is noticed, because no value is its default. The language
// cannot notice a missing newline between a comment and a key, which makes the
// key part of the comment; so comments come after keys, and are followed by an
// empty line or a section.
WEIR_TEST(ConfigReference, EveryDeletionStaysInItsLineOfAFileInUse)
{
    const struct config_reference reference = {
        .text = "; What this machine needs.\n"
                "\n"
                "[made] ; the only section\n"
                "\n"
                "slots = 23 ; two digits\n"
                "; half of what fits\n"
                "\n"
                "timing = 1\n"
                "order = breadth_first\r\n"
                "\n"
                "options = -cl-opt-disable ; for the debugger\n",
        .tables = made_tables,
        .table_count = 1,
    };
    clear_environment();
    check_deletions_switched_on(&reference);
}
