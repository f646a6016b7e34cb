// What ranks and rank 0 say to each other before there is a group.
#include "transports/local/rendezvous.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/siphash.h"
#include "base/text.h"

#define GREETING_NS (UINT64_C(2000) * 1000 * 1000)
// For the reply of a rank 0 whose time is out as well.
#define REPLY_NS (UINT64_C(500) * 1000 * 1000)
#define MAGIC "weirloc1"
#define START_REMEDY "start as many ranks as the count says, each with a number of its own"

struct hello {
    char magic[8];
    uint64_t token; // of the file; 0: none
    uint32_t rank;
    uint32_t count;
    uint32_t port;
};

struct welcome {
    char magic[8];
    uint64_t token;
    uint32_t refused;
    char cause[LOCAL_CAUSE_SIZE];
};

// Where a rank listens, as rank 0 sees it. An empty host is that of rank 0.
struct entry {
    char host[LOCAL_HOST_SIZE];
    uint32_t port;
};

// Processes that wait for rank 0's answer.
struct guests {
    int *connections;
    struct entry *entries;
    struct pollfd *polled; // room for as many, and rank 0
    uint32_t count;
};

static void reply(int *connection, const struct welcome *welcome)
{
    local_write_all(*connection, welcome, sizeof *welcome, weir_clock_now_ns() + REPLY_NS);
    local_close(connection);
}

static struct welcome refusal(const char *cause)
{
    struct welcome welcome = {.magic = MAGIC, .refused = 1};
    snprintf(welcome.cause, sizeof welcome.cause, "%s", cause);
    return welcome;
}

static void dismiss(struct meeting *meeting, struct guests *guests)
{
    const struct welcome welcome = refusal(meeting->cause);
    for (uint32_t i = 1; i < meeting->setup->count; i++) {
        if (guests->connections[i] >= 0)
            reply(&guests->connections[i], &welcome);
    }
}

static bool is_ours(const struct meeting *meeting, const struct hello *hello)
{
    return memcmp(hello->magic, MAGIC, sizeof hello->magic) == 0 &&
           (hello->token == 0 || hello->token == meeting->token);
}

// A rank that cannot be one of these fails alone, unless it counts otherwise: then none can go on.
static bool seat(struct meeting *meeting, struct guests *guests, int *connection,
                 const struct hello *hello, const struct local_address *from)
{
    const struct weir_transport_setup *setup = meeting->setup;
    if (hello->rank > 0 && hello->count != setup->count) {
        local_meeting_fail(meeting, WEIR_ERROR_COMM, START_REMEDY,
                           "rank %u says that there are %u ranks, and rank 0 that there are %u",
                           hello->rank, hello->count, setup->count);
        const struct welcome welcome = refusal(meeting->cause);
        reply(connection, &welcome);
        return false;
    }
    if (hello->rank == 0 || hello->rank >= setup->count || guests->connections[hello->rank] >= 0) {
        char cause[LOCAL_CAUSE_SIZE];
        snprintf(cause, sizeof cause,
                 "'%s': another rank %u is at %s already: do two programs use it?", setup->label,
                 hello->rank, setup->rendezvous);
        const struct welcome welcome = refusal(cause);
        reply(connection, &welcome);
        return true;
    }
    struct entry *entry = &guests->entries[hello->rank];
    local_address_text(from, entry->host, sizeof entry->host);
    entry->port = hello->port;
    guests->connections[hello->rank] = *connection;
    guests->count++;
    return true;
}

static uint32_t first_missing(const struct guests *guests)
{
    uint32_t missing = 1;
    while (guests->connections[missing] >= 0)
        missing++;
    return missing;
}

static bool nobody_else(struct meeting *meeting, const struct guests *guests)
{
    char duration[WEIR_TEXT_QUANTITY_SIZE];
    weir_text_duration(duration, (double)meeting->setup->timeout_ns);
    return local_meeting_fail(meeting, WEIR_ERROR_COMM, START_REMEDY,
                              "rank %u has not come to %s in %s; %u of %u ranks are there",
                              first_missing(guests), meeting->setup->rendezvous, duration,
                              guests->count + 1, meeting->setup->count);
}

// Waits for a connection. Guests say nothing before they are answered, so that one which can be read from
// has left.
static bool await_guest(struct meeting *meeting, const struct guests *guests)
{
    const uint32_t count = meeting->setup->count;
    struct pollfd *polled = guests->polled;
    polled[0] = (struct pollfd){.fd = meeting->listener, .events = POLLIN};
    for (uint32_t i = 1; i < count; i++)
        polled[i] = (struct pollfd){.fd = guests->connections[i], .events = POLLIN};
    while (poll(polled, count, local_poll_ms(meeting->deadline_ns)) <= 0)
        if (weir_clock_now_ns() >= meeting->deadline_ns)
            return nobody_else(meeting, guests);
    for (uint32_t i = 1; i < count; i++)
        if (polled[i].revents)
            return local_meeting_fail(
                meeting, WEIR_ERROR_COMM,
                "see what that rank has printed; then start all ranks again",
                "rank %u has died, or waits no longer, and rank %u has not come to %s yet", i,
                first_missing(guests), meeting->setup->rendezvous);
    return true;
}

static bool receive_guests(struct meeting *meeting, struct guests *guests)
{
    while (guests->count + 1 < meeting->setup->count) {
        if (!await_guest(meeting, guests))
            return false;
        struct local_address from;
        struct hello hello;
        int connection = local_accept(meeting->listener, meeting->deadline_ns, &from);
        if (connection < 0 && errno == ETIMEDOUT)
            return nobody_else(meeting, guests);
        if (connection < 0)
            return local_meeting_fail(meeting, WEIR_ERROR_SYSTEM, LOCAL_FILES_REMEDY,
                                      "rank 0 cannot take a connection: %s", strerror(errno));
        if (!local_read_all(connection, &hello, sizeof hello, weir_clock_now_ns() + GREETING_NS) ||
            !is_ours(meeting, &hello))
            local_close(&connection);
        else if (!seat(meeting, guests, &connection, &hello, &from))
            return false;
    }
    return true;
}

static void answer(struct meeting *meeting, struct guests *guests)
{
    const struct welcome welcome = {.magic = MAGIC, .token = meeting->token};
    const uint64_t deadline_ns = weir_clock_now_ns() + GREETING_NS;
    const size_t size = meeting->setup->count * sizeof *guests->entries;
    // A rank that has died meanwhile is found when it does not connect.
    for (uint32_t i = 1; i < meeting->setup->count; i++) {
        if (local_write_all(guests->connections[i], &welcome, sizeof welcome, deadline_ns))
            local_write_all(guests->connections[i], guests->entries, size, deadline_ns);
    }
}

// The ranks of this group connect elsewhere, so that one which is done already, and comes here again
// for its next group, waits until rank 0 does too.
static bool move(struct meeting *meeting)
{
    local_close(&meeting->listener);
    local_address_set_port(&meeting->place, 0);
    meeting->listener = local_listen(meeting->place, meeting->any, &meeting->port);
    return meeting->listener >= 0 ||
           local_meeting_fail(meeting, WEIR_ERROR_SYSTEM, NULL, "rank 0 cannot listen: %s",
                              strerror(errno));
}

bool local_meeting_receive(struct meeting *meeting)
{
    const struct weir_host *host = meeting->host;
    const uint32_t count = meeting->setup->count;
    struct weir_siphash_key key;
    struct guests guests = {
        .connections = host->allocate(count * sizeof *guests.connections),
        .entries = host->allocate(count * sizeof *guests.entries),
        .polled = host->allocate(count * sizeof *guests.polled),
    };
    const bool room = guests.connections && guests.entries && guests.polled;
    if (meeting->token == 0) {
        weir_siphash_random_key(&key);
        meeting->token = key.words[0];
    }
    for (uint32_t i = 0; room && i < count; i++)
        guests.connections[i] = -1;
    const bool received = room && receive_guests(meeting, &guests) && move(meeting);
    if (received) {
        guests.entries[0].port = meeting->port;
        answer(meeting, &guests);
    } else if (room) {
        dismiss(meeting, &guests);
    }
    for (uint32_t i = 0; room && i < count; i++)
        local_close(&guests.connections[i]);
    host->release(guests.polled);
    host->release(guests.entries);
    host->release(guests.connections);
    return received;
}

// Rank 0's host, as this rank has reached it, also stands for a rank that rank 0 sees on a loopback
// address and this one cannot.
static bool take_entry(struct meeting *meeting, uint32_t index, struct entry *entry)
{
    const char *error = NULL;
    struct local_address *address = &meeting->addresses[index];
    entry->host[LOCAL_HOST_SIZE - 1] = '\0';
    if (entry->host[0] && !local_address_find(entry->host, 0, address, &error))
        return local_meeting_fail(meeting, WEIR_ERROR_SYSTEM, NULL, "the address %s of rank %u: %s",
                                  entry->host, index, error);
    if (!entry->host[0] ||
        (local_address_is_loopback(address) && !local_address_is_loopback(&meeting->place)))
        *address = meeting->place;
    local_address_set_port(address, (uint16_t)entry->port);
    return true;
}

static bool take_entries(struct meeting *meeting, int connection)
{
    for (uint32_t i = 0; i < meeting->setup->count; i++) {
        struct entry entry;
        if (!local_read_all(connection, &entry, sizeof entry, meeting->deadline_ns + REPLY_NS))
            return local_meeting_fail(meeting, WEIR_ERROR_COMM, START_REMEDY, "rank 0 has left %s",
                                      meeting->setup->rendezvous);
        if (!take_entry(meeting, i, &entry))
            return false;
    }
    return true;
}

static void take_refusal(struct meeting *meeting, struct welcome *welcome)
{
    welcome->cause[LOCAL_CAUSE_SIZE - 1] = '\0';
    meeting->status = WEIR_ERROR_COMM;
    meeting->remedy = START_REMEDY;
    memcpy(meeting->cause, welcome->cause, sizeof meeting->cause);
}

static bool take_welcome(struct meeting *meeting, int connection)
{
    struct welcome welcome;
    if (!local_read_all(connection, &welcome, sizeof welcome, meeting->deadline_ns + REPLY_NS) ||
        memcmp(welcome.magic, MAGIC, sizeof welcome.magic) != 0)
        return local_meeting_fail(meeting, WEIR_ERROR_COMM,
                                  "end what listens there, or choose another port",
                                  "what listens at %s is no rank 0, or it has ended",
                                  meeting->setup->rendezvous);
    if (welcome.refused) {
        take_refusal(meeting, &welcome);
        return false;
    }
    meeting->token = welcome.token;
    return take_entries(meeting, connection);
}

// At an address from which rank 0 is reached, the other ranks reach this one.
static bool listen_for_peers(struct meeting *meeting, int connection)
{
    struct local_address own = {.size = sizeof own.address};
    if (getsockname(connection, (struct sockaddr *)&own.address, &own.size) == 0) {
        local_address_set_port(&own, 0);
        meeting->listener = local_listen(own, meeting->any, &meeting->port);
    }
    return meeting->listener >= 0 ||
           local_meeting_fail(meeting, WEIR_ERROR_SYSTEM, NULL, "rank %u cannot listen: %s",
                              meeting->setup->rank, strerror(errno));
}

bool local_meeting_attend(struct meeting *meeting)
{
    if (!listen_for_peers(meeting, meeting->connection))
        return false;
    const struct hello hello = {.magic = MAGIC,
                                .token = meeting->token,
                                .rank = meeting->setup->rank,
                                .count = meeting->setup->count,
                                .port = meeting->port};
    local_write_all(meeting->connection, &hello, sizeof hello, meeting->deadline_ns);
    return take_welcome(meeting, meeting->connection);
}

// What a rank 0 answers to another one is a refusal. Anything else that listens there does not answer so.
bool local_meeting_is_taken(struct meeting *meeting)
{
    const uint64_t deadline_ns =
        local_sooner(meeting->deadline_ns, weir_clock_now_ns() + GREETING_NS);
    const struct hello hello = {.magic = MAGIC,
                                .token = meeting->token,
                                .count = meeting->setup->count};
    struct welcome welcome;
    int connection = local_connect(&meeting->place, false, deadline_ns);
    if (connection < 0)
        return false;
    const bool refused = local_write_all(connection, &hello, sizeof hello, deadline_ns) &&
                         local_read_all(connection, &welcome, sizeof welcome, deadline_ns) &&
                         memcmp(welcome.magic, MAGIC, sizeof welcome.magic) == 0 && welcome.refused;
    local_close(&connection);
    if (refused)
        take_refusal(meeting, &welcome);
    return refused;
}
