// weir_open() with modules that can be used and such that cannot: files with one defect each (fake.c), the error, the
// load report, and the fallback if several backends are listed.
#define _POSIX_C_SOURCE 200809L // setenv

#include <ctype.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weir/module/module.h>
#include <weir/weir.h>

#include "tests/support/own.h"
#include "tests/support/test.h"

// What the test has opened last, with its report.
static weir_runtime *runtime;
static weir_load_report *report;

static void forget(void)
{
    weir_load_report_destroy(&report);
    EXPECT_OK(weir_close(&runtime));
}

#define OPEN_TEST(suite, name) WEIR_TEST_BETWEEN(suite, name, (void)0, forget())

// In place of what was opened before. A runtime that cannot be opened is NULL.
static weir_status open_anew(struct weir_open_params params)
{
    forget();
    params.struct_size = sizeof params;
    params.out_report = &report;
    runtime = (weir_runtime *)(void *)&report;
    const weir_status status = weir_open(&params, &runtime);
    EXPECT_INT_EQ(runtime != NULL, status == WEIR_OK);
    runtime = status == WEIR_OK ? runtime : NULL;
    return status;
}

static weir_status open_in(const char *path, const char *backend, const char *plugins)
{
    return open_anew((struct weir_open_params){
        .config_path = "", .backend = backend, .plugins = plugins, .module_path = path});
}

// The path of the fakes and of the null backend.
static void write_path(char path[1024])
{
    snprintf(path, 1024, "%s:%s", weir_test_runfile("tests/loader"),
             weir_test_runfile("backends/null"));
}

static weir_status open_with(const char *backend, const char *plugins)
{
    char path[1024];

    write_path(path);
    return open_in(path, backend, plugins);
}

static void expect_entry(size_t index, const char *module, weir_load_outcome outcome,
                         const char *reason)
{
    const struct weir_load_entry *entry = weir_load_report_entry(report, index);

    weir_test_note("entry %zu of\n%s", index, weir_load_report_text(report));
    EXPECT_NOT_NULL(entry);
    if (entry) {
        EXPECT_STR_EQ(entry->module, module);
        EXPECT_INT_EQ(entry->outcome, outcome);
        EXPECT_CONTAINS(entry->reason, reason);
        EXPECT_CONTAINS(entry->path, module);
        EXPECT_UINT_EQ(entry->abi_wanted, WEIR_MODULE_ABI);
    }
    weir_test_note(NULL);
}

// What is wrong with each is in its `defines` in BUILD; module_check_test.c has all that is checked of a module's
// tables. dlopen() of the last one would end the process.
OPEN_TEST(Open, RefusesWhatIsNoSoundModule)
{
    static const struct {
        const char *name;
        bool as_plugin;
        const char *reason, *remedy;
    } rows[] = {
        {"too-new", false, "is of module ABI 2, and this library takes ABI 1 only", "rebuild it"},
        {"no-symbol", false, "does not export weir_module_query", "export the symbol"},
        {"refuses", false, "does not want to work with a library of module ABI 1", "another Weir"},
        {"unresolved", false, "weir_fake_absent_function", "libraries it needs"},
        {"no-slot", false, "`queue_finish`", "implement the slot"},
        {"short", false, "is a plugin, and a backend was asked for", "`plugins`"},
        {"large", true, "is a backend, and a plugin was asked for", "`backend`"},
        {"sanitized", false, "the module was built with memory", "same sanitizer"},
        {"text", false, "weir_text.so", "a module for this machine"},
        {"runtime", false, "the module was built with the ", "same sanitizer"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        weir_test_note("fake '%s'", rows[i].name);
        EXPECT_FAILURE(open_with(rows[i].as_plugin ? "null" : rows[i].name,
                                 rows[i].as_plugin ? rows[i].name : ""),
                       WEIR_ERROR_MODULE, rows[i].reason);
        EXPECT_CONTAINS(weir_last_error()->message, rows[i].name);
        EXPECT_CONTAINS(weir_last_error()->remedy, rows[i].remedy);
        EXPECT_UINT_EQ(weir_load_report_count(report), 1);
        expect_entry(0, rows[i].name, WEIR_LOAD_REFUSED, rows[i].reason);
    }
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

OPEN_TEST(Open, RefusesEmptyFileFolderAndPipe)
{
    char path[8192];
    const char *folder = folder_with("weir_empty.so", "");

    EXPECT_FAILURE(open_in(folder, "empty", ""), WEIR_ERROR_MODULE, "file too short");
    snprintf(path, sizeof path, "%s/weir_folder.so", folder);
    ASSERT_INT_EQ(mkdir(path, 0700), 0);
    EXPECT_FAILURE(open_in(folder, "folder", ""), WEIR_ERROR_MODULE, "not a regular file");
    snprintf(path, sizeof path, "%s/weir_pipe.so", folder);
    ASSERT_INT_EQ(mkfifo(path, 0600), 0);
    EXPECT_FAILURE(open_in(folder, "pipe", ""), WEIR_ERROR_MODULE, "not a regular file");
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    EXPECT_FAILURE(open_in(path, "null", ""), WEIR_ERROR_MODULE, "longer than 4095 bytes");
}

OPEN_TEST(Open, ReportsEachFolderTried)
{
    char path[1024];

    snprintf(path, sizeof path, "/nonexistent:%s:%s", weir_test_temp_dir(),
             weir_test_runfile("backends/null"));
    ASSERT_OK(open_in(path, "null", ""));
    ASSERT_UINT_EQ(weir_load_report_count(report), 3);
    EXPECT_STR_EQ(weir_load_report_entry(report, 0)->path, "/nonexistent/weir_null.so");
    expect_entry(0, "null", WEIR_LOAD_MISSING, "no such file");
    expect_entry(1, "null", WEIR_LOAD_MISSING, "no such file");
    expect_entry(2, "null", WEIR_LOAD_USED, "");
}

// A broken file is not skipped in favour of a later one.
OPEN_TEST(Open, TheFirstFileDecides)
{
    char path[1024];

    snprintf(path, sizeof path, "%s:%s", folder_with("weir_null.so", "no module"),
             weir_test_runfile("backends/null"));
    EXPECT_INT_EQ(open_in(path, "null", ""), WEIR_ERROR_MODULE);
    EXPECT_UINT_EQ(weir_load_report_count(report), 1);
}

// The nearest one, or each once.
OPEN_TEST(Open, NamesWhatModulesThereAre)
{
    const char *path = weir_test_runfile("backends/null");
    char twice[8192];

    EXPECT_FAILURE(open_with("brokken", ""), WEIR_ERROR_MODULE, "there is no backend 'brokken'");
    EXPECT_CONTAINS(weir_last_error()->message, "tests/loader");
    EXPECT_STR_EQ(weir_last_error()->remedy, "did you mean 'broken'?");
    snprintf(twice, sizeof twice, "%s:%s/.", path, path);
    EXPECT_FAILURE(open_in(twice, "null", "zebra"), WEIR_ERROR_MODULE,
                   "there is no plugin 'zebra'");
    EXPECT_CONTAINS(weir_last_error()->remedy, "module_path");
    EXPECT_CONTAINS(weir_last_error()->remedy, "(the modules there are: null)");
}

OPEN_TEST(Open, RefusesNamesThatArePaths)
{
    const char *const names[] = {"../null", "a/b", "null.so", "nu ll", ":"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        weir_test_note("name '%s'", names[i]);
        EXPECT_FAILURE(open_with(names[i], ""), WEIR_ERROR_CONFIG, "which is not a name");
    }
    EXPECT_FAILURE(open_with("Null", ""), WEIR_ERROR_MODULE, "cannot be the name");
}

static void *open_from_thread(void *out_runtime)
{
    char path[1024];
    write_path(path);
    EXPECT_OK(weir_open(WEIR_PARAMS(weir_open, .config_path = "", .backend = "null",
                                    .plugins = "short", .module_path = path),
                        out_runtime));
    return NULL;
}

OPEN_TEST(Open, ByManyThreads)
{
    enum {
        THREADS = 8
    };
    pthread_t threads[THREADS];
    weir_runtime *runtimes[THREADS] = {NULL};

    for (size_t i = 0; i < THREADS; i++)
        ASSERT_INT_EQ(pthread_create(&threads[i], NULL, open_from_thread, &runtimes[i]), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < THREADS; i++)
        EXPECT_OK(weir_close(&runtimes[i]));
}

// One backend alone: that one, or an error with its reason and its remedy.
OPEN_TEST(Open, ASingleBackendThatDoesNotOpen)
{
    EXPECT_FAILURE(open_with("broken", ""), WEIR_ERROR_MODULE,
                   "libabsent.so.1: cannot open shared object file",
                   "install the package libabsent1");
    EXPECT_UINT_EQ(weir_load_report_count(report), 1);
    expect_entry(0, "broken", WEIR_LOAD_REFUSED, "libabsent.so.1");
    EXPECT_STR_EQ(weir_load_report_remedy(report), "install the package libabsent1");
}

OPEN_TEST(Open, FallbackIsRecorded)
{
    weir_error_set(NULL);
    ASSERT_OK(open_with("too-new, broken, absent, null", ""));
    EXPECT_OK(weir_last_error()->status); // nothing has failed
    EXPECT_STR_EQ(weir_runtime_backend(runtime), "null");
    ASSERT_UINT_EQ(weir_load_report_count(report), 6);
    EXPECT_STR_EQ(weir_load_report_text(weir_runtime_report(runtime)),
                  weir_load_report_text(report));
    expect_entry(0, "too-new", WEIR_LOAD_REFUSED, "module ABI 2");
    expect_entry(1, "broken", WEIR_LOAD_REFUSED, "libabsent.so.1");
    expect_entry(2, "absent", WEIR_LOAD_MISSING, "no such file");
    expect_entry(3, "absent", WEIR_LOAD_MISSING, "no such file");
    expect_entry(4, "null", WEIR_LOAD_MISSING, "no such file");
    expect_entry(5, "null", WEIR_LOAD_USED, "");
    const char *text = weir_load_report_text(report);
    EXPECT_CONTAINS(text, "modules, requested by ");
    EXPECT_CONTAINS(text, "  too-new: refused, ");
    EXPECT_CONTAINS(text, "  absent: missing, ");
    EXPECT_CONTAINS(text, "    module ABI 1, this library's is 1; version ");
}

OPEN_TEST(Open, NoneOfSeveral)
{
    EXPECT_FAILURE(open_with("too-new, broken", ""), WEIR_ERROR_MODULE, "module ABI 2",
                   "libabsent.so.1");
    EXPECT_STR_NE(weir_last_error()->remedy, "");
    expect_entry(0, "too-new", WEIR_LOAD_REFUSED, "module ABI 2");
    expect_entry(1, "broken", WEIR_LOAD_REFUSED, "libabsent.so.1");
    EXPECT_STR_NE(weir_load_report_remedy(report), "");
    EXPECT_CONTAINS(weir_load_report_text(report), "what to do: ");
}

OPEN_TEST(Open, ABackendWithoutDevicesIsNone)
{
    EXPECT_FAILURE(open_with("no-devices", ""), WEIR_ERROR_NO_DEVICE, "no device");
    expect_entry(0, "no-devices", WEIR_LOAD_REFUSED, "no device");
    ASSERT_OK(open_with("no-devices, null", ""));
    EXPECT_STR_EQ(weir_runtime_backend(runtime), "null");
}

// A plugin is never skipped: without it the chain would be a different one.
OPEN_TEST(Open, AMissingPluginIsAnError)
{
    EXPECT_FAILURE(open_with("null", "shart"), WEIR_ERROR_MODULE, "there is no plugin 'shart'",
                   "did you mean 'short'?");
    expect_entry(0, "shart", WEIR_LOAD_MISSING, "no such file");
    EXPECT_FAILURE(open_with("null", "large"), WEIR_ERROR_MODULE, "is a backend");
}

// A plugin of two slots forwards everything else.
OPEN_TEST(Open, AnOlderPluginForwards)
{
    static const char hello[] = "hello";
    char back[sizeof hello] = "";
    own_device device = NULL;
    own_queue queue = NULL;
    own_buffer buffer = NULL;

    ASSERT_OK(open_with("null", "short, short"));
    ASSERT_OK(weir_device_open(runtime, NULL, &device));
    ASSERT_OK(weir_queue_create(device, NULL, &queue));
    ASSERT_OK(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = sizeof hello), &buffer));
    EXPECT_OK(weir_upload(queue, buffer, 0, hello, sizeof hello));
    EXPECT_OK(weir_download(queue, back, buffer, 0, sizeof hello));
    EXPECT_STR_EQ(back, hello);
}

static weir_status open_null(const char *key)
{
    char text[256];

    snprintf(text, sizeof text, "[weir]\nbackend = null\n[null]\n%s\n", key);
    return open_anew((struct weir_open_params){.config_path = "test.ini",
                                               .config_text = text,
                                               .module_path = weir_test_runfile("backends/null")});
}

OPEN_TEST(Open, DevicesOfNullAreConfigured)
{
    struct weir_device_info info;

    ASSERT_OK(open_null("devices = 3"));
    EXPECT_UINT_EQ(weir_device_count(runtime), 3);
    ASSERT_OK(weir_device_describe(runtime, 2, &info));
    EXPECT_STR_EQ(info.name, "null device 2");
    EXPECT_UINT_GT(info.memory_bytes, 0);
    EXPECT_INT_EQ(weir_device_describe(runtime, 3, &info), WEIR_ERROR_NO_DEVICE);
    EXPECT_INT_EQ(open_null("devices = 0"), WEIR_ERROR_NO_DEVICE);
    EXPECT_FAILURE(open_null("devices = 17"), WEIR_ERROR_CONFIG, "test.ini:4");
    EXPECT_FAILURE(open_null("device = 1"), WEIR_ERROR_CONFIG, "devices");
}

OPEN_TEST(Open, ABundleNeedsAnImageOnNull)
{
    static const struct weir_bundle bundle = {.struct_size = sizeof bundle, .name = "hollow"};
    own_device device = NULL;
    weir_program *program;

    ASSERT_OK(open_null(""));
    ASSERT_OK(weir_device_open(runtime, NULL, &device));
    EXPECT_FAILURE(weir_program_load(device, &bundle, &program), WEIR_ERROR_UNSUPPORTED, "hollow");
}

// A section of a module that is installed nowhere is legal if the configuration names the
// module, also where a variable or the program has chosen other modules.
OPEN_TEST(Open, ASectionThatOnlyAListNames)
{
    struct weir_open_params params = {
        .struct_size = sizeof params,
        .config_path = "made.ini",
        .backend = "null",
        .plugins = "",
        .module_path = weir_test_runfile("backends/null"),
    };

    params.config_text = "[weir]\nbackend = later, null\nplugins = seer, hear\n"
                         "[hear]\nkey = 1\n[later]\nkey = 2\n";
    EXPECT_OK(open_anew(params));
    // A part of a name in a list is another name.
    params.config_text = "[weir]\nbackend = later, null\nplugins = seer\n[see]\nkey = 1\n";
    EXPECT_FAILURE(open_anew(params), WEIR_ERROR_CONFIG, "made.ini:4: unknown section [see]");
    params.config_text = "[weir]\nbackend = null\n[later]\nkey = 2\n";
    EXPECT_FAILURE(open_anew(params), WEIR_ERROR_CONFIG, "made.ini:3: unknown section [later]");
}

// A section of a program's, whose keys are these.
static weir_status open_keys(const char *text, const struct weir_key *keys, uint32_t count,
                             uint32_t size)
{
    const struct weir_section section = {.struct_size = sizeof section,
                                         .name = "made",
                                         .keys = keys,
                                         .key_count = count,
                                         .key_size = size};
    const struct weir_section *const sections[] = {&section};
    return open_anew((struct weir_open_params){.config_path = "made.ini",
                                               .config_text = text,
                                               .backend = "null",
                                               .plugins = "",
                                               .module_path = weir_test_runfile("backends/null"),
                                               .sections = sections,
                                               .section_count = 1});
}

static void expect_second(const struct weir_key *keys, uint32_t size)
{
    ASSERT_OK(open_keys("[made]\nfirst = 7\n", keys, 2, size));
    EXPECT_INT_EQ(weir_runtime_setting(runtime, "made", "second")->integer, 2);
    EXPECT_INT_EQ(weir_runtime_setting(runtime, "made", "first")->integer, 7);
    EXPECT_STR_EQ(weir_runtime_setting(runtime, "made", "first")->origin, "made.ini:2");
    EXPECT_NULL(weir_runtime_setting(runtime, "made", "third"));
    EXPECT_NULL(weir_runtime_setting(runtime, "yours", "first"));
}

static const struct weir_key first = WEIR_INTEGER_KEY("first", "1", 0, 9, "A."),
                             second = WEIR_INTEGER_KEY("second", "2", 0, 9, "B.");

// The keys of a program that was built with older headers lie closer together, but a key has
// always had a name, a type, a default, its limits and a help.
OPEN_TEST(Open, KeysOfASectionHaveTheirSize)
{
    const struct weir_key keys[] = {first, second};
    const uint32_t least = offsetof(struct weir_key, help) + sizeof(const char *);

    expect_second(keys, sizeof keys[0]);
    EXPECT_FAILURE(open_keys("[made]\nfirst = 10\n", keys, 2, sizeof keys[0]), WEIR_ERROR_CONFIG,
                   "made.ini:2");
    for (uint32_t size = 0; size < least; size += 4) {
        weir_test_note("%u bytes", (unsigned)size);
        EXPECT_FAILURE(open_keys("", keys, 2, size), WEIR_ERROR_INVALID,
                       "key_size of the section [made] is");
        EXPECT_CONTAINS(weir_last_error()->remedy, "sizeof(struct weir_key)");
    }
    weir_test_note(NULL);
    EXPECT_FAILURE(open_keys("", keys, 2, UINT32_MAX), WEIR_ERROR_INVALID,
                   "key_size of the section [made] is 4294967295");
    EXPECT_OK(open_keys("", keys, 0, UINT32_MAX)); // no stride is needed then
    EXPECT_FAILURE(open_keys("", NULL, 2, sizeof keys[0]), WEIR_ERROR_INVALID,
                   "the section [made] has no table of keys");
}

// In a Turkish locale the upper case of 'i' is no 'I', and <ctype.h> follows the program's locale: names of
// variables and devices do not.

#define NAME "tr_TR.UTF-8"

// Builds the locale, which few machines have. False: its source is missing.
static bool enter(void)
{
    const char *folder = getenv("TEST_TMPDIR");
    char command[1024];
    snprintf(command, sizeof command, "localedef -c -i tr_TR -f UTF-8 '%s/" NAME "' 2>&1",
             folder ? folder : "/tmp");
    if (setlocale(LC_ALL, NAME))
        return true;
    if (system(command) != 0)
        return false;
    setenv("LOCPATH", folder ? folder : "/tmp", 1);
    return setlocale(LC_ALL, NAME);
}

OPEN_TEST(Locale, NamesOfVariablesAndDevicesAreAscii)
{
    weir_device *device;
    if (!enter())
        WEIR_SKIP("localedef cannot make " NAME " here; package locales has its source");
    ASSERT_TRUE(toupper('i') != 'I');
    setenv("WEIR_NULL_DEVICES", "2", 1);
    ASSERT_OK(open_null(""));
    EXPECT_UINT_EQ(weir_device_count(runtime), 2);
    EXPECT_OK(
        weir_device_open(runtime, WEIR_PARAMS(weir_device, .select = "NULL DEVICE 1"), &device));
    EXPECT_OK(weir_device_close(&device));
    setlocale(LC_ALL, "C");
}
