#include "tests/fuzz/strangers/round.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/fuzz/damage.h"

#define OF_RANK "rank"
#define SAY_NS (100 * ROUND_MS)

static void *attack(void *round)
{
    ((struct round *)round)->attack(round);
    return NULL;
}

void round_begin(struct round *round, void (*function)(struct round *round))
{
    round->attack = function;
    round->returned = false;
    if (pthread_create(&round->thread, NULL, attack, round) != 0)
        round->broken = "there is no thread for the hostile side";
}

void round_end(struct round *round)
{
    round->returned = true;
    pthread_join(round->thread, NULL);
    while (round->open_count > 0)
        local_close(&round->open[--round->open_count]);
}

void round_returned(struct round *round, uint64_t deadline_ns)
{
    const uint64_t now_ns = weir_clock_now_ns();
    const uint64_t over_ns = now_ns > deadline_ns ? now_ns - deadline_ns : 0;
    round->over_ns = over_ns > round->over_ns ? over_ns : round->over_ns;
}

bool round_is_one_of(struct round *round, size_t parts)
{
    return damage_below(&round->state, parts) == 0;
}

void round_damage(struct round *round, void *bytes, size_t size)
{
    static const uint32_t numbers[] = {0,  1,      2,       3,         4,         5,
                                       64, 0xffff, 0x10000, INT32_MAX, UINT32_MAX};
    uint8_t *at = bytes;
    for (size_t n = damage_below(&round->state, 4) + 1; n > 0; n--) {
        const size_t word = damage_below(&round->state, size / 4) * 4;
        switch (damage_below(&round->state, 4)) {
        case 0:
            at[damage_below(&round->state, size)] ^=
                (uint8_t)(1u << damage_below(&round->state, 8));
            break;
        case 1:
            at[damage_below(&round->state, size)] = (uint8_t)damage_below(&round->state, 256);
            break;
        case 2:
            memcpy(at + word, &numbers[damage_below(&round->state, sizeof numbers / 4)], 4);
            break;
        default: // the first words are what counts mostly
            memcpy(at + damage_below(&round->state, 8) * 4 % (size & ~(size_t)3),
                   &numbers[damage_below(&round->state, sizeof numbers / 4)], 4);
        }
    }
}

// It stays open, and nothing more can be said there that would complete what was said.
static void fall_silent(struct round *round, int connection)
{
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (round_is_one_of(round, 2))
        shutdown(connection, SHUT_WR);
    (void)round_keep(round, dup(connection));
    (void)dup2(nothing, connection);
    close(nothing);
}

bool round_say(struct round *round, int connection, const void *bytes, size_t size)
{
    const uint64_t until_ns = weir_clock_now_ns() + SAY_NS;
    const size_t cut = round_is_one_of(round, 4) ? damage_below(&round->state, size) : 0;
    const bool all = cut == 0 || !round_is_one_of(round, 4);
    if (connection < 0 || !local_write_all(connection, bytes, cut, until_ns))
        return false;
    if (!all)
        fall_silent(round, connection);
    else if (cut > 0)
        weir_clock_sleep_ns(ROUND_MS / 4);
    return all && local_write_all(connection, (const char *)bytes + cut, size - cut, until_ns);
}

bool round_hear(int connection, void *bytes, size_t size)
{
    return connection >= 0 && local_read_all(connection, bytes, size, weir_clock_now_ns() + SAY_NS);
}

int round_keep(struct round *round, int descriptor)
{
    if (descriptor < 0)
        return -1;
    if (round->open_count == ROUND_OPEN) {
        local_close(&descriptor);
        return -1;
    }
    fcntl(descriptor, F_SETFL, O_NONBLOCK);
    round->open[round->open_count++] = descriptor;
    return descriptor;
}

int round_connect(struct round *round, const struct local_address *address)
{
    return round_keep(round, local_connect(address, weir_clock_now_ns() + SAY_NS));
}

int round_listen(struct round *round, const struct local_address *address, uint32_t *out_number)
{
    return round_keep(round, local_listen(address, out_number));
}

int round_accept(struct round *round, int listener)
{
    struct pollfd polled = {.fd = listener, .events = POLLIN};
    if (listener < 0 || poll(&polled, 1, (int)(SAY_NS / ROUND_MS)) <= 0)
        return -1;
    return round_keep(round, accept(listener, NULL, NULL));
}

// Whether a door takes it, as far as it was all said.
static bool is_right(const struct round *round, const struct local_challenge *challenge,
                     const struct local_answer *answer)
{
    struct local_hello hello = answer->hello;
    hello.job[LOCAL_JOB_SIZE - 1] = '\0';
    return memcmp(hello.magic, LOCAL_MAGIC, sizeof hello.magic) == 0 &&
           (!challenge || local_is_proven(&round->world->secret, OF_RANK, challenge->nonce, &hello,
                                          answer->proof));
}

bool round_hello(struct round *round, const struct local_address *address,
                 struct local_hello *hello, size_t damaged_one_of, int *out_connection)
{
    const bool network = !local_address_is_machine(address);
    struct local_challenge challenge;
    memcpy(hello->magic, LOCAL_MAGIC, sizeof hello->magic);
    if (round_is_one_of(round, damaged_one_of))
        round_damage(round, hello, sizeof *hello);
    struct local_answer answer = {.hello = *hello};
    const int connection = *out_connection = round_connect(round, address);
    if (connection < 0 || (network && !round_hear(connection, &challenge, sizeof challenge)))
        return false;
    const bool knows = !round_is_one_of(round, 2 * damaged_one_of);
    if (network) {
        round_damage(round, answer.nonce, sizeof answer.nonce);
        local_prove(knows ? &round->world->secret : &round->world->other, OF_RANK, challenge.nonce,
                    hello, answer.proof);
    }
    if (round_is_one_of(round, 4 * damaged_one_of))
        round_damage(round, &answer, network ? sizeof answer : sizeof answer.hello);
    round->hellos++;
    *hello = answer.hello;
    return round_say(round, connection, &answer, network ? sizeof answer : sizeof answer.hello) &&
           is_right(round, network ? &challenge : NULL, &answer);
}
