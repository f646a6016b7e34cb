// Ranks in processes of their own: what they send lies in a file that all have mapped. They meet twice in a
// collective: all have written, all have read. As with NCCL nothing tells of a rank that has gone.
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fake.h"

enum {
    MOST_RANKS = 16,
    SLOT_BYTES = 1 << 20,
    HEADER_BYTES = 4096,
};

struct fake_share {
    atomic_int joined;
    struct {
        atomic_ulong phase;
        atomic_size_t count;
    } ranks[MOST_RANKS];
};

static char *slot(struct fake_share *share, int rank)
{
    return (char *)share + HEADER_BYTES + (size_t)rank * SLOT_BYTES;
}

const char *fake_share_folder(void)
{
    return getenv("WEIR_TEST_NCCL_FOLDER");
}

struct fake_share *fake_share_open(const char *id)
{
    char path[512];
    const size_t size = HEADER_BYTES + (size_t)MOST_RANKS * SLOT_BYTES;
    snprintf(path, sizeof path, "%s/%s", fake_share_folder(), id);
    const int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, (off_t)size) != 0)
        abort();
    struct fake_share *share = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (share == MAP_FAILED)
        abort();
    close(file);
    return share;
}

void fake_share_close(struct fake_share *share)
{
    munmap(share, HEADER_BYTES + (size_t)MOST_RANKS * SLOT_BYTES);
}

// With the lock, which is released meanwhile.
static void pause_unlocked(void)
{
    const struct timespec pause = {.tv_nsec = 100000};
    pthread_mutex_unlock(&fake_lock);
    nanosleep(&pause, NULL);
    pthread_mutex_lock(&fake_lock);
}

void fake_share_join(struct fake_share *share, int count)
{
    atomic_fetch_add(&share->joined, 1);
    while (atomic_load(&share->joined) < count)
        pause_unlocked();
}

static bool meet(struct ncclComm *comm)
{
    struct fake_share *share = comm->clique->share;
    const unsigned long phase = atomic_fetch_add(&share->ranks[comm->rank].phase, 1) + 1;
    for (int i = 0; i < comm->clique->count; i++)
        while (atomic_load(&share->ranks[i].phase) < phase && !fake_is_released(comm))
            pause_unlocked();
    return !fake_is_released(comm);
}

void fake_share_collective(struct fake_call *call)
{
    struct fake_clique *clique = call->comm->clique;
    struct fake_share *share = clique->share;
    struct fake_call others[MOST_RANKS];
    const int parts = call->kind == FAKE_REDUCE_SCATTER ? clique->count : 1;
    const size_t bytes = call->count * fake_size(call->type) * (size_t)parts;
    if (bytes > SLOT_BYTES || clique->count > MOST_RANKS || call->kind == FAKE_MESSAGES)
        abort();
    if (call->src)
        memcpy(slot(share, call->comm->rank), call->src, bytes);
    atomic_store(&share->ranks[call->comm->rank].count, call->count);
    call->result = calloc((size_t)clique->count, bytes + 1);
    if (call->result && meet(call->comm)) {
        for (int i = 0; i < clique->count; i++) {
            others[i] = *call;
            others[i].src = slot(share, i);
            others[i].count = atomic_load(&share->ranks[i].count);
            clique->calls[i] = &others[i];
        }
        const size_t size = fake_read_others(call);
        if (meet(call->comm) && size)
            memcpy(call->dst, call->result, size);
    }
    free(call->result);
}
