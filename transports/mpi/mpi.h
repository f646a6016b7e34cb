// The transport "mpi": what its files share.
//
//   abi.c      which library, of which ABI: Open MPI, MPICH, and libraries with the standard's
//   call.c     waiting for requests, and for all ranks, which compare their calls (transports/kit/call.h); the
//              collectives, and messages between two ranks
//   group.c    MPI in this process: its start, its end, and the group of all ranks; the life of groups, and what ranks
//              tell each other at any time: a failure, a departure; and the module
//
// MPI's own functions cannot be ended, so each wait is a loop over MPI_Test with a deadline, and MPI is
// given memory of the group only, never the caller's: a request that never ends then holds nothing
// that the caller may free. Such a group is kept for ever.
//
// Reductions move the ranks' elements, and each is added up on one rank in the order of ranks: MPI
// promises no order, and lacks types. All ranks get the same bits, and so does every run.
//
// All ranks come together before each collective: rank 0 hears what each of them calls, compares it,
// and tells them to begin.
#ifndef WEIR_MPI_MPI_H
#define WEIR_MPI_MPI_H

#include <stdatomic.h>
#include <stdbool.h>

#include <weir/comm.h>
#include <weir/module/error.h>
#include <weir/module/transport.h>

#include "transports/kit/call.h"

// abi.c

// Which constants a library has, and which handles from the start.
enum mpi_abi {
    MPI_NONE,
    MPI_OPEN_MPI,
    MPI_MPICH,
    MPI_STANDARD,
};

// Handles that a library has from the start, and its other constants.
struct mpi_constants {
    void *world, *byte, *return_errors; // NULL: symbols
    void *status_ignore;
    int any_source;
    int thread_multiple;
};

// What the transport calls of an MPI library, without its headers.
#define MPI_FUNCTIONS(X)                                                                \
    X(Initialized, (int *))                                                             \
    X(Finalized, (int *))                                                               \
    X(Init_thread, (int *, char ***, int, int *))                                       \
    X(Finalize, (void))                                                                 \
    X(Query_thread, (int *))                                                            \
    X(Error_string, (int, char *, int *))                                               \
    X(Comm_rank, (void *, int *))                                                       \
    X(Comm_size, (void *, int *))                                                       \
    X(Comm_dup, (void *, void **))                                                      \
    X(Comm_split, (void *, int, int, void **))                                          \
    X(Comm_free, (void **))                                                             \
    X(Comm_set_errhandler, (void *, void *))                                            \
    X(Isend, (const void *, int, void *, int, int, void *, void **))                    \
    X(Irecv, (void *, int, void *, int, int, void *, void **))                          \
    X(Improbe, (int, int, void *, int *, void **, void *))                              \
    X(Mrecv, (void *, int, void *, void **, void *))                                    \
    X(Iallgather, (const void *, int, void *, void *, int, void *, void *, void **))    \
    X(Ialltoall, (const void *, int, void *, void *, int, void *, void *, void **))     \
    X(Igather, (const void *, int, void *, void *, int, void *, int, void *, void **))  \
    X(Iscatter, (const void *, int, void *, void *, int, void *, int, void *, void **)) \
    X(Ibcast, (void *, int, void *, int, void *, void **))                              \
    X(Cancel, (void **))                                                                \
    X(Test, (void **, int *, void *))

// The library that the process uses. Handles have the type of a pointer in each ABI, and are NULL before they are stored;
// the functions return 0 or an error of MPI's.
struct mpi_library {
    enum mpi_abi abi;
    char name[256];     // "": none is open
    char version[8192]; // as long as MPICH's may be; such as "Open MPI 4.1.4"
    struct mpi_constants its;
#define X(name, arguments) int(*name) arguments;
    MPI_FUNCTIONS(X)
#undef X
};
extern struct mpi_library mpi;

// Loads a library, `name` or the first that is found. Once for a process: later calls find it again.
weir_status mpi_library_open(const struct weir_host *host, const char *name);

struct mpi_request {
    void *handle;
    bool active;
    bool receives;        // one message, so it can be cancelled
    const char *function; // of MPI's, which has begun it
};

// These two begin a request, unless there is an error.
int mpi_message(bool receives, void *bytes, size_t size, uint32_t peer, int tag, void *comm,
                struct mpi_request *request);
// Of one rank's part of `size` bytes: all-gather, all-to-all, gather, scatter; or a broadcast within `src`.
int mpi_collective(weir_collective kind, void *src, void *dst, size_t size, uint32_t root,
                   void *comm, struct mpi_request *request);
// Looks whether it has ended: it is not active then.
int mpi_test(struct mpi_request *request);

enum {
    // Tags of messages.
    MPI_TAG_ARRIVE = 1,
    MPI_TAG_BEGIN,
    MPI_TAG_POST,
    MPI_TAG_PARTS, // and above: one for each message between two ranks that is under way
    MPI_TAG_LIMIT = 32767,
};

// Of a group on all its ranks.
struct mpi_id {
    uint64_t number;
    int64_t color;
};

// What this rank knows of another one.
struct mpi_peer {
    uint32_t world;        // its rank in MPI_COMM_WORLD
    struct weir_head last; // its latest collective that was heard of, of number 0 before the first
    uint64_t left_after;   // the number of its last collective
    uint64_t left_ns;
    atomic_bool left; // with these two
};

struct mpi_group {
    struct weir_group base;
    struct mpi_group *next;
    struct mpi_id id;
    void *comm;
    uint32_t room;          // of the arrays below; a group that is being made may have fewer ranks
    struct weir_head head;  // of the call under way
    uint64_t last;          // the number of the last collective
    bool stuck;             // a request is left that may never end
    struct mpi_sent *post;  // on a failure or a departure
    struct mpi_peer *peers; // these three have one for each rank
    struct weir_head *heads;
    struct mpi_request *requests;
    size_t block; // bytes for each rank in both of the following
    char *src;
    char *dst;
};

// A call under way.
struct mpi_run {
    struct weir_caller by;
    struct mpi_group *group;
    const struct weir_transport_call *call; // NULL: a join or a split
    uint64_t idle_ns;                       // since when nothing has come
    uint64_t pause_ns;
    weir_collective moved; // these two of the last move
    size_t moved_size;
};

// group.c

// Receives what is there, for all groups.
void mpi_posts_poll(void);
// Makes the group dead unless it is, and tells the other ranks.
void mpi_posts_fail(void *group, const struct weir_cause *cause);

// call.c

// The failure of an MPI function, whose name is said.
bool mpi_fail_in(struct mpi_run *run, const char *function, int error);

struct mpi_run mpi_run_begin(struct mpi_group *group, struct weir_head head, uint64_t timeout_ns);
// Waits until all ranks have called the same. False: the group has failed.
bool mpi_meet(struct mpi_run *run);
// One of MPI's collectives, of a group that the call uses. False: the run's has failed.
bool mpi_move(struct mpi_run *run, struct mpi_group *group, weir_collective kind, size_t size,
              uint32_t root);

// For the module's table, with a group as the state.
weir_status mpi_run_call(void *state, const struct weir_transport_call *call);

#endif
