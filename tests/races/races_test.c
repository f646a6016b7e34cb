// Runs every program of the corpus on the backend that WEIR_BACKEND names. Under the plugin `check` a broken
// one has the findings that it marks and no others, and a mended one has none. Where RACES_PERTURBED is set:
// under the plugin `perturb` a broken one computes a wrong result with one of the first 100 seeds, and a
// mended one the right result.

#include "tests/races/rig.h"
#include "tests/support/test.h"

enum {
    PAIRS_MAX = 256,
    SEEDS = 100,
    SEEDS_MENDED = 5,
};

static void expect_place(const struct race_pair *pair, const char *text,
                         const struct weir_check_use *use)
{
    char place[512];
    snprintf(place, sizeof place, "%s:%d", use->file, use->line);
    if (use->line && !strstr(text, place))
        weir_test_fail(pair->file, pair->line, "'%s' does not name %s", text, place);
}

// A finding names both lines, and what is to be done at the second one.
static void expect_words(const struct race_pair *pair, const struct weir_check_finding *finding)
{
    expect_place(pair, finding->message, &finding->first);
    expect_place(pair, finding->message, &finding->second);
    expect_place(pair, finding->remedy, &finding->second);
}

// Each pair of lines is one finding, so as many expected ones as marks are all of them.
static void expect_findings(const struct race_pair *pair, const struct marks *marks,
                            const weir_runtime *runtime)
{
    struct weir_check_finding finding;

    EXPECT_UINT_EQ(weir_check_error_count(runtime), marks->count);
    for (size_t i = 0; weir_check_get(runtime, i, &finding) == WEIR_OK; i++) {
        expect_words(pair, &finding);
        if (finding.kind < WEIR_CHECK_FIRST_HINT && !marks_expect(marks, pair, &finding))
            weir_test_fail(pair->file, pair->line, "not expected: %s; %s:%d, %s:%d: %s",
                           weir_check_kind_name(finding.kind), finding.first.file,
                           finding.first.line, finding.second.file, finding.second.line,
                           finding.message);
    }
}

static void run_broken(const struct race_pair *pair, const struct marks *marks)
{
    struct rig rig;
    ASSERT_OK(rig_open(&rig, "check", NULL));
    if (rig_can_run(&rig, pair)) {
        race_run(pair, false, rig.device);
        expect_findings(pair, marks, rig.runtime);
    }
    ASSERT_OK(rig_close(&rig));
}

// Every wait of a mended program is needed, so a hint is wrong.
static void refuse_hint(void *user, weir_log_level level, const char *source, const char *message)
{
    const struct race_pair *pair = user;
    if (level == WEIR_LOG_INFO && strcmp(source, "check") == 0)
        weir_test_fail(pair->file, pair->line, "not expected: %s", message);
}

static void run_mended(const struct race_pair *pair)
{
    const struct marks none = {.count = 0};
    struct rig rig;
    ASSERT_OK(rig_open(&rig, "check", "[check]\nhints = 1\n"));
    weir_log_set(refuse_hint, (void *)(uintptr_t)pair, WEIR_LOG_INFO);
    if (rig_can_run(&rig, pair)) {
        const bool right = race_run(pair, true, rig.device);
        EXPECT_TRUE(right || !rig_has_result(&rig, pair));
        weir_test_note("mended");
        expect_findings(pair, &none, rig.runtime);
        weir_test_note(NULL);
    }
    ASSERT_OK(rig_close(&rig));
    weir_log_set(NULL, NULL, WEIR_LOG_INFO);
}

static void run_pair(void)
{
    const struct race_pair *pair = weir_test_data();
    struct marks marks;

    ASSERT_TRUE(marks_read(pair, weir_test_runfile(pair->file), &marks));
    if (rig_may_race())
        run_broken(pair, &marks);
    run_mended(pair);
}

static void run_perturbed(void)
{
    const struct race_pair *pair = weir_test_data();
    struct rates broken, mended;

    if (pair->steady)
        WEIR_SKIP("%s", pair->steady);
    if (rig_may_race()) {
        ASSERT_OK(rates_measure(pair, false, true, SEEDS, true, &broken));
        EXPECT_INT_GT(broken.first, 0);
    }
    ASSERT_OK(rates_measure(pair, true, true, SEEDS_MENDED, true, &mended));
    EXPECT_INT_EQ(mended.first, 0);
    EXPECT_INT_EQ(mended.runs, SEEDS_MENDED);
}

// The page says how many programs there are.
WEIR_TEST(Page, CountsThePrograms)
{
    static char page[1 << 16];
    char sentence[128];
    FILE *file = fopen(weir_test_runfile("docs/races.md"), "r");
    ASSERT_NOT_NULL(file);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    fclose(file);
    size_t count = 0;
    for (const struct race_pair *pair = race_first(); pair; pair = pair->next)
        count++;
    snprintf(sentence, sizeof sentence, "has %zu small programs", count);
    EXPECT_CONTAINS(page, sentence);
}

WEIR_TEST(Marks, OfAProgramThatIsNotThere)
{
    const char *const path = weir_test_runfile("tests/races/plain.c");
    const struct race_pair none = {.name = "none", .file = "plain.c", .line = 1};
    struct marks marks;
    EXPECT_FALSE(marks_read(&none, path, &marks));
    EXPECT_FALSE(marks_read(&none, "tests/races/none.c", &marks));
}

__attribute__((constructor)) static void add_tests(void)
{
    static struct weir_test tests[PAIRS_MAX];
    const bool perturbed = getenv("RACES_PERTURBED") != NULL;
    size_t count = 0;

    for (struct race_pair *pair = race_first(); pair && count < PAIRS_MAX; pair = pair->next) {
        tests[count] = (struct weir_test){.suite = perturbed ? "Perturbed" : "Races",
                                          .name = pair->name,
                                          .file = pair->file,
                                          .line = pair->line,
                                          .run = perturbed ? run_perturbed : run_pair,
                                          .data = pair};
        weir_test_add(&tests[count++]);
    }
}
