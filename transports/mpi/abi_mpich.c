// MPICH 3.1 and later, and libraries with its ABI: handles are numbers.
// https://www.mpich.org/abi/
#define HANDLE int
#define FIELD number
#define TABLE mpi_abi_mpich
#define TABLE_NAME "MPICH"
#define WORLD 0x44000000
#define BYTE 0x4c00010d
#define RETURN_ERRORS 0x54000001
#define ANY_SOURCE (-2)
#define UNDEFINED (-32766)
#define STATUS_IGNORE ((void *)1)
#define THREAD_MULTIPLE 3
#define EXTRA(X)

#include "transports/mpi/abi_calls.h"
