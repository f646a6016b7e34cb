// The plugin `perturb`: broken programs give a wrong result within 100 seeds, and the same one for the same
// seed; what the modes late and pair do. Run once for each backend; the environment names it.
#include <stdio.h>
#include <string.h>

#include "tests/plugins/perturb_rig.h"
#include "tests/plugins/racy/racy.h"
#include "tests/support/test.h"

enum {
    SEEDS = 100,
};

// An open device without the plugin keeps what the driver makes for the first one, which takes
// GPUs long.
struct keeper {
    weir_runtime *runtime;
    weir_device *device;
};

static struct keeper keep_driver(void)
{
    struct keeper keeper = {NULL, NULL};
    open_device("", "", &keeper.runtime, &keeper.device);
    return keeper;
}

// Whether the result is right.
static bool run(const struct racy_program *program, bool broken, const char *section,
                uint32_t words[RACY_WORDS])
{
    weir_runtime *runtime = NULL;
    weir_device *device = NULL;
    memset(words, 0, RACY_WORDS * sizeof *words);
    open_device("perturb", section, &runtime, &device);
    if (device)
        EXPECT_OK(program->run(device, broken, words));
    close_device(&runtime, &device);
    return racy_is_right(words);
}

static const char *seeded(unsigned seed)
{
    static char text[64];
    snprintf(text, sizeof text, "[perturb]\nseed = %u\n", seed);
    return text;
}

// The first seed with a wrong result; 0: none has.
static unsigned find_seed(const struct racy_program *program)
{
    uint32_t words[RACY_WORDS];
    for (unsigned seed = 1; seed <= SEEDS; seed++)
        if (!run(program, true, seeded(seed), words))
            return seed;
    return 0;
}

static void expect_same_again(const struct racy_program *program, unsigned seed)
{
    uint32_t words[RACY_WORDS];
    uint32_t again[RACY_WORDS];
    char order[sizeof logged];
    EXPECT_FALSE(run(program, true, seeded(seed), words));
    memcpy(order, logged, sizeof order);
    EXPECT_CONTAINS(order, ", order ");
    for (int i = 0; i < 3; i++) {
        EXPECT_FALSE(run(program, true, seeded(seed), again));
        EXPECT_TRUE(memcmp(words, again, sizeof words) == 0);
        EXPECT_STR_EQ(logged, order);
        EXPECT_STR_EQ(logged_second, "");
    }
}

// That mended programs are right, and the broken ones of a larger corpus wrong: tests/races/rates_test.c.
WEIR_TEST(Perturb, ASeedGivesItsWrongResultAgain)
{
    struct keeper keeper = keep_driver();
    for (size_t i = 0; i < racy_program_count; i++) {
        const unsigned seed = find_seed(&racy_programs[i]);
        weir_test_note("%s", racy_programs[i].name);
        EXPECT_TRUE(seed > 0);
        if (seed)
            expect_same_again(&racy_programs[i], seed);
    }
    weir_test_note(NULL);
    close_device(&keeper.runtime, &keeper.device);
}

// What the host uses too early is not there in mode late.
WEIR_TEST(Perturb, Late)
{
    uint32_t words[RACY_WORDS];
    for (size_t i = 0; i < racy_program_count; i++) {
        const char *name = racy_programs[i].name;
        weir_test_note("%s", name);
        const bool right = run(&racy_programs[i], true, "[perturb]\nmode = late\n", words);
        EXPECT_CONTAINS(logged, "mode late");
        // Late is right for a host that is late itself, and for a reader that goes first. In a
        // graph it is the last node that may run that does.
        if (strcmp(name, "late-write") != 0 && strcmp(name, "overwrite") != 0)
            EXPECT_FALSE(right);
    }
    weir_test_note(NULL);
}

// Two fills without an order between them, or with one.
static uint32_t run_pair(const char *section, bool ordered, char *text, size_t size)
{
    weir_runtime *runtime = NULL;
    weir_device *device = NULL;
    weir_queue *queues[2] = {NULL, NULL};
    weir_buffer *buffer = NULL;
    struct weir_event event;
    uint32_t word = 0;
    const uint32_t one = 1;
    const uint32_t two = 2;
    open_device("perturb", section, &runtime, &device);
    EXPECT_OK(weir_queue_create(device, NULL, &queues[0]));
    EXPECT_OK(weir_queue_create(device, NULL, &queues[1]));
    EXPECT_OK(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = 4), &buffer));
    EXPECT_OK(weir_queue_fill_at(queues[0], buffer, 0, 4, &one, 4, "src/app.c", 80));
    if (ordered) {
        EXPECT_OK(weir_queue_record(queues[0], &event));
        EXPECT_OK(weir_queue_wait(queues[1], event));
    }
    EXPECT_OK(weir_queue_fill_at(queues[1], buffer, 0, 4, &two, 4, "src/app.c", 91));
    EXPECT_OK(weir_queue_sync(queues[0], GUARD_NS));
    EXPECT_OK(weir_queue_sync(queues[1], GUARD_NS));
    EXPECT_OK(weir_download(queues[1], &word, buffer, 0, 4));
    weir_buffer_destroy(&buffer);
    weir_queue_destroy(&queues[0]);
    weir_queue_destroy(&queues[1]);
    close_device(&runtime, &device);
    snprintf(text, size, "%s", logged);
    return word;
}

WEIR_TEST(Perturb, PairIsReversed)
{
    static const char both[] = "[perturb]\nmode = pair\npair = app.c:80, /build/src/app.c:91\n";
    static const char turned[] = "[perturb]\nmode = pair\npair = src/app.c:91, app.c:80\n";
    char text[sizeof logged];
    EXPECT_INT_EQ(run_pair(both, false, text, sizeof text), 1);
    EXPECT_CONTAINS(text, "the pair was reversed 1 time");
    EXPECT_INT_EQ(run_pair(both, true, text, sizeof text), 2);
    EXPECT_CONTAINS(text, "the pair was reversed 0 times");
    // The second was submitted before the first, so nothing holds the first back.
    EXPECT_INT_EQ(run_pair(turned, false, text, sizeof text), 2);
    EXPECT_CONTAINS(text, "the pair was reversed 0 times");
}

// A ring of two slots that is filled again too early: what races with a copy is not the next fill
// but the one after it.
static void run_ring(const char *section, uint32_t results[4])
{
    weir_runtime *runtime = NULL;
    weir_device *device = NULL;
    weir_queue *fills = NULL, *copies = NULL;
    weir_buffer *slots = NULL, *out = NULL;
    struct weir_event event;
    open_device("perturb", section, &runtime, &device);
    EXPECT_OK(weir_queue_create(device, NULL, &fills));
    EXPECT_OK(weir_queue_create(device, NULL, &copies));
    const struct weir_buffer_params memory = {.struct_size = sizeof memory, .size = 16};
    EXPECT_OK(weir_buffer_create(device, &memory, &slots));
    EXPECT_OK(weir_buffer_create(device, &memory, &out));
    for (uint32_t i = 0; i < 4; i++) {
        const size_t slot = 4 * (i % 2);
        EXPECT_OK(weir_queue_fill_at(fills, slots, slot, 4, &i, 4, "src/app.c", 91));
        EXPECT_OK(weir_queue_record(fills, &event));
        EXPECT_OK(weir_queue_wait(copies, event));
        EXPECT_OK(weir_queue_copy_at(copies, out, 4 * i, slots, slot, 4, "src/app.c", 80));
    }
    EXPECT_OK(weir_download(copies, results, out, 0, 16));
    weir_buffer_destroy(&slots);
    weir_buffer_destroy(&out);
    weir_queue_destroy(&fills);
    weir_queue_destroy(&copies);
    close_device(&runtime, &device);
}

WEIR_TEST(Perturb, PairOfALoop)
{
    uint32_t results[4];
    static const uint32_t right[4] = {0, 1, 2, 3}, wrong[4] = {2, 3, 2, 3};
    run_ring("[perturb]\nmode = pair\npair = none.c:1, none.c:2\n", results);
    EXPECT_MEM_EQ(results, right, sizeof results);
    run_ring("[perturb]\nmode = pair\npair = app.c:80, app.c:91\n", results);
    EXPECT_MEM_EQ(results, wrong, sizeof results);
}
