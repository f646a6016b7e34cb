// The doors, and the way to them.
#include <unistd.h>

#include "base/clock.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/strangers/round.h"

enum {
    CAME_MOST = 128
};

struct door_round {
    struct round round;
    struct local_door door;
    struct local_address doors[DOOR_LISTENERS];
    struct local_hello right[CAME_MOST];
    uint32_t right_count;
    int ended[2]; // a pipe
};

static void attack_door(struct round *round)
{
    struct door_round *own = (struct door_round *)round;
    const size_t count =
        round_is_one_of(round, 16) ? DOOR_GUESTS + 8 : damage_below(&round->state, 6);
    for (size_t i = 0; i <= count; i++) {
        struct local_hello hello = {.purpose = (uint32_t)damage_below(&round->state, 4),
                                    .rank = (uint32_t)damage_below(&round->state, 4),
                                    .count = (uint32_t)i};
        int connection = -1;
        if (round_hello(round, &own->doors[damage_below(&round->state, 2)], &hello, 2, &connection))
            own->right[own->right_count++] = hello;
        if (round_is_one_of(round, 4))
            shutdown(connection, SHUT_RDWR);
    }
    close(own->ended[1]);
}

// Each that came has said so, and once.
static void compare(struct door_round *own, const struct local_hello *came, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t found = 0;
        for (; found < own->right_count; found++) {
            own->right[found].job[LOCAL_JOB_SIZE - 1] = '\0';
            if (memcmp(&own->right[found], &came[i], sizeof came[i]) == 0)
                break;
        }
        if (found == own->right_count)
            own->round.broken = "a door has let in what was no right hello";
        else
            own->right[found] = own->right[--own->right_count];
    }
}

static uint32_t wait_at_door(struct door_round *own, struct local_hello *came)
{
    struct pollfd polls[1 + DOOR_POLLS] = {{.fd = own->ended[0], .events = POLLIN}};
    uint64_t deadline_ns = weir_clock_now_ns() + 2000 * ROUND_MS;
    uint32_t count = 0;
    for (;;) {
        struct local_stranger rank;
        if (!local_door_next(&own->door, polls, 1, deadline_ns, &rank)) {
            round_returned(&own->round, deadline_ns);
            return count;
        }
        if (rank.connection >= 0) {
            came[count++] = rank.answer.hello;
        } else {
            deadline_ns = weir_clock_now_ns() + 3 * ROUND_MS;
            polls[0].fd = -1;
        }
        local_close(&rank.connection);
    }
}

void round_of_door(struct round *round)
{
    struct door_round own = {.round = *round};
    struct local_hello came[CAME_MOST];
    local_door_init(&own.door, &round->world->secret);
    if (pipe(own.ended) != 0 || !local_door_open(&own.door, &round->world->loopback)) {
        round->broken = "no door";
        return;
    }
    own.doors[DOOR_MACHINE] = local_address_at_number(own.door.where.number);
    own.doors[DOOR_NETWORK] = round->world->loopback;
    local_address_set_port(&own.doors[DOOR_NETWORK], (uint16_t)own.door.where.port);
    round_begin(&own.round, attack_door);
    const uint32_t count = wait_at_door(&own, came);
    local_door_close(&own.door);
    round_end(&own.round);
    close(own.ended[0]);
    compare(&own, came, count);
    own.round.believed += count;
    *round = own.round;
}

// The way to a door on the network.

struct knock_round {
    struct round round;
    int listener;
    bool right;
};

static void attack_knock(struct round *round)
{
    struct knock_round *own = (struct knock_round *)round;
    const struct world *world = round->world;
    struct local_challenge challenge = {.nonce = {0}};
    struct local_answer answer;
    uint8_t proof[LOCAL_PROOF_SIZE];
    const int connection = round_accept(round, own->listener);
    memcpy(challenge.magic, LOCAL_MAGIC, sizeof challenge.magic);
    round_damage(round, challenge.nonce, sizeof challenge.nonce);
    if (round_is_one_of(round, 4))
        round_damage(round, &challenge, sizeof challenge);
    const bool challenged = round_say(round, connection, &challenge, sizeof challenge);
    if (!round_hear(connection, &answer, sizeof answer)) {
        shutdown(connection, SHUT_RDWR);
        return;
    }
    round->hellos++;
    local_prove(round_is_one_of(round, 3) ? &world->other : &world->secret, "door", answer.nonce,
                &answer.hello, proof);
    if (round_is_one_of(round, 4))
        round_damage(round, proof, sizeof proof);
    own->right =
        challenged && local_is_proven(&world->secret, "door", answer.nonce, &answer.hello, proof);
    own->right = round_say(round, connection, proof, sizeof proof) && own->right;
}

void round_of_knock(struct round *round)
{
    struct knock_round own = {.round = *round};
    struct local_hello hello = {.purpose = LOCAL_TO_MEET, .rank = 1, .count = 2};
    struct local_address address = round->world->loopback;
    uint32_t port = 0;
    own.listener = round_listen(&own.round, &address, &port);
    local_address_set_port(&address, (uint16_t)port);
    round_begin(&own.round, attack_knock);
    const uint64_t deadline_ns = weir_clock_now_ns() + 40 * ROUND_MS;
    int connection = local_knock(&address, &round->world->secret, &hello, deadline_ns);
    round_returned(&own.round, deadline_ns);
    const bool in = connection >= 0;
    local_close(&connection);
    round_end(&own.round);
    if (in && !own.right)
        own.round.broken = "a rank has come in at a door that has not proven the secret";
    own.round.believed += in;
    *round = own.round;
}
