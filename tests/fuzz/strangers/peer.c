// What peers say, and a group of which all other ranks are hostile.
//
// NOLINTNEXTLINE(bugprone-reserved-identifier): for memfd_create() and seals
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/strangers/round.h"
#include "transports/local/local.h"

#define WINDOW_BYTES (4096 + ((size_t)1 << 20))
#define CALL_NS (30 * ROUND_MS)
#define FLOOD_NS (4000 * ROUND_MS)

// Memory as a rank's window is, or nearly; -1: none.
static int make_window(struct round *round, bool *out_right)
{
    const size_t kind = damage_below(&round->state, 16);
    *out_right = kind > 3;
    if (kind == 0)
        return -1;
    if (kind == 1)
        return open("/dev/null", O_RDWR | O_CLOEXEC);
    const int file = memfd_create("weir-window", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    (void)!ftruncate(file, (off_t)(WINDOW_BYTES - (kind == 2)));
    if (kind != 3)
        fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    return file;
}

// One byte with the descriptor, or with several, of which a rank takes one.
bool round_offer(struct round *round, int data)
{
    bool right = false;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(4 * sizeof(int))];
    } passed;
    const int file = make_window(round, &right);
    const size_t count = file < 0                    ? 0
                         : round_is_one_of(round, 4) ? 1 + damage_below(&round->state, 4)
                                                     : 1;
    char byte = 0;
    struct iovec one = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1};
    memset(&passed, 0, sizeof passed);
    passed.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(count * sizeof file),
                                     .cmsg_level = SOL_SOCKET,
                                     .cmsg_type = SCM_RIGHTS};
    for (size_t i = 0; i < count; i++)
        memcpy(CMSG_DATA(&passed.header) + i * sizeof file, &file, sizeof file);
    if (count > 0) {
        message.msg_control = &passed;
        message.msg_controllen = CMSG_SPACE(count * sizeof file);
    }
    const bool said = data >= 0 && sendmsg(data, &message, MSG_NOSIGNAL) == 1;
    if (file >= 0)
        close(file);
    return said && right;
}

static void say_news(struct round *round, int control, uint32_t kind)
{
    struct mesh_news news;
    memset(&news, 0, sizeof news);
    news.kind = kind;
    news.token = damage_below(&round->state, 4);
    news.step = (uint32_t)damage_below(&round->state, 4);
    if (kind == MESH_SETTLED)
        news.listed[0] = (uint8_t)damage_below(&round->state, 2u << ROUND_PEERS);
    if (round_is_one_of(round, 8))
        round_damage(round, &news, sizeof news);
    (void)!send(control, &news,
                round_is_one_of(round, 16) ? damage_below(&round->state, sizeof news) : sizeof news,
                MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void say_data(struct round *round, uint32_t rank, int data)
{
    struct weir_head head = round->head;
    uint8_t bytes[256];
    memset(bytes, (int)damage_below(&round->state, 256), sizeof bytes);
    if (round_is_one_of(round, 4)) {
        (void)!send(data, bytes, damage_below(&round->state, sizeof bytes),
                    MSG_NOSIGNAL | MSG_DONTWAIT);
        return;
    }
    if (round_is_one_of(round, 4))
        round_damage(round, &head, sizeof head);
    if (send(data, &head, sizeof head, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof head)
        round->said_head[rank] = true; // a damaged file or line is none
}

static void say_one(struct round *round, const int *data, const int *control, uint32_t kinds)
{
    const uint32_t rank = (uint32_t)damage_below(&round->state, ROUND_PEERS);
    const uint32_t kind = (uint32_t)damage_below(&round->state, 32);
    if (data && data[rank] >= 0 && round_is_one_of(round, 2))
        say_data(round, rank, data[rank]);
    else if (control[rank] >= 0 && kinds >> kind & 1)
        say_news(round, control[rank], kind);
    if (round_is_one_of(round, 64))
        shutdown(round_is_one_of(round, 2) || !data ? control[rank] : data[rank], SHUT_RDWR);
}

// Never the end of a connection.
static void flood(struct round *round, const int *control)
{
    const uint64_t until_ns = weir_clock_now_ns() + FLOOD_NS;
    struct mesh_news same[16];
    memset(same, 0, sizeof same);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        same[i].kind = MESH_TELLS;
    while (!round->returned && weir_clock_now_ns() < until_ns)
        for (uint32_t i = 0; i < ROUND_PEERS; i++)
            if (control[i] >= 0)
                (void)!send(control[i], same, sizeof same, MSG_NOSIGNAL);
}

void round_chatter(struct round *round, const int *data, const int *control, uint32_t kinds)
{
    if (round_is_one_of(round, 12)) {
        flood(round, control);
        return;
    }
    for (size_t n = damage_below(&round->state, 40); n > 0 && !round->returned; n--) {
        say_one(round, data, control, kinds);
        if (round_is_one_of(round, 16))
            weir_clock_sleep_ns(ROUND_MS);
    }
}

// A group in which this is rank 0.
struct peer_round {
    struct round round;
    struct local_group *group;
    int data[ROUND_PEERS]; // of the hostile side
    int control[ROUND_PEERS];
    bool joined[ROUND_PEERS];
};

static bool connect_pair(struct round *round, int *out_own, int *out_hostile)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
        return false;
    *out_own = pair[0];
    *out_hostile = round_keep(round, pair[1]);
    return true;
}

static bool make_group(struct peer_round *own)
{
    own->data[0] = own->control[0] = -1;
    own->group = local_mesh_create(own->round.world->host, "fuzz", 0, ROUND_PEERS);
    bool made = own->group != NULL;
    for (uint32_t i = 1; i < ROUND_PEERS && made; i++) {
        struct mesh_peer *peer = &own->group->peers[i];
        peer->address = local_address_at_number(1);
        made = connect_pair(&own->round, &peer->data, &own->data[i]) &&
               connect_pair(&own->round, &peer->control, &own->control[i]);
    }
    if (!made)
        own->round.broken = "no group";
    return made;
}

static void attack_call(struct round *round)
{
    struct peer_round *own = (struct peer_round *)round;
    for (uint32_t i = 1; i < ROUND_PEERS; i++)
        if (!round_is_one_of(round, 4))
            round->said_head[i] = round_say(round, own->data[i], &round->head, sizeof round->head);
    round_chatter(round, own->data, own->control, UINT32_MAX);
}

// A call of some kind, with a few elements.
static weir_status call(struct peer_round *own, struct weir_transport_call *made)
{
    static float src[64 * ROUND_PEERS];
    static float dst[64 * ROUND_PEERS];
    static const weir_collective kinds[] = {WEIR_BARRIER, WEIR_ALL_GATHER, WEIR_RECV, WEIR_SEND};
    struct weir_transport_call *calls = made;
    static struct weir_transport_part part;
    *calls = (struct weir_transport_call){
        .struct_size = sizeof *calls,
        .kind = kinds[damage_below(&own->round.state, sizeof kinds / sizeof *kinds)],
        .element = WEIR_F32,
        .reduction = WEIR_SUM,
        .root = 1,
        .count = damage_below(&own->round.state, 64),
        .src = src,
        .dst = dst,
        .number = 1,
        .timeout_ns = CALL_NS,
        .file = "app.c",
        .line = 1,
    };
    if (calls->kind == WEIR_SEND || calls->kind == WEIR_RECV) {
        part = (struct weir_transport_part){.struct_size = sizeof part,
                                            .peer = calls->root,
                                            .receive = calls->kind == WEIR_RECV,
                                            .element = calls->element,
                                            .count = calls->count,
                                            .memory = calls->kind == WEIR_RECV ? dst : src};
        calls->parts = &part;
        calls->part_count = 1;
    }
    own->round.head = weir_head_of(calls);
    round_begin(&own->round, attack_call);
    return local_run_call(own->group, calls);
}

static weir_status split(struct peer_round *own)
{
    const struct weir_transport_split params = {.struct_size = sizeof params,
                                                .label = "part",
                                                .number = 1,
                                                .timeout_ns = CALL_NS};
    void *part = NULL;
    own->round.head = weir_head_of_line(WEIR_CALL_SPLIT, params.number, params.file, params.line);
    own->round.head.element = WEIR_U8;
    own->round.head.count = sizeof(struct local_record);
    round_begin(&own->round, attack_call);
    const weir_status status = local_split(own->group, &params, &part);
    if (part)
        local_leave(part);
    return status;
}

void round_of_call(struct round *round)
{
    struct peer_round own = {.round = *round};
    struct weir_transport_call made = {.kind = WEIR_BARRIER};
    if (make_group(&own)) {
        const uint64_t deadline_ns = weir_clock_now_ns() + CALL_NS;
        const bool splits = round_is_one_of(&own.round, 4);
        const weir_status status = splits ? split(&own) : call(&own, &made);
        round_returned(&own.round, deadline_ns);
        local_leave(own.group);
        round_end(&own.round);
        if (status == WEIR_OK && made.kind != WEIR_SEND &&
            (!own.round.said_head[1] || (made.kind != WEIR_RECV && !own.round.said_head[2])))
            own.round.broken = "a call has ended well that another rank has not made";
        own.round.believed += status == WEIR_OK;
    }
    *round = own.round;
}

// Groups that go on.

static void say_told(struct round *round, int control)
{
    struct mesh_news news;
    memset(&news, 0, sizeof news);
    news.kind = MESH_TELLS;
    news.step = 1;
    news.door = local_here();
    news.door.number = 1;
    if (round_is_one_of(round, 16))
        round_damage(round, &news, sizeof news);
    round_say(round, control, &news, sizeof news);
}

// Hears where the door of rank 0 is and, up to it, the list.
static bool hear_list(struct peer_round *own, uint32_t rank, struct local_address *out_door,
                      struct mesh_news *out_news)
{
    for (int i = 0; i < 8; i++) {
        if (!round_hear(own->control[rank], out_news, sizeof *out_news))
            return false;
        if (out_news->kind == MESH_TELLS)
            *out_door = local_address_at_number(out_news->door.number);
        if (out_news->kind == MESH_SETTLED)
            return out_news->listed[0] == (1u << ROUND_PEERS) - 1;
    }
    return false;
}

static void attack_shrink(struct round *round)
{
    struct peer_round *own = (struct peer_round *)round;
    struct local_address door = {.size = 0};
    struct mesh_news news;
    const bool joins = !round_is_one_of(round, 4);
    if (!joins)
        round_chatter(round, NULL, own->control, UINT32_MAX);
    for (uint32_t i = 1; i < ROUND_PEERS && joins; i++)
        say_told(round, own->control[i]);
    for (uint32_t i = 1; i < ROUND_PEERS && joins && hear_list(own, i, &door, &news); i++) {
        int made[2] = {-1, -1};
        bool right = true;
        for (uint32_t purpose = 0; purpose < 2; purpose++) {
            struct local_hello hello = {.purpose = LOCAL_TO_SEND + purpose,
                                        .rank = i,
                                        .token = news.token};
            right = round_hello(round, &door, &hello, 16, &made[purpose]) && right &&
                    hello.token == news.token && hello.rank == i;
        }
        own->joined[i] = round_offer(round, made[0]) && right;
    }
    round_chatter(round, NULL, own->control, 1u << MESH_TELLS | 1u << MESH_SETTLED);
}

static void check_group(struct peer_round *own, void *group)
{
    uint32_t rank = 0;
    uint32_t count = 0;
    weir_group_place(group, &rank, &count);
    own->round.believed++;
    if (count > ROUND_PEERS || rank >= count)
        own->round.broken = "a group has more ranks than the one before";
    if (count == ROUND_PEERS && (!own->joined[1] || !own->joined[2]))
        own->round.broken = "a group goes on with a rank that has not joined it";
    local_leave(group);
}

void round_of_shrink(struct round *round)
{
    struct peer_round own = {.round = *round};
    const struct weir_transport_shrink params = {.struct_size = sizeof params,
                                                 .label = "less",
                                                 .timeout_ns = 2 * CALL_NS};
    if (make_group(&own)) {
        const size_t times = damage_below(&own.round.state, 2) + 1;
        void *group = NULL;
        round_begin(&own.round, attack_shrink);
        for (size_t i = 0; i < times && !group; i++) {
            const uint64_t deadline_ns = weir_clock_now_ns() + 2 * params.timeout_ns;
            (void)local_shrink(own.group, &params, &group);
            round_returned(&own.round, deadline_ns);
        }
        local_leave(own.group);
        round_end(&own.round);
        if (group)
            check_group(&own, group);
    }
    *round = own.round;
}
