// join() between processes: the place of the meeting, the meeting, and the connections.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/siphash.h"
#include "base/text.h"
#include "transports/local/rendezvous.h"

#define PLACE_REMEDY "write tcp://HOST:PORT, with a port from 1 to 65535"
#define FILE_LIMIT 4096u
#define LOOK_AGAIN_NS (UINT64_C(20) * 1000 * 1000)

bool local_meeting_fail(struct meeting *meeting, weir_status status, const char *remedy,
                        const char *format, ...)
{
    size_t used = 0;
    va_list arguments;
    weir_text_append(meeting->cause, sizeof meeting->cause, &used, "'%s': ", meeting->setup->label);
    va_start(arguments, format);
    vsnprintf(meeting->cause + used, sizeof meeting->cause - used, format, arguments);
    va_end(arguments);
    meeting->status = status;
    meeting->remedy = remedy;
    return false;
}

static bool listen_at_place(struct meeting *meeting)
{
    meeting->listener = local_listen(meeting->place, meeting->any, &meeting->port);
    if (meeting->listener >= 0)
        return true;
    return local_meeting_fail(meeting, WEIR_ERROR_SYSTEM,
                              "end the program that uses the port, or choose another one",
                              "rank 0 cannot listen at %s: %s", meeting->setup->rendezvous,
                              strerror(errno));
}

// Splits "HOST:PORT"; a host with colons stands in brackets.
static bool parse_place(const char *text, char *host, size_t size, uint16_t *out_port)
{
    const char *colon = strrchr(text, ':');
    const bool bracketed = text[0] == '[';
    char *end = NULL;
    if (!colon || colon == text || (bracketed && colon[-1] != ']'))
        return false;
    const long port = strtol(colon + 1, &end, 10);
    const size_t length = (size_t)(colon - text) - (bracketed ? 2 : 0);
    if (end == colon + 1 || *end || port < 1 || port > UINT16_MAX || length == 0 || length >= size)
        return false;
    memcpy(host, text + bracketed, length);
    host[length] = '\0';
    *out_port = (uint16_t)port;
    return true;
}

static bool reach_place(struct meeting *meeting)
{
    char duration[WEIR_TEXT_QUANTITY_SIZE];
    meeting->connection = local_connect(&meeting->place, true, meeting->deadline_ns);
    if (meeting->connection >= 0)
        return true;
    const int error = errno;
    weir_text_duration(duration, (double)meeting->setup->timeout_ns);
    return local_meeting_fail(meeting, WEIR_ERROR_COMM,
                              "start rank 0, and see that no firewall is in the way",
                              "rank 0 has not come to %s in %s: %s", meeting->setup->rendezvous,
                              duration, strerror(error));
}

bool local_meeting_at_port(struct meeting *meeting, const char *host_and_port)
{
    char host[256];
    uint16_t port = 0;
    const char *error = NULL;
    if (!parse_place(host_and_port, host, sizeof host, &port))
        return local_meeting_fail(meeting, WEIR_ERROR_CONFIG, PLACE_REMEDY,
                                  "the rendezvous '%s' names no host and port",
                                  meeting->setup->rendezvous);
    if (!local_address_find(host, port, &meeting->place, &error))
        return local_meeting_fail(meeting, WEIR_ERROR_SYSTEM, PLACE_REMEDY,
                                  "the host '%s' of the rendezvous is not found: %s", host, error);
    // A host's own name may be a loopback address there, and something else elsewhere.
    meeting->any = !local_address_is_loopback(&meeting->place) ||
                   (strcmp(host, "localhost") != 0 && strncmp(host, "127.", 4) != 0 &&
                    strcmp(host, "::1") != 0);
    return meeting->setup->rank > 0 ? reach_place(meeting) : listen_at_place(meeting);
}

// False if there is no such file yet, or another one.
static bool read_place(struct meeting *meeting, const char *path)
{
    char message[512];
    char host[LOCAL_HOST_SIZE];
    const char *error = NULL;
    unsigned port = 0;
    unsigned long long token = 0;
    void *data = NULL;
    size_t size = 0;
    if (!weir_file_read(path, FILE_LIMIT, &data, &size, message, sizeof message))
        return false;
    // A wrong number is a place at which nothing listens. NOLINTNEXTLINE(cert-err34-c)
    const int read = sscanf(data, "weir-local 1 %63s %u %llx", host, &port, &token);
    const bool found = read == 3 && port <= UINT16_MAX &&
                       local_address_find(host, (uint16_t)port, &meeting->place, &error);
    free(data);
    meeting->token = token;
    meeting->any = found && !local_address_is_loopback(&meeting->place);
    return found;
}

static bool write_place(struct meeting *meeting, const char *path)
{
    char text[256];
    char host[LOCAL_HOST_SIZE];
    char message[512];
    struct weir_siphash_key key;
    if (read_place(meeting, path) && local_meeting_is_taken(meeting))
        return false;
    weir_siphash_random_key(&key);
    meeting->token = key.words[0] | 1; // 0 would be none
    local_address_of_host(&meeting->place);
    meeting->any = !local_address_is_loopback(&meeting->place);
    if (!listen_at_place(meeting))
        return false;
    local_address_text(&meeting->place, host, sizeof host);
    snprintf(text, sizeof text, "weir-local 1 %s %u %llx\n", host, meeting->port,
             (unsigned long long)meeting->token);
    if (weir_file_write(path, text, strlen(text), message, sizeof message))
        return true;
    return local_meeting_fail(meeting, WEIR_ERROR_IO, "name a file in a folder that can be written",
                              "rank 0 cannot write the rendezvous: %s", message);
}

// A file of an earlier run names a place at which nothing listens, until rank 0 has written its own.
bool local_meeting_at_file(struct meeting *meeting, const char *path)
{
    if (meeting->setup->rank == 0)
        return write_place(meeting, path);
    bool named = false;
    while (weir_clock_now_ns() < meeting->deadline_ns) {
        named = read_place(meeting, path);
        if (named)
            meeting->connection = local_connect(&meeting->place, false, meeting->deadline_ns);
        if (meeting->connection >= 0)
            return true;
        weir_clock_sleep_ns(LOOK_AGAIN_NS);
    }
    char duration[WEIR_TEXT_QUANTITY_SIZE];
    weir_text_duration(duration, (double)meeting->setup->timeout_ns);
    if (named)
        return local_meeting_fail(
            meeting, WEIR_ERROR_COMM, "start rank 0; the file may be left from an earlier run",
            "rank 0 has not come in %s: %s names a place at which nothing listens", duration, path);
    return local_meeting_fail(meeting, WEIR_ERROR_COMM,
                              "start rank 0, and let all ranks name one file that they share",
                              "rank 0 has not written %s in %s", path, duration);
}

// Two rank 0 that have come at once have found none each, and the later one's file is there.
static bool has_another(const struct meeting *meeting, const char *path)
{
    struct meeting found = *meeting;
    return read_place(&found, path) && found.token != meeting->token;
}

static void put_away(struct meeting *meeting, const char *path, bool met)
{
    if (!has_another(meeting, path))
        unlink(path);
    else if (!met)
        local_meeting_fail(meeting, WEIR_ERROR_COMM, "give each program a file of its own",
                           "another rank 0 has written %s since: do two programs use it?", path);
}

static bool meet(struct meeting *meeting)
{
    const char *rendezvous = meeting->setup->rendezvous;
    const bool file = strncmp(rendezvous, "file:", 5) == 0;
    const bool first = meeting->setup->rank == 0;
    const bool found = file ? local_meeting_at_file(meeting, rendezvous + 5)
                            : local_meeting_at_port(meeting, rendezvous + strlen("tcp://"));
    const bool met =
        found && (first ? local_meeting_receive(meeting) : local_meeting_attend(meeting));
    if (file && first && found)
        put_away(meeting, rendezvous + 5, met);
    return met;
}

// Before any rank has come, for all ranks mostly have the same limit.
static bool has_descriptors(struct meeting *meeting)
{
    const unsigned long long wanted = 2 * (meeting->setup->count - 1ull);
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || wanted <= limit.rlim_cur)
        return true;
    return local_meeting_fail(
        meeting, WEIR_ERROR_SYSTEM, LOCAL_FILES_REMEDY,
        "%u ranks need %llu open files in each process, and the limit is %llu",
        meeting->setup->count, wanted, (unsigned long long)limit.rlim_cur);
}

static struct tcp_group *join(struct meeting *meeting)
{
    const struct weir_transport_setup *setup = meeting->setup;
    struct tcp_group *group =
        local_tcp_create(meeting->host, setup->label, setup->rank, setup->count);
    meeting->addresses = meeting->host->allocate(setup->count * sizeof *meeting->addresses);
    bool joined = false;
    if (group && meeting->addresses && has_descriptors(meeting) && meet(meeting)) {
        group->any = meeting->any;
        group->reads_memory = meeting->reads_memory;
        group->maps_memory = meeting->maps_memory;
        joined = local_tcp_connect(group, meeting->addresses, meeting->listener, meeting->token,
                                   meeting->deadline_ns, NULL, meeting->cause) &&
                 local_tcp_begin(group, setup->timeout_ns, meeting->deadline_ns, meeting->cause);
    }
    meeting->host->release(meeting->addresses);
    local_close(&meeting->connection);
    local_close(&meeting->listener);
    if (joined)
        return group;
    if (group)
        local_tcp_destroy(group);
    return NULL;
}

weir_status local_tcp_join(const struct weir_host *host, const struct weir_transport_setup *setup,
                           bool reads_memory, bool maps_memory, struct local_group **out_group)
{
    const uint64_t now_ns = weir_clock_now_ns();
    struct meeting meeting = {
        .host = host,
        .setup = setup,
        .reads_memory = reads_memory,
        .maps_memory = maps_memory,
        .deadline_ns =
            setup->timeout_ns > UINT64_MAX / 2 ? UINT64_MAX / 2 : now_ns + setup->timeout_ns,
        .connection = -1,
        .listener = -1,
        .status = WEIR_ERROR_COMM,
    };
    struct tcp_group *group = join(&meeting);
    if (!group)
        return meeting.cause[0]
                   ? weir_host_fail(host, meeting.status, meeting.remedy, "%s", meeting.cause)
                   : weir_host_no_memory(host, "a group");
    *out_group = &group->local;
    return WEIR_OK;
}
