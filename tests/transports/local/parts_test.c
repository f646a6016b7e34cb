// How ranks of one process meet, and in which cases they do not; and what a rank believes of what another one says or offers.
//
// NOLINTNEXTLINE(bugprone-reserved-identifier): for memfd_create(), seals and SOCK_NONBLOCK
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/test.h"
#include "tests/transports/local/ranks.h"
#include "transports/kit/reduce.h"
#include "transports/local/local.h"

// With some luck the others have not woken when the last one to come aborts: they have joined all the same.
static weir_status abort_at_once(struct rank *rank)
{
    ranks_ops()->abort(rank->group, "the loss is not a number");
    return WEIR_OK;
}

WEIR_TEST(Threads, AllHaveJoinedWhenOneFails)
{
    for (int turn = 0; turn < 50; turn++) {
        struct rank ranks[RANKS_MAX];
        ranks_run("process", 4, abort_at_once, NULL, ranks);
        for (uint32_t i = 0; i < 4; i++)
            ASSERT_INT_EQ(ranks[i].status, WEIR_OK);
    }
    EXPECT_INT_EQ(test_host_blocks(), 1);
}

WEIR_TEST(Threads, RefusesMoreRanksThanItCanServe)
{
    struct rank rank = {.rank = 0};
    struct weir_transport_setup setup = ranks_setup("process");
    setup.count = 5000;
    EXPECT_INT_EQ(rank_join(&rank, &setup), WEIR_ERROR_UNSUPPORTED);
    EXPECT_CONTAINS(rank.error.message, "at most 4096 ranks, not 5000");
}

// One rank needs no place; and a name is free again as soon as all ranks of a group are there.
WEIR_TEST(Threads, OfGroupsOfOne)
{
    struct weir_transport_setup setups[] = {ranks_setup("process"), ranks_setup("process")};
    struct rank ranks[3] = {{.rank = 0}};
    setups[0].rendezvous = NULL;
    for (int i = 0; i < 3; i++) {
        setups[i > 0].count = 1;
        EXPECT_INT_EQ(rank_join(&ranks[i], &setups[i > 0]), WEIR_OK);
    }
    for (int i = 0; i < 3; i++) {
        EXPECT_INT_EQ(rank_barrier(&ranks[i]), WEIR_OK);
        rank_leave(&ranks[i]);
    }
}

// Every float16 and bfloat16, and the float32 half way between each two.

// By the definition of the format: `bits` of mantissa, and an exponent with that bias.
static double defined(uint16_t number, int mantissa_bits, int bias)
{
    const int exponent = (number & 0x7FFF) >> mantissa_bits;
    const double mantissa = number & ((1 << mantissa_bits) - 1);
    const double lead = exponent > 0 ? ldexp(1, mantissa_bits) : 0;
    const double value =
        ldexp(lead + mantissa, (exponent > 0 ? exponent : 1) - bias - mantissa_bits);
    return number & 0x8000 ? -value : value;
}

#define CHECK_FORMAT(format, mantissa_bits, bias, infinity)                               \
    do {                                                                                  \
        uint32_t wrong = 0;                                                               \
        for (uint32_t i = 0; i < (infinity); i++) {                                       \
            for (uint32_t sign = 0; sign <= 0x8000; sign += 0x8000) {                     \
                const uint16_t number = (uint16_t)(i | sign);                             \
                const float value = weir_half_from_##format(number);                      \
                wrong += value != defined(number, mantissa_bits, bias);                   \
                wrong += weir_half_to_##format(value) != number;                          \
                const double next = defined((uint16_t)(number + 1), mantissa_bits, bias); \
                const float middle = (float)((value + next) / 2);                         \
                const uint16_t even = (uint16_t)(number + (number & 1));                  \
                wrong += middle != INFINITY && weir_half_to_##format(middle) != even;     \
                wrong += weir_half_to_##format(nextafterf(middle, value)) != number;      \
                const float above = nextafterf(middle, (float)next);                      \
                wrong += fabsf(above) > fabsf(middle) &&                                  \
                         weir_half_to_##format(above) != (uint16_t)(number + 1);          \
            }                                                                             \
        }                                                                                 \
        EXPECT_UINT_EQ(wrong, 0u);                                                        \
        EXPECT_UINT_EQ(weir_half_to_##format(INFINITY), (infinity));                      \
        EXPECT_UINT_EQ(weir_half_to_##format(-INFINITY), (infinity) | 0x8000u);           \
        EXPECT_TRUE(isinf(weir_half_from_##format(infinity)));                            \
        EXPECT_TRUE(isnan(weir_half_from_##format((infinity) + 1)));                      \
        EXPECT_TRUE(isnan(weir_half_from_##format(weir_half_to_##format(NAN))));          \
    } while (0)

WEIR_TEST(Half, RoundsEachFloat16ToNearestEven)
{
    CHECK_FORMAT(f16, 10, 15, 0x7C00);
}

WEIR_TEST(Half, RoundsEachBfloat16ToNearestEven)
{
    CHECK_FORMAT(bf16, 7, 127, 0x7F80);
}

// What a rank takes from another process that says of a failure what it likes.

// The cause that rank 0 of two has after such news of rank 1.
static struct weir_cause hear(const struct weir_cause *said)
{
    const struct mesh_news news = {.kind = MESH_FAILED, .cause = *said};
    struct weir_cause heard = {.rank = 0};
    int sockets[2];
    struct local_group *group = local_mesh_create(&test_host, "grads", 0, 2);
    struct local_run run = local_run_begin(group, (struct weir_head){.kind = WEIR_BARRIER}, 1);
    EXPECT_INT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    EXPECT_INT_EQ(fcntl(sockets[0], F_SETFL, O_NONBLOCK), 0);
    group->peers[1].control = sockets[0];
    EXPECT_INT_EQ(write(sockets[1], &news, sizeof news), sizeof news);
    EXPECT_FALSE(local_mesh_read_news(&run, 1));
    EXPECT_TRUE(group->base.failed);
    heard = group->base.cause;
    close(sockets[1]);
    local_mesh_destroy(group);
    return heard;
}

// Its fault and rank are in their ranges, and its text cannot end a line of a log and begin another.
WEIR_TEST(News, AFailure)
{
    static const struct {
        struct weir_cause said;
        enum weir_transport_fault fault;
        uint32_t rank;
        const char *text;
    } rows[] = {
        {{WEIR_FAULT_DIED, 1, "rank 1 has died"}, WEIR_FAULT_DIED, 1, "rank 1 has died"},
        {{WEIR_FAULT_ABORTED + 1, 2, "no such"}, WEIR_FAULT_OTHER, UINT32_MAX, "no such"},
        {{UINT32_MAX, UINT32_MAX, "none"}, WEIR_FAULT_OTHER, UINT32_MAX, "none"},
        {{WEIR_FAULT_ABORTED, 1, "gone\n[weir] error: \x1b[31mall is lost\r"},
         WEIR_FAULT_ABORTED,
         1,
         "gone\\n[weir] error: \\x1b[31mall is lost\\r"},
    };
    struct weir_cause endless = {.rank = 1};
    EXPECT_CONTAINS(hear(&endless).text, "rank 1"); // has no text
    memset(endless.text, '\n', sizeof endless.text);
    EXPECT_NOT_CONTAINS(hear(&endless).text, "\n");
    EXPECT_UINT_LT(strnlen(hear(&endless).text, sizeof endless.text), sizeof endless.text);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct weir_cause heard = hear(&rows[i].said);
        EXPECT_UINT_EQ(heard.fault, rows[i].fault);
        EXPECT_UINT_EQ(heard.rank, rows[i].rank);
        EXPECT_STR_EQ(heard.text, rows[i].text);
    }
}

// A group of `count`, whose rank `own` is this one; `outs` are the other ranks' ends of its control lines.
static struct local_group *open_group(uint32_t own, uint32_t count, int *outs)
{
    struct local_group *group = local_mesh_create(&test_host, "grads", own, count);
    for (uint32_t i = 0; i < count; i++) {
        int pair[2];
        if (i == own)
            continue;
        EXPECT_INT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
        group->peers[i].address = local_address_at_number(1);
        group->peers[i].control = pair[0];
        outs[i] = pair[1];
    }
    return group;
}

// Rank 1 stops within its list of those that go on: it does not keep the others.
WEIR_TEST(News, AListThatStops)
{
    const struct weir_transport_shrink params = {.struct_size = sizeof params,
                                                 .label = "less",
                                                 .timeout_ns = 4 * RANKS_SECOND};
    const struct mesh_news news = {.kind = MESH_SETTLED, .step = 1, .listed = {3}};
    int outs[2];
    struct local_group *group = open_group(0, 2, outs);
    uint32_t rank = 9;
    uint32_t count = 9;
    void *less = NULL;
    ASSERT_INT_EQ(write(outs[1], &news, sizeof news - 1), sizeof news - 1);
    ASSERT_INT_EQ(local_shrink(group, &params, &less), WEIR_OK);
    weir_group_place(less, &rank, &count);
    EXPECT_UINT_EQ(rank, 0);
    EXPECT_UINT_EQ(count, 1);
    local_leave(less);
    local_leave(group);
    close(outs[1]);
}

// Ranks 0 and 1 are in the list; rank 2, which is not, comes after it and leaves. Rank 0 waits for rank 1 all the same.
WEIR_TEST(News, AListWithoutOneThatComesLate)
{
    const struct weir_transport_shrink params = {.struct_size = sizeof params,
                                                 .label = "less",
                                                 .timeout_ns = RANKS_SECOND};
    const struct mesh_news list[] = {{.kind = MESH_TELLS, .step = 1},
                                     {.kind = MESH_SETTLED, .step = 1, .listed = {3}}};
    const struct mesh_news late[] = {{.kind = MESH_TELLS, .step = 1}, {.kind = MESH_LEAVES}};
    int outs[3];
    struct local_group *group = open_group(0, 3, outs);
    void *less = NULL;
    ASSERT_INT_EQ(write(outs[1], list, sizeof list), sizeof list);
    ASSERT_INT_EQ(write(outs[2], late, sizeof late), sizeof late);
    EXPECT_INT_EQ(local_shrink(group, &params, &less), WEIR_ERROR_COMM);
    EXPECT_CONTAINS(test_host_state()->error.message, "rank 1 has not connected");
    local_leave(group);
    close(outs[1]), close(outs[2]);
}

// Rank 0 sends the list and tells that it cannot go on after all. When its door is found closed this rank has not read
// that, which comes after as much as is read at a time: it tells the first cause all the same, not its own.
WEIR_TEST(News, AFailureThatIsNotReadYet)
{
    const struct weir_transport_shrink params = {.struct_size = sizeof params,
                                                 .label = "less",
                                                 .timeout_ns = RANKS_SECOND};
    const struct mesh_news tells = {.kind = MESH_TELLS, .step = 1};
    const struct mesh_news list = {.kind = MESH_SETTLED, .step = 1, .listed = {3}};
    const struct mesh_news failed = {.kind = MESH_FAILED,
                                     .step = 1,
                                     .cause = {.text = "rank 0 has no host memory left"}};
    int outs[2];
    struct local_group *group = open_group(1, 2, outs);
    void *less = NULL;
    for (int i = 0; i < MESH_MOST_NEWS - 1; i++)
        ASSERT_INT_EQ(write(outs[0], &tells, sizeof tells), sizeof tells);
    ASSERT_INT_EQ(write(outs[0], &list, sizeof list), sizeof list);
    ASSERT_INT_EQ(write(outs[0], &failed, sizeof failed), sizeof failed);
    EXPECT_INT_EQ(local_shrink(group, &params, &less), WEIR_ERROR_COMM);
    EXPECT_STR_EQ(test_host_state()->error.message, failed.cause.text);
    EXPECT_NULL(less);
    local_leave(group);
    close(outs[0]);
}

// A rank that offers something else than its window: no group is made with it, and this rank neither changes what has been
// offered nor ends when that shrinks.

struct offer {
    const char *name;
    int (*make)(const struct offer *offer); // NULL: no file
    const char *path;                       // these two of what is opened
    int flags;
    off_t more; // these two of memory
    int seals;
    bool twice; // in one message, of which one is taken
};

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define WINDOW ((off_t)LOCAL_WINDOW_BYTES)

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

static int make_file(const struct offer *offer)
{
    char path[] = "/tmp/weir-test-XXXXXX";
    const int written = mkstemp(path);
    const int file = open(path, offer->flags | O_CLOEXEC);
    close(made_file(written, WINDOW, 0));
    unlink(path);
    return file;
}

static int make_memory(const struct offer *offer)
{
    return made_file(memfd_create("offer", MFD_CLOEXEC | MFD_ALLOW_SEALING), WINDOW + offer->more,
                     offer->seals);
}

static int open_path(const struct offer *offer)
{
    return open(offer->path, offer->flags | O_CLOEXEC);
}

static int make_pipe(const struct offer *offer)
{
    int ends[2];
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
    {.name = "two windows", .make = make_memory, .seals = SEALS, .twice = true},
};

// Of rank 1, one byte with descriptors beside it.
static void send_offer(int connection, int file, size_t count)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } passed = {.header = {.cmsg_level = SOL_SOCKET,
                           .cmsg_type = SCM_RIGHTS,
                           .cmsg_len = CMSG_LEN(count * sizeof file)}};
    char byte = 0;
    struct iovec one = {.iov_base = &byte, .iov_len = 1};
    const int files[] = {file, file};
    const struct msghdr message = {.msg_iov = &one,
                                   .msg_iovlen = 1,
                                   .msg_control = count ? &passed : NULL,
                                   .msg_controllen = count ? CMSG_SPACE(count * sizeof file) : 0};
    memcpy(CMSG_DATA(&passed.header), files, count * sizeof file);
    EXPECT_INT_EQ(sendmsg(connection, &message, 0), 1);
}

static void expect_answer(const struct offer *offer)
{
    struct local_group *group = local_mesh_create(&test_host, "grads", 0, 2);
    const int before = test_descriptors();
    const int file = offer->make ? offer->make(offer) : -1;
    char text[sizeof mark] = "";
    int pair[2];
    EXPECT_INT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    group->peers[1].data = pair[0];
    send_offer(pair[1], file, offer->twice ? 2 : file >= 0);
    weir_test_note("%s", offer->name);
    EXPECT_INT_EQ(local_window_exchange(group, UINT64_MAX), offer->twice);
    EXPECT_CONTAINS(group->base.cause.text,
                    offer->twice ? "" : "rank 0 cannot take from rank 1 the memory");
    for (off_t at = 0; !offer->path && at <= 4096; at += 4096)
        if (pread(file, text, sizeof text, at) == (ssize_t)sizeof text)
            EXPECT_STR_EQ(text, mark);
    local_mesh_destroy(group);
    close(file), close(pair[1]);
    EXPECT_INT_EQ(test_descriptors(), before);
}

WEIR_TEST(Offers, AreRefusedUnlessTheyAreWindows)
{
    const long before = test_host_blocks();
    for (size_t i = 0; i < sizeof offers / sizeof *offers; i++)
        expect_answer(&offers[i]);
    EXPECT_INT_EQ(test_host_blocks(), before);
}
