// Which MPI library a process has, and three ABIs: the same functions, with handles of different types and constants of
// different values.
#include "transports/mpi/mpi.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

// The library.

// The library that the program or another library has loaded already is the one to use: two MPIs in a
// process do not know of each other. Else the launcher's variables tell which one started it.

static const char *const open_mpi_names[] = {"libmpi.so.40"};
static const char *const mpich[] = {"libmpich.so.12", "libmpi.so.12"};
static const char *const standard_names[] = {"libmpi_abi.so.0"};

static struct {
    const struct mpi_abi *abi;
    char name[256];
    char version[8192]; // as long as MPICH's may be
} library;

static void *load(const char *const *names, size_t count, int flags, const char **out_name)
{
    void *handle = NULL;
    for (size_t i = 0; i < count && !handle; i++) {
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | flags);
        *out_name = names[i];
    }
    return handle;
}

static void *load_any(int flags, const char **out_name)
{
    const bool mpich_first = getenv("PMI_RANK") && !getenv("OMPI_COMM_WORLD_RANK");
    void *handle = mpich_first ? load(mpich, 2, flags, out_name) : NULL;
    if (!handle)
        handle = load(open_mpi_names, 1, flags, out_name);
    if (!handle && !mpich_first)
        handle = load(mpich, 2, flags, out_name);
    return handle ? handle : load(standard_names, 1, flags, out_name);
}

static void *find(const char *name, const char **out_name)
{
    if (name[0])
        return load(&name, 1, 0, out_name);
    void *handle = load_any(RTLD_NOLOAD, out_name);
    return handle ? handle : load_any(0, out_name);
}

// A library may have the function and another ABI; it says so.
static bool is_standard(void *handle)
{
    int (*version)(int *, int *);
    int major = -1;
    int minor = -1;
    void *symbol = dlsym(handle, "MPI_Abi_get_version");
    memcpy(&version, &symbol, sizeof version);
    return symbol && version(&major, &minor) == 0 && major == 1;
}

// The text names the library, and the library the ABI.
static const struct mpi_abi *recognize(void *handle)
{
    int (*version)(char *, int *);
    int size = 0;
    void *symbol = dlsym(handle, "MPI_Get_library_version");
    memcpy(&version, &symbol, sizeof version);
    if (!symbol || version(library.version, &size) != 0)
        return NULL;
    library.version[strcspn(library.version, ",\n")] = '\0';
    if (is_standard(handle))
        return &mpi_abi_standard;
    if (dlsym(handle, "ompi_mpi_comm_world"))
        return &mpi_abi_open_mpi;
    return strstr(library.version, "MPICH") || strstr(library.version, "Intel") ? &mpi_abi_mpich
                                                                                : NULL;
}

static weir_status use(const struct weir_host *host, void *handle, const char *name)
{
    const struct mpi_abi *abi = recognize(handle);
    const char *missing = NULL;
    if (!abi)
        return weir_host_fail(host, WEIR_ERROR_UNSUPPORTED,
                              "use Open MPI 4, MPICH 4, or a library with MPICH's ABI or "
                              "that of MPI 5",
                              "%s is no MPI library whose ABI the transport 'mpi' knows", name);
    if (!abi->load(handle, &missing))
        return weir_host_fail(host, WEIR_ERROR_UNSUPPORTED, "install a version with MPI 3",
                              "%s (%s) has no function %s", name, library.version, missing);
    library.abi = abi;
    snprintf(library.name, sizeof library.name, "%s", name);
    return WEIR_OK;
}

weir_status mpi_library_open(const struct weir_host *host, const char *name)
{
    const char *found = name;
    if (library.abi && (!name[0] || strcmp(name, library.name) == 0))
        return WEIR_OK;
    if (library.abi)
        return weir_host_fail(host, WEIR_ERROR_CONFIG, "name one library in all configurations",
                              "[mpi] library is %s, and this process uses %s already", name,
                              library.name);
    void *handle = find(name, &found);
    if (!handle)
        return weir_host_fail(host, WEIR_ERROR_SYSTEM,
                              "install Open MPI 4 or MPICH 4, or set [mpi] library to the file",
                              "no MPI library is there: %s cannot be loaded", dlerror());
    const weir_status status = use(host, handle, found);
    if (status < 0)
        dlclose(handle);
    return status;
}

const struct mpi_abi *mpi_library(void)
{
    return library.abi;
}

const char *mpi_library_version(void)
{
    return library.version;
}
