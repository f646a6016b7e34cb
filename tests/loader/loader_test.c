// The loader on real files: the null backend, and fakes with one defect each
// (fake.c).
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/module/loader.h"
#include "core/support/error.h"
#include "core/support/memory.h"
#include "tests/support/own.h"

static const struct weir_host host = {
    .struct_size = sizeof host,
    .error = weir__error_take,
    .allocate = weir__allocate,
    .release = weir__release,
    .count_driver_object = weir__count_driver_object,
};

// Loads from the fakes' own folder.
static weir_status load(const char *name, enum weir_module_kind kind, weir_load_report *report,
                        struct weir__loaded *out_loaded)
{
    return weir__loader_load(name, kind, weir_test_runfile("tests/loader"), &host, report,
                             out_loaded);
}

static void expect_refused(const char *name, enum weir_module_kind kind, const char *reason,
                           const char *remedy)
{
    struct weir__loaded loaded;
    weir_load_report *report = weir__load_report_create();

    weir_test_note("fake '%s'", name);
    EXPECT_INT_EQ(load(name, kind, report, &loaded), WEIR_ERROR_MODULE);
    EXPECT_NULL(loaded.module);
    EXPECT_CONTAINS(weir_last_error()->message, name);
    EXPECT_CONTAINS(weir_last_error()->message, reason);
    EXPECT_CONTAINS(weir_last_error()->remedy, remedy);
    EXPECT_UINT_EQ(weir_load_report_count(report), 1);
    const struct weir_load_entry *entry = weir_load_report_entry(report, 0);
    EXPECT_NOT_NULL(entry);
    if (entry) {
        EXPECT_INT_EQ(entry->outcome, WEIR_LOAD_REFUSED);
        EXPECT_STR_EQ(entry->module, name);
        EXPECT_CONTAINS(entry->path, name);
        EXPECT_CONTAINS(entry->reason, reason);
        EXPECT_UINT_EQ(entry->abi_wanted, WEIR_MODULE_ABI);
    }
    weir_load_report_destroy(&report);
    EXPECT_NULL(report);
    weir_test_note(NULL);
}

static void *load_from_thread(void *argument)
{
    struct weir__loaded *loaded = argument;

    load("large", WEIR_MODULE_BACKEND, NULL, loaded);
    return NULL;
}

WEIR_TEST(Loader, ThreadsAgree)
{
    enum {
        THREADS = 8
    };
    pthread_t threads[THREADS];
    struct weir__loaded loaded[THREADS];

    for (size_t i = 0; i < THREADS; i++)
        ASSERT_INT_EQ(pthread_create(&threads[i], NULL, load_from_thread, &loaded[i]), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    EXPECT_NOT_NULL(loaded[0].module);
    for (size_t i = 1; i < THREADS; i++) {
        EXPECT_PTR_EQ(loaded[i].module, loaded[0].module);
        EXPECT_PTR_EQ(loaded[i].ops, loaded[0].ops);
        EXPECT_PTR_EQ(loaded[i].path, loaded[0].path);
    }
}

// What is wrong with each is in its `defines` in BUILD; module_check_test.c has all that is checked of a module's tables.
WEIR_TEST(Loader, RefusesWhatIsNoSoundModule)
{
    static const struct {
        const char *name;
        enum weir_module_kind kind;
        const char *reason, *remedy;
    } rows[] = {
        {"too-new", WEIR_MODULE_BACKEND, "is of module ABI 2, and this library takes ABI 1 only",
         "rebuild it"},
        {"no-symbol", WEIR_MODULE_BACKEND, "does not export weir_module_query",
         "export the symbol"},
        {"refuses", WEIR_MODULE_BACKEND, "does not want to work with a library of module ABI 1",
         "another Weir"},
        {"unresolved", WEIR_MODULE_BACKEND, "weir_fake_absent_function", "libraries it needs"},
        {"no-slot", WEIR_MODULE_BACKEND, "`queue_finish`", "implement the slot"},
        {"short", WEIR_MODULE_BACKEND, "is a plugin, and a backend was asked for", "`plugins`"},
        {"large", WEIR_MODULE_PLUGIN, "is a backend, and a plugin was asked for", "`backend`"},
        {"sanitized", WEIR_MODULE_BACKEND, "the module was built with memory", "same sanitizer"},
        {"text", WEIR_MODULE_BACKEND, "weir_text.so", "a module for this machine"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_refused(rows[i].name, rows[i].kind, rows[i].reason, rows[i].remedy);
}

// dlopen() of such a file would end the process.
WEIR_TEST(Loader, RefusesASanitizerRuntimeUnseen)
{
    expect_refused("runtime", WEIR_MODULE_BACKEND,
                   strcmp(WEIR_MODULE_SANITIZER, "address") == 0 ? "with the thread sanitizer"
                                                                 : "with the address sanitizer",
                   "same sanitizer");
}

// A folder of this test, with the file `name` in it.
static const char *folder_with(const char *name, const char *text)
{
    static char path[512];
    const char *folder = weir_test_temp_dir();

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        weir_test_fail(__FILE__, __LINE__, "cannot write %s", path);
    return folder;
}

static void expect_unloadable(const char *name, const char *path, const char *reason)
{
    struct weir__loaded loaded;

    weir_test_note("module '%s'", name);
    EXPECT_FAILURE(weir__loader_load(name, WEIR_MODULE_BACKEND, path, &host, NULL, &loaded),
                   WEIR_ERROR_MODULE, reason);
    weir_test_note(NULL);
}

WEIR_TEST(Loader, RefusesEmptyFileFolderAndPipe)
{
    char path[512];
    const char *folder = folder_with("weir_empty.so", "");

    expect_unloadable("empty", folder, "file too short");
    snprintf(path, sizeof path, "%s/weir_folder.so", folder);
    ASSERT_INT_EQ(mkdir(path, 0700), 0);
    expect_unloadable("folder", folder, "not a regular file");
    snprintf(path, sizeof path, "%s/weir_pipe.so", folder);
    ASSERT_INT_EQ(mkfifo(path, 0600), 0);
    expect_unloadable("pipe", folder, "not a regular file");
}

WEIR_TEST(Loader, ReportsEachDirectoryTried)
{
    struct weir__loaded loaded;
    own_load_report report = weir__load_report_create();
    char path[1024];

    snprintf(path, sizeof path, ":/nonexistent::%s:%s:", weir_test_temp_dir(),
             weir_test_runfile("backends/null"));
    ASSERT_OK(weir__loader_load("null", WEIR_MODULE_BACKEND, path, &host, report, &loaded));
    ASSERT_UINT_EQ(weir_load_report_count(report), 3);
    EXPECT_STR_EQ(weir_load_report_entry(report, 0)->path, "/nonexistent/weir_null.so");
    EXPECT_INT_EQ(weir_load_report_entry(report, 0)->outcome, WEIR_LOAD_MISSING);
    EXPECT_INT_EQ(weir_load_report_entry(report, 1)->outcome, WEIR_LOAD_MISSING);
    EXPECT_CONTAINS(weir_load_report_entry(report, 1)->reason, "no such file");
    EXPECT_INT_EQ(weir_load_report_entry(report, 2)->outcome, WEIR_LOAD_USED);
}

// A broken file is not skipped in favour of a later one.
WEIR_TEST(Loader, TheFirstFileDecides)
{
    struct weir__loaded loaded;
    own_load_report report = weir__load_report_create();
    char path[1024];

    snprintf(path, sizeof path, "%s:%s", folder_with("weir_null.so", "no module"),
             weir_test_runfile("backends/null"));
    EXPECT_INT_EQ(weir__loader_load("null", WEIR_MODULE_BACKEND, path, &host, report, &loaded),
                  WEIR_ERROR_MODULE);
    EXPECT_UINT_EQ(weir_load_report_count(report), 1);
}

WEIR_TEST(Loader, SuggestsTheNearestName)
{
    struct weir__loaded loaded;

    EXPECT_FAILURE(load("brokken", WEIR_MODULE_BACKEND, NULL, &loaded), WEIR_ERROR_MODULE,
                   "there is no backend 'brokken'");
    EXPECT_CONTAINS(weir_last_error()->message, "tests/loader");
    EXPECT_STR_EQ(weir_last_error()->remedy, "did you mean 'broken'?");
}

WEIR_TEST(Loader, ListsWhatThereIsOnce)
{
    struct weir__loaded loaded;
    const char *path = weir_test_runfile("backends/null");
    char twice[8192];

    snprintf(twice, sizeof twice, "%s:%s/.", path, path);
    EXPECT_FAILURE(weir__loader_load("zebra", WEIR_MODULE_PLUGIN, twice, &host, NULL, &loaded),
                   WEIR_ERROR_MODULE, "there is no plugin 'zebra'");
    EXPECT_CONTAINS(weir_last_error()->remedy, "module_path");
    EXPECT_CONTAINS(weir_last_error()->remedy, "(the modules there are: null)");
}

WEIR_TEST(Loader, RefusesNamesThatArePaths)
{
    struct weir__loaded loaded;
    const char *const names[] = {"", "../null", "a/b", "Null", "null.so", "nu ll", ":"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        weir_test_note("name '%s'", names[i]);
        EXPECT_FAILURE(load(names[i], WEIR_MODULE_BACKEND, NULL, &loaded), WEIR_ERROR_MODULE,
                       "cannot be the name");
    }
}

WEIR_TEST(Loader, RefusesPathsThatAreTooLong)
{
    static char path[8192];

    memset(path, 'x', sizeof path - 1);
    expect_unloadable("null", path, "longer than 4095 bytes");
}
