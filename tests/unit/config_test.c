// The INI layer through core/config/config.h: each rule of the language, each kind of
// value, precedence, origins, lists, and files that cannot be read.
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/config/config.h"
#include "tests/support/test.h"

static const char *const choices[] = {"auto", "depth_first", "breadth_first", NULL};

static const struct weir_key pipeline_keys[] = {
    {.name = "slots", .type = WEIR_KEY_INTEGER, .fallback = "3", .minimum = -4, .maximum = 16},
    {.name = "timing", .type = WEIR_KEY_BOOLEAN, .fallback = "1"},
    {.name = "order", .type = WEIR_KEY_CHOICE, .fallback = "auto", .choices = choices},
    {.name = "title", .type = WEIR_KEY_TEXT, .fallback = ""},
    {.name = "seed",
     .type = WEIR_KEY_INTEGER,
     .fallback = "",
     .minimum = INT64_MIN,
     .maximum = INT64_MAX},
};
enum {
    SLOTS,
    TIMING,
    ORDER,
    TITLE,
    SEED,
    PIPELINE_KEYS
};
static const struct weir_section pipeline = {sizeof pipeline, "pipeline", pipeline_keys,
                                             PIPELINE_KEYS, sizeof *pipeline_keys};

static struct weir__config *config;
static const struct weir_setting *const *settings;

static void clear_environment(void)
{
    unsetenv("WEIR_CONFIG");
    unsetenv("WEIR_BACKEND");
    unsetenv("WEIR_PLUGINS");
    unsetenv("WEIR_COPY_THREADS");
    unsetenv("WEIR_MODULE_PATH");
}

static struct weir_open_params text_params(const char *text)
{
    clear_environment();
    return (struct weir_open_params){
        .struct_size = sizeof(struct weir_open_params),
        .config_path = "weir.ini",
        .config_text = text,
    };
}

// In place of the configuration before.
static weir_status load(const struct weir_open_params *params)
{
    weir__config_destroy(&config);
    return weir__config_load(params, &config);
}

// Loads the text and checks [pipeline] and the names of the sections.
static weir_status read_all(const char *text)
{
    static const char *const known[] = {"weir", "pipeline", "opencl"};
    const struct weir_open_params params = text_params(text);
    settings = NULL;
    weir_status status = load(&params);
    if (status == WEIR_OK && !(settings = weir__config_section(config, &pipeline, false)))
        status = weir_last_error()->status;
    if (status == WEIR_OK)
        status = weir__config_check_sections(config, known, 3);
    if (status != WEIR_OK)
        weir__config_destroy(&config);
    return status;
}

static void check_weir(const char *key, const char *text, const char *origin)
{
    const struct weir_setting *setting = weir__config_weir(config, key);
    ASSERT_NOT_NULL(setting);
    EXPECT_STR_EQ(setting->key->name, key);
    EXPECT_STR_EQ(setting->text, text);
    EXPECT_STR_EQ(setting->origin, origin);
}

// One text that is refused: where, and what the error names.
struct refusal {
    const char *text;
    int line;
    const char *fact;
};

static void check_refusals(const struct refusal *refusals, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char place[32];
        snprintf(place, sizeof place, "weir.ini:%d: ", refusals[i].line);
        weir_test_note("row %zu: %s", i, refusals[i].text);
        EXPECT_INT_EQ(read_all(refusals[i].text), WEIR_ERROR_CONFIG);
        EXPECT_NULL(config);
        EXPECT_CONTAINS(weir_last_error()->message, place);
        EXPECT_CONTAINS(weir_last_error()->message, refusals[i].fact);
    }
    weir_test_note(NULL);
}
#define CHECK_REFUSALS(rows) check_refusals(rows, sizeof(rows) / sizeof((rows)[0]))

WEIR_TEST(Config, NothingGivesTheDefaults)
{
    clear_environment();
    ASSERT_OK(load(NULL));
    check_weir("backend", "cuda, opencl", "default");
    check_weir("device", "", "default");
    check_weir("module_path", "", "default");
    check_weir("plugins", "", "default");
    EXPECT_NULL(weir__config_weir(config, "devices"));
    EXPECT_NULL(weir__config_section_name(config, 0));
    weir__config_destroy(&config);
    EXPECT_NULL(config);
    weir__config_destroy(&config);
    weir__config_destroy(NULL);
}

WEIR_TEST(Config, ReadsEveryTypeWithItsOrigin)
{
    static const char text[] = "\xef\xbb\xbf; first line, after a byte order mark\n"
                               "# and another comment\r\n"
                               "\n"
                               "[weir]\r\n"
                               "backend = opencl   ; after white space\r\n"
                               " \t \n"
                               "device=GeForce#  1\n"
                               "[opencl]\n"
                               "[pipeline] ; frames\n"
                               "slots\t=\t-4\n"
                               "timing = 0\n"
                               "   ; an indented comment\n"
                               "order = depth_first\n"
                               "title = \"K\xc3\xb6ln: a = b, 50 %\"\n"
                               "seed = -9223372036854775808";
    ASSERT_OK(read_all(text));
    check_weir("backend", "opencl", "weir.ini:5");
    check_weir("device", "GeForce#  1", "weir.ini:7");
    EXPECT_INT_EQ(settings[SLOTS]->integer, -4);
    EXPECT_STR_EQ(settings[SLOTS]->text, "-4");
    EXPECT_STR_EQ(settings[SLOTS]->origin, "weir.ini:10");
    EXPECT_INT_EQ(settings[TIMING]->integer, 0);
    EXPECT_STR_EQ(settings[ORDER]->text, "depth_first");
    EXPECT_STR_EQ(settings[TITLE]->text, "\"K\xc3\xb6ln: a = b, 50 %\"");
    EXPECT_STR_EQ(settings[TITLE]->origin, "weir.ini:14");
    EXPECT_INT_EQ(settings[SEED]->integer, INT64_MIN);
    EXPECT_STR_EQ(settings[SEED]->origin, "weir.ini:15");
    EXPECT_STR_EQ(weir__config_section_name(config, 0), "weir");
    EXPECT_STR_EQ(weir__config_section_name(config, 1), "opencl");
    EXPECT_STR_EQ(weir__config_section_name(config, 2), "pipeline");
    EXPECT_NULL(weir__config_section_name(config, 3));
}

WEIR_TEST(Config, FillsDefaultsOfATable)
{
    ASSERT_OK(read_all("[pipeline]\nslots = 0\n"));
    EXPECT_INT_EQ(settings[SLOTS]->integer, 0);
    EXPECT_INT_EQ(settings[TIMING]->integer, 1);
    EXPECT_STR_EQ(settings[TIMING]->origin, "default");
    EXPECT_STR_EQ(settings[ORDER]->text, "auto");
    EXPECT_STR_EQ(settings[TITLE]->text, "");
    EXPECT_STR_EQ(settings[SEED]->text, "");
    EXPECT_INT_EQ(settings[SEED]->integer, 0);
    for (size_t i = 0; i < PIPELINE_KEYS; i++)
        EXPECT_PTR_EQ(settings[i]->key, &pipeline_keys[i]);
}

WEIR_TEST(Config, AcceptsValuesAtTheirLimits)
{
    ASSERT_OK(read_all("[pipeline]\nslots = 16\nseed = 9223372036854775807\n"));
    EXPECT_INT_EQ(settings[SLOTS]->integer, 16);
    EXPECT_INT_EQ(settings[SEED]->integer, INT64_MAX);

    // Of UTF-8 all lengths, to the first and the last of each.
    const struct weir_open_params params = text_params(
        "[abcdefghijklmnopqrstuvwxyz-0123]\n; \xc2\x80 \xdf\xbf \xe0\xa0\x80 \xed\x9f\xbf "
        "\xee\x80\x80 \xef\xbf\xbf \xf0\x90\x80\x80 \xf4\x8f\xbf\xbf\n");
    ASSERT_OK(load(&params));
    EXPECT_STR_EQ(weir__config_section_name(config, 0), "abcdefghijklmnopqrstuvwxyz-0123");
}

WEIR_TEST(Config, RefusesUnknownNames)
{
    static const struct refusal rows[] = {
        {"[weir]\nplugin = check\n", 2, "'plugins'"},
        {"[weir]\n\n; x\nbakcend = null\n", 4, "'backend'"},
        {"[weir]\nBackend = null\n", 2, "'backend'"},
        {"[weir]\nfrobnicate = 1\n", 2, "unknown key 'frobnicate'"},
        {"[pipeline]\nslot=1\n", 2, "'slots'"},
        {"[weir]\n[opncl]\n", 2, "'opencl'"},
        {"[Weir]\n", 1, "'weir'"},
        {"\n[x]", 2, "unknown section [x]"},
    };
    CHECK_REFUSALS(rows);
}

WEIR_TEST(Config, RefusesBadValues)
{
    static const struct refusal rows[] = {
        {"[pipeline]\nslots = 17\n", 2, "from -4 to 16"},
        {"[pipeline]\nslots = -5\n", 2, "from -4 to 16"},
        {"[pipeline]\nslots = 99999999999999999999\n", 2, "from -4 to 16"},
        {"[pipeline]\nslots = four\n", 2, "from -4 to 16"},
        {"[pipeline]\nslots =\n", 2, "from -4 to 16"},
        {"[pipeline]\nslots = 1 2\n", 2, "from -4 to 16"},
        {"[pipeline]\nslots = 0x4\n", 2, "from -4 to 16"},
        {"[pipeline]\nslots = +4\n", 2, "from -4 to 16"},
        {"[pipeline]\nslots = 04\n", 2, "from -4 to 16"},
        {"[pipeline]\nslots = -0\n", 2, "from -4 to 16"},
        {"[pipeline]\nslots = -\n", 2, "from -4 to 16"},
        {"[pipeline]\nseed = 9223372036854775808\n", 2,
         "from -9223372036854775808 to 9223372036854775807"},
        {"[pipeline]\ntiming = yes\n", 2, "0 or 1"},
        {"[pipeline]\ntiming = 01\n", 2, "0 or 1"},
        {"[pipeline]\ntiming =\n", 2, "0 or 1"},
        {"[pipeline]\norder = deph_first\n", 2, "'depth_first'"},
        {"[pipeline]\norder = Auto\n", 2, "'auto'"},
        {"[pipeline]\norder =\n", 2, "'order' of [pipeline]"},
    };
    CHECK_REFUSALS(rows);
}

WEIR_TEST(Config, RefusesBadLines)
{
    static const struct refusal rows[] = {
        {"backend = null\n[weir]\n", 1, "'backend'"},
        {"[weir]\n= null\n", 2, "'='"},
        {"[weir]\n[]\n", 2, "section name is empty"},
        {"[weir\nbackend = null\n", 1, "']'"},
        {"[ weir]\n", 1, "' weir'"},
        {"[we;ir]\n", 1, "'we;ir'"},
        {"[abcdefghijklmnopqrstuvwxyz_01234]\n", 1, "limit of 31"},
        {"[weir] backend = null\n", 1, "' backend = null'"},
        {"[weir];x\n", 1, "';x'"},
        {"[weir] # x\n", 1, "' # x'"},
        {"[weir]]\n", 1, "']'"},
        {"[weir]\nbackend = null\n  plugins = check\n", 3, "'plugins = check'"},
        {"\t[weir]\n", 1, "'[weir]'"},
        {"[weir]\nbackend\n", 2, "'backend'"},
        {"[weir]\nbackend: null\n", 2, "'backend: null'"},
        {"[weir]\nmodule_path: a=b\n", 2, "'module_path: a'"},
        {"[weir]\nback end = null\n", 2, "'back end '"},
        {"[weir]\nb ; = null\n", 2, "'b ; '"},
        {"[weir]\ndevice = a;b\n", 2, "a ';'"},
        {"[weir]\ndevice =; nothing\n", 2, "a ';'"},
        {"[weir]\ndevice = a # b\n", 2, "a '#'"},
        {"[weir]\ndevice = #1\n", 2, "a '#'"},
        {"[weir]\n[opencl]\n\n[weir]\n", 4, "line 1"},
        {"[weir]\ndevice = 1\nbackend = null\ndevice = 1\n", 4, "line 2"},
        {"[weir]\nbackend = null\x01\n", 2, "(0x01)"},
        {"[weir]\rbackend = null\r", 1, "(0x0d)"},
        {"; \x7f", 1, "(0x7f)"},
        {"; K\xf6ln\n", 1, "UTF-8"},
        {"; \xe2\x82", 1, "UTF-8"},
        {"\n\xef\xbb\xbf[weir]\n", 2, "'\xef\xbb\xbf[weir]'"},
    };
    CHECK_REFUSALS(rows);
}

// `count` bytes 'x' between the two parts, in a text of the caller's.
static void write_long(char *text, const char *before, size_t count)
{
    size_t length = strlen(before);
    memcpy(text, before, length);
    memset(text + length, 'x', count);
    memcpy(text + length + count, "\n", 2);
}

WEIR_TEST(Config, RefusesLinesAboveTheLimit)
{
    char text[400];

    write_long(text, "[weir]\ndevice = ", WEIR_INI_LINE_LIMIT - 9);
    ASSERT_OK(read_all(text));
    EXPECT_UINT_EQ(strlen(weir__config_weir(config, "device")->text), 190);

    write_long(text, "[weir]\ndevice = ", WEIR_INI_LINE_LIMIT - 8);
    EXPECT_INT_EQ(read_all(text), WEIR_ERROR_CONFIG);
    EXPECT_STR_EQ(weir_last_error()->message,
                  "weir.ini:2: the line has 200 bytes, more than the limit of 199");

    write_long(text, "[weir]\n; ", WEIR_INI_LINE_LIMIT - 1);
    EXPECT_FAILURE(read_all(text), WEIR_ERROR_CONFIG, "weir.ini:2: the line has 200 bytes");
}

WEIR_TEST(Config, RefusesTooManySectionsAndKeys)
{
    size_t size = 20000;
    char *text = calloc(size, 1);
    ASSERT_NOT_NULL(text);

    size_t used = 0;
    for (int i = 0; i <= WEIR__CONFIG_SECTION_LIMIT; i++)
        used += (size_t)snprintf(text + used, size - used, "[s%d]\n", i);
    EXPECT_INT_EQ(read_all(text), WEIR_ERROR_CONFIG);
    EXPECT_STR_EQ(weir_last_error()->message, "weir.ini:257: more than 256 sections");

    used = (size_t)snprintf(text, size, "[weir]\n");
    for (int i = 0; i <= WEIR_INI_KEY_LIMIT; i++)
        used += (size_t)snprintf(text + used, size - used, "k%d = 1\n", i);
    EXPECT_INT_EQ(read_all(text), WEIR_ERROR_CONFIG);
    EXPECT_STR_EQ(weir_last_error()->message, "weir.ini:1026: [weir] has more than 1024 keys");
    free(text);
}

// inih reads some lines as comments if another part of the process has configured it
// so.
WEIR_TEST(Config, NoticesWhenInihDropsALine)
{
    char *usual = ini_start_comment_prefixes;
    char changed[] = ";#bd";

    ini_start_comment_prefixes = changed;
    EXPECT_FAILURE(read_all("[weir]\nbackend = null\n\ndevice = 1\n"), WEIR_ERROR_CONFIG,
                   "inih did not deliver the key");
    EXPECT_FAILURE(read_all("[weir]\nbackend = null"), WEIR_ERROR_CONFIG,
                   "weir.ini:2: inih did not deliver");
    ini_start_comment_prefixes = usual;
}

WEIR_TEST(Config, ArgumentBeatsEnvironmentBeatsFile)
{
    struct weir_open_params params = text_params("[weir]\nbackend = null\ndevice = 2\n"
                                                 "module_path = a:b\nplugins = check, trace\n");
    ASSERT_OK(load(&params));
    check_weir("backend", "null", "weir.ini:2");
    check_weir("device", "2", "weir.ini:3");
    check_weir("module_path", "a:b", "weir.ini:4");
    check_weir("plugins", "check, trace", "weir.ini:5");

    setenv("WEIR_BACKEND", "opencl", 1);
    setenv("WEIR_MODULE_PATH", "/x", 1);
    setenv("WEIR_PLUGINS", "", 1);
    setenv("WEIR_DEVICE", "1", 1);
    ASSERT_OK(load(&params));
    check_weir("backend", "opencl", "WEIR_BACKEND");
    check_weir("device", "1", "WEIR_DEVICE");
    check_weir("module_path", "/x", "WEIR_MODULE_PATH");
    check_weir("plugins", "", "WEIR_PLUGINS");

    // The parameters' strings need not be valid after the call.
    char backend[] = "cuda";
    params.backend = backend;
    params.module_path = "";
    params.plugins = "sim";
    ASSERT_OK(load(&params));
    memset(backend, '?', sizeof backend - 1);
    check_weir("backend", "cuda", "argument");
    check_weir("module_path", "", "argument");
    check_weir("plugins", "sim", "argument");
    clear_environment();
}

WEIR_TEST(Config, CopyThreads)
{
    static const char *const wrong[] = {"", "17", "-1", "1x", "Auto", "4294967297"};
    struct weir_open_params params = text_params("[weir]\ncopy_threads = 16\n");
    ASSERT_OK(load(NULL));
    EXPECT_INT_EQ(weir__config_copy_threads(config), WEIR__CONFIG_COPY_THREADS_AUTO);
    ASSERT_OK(load(&params));
    EXPECT_INT_EQ(weir__config_copy_threads(config), 16);
    setenv("WEIR_COPY_THREADS", "0", 1);
    ASSERT_OK(load(&params));
    EXPECT_INT_EQ(weir__config_copy_threads(config), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv("WEIR_COPY_THREADS", wrong[i], 1);
        EXPECT_FAILURE(load(&params), WEIR_ERROR_CONFIG,
                       "WEIR_COPY_THREADS: 'copy_threads' of [weir] cannot be '");
    }
    clear_environment();
}

// The file is read even if something else replaces what it says.
WEIR_TEST(Config, NamesTheOriginOfABadList)
{
    static const struct {
        const char *text, *backend, *plugins;
        const char *origin, *fact;
    } rows[] = {
        {"[weir]\nbackend = null,,opencl\n", "null", NULL, "weir.ini:2: ", "'null,,opencl'"},
        {"[weir]\nbackend = null, null\n", "null", NULL, "weir.ini:2: ", "'null' twice"},
        {"[weir]\nbackend =\n", "null", NULL, "weir.ini:2: ", "names no backend"},
        {"[weir]\nbackend = a,\n", "null", NULL, "weir.ini:2: ", "'a,'"},
        {"[weir]\nbackend = a, ,b\n", "null", NULL, "weir.ini:2: ", "'a, ,b'"},
        {"[weir]\nplugins = a.so\n", NULL, NULL, "weir.ini:2: ", "'a.so'"},
        {"[weir]\nplugins = abcdefghijklmnopqrstuvwxyz012345\n", NULL, NULL,
         "weir.ini:2: ", "limit of 31"},
        {"[weir]\nplugins = a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q\n", NULL, NULL,
         "weir.ini:2: ", "more than 16 names"},
        {"[weir]\nmodule_path = a::b\n", NULL, NULL, "weir.ini:2: ", "'a::b'"},
        {"[weir]\nmodule_path = :a\n", NULL, NULL, "weir.ini:2: ", "':a'"},
        {"[weir]\nmodule_path = a:\n", NULL, NULL, "weir.ini:2: ", "'a:'"},
        {"", "", NULL, "argument: ", "names no backend"},
        {"", NULL, "check trace", "WEIR_PLUGINS: ", "'check trace'"},
        {"", NULL, "../evil\n", "WEIR_PLUGINS: ", "'../evil\\n'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct weir_open_params params = text_params(rows[i].text);
        params.backend = rows[i].backend;
        if (rows[i].plugins)
            setenv("WEIR_PLUGINS", rows[i].plugins, 1);
        weir_test_note("row %zu", i);
        EXPECT_INT_EQ(load(&params), WEIR_ERROR_CONFIG);
        EXPECT_NULL(config);
        EXPECT_CONTAINS(weir_last_error()->message, rows[i].origin);
        EXPECT_CONTAINS(weir_last_error()->message, rows[i].fact);
    }
    clear_environment();
}

static void write_file(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    ASSERT_NOT_NULL(file);
    EXPECT_UINT_EQ(fwrite(data, 1, size, file), size);
    EXPECT_INT_EQ(fclose(file), 0);
}

WEIR_TEST(Config, FindsTheFile)
{
    static const char text[] = "[weir]\nbackend = null\n";
    const char *path = weir_test_path("my.ini");
    char origin[520];
    write_file(path, text, sizeof text - 1);
    snprintf(origin, sizeof origin, "%s:2", path);
    clear_environment();

    struct weir_open_params params = {.struct_size = sizeof params, .config_path = path};
    ASSERT_OK(load(&params));
    check_weir("backend", "null", origin);

    setenv("WEIR_CONFIG", path, 1);
    ASSERT_OK(load(NULL));
    check_weir("backend", "null", origin);

    // An empty path means no file, and text takes the place of one.
    params.config_path = "";
    ASSERT_OK(load(&params));
    check_weir("backend", "cuda, opencl", "default");
    params.config_path = NULL;
    params.config_text = "[weir]\nbackend = sim\n";
    ASSERT_OK(load(&params));
    check_weir("backend", "sim", "config_text:2");

    setenv("WEIR_CONFIG", "", 1);
    ASSERT_OK(load(NULL));
    check_weir("backend", "cuda, opencl", "default");
    clear_environment();
}

static void check_file_refused(const char *path, weir_status status, const char *sentence)
{
    EXPECT_INT_EQ(load(WEIR_PARAMS(weir_open, .config_path = path)), status);
    EXPECT_NULL(config);
    // Of a long path only the end is shown.
    EXPECT_CONTAINS(weir_last_error()->message, strrchr(path, '/'));
    EXPECT_CONTAINS(weir_last_error()->message, sentence);
}

WEIR_TEST(Config, RefusesWhatIsNotAReadableFile)
{
    static const char zero[] = "[weir]\nback\0end = null\n";
    const char *path = weir_test_path("refused.ini");
    char *data = calloc(WEIR__CONFIG_FILE_LIMIT + 1, 1);
    ASSERT_NOT_NULL(data);
    memset(data, '\n', WEIR__CONFIG_FILE_LIMIT + 1);
    clear_environment();
    check_file_refused("/nonexistent/weir.ini", WEIR_ERROR_IO, "there is no such file");
    setenv("WEIR_CONFIG", "/nonexistent/weir.ini", 1);
    EXPECT_INT_EQ(load(NULL), WEIR_ERROR_IO);
    EXPECT_CONTAINS(weir_last_error()->remedy, "WEIR_CONFIG");
    clear_environment();
    write_file(path, zero, sizeof zero - 1);
    check_file_refused(path, WEIR_ERROR_CONFIG,
                       ":2: byte 5 of the line is a control character (0x00)");
    write_file(path, data, WEIR__CONFIG_FILE_LIMIT);
    EXPECT_OK(load(WEIR_PARAMS(weir_open, .config_path = path)));
    write_file(path, data, WEIR__CONFIG_FILE_LIMIT + 1);
    free(data);
    weir__config_destroy(&config);
    check_file_refused(path, WEIR_ERROR_IO, "has 1048577 bytes, more than the 1048576");
    ASSERT_INT_EQ(chmod(path, 0), 0);
    if (geteuid() != 0) // root may read every file
        check_file_refused(path, WEIR_ERROR_IO, "may not be read by this user");
}

// --- variables in place of a module's keys ---

WEIR_TEST(ConfigVariables, ReplaceWhatTheFileSays)
{
    static const char *const modes[] = {"one", "two", NULL};
    static const struct weir_key keys[] = {
        {.name = "file", .type = WEIR_KEY_TEXT, .fallback = "a"},
        {.name = "max-depth", .type = WEIR_KEY_INTEGER, .fallback = "3", .maximum = 9},
        {.name = "mode", .type = WEIR_KEY_CHOICE, .fallback = "one", .choices = modes},
    };
    const struct weir_section made = {.struct_size = sizeof made,
                                      .name = "deep-sea",
                                      .keys = keys,
                                      .key_count = 3,
                                      .key_size = sizeof keys[0]};
    const struct weir_open_params params = text_params("[deep-sea]\nfile = b\nmode = two\n");
    ASSERT_OK(load(&params));
    setenv("WEIR_DEEP_SEA_FILE", "", 1);
    setenv("WEIR_DEEP_SEA_MAX_DEPTH", "7", 1);
    ASSERT_NOT_NULL(settings = weir__config_section(config, &made, false));
    EXPECT_STR_EQ(settings[0]->text, "b");
    ASSERT_NOT_NULL(settings = weir__config_section(config, &made, true));
    unsetenv("WEIR_DEEP_SEA_FILE");
    EXPECT_STR_EQ(settings[0]->text, "");
    EXPECT_STR_EQ(settings[0]->origin, "WEIR_DEEP_SEA_FILE");
    EXPECT_INT_EQ(settings[1]->integer, 7);
    EXPECT_STR_EQ(settings[1]->origin, "WEIR_DEEP_SEA_MAX_DEPTH");
    EXPECT_STR_EQ(settings[2]->text, "two");
    EXPECT_STR_EQ(settings[2]->origin, "weir.ini:3");
    setenv("WEIR_DEEP_SEA_MAX_DEPTH", "10", 1);
    EXPECT_NULL(weir__config_section(config, &made, true));
    EXPECT_STR_EQ(weir_last_error()->message,
                  "WEIR_DEEP_SEA_MAX_DEPTH: 'max-depth' of [deep-sea] must be from 0 to 9, not 10");
    unsetenv("WEIR_DEEP_SEA_MAX_DEPTH");
    setenv("WEIR_DEEP_SEA_MODE", "tow", 1);
    EXPECT_NULL(weir__config_section(config, &made, true));
    EXPECT_CONTAINS(weir_last_error()->message,
                    "WEIR_DEEP_SEA_MODE: 'mode' of [deep-sea] cannot be");
    unsetenv("WEIR_DEEP_SEA_MODE");
}
