// What a rank takes from another process that says of a failure what it likes.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/test.h"
#include "tests/transports/local/ranks.h"
#include "transports/local/mesh.h"

// The cause that rank 0 of two has after such news of rank 1.
static struct weir_cause hear(const struct weir_cause *said)
{
    const struct mesh_news news = {.kind = MESH_FAILED, .cause = *said};
    struct weir_cause heard = {.number = 0};
    int sockets[2];
    struct mesh_group *group = local_mesh_create(&ranks_host, "grads", 0, 2);
    struct local_run run = {.group = &group->local};
    EXPECT_INT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    EXPECT_INT_EQ(fcntl(sockets[0], F_SETFL, O_NONBLOCK), 0);
    group->peers[1].control = sockets[0];
    EXPECT_INT_EQ(write(sockets[1], &news, sizeof news), sizeof news);
    EXPECT_FALSE(local_mesh_read_news(&run, 1));
    EXPECT_TRUE(local_mesh_wire.cause(&group->local, &heard));
    close(sockets[1]);
    local_mesh_destroy(group);
    return heard;
}

WEIR_TEST(News, AFailure)
{
    const struct weir_cause heard = hear(&(struct weir_cause){
        .number = 17, .fault = WEIR_FAULT_DIED, .rank = 1, .text = "rank 1 has died"});
    EXPECT_UINT_EQ(heard.number, 17);
    EXPECT_UINT_EQ(heard.fault, WEIR_FAULT_DIED);
    EXPECT_UINT_EQ(heard.rank, 1);
    EXPECT_STR_EQ(heard.text, "rank 1 has died");
}

WEIR_TEST(News, NoSuchRankOrFault)
{
    struct weir_cause said = {.fault = WEIR_FAULT_ABORTED + 1, .rank = 2, .text = "why"};
    struct weir_cause heard = hear(&said);
    EXPECT_UINT_EQ(heard.fault, WEIR_FAULT_OTHER);
    EXPECT_UINT_EQ(heard.rank, UINT32_MAX);
    said.fault = UINT32_MAX;
    said.rank = UINT32_MAX;
    heard = hear(&said);
    EXPECT_UINT_EQ(heard.fault, WEIR_FAULT_OTHER);
    EXPECT_UINT_EQ(heard.rank, UINT32_MAX);
}

// As many as there is room for.
WEIR_TEST(News, ALongCircle)
{
    char text[WEIR_CAUSE_SIZE] = "";
    for (uint32_t i = 0; i < 20; i++)
        local_append_wait(text, &(struct local_wait){.rank = i,
                                                     .awaits = i + 1,
                                                     .call = "recv (app.c:12)"});
    EXPECT_CONTAINS(text, "rank 0 waits in recv (app.c:12) for rank 1, rank 1 waits");
    EXPECT_STR_EQ(text + strlen(text) - strlen(", and so on"), ", and so on");
    EXPECT_UINT_LT(strlen(text), WEIR_CAUSE_SIZE - 80);
}

// It cannot end a line of a log and begin another, whatever the length, nor go on past its room.
WEIR_TEST(News, ATextOfSeveralLines)
{
    struct weir_cause said = {.fault = WEIR_FAULT_ABORTED, .rank = 1};
    snprintf(said.text, sizeof said.text, "gone\n[weir] error: \x1b[31mall is lost\r");
    EXPECT_STR_EQ(hear(&said).text, "gone\\n[weir] error: \\x1b[31mall is lost\\r");
    for (size_t i = 0; i < sizeof said.text; i++)
        said.text[i] = '\n';
    const struct weir_cause heard = hear(&said);
    EXPECT_NOT_CONTAINS(heard.text, "\n");
    EXPECT_UINT_EQ(heard.text[sizeof heard.text - 1], 0);
}
