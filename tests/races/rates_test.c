// Under the plugin `perturb` each broken program computes a wrong result with one of the first 100
// seeds, and each mended one the right result.
#include "tests/races/rig.h"
#include "tests/support/test.h"

enum {
    PAIRS_MAX = 256,
    SEEDS = 100,
    SEEDS_MENDED = 5,
};

static void run_pair(void)
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

__attribute__((constructor)) static void add_tests(void)
{
    static struct weir_test tests[PAIRS_MAX];
    size_t count = 0;

    for (struct race_pair *pair = race_first(); pair && count < PAIRS_MAX; pair = pair->next) {
        tests[count] = (struct weir_test){.suite = "Perturbed",
                                          .name = pair->name,
                                          .file = pair->file,
                                          .line = pair->line,
                                          .run = run_pair,
                                          .data = pair};
        weir_test_add(&tests[count++]);
    }
}
