#include "tests/transports/local/places.h"

#include <netinet/in.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "tests/support/test.h"

const char *const place_kinds[PLACE_KINDS] = {"unix:", "file:", "tcp://"};

struct place place_open(const char *kind)
{
    struct place place = {.folder = "/tmp/weir-test-XXXXXX", .port = -1};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof in;
    if (!mkdtemp(place.folder))
        return place;
    snprintf(place.rendezvous, sizeof place.rendezvous, "%s%s/meeting", kind, place.folder);
    if (strcmp(kind, "tcp://") != 0)
        return place;
    place.port = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(place.port, (struct sockaddr *)&in, sizeof in) == 0 &&
        getsockname(place.port, (struct sockaddr *)&in, &length) == 0)
        snprintf(place.rendezvous, sizeof place.rendezvous, "tcp://127.0.0.1:%u",
                 ntohs(in.sin_port));
    return place;
}

bool place_close(struct place *place)
{
    unlink(place_path(place));
    local_close(&place->port);
    return rmdir(place->folder) == 0;
}

const char *place_path(const struct place *place)
{
    static _Thread_local char path[96];
    if (place->port < 0)
        return place->rendezvous + strlen("unix:");
    snprintf(path, sizeof path, "/tmp/weir-%lu/port-%s", (unsigned long)geteuid(),
             strrchr(place->rendezvous, ':') + 1);
    return path;
}

bool place_is_taken(const struct place *place)
{
    return access(place_path(place), F_OK) == 0;
}

void place_await(const struct place *place)
{
    while (!place_is_taken(place))
        weir_clock_sleep_ns(RANKS_SECOND / 1000);
}

void place_write(const struct place *place, const void *data, size_t size, mode_t mode)
{
    char message[512];
    EXPECT_TRUE(weir_file_write(place_path(place), data, size, message, sizeof message));
    EXPECT_INT_EQ(chmod(place_path(place), mode), 0);
}

struct local_rendezvous place_read(const struct place *place)
{
    struct local_rendezvous its = {.token = 0};
    char message[512];
    void *data = NULL;
    size_t size = 0;
    if (weir_file_read(place_path(place), 4096, &data, &size, message, sizeof message) &&
        size == sizeof its)
        memcpy(&its, data, sizeof its);
    free(data);
    return its;
}

int place_connect(const struct place *place)
{
    const struct local_rendezvous its = place_read(place);
    const struct local_address address = local_address_at_number(its.door.where.number);
    return local_connect(&address, weir_clock_now_ns() + RANKS_PATIENCE);
}

struct weir_transport_setup place_setup(const char *rendezvous, uint32_t count, uint64_t timeout_ns)
{
    return (struct weir_transport_setup){
        .struct_size = sizeof(struct weir_transport_setup),
        .label = "grads",
        .count = count,
        .rendezvous = rendezvous,
        .timeout_ns = timeout_ns,
    };
}

void place_start(const struct place *place, struct joiner *joiner, uint32_t rank, uint32_t count)
{
    rank_start(joiner, rank, place_setup(place->rendezvous, count, RANKS_PATIENCE));
}
