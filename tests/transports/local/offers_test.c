// A rank that offers something else than its window: no group is made with it, and the others neither change what it has
// offered nor end when that shrinks. The ranks are threads, of which rank 1 is such a one.
//
// NOLINTNEXTLINE(bugprone-reserved-identifier): for memfd_create() and seals
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/test.h"
#include "tests/transports/local/places.h"
#include "tests/transports/local/ranks.h"
#include "transports/local/socket.h"

#define RANKS 3
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct offer {
    const char *name;
    int (*make)(const struct offer *offer, off_t size); // of a window; NULL: no file
    const char *path;                                   // these two of what is opened
    int flags;
    off_t more; // these two of memory
    int seals;
    bool twice; // in one message, of which one is taken
    int file;
};

// Of the thread that is the malicious rank.
static _Thread_local struct offer *offered;

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names for a function that it wraps
ssize_t __real_sendmsg(int connection, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int connection, const struct msghdr *message, int flags);

// A rank sends its window, beside one byte.
ssize_t __wrap_sendmsg(int connection, const struct msghdr *message, int flags)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } passed = {.header = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct msghdr other = *message;
    struct stat window;
    int own = -1;
    if (!offered)
        return __real_sendmsg(connection, message, flags);
    memcpy(&own, CMSG_DATA(CMSG_FIRSTHDR(message)), sizeof own);
    if (offered->file < 0 && offered->make && fstat(own, &window) == 0)
        offered->file = offered->make(offered, window.st_size);
    const int both[] = {offered->twice ? own : offered->file, own};
    const size_t size = offered->twice ? sizeof both : sizeof own;
    passed.header.cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(&passed.header), both, size);
    other.msg_control = both[0] < 0 ? NULL : &passed;
    other.msg_controllen = both[0] < 0 ? 0 : CMSG_SPACE(size);
    return __real_sendmsg(connection, &other, flags);
}
// NOLINTEND(bugprone-reserved-identifier)

// What is offered.

static const char mark[] = "no rank has changed this";

static int made_file(int file, off_t size, int seals)
{
    if (ftruncate(file, size) != 0 || pwrite(file, mark, sizeof mark, 0) != sizeof mark ||
        pwrite(file, mark, sizeof mark, 4096) != sizeof mark)
        abort();
    if (seals && fcntl(file, F_ADD_SEALS, seals) != 0)
        abort();
    return file;
}

static int make_file(const struct offer *offer, off_t size)
{
    char path[] = "/tmp/weir-test-XXXXXX";
    const int written = mkstemp(path);
    const int file = open(path, offer->flags | O_CLOEXEC);
    made_file(written, size, 0);
    close(written);
    unlink(path);
    return file;
}

static int make_memory(const struct offer *offer, off_t size)
{
    return made_file(memfd_create("offer", MFD_CLOEXEC | MFD_ALLOW_SEALING), size + offer->more,
                     offer->seals);
}

static int open_path(const struct offer *offer, off_t size)
{
    return open(offer->path, offer->flags | O_CLOEXEC);
}

static int make_pipe(const struct offer *offer, off_t size)
{
    int ends[2];
    (void)offer, (void)size;
    if (pipe(ends) != 0)
        abort();
    close(ends[1]);
    return ends[0];
}

static const struct offer offers[] = {
    {.name = "a file of the window's size", .make = make_file, .flags = O_RDWR},
    {.name = "one that can be read only", .make = make_file, .flags = O_RDONLY},
    {.name = "a file of root's", .make = open_path, .path = "/etc/passwd", .flags = O_RDONLY},
    {.name = "memory that can shrink and grow", .make = make_memory},
    {.name = "memory that can shrink", .make = make_memory, .seals = F_SEAL_GROW | F_SEAL_SEAL},
    {.name = "sealed memory that is smaller", .make = make_memory, .more = -4096, .seals = SEALS},
    {.name = "sealed memory that is larger", .make = make_memory, .more = 4096, .seals = SEALS},
    {.name = "sealed memory that can be read only",
     .make = make_memory,
     .seals = SEALS | F_SEAL_WRITE},
    {.name = "a pipe", .make = make_pipe},
    {.name = "a folder", .make = open_path, .path = "/tmp", .flags = O_RDONLY | O_DIRECTORY},
    {.name = "a device", .make = open_path, .path = "/dev/zero", .flags = O_RDWR},
    {.name = "none"},
    {.name = "two of its window", .twice = true},
};

// The ranks.

struct member {
    pthread_t thread;
    struct rank rank;
    struct weir_transport_setup setup;
    struct offer *offer; // of the malicious one
};

static void *join(void *argument)
{
    struct member *it = argument;
    offered = it->offer;
    (void)rank_join(&it->rank, &it->setup);
    rank_leave(&it->rank);
    offered = NULL;
    return NULL;
}

static void expect_unchanged(const struct offer *offer)
{
    char text[sizeof mark] = "";
    struct stat state;
    if (fstat(offer->file, &state) != 0 || !S_ISREG(state.st_mode))
        return;
    for (off_t at = 0; at <= 4096; at += 4096)
        if (pread(offer->file, text, sizeof text, at) == (ssize_t)sizeof text)
            EXPECT_STR_EQ(text, mark);
}

static void expect_answer(struct offer offer)
{
    static struct member members[RANKS];
    struct place place = place_open("unix:");
    const int before = test_descriptors();
    int told = 0;
    offer.file = -1;
    for (uint32_t i = 0; i < RANKS; i++) {
        members[i] = (struct member){.rank = {.rank = i},
                                     .setup = place_setup(place.rendezvous, RANKS, RANKS_PATIENCE),
                                     .offer = i == 1 ? &offer : NULL};
        pthread_create(&members[i].thread, NULL, join, &members[i]);
    }
    for (int i = 0; i < RANKS; i++) {
        pthread_join(members[i].thread, NULL);
        if (i == 1)
            continue;
        EXPECT_INT_EQ(members[i].rank.status, offer.twice ? WEIR_OK : WEIR_ERROR_COMM);
        told += strstr(members[i].rank.error.message, "cannot take from rank 1 the memory") != NULL;
    }
    if (told == 0 && !offer.twice) // the other one may have met the end of the first
        WEIR_FAIL("%s: %s", offer.name, members[0].rank.error.message);
    if (!offer.path)
        expect_unchanged(&offer);
    local_close(&offer.file);
    EXPECT_INT_EQ(test_descriptors(), before);
    EXPECT_INT_EQ(test_host_blocks(), 1);
    EXPECT_TRUE(place_close(&place));
}

WEIR_TEST(Offers, AreRefusedUnlessTheyAreWindows)
{
    ranks_state();
    for (size_t i = 0; i < sizeof offers / sizeof *offers; i++)
        expect_answer(offers[i]);
}
