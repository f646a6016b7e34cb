// <weir/inspect.h>: the settings of a configuration, the modules of a folder, a communicator's place.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/inspect.h>
#include <weir/module/module.h>
#include <weir/weir.h>

#include "tests/support/own.h"
#include "tests/support/test.h"

enum {
    SETTINGS_MOST = 128
};

struct seen {
    size_t count, absent;
    char last_section[64];
    char text[SETTINGS_MOST][128]; // "SECTION.KEY=VALUE@ORIGIN", or "SECTION" of one that is absent
    size_t most;                   // after which the inspection ends; 0: never
};

static bool see(void *user, const char *section, const struct weir_setting *setting)
{
    struct seen *seen = user;
    if (seen->count < SETTINGS_MOST)
        snprintf(seen->text[seen->count], sizeof *seen->text, setting ? "%s.%s=%s@%s" : "%s",
                 section, setting ? setting->key->name : "", setting ? setting->text : "",
                 setting ? setting->origin : "");
    seen->absent += !setting;
    return ++seen->count != seen->most;
}

static size_t times(const struct seen *seen, const char *text)
{
    size_t count = 0;
    for (size_t i = 0; i < seen->count && i < SETTINGS_MOST; i++)
        count += strcmp(seen->text[i], text) == 0;
    return count;
}

static weir_status inspect(const char *text, struct seen *seen)
{
    return weir_inspect_settings(WEIR_PARAMS(weir_open, .config_path = "F", .config_text = text,
                                             .module_path = weir_test_runfile("backends/null")),
                                 see, seen);
}

WEIR_TEST(Inspect, SettingsHaveTheirOrigins)
{
    struct seen seen = {0};
    setenv("WEIR_COMM_TIMEOUT", "7", 1);
    setenv("WEIR_NULL_MEMORY", "8", 1);
    EXPECT_INT_EQ(inspect("[weir]\nbackend = null\n[null]\ndevices = 3\n", &seen), WEIR_OK);
    unsetenv("WEIR_COMM_TIMEOUT");
    unsetenv("WEIR_NULL_MEMORY");
    EXPECT_UINT_EQ(times(&seen, "weir.backend=null@F:2"), 1);
    EXPECT_UINT_EQ(times(&seen, "weir.debug=0@default"), 1);
    EXPECT_UINT_EQ(times(&seen, "comm.timeout=7@WEIR_COMM_TIMEOUT"), 1);
    EXPECT_UINT_EQ(times(&seen, "null.devices=3@F:4"),
                   1); // once, though both list and section name it
    EXPECT_UINT_EQ(seen.absent, 0);
}

WEIR_TEST(Inspect, AModuleThatIsNotThereIsNamed)
{
    struct seen seen = {0};
    EXPECT_INT_EQ(inspect("[weir]\nbackend = nul\nplugins = null\n", &seen), WEIR_OK);
    EXPECT_UINT_EQ(seen.absent, 1);
    EXPECT_UINT_EQ(times(&seen, "nul"), 1);
}

WEIR_TEST(Inspect, AModuleThatIsRefusedIsLeftOut)
{
    struct seen seen = {0};
    static const struct weir_error none = {.status = WEIR_OK};
    weir_error_set(&none);
    EXPECT_OK(weir_inspect_settings(WEIR_PARAMS(weir_open, .config_path = "", .backend = "too-new",
                                                .module_path = weir_test_runfile("tests/loader")),
                                    see, &seen));
    EXPECT_UINT_EQ(seen.absent, 0);
    EXPECT_OK(weir_last_error()->status);
}

WEIR_TEST(Inspect, TheFunctionEndsIt)
{
    struct seen seen = {.most = 2};
    EXPECT_INT_EQ(inspect("[no_section]\n", &seen), WEIR_OK); // not read any more
    EXPECT_UINT_EQ(seen.count, 2);
}

WEIR_TEST(Inspect, AFileIsRefusedAsByOpen)
{
    struct seen seen = {0};
    EXPECT_FAILURE(inspect("[weir]\nbakend = null\n", &seen), WEIR_ERROR_CONFIG, "F:2: ");
    EXPECT_UINT_EQ(seen.count, 0);
    EXPECT_FAILURE(inspect("[weir]\nbackend = null\n[null]\ndevices = 17\n", &seen),
                   WEIR_ERROR_CONFIG, "F:4: ");
    EXPECT_TRUE(seen.count > 0); // [weir] and [comm]
    // Sections after one of no module are checked all the same.
    EXPECT_FAILURE(inspect("[weir]\nbackend = null\n[nul]\na = 1\n[null]\ndevices = 17\n", &seen),
                   WEIR_ERROR_CONFIG, "F:6: ");
    EXPECT_INT_EQ(weir_inspect_settings(NULL, NULL, NULL), WEIR_ERROR_INVALID);
}

// All of the fakes, each with what keeps it from being used.
WEIR_TEST(Inspect, ModulesOfAFolder)
{
    const struct weir_load_entry *entry;
    own_load_report report = NULL;
    char path[1024];
    size_t refused = 0;
    const char *before = "";
    snprintf(path, sizeof path, "%s:%s:/nonexistent", weir_test_runfile("tests/loader"),
             weir_test_runfile("backends/null"));
    ASSERT_OK(weir_inspect_modules(path, &report));
    const size_t count = weir_load_report_count(report);
    ASSERT_TRUE(count > 2);
    for (size_t i = 0; i < count - 1; i++) {
        entry = weir_load_report_entry(report, i);
        weir_test_note("%s", entry->module);
        EXPECT_CONTAINS(entry->path, entry->module);
        EXPECT_TRUE(strcmp(before, entry->module) < 0);
        EXPECT_INT_EQ(entry->outcome == WEIR_LOAD_REFUSED, entry->reason[0] && entry->remedy[0]);
        refused += entry->outcome == WEIR_LOAD_REFUSED;
        before = entry->module;
    }
    weir_test_note(NULL);
    EXPECT_UINT_GE(refused, 6);
    entry = weir_load_report_entry(report, count - 1);
    EXPECT_STR_EQ(entry->module, "null");
    EXPECT_STR_EQ(entry->kind, "backend");
    EXPECT_INT_EQ(entry->outcome, WEIR_LOAD_USED);
    EXPECT_STR_EQ(entry->sanitizer, WEIR_MODULE_SANITIZER);
}

WEIR_TEST(Inspect, APlaceOfTheConfigurationOrOfALauncher)
{
    struct weir_inspect_place place;
    const char *text = "[comm]\nrank = 2\ncount = 5\nrendezvous = tcp://node1:29500\n";
    ASSERT_OK(weir_inspect_place(WEIR_PARAMS(weir_open, .config_text = text), &place));
    EXPECT_UINT_EQ(place.rank, 2);
    EXPECT_UINT_EQ(place.count, 5);
    EXPECT_STR_EQ(place.rendezvous, "tcp://node1:29500");
    setenv("RANK", "1", 1);
    EXPECT_FAILURE(weir_inspect_place(WEIR_PARAMS(weir_open, .config_path = ""), &place),
                   WEIR_ERROR_CONFIG, "WORLD_SIZE");
    unsetenv("RANK");
    ASSERT_OK(weir_inspect_place(WEIR_PARAMS(weir_open, .config_path = ""), &place));
    EXPECT_UINT_EQ(place.count, 1);
    EXPECT_STR_EQ(place.rendezvous, "");
}

static weir_status open_null(const char *transport, weir_runtime **out_runtime)
{
    char text[64];
    char path[1024];
    snprintf(text, sizeof text, "[comm]\ntransport = %s\n", transport);
    snprintf(path, sizeof path, "%s:%s", weir_test_runfile("backends/null"),
             weir_test_runfile("transports/local"));
    return weir_open(WEIR_PARAMS(weir_open, .config_text = text, .backend = "null", .plugins = "",
                                 .module_path = path),
                     out_runtime);
}

WEIR_TEST(Inspect, TransportAndBackendOfARuntime)
{
    const char *library;
    own_runtime runtime = NULL;
    ASSERT_OK(open_null("local", &runtime));
    EXPECT_OK(weir_inspect_transport(runtime, &library));
    EXPECT_STR_EQ(library, "");
    EXPECT_STR_EQ(weir_inspect_backend(runtime)->name, "null");
    EXPECT_OK(weir_close(&runtime));
    EXPECT_NULL(weir_inspect_backend(NULL));

    ASSERT_OK(open_null("absent", &runtime));
    EXPECT_FAILURE(weir_inspect_transport(runtime, &library), WEIR_ERROR_MODULE, "absent");
}
