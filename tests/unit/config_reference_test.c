// conf/reference.ini against the key tables of core and of the modules, and the
// language against a section with one key of each type.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <weir/module/module.h>

#include "base/file.h"
#include "core/config/config.h"
#include "patterns/pipeline.h"
#include "pipelines/arr_coc/arr_coc.h"
#include "tests/support/test.h"
#include "tests/unit/config_reference.h"

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
    ASSERT_SIZE_EQ(strlen(reference_text), size);
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
    check_reference(config_reference_check_loads);
}

WEIR_TEST(ConfigReference, IsComplete)
{
    check_reference(config_reference_check_complete);
}

WEIR_TEST(ConfigReference, EveryDeletionIsHarmlessOrNamesItsLine)
{
    check_reference(config_reference_check_deletions);
}

WEIR_TEST(ConfigReference, EveryDeletionStaysInItsLineWithEveryKeyOn)
{
    check_reference(config_reference_check_deletions_switched_on);
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
    config_reference_check_loads(&reference);
    config_reference_check_complete(&reference);
    config_reference_check_deletions(&reference);
    config_reference_check_deletions_switched_on(&reference);
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
    config_reference_check_deletions_switched_on(&reference);
}
