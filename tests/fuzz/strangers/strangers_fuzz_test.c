// What strangers and peers say to the transport "local", in rounds of all the fuzzers in turn: a short run. SECONDS, SEED,
// first round and count of rounds in WEIR_TEST_FUZZ make another one, such as an hour, or one round again:
//
//     bazel test --config=asan-ubsan --test_env=WEIR_TEST_FUZZ='3600 7' //tests/fuzz/strangers:all --test_timeout=4000
//     bazel test --config=asan-ubsan --test_env=WEIR_TEST_FUZZ='60 7 1234 1' //tests/fuzz/strangers:all
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lookup.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/strangers/round.h"
#include "tests/support/host.h"
#include "tests/support/test.h"

#define SECRET "the secret of the fuzzers"
// A call that would not end is told by this, and not by the test's time.
#define STUCK_NS (3000 * ROUND_MS)

static const struct {
    const char *name;
    void (*round)(struct round *round);
} fuzzers[] = {
    {"door", round_of_door},   {"knock", round_of_knock}, {"meeting", round_of_meeting},
    {"guest", round_of_guest}, {"call", round_of_call},   {"shrink", round_of_shrink},
};

enum {
    FUZZERS = sizeof fuzzers / sizeof *fuzzers
};

static struct weir_host host;
static atomic_bool unprintable;

static weir_status note_error(const struct weir_error *detail, size_t size)
{
    for (const char *at = detail->message; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            unprintable = true;
    return test_host.error(detail, size);
}

static bool init_world(struct world *world)
{
    host = test_host;
    host.error = note_error;
    *world = (struct world){.host = &host};
    // The path of a socket is short, and that of a test's folder long.
    snprintf(world->folder, sizeof world->folder, "/tmp/weir-fuzz.XXXXXX");
    if (!mkdtemp(world->folder) || !local_secret_of(SECRET, strlen(SECRET), &world->secret) ||
        !local_secret_of("of other ranks", 14, &world->other) ||
        !local_address_parse("127.0.0.1", &world->loopback))
        return false;
    const struct sockaddr_in own = weir_address_of_host();
    memcpy(&world->network.address, &own, sizeof own);
    world->network.size = sizeof own;
    if (local_address_reach(&world->network) == LOCAL_REACH_LOOPBACK)
        world->network.size = 0;
    snprintf(world->secret_file, sizeof world->secret_file, "%s/secret", world->folder);
    const int file = open(world->secret_file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const bool written = file >= 0 && write(file, SECRET, strlen(SECRET)) > 0;
    if (file >= 0)
        close(file);
    return written;
}

static void finish_world(const struct world *world)
{
    (void)unlink(world->secret_file);
    (void)rmdir(world->folder);
}

static uint32_t state_of(uint64_t seed, uint64_t number)
{
    const uint64_t mixed =
        (seed * UINT64_C(0x9e3779b97f4a7c15) + number) * UINT64_C(0xd1342543de82ef95);
    uint32_t state = (uint32_t)(mixed >> 32) | 1;
    damage_below(&state, 0);
    return state;
}

// The rule that a round has broken, or NULL.
static const char *check(const struct round *round, int descriptors)
{
    if (unprintable)
        return "an error has a byte that is no text";
    if (round->over_ns > STUCK_NS)
        return "a call has not ended at its deadline";
    if (test_host_blocks() != 0)
        return "memory is left";
    return test_descriptors() != descriptors ? "a descriptor is left" : round->broken;
}

// What is asked for: the same seed and number say the same bytes.
struct run {
    unsigned long long seconds, seed, first, rounds;
};

static struct run read_run(void)
{
    struct run run = {.seconds = 15, .seed = 1, .rounds = 210};
    const char *text = getenv("WEIR_TEST_FUZZ");
    if (!text)
        return run;
    run.rounds = UINT64_MAX;
    // NOLINTNEXTLINE(cert-err34-c)
    sscanf(text, "%llu %llu %llu %llu", &run.seconds, &run.seed, &run.first, &run.rounds);
    return run;
}

WEIR_TEST(StrangersFuzz, NothingIsBelievedThatWasNotSaid)
{
    const struct run run = read_run();
    const uint64_t until_ns = weir_clock_now_ns() + run.seconds * 1000 * ROUND_MS;
    struct world world;
    uint64_t hellos = 0;
    uint64_t believed[FUZZERS] = {0}; // let in, joined, or a call that has ended well
    uint64_t rounds = 0;
    ASSERT_TRUE(init_world(&world));
    const int descriptors = test_descriptors();
    for (; rounds < run.rounds && weir_clock_now_ns() < until_ns; rounds++) {
        const uint64_t number = run.first + rounds;
        struct round round = {.world = &world, .state = state_of(run.seed, number)};
        fuzzers[number % FUZZERS].round(&round);
        hellos += round.hellos;
        believed[number % FUZZERS] += round.believed;
        const char *broken = check(&round, descriptors);
        if (broken)
            WEIR_FAIL("round %llu (%s): %s", (unsigned long long)number,
                      fuzzers[number % FUZZERS].name, broken);
    }
    finish_world(&world);
    printf("%" PRIu64 " rounds, %" PRIu64 " hellos\n", rounds, hellos);
    for (int i = 0; i < FUZZERS; i++)
        printf("%s: %" PRIu64 " believed\n", fuzzers[i].name, believed[i]);
    // Some of all kinds go well, or the others would say little.
    EXPECT_TRUE(rounds < FUZZERS || (believed[0] > 0 && believed[0] < hellos));
}
