// Three ABIs of MPI: the same functions, with handles of different types and constants of different values.
#include "transports/mpi/mpi.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FUNCTIONS(X)                                                                         \
    X(MPI_Initialized, (int *))                                                              \
    X(MPI_Finalized, (int *))                                                                \
    X(MPI_Init_thread, (int *, char ***, int, int *))                                        \
    X(MPI_Finalize, (void))                                                                  \
    X(MPI_Query_thread, (int *))                                                             \
    X(MPI_Error_string, (int, char *, int *))                                                \
    X(MPI_Comm_rank, (HANDLE, int *))                                                        \
    X(MPI_Comm_size, (HANDLE, int *))                                                        \
    X(MPI_Comm_dup, (HANDLE, HANDLE *))                                                      \
    X(MPI_Comm_split, (HANDLE, int, int, HANDLE *))                                          \
    X(MPI_Comm_free, (HANDLE *))                                                             \
    X(MPI_Comm_set_errhandler, (HANDLE, HANDLE))                                             \
    X(MPI_Isend, (const void *, int, HANDLE, int, int, HANDLE, HANDLE *))                    \
    X(MPI_Irecv, (void *, int, HANDLE, int, int, HANDLE, HANDLE *))                          \
    X(MPI_Improbe, (int, int, HANDLE, int *, HANDLE *, void *))                              \
    X(MPI_Mrecv, (void *, int, HANDLE, HANDLE *, void *))                                    \
    X(MPI_Iallgather, (const void *, int, HANDLE, void *, int, HANDLE, HANDLE, HANDLE *))    \
    X(MPI_Ialltoall, (const void *, int, HANDLE, void *, int, HANDLE, HANDLE, HANDLE *))     \
    X(MPI_Igather, (const void *, int, HANDLE, void *, int, HANDLE, int, HANDLE, HANDLE *))  \
    X(MPI_Iscatter, (const void *, int, HANDLE, void *, int, HANDLE, int, HANDLE, HANDLE *)) \
    X(MPI_Ibcast, (void *, int, HANDLE, int, HANDLE, HANDLE *))                              \
    X(MPI_Cancel, (HANDLE *))                                                                \
    X(MPI_Test, (HANDLE *, int *, void *))

// Open MPI 1.7 and later: handles are pointers, and those that it has from the start are data symbols.
#define NAME(word) word##_open_mpi
#define HANDLE void *
#define FIELD pointer
#define TABLE_NAME "Open MPI"
#define WORLD NAME(at).ompi_mpi_comm_world
#define BYTE NAME(at).ompi_mpi_byte
#define RETURN_ERRORS NAME(at).ompi_mpi_errors_return
#define ANY_SOURCE (-1)
#define UNDEFINED (-32766)
#define STATUS_IGNORE NULL
#define THREAD_MULTIPLE 3
#define EXTRA(X)           \
    X(ompi_mpi_comm_world) \
    X(ompi_mpi_byte)       \
    X(ompi_mpi_errors_return)

#include "transports/mpi/abi_calls.h" // NOLINT(readability-duplicate-include)

// MPICH 3.1 and later, and libraries with its ABI: handles are numbers.
// https://www.mpich.org/abi/
#define NAME(word) word##_mpich
#define HANDLE int
#define FIELD number
#define TABLE_NAME "MPICH"
#define WORLD 0x44000000
#define BYTE 0x4c00010d
#define RETURN_ERRORS 0x54000001
#define ANY_SOURCE (-2)
#define UNDEFINED (-32766)
#define STATUS_IGNORE ((void *)1)
#define THREAD_MULTIPLE 3
#define EXTRA(X)

#include "transports/mpi/abi_calls.h" // NOLINT(readability-duplicate-include)

// The ABI of the standard, of any library: handles are pointers, and those that it has from the start are
// small numbers. MPI 5.0, chapter 20 and appendix A.1; https://github.com/mpi-forum/mpi-abi-stubs
#define NAME(word) word##_standard
#define HANDLE void *
#define FIELD pointer
#define TABLE_NAME "MPI"
#define CONSTANT(number) ((void *)(uintptr_t)(number))
#define WORLD CONSTANT(0x101)
#define BYTE CONSTANT(0x247)
#define RETURN_ERRORS CONSTANT(0x142)
#define ANY_SOURCE (-1)
#define UNDEFINED (-32766)
#define STATUS_IGNORE NULL
#define THREAD_MULTIPLE 4096
#define EXTRA(X)

#include "transports/mpi/abi_calls.h" // NOLINT(readability-duplicate-include)
