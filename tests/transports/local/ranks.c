#include "tests/transports/local/ranks.h"

#include <stdatomic.h>

#include "tests/support/test.h"

static void *opened;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_once(void)
{
    static const struct weir_setting secret_file = {.text = ""};
    const struct weir_setting *const all[] = {&secret_file};
    ranks_ops()->open(&test_host, all, &opened);
}

static void __attribute__((destructor)) close_once(void)
{
    if (opened)
        ranks_ops()->close(opened);
}

// Opened once for all tests.
void *ranks_state(void)
{
    pthread_once(&once, open_once);
    return opened;
}

struct weir_transport_setup ranks_setup(const char *wire)
{
    static atomic_int made;
    static _Thread_local char rendezvous[512];
    const int number = ++made;
    const char *folder = strcmp(wire, "file") == 0 ? getenv("TEST_TMPDIR") : NULL;
    snprintf(rendezvous, sizeof rendezvous, "%s:%s%srank.%d", wire, folder ? folder : "",
             folder ? "/" : "", number);
    return (struct weir_transport_setup){
        .struct_size = sizeof(struct weir_transport_setup),
        .label = "grads",
        .count = 2,
        .rendezvous = rendezvous,
        .timeout_ns = RANKS_PATIENCE,
        .file = "app.c",
        .line = 1,
    };
}

void ranks_await(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        continue;
}

weir_status rank_shrink(struct rank *rank, uint64_t timeout_ns)
{
    const struct weir_transport_shrink shrink = {.struct_size = sizeof shrink,
                                                 .label = "left",
                                                 .timeout_ns = timeout_ns};
    void *group = NULL;
    const weir_status status = ranks_ops()->shrink(rank->group, &shrink, &group);
    rank->error = test_host_state()->error;
    if (status != WEIR_OK)
        return status;
    rank_leave(rank);
    rank->group = group;
    rank->number = 0;
    ranks_ops()->place(group, &rank->rank, &rank->count);
    return WEIR_OK;
}

// With a body it runs that, and leaves.
static void *join(void *argument)
{
    struct joiner *joiner = argument;
    struct rank *rank = &joiner->rank;
    if (rank_join(rank, &joiner->setup) && joiner->failed)
        sem_post(joiner->failed);
    if (!joiner->body)
        return NULL;
    if (rank->status == WEIR_OK)
        rank->status = joiner->body(rank);
    if (rank->group)
        rank->failed = ranks_ops()->cause(rank->group, &rank->cause);
    rank_leave(rank);
    return NULL;
}

void rank_start(struct joiner *joiner, uint32_t rank, struct weir_transport_setup setup)
{
    *joiner = (struct joiner){.rank = {.rank = rank}, .setup = setup, .failed = joiner->failed};
    pthread_create(&joiner->thread, NULL, join, joiner);
}

weir_status rank_await(struct joiner *joiner)
{
    pthread_join(joiner->thread, NULL);
    return joiner->rank.status;
}

void ranks_expect_joined(struct joiner *joiners, int count)
{
    for (int i = 0; i < count; i++) {
        EXPECT_INT_EQ(rank_await(&joiners[i]), WEIR_OK);
        EXPECT_STR_EQ(joiners[i].rank.status ? joiners[i].rank.error.message : "", "");
    }
    for (int i = 0; i < count; i++)
        rank_leave(&joiners[i].rank);
}

void ranks_run(const char *wire, uint32_t count, weir_status (*body)(struct rank *rank), void *user,
               struct rank *out_ranks)
{
    struct joiner joiners[RANKS_MAX];
    struct weir_transport_setup setup = ranks_setup(wire);
    setup.count = count;
    for (uint32_t i = 0; i < count; i++) {
        joiners[i] = (struct joiner){.rank = {.rank = i, .count = count, .user = user},
                                     .setup = setup,
                                     .body = body};
        pthread_create(&joiners[i].thread, NULL, join, &joiners[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        pthread_join(joiners[i].thread, NULL);
        out_ranks[i] = joiners[i].rank;
    }
}

void ranks_expect(const char *wire, uint32_t count, weir_status (*body)(struct rank *rank),
                  void *user)
{
    struct rank ranks[RANKS_MAX];
    ranks_run(wire, count, body, user, ranks);
    for (uint32_t i = 0; i < count; i++) {
        EXPECT_INT_EQ(ranks[i].status, WEIR_OK);
        EXPECT_STR_EQ(ranks[i].status ? ranks[i].error.message : "", "");
    }
}
