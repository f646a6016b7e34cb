// What a rendezvous names, what is there, what ranks and rank 0 say to each other before there is a group, and join().
#include "transports/local/local.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium/core.h>
#include <sodium/randombytes.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/lookup.h"
#include "base/text.h"

#define ANSWER_NS (UINT64_C(2000) * 1000 * 1000)
// How long an answer may take that is written, or read, in one go.
#define REPLY_NS (UINT64_C(500) * 1000 * 1000)
// One attempt at a place, so that it is looked at again.
#define KNOCK_NS (UINT64_C(2000) * 1000 * 1000)
#define LOOK_AGAIN_NS (UINT64_C(20) * 1000 * 1000)
#define LOOK_AGAIN_WITHIN_NS (UINT64_C(200) * 1000) // this process
#define FILE_LIMIT 4096u

#define PLACE_REMEDY                                                                        \
    "name a place where the ranks meet, such as in WEIR_COMM_RENDEZVOUS: tcp://HOST:PORT, " \
    "unix:PATH, file:PATH, or for ranks of one process process:NAME"
#define PORT_REMEDY "write tcp://HOST:PORT, with a port from 1 to 65535"
#define START_REMEDY "start as many ranks as the count says, each with a number of its own"
#define SECRET_REMEDY                                                                        \
    "set WEIR_COMM_SECRET to one text of 16 characters or more on all machines, or let the " \
    "ranks meet at file:PATH on a file system that all see"
#define FOLDER_REMEDY "name a file in a folder of yours that no other user can enter (chmod 700)"
#define FILES_REMEDY \
    "raise the limit of open files (ulimit -n): each rank has two for each other rank"

// Where rank 0 leaves a struct local_rendezvous, which the others read.
enum place {
    AT_NAME, // process:NAME, in this process's memory
    AT_PATH, // unix:PATH, and tcp://HOST:PORT on the machine that has HOST: a file of this machine, in a folder that this
             // user alone can enter
    AT_SHARED, // file:PATH, on a file system that other machines see too: with a secret
    AT_PORT    // tcp://HOST:PORT on other machines: rank 0's door is there
};

struct meeting {
    struct meeting *next; // of those that have left a name
    const struct weir_transport_setup *setup;
    struct local_group *group; // its cause is that of a failure, with:
    weir_status status;
    const char *remedy;
    uint64_t deadline_ns;
    enum place at;
    char path[512];               // or a name
    struct local_address network; // of rank 0; size 0: none
    struct local_secret secret;
    struct local_rendezvous its; // of rank 0
    char unread[256];            // why the file has not been read; "": it has been, or is none
    struct local_door door;      // rank 0's at the place, then each rank's own
    uint64_t token;              // out: of the group
    // Of rank 0: the connections of those that wait for its answer, and room for the door's.
    struct pollfd *guests;
    uint32_t count;               // of guests
    struct local_entry entries[]; // out: where each rank's door is
};

// Writes "'grads': " and the rest as the cause, and returns false.
WEIR_PRINTF(4, 5)
static bool fail(struct meeting *meeting, weir_status status, const char *remedy,
                 const char *format, ...)
{
    char *cause = meeting->group->base.cause.text;
    size_t used = 0;
    va_list arguments;
    weir_text_append(cause, WEIR_CAUSE_SIZE, &used, "'%s': ", meeting->setup->label);
    va_start(arguments, format);
    vsnprintf(cause + used, WEIR_CAUSE_SIZE - used, format, arguments);
    va_end(arguments);
    meeting->status = status;
    meeting->remedy = remedy;
    return false;
}

// The network address for a rank's own door; NULL: others do not come over the network. The secret is that of all who may.
static const struct local_address *network_of(const struct meeting *meeting)
{
    const bool reached = meeting->secret.is_set && meeting->network.size > 0 &&
                         local_address_reach(&meeting->network) != LOCAL_REACH_LOOPBACK;
    return reached ? &meeting->network : NULL;
}

static bool listen_at(struct meeting *meeting, const struct local_address *network)
{
    return local_door_open(&meeting->door, network) ||
           fail(meeting, WEIR_ERROR_SYSTEM, FILES_REMEDY, "rank 0 cannot listen: %s",
                strerror(errno));
}

// What is at a place.

static bool tell_taken(struct meeting *meeting)
{
    return fail(meeting, WEIR_ERROR_COMM, "give each program a place of its own",
                "another rank 0 is at %s already: do two programs use it?",
                meeting->setup->rendezvous);
}

// Guarded by the process's lock.
static struct meeting *names;

static struct meeting **find_name(const char *name)
{
    struct meeting **at = &names;
    while (*at && strcmp((*at)->path, name) != 0)
        at = &(*at)->next;
    return at;
}

static bool read_name(const struct meeting *meeting, struct local_rendezvous *out_its)
{
    local_process_lock();
    const struct meeting *found = *find_name(meeting->path);
    if (found)
        *out_its = found->its;
    local_process_unlock();
    return found;
}

static bool write_name(struct meeting *meeting)
{
    local_process_lock();
    struct meeting **at = find_name(meeting->path);
    const bool is_free = !*at;
    if (is_free)
        *at = meeting;
    local_process_unlock();
    return is_free || tell_taken(meeting);
}

static bool remove_name(const struct meeting *meeting)
{
    local_process_lock();
    struct meeting **at = find_name(meeting->path);
    if (*at == meeting)
        *at = meeting->next;
    local_process_unlock();
    return true;
}

// False if there is no such file yet, or one that this user has not written.
static bool read_file(struct meeting *meeting, struct local_rendezvous *out_its)
{
    void *data = NULL;
    size_t size = 0;
    meeting->unread[0] = '\0';
    if (!weir_file_read_private(meeting->path, FILE_LIMIT, &data, &size, meeting->unread,
                                sizeof meeting->unread))
        return false;
    const bool right =
        size == sizeof *out_its && memcmp(data, LOCAL_RENDEZVOUS, sizeof LOCAL_RENDEZVOUS) == 0;
    if (right)
        memcpy(out_its, data, sizeof *out_its);
    free(data);
    return right;
}

// What is there stays.
static bool tell_occupied(struct meeting *meeting)
{
    struct local_rendezvous found;
    return read_file(meeting, &found) // another rank 0 has just come
               ? tell_taken(meeting)
               : fail(meeting, WEIR_ERROR_IO, "name another file, or remove it",
                      "%s is there, and is no rendezvous that this user has written",
                      meeting->path);
}

// In place of one that is left from a meeting, or where nothing is.
static bool write_file(struct meeting *meeting, bool replaces)
{
    char message[512];
    weir_file_writer *writer =
        weir_file_writer_create_in(AT_FDCWD, meeting->path, true, message, sizeof message);
    if (writer) {
        (void)weir_file_writer_append(writer, &meeting->its, sizeof meeting->its);
        if ((replaces ? weir_file_writer_commit : weir_file_writer_commit_new)(&writer, message,
                                                                               sizeof message))
            return true;
        if (errno == EEXIST)
            return tell_occupied(meeting);
    }
    return fail(meeting, WEIR_ERROR_IO, "name a file in a folder that can be written",
                "rank 0 cannot write the rendezvous: %s", message);
}

// Two rank 0 that have come at once have found the same one that was left, and the later one's file is there.
static bool remove_file(struct meeting *meeting)
{
    struct local_rendezvous found = {.token = ~meeting->its.token}; // until the file says
    const bool read = read_file(meeting, &found);
    if (found.token == meeting->its.token)
        unlink(meeting->path);
    else if (read)
        return fail(meeting, WEIR_ERROR_COMM, "give each program a file of its own",
                    "another rank 0 has written %s since: do two programs use it?", meeting->path);
    return true;
}

static bool read_place(struct meeting *meeting)
{
    if (meeting->at == AT_PORT)
        return true;
    if (meeting->at == AT_NAME)
        return read_name(meeting, &meeting->its);
    if (!read_file(meeting, &meeting->its))
        return false;
    struct local_entry *door = &meeting->its.door;
    door->host[LOCAL_HOST_SIZE - 1] = '\0';
    if (meeting->at == AT_SHARED) {
        memcpy(meeting->secret.key, meeting->its.key, sizeof meeting->its.key);
        meeting->secret.is_set = true;
        (void)local_address_parse(door->host, &meeting->network);
    }
    return true;
}

// Rank 0's door, of what has been read. False with ENOENT: it is of an earlier start of this machine, or of another one on no
// network.
static bool find_rank_zero(const struct meeting *meeting, struct local_address *out_address)
{
    *out_address = meeting->network;
    errno = ENOENT;
    return meeting->at == AT_PORT ||
           local_find_door(&meeting->its.door.where, network_of(meeting), out_address);
}

static struct local_hello hello_of(const struct meeting *meeting)
{
    // Launchers that give their jobs names give them to all ranks.
    static const char *const names_of_jobs[] = {"TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE",
                                                "SLURM_JOB_ID"};
    struct local_hello hello = {.purpose = LOCAL_TO_MEET,
                                .rank = meeting->setup->rank,
                                .count = meeting->setup->count,
                                .token = meeting->its.token,
                                .where = meeting->door.where};
    const char *job = NULL;
    for (size_t i = 0; i < sizeof names_of_jobs / sizeof *names_of_jobs && !job; i++)
        job = getenv(names_of_jobs[i]);
    snprintf(hello.job, sizeof hello.job, "%s", job ? job : "");
    return hello;
}

// Rank 0.

// Not so if it is rank 0 of another place, which has got the number of a socket that is in what was left here.
static bool is_refused(const struct meeting *meeting, const struct local_welcome *welcome)
{
    return welcome->cause[0] && (meeting->at == AT_PORT || welcome->token == meeting->its.token);
}

// A rank 0 answers another one's hello with a refusal. Nothing else answers so.
static bool is_taken(const struct meeting *meeting)
{
    struct local_welcome welcome;
    struct local_address door;
    struct local_hello hello = hello_of(meeting);
    const uint64_t deadline_ns = local_sooner(meeting->deadline_ns, weir_clock_now_ns() + REPLY_NS);
    if (!find_rank_zero(meeting, &door))
        return false;
    int connection = local_knock(&door, &meeting->secret, &hello, deadline_ns);
    const bool taken = connection >= 0 &&
                       local_read_all(connection, &welcome, sizeof welcome, deadline_ns) &&
                       is_refused(meeting, &welcome);
    local_close(&connection);
    return taken;
}

// With a secret of a rendezvous at a port, its port too.
static bool listen_at_place(struct meeting *meeting)
{
    const struct local_address *network = network_of(meeting);
    struct local_door *door = &meeting->door;
    if (!listen_at(meeting, meeting->at == AT_SHARED ? network : NULL))
        return false;
    if (!network || meeting->at == AT_SHARED)
        return true;
    door->listeners[DOOR_NETWORK] = local_listen(network, &door->where.port);
    return door->listeners[DOOR_NETWORK] >= 0 ||
           fail(meeting, WEIR_ERROR_SYSTEM,
                "end the program that uses the port, or choose another one",
                "rank 0 cannot listen at %s: %s", meeting->setup->rendezvous, strerror(errno));
}

static bool open_place(struct meeting *meeting)
{
    const struct sockaddr_in own = weir_address_of_host();
    struct local_rendezvous *its = &meeting->its;
    struct stat there;
    const bool left = meeting->at != AT_NAME && read_place(meeting);
    if (left && is_taken(meeting))
        return tell_taken(meeting);
    if (!left && meeting->at != AT_NAME && lstat(meeting->path, &there) == 0)
        return tell_occupied(meeting);
    *its = (struct local_rendezvous){.magic = LOCAL_RENDEZVOUS, .token = local_token()};
    if (meeting->at == AT_SHARED) {
        meeting->secret.is_set = true;
        randombytes_buf(meeting->secret.key, sizeof meeting->secret.key);
        memcpy(its->key, meeting->secret.key, sizeof its->key);
        memcpy(&meeting->network.address, &own, sizeof own);
        meeting->network.size = sizeof own;
        local_address_text(&meeting->network, its->door.host, sizeof its->door.host);
    }
    if (!listen_at_place(meeting))
        return false;
    its->door.where = meeting->door.where;
    return meeting->at == AT_NAME ? write_name(meeting) : write_file(meeting, left);
}

// False with a cause if another rank 0 has come to the place since. To read a file takes a descriptor, and the door may have
// had the last one.
static bool close_place(struct meeting *meeting)
{
    local_door_close(&meeting->door);
    return meeting->at == AT_NAME ? remove_name(meeting) : remove_file(meeting);
}

static void refuse(const struct meeting *meeting, int connection, const char *cause)
{
    struct local_welcome welcome = {.token = meeting->its.token};
    snprintf(welcome.cause, sizeof welcome.cause, "%s", cause);
    local_write_all(connection, &welcome, sizeof welcome, weir_clock_now_ns() + REPLY_NS);
    local_close(&connection);
}

static void take_guest(struct meeting *meeting, const struct local_stranger *guest)
{
    const struct local_hello *hello = &guest->answer.hello;
    struct local_entry *entry = &meeting->entries[hello->rank];
    *entry = (struct local_entry){.where = hello->where};
    if (!local_address_is_machine(&guest->from))
        local_address_text(&guest->from, entry->host, sizeof entry->host);
    meeting->guests[hello->rank].fd = guest->connection;
    meeting->count++;
}

// A rank that cannot be one of these fails alone, unless it counts otherwise: then none can go on.
static bool seat(struct meeting *meeting, const struct local_stranger *guest)
{
    const struct local_hello *hello = &guest->answer.hello;
    const struct weir_transport_setup *setup = meeting->setup;
    const struct local_hello own = hello_of(meeting);
    // What is at a path of this machine those who come to the port have not read.
    const bool by_port = meeting->at == AT_PATH && !local_address_is_machine(&guest->from);
    const bool is_of_meeting = hello->purpose == LOCAL_TO_MEET &&
                               hello->token == (by_port ? 0 : meeting->its.token) &&
                               (!own.job[0] || !hello->job[0] || strcmp(own.job, hello->job) == 0);
    char cause[WEIR_CAUSE_SIZE] = "";
    if (is_of_meeting && hello->rank > 0 && hello->count != setup->count) {
        fail(meeting, WEIR_ERROR_COMM, START_REMEDY,
             "rank %u says that there are %u ranks, and rank 0 that there are %u", hello->rank,
             hello->count, setup->count);
        refuse(meeting, guest->connection, meeting->group->base.cause.text);
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
        refuse(meeting, guest->connection, cause);
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

static bool tell_missing_rank(struct meeting *meeting)
{
    char refused[96] = "";
    if (meeting->door.refused > 0)
        snprintf(refused, sizeof refused,
                 "; %u connections were refused, which had not the same secret",
                 meeting->door.refused);
    else if (meeting->network.size > 0 && !meeting->secret.is_set &&
             local_address_reach(&meeting->network) != LOCAL_REACH_LOOPBACK)
        snprintf(refused, sizeof refused,
                 "; without WEIR_COMM_SECRET only ranks of this machine are let in");
    return fail(meeting, WEIR_ERROR_COMM, START_REMEDY,
                "rank %u has not come to %s in %s; %u of %u ranks are there%s",
                first_missing(meeting), meeting->setup->rendezvous,
                weir_text_duration((double)meeting->setup->timeout_ns).text, meeting->count + 1,
                meeting->setup->count, refused);
}

// Guests say nothing before they are answered, so that one which can be read from has left.
static bool tell_left(struct meeting *meeting)
{
    uint32_t rank = 1;
    while (rank + 1 < meeting->setup->count && !meeting->guests[rank].revents)
        rank++;
    return fail(meeting, WEIR_ERROR_COMM,
                "see what that rank has printed; then start all ranks again",
                "rank %u has died, or waits no longer, and rank %u has not come to %s yet", rank,
                first_missing(meeting), meeting->setup->rendezvous);
}

static bool receive_guests(struct meeting *meeting)
{
    const uint32_t count = meeting->setup->count;
    while (meeting->count + 1 < count) {
        struct local_stranger guest;
        const bool came =
            local_door_next(&meeting->door, meeting->guests, count, meeting->deadline_ns, &guest);
        if (!came && errno == ETIMEDOUT)
            return tell_missing_rank(meeting);
        if (!came)
            return fail(meeting, WEIR_ERROR_SYSTEM, FILES_REMEDY,
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
    const uint32_t count = meeting->setup->count;
    const struct local_welcome welcome = {.token = meeting->token};
    const uint64_t deadline_ns = weir_clock_now_ns() + ANSWER_NS;
    for (uint32_t i = 1; i < count; i++)
        if (local_write_all(meeting->guests[i].fd, &welcome, sizeof welcome, deadline_ns))
            local_write_all(meeting->guests[i].fd, meeting->entries,
                            count * sizeof *meeting->entries, deadline_ns);
}

static bool hold_meeting(struct meeting *meeting)
{
    const uint32_t count = meeting->setup->count;
    for (uint32_t i = 0; i < count; i++)
        meeting->guests[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    if (!open_place(meeting))
        return false;
    const bool received = receive_guests(meeting);
    const bool closed = close_place(meeting);
    // The ranks of this group come to a door of their own, so that one which is done already, and comes to the place
    // again for its next group, waits until rank 0 does too.
    const bool moved = received && closed && listen_at(meeting, network_of(meeting));
    if (moved) {
        meeting->token = local_token();
        meeting->entries[0] = (struct local_entry){.where = meeting->door.where};
        answer_guests(meeting);
    }
    for (uint32_t i = 1; i < count; i++) {
        if (!moved && meeting->guests[i].fd >= 0)
            refuse(meeting, meeting->guests[i].fd, meeting->group->base.cause.text);
        else
            local_close(&meeting->guests[i].fd);
    }
    return moved;
}

// Other ranks.

// What is read may be left from an earlier run, and anything may be there now.
static bool may_come(const struct meeting *meeting, int error)
{
    if (meeting->at != AT_PORT)
        return error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM;
    return error == ECONNREFUSED || error == EAGAIN || error == ECONNRESET || error == ETIMEDOUT ||
           error == EHOSTUNREACH;
}

static void tell_missing(struct meeting *meeting, int error)
{
    fail(meeting, WEIR_ERROR_COMM,
         meeting->at == AT_SHARED
             ? "start rank 0, and let all ranks name one file that they share; one "
               "may be left from an earlier run"
             : "start rank 0, and see that no firewall is in the way",
         "rank 0 has not come to %s in %s: %s", meeting->setup->rendezvous,
         weir_text_duration((double)meeting->setup->timeout_ns).text,
         meeting->unread[0] ? meeting->unread : strerror(error));
}

static void tell_refused(struct meeting *meeting, int error)
{
    if (error == EACCES)
        fail(meeting, WEIR_ERROR_COMM, SECRET_REMEDY,
             "rank 0 at %s and rank %u have not the same secret", meeting->setup->rendezvous,
             meeting->setup->rank);
    else if (error == EPROTO)
        fail(meeting, WEIR_ERROR_COMM, "end what listens there, or choose another port",
             "what listens at %s is no rank 0", meeting->setup->rendezvous);
    else
        fail(meeting, WEIR_ERROR_SYSTEM, FILES_REMEDY, "rank %u cannot connect to rank 0 at %s: %s",
             meeting->setup->rank, meeting->setup->rendezvous, strerror(error));
}

// This rank's door has to be open before it tells of it.
static int knock_once(struct meeting *meeting)
{
    struct local_address door;
    struct local_address own;
    errno = ENOENT;
    if (!read_place(meeting) || !find_rank_zero(meeting, &door))
        return -1;
    const bool far = !local_address_is_machine(&door);
    local_door_close(&meeting->door);
    if ((far && !local_address_toward(&door, &own)) ||
        !local_door_open(&meeting->door, far ? &own : network_of(meeting)))
        return -1;
    struct local_hello hello = hello_of(meeting);
    return local_knock(&door, &meeting->secret, &hello,
                       local_sooner(meeting->deadline_ns, weir_clock_now_ns() + KNOCK_NS));
}

// `*out_error`: 0, or that of a place where rank 0 is not.
static bool take_welcome(struct meeting *meeting, int connection, int *out_error)
{
    struct local_welcome welcome;
    const uint64_t deadline_ns = meeting->deadline_ns + REPLY_NS;
    const size_t size = meeting->setup->count * sizeof *meeting->entries;
    *out_error = 0;
    if (!local_read_all(connection, &welcome, sizeof welcome, deadline_ns) ||
        (!welcome.cause[0] && !local_read_all(connection, meeting->entries, size, deadline_ns)))
        return fail(meeting, WEIR_ERROR_COMM,
                    "see what rank 0 has printed; then start all ranks again", "rank 0 has left %s",
                    meeting->setup->rendezvous);
    meeting->token = welcome.token;
    if (!welcome.cause[0])
        return true;
    if (!is_refused(meeting, &welcome)) {
        *out_error = ECONNREFUSED;
        return false;
    }
    // What the other side writes gets into logs and to terminals.
    welcome.cause[WEIR_CAUSE_SIZE - 1] = '\0';
    meeting->status = WEIR_ERROR_COMM;
    meeting->remedy = START_REMEDY;
    weir_text_escape(meeting->group->base.cause.text, WEIR_CAUSE_SIZE, welcome.cause, "");
    return false;
}

// With patience until the deadline.
static bool attend_meeting(struct meeting *meeting)
{
    for (;;) {
        int connection = knock_once(meeting);
        int error = errno;
        const bool attended = connection >= 0 && take_welcome(meeting, connection, &error);
        local_close(&connection);
        if (!error)
            return attended;
        if (!may_come(meeting, error)) {
            tell_refused(meeting, error);
            return false;
        }
        if (weir_clock_now_ns() >= meeting->deadline_ns) {
            tell_missing(meeting, error);
            return false;
        }
        weir_clock_sleep_ns(meeting->at == AT_NAME ? LOOK_AGAIN_WITHIN_NS : LOOK_AGAIN_NS);
    }
}

// What a rendezvous names.

// With what is there others in the folder could keep the ranks apart.
static bool check_folder(struct meeting *meeting)
{
    char folder[sizeof meeting->path];
    struct stat state;
    snprintf(folder, sizeof folder, "%s", meeting->path);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    const char *name = slash ? folder : ".";
    if (lstat(name, &state) != 0)
        return fail(meeting, WEIR_ERROR_SYSTEM, FOLDER_REMEDY,
                    "the folder %s of the rendezvous cannot be seen: %s", name, strerror(errno));
    return (S_ISDIR(state.st_mode) && state.st_uid == geteuid() && (state.st_mode & 077) == 0) ||
           fail(meeting, WEIR_ERROR_CONFIG, FOLDER_REMEDY,
                "the folder %s of the rendezvous is another user's, or others can enter it", name);
}

static bool take_path(struct meeting *meeting, enum place at, const char *path)
{
    const size_t length = strlen(path);
    meeting->at = at;
    if (length == 0 || length >= sizeof meeting->path)
        return fail(meeting, WEIR_ERROR_CONFIG, "name a shorter one",
                    "the path of a rendezvous has 1 to %zu bytes, and not %zu as that of %s",
                    sizeof meeting->path - 1, length, meeting->setup->rendezvous);
    memcpy(meeting->path, path, length + 1);
    return at != AT_PATH || check_folder(meeting);
}

static bool take_own_port(struct meeting *meeting, const char *port)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/weir-%lu", (unsigned long)geteuid());
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return fail(meeting, WEIR_ERROR_SYSTEM, FOLDER_REMEDY, "the folder %s cannot be made: %s",
                    path, strerror(errno));
    snprintf(path, sizeof path, "/tmp/weir-%lu/port-%s", (unsigned long)geteuid(), port);
    return take_path(meeting, AT_PATH, path);
}

static bool take_port(struct meeting *meeting, const char *secret_file, const char *host_and_port)
{
    char host[256];
    char message[512];
    const char *port;
    struct addrinfo *found = NULL;
    if (!weir_address_split(host_and_port, host, sizeof host, &port) || !host[0])
        return fail(meeting, WEIR_ERROR_CONFIG, PORT_REMEDY,
                    "the rendezvous '%s' names no host and port", meeting->setup->rendezvous);
    const char *error = weir_lookup(host, port, meeting->deadline_ns, &found);
    if (!local_address_take(found, &meeting->network))
        return fail(meeting, WEIR_ERROR_SYSTEM, PORT_REMEDY,
                    "the host '%s' of the rendezvous is not found: %s", host, error);
    if (local_address_reach(&meeting->network) == LOCAL_REACH_ALL)
        return fail(meeting, WEIR_ERROR_CONFIG, PORT_REMEDY,
                    "the rendezvous '%s' names all addresses, and not one where "
                    "rank 0 is",
                    meeting->setup->rendezvous);
    if (!local_secret_read(secret_file, &meeting->secret, message, sizeof message))
        return fail(meeting, WEIR_ERROR_CONFIG, SECRET_REMEDY, "%s", message);
    if (weir_address_is_own((const struct sockaddr *)&meeting->network.address,
                            meeting->network.size))
        return take_own_port(meeting, port);
    if (meeting->setup->rank == 0)
        return fail(meeting, WEIR_ERROR_SYSTEM,
                    "start rank 0 on the machine that has it, or name an address of this one",
                    "rank 0 is to wait at %s, and this machine has no such address",
                    meeting->setup->rendezvous);
    meeting->at = AT_PORT;
    return meeting->secret.is_set ||
           fail(meeting, WEIR_ERROR_CONFIG, SECRET_REMEDY,
                "rank %u is on another machine than %s, and no secret is set", meeting->setup->rank,
                meeting->setup->rendezvous);
}

static const char *after(const char *text, const char *prefix)
{
    const size_t length = strlen(prefix);
    return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

static bool find_place(struct meeting *meeting, const char *secret_file)
{
    static const char *const kinds[] = {
        [AT_NAME] = "process:", [AT_PATH] = "unix:", [AT_SHARED] = "file:"};
    const char *rendezvous = meeting->setup->rendezvous;
    if (after(rendezvous, "tcp://"))
        return take_port(meeting, secret_file, after(rendezvous, "tcp://"));
    for (enum place at = AT_NAME; at <= AT_SHARED; at++)
        if (after(rendezvous, kinds[at]))
            return take_path(meeting, at, after(rendezvous, kinds[at]));
    return fail(meeting, WEIR_ERROR_CONFIG, PLACE_REMEDY,
                "the transport 'local' knows no rendezvous '%s'", rendezvous);
}

// Both.

static bool find_peer(struct meeting *meeting, uint32_t index)
{
    struct local_entry *entry = &meeting->entries[index];
    struct local_address far = meeting->network;
    entry->host[LOCAL_HOST_SIZE - 1] = '\0';
    if (entry->host[0])
        (void)local_address_parse(entry->host, &far);
    return local_find_door(&entry->where, meeting->secret.is_set ? &far : NULL,
                           &meeting->group->peers[index].address) ||
           fail(meeting, WEIR_ERROR_CONFIG,
                "set WEIR_COMM_SECRET to one text for all ranks, on each machine",
                "rank %u is on another machine, and has no secret", index);
}

// Before any rank has come, for all ranks mostly have the same limit.
static bool has_descriptors(struct meeting *meeting)
{
    const unsigned long long count = meeting->setup->count;
    const unsigned long long wanted = 2 * (count - 1) * (meeting->at == AT_NAME ? count : 1);
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || wanted <= limit.rlim_cur)
        return true;
    return fail(meeting, WEIR_ERROR_SYSTEM, FILES_REMEDY,
                "%u ranks need %llu open files in each process, and the limit is %llu",
                meeting->setup->count, wanted, (unsigned long long)limit.rlim_cur);
}

static bool join(struct meeting *meeting, const char *secret_file)
{
    struct local_group *group = meeting->group;
    meeting->guests = group->polls;
    if (!find_place(meeting, secret_file) || !has_descriptors(meeting) ||
        !(group->base.rank == 0 ? hold_meeting(meeting) : attend_meeting(meeting)))
        return false;
    for (uint32_t i = 0; i < group->base.count; i++)
        if (!find_peer(meeting, i))
            return false;
    group->secret = meeting->secret;
    return true;
}

// Without a rendezvous it is one rank alone. NULL if out of memory.
static struct meeting *create_meeting(const struct weir_host *host,
                                      const struct weir_transport_setup *setup,
                                      struct local_group *group)
{
    const uint64_t now_ns = weir_clock_now_ns();
    struct meeting *meeting =
        host->allocate(sizeof *meeting + setup->count * sizeof *meeting->entries);
    if (!meeting)
        return NULL;
    meeting->setup = setup;
    meeting->group = group;
    meeting->deadline_ns =
        setup->timeout_ns > UINT64_MAX / 2 ? UINT64_MAX / 2 : now_ns + setup->timeout_ns;
    meeting->status = WEIR_ERROR_COMM;
    local_door_init(&meeting->door, &meeting->secret);
    return meeting;
}

static weir_status join_at(const struct local_transport *transport,
                           const struct weir_transport_setup *setup, void **out_group)
{
    const struct weir_host *host = transport->host;
    struct local_group *group = local_mesh_create(host, setup->label, setup->rank, setup->count);
    struct meeting *meeting = group ? create_meeting(host, setup, group) : NULL;
    weir_status status = WEIR_OK;
    if (meeting && (!setup->rendezvous || join(meeting, transport->secret_file)) &&
        local_mesh_connect(group, &meeting->door, meeting->token, meeting->deadline_ns, NULL)) {
        *out_group = group;
    } else if (group && group->base.cause.text[0]) {
        status =
            weir_host_fail(host, meeting->status, meeting->remedy, "%s", group->base.cause.text);
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
    *out_group = NULL;
    if (sodium_init() < 0)
        return weir_host_fail(host, WEIR_ERROR_SYSTEM, NULL, "'%s': there are no random numbers",
                              setup->label);
    if (setup->count > LOCAL_MAX_RANKS)
        return weir_host_fail(host, WEIR_ERROR_UNSUPPORTED, "use the transport 'mpi'",
                              "'%s': the transport 'local' joins at most %u ranks, not %u",
                              setup->label, LOCAL_MAX_RANKS, setup->count);
    if (setup->rendezvous ? setup->rendezvous[0] : setup->count == 1)
        return join_at(transport, setup, out_group);
    return weir_host_fail(host, WEIR_ERROR_CONFIG, PLACE_REMEDY,
                          "'%s': no rendezvous is named, where %u ranks are to meet", setup->label,
                          setup->count);
}
