// NOLINTNEXTLINE(bugprone-reserved-identifier): for flock()
#define _DEFAULT_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <sodium/randombytes.h>
#include <sodium/utils.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/lookup.h"
#include "base/text.h"
#include "transports/local/meeting.h"

#define FILE_LIMIT 4096u
// One attempt at a place, so that a file is looked at again.
#define KNOCK_NS (UINT64_C(2000) * 1000 * 1000)
#define LOOK_AGAIN_NS (UINT64_C(20) * 1000 * 1000)
#define LOOK_AGAIN_WITHIN_NS (UINT64_C(200) * 1000) // this process

bool local_place_fail(struct local_place *place, weir_status status, const char *remedy,
                      const char *format, ...)
{
    size_t used = 0;
    va_list arguments;
    weir_text_append(place->cause, sizeof place->cause, &used, "'%s': ", place->setup->label);
    va_start(arguments, format);
    vsnprintf(place->cause + used, sizeof place->cause - used, format, arguments);
    va_end(arguments);
    place->status = status;
    place->remedy = remedy;
    return false;
}

// The secret is that of all who may come over the network.
const struct local_address *local_place_network(const struct local_place *place)
{
    const bool reached = place->secret.is_set && place->network.size > 0 &&
                         local_address_reach(&place->network) != LOCAL_REACH_LOOPBACK;
    return reached ? &place->network : NULL;
}

bool local_place_listen(struct local_place *place, struct local_door *door,
                        const struct local_address *network)
{
    return local_door_open(door, network) ||
           local_place_fail(place, WEIR_ERROR_SYSTEM, LOCAL_FILES_REMEDY,
                            "rank 0 cannot listen: %s", strerror(errno));
}

static bool tell_taken(struct local_place *place)
{
    return local_place_fail(place, WEIR_ERROR_COMM, "give each program a place of its own",
                            "another rank 0 is at %s already: do two programs use it?",
                            place->setup->rendezvous);
}

// Rank 0's socket.

// Opens the folder of the path, which this user alone may enter. -1 with a cause.
static int open_folder(struct local_place *place)
{
    char folder[sizeof place->path];
    struct stat state;
    snprintf(folder, sizeof folder, "%s", place->path);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    const char *name = slash ? folder : ".";
    int file = open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) {
        local_place_fail(place, WEIR_ERROR_SYSTEM, LOCAL_FOLDER_REMEDY,
                         "the folder %s of the rendezvous cannot be opened: %s", name,
                         strerror(errno));
        return -1;
    }
    if (fstat(file, &state) == 0 && state.st_uid == geteuid() && (state.st_mode & 077) == 0)
        return file;
    close(file);
    local_place_fail(place, WEIR_ERROR_CONFIG, LOCAL_FOLDER_REMEDY,
                     "the folder %s of the rendezvous is another user's, or others can enter it",
                     name);
    return -1;
}

// One process at a time looks whether a socket is left there, and binds its own.
static bool lock_folder(struct local_place *place, int folder)
{
    while (flock(folder, LOCK_EX | LOCK_NB) != 0) {
        if (weir_clock_now_ns() >= place->deadline_ns)
            return local_place_fail(place, WEIR_ERROR_COMM, "end the program that holds it",
                                    "the folder of %s has been locked too long", place->path);
        weir_clock_sleep_ns(LOOK_AGAIN_NS / 10);
    }
    return true;
}

// False with a cause: what is there stays.
static bool remove_left(struct local_place *place)
{
    struct stat there; // connections to what is no socket are refused too
    if (lstat(place->path, &there) == 0 && !S_ISSOCK(there.st_mode))
        return local_place_fail(place, WEIR_ERROR_IO, "name another place, or remove it",
                                "%s is there, and is no socket", place->path);
    int probe = local_connect(&place->socket, place->deadline_ns);
    const bool left = probe < 0 && errno == ECONNREFUSED;
    local_close(&probe);
    if (!left)
        return tell_taken(place);
    (void)unlink(place->path);
    return true;
}

static bool bind_socket(struct local_place *place, struct local_door *door)
{
    door->listeners[DOOR_MACHINE] = local_listen(&place->socket, &door->number);
    if (door->listeners[DOOR_MACHINE] < 0 && errno == EADDRINUSE) {
        if (!remove_left(place))
            return false;
        door->listeners[DOOR_MACHINE] = local_listen(&place->socket, &door->number);
    }
    if (door->listeners[DOOR_MACHINE] >= 0 && stat(place->path, &place->bound) == 0)
        return true;
    return local_place_fail(place, WEIR_ERROR_SYSTEM, LOCAL_FILES_REMEDY,
                            "rank 0 cannot listen at %s: %s", place->path, strerror(errno));
}

static bool open_at_path(struct local_place *place, struct local_door *door)
{
    const struct local_address *network = local_place_network(place);
    const int folder = open_folder(place);
    if (folder < 0)
        return false;
    const bool bound = lock_folder(place, folder) && bind_socket(place, door);
    close(folder);
    if (!bound || !network)
        return bound;
    door->listeners[DOOR_NETWORK] = local_listen(network, &door->port);
    return door->listeners[DOOR_NETWORK] >= 0 ||
           local_place_fail(place, WEIR_ERROR_SYSTEM,
                            "end the program that uses the port, or choose another one",
                            "rank 0 cannot listen at %s: %s", place->setup->rendezvous,
                            strerror(errno));
}

// Rank 0's file.

static bool parse_hex(const char *text, uint8_t *bytes, size_t size)
{
    size_t read = 0;
    return sodium_hex2bin(bytes, size, text, strlen(text), NULL, &read, NULL) == 0 && read == size;
}

// False if there is no such file yet, or one that this user has not written.
static bool read_file(struct local_place *place)
{
    char machine[33];
    char secret[65];
    char host[LOCAL_HOST_SIZE];
    unsigned number = 0;
    unsigned port = 0;
    unsigned long long token = 0;
    char end = 0;
    void *data = NULL;
    size_t size = 0;
    struct local_machine its;
    place->unread[0] = '\0';
    if (!weir_file_read_private(place->path, FILE_LIMIT, &data, &size, place->unread,
                                sizeof place->unread))
        return false;
    // A wrong number is a place at which nothing listens. NOLINTNEXTLINE(cert-err34-c)
    const int read = sscanf(data, "weir-rendezvous 2 %32[0-9a-f] %u %63s %u %64[0-9a-f] %llx%c",
                            machine, &number, host, &port, secret, &token, &end);
    free(data);
    if (read != 7 || end != '\n' || port > UINT16_MAX ||
        !parse_hex(machine, its.id, sizeof its.id) ||
        !parse_hex(secret, place->secret.key, sizeof place->secret.key))
        return false;
    place->secret.is_set = true;
    place->token = token;
    place->socket = (struct local_address){.size = 0};
    if (local_is_own_machine(&its))
        place->socket = local_address_at_number(number);
    if (local_address_parse(host, &place->network))
        local_address_set_port(&place->network, (uint16_t)port);
    return true;
}

// One of an earlier start of this machine, or of another one on no network, is not.
static bool is_reachable(const struct local_place *place)
{
    return place->socket.size > 0 || local_place_network(place);
}

// What is there stays.
static bool tell_occupied(struct local_place *place)
{
    struct local_place found = *place;
    return read_file(&found) // another rank 0 has just come
               ? tell_taken(place)
               : local_place_fail(place, WEIR_ERROR_IO, "name another file, or remove it",
                                  "%s is there, and is no rendezvous that this user has written",
                                  place->path);
}

// In place of one that is left from a meeting, or where nothing is.
static bool write_file(struct local_place *place, const struct local_door *door, bool replaces)
{
    char text[512];
    char message[512];
    char machine[33];
    char secret[65];
    char host[LOCAL_HOST_SIZE];
    const struct local_machine own = local_machine();
    sodium_bin2hex(machine, sizeof machine, own.id, sizeof own.id);
    sodium_bin2hex(secret, sizeof secret, place->secret.key, sizeof place->secret.key);
    local_address_text(&place->network, host, sizeof host);
    snprintf(text, sizeof text, "weir-rendezvous 2 %s %u %s %u %s %llx\n", machine, door->number,
             host, door->port, secret, (unsigned long long)place->token);
    weir_file_writer *writer =
        weir_file_writer_create_in(AT_FDCWD, place->path, true, message, sizeof message);
    if (writer) {
        (void)weir_file_writer_append(writer, text, strlen(text));
        if ((replaces ? weir_file_writer_commit : weir_file_writer_commit_new)(&writer, message,
                                                                               sizeof message))
            return true;
        if (errno == EEXIST)
            return tell_occupied(place);
    }
    return local_place_fail(place, WEIR_ERROR_IO, "name a file in a folder that can be written",
                            "rank 0 cannot write the rendezvous: %s", message);
}

// A rank 0 answers another one's hello with a refusal. Nothing else answers so.
static bool is_taken(const struct local_place *found)
{
    struct local_welcome welcome;
    const uint64_t deadline_ns =
        local_sooner(found->deadline_ns, weir_clock_now_ns() + LOCAL_REPLY_NS);
    struct local_hello hello = {.purpose = LOCAL_TO_MEET, .token = found->token};
    const struct local_address *address = found->socket.size ? &found->socket : &found->network;
    int connection = local_knock(address, &found->secret, &hello, deadline_ns);
    const bool taken = connection >= 0 &&
                       local_read_all(connection, &welcome, sizeof welcome, deadline_ns) &&
                       welcome.cause[0];
    local_close(&connection);
    return taken;
}

static bool open_at_file(struct local_place *place, struct local_door *door)
{
    const struct sockaddr_in own = weir_address_of_host();
    struct local_place found = *place;
    struct stat there;
    const bool left = read_file(&found);
    if (left && is_reachable(&found) && is_taken(&found))
        return tell_taken(place);
    if (!left && lstat(place->path, &there) == 0)
        return tell_occupied(place);
    place->secret.is_set = true;
    randombytes_buf(place->secret.key, sizeof place->secret.key);
    place->token = local_token();
    memcpy(&place->network.address, &own, sizeof own);
    place->network.size = sizeof own;
    return local_place_listen(place, door, local_place_network(place)) &&
           write_file(place, door, left);
}

// Two rank 0 that have come at once have found the same one that was left, and the later one's file is there.
static bool close_at_file(struct local_place *place)
{
    struct local_place found = *place;
    found.token = ~place->token; // until the file says
    const bool read = read_file(&found);
    if (found.token == place->token)
        unlink(place->path);
    else if (read)
        return local_place_fail(place, WEIR_ERROR_COMM, "give each program a file of its own",
                                "another rank 0 has written %s since: do two programs use it?",
                                place->path);
    return true;
}

// Names of this process, guarded by its lock: where the doors are of the ranks 0 that wait there. One rank alone
// needs none.

static struct local_place *names;

// With the lock.
static struct local_place **find_name(const char *name)
{
    struct local_place **at = &names;
    while (*at && strcmp((*at)->path, name) != 0)
        at = &(*at)->next;
    return at;
}

static bool open_at_name(struct local_place *place, struct local_door *door)
{
    if (!local_place_listen(place, door, NULL))
        return false;
    place->token = local_token();
    place->socket = local_address_at_number(door->number);
    if (place->setup->count == 1)
        return true;
    local_process_lock();
    struct local_place **at = find_name(place->path);
    const bool is_free = !*at;
    if (is_free)
        *at = place;
    local_process_unlock();
    return is_free || tell_taken(place);
}

static bool read_name(struct local_place *place)
{
    local_process_lock();
    const struct local_place *found = *find_name(place->path);
    if (found) {
        place->token = found->token;
        place->socket = found->socket;
    }
    local_process_unlock();
    return found;
}

bool local_place_open(struct local_place *place, struct local_door *door)
{
    if (place->is_name)
        return open_at_name(place, door);
    return place->is_file ? open_at_file(place, door) : open_at_path(place, door);
}

bool local_place_close(struct local_place *place, struct local_door *door)
{
    struct stat now;
    // While this process listens no other rank 0 takes the socket for one that is left.
    if (!place->is_name && !place->is_file && lstat(place->path, &now) == 0 &&
        now.st_ino == place->bound.st_ino && now.st_dev == place->bound.st_dev)
        (void)unlink(place->path);
    local_door_close(door);
    if (place->is_name) {
        local_process_lock();
        struct local_place **at = find_name(place->path);
        if (*at == place)
            *at = place->next;
        local_process_unlock();
    }
    // To read the file takes a descriptor, and the door may have had the last one.
    return !place->is_file || close_at_file(place);
}

// Other ranks.

// What a file names may be left from an earlier run, and anything may be there now.
static bool may_come(const struct local_place *place, int error)
{
    if (place->is_file || place->is_name)
        return error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM;
    return error == ENOENT || error == ECONNREFUSED || error == EAGAIN || error == ECONNRESET ||
           error == ETIMEDOUT || error == EHOSTUNREACH;
}

static void tell_missing(struct local_place *place, int error)
{
    local_place_fail(place, WEIR_ERROR_COMM,
                     place->is_file
                         ? "start rank 0, and let all ranks name one file that they share; one "
                           "may be left from an earlier run"
                         : "start rank 0, and see that no firewall is in the way",
                     "rank 0 has not come to %s in %s: %s", place->setup->rendezvous,
                     weir_text_duration((double)place->setup->timeout_ns).text,
                     place->unread[0] ? place->unread : strerror(error));
}

static void tell_refused(struct local_place *place, int error)
{
    if (error == EACCES)
        local_place_fail(place, WEIR_ERROR_COMM, LOCAL_SECRET_REMEDY,
                         "rank 0 at %s and rank %u have not the same secret",
                         place->setup->rendezvous, place->setup->rank);
    else if (error == EPERM)
        local_place_fail(place, WEIR_ERROR_COMM, "choose another place",
                         "another user's program listens at %s", place->setup->rendezvous);
    else if (error == EPROTO)
        local_place_fail(place, WEIR_ERROR_COMM, "end what listens there, or choose another port",
                         "what listens at %s is no rank 0", place->setup->rendezvous);
    else
        local_place_fail(place, WEIR_ERROR_SYSTEM, LOCAL_FILES_REMEDY,
                         "rank %u cannot connect to rank 0 at %s: %s", place->setup->rank,
                         place->setup->rendezvous, strerror(error));
}

// A file of an earlier run names a place at which nothing listens until rank 0 has written its own.
static int knock_once(struct local_place *place, struct local_door *door, struct local_hello *hello)
{
    if ((place->is_file && !(read_file(place) && is_reachable(place))) ||
        (place->is_name && !read_name(place))) {
        errno = ENOENT;
        return -1;
    }
    // This rank's door has to be open before it tells of it. What a file says may change until rank 0 has come.
    if (place->is_file || door->listeners[DOOR_MACHINE] < 0) {
        struct local_address own;
        const bool far = place->socket.size == 0;
        local_door_close(door);
        if ((far && !local_address_toward(&place->network, &own)) ||
            !local_door_open(door, far ? &own : local_place_network(place)))
            return -1;
    }
    hello->token = place->token;
    hello->number = door->number;
    hello->port = door->port;
    return local_knock(place->socket.size ? &place->socket : &place->network, &place->secret, hello,
                       local_sooner(place->deadline_ns, weir_clock_now_ns() + KNOCK_NS));
}

int local_place_knock(struct local_place *place, struct local_door *door, struct local_hello *hello)
{
    // A socket in a folder of another user's would be one too.
    if (!place->is_file && !place->is_name && place->socket.size > 0) {
        const int folder = open_folder(place);
        if (folder < 0)
            return -1;
        close(folder);
    }
    for (;;) {
        const int connection = knock_once(place, door, hello);
        const int error = errno;
        if (connection >= 0)
            return connection;
        if (!may_come(place, error)) {
            tell_refused(place, error);
            return -1;
        }
        if (weir_clock_now_ns() >= place->deadline_ns) {
            tell_missing(place, error);
            return -1;
        }
        weir_clock_sleep_ns(place->is_name ? LOOK_AGAIN_WITHIN_NS : LOOK_AGAIN_NS);
    }
}
