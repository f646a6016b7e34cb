// Texts for people, the tables that they show, INI files, clocks, and structures of other sizes.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock_map.h"
#include "base/ini/ini.h"
#include "base/names.h"
#include "base/sized.h"
#include "base/table.h"
#include "base/text.h"
#include "tests/support/test.h"

WEIR_TEST(BaseText, SuggestsTheNearest)
{
    static const char *const keys[] = {"backend", "device", "module_path", "plugins", "plugin"};
    EXPECT_STR_EQ(weir_text_nearest("bakend", keys, 5), "backend");
    EXPECT_STR_EQ(weir_text_nearest("modul_paht", keys, 5), "module_path");
    EXPECT_STR_EQ(weir_text_nearest("plugi", keys, 5), "plugin");
    EXPECT_STR_EQ(weir_text_nearest("DEVICE", keys, 5), "device");
}

WEIR_TEST(BaseText, AppendStaysInItsBuffer)
{
    char text[8] = "????";
    size_t used = 0;
    weir_text_append(text, 6, &used, "%d-", 12);
    EXPECT_STR_EQ(text, "12-");
    weir_text_append(text, 6, &used, "%s", "abcdef");
    EXPECT_STR_EQ(text, "12-ab");
    EXPECT_UINT_EQ(used, 5);
    weir_text_append(text, 6, &used, "more");
    EXPECT_STR_EQ(text, "12-ab");
    used = 0;
    weir_text_append(text, 0, &used, "none");
    EXPECT_UINT_EQ(used, 0);
}

WEIR_TEST(BaseText, ALongPathKeepsItsEndAndTheSentence)
{
    char path[1000];
    memset(path, 'p', sizeof path);
    memcpy(path + sizeof path - 9, "/end.npy", 9);
    char message[512];
    weir_text_about(message, sizeof message, path, "is %s", "broken");
    EXPECT_CONTAINS(message, "/end.npy: is broken");
    EXPECT_UINT_EQ(strlen(message), 3 + 160 + strlen(": is broken"));
    weir_text_about(message, sizeof message, "a.npy", "is %s", "broken");
    EXPECT_STR_EQ(message, "a.npy: is broken");
}

static void expect_escaped(const char *text, const char *keep, const char *expected)
{
    char shown[64];
    weir_text_escape(shown, sizeof shown, text, keep);
    EXPECT_STR_EQ(shown, expected);
    EXPECT_INT_EQ(weir_text_is_clean(text, keep), strcmp(text, expected) == 0);
}

WEIR_TEST(BaseText, EscapesWhatATerminalActsOn)
{
    expect_escaped("", "", "");
    expect_escaped("plain \\ 'text'", "", "plain \\ 'text'");
    expect_escaped("\x1b]0;title\x07", "", "\\x1b]0;title\\x07");
    expect_escaped("a\nb\tc\rd", "", "a\\nb\\tc\\rd");
    expect_escaped("a\nb\tc\rd", "\n\t", "a\nb\tc\\rd");
    // One-byte controls, U+009B, U+202E, U+2066, U+2028 and what is none of them.
    expect_escaped("\x7f\xc2\x9b", "", "\\x7f\\u009b");
    expect_escaped("gnp.\xe2\x80\xae\xe2\x81\xa6", "", "gnp.\\u202e\\u2066");
    expect_escaped("\xe2\x80\xa8", "", "\\u2028");
    expect_escaped("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "",
                   "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    // Not UTF-8: lone, long and cut.
    expect_escaped("\x80\xc0\xaf\xed\xa0\x80", "", "\\x80\\xc0\\xaf\\xed\\xa0\\x80");
    expect_escaped("\xf0\x9f\x98", "", "\\xf0\\x9f\\x98");
}

WEIR_TEST(BaseText, EscapedTextThatIsCutSaysSo)
{
    char shown[10];
    weir_text_escape(shown, sizeof shown, "123456789", "");
    EXPECT_STR_EQ(shown, "123456789");
    weir_text_escape(shown, sizeof shown, "123456789a", "");
    EXPECT_STR_EQ(shown, "123456...");
    weir_text_escape(shown, sizeof shown,
                     "12345\x1b"
                     "789",
                     "");
    EXPECT_STR_EQ(shown, "12345...");
    weir_text_escape(shown, sizeof shown,
                     "1234\xf0\x9f\x98\x80"
                     "90",
                     "");
    EXPECT_STR_EQ(shown, "1234...");
    weir_text_escape(shown, 4, "12345", "");
    EXPECT_STR_EQ(shown, "...");
}

WEIR_TEST(BaseText, ALongPathIsNotCutInMidCharacter)
{
    char path[400] = "";
    char message[512];
    for (size_t i = 0; i < 100; i++)
        strcat(path, "\xe2\x82\xac");
    strcat(path, "/a");
    weir_text_about(message, sizeof message, path, "is %s", "broken");
    EXPECT_TRUE(weir_text_is_clean(message, ""));
    EXPECT_CONTAINS(message, "/a: is broken");
}

WEIR_TEST(BaseTable, ACharacterOfSeveralBytesIsOneWide)
{
    struct weir_table table = {.alignment = "ll"};
    struct weir_long_text text = {0};
    weir_table_add(&table, "µs");
    weir_table_add(&table, "x");
    weir_table_add(&table, "abc");
    weir_table_add(&table, "y");
    weir_table_end(&table, 0, &text);
    EXPECT_STR_EQ(text.text, "µs   x\n"
                             "abc  y\n");
    free(text.text);
}

// Labels stand in cells, and tables are printed.
WEIR_TEST(BaseTable, CellsAreEscaped)
{
    struct weir_table table = {.alignment = "ll"};
    struct weir_long_text text = {0};
    weir_table_add(&table, "%s", "a\x1b[2J\nb");
    weir_table_add(&table, "%s", "x");
    weir_table_add(&table, "c");
    weir_table_add(&table, "%s", "\xe2\x80\xae");
    weir_table_end(&table, 0, &text);
    weir_long_text_add_shown(&text, "d\n");
    EXPECT_STR_EQ(text.text, "a\\x1b[2J\\nb  x\nc            \\u202e\nd\\n");
    free(text.text);
}

// Sections "[kind NAME]" of INI files; config_test.c has all else.

static void expect_reads(const char *kind, const char *text, bool reads)
{
    const struct weir_ini_rules rules = {.kind = kind, .section_limit = 1};
    struct weir_ini ini;
    struct weir_ini_refusal refusal;
    EXPECT_INT_EQ(weir_ini_read(text, strlen(text), &rules, &ini, &refusal), reads);
    if (reads)
        EXPECT_UINT_EQ(strlen(ini.entries[1].section), strcspn(text, "]") - 1);
    else
        EXPECT_UINT_EQ(refusal.line, 1);
    weir_ini_finish(&ini);
}

WEIR_TEST(Ini, AKindOfSectionsHasAnyNames)
{
    static const char *const others[] = {"[kernel ]\n", "[kernel  x]\n", "[kernel x ]\n",
                                         "[kernels x]\n", "[a x]\n"};
    const char *name = "[kernel void f<float, 4>(float const*, unsigned long)] ; c\nk = v\n";
    expect_reads("kernel", name, true);
    expect_reads(NULL, name, false);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        expect_reads("kernel", others[i], false);
}

// The relation of two clocks.

#define SECOND UINT64_C(1000000000)

static void expect_near(uint64_t value, uint64_t wanted, uint64_t slack)
{
    EXPECT_UINT_LE(wanted, value + slack);
    EXPECT_UINT_LE(value, wanted + slack);
}

// Clock a is 50 millionths fast, and read with an error of up to 3 us.
WEIR_TEST(ClockMap, FollowsDrift)
{
    struct weir_clock_map map = {.count = 0};
    const uint64_t start = 3 * SECOND;
    for (uint64_t i = 0; i < 400; i++) {
        const uint64_t b = start + i * SECOND / 4;
        const uint64_t a = b + (b - start) / 20000 + 1000000 + (i % 3) * 1500;
        weir_clock_map_add(&map, a, b);
    }
    const uint64_t b = start + 95 * SECOND + 123456789;
    const uint64_t a = b + (b - start) / 20000 + 1001500;
    expect_near(weir_clock_map_b(&map, a), b, 3000);
    // One second beyond the last pair.
    const uint64_t later = start + 101 * SECOND;
    expect_near(weir_clock_map_b(&map, later + (later - start) / 20000 + 1001500), later, 15000);
}

// Readings close to each other replace the newest, so that their error is not
// mistaken for drift.
WEIR_TEST(ClockMap, ShortDistancesTellNoDrift)
{
    struct weir_clock_map map = {.count = 0};
    weir_clock_map_add(&map, SECOND, SECOND);
    weir_clock_map_add(&map, SECOND + 10000, SECOND + 13000);
    expect_near(weir_clock_map_b(&map, 2 * SECOND), 2 * SECOND, 3000);
    for (uint64_t i = 1; i < 50; i++)
        weir_clock_map_add(&map, SECOND + 20000 * i, SECOND + 20000 * i + i % 2);
    EXPECT_UINT_LE(map.count, 2);
}

WEIR_TEST(ClockMap, IgnoresWhatRunsBackwards)
{
    struct weir_clock_map map = {.count = 0};
    weir_clock_map_add(&map, 2 * SECOND, 2 * SECOND);
    weir_clock_map_add(&map, SECOND, 3 * SECOND);
    weir_clock_map_add(&map, 3 * SECOND, SECOND);
    EXPECT_UINT_EQ(map.count, 1);
}

// A table that is full still knows what it has.
WEIR_TEST(BaseNames, TakeNoMoreThanTheLimit)
{
    struct weir_names *names = weir_names_create();
    EXPECT_NOT_NULL(names);
    const char *first = weir_names_keep_within(names, "first", 10000);
    size_t kept = 1;
    char text[16];
    snprintf(text, sizeof text, "%zu", kept);
    while (weir_names_keep_within(names, text, 10000) && kept < 1000)
        snprintf(text, sizeof text, "%zu", ++kept);
    EXPECT_UINT_LE(kept, 200);
    EXPECT_UINT_EQ(weir_names_count(names), kept);
    EXPECT_NULL(weir_names_keep_within(names, "another", 10000));
    EXPECT_TRUE(weir_names_keep_within(names, "first", 10000) == first);
    EXPECT_STR_EQ(weir_names_keep_within(names, "1", 10000), "1");
    weir_names_destroy(names);
}

// Structures that come with their size: shorter, longer, and of sizes that cannot be.

struct known {
    size_t struct_size;
    uint32_t first;
    uint32_t second;
};

struct newer {
    struct known known;
    uint64_t third;
    uint64_t fourth;
};

static struct weir_sized_refusal refusal;

static bool read_it(const void *given, struct known *known)
{
    memset(known, 0xa5, sizeof *known);
    refusal = (struct weir_sized_refusal){.message = ""};
    return weir_sized_read("weir_call", "weir_known", given, known, sizeof *known, &refusal);
}

// Each on the heap, so that a sanitizer sees a read past its end.
WEIR_TEST(Sized, ShorterOnesAreFilledWithZeros)
{
    const struct known whole = {0, 0x11111111, 0x22222222};
    struct known known;

    for (size_t size = sizeof(size_t); size < sizeof whole; size++) {
        void *given = malloc(size);
        ASSERT_NOT_NULL(given);
        memcpy(given, &whole, size);
        memcpy(given, &size, sizeof size);
        weir_test_note("%zu bytes", size);
        ASSERT_TRUE(read_it(given, &known));
        EXPECT_UINT_EQ(known.struct_size, sizeof known);
        EXPECT_UINT_EQ(known.first,
                       size < 12 ? 0x11111111 & ((1u << 8 * (size - 8)) - 1) : 0x11111111);
        EXPECT_UINT_EQ(known.second, size < 12 ? 0 : 0x22222222 & ((1u << 8 * (size - 12)) - 1));
        free(given);
    }
}

WEIR_TEST(Sized, LongerOnesMustEndInZeros)
{
    struct newer given = {.known = {sizeof given, 3, 4}};
    struct known known;

    ASSERT_TRUE(read_it(&given, &known));
    EXPECT_UINT_EQ(known.second, 4);
    EXPECT_UINT_EQ(known.struct_size, sizeof known);
    given.fourth = UINT64_C(1) << 56; // the last byte of all
    ASSERT_FALSE(read_it(&given, &known));
    EXPECT_CONTAINS(refusal.message, "weir_call: struct weir_known has 32 bytes in the program and "
                                     "16 in this library, and byte 31");
    EXPECT_CONTAINS(refusal.remedy, "leave fields zero");
    given.third = 1;
    ASSERT_FALSE(read_it(&given, &known));
    EXPECT_CONTAINS(refusal.message, "byte 16");
}

WEIR_TEST(Sized, ImpossibleSizesAreRefused)
{
    static const size_t sizes[] = {0, 1, sizeof(size_t) - 1, WEIR_SIZED_BYTES_MAX + 1, SIZE_MAX};
    struct known given = {0, 3, 4};
    struct known known;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        given.struct_size = sizes[i];
        ASSERT_FALSE(read_it(&given, &known));
        EXPECT_CONTAINS(refusal.message, "weir_call: struct_size is ");
        EXPECT_CONTAINS(refusal.message, "struct weir_known has 16 bytes in this library");
        EXPECT_CONTAINS(refusal.remedy, "sizeof params");
    }
}

WEIR_TEST(Sized, WritesNoMoreThanThereIsRoomFor)
{
    const struct newer from = {.known = {sizeof from, 3, 4}, .third = 5};
    struct known *shorter = calloc(1, sizeof *shorter);
    unsigned char longer[2 * sizeof from];

    ASSERT_NOT_NULL(shorter);
    weir_sized_write_back(shorter, sizeof *shorter, &from, sizeof from);
    EXPECT_UINT_EQ(shorter->second, 4);
    EXPECT_UINT_EQ(shorter->struct_size, sizeof *shorter);
    free(shorter);

    memset(longer, 0xa5, sizeof longer);
    weir_sized_write(longer, sizeof longer, &from, sizeof from);
    EXPECT_INT_EQ(memcmp(longer, &from, sizeof from), 0);
    for (size_t i = sizeof from; i < sizeof longer; i++)
        EXPECT_UINT_EQ(longer[i], 0);
}
