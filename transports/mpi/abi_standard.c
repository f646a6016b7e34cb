// The ABI of the standard, of any library: handles are pointers, and those that it has from the start are
// small numbers. MPI 5.0, chapter 20 and appendix A.1; https://github.com/mpi-forum/mpi-abi-stubs
#include <stdint.h>

#define HANDLE void *
#define FIELD pointer
#define TABLE mpi_abi_standard
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

#include "transports/mpi/abi_calls.h"
