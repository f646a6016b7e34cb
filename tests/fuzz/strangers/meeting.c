// Meetings: a rank 0 to which hostile ranks come, and a rank that comes to a hostile rank 0.
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/strangers/round.h"

#define JOIN_NS (80 * ROUND_MS)
#define ELEMENTS 16384 // more than a message has

struct meeting_round {
    struct round round;
    bool network;
    struct local_address place;
    char rendezvous[192];
    uint32_t count;
    bool right[ROUND_PEERS]; // each rank has said all that makes it one
    int data[ROUND_PEERS];
    int control[ROUND_PEERS];
};

static void init(struct meeting_round *own)
{
    own->count = 2 + (uint32_t)damage_below(&own->round.state, ROUND_PEERS - 1);
    for (uint32_t i = 0; i < ROUND_PEERS; i++)
        own->data[i] = own->control[i] = -1;
    own->round.head = (struct weir_head){.kind = WEIR_ALL_REDUCE,
                                         .element = WEIR_F32,
                                         .reduction = WEIR_SUM,
                                         .count = ELEMENTS,
                                         .number = 1};
}

static void choose_path(struct meeting_round *own)
{
    char path[160];
    snprintf(path, sizeof path, "%s/place", own->round.world->folder);
    snprintf(own->rendezvous, sizeof own->rendezvous, "unix:%s", path);
}

// Where rank 0 is now: at a path, what it has left there says.
static uint64_t find_place(struct meeting_round *own)
{
    struct local_rendezvous its = {.token = 0};
    char message[256];
    void *data = NULL;
    size_t size = 0;
    if (own->network)
        return 0;
    if (weir_file_read(own->rendezvous + sizeof "unix:" - 1, sizeof its, &data, &size, message,
                       sizeof message) &&
        size == sizeof its)
        memcpy(&its, data, size);
    free(data);
    own->place = local_address_at_number(its.door.where.number);
    return its.token;
}

// A port that is free now.
static void choose_port(struct meeting_round *own)
{
    char host[LOCAL_HOST_SIZE];
    uint32_t port = 0;
    own->network = true;
    own->place = own->round.world->network;
    int probe = local_listen(&own->place, &port);
    local_close(&probe);
    local_address_set_port(&own->place, (uint16_t)port);
    local_address_text(&own->place, host, sizeof host);
    snprintf(own->rendezvous, sizeof own->rendezvous, "tcp://%s:%u", host, port);
}

// One call, with what the hostile side makes of it.
static void call_once(struct local_group *group)
{
    static float src[ELEMENTS];
    static float dst[ELEMENTS];
    const struct weir_transport_call call = {.struct_size = sizeof call,
                                             .kind = WEIR_ALL_REDUCE,
                                             .element = WEIR_F32,
                                             .reduction = WEIR_SUM,
                                             .count = ELEMENTS,
                                             .src = src,
                                             .dst = dst,
                                             .number = 1,
                                             .timeout_ns = JOIN_NS / 2};
    (void)local_run_call(group, &call);
}

static void join(struct meeting_round *own, uint32_t rank, void (*attack)(struct round *round))
{
    const struct world *world = own->round.world;
    const struct weir_transport_setup setup = {
        .struct_size = sizeof setup,
        .label = "fuzz",
        .rank = rank,
        .count = own->count,
        .rendezvous = own->rendezvous,
        .timeout_ns = JOIN_NS,
    };
    struct local_transport transport = {world->host, own->network ? world->secret_file : ""};
    void *group = NULL;
    round_begin(&own->round, attack);
    uint64_t deadline_ns = weir_clock_now_ns() + JOIN_NS;
    const weir_status status = local_join(&transport, &setup, &group);
    round_returned(&own->round, deadline_ns);
    if (group) {
        deadline_ns = weir_clock_now_ns() + JOIN_NS / 2;
        call_once(group);
        round_returned(&own->round, deadline_ns);
        local_leave(group);
    }
    round_end(&own->round);
    for (uint32_t i = 0; i < own->count && group; i++)
        if (i != rank && !own->right[i])
            own->round.broken =
                "a group is made with a rank that has not said all that makes it one";
    if (status == WEIR_ERROR_OUT_OF_MEMORY)
        own->round.broken = "no memory is left, where there is enough";
    own->round.believed += group != NULL;
}

// Of one rank, after it has been welcomed.
static bool connect_guest(struct meeting_round *own, uint32_t rank, const struct local_entry *door,
                          uint64_t token)
{
    struct round *round = &own->round;
    struct local_address address =
        own->network ? own->place : local_address_at_number(door->where.number);
    local_address_set_port(&address, (uint16_t)door->where.port);
    struct local_hello hello = {.purpose = LOCAL_TO_SEND, .rank = rank, .token = token};
    bool right = round_hello(round, &address, &hello, 16, &own->data[rank]) && hello.token == token;
    hello = (struct local_hello){.purpose = LOCAL_TO_CONTROL, .rank = rank, .token = token};
    right = round_hello(round, &address, &hello, 16, &own->control[rank]) && right &&
            hello.token == token;
    return own->network ? right : round_offer(round, own->data[rank]) && right;
}

static void attack_meeting(struct round *round)
{
    struct meeting_round *own = (struct meeting_round *)round;
    int guests[ROUND_PEERS] = {-1, -1, -1};
    bool right[ROUND_PEERS] = {false};
    struct local_welcome welcome;
    struct local_entry entries[ROUND_PEERS];
    uint8_t proof[LOCAL_PROOF_SIZE];
    for (size_t n = damage_below(&round->state, 4); n > 0; n--) {
        const uint64_t token = find_place(own);
        struct local_hello hello = {.purpose = LOCAL_TO_MEET,
                                    .rank = 9,
                                    .count = own->count,
                                    .token = token};
        int stranger = -1;
        round_hello(round, &own->place, &hello, 2, &stranger);
    }
    weir_clock_sleep_ns(ROUND_MS); // the place is not there at once
    for (uint32_t i = 1; i < own->count; i++) {
        struct local_hello hello = {.purpose = LOCAL_TO_MEET,
                                    .rank = i,
                                    .count = own->count,
                                    .where = local_here()};
        if (own->network)
            hello.where.machine[0] ^= 1;
        for (int tries = 0; tries < 20 && guests[i] < 0 && !round->returned; tries++) {
            hello.token = find_place(own);
            right[i] = round_hello(round, &own->place, &hello, 12, &guests[i]);
            if (guests[i] < 0)
                weir_clock_sleep_ns(ROUND_MS);
        }
    }
    for (uint32_t i = 1; i < own->count; i++)
        if ((!own->network || round_hear(guests[i], proof, sizeof proof)) &&
            round_hear(guests[i], &welcome, sizeof welcome) && !welcome.cause[0] &&
            round_hear(guests[i], entries, own->count * sizeof *entries))
            own->right[i] = connect_guest(own, i, &entries[0], welcome.token) && right[i];
    round_chatter(round, own->data, own->control, UINT32_MAX);
}

void round_of_meeting(struct round *round)
{
    struct meeting_round own = {.round = *round};
    init(&own);
    if (round->world->network.size > 0 && round_is_one_of(&own.round, 4))
        choose_port(&own);
    else
        choose_path(&own);
    join(&own, 0, attack_meeting);
    *round = own.round;
}

// A hostile rank 0.

struct guest_round {
    struct meeting_round meeting;
    int place;
    int door;
    uint32_t number; // of the door
};

// Takes two connections of the rank at the door.
static bool take_rank(struct guest_round *own)
{
    struct round *round = &own->meeting.round;
    struct local_hello hello;
    for (int i = 0; i < 2; i++) {
        const int connection = round_accept(round, own->door);
        if (!round_hear(connection, &hello, sizeof hello))
            return false;
        *(hello.purpose == LOCAL_TO_SEND ? &own->meeting.data[0] : &own->meeting.control[0]) =
            connection;
    }
    return true;
}

static bool welcome_rank(struct guest_round *own, struct local_welcome *welcome, int connection)
{
    struct round *round = &own->meeting.round;
    struct local_entry entries[ROUND_PEERS];
    memset(entries, 0, sizeof entries);
    for (uint32_t i = 0; i < ROUND_PEERS; i++)
        entries[i].where = local_here();
    entries[0].where.number = own->number;
    if (round_is_one_of(round, 6))
        round_damage(round, welcome, sizeof *welcome);
    if (round_is_one_of(round, 6))
        round_damage(round, entries, sizeof entries);
    const bool said = round_say(round, connection, welcome, sizeof *welcome);
    return said && !welcome->cause[0] &&
           round_say(round, connection, entries, own->meeting.count * sizeof *entries);
}

static void attack_guest(struct round *round)
{
    struct guest_round *own = (struct guest_round *)round;
    struct meeting_round *meeting = &own->meeting;
    struct local_hello hello;
    struct local_welcome welcome;
    memset(&welcome, 0, sizeof welcome);
    welcome.token = 0x1234567890abcdef;
    const int connection = round_accept(round, own->place);
    if (!round_hear(connection, &hello, sizeof hello) || !welcome_rank(own, &welcome, connection) ||
        !take_rank(own)) {
        shutdown(connection, SHUT_RDWR);
        return;
    }
    const struct local_entry door = {.where = hello.where};
    round->hellos++;
    meeting->right[0] = round_offer(round, meeting->data[0]);
    if (meeting->count > 2)
        meeting->right[2] = connect_guest(meeting, 2, &door, welcome.token);
    round_chatter(round, meeting->data, meeting->control, UINT32_MAX);
}

void round_of_guest(struct round *round)
{
    struct guest_round own = {.meeting = {.round = *round}};
    struct round *shared = &own.meeting.round;
    const struct local_address any = local_address_at_number(0);
    struct local_rendezvous its = {.magic = LOCAL_RENDEZVOUS, .door.where = local_here()};
    char message[256];
    init(&own.meeting);
    choose_path(&own.meeting);
    own.place = round_listen(shared, &any, &its.door.where.number);
    const char *path = own.meeting.rendezvous + sizeof "unix:" - 1;
    (void)weir_file_write(path, &its, sizeof its, message, sizeof message);
    (void)chmod(path, 0600);
    own.door = round_listen(shared, &any, &own.number);
    if (own.place < 0 || own.door < 0)
        shared->broken = "no hostile rank 0";
    else
        join(&own.meeting, 1, attack_guest);
    (void)unlink(path);
    *round = *shared;
}
