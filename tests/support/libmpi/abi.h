// The ABI that the fake has: FAKE_OPEN_MPI or FAKE_STANDARD is defined. Objects of the fake have handles: their
// addresses.
#ifndef WEIR_TESTS_SUPPORT_LIBMPI_ABI_H
#define WEIR_TESTS_SUPPORT_LIBMPI_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef void *handle;

#ifdef FAKE_STANDARD
#define FAKE_WORLD ((void *)(uintptr_t)0x101)
#define FAKE_BYTE ((void *)(uintptr_t)0x247)
#define FAKE_RETURN_ERRORS ((void *)(uintptr_t)0x142)
#define FAKE_ANY_SOURCE (-1)
#define FAKE_IGNORE NULL
#define FAKE_MULTIPLE 4096
#define FAKE_VERSION "An MPI 5.0 of the tests"
#else
extern char ompi_mpi_comm_world, ompi_mpi_byte, ompi_mpi_errors_return;
#define FAKE_WORLD ((void *)&ompi_mpi_comm_world)
#define FAKE_BYTE ((void *)&ompi_mpi_byte)
#define FAKE_RETURN_ERRORS ((void *)&ompi_mpi_errors_return)
#define FAKE_ANY_SOURCE (-1)
#define FAKE_IGNORE NULL
#define FAKE_MULTIPLE 3
#define FAKE_VERSION "Open MPI v4.1.4 of the tests, package: none"
#endif

int MPI_Get_library_version(char *text, int *size);
int MPI_Initialized(int *flag);
int MPI_Finalized(int *flag);
int MPI_Init_thread(int *count, char ***arguments, int required, int *provided);
int MPI_Finalize(void);
int MPI_Query_thread(int *provided);
int MPI_Error_string(int error, char *text, int *size);
int MPI_Comm_rank(handle at, int *rank);
int MPI_Comm_size(handle at, int *count);
int MPI_Comm_set_errhandler(handle at, handle handler);
int MPI_Comm_split(handle at, int color, int key, handle *out);
int MPI_Comm_dup(handle at, handle *out);
int MPI_Comm_free(handle *at);
int MPI_Isend(const void *bytes, int size, handle type, int to, int tag, handle at, handle *out);
int MPI_Irecv(void *bytes, int size, handle type, int from, int tag, handle at, handle *out);
int MPI_Improbe(int from, int tag, handle at, int *found, handle *out, void *status);
int MPI_Mrecv(void *bytes, int size, handle type, handle *at, void *status);
int MPI_Test(handle *at, int *done, void *status);
int MPI_Cancel(handle *at);
int MPI_Iallgather(const void *src, int size, handle type, void *dst, int dst_size, handle dst_type,
                   handle at, handle *out);
int MPI_Ialltoall(const void *src, int size, handle type, void *dst, int dst_size, handle dst_type,
                  handle at, handle *out);
int MPI_Igather(const void *src, int size, handle type, void *dst, int dst_size, handle dst_type,
                int root, handle at, handle *out);
int MPI_Iscatter(const void *src, int size, handle type, void *dst, int dst_size, handle dst_type,
                 int root, handle at, handle *out);
int MPI_Ibcast(void *bytes, int size, handle type, int root, handle at, handle *out);
#ifdef FAKE_STANDARD
int MPI_Abi_get_version(int *major, int *minor);
#endif

#endif
