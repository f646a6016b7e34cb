// The secret of ranks and its proof, the door, and the knock at another rank's.
// NOLINTNEXTLINE(bugprone-reserved-identifier): for secure_getenv()
#define _GNU_SOURCE
#include "transports/local/door.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium/crypto_auth_hmacsha512256.h>
#include <sodium/crypto_generichash.h>
#include <sodium/randombytes.h>
#include <sodium/utils.h>

#include "base/clock.h"
#include "base/file.h"

bool local_secret_of(const char *text, size_t size, struct local_secret *out_secret)
{
    out_secret->is_set = true;
    return crypto_generichash(out_secret->key, sizeof out_secret->key, (const uint8_t *)text, size,
                              NULL, 0) == 0;
}

bool local_secret_read(const char *path, struct local_secret *out_secret, char *message,
                       size_t message_size)
{
    const char *variable = secure_getenv("WEIR_COMM_SECRET");
    void *data = NULL;
    size_t size = variable ? strlen(variable) : 0;
    *out_secret = (struct local_secret){.is_set = false};
    if (!variable && !path[0])
        return true;
    const size_t used = (size_t)snprintf(message, message_size, "the secret's file ");
    // The end of a line may follow the secret.
    if (!variable && !weir_file_read_private(path, LOCAL_SECRET_MOST + 2, &data, &size,
                                             message + used, message_size - used))
        return false;
    const char *text = variable ? variable : data;
    while (!variable && size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r'))
        size--;
    const bool right = size >= LOCAL_SECRET_LEAST && size <= LOCAL_SECRET_MOST &&
                       local_secret_of(text, size, out_secret);
    if (!right)
        snprintf(message, message_size,
                 "the secret of %s has %zu characters, where %d to %d are right",
                 variable ? "WEIR_COMM_SECRET" : path, size, LOCAL_SECRET_LEAST, LOCAL_SECRET_MOST);
    free(data);
    return right;
}

uint64_t local_token(void)
{
    uint64_t token;
    randombytes_buf(&token, sizeof token);
    return token;
}

void local_prove(const struct local_secret *secret, const char *purpose,
                 const uint8_t nonce[LOCAL_NONCE_SIZE], const struct local_hello *hello,
                 uint8_t out_proof[LOCAL_PROOF_SIZE])
{
    crypto_auth_hmacsha512256_state state;
    crypto_auth_hmacsha512256_init(&state, secret->key, sizeof secret->key);
    crypto_auth_hmacsha512256_update(&state, (const uint8_t *)purpose, strlen(purpose) + 1);
    crypto_auth_hmacsha512256_update(&state, nonce, LOCAL_NONCE_SIZE);
    crypto_auth_hmacsha512256_update(&state, (const uint8_t *)hello, sizeof *hello);
    crypto_auth_hmacsha512256_final(&state, out_proof);
}

bool local_is_proven(const struct local_secret *secret, const char *purpose,
                     const uint8_t nonce[LOCAL_NONCE_SIZE], const struct local_hello *hello,
                     const uint8_t proof[LOCAL_PROOF_SIZE])
{
    uint8_t right[LOCAL_PROOF_SIZE];
    local_prove(secret, purpose, nonce, hello, right);
    return sodium_memcmp(right, proof, sizeof right) == 0;
}

#define STRANGER_NS (UINT64_C(2000) * 1000 * 1000)
#define OF_RANK "rank"
#define OF_DOOR "door"

// Sockets with numbers belong to a namespace of the network on a machine that has started once. Without /proc
// that is 0: such ranks are taken to be on one machine, which their connections then show.
struct local_where local_here(void)
{
    struct local_where here = {.machine = {0}};
    char text[128] = "";
    struct stat space = {.st_ino = 0};
    const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t got = file >= 0 ? read(file, text, 64) : -1;
    if (file >= 0)
        close(file);
    if (got <= 0 || stat("/proc/self/ns/net", &space) != 0)
        return here;
    snprintf(text + got, sizeof text - (size_t)got, " %llu", (unsigned long long)space.st_ino);
    (void)crypto_generichash(here.machine, sizeof here.machine, (const uint8_t *)text, strlen(text),
                             NULL, 0);
    return here;
}

bool local_find_door(const struct local_where *where, const struct local_address *far,
                     struct local_address *out_address)
{
    const struct local_where here = local_here();
    const bool near = memcmp(here.machine, where->machine, sizeof here.machine) == 0;
    *out_address = near  ? local_address_at_number(where->number)
                   : far ? *far
                         : (struct local_address){.size = 0};
    local_address_set_port(out_address, (uint16_t)where->port);
    return near || (out_address->size > 0 && where->port > 0);
}

void local_door_init(struct local_door *door, const struct local_secret *secret)
{
    memset(door, 0, sizeof *door);
    door->listeners[DOOR_MACHINE] = door->listeners[DOOR_NETWORK] = -1;
    door->secret = secret;
}

bool local_door_open(struct local_door *door, const struct local_address *network)
{
    const struct local_address machine = local_address_at_number(0);
    door->where = local_here();
    door->listeners[DOOR_MACHINE] = local_listen(&machine, &door->where.number);
    if (door->listeners[DOOR_MACHINE] < 0 || !network || network->size == 0)
        return door->listeners[DOOR_MACHINE] >= 0;
    struct local_address address = *network;
    local_address_set_port(&address, 0);
    door->listeners[DOOR_NETWORK] = local_listen(&address, &door->where.port);
    return door->listeners[DOOR_NETWORK] >= 0;
}

static void send_away(struct local_door *door, uint32_t index)
{
    local_close(&door->strangers[index].connection);
    door->count--;
    memmove(&door->strangers[index], &door->strangers[index + 1],
            (door->count - index) * sizeof door->strangers[0]);
}

void local_door_close(struct local_door *door)
{
    while (door->count > 0)
        send_away(door, door->count - 1);
    for (int i = 0; i < DOOR_LISTENERS; i++)
        local_close(&door->listeners[i]);
}

static bool challenge(const struct local_door *door, struct local_stranger *stranger)
{
    struct local_challenge challenge = {0};
    if (!door->secret->is_set)
        return false;
    randombytes_buf(stranger->nonce, sizeof stranger->nonce);
    memcpy(challenge.magic, LOCAL_MAGIC, sizeof challenge.magic);
    memcpy(challenge.nonce, stranger->nonce, sizeof challenge.nonce);
    return send(stranger->connection, &challenge, sizeof challenge, MSG_NOSIGNAL) ==
           (ssize_t)sizeof challenge;
}

// Takes one connection. False if the process lacks something for it, with errno.
static bool let_in(struct local_door *door, int listener, uint64_t now_ns)
{
    struct local_stranger stranger = {.deadline_ns = now_ns + STRANGER_NS};
    if (door->count == DOOR_GUESTS)
        send_away(door, 0);
    stranger.connection = local_accept(listener, &stranger.from);
    if (stranger.connection < 0) {
        const bool lacks =
            errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        door->refused += errno == EPERM;
        if (!lacks || door->count == 0)
            return !lacks;  // else the other side has given up
        send_away(door, 0); // what a stranger holds is for a rank
        return true;
    }
    if (local_address_is_machine(&stranger.from) || challenge(door, &stranger)) {
        door->strangers[door->count++] = stranger;
        return true;
    }
    door->refused++;
    local_close(&stranger.connection);
    return true;
}

// Whether all has come that proves a rank. `*out_gone`: it is none.
static bool hear(struct local_stranger *stranger, bool *out_gone)
{
    const size_t wanted = local_address_is_machine(&stranger->from) ? sizeof stranger->answer.hello
                                                                    : sizeof stranger->answer;
    const ssize_t got = recv(stranger->connection, (char *)&stranger->answer + stranger->got,
                             wanted - stranger->got, 0);
    *out_gone = *out_gone || got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
    stranger->got += got > 0 ? (size_t)got : 0;
    return stranger->got == wanted;
}

static bool is_rank(const struct local_door *door, struct local_stranger *stranger)
{
    struct local_answer *answer = &stranger->answer;
    uint8_t proof[LOCAL_PROOF_SIZE];
    if (memcmp(answer->hello.magic, LOCAL_MAGIC, sizeof answer->hello.magic) != 0)
        return false;
    answer->hello.job[LOCAL_JOB_SIZE - 1] = '\0';
    if (local_address_is_machine(&stranger->from))
        return true;
    if (!local_is_proven(door->secret, OF_RANK, stranger->nonce, &answer->hello, answer->proof))
        return false;
    local_prove(door->secret, OF_DOOR, answer->nonce, &answer->hello, proof);
    return send(stranger->connection, proof, sizeof proof, MSG_NOSIGNAL) == (ssize_t)sizeof proof;
}

// Hears all strangers with something to say until one has proven to be a rank, which is handed over.
static bool hear_strangers(struct local_door *door, const struct pollfd *polls, uint64_t now_ns,
                           struct local_stranger *out_rank)
{
    for (uint32_t i = door->count; i > 0; i--) {
        struct local_stranger *stranger = &door->strangers[i - 1];
        bool gone = now_ns >= stranger->deadline_ns;
        const bool complete = polls[i - 1].revents && hear(stranger, &gone);
        const bool proven = complete && is_rank(door, stranger);
        door->refused += complete && !proven;
        if (proven) {
            *out_rank = *stranger;
            stranger->connection = -1;
        }
        if (complete || gone)
            send_away(door, i - 1);
        if (proven)
            return true;
    }
    return false;
}

static uint64_t set_polls(const struct local_door *door, struct pollfd *polls, uint64_t deadline_ns)
{
    for (int i = 0; i < DOOR_LISTENERS; i++)
        polls[i] = (struct pollfd){.fd = door->listeners[i], .events = POLLIN};
    for (uint32_t i = 0; i < door->count; i++) {
        polls[DOOR_LISTENERS + i] =
            (struct pollfd){.fd = door->strangers[i].connection, .events = POLLIN};
        deadline_ns = local_sooner(deadline_ns, door->strangers[i].deadline_ns);
    }
    return deadline_ns;
}

bool local_door_next(struct local_door *door, struct pollfd *polls, size_t others,
                     uint64_t deadline_ns, struct local_stranger *out_rank)
{
    struct pollfd *own = polls + others;
    out_rank->connection = -1;
    for (;;) {
        const uint64_t until_ns = set_polls(door, own, deadline_ns);
        const size_t count = others + DOOR_LISTENERS + door->count;
        size_t other = 0;
        if (poll(polls, count, local_poll_ms(until_ns)) < 0)
            for (size_t i = 0; i < count; i++)
                polls[i].revents = 0;
        const uint64_t now_ns = weir_clock_now_ns();
        errno = ETIMEDOUT;
        if (now_ns >= deadline_ns)
            return false;
        while (other < others && !polls[other].revents)
            other++;
        if (other < others || hear_strangers(door, own + DOOR_LISTENERS, now_ns, out_rank))
            return true;
        for (int i = 0; i < DOOR_LISTENERS; i++)
            if (own[i].revents && !let_in(door, door->listeners[i], now_ns))
                return false;
    }
}

// The other side.

// False with errno.
static bool answer_challenge(int connection, const struct local_secret *secret,
                             const struct local_hello *hello, uint64_t deadline_ns)
{
    struct local_challenge challenge;
    struct local_answer answer = {.hello = *hello};
    uint8_t proof[LOCAL_PROOF_SIZE];
    if (!local_read_all(connection, &challenge, sizeof challenge, deadline_ns))
        return false;
    errno = EPROTO;
    if (memcmp(challenge.magic, LOCAL_MAGIC, sizeof challenge.magic) != 0)
        return false;
    randombytes_buf(answer.nonce, sizeof answer.nonce);
    local_prove(secret, OF_RANK, challenge.nonce, hello, answer.proof);
    if (!local_write_all(connection, &answer, sizeof answer, deadline_ns))
        return false;
    const bool answered = local_read_all(connection, proof, sizeof proof, deadline_ns);
    if (!answered && errno == ETIMEDOUT)
        return false;
    errno = EACCES;
    return answered && local_is_proven(secret, OF_DOOR, answer.nonce, hello, proof);
}

int local_knock(const struct local_address *address, const struct local_secret *secret,
                struct local_hello *hello, uint64_t deadline_ns)
{
    int connection = local_connect(address, deadline_ns);
    if (connection < 0)
        return -1;
    memcpy(hello->magic, LOCAL_MAGIC, sizeof hello->magic);
    const bool let_in = local_address_is_machine(address)
                            ? local_write_all(connection, hello, sizeof *hello, deadline_ns)
                            : answer_challenge(connection, secret, hello, deadline_ns);
    if (!let_in)
        local_close(&connection);
    return connection;
}
