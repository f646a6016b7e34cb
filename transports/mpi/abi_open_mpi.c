// Open MPI 1.7 and later: handles are pointers, and those that it has from the start are data symbols.
#define HANDLE void *
#define FIELD pointer
#define TABLE mpi_abi_open_mpi
#define TABLE_NAME "Open MPI"
#define WORLD at.ompi_mpi_comm_world
#define BYTE at.ompi_mpi_byte
#define RETURN_ERRORS at.ompi_mpi_errors_return
#define ANY_SOURCE (-1)
#define UNDEFINED (-32766)
#define STATUS_IGNORE NULL
#define THREAD_MULTIPLE 3
#define EXTRA(X)           \
    X(ompi_mpi_comm_world) \
    X(ompi_mpi_byte)       \
    X(ompi_mpi_errors_return)

#include "transports/mpi/abi_calls.h"
