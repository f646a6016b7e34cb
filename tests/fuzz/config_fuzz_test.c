// Any bytes given to the parser of configurations: a refusal is WEIR_ERROR_CONFIG and its message starts with the file
// and a line that the bytes have; what holds a zero byte is refused; accepted values are inside their limits, and the
// origin of each is "default" or a line that the bytes have; written out again from its settings, it reads the same.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/config/config.h"
#include "tests/fuzz/damage.h"
#include "tests/support/test.h"

static const char *const choices[] = {"auto", "depth_first", "breadth_first", NULL};

static const struct weir_key keys[] = {
    {.name = "slots", .type = WEIR_KEY_INTEGER, .fallback = "3", .minimum = -4, .maximum = 160},
    {.name = "timing", .type = WEIR_KEY_BOOLEAN, .fallback = "0"},
    {.name = "order", .type = WEIR_KEY_CHOICE, .fallback = "auto", .choices = choices},
    {.name = "title", .type = WEIR_KEY_TEXT, .fallback = ""},
    {.name = "names", .type = WEIR_KEY_TEXT, .fallback = ""},
};
enum {
    WEIR_KEYS = 7,
    MADE_KEYS = 5,
    NAMES = 4,
    LIST = 4,
    ALL_KEYS = WEIR_KEYS + MADE_KEYS
};

static const struct weir_section made = {sizeof made, "made", keys, MADE_KEYS, sizeof *keys};
static const char *const known[] = {"weir", "made", "empty"};

static size_t accepted;

static weir_status read_section(struct weir__config *config, const struct weir_section *section,
                                const struct weir_setting **settings)
{
    const struct weir_setting *const *own = weir__config_section(config, section, false);
    if (!own)
        return weir_last_error()->status;
    memcpy(settings, own, section->key_count * sizeof *own);
    return WEIR_OK;
}

static weir_status read_all(const char *text, size_t size, struct weir__config **out_config,
                            const struct weir_setting *settings[ALL_KEYS])
{
    char names[LIST][WEIR__NAME_SIZE];
    size_t count = 0;
    weir_status status = weir__config_create("f", text, size, out_config);
    if (status == WEIR_OK)
        status = read_section(*out_config, &weir__config_weir_table, settings);
    settings += WEIR_KEYS;
    if (status == WEIR_OK)
        status = read_section(*out_config, &made, settings);
    if (status == WEIR_OK)
        status = weir__config_list(settings[NAMES], true, names, LIST, &count);
    if (status == WEIR_OK)
        status = weir__config_check_sections(*out_config, known, sizeof known / sizeof known[0]);
    if (status != WEIR_OK)
        weir__config_destroy(out_config);
    return status;
}

static unsigned long count_lines(const uint8_t *data, size_t size)
{
    unsigned long lines = 1;
    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n';
    return lines;
}

// Whether the text starts with "f:LINE" for a line that exists; `*out_rest` is the text after it.
static bool names_line(const char *text, unsigned long lines, char **out_rest)
{
    if (strncmp(text, "f:", 2) != 0 || text[2] < '1' || text[2] > '9')
        return false;
    return strtoul(text + 2, out_rest, 10) <= lines;
}

static bool is_choice(const char *text)
{
    size_t i = 0;
    while (choices[i] && strcmp(choices[i], text) != 0)
        i++;
    return choices[i] != NULL;
}

static const char *check_setting(const struct weir_setting *setting, unsigned long lines)
{
    const struct weir_key *key = setting->key;
    char *rest = NULL;
    if (strcmp(setting->origin, "default") != 0 &&
        (!names_line(setting->origin, lines, &rest) || *rest != '\0'))
        return "an origin names no line";
    if (strlen(setting->text) > WEIR_INI_LINE_LIMIT || strpbrk(setting->text, ";\n\r"))
        return "a value holds what no value may hold";
    if (key->type == WEIR_KEY_INTEGER &&
        (setting->integer < key->minimum || setting->integer > key->maximum))
        return "an integer is outside its limits";
    if (key->type == WEIR_KEY_BOOLEAN && setting->integer != 0 && setting->integer != 1)
        return "a boolean is neither 0 nor 1";
    if (key->type == WEIR_KEY_CHOICE && !is_choice(setting->text))
        return "a choice is none of its choices";
    return NULL;
}

static const char *check_refusal(weir_status status, unsigned long lines)
{
    const struct weir_error *error = weir_last_error();
    char *rest = NULL;
    if (status != WEIR_ERROR_CONFIG || error->status != status)
        return "a refusal has another status than WEIR_ERROR_CONFIG";
    if (!names_line(error->message, lines, &rest) || strncmp(rest, ": ", 2) != 0)
        return "a refusal does not start with the file and the line";
    return NULL;
}

static size_t write_settings(char *text, size_t size, const struct weir_setting *const *settings)
{
    size_t used = 0;
    for (size_t i = 0; i < ALL_KEYS; i++) {
        const char *section = i == 0 ? "[weir]\n" : i == WEIR_KEYS ? "[made]\n" : "";
        int length = snprintf(text + used, size - used, "%s%s =%s\n", section,
                              settings[i]->key->name, settings[i]->text);
        used += (size_t)length;
    }
    return used;
}

static const char *check_again(const struct weir_setting *const *settings)
{
    char text[ALL_KEYS * (WEIR_INI_LINE_LIMIT + 32)];
    const struct weir_setting *again[ALL_KEYS];
    struct weir__config *config = NULL;
    const char *broken = NULL;
    size_t size = write_settings(text, sizeof text, settings);
    if (read_all(text, size, &config, again) != WEIR_OK)
        return "what was accepted is refused when it is written out";
    for (size_t i = 0; i < ALL_KEYS && !broken; i++)
        if (strcmp(settings[i]->text, again[i]->text) != 0 ||
            settings[i]->integer != again[i]->integer)
            broken = "a value changes when it is written out and read again";
    weir__config_destroy(&config);
    return broken;
}

// NULL, or the rule that is broken.
static const char *check_bytes(const uint8_t *data, size_t size)
{
    const struct weir_setting *settings[ALL_KEYS];
    struct weir__config *config = NULL;
    unsigned long lines = count_lines(data, size);
    weir_status status = read_all((const char *)data, size, &config, settings);
    if (status != WEIR_OK)
        return config ? "a refusal left a configuration" : check_refusal(status, lines);

    const char *broken = NULL;
    if (size > 0 && memchr(data, '\0', size))
        broken = "a zero byte was accepted";
    for (size_t i = 0; i < ALL_KEYS && !broken; i++)
        broken = check_setting(settings[i], lines);
    if (!broken)
        broken = check_again(settings);
    weir__config_destroy(&config);
    accepted++;
    return broken;
}

enum {
    ROUNDS = 30000,
    SIZE_LIMIT = 2000
};

static const char *const seeds[] = {
    "[weir]\nbackend = cuda, opencl ; in this order\nplugins = check, trace\n\n[made]\nslots = "
    "12\n",
    "; all of them\n[made]\nslots = -4\ntiming = 1\norder = depth_first\ntitle = a b = \"c\" %s\n"
    "names = x, y,x\n[empty]\n# end",
    "\xef\xbb\xbf[empty]\r\n\r\n[weir] ; K\xc3\xb6ln \xf0\x9f\x8c\x8a\r\ndevice =\r\nmodule_path = "
    "/a:/b\r\n   ; indented\r\n",
    "[made]\ntitle =\torder ; =\norder=auto\nnames =\n",
    "",
};

static const char *const pieces[] = {
    "\n",       "\r\n",
    "[",        "]",
    "[made]\n", "[weir]",
    "=",        " = ",
    ";",        " ;",
    "#",        " ",
    "\t",       ",",
    ":",        "\xef\xbb\xbf",
    "\xc3",     "\xff",
    "\x7f",     "0",
    "-",        "9",
    "slots = ", "99999999999999999999",
    "order",    "%n%s",
    "\\",       "timing",
    "\x01",     "breadth_first",
    "weir",     "names = a,b,c,d,e\n",
};

WEIR_TEST(ConfigFuzz, DamagedTextsKeepTheRules)
{
    uint32_t state = 20240607;
    for (size_t round = 0; round < ROUNDS; round++) {
        const char *seed = seeds[round % (sizeof seeds / sizeof seeds[0])];
        uint8_t bytes[SIZE_LIMIT];
        struct damaged text = {.bytes = bytes, .room = sizeof bytes};
        damage_insert(&text, 0, seed, strlen(seed));
        for (size_t i = damage_below(&state, 4) + 1; i > 0; i--)
            damage_change(&text, &state, pieces, sizeof pieces / sizeof *pieces);
        const char *broken = damage_check(check_bytes, text.bytes, text.size);
        if (broken)
            WEIR_FAIL("round %zu: %s in:\n%.*s", round, broken, (int)text.size,
                      (const char *)text.bytes);
    }
    // Neither all inputs are refused, which would check little, nor all
    // accepted.
    EXPECT_UINT_GT(accepted, ROUNDS / 20);
    EXPECT_UINT_LT(accepted, ROUNDS * 19 / 20);
}
