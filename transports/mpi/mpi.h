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

// Of a communicator or a request: a number in MPICH, else a pointer.
union mpi_handle {
    int number;
    void *pointer;
};

// What the transport calls of an MPI library, without its headers: those of different libraries declare the same
// functions with handles of different types and constants of different values.
//
// All functions return 0 or an error of MPI's. Requests end in test() alone.
struct mpi_abi {
    const char *name;
    // Looks up all symbols in a library that dlopen() returned; else the name of one that it lacks is
    // stored. A process has one MPI, so the symbols are kept for the process.
    bool (*load)(void *library, const char **out_missing);
    void (*state)(bool *out_initialized, bool *out_finalized);
    int (*init)(void); // with MPI_THREAD_MULTIPLE
    int (*finalize)(void);
    // Whether any thread may call it at any time.
    int (*is_threaded)(bool *out_threaded);
    int (*error)(int error, char *text, int *out_size); // 1024 bytes of text
    union mpi_handle (*world)(void);
    int (*place)(union mpi_handle comm, int *out_rank, int *out_size);
    // The new communicators return errors, in place of ending the process.
    int (*duplicate)(union mpi_handle comm, union mpi_handle *out_comm);
    // A negative color: the part is none, `*out_any` false.
    int (*split)(union mpi_handle comm, int color, int key, union mpi_handle *out_comm,
                 bool *out_any);
    int (*free)(union mpi_handle *comm);
    int (*send)(const void *bytes, int size, int peer, int tag, union mpi_handle comm,
                union mpi_handle *out_request);
    int (*receive)(void *bytes, int size, int peer, int tag, union mpi_handle comm,
                   union mpi_handle *out_request);
    // Receives a message from any rank, if one is there.
    int (*take)(void *bytes, int size, int tag, union mpi_handle comm, bool *out_taken);
    // Of one rank's part of `size` bytes: all-gather, all-to-all, gather, scatter; or a broadcast within `src`.
    int (*collective)(weir_collective kind, void *src, void *dst, int size, int root,
                      union mpi_handle comm, union mpi_handle *out_request);
    int (*test)(union mpi_handle *request, bool *out_done);
    // Ends a receive(), unless its message is coming already.
    int (*cancel)(union mpi_handle *request, bool *out_done);
};

extern const struct mpi_abi mpi_abi_mpich;
extern const struct mpi_abi mpi_abi_open_mpi;
extern const struct mpi_abi mpi_abi_standard;

enum {
    MPI_LABEL_SIZE = 64,
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

struct mpi_request {
    union mpi_handle handle;
    bool active;
    bool receives; // one message, so it can be cancelled
};

// What this rank knows of another one.
struct mpi_peer {
    uint32_t world; // its rank in MPI_COMM_WORLD
    bool heard;
    struct weir_head last; // if heard
    bool left;             // this and the rest: guarded by the posts' lock
    uint64_t left_after;   // the number of its last collective
    uint64_t left_ns;
};

struct mpi_group {
    struct mpi_group *next;
    const struct weir_host *host;
    struct mpi_id id;
    union mpi_handle comm;
    uint32_t rank;
    uint32_t count;
    uint32_t room; // of the arrays below; a group that is being made may have fewer ranks
    char label[MPI_LABEL_SIZE];
    struct weir_head head; // of the call under way
    uint64_t last;         // the number of the last collective
    bool stuck;            // a request is left that may never end
    atomic_bool dead;
    struct weir_cause cause; // if dead
    struct mpi_sent *post;   // on a failure or a departure
    struct mpi_peer *peers;  // these three have one for each rank
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
    uint64_t deadline_ns;                   // of weir_clock_now_ns()
    uint64_t idle_ns;                       // since when nothing has come
    uint64_t pause_ns;
    weir_collective moved; // these two of the last move
    size_t moved_size;
};

// abi.c

// Loads a library, `name` or the first that is found. Once for a process: later calls find it again.
weir_status mpi_library_open(const struct weir_host *host, const char *name);
// After it has been opened.
const struct mpi_abi *mpi_library(void);
const char *mpi_library_version(void);

// group.c

// Receives what is there, for all groups.
void mpi_posts_poll(void);
// Makes the group dead unless it is, and tells the other ranks.
void mpi_posts_fail(void *group, const struct weir_cause *cause);
// Whether the peer has left, and when it had done how many collectives.
bool mpi_posts_left(struct mpi_group *group, uint32_t peer, uint64_t *out_after,
                    uint64_t *out_since_ns);

// call.c

// The failure of an MPI function.
bool mpi_fail_in(struct mpi_run *run, const char *function, int error);
// Tells the host the group's first cause, and returns WEIR_ERROR_COMM.
weir_status mpi_report(const struct mpi_group *group);

enum mpi_wait {
    MPI_DONE,
    MPI_FAILED, // the group is dead
    MPI_LATE,   // the deadline has passed, and the group is not dead yet
};

struct mpi_run mpi_run_begin(struct mpi_group *group, struct weir_head head, uint64_t timeout_ns);
// Waits for requests; what is not done is abandoned.
enum mpi_wait mpi_wait_all(struct mpi_run *run, struct mpi_request *requests, size_t count,
                           uint64_t deadline_ns);
// Waits until all ranks have called the same. False: the group has failed.
bool mpi_meet(struct mpi_run *run);

// For the module's table, with a group as the state.
weir_status mpi_run_call(void *state, const struct weir_transport_call *call);

#endif
