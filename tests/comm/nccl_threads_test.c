// Communicators by NCCL where one rank gets no thread for its pulse: no rank has one, and all are told why. The rule in
// BUILD makes the linker use this function instead of the C library's; modules keep theirs.
#include <errno.h>
#include <pthread.h>

#include "tests/comm/rig.h"

enum {
    RANKS = 3,
    DOOMED = 1
};

static _Thread_local bool is_doomed;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*function)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*function)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*function)(void *), void *argument)
{
    return is_doomed ? EAGAIN : __real_pthread_create(thread, attributes, function, argument);
}

struct rank {
    pthread_t thread;
    weir_device *device;
    uint32_t rank;
    weir_comm *comm;
    weir_status status;
    char message[1024];
};

static void *create(void *user)
{
    struct rank *rank = user;
    is_doomed = rank->rank == DOOMED;
    rank->status =
        weir_comm_create(rank->device,
                         WEIR_PARAMS(weir_comm, .label = "grads", .rank = rank->rank,
                                     .count = RANKS, .rendezvous = "process:nccl-threads"),
                         &rank->comm);
    snprintf(rank->message, sizeof rank->message, "%s", weir_last_error_text());
    return NULL;
}

WEIR_TEST(CommNcclThreads, ARankWithoutAPulse)
{
    own_comm_rig rig = {0};
    struct rank ranks[RANKS];
    comm_rig_open_ranks(&rig, "", RANKS);
    for (uint32_t i = 0; i < RANKS; i++) {
        ranks[i] = (struct rank){.device = rig.devices[i], .rank = i};
        ASSERT_INT_EQ(__real_pthread_create(&ranks[i].thread, NULL, create, &ranks[i]), 0);
    }
    for (uint32_t i = 0; i < RANKS; i++) {
        pthread_join(ranks[i].thread, NULL);
        EXPECT_INT_EQ(ranks[i].status, i == DOOMED ? WEIR_ERROR_SYSTEM : WEIR_ERROR_COMM);
        EXPECT_TRUE(!ranks[i].comm);
        EXPECT_CONTAINS(ranks[i].message, "no thread for communicator 'grads'");
    }
}
