// What the transport calls of an MPI library, without its headers: those of Open MPI, of MPICH and of the
// standard's ABI declare the same functions with handles of different types and constants of
// different values.
//
// All functions return 0 or an error of MPI's. Requests end in test() alone.
#ifndef WEIR_MPI_ABI_H
#define WEIR_MPI_ABI_H

#include <stdbool.h>
#include <weir/comm.h>

// Of a communicator or a request: a number in MPICH, else a pointer.
union mpi_handle {
    int number;
    void *pointer;
};

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

#endif
