// A short run of the differential fuzzer, and that it sees differences.

#include "tests/races/fuzz/program.h"
#include "tests/support/test.h"

// Fewer where each takes ten times as long.
#ifdef __SANITIZE_ADDRESS__
enum {
    PROGRAMS = 2000,
    STRICT_PROGRAMS = 800,
};
#else
enum {
    PROGRAMS = 8000,
    STRICT_PROGRAMS = 3000,
};
#endif

// On null a program's race is one of threads, where a host call holds a queue's work back.
#ifdef __SANITIZE_THREAD__
#define SKIP_WHERE_RACES_ARE_SEEN() WEIR_SKIP("the thread sanitizer sees the programs' own races")
#else
#define SKIP_WHERE_RACES_ARE_SEEN() (void)0
#endif

static void expect_no_difference(enum ground_order order, uint64_t count)
{
    SKIP_WHERE_RACES_ARE_SEEN();
    const struct drive_result result = drive(order, 1, count, stdout);
    EXPECT_FALSE(result.different);
    EXPECT_UINT_EQ(result.programs, count);
    EXPECT_UINT_GT(result.with, count / 4);
    EXPECT_UINT_LT(result.with, count);
}

WEIR_TEST(CheckFuzz, AgreesWithTheOracle)
{
    expect_no_difference(GROUND_ONE, PROGRAMS);
}

WEIR_TEST(CheckFuzz, AgreesWithTheOracleAboutThreads)
{
    expect_no_difference(GROUND_TOLD, STRICT_PROGRAMS);
}

// Two fills of the same bytes on two queues, as the oracle sees them.
static void two_fills(struct oracle *oracle)
{
    oracle_init(oracle);
    for (int queue = 0; queue < 2; queue++)
        oracle_use(oracle, oracle_add(oracle, queue), 0, WEIR_ACCESS_WRITE, 0xff);
}

static const struct oracle_place node_0 = {.nodes = {0}, .count = 1};
static const struct oracle_place node_1 = {.nodes = {1}, .count = 1};

WEIR_TEST(CheckFuzz, SeesAMissedFinding)
{
    struct oracle oracle;
    struct comparison comparison;
    two_fills(&oracle);
    comparison_begin(&comparison, &oracle);
    EXPECT_FALSE(comparison_end(&comparison));
    EXPECT_CONTAINS(comparison.difference, "nothing was found");
}

WEIR_TEST(CheckFuzz, SeesAWrongKindAndWrongBytes)
{
    const struct weir_check_finding wrong[] = {
        {.kind = WEIR_CHECK_READ_AFTER_WRITE, .size = 8},
        {.kind = WEIR_CHECK_WRITE_AFTER_WRITE, .size = 9},
        {.kind = WEIR_CHECK_WRITE_AFTER_WRITE, .offset = 8, .size = 1},
    };
    struct oracle oracle;
    struct comparison comparison;
    two_fills(&oracle);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        comparison_begin(&comparison, &oracle);
        comparison_add(&comparison, &wrong[i], &node_0, &node_1);
        EXPECT_FALSE(comparison_end(&comparison));
        EXPECT_CONTAINS(comparison.difference, "do not conflict so");
    }
}

// Programs that showed a difference once. What the fuzzer prints can be run again.
WEIR_TEST(CheckFuzz, RunsProgramsByTheirBytes)
{
    SKIP_WHERE_RACES_ARE_SEEN();
    static const struct {
        enum ground_order order;
        const char *bytes;
    } programs[] = {
        // A launch of a graph with a finding, after a record of its queue.
        {GROUND_ONE, "6ef5690b8d9d7865ec4174cd7414badf47c2f7018e850284c973100c484b9b979a4be98289892"
                     "441e8f4478548"
                     "44"
                     "575e7dfcbbad34ba2d2c27b34d982dc7b94c74ce9ff0426a4fd1"},
        // A host call whose access has the range of one that the program has open.
        {GROUND_ONE,
         "d59a6cfc5b8e1817a650de5faf44cd7195fc9e5f8e70dde795030a7d481d3d6844e673def982192e9715d5b6"
         "d725740a"},
        // A wait after a host call, for what the function of the call then uses.
        {GROUND_ONE,
         "2cba8265831cac779b1b5c5a7ddf54f7f8edfb181542eb337ae8f7e043c6aa8692410e424511c8486e39e8fb"
         "faca0c0a"},
        // A use before a host call, on a queue that waits for its end while the call waits.
        {GROUND_ONE, "5b67bd2dbb58b19e83c2e10d3c059dbd92e88208a29a8e996914a7b5eaac96f7"},
        // A download by one thread, and an upload by another one through the same memory.
        {GROUND_TOLD, "86120e43c74b22d0ab511b446f2c0e7d91fd27b4814392ec"},
        // The library records on the legacy queue for a thread, after which another one does.
        {GROUND_TOLD, "af64d6347aef016b2da7625596d117e3d3b2aff2e686dd26"},
        // An access while a host call waits, then a finding that supposes that the call has run.
        {GROUND_TOLD, "b273ff2a5b8e05d1a6a79cf6a20b76735ed0d9e8244bfcf25a68a34f9e8a3357b9ace489c422"
                      "39ed268117cbc1"
                      "0208fa"},
        // A release by the function of a host call, after its access.
        {GROUND_TOLD, "1b48ec8796040a18acdc2a5d702c0b4c4e12f684b5a9d3343e6b9eed64808b07"},
    };
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        EXPECT_TRUE(drive_one(programs[i].order, programs[i].bytes, stdout));
}
