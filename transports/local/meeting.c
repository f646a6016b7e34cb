// What a rendezvous names, what ranks and rank 0 say to each other before there is a group, and join().
// NOLINTNEXTLINE(bugprone-reserved-identifier): for secure_getenv()
#define _GNU_SOURCE
#include "transports/local/meeting.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <sodium/core.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/lookup.h"
#include "base/text.h"

#define ANSWER_NS (UINT64_C(2000) * 1000 * 1000)
#define PLACE_REMEDY "write tcp://HOST:PORT, with a port from 1 to 65535"
#define START_REMEDY "start as many ranks as the count says, each with a number of its own"

struct meeting {
    struct local_place place;
    struct local_door door; // rank 0's at the place, then each rank's own
    uint64_t token;         // out: of the group
    // Of rank 0: the connections of those that wait for its answer, and room for the door's.
    struct pollfd *guests;
    uint32_t count;               // of guests
    struct local_entry entries[]; // out: where each rank's door is
};

static struct local_hello hello_of(const struct meeting *meeting)
{
    // Launchers that give their jobs names give them to all ranks.
    static const char *const names[] = {"TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE", "SLURM_JOB_ID"};
    struct local_hello hello = {.purpose = LOCAL_TO_MEET,
                                .rank = meeting->place.setup->rank,
                                .count = meeting->place.setup->count,
                                .machine = local_machine()};
    const char *job = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !job; i++)
        job = getenv(names[i]);
    snprintf(hello.job, sizeof hello.job, "%s", job ? job : "");
    return hello;
}

// Rank 0.

static void refuse(int connection, const char *cause)
{
    struct local_welcome welcome = {.token = 0};
    snprintf(welcome.cause, sizeof welcome.cause, "%s", cause);
    local_write_all(connection, &welcome, sizeof welcome, weir_clock_now_ns() + LOCAL_REPLY_NS);
    local_close(&connection);
}

static void take_guest(struct meeting *meeting, const struct local_stranger *guest)
{
    const struct local_hello *hello = &guest->answer.hello;
    struct local_entry *entry = &meeting->entries[hello->rank];
    *entry = (struct local_entry){.machine = hello->machine,
                                  .number = hello->number,
                                  .port = hello->port};
    if (!local_address_is_machine(&guest->from))
        local_address_text(&guest->from, entry->host, sizeof entry->host);
    meeting->guests[hello->rank].fd = guest->connection;
    meeting->count++;
}

// A rank that cannot be one of these fails alone, unless it counts otherwise: then none can go on.
static bool seat(struct meeting *meeting, const struct local_stranger *guest)
{
    const struct local_hello *hello = &guest->answer.hello;
    const struct weir_transport_setup *setup = meeting->place.setup;
    const struct local_hello own = hello_of(meeting);
    const bool is_of_meeting = hello->purpose == LOCAL_TO_MEET &&
                               hello->token == meeting->place.token &&
                               (!own.job[0] || !hello->job[0] || strcmp(own.job, hello->job) == 0);
    char cause[WEIR_CAUSE_SIZE] = "";
    if (is_of_meeting && hello->rank > 0 && hello->count != setup->count) {
        local_place_fail(&meeting->place, WEIR_ERROR_COMM, START_REMEDY,
                         "rank %u says that there are %u ranks, and rank 0 that there are %u",
                         hello->rank, hello->count, setup->count);
        refuse(guest->connection, meeting->place.cause);
        return false;
    }
    if (!is_of_meeting)
        snprintf(cause, sizeof cause, "'%s': rank 0 at %s is of another job", setup->label,
                 setup->rendezvous);
    else if (hello->rank == 0 || hello->rank >= setup->count ||
             meeting->guests[hello->rank].fd >= 0)
        snprintf(cause, sizeof cause,
                 "'%s': another rank %u is at %s already: do two programs use it?", setup->label,
                 hello->rank, setup->rendezvous);
    if (cause[0])
        refuse(guest->connection, cause);
    else
        take_guest(meeting, guest);
    return true;
}

static uint32_t first_missing(const struct meeting *meeting)
{
    uint32_t missing = 1;
    while (meeting->guests[missing].fd >= 0)
        missing++;
    return missing;
}

static bool tell_missing(struct meeting *meeting)
{
    const struct local_place *place = &meeting->place;
    char refused[96] = "";
    if (meeting->door.refused > 0)
        snprintf(refused, sizeof refused,
                 "; %u connections were refused, which had not the same secret",
                 meeting->door.refused);
    else if (place->network.size > 0 && !place->secret.is_set &&
             local_address_reach(&place->network) != LOCAL_REACH_LOOPBACK)
        snprintf(refused, sizeof refused,
                 "; without WEIR_COMM_SECRET only ranks of this machine are let in");
    return local_place_fail(&meeting->place, WEIR_ERROR_COMM, START_REMEDY,
                            "rank %u has not come to %s in %s; %u of %u ranks are there%s",
                            first_missing(meeting), meeting->place.setup->rendezvous,
                            weir_text_duration((double)meeting->place.setup->timeout_ns).text,
                            meeting->count + 1, meeting->place.setup->count, refused);
}

// Guests say nothing before they are answered, so that one which can be read from has left.
static bool tell_left(struct meeting *meeting)
{
    uint32_t rank = 1;
    while (rank + 1 < meeting->place.setup->count && !meeting->guests[rank].revents)
        rank++;
    return local_place_fail(
        &meeting->place, WEIR_ERROR_COMM,
        "see what that rank has printed; then start all ranks again",
        "rank %u has died, or waits no longer, and rank %u has not come to %s yet", rank,
        first_missing(meeting), meeting->place.setup->rendezvous);
}

static bool receive_guests(struct meeting *meeting)
{
    const uint32_t count = meeting->place.setup->count;
    while (meeting->count + 1 < count) {
        struct local_stranger guest;
        const bool came = local_door_next(&meeting->door, meeting->guests, count,
                                          meeting->place.deadline_ns, &guest);
        if (!came && errno == ETIMEDOUT)
            return tell_missing(meeting);
        if (!came)
            return local_place_fail(&meeting->place, WEIR_ERROR_SYSTEM, LOCAL_FILES_REMEDY,
                                    "rank 0 cannot take a connection: %s", strerror(errno));
        if (guest.connection < 0)
            return tell_left(meeting);
        if (!seat(meeting, &guest))
            return false;
    }
    return true;
}

// A rank that has died meanwhile is found when it does not connect.
static void answer_guests(struct meeting *meeting)
{
    const uint32_t count = meeting->place.setup->count;
    const struct local_welcome welcome = {.token = meeting->token};
    const uint64_t deadline_ns = weir_clock_now_ns() + ANSWER_NS;
    for (uint32_t i = 1; i < count; i++)
        if (local_write_all(meeting->guests[i].fd, &welcome, sizeof welcome, deadline_ns))
            local_write_all(meeting->guests[i].fd, meeting->entries,
                            count * sizeof *meeting->entries, deadline_ns);
}

static bool hold_meeting(struct meeting *meeting)
{
    const uint32_t count = meeting->place.setup->count;
    for (uint32_t i = 0; i < count; i++)
        meeting->guests[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    if (!local_place_open(&meeting->place, &meeting->door))
        return false;
    const bool received = receive_guests(meeting);
    const bool closed = local_place_close(&meeting->place, &meeting->door);
    // The ranks of this group come to a door of their own, so that one which is done already, and comes to the place
    // again for its next group, waits until rank 0 does too.
    const bool moved =
        received && closed &&
        local_place_listen(&meeting->place, &meeting->door, local_place_network(&meeting->place));
    if (moved) {
        meeting->token = local_token();
        meeting->entries[0] = (struct local_entry){.machine = local_machine(),
                                                   .number = meeting->door.number,
                                                   .port = meeting->door.port};
        answer_guests(meeting);
    }
    for (uint32_t i = 1; i < count; i++) {
        if (!moved && meeting->guests[i].fd >= 0)
            refuse(meeting->guests[i].fd, meeting->place.cause);
        else
            local_close(&meeting->guests[i].fd);
    }
    return moved;
}

// Other ranks.

static bool take_welcome(struct meeting *meeting, int connection)
{
    struct local_welcome welcome;
    struct local_place *place = &meeting->place;
    const uint64_t deadline_ns = place->deadline_ns + LOCAL_REPLY_NS;
    const size_t size = place->setup->count * sizeof *meeting->entries;
    if (!local_read_all(connection, &welcome, sizeof welcome, deadline_ns) ||
        (!welcome.cause[0] && !local_read_all(connection, meeting->entries, size, deadline_ns)))
        return local_place_fail(place, WEIR_ERROR_COMM,
                                "see what rank 0 has printed; then start all ranks again",
                                "rank 0 has left %s", place->setup->rendezvous);
    meeting->token = welcome.token;
    if (!welcome.cause[0])
        return true;
    // What the other side writes gets into logs and to terminals.
    welcome.cause[WEIR_CAUSE_SIZE - 1] = '\0';
    place->status = WEIR_ERROR_COMM;
    place->remedy = START_REMEDY;
    weir_text_escape(place->cause, sizeof place->cause, welcome.cause, "");
    return false;
}

static bool attend_meeting(struct meeting *meeting)
{
    struct local_hello hello = hello_of(meeting);
    int connection = local_place_knock(&meeting->place, &meeting->door, &hello);
    const bool attended = connection >= 0 && take_welcome(meeting, connection);
    local_close(&connection);
    return attended;
}

// Where it is.

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

// What a rendezvous names.

static bool take_path(struct local_place *place, const char *path)
{
    const size_t length = strlen(path);
    if (length > 0 && length < sizeof place->path)
        memcpy(place->path, path, length + 1);
    if (place->path[0] &&
        (place->is_file || place->is_name || local_address_at_path(place->path, &place->socket)))
        return true;
    return local_place_fail(place, WEIR_ERROR_CONFIG, "name a shorter one",
                            "the path of the rendezvous %s has %zu bytes, where 1 to %d are right",
                            place->setup->rendezvous, length,
                            place->is_file || place->is_name ? (int)sizeof place->path - 1 : 107);
}

// The folder is made here, and looked at when a socket is bound in it or reached.
static bool take_own_port(struct local_place *place, const char *port)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/weir-%lu", (unsigned long)geteuid());
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return local_place_fail(place, WEIR_ERROR_SYSTEM, LOCAL_FOLDER_REMEDY,
                                "the folder %s cannot be made: %s", path, strerror(errno));
    snprintf(path, sizeof path, "/tmp/weir-%lu/port-%s", (unsigned long)geteuid(), port);
    return take_path(place, path);
}

static bool take_port(struct local_place *place, const char *host_and_port)
{
    char host[256];
    char message[512];
    const char *port;
    struct addrinfo *found = NULL;
    if (!weir_address_split(host_and_port, host, sizeof host, &port) || !host[0])
        return local_place_fail(place, WEIR_ERROR_CONFIG, PLACE_REMEDY,
                                "the rendezvous '%s' names no host and port",
                                place->setup->rendezvous);
    const char *error = weir_lookup(host, port, place->deadline_ns, &found);
    if (!local_address_take(found, &place->network))
        return local_place_fail(place, WEIR_ERROR_SYSTEM, PLACE_REMEDY,
                                "the host '%s' of the rendezvous is not found: %s", host, error);
    if (local_address_reach(&place->network) == LOCAL_REACH_ALL)
        return local_place_fail(place, WEIR_ERROR_CONFIG, PLACE_REMEDY,
                                "the rendezvous '%s' names all addresses, and not one where "
                                "rank 0 is",
                                place->setup->rendezvous);
    if (!local_secret_read(place->secret_file, &place->secret, message, sizeof message))
        return local_place_fail(place, WEIR_ERROR_CONFIG, LOCAL_SECRET_REMEDY, "%s", message);
    if (weir_address_is_own((const struct sockaddr *)&place->network.address, place->network.size))
        return take_own_port(place, port);
    if (place->setup->rank == 0)
        return local_place_fail(
            place, WEIR_ERROR_SYSTEM,
            "start rank 0 on the machine that has it, or name an address of this one",
            "rank 0 is to wait at %s, and this machine has no such address",
            place->setup->rendezvous);
    return place->secret.is_set ||
           local_place_fail(place, WEIR_ERROR_CONFIG, LOCAL_SECRET_REMEDY,
                            "rank %u is on another machine than %s, and no secret is set",
                            place->setup->rank, place->setup->rendezvous);
}

static const char *after(const char *text, const char *prefix)
{
    const size_t length = strlen(prefix);
    return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

static bool find_place(struct local_place *place)
{
    const char *rendezvous = place->setup->rendezvous;
    if (after(rendezvous, "tcp://"))
        return take_port(place, after(rendezvous, "tcp://"));
    place->is_file = after(rendezvous, "file:") != NULL;
    place->is_name = after(rendezvous, "process:") != NULL;
    if (place->is_file || place->is_name || after(rendezvous, "unix:"))
        return take_path(place, strchr(rendezvous, ':') + 1);
    return local_place_fail(place, WEIR_ERROR_CONFIG, LOCAL_PLACE_REMEDY,
                            "the transport 'local' knows no rendezvous '%s'", rendezvous);
}

// Both.

static bool find_peer(struct meeting *meeting, uint32_t index, struct local_address *out_address)
{
    struct local_entry *entry = &meeting->entries[index];
    entry->host[LOCAL_HOST_SIZE - 1] = '\0';
    if (local_is_own_machine(&entry->machine)) {
        *out_address = local_address_at_number(entry->number);
        return true;
    }
    if (!entry->host[0])
        *out_address = meeting->place.network;
    else if (!local_address_parse(entry->host, out_address))
        out_address->size = 0;
    local_address_set_port(out_address, (uint16_t)entry->port);
    return (meeting->place.secret.is_set && out_address->size > 0 && entry->port > 0) ||
           local_place_fail(&meeting->place, WEIR_ERROR_CONFIG,
                            "set WEIR_COMM_SECRET to one text for all ranks, on each machine",
                            "rank %u is on another machine, and has no secret", index);
}

// Before any rank has come, for all ranks mostly have the same limit.
static bool has_descriptors(struct meeting *meeting)
{
    const unsigned long long count = meeting->place.setup->count;
    const unsigned long long wanted = 2 * (count - 1) * (meeting->place.is_name ? count : 1);
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || wanted <= limit.rlim_cur)
        return true;
    return local_place_fail(&meeting->place, WEIR_ERROR_SYSTEM, LOCAL_FILES_REMEDY,
                            "%u ranks need %llu open files in each process, and the limit is %llu",
                            meeting->place.setup->count, wanted,
                            (unsigned long long)limit.rlim_cur);
}

static bool join(struct meeting *meeting, struct local_group *group)
{
    const struct local_place *place = &meeting->place;
    meeting->guests = group->polls;
    if (!find_place(&meeting->place) || !has_descriptors(meeting) ||
        !(group->base.rank == 0 ? hold_meeting(meeting) : attend_meeting(meeting)))
        return false;
    for (uint32_t i = 0; i < group->base.count; i++)
        if (!find_peer(meeting, i, &group->peers[i].address))
            return false;
    group->secret = place->secret;
    if (local_mesh_connect(group, &meeting->door, meeting->token, place->deadline_ns, NULL))
        return true;
    memcpy(meeting->place.cause, group->base.cause.text, sizeof meeting->place.cause);
    return false;
}

// NULL if out of memory.
static struct meeting *create_meeting(const struct local_transport *transport,
                                      const struct weir_transport_setup *setup)
{
    const uint64_t now_ns = weir_clock_now_ns();
    struct meeting *meeting =
        transport->host->allocate(sizeof *meeting + setup->count * sizeof *meeting->entries);
    if (!meeting)
        return NULL;
    meeting->place = (struct local_place){
        .setup = setup,
        .secret_file = transport->secret_file,
        .deadline_ns =
            setup->timeout_ns > UINT64_MAX / 2 ? UINT64_MAX / 2 : now_ns + setup->timeout_ns,
        .status = WEIR_ERROR_COMM,
    };
    local_door_init(&meeting->door, &meeting->place.secret);
    return meeting;
}

static weir_status join_at(const struct local_transport *transport,
                           const struct weir_transport_setup *setup, void **out_group)
{
    const struct weir_host *host = transport->host;
    struct local_group *group = local_mesh_create(host, setup->label, setup->rank, setup->count);
    struct meeting *meeting = create_meeting(transport, setup);
    weir_status status = WEIR_OK;
    if (group && meeting && join(meeting, group)) {
        local_enlist(group);
        *out_group = group;
    } else if (meeting && meeting->place.cause[0]) {
        status = weir_host_fail(host, meeting->place.status, meeting->place.remedy, "%s",
                                meeting->place.cause);
    } else {
        status = weir_host_no_memory(host, "a group");
    }
    if (status != WEIR_OK && group)
        local_mesh_destroy(group);
    if (meeting)
        local_door_close(&meeting->door);
    host->release(meeting);
    return status;
}

weir_status local_join(void *state, const struct weir_transport_setup *setup, void **out_group)
{
    const struct local_transport *transport = state;
    const struct weir_host *host = transport->host;
    struct weir_transport_setup named = *setup;
    *out_group = NULL;
    if (sodium_init() < 0)
        return weir_host_fail(host, WEIR_ERROR_SYSTEM, NULL, "'%s': there are no random numbers",
                              setup->label);
    if (setup->count > LOCAL_MAX_RANKS)
        return weir_host_fail(host, WEIR_ERROR_UNSUPPORTED, "use the transport 'mpi'",
                              "'%s': the transport 'local' joins at most %u ranks, not %u",
                              setup->label, LOCAL_MAX_RANKS, setup->count);
    if (!setup->rendezvous && setup->count == 1) // one rank alone needs no name
        named.rendezvous = "process:alone";
    if (named.rendezvous && named.rendezvous[0])
        return join_at(transport, &named, out_group);
    return weir_host_fail(host, WEIR_ERROR_CONFIG, LOCAL_PLACE_REMEDY,
                          "'%s': no rendezvous is named, where %u ranks are to meet", setup->label,
                          setup->count);
}
