// The language of INI files, as its callers see it; config_test.c has its sentences.
#include <stdio.h>
#include <string.h>

#include "base/ini/ini.h"
#include "tests/support/test.h"

struct seen {
    char text[512];
    size_t used;
    const char *stop_at;
};

static bool on_section(void *user, unsigned line, const char *name, size_t length)
{
    struct seen *seen = user;
    seen->used += (size_t)snprintf(seen->text + seen->used, sizeof seen->text - seen->used,
                                   "%u[%.*s]", line, (int)length, name);
    return !seen->stop_at || strncmp(name, seen->stop_at, length) != 0;
}

static bool on_entry(void *user, unsigned line, const char *key, const char *value)
{
    struct seen *seen = user;
    seen->used += (size_t)snprintf(seen->text + seen->used, sizeof seen->text - seen->used,
                                   "%u %s=%s;", line, key, value);
    return !seen->stop_at || strcmp(key, seen->stop_at) != 0;
}

static void on_refused(void *user, unsigned line, const char *remedy, const char *sentence)
{
    struct seen *seen = user;
    seen->used += (size_t)snprintf(seen->text + seen->used, sizeof seen->text - seen->used,
                                   "%u! %s (%s)", line, sentence, remedy ? remedy : "");
}

static enum weir_ini_end read_as(struct seen *seen, const char *kind, const char *text)
{
    const struct weir_ini_handler handler = {
        .section = on_section,
        .entry = on_entry,
        .refuse = on_refused,
        .kind = kind,
        .sectionless_remedy = "put it under [gpu]",
    };
    return weir_ini_read(text, strlen(text), &handler, seen);
}

WEIR_TEST(Ini, GivesSectionsAndEntriesInOrder)
{
    struct seen seen = {0};
    EXPECT_INT_EQ(read_as(&seen, NULL, "; x\n[a]\nk = v ; c\n\n[b]\nl =\n"), WEIR_INI_END);
    EXPECT_STR_EQ(seen.text, "2[a]3 k=v;5[b]6 l=;");
}

WEIR_TEST(Ini, StopsWhenToldTo)
{
    struct seen seen = {.stop_at = "b"};
    EXPECT_INT_EQ(read_as(&seen, NULL, "[a]\nk = v\n[b]\nl = w\n"), WEIR_INI_STOPPED);
    EXPECT_STR_EQ(seen.text, "1[a]2 k=v;3[b]");
    seen = (struct seen){.stop_at = "k"};
    EXPECT_INT_EQ(read_as(&seen, NULL, "[a]\nk = v\nl = w\n"), WEIR_INI_STOPPED);
    EXPECT_STR_EQ(seen.text, "1[a]2 k=v;");
}

WEIR_TEST(Ini, AKindOfSectionsHasAnyNames)
{
    struct seen seen = {0};
    const char *name = "[kernel void f<float, 4>(float const*, unsigned long)] ; c\nk = v\n";
    EXPECT_INT_EQ(read_as(&seen, "kernel", name), WEIR_INI_END);
    EXPECT_STR_EQ(seen.text, "1[kernel void f<float, 4>(float const*, unsigned long)]2 k=v;");
    seen = (struct seen){0};
    EXPECT_INT_EQ(read_as(&seen, NULL, name), WEIR_INI_REFUSED);
    static const char *const others[] = {"[kernel ]\n", "[kernel  x]\n", "[kernel x ]\n",
                                         "[kernels x]\n", "[a x]\n"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        seen = (struct seen){0};
        EXPECT_INT_EQ(read_as(&seen, "kernel", others[i]), WEIR_INI_REFUSED);
    }
}

WEIR_TEST(Ini, RefusesWithTheLineAndTheRemedy)
{
    struct seen seen = {0};
    EXPECT_INT_EQ(read_as(&seen, NULL, "\nk = v\n"), WEIR_INI_REFUSED);
    EXPECT_STR_EQ(seen.text, "2! 'k' comes before the first section (put it under [gpu])");
}
