// Shared by the files of the fake libnccl: see control.h.
#ifndef WEIR_TESTS_SUPPORT_LIBNCCL_FAKE_H
#define WEIR_TESTS_SUPPORT_LIBNCCL_FAKE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/cuda/libraries.h"

enum fake_kind {
    FAKE_ALL_REDUCE,
    FAKE_REDUCE,
    FAKE_BROADCAST,
    FAKE_ALL_GATHER,
    FAKE_REDUCE_SCATTER,
    FAKE_MESSAGES,
};

// A send or receive of a group.
struct fake_message {
    struct fake_message *next;
    bool receive;
    int peer;
    size_t size;
    char *memory;
};

struct fake_call {
    enum fake_kind kind;
    const char *src;
    char *dst;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t reduction;
    int root;
    struct fake_message *messages;
    struct ncclComm *comm;
};

struct fake_post {
    struct fake_post *next;
    int from;
    int to;
    const struct fake_message *message;
};

// The ranks of one unique id.
struct fake_clique {
    struct fake_clique *next;
    char id[NCCL_UNIQUE_ID_BYTES];
    int count;
    int joined;
    int members;
    bool stuck; // a call outlives its communicator: it stays
    struct fake_post *posts;
    struct fake_share *share;
};

struct ncclComm {
    struct fake_clique *clique;
    int rank;
    bool aborted;
    long under_way; // calls that are on a stream
    struct ncclComm *next_dead;
};

// One lock for all state, and one condition for every change of it.
extern pthread_mutex_t fake_lock;
extern pthread_cond_t fake_changed;

// See the control `endless`.
extern bool fake_endless;

// meet.c, with the lock: what ranks send each other, in memory, or in a file of the folder if they are in processes of
// their own. NULL: there is no folder.
struct fake_share;
const char *fake_share_folder(void);
struct fake_share *fake_share_open(const char *id);
void fake_share_close(struct fake_share *share);
// Of processes.
void fake_share_join(struct fake_share *share, int count);

size_t fake_size(ncclDataType_t type);

void fake_messages_drop(struct fake_message *messages);
// Carries out a call, a struct fake_call, on the thread of its stream, and frees it.
void fake_meet(void *user);

#endif
