// The ABI of the standard, MPI 5.0, as far as the fake has it. Handles are the addresses of the fake's objects.
#ifndef WEIR_TESTS_SUPPORT_LIBMPI_ABI_H
#define WEIR_TESTS_SUPPORT_LIBMPI_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef void *handle;

#define FAKE_WORLD ((void *)(uintptr_t)0x101)
#define FAKE_BYTE ((void *)(uintptr_t)0x247)
#define FAKE_RETURN_ERRORS ((void *)(uintptr_t)0x142)
#define FAKE_ANY_SOURCE (-1)
#define FAKE_IGNORE NULL

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
int MPI_Abi_get_version(int *major, int *minor);

#endif
