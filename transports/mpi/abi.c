// Which MPI library a process has, and three ABIs: the same functions, with handles of different types and constants of
// different values.
#include "transports/mpi/mpi.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// MPICH's handles are numbers of 32 bits, for which these prototypes have pointers. It finds each in the lower half of the
// register, or of the word of the stack, that a pointer has, and stores it in the first half of one.
_Static_assert(sizeof(void *) == 8 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "a number of 32 bits is passed and stored as the lower half of a pointer");

#define FUNCTIONS(X)                                                                        \
    X(MPI_Initialized, (int *))                                                             \
    X(MPI_Finalized, (int *))                                                               \
    X(MPI_Init_thread, (int *, char ***, int, int *))                                       \
    X(MPI_Finalize, (void))                                                                 \
    X(MPI_Query_thread, (int *))                                                            \
    X(MPI_Error_string, (int, char *, int *))                                               \
    X(MPI_Comm_rank, (void *, int *))                                                       \
    X(MPI_Comm_size, (void *, int *))                                                       \
    X(MPI_Comm_dup, (void *, void **))                                                      \
    X(MPI_Comm_split, (void *, int, int, void **))                                          \
    X(MPI_Comm_free, (void **))                                                             \
    X(MPI_Comm_set_errhandler, (void *, void *))                                            \
    X(MPI_Isend, (const void *, int, void *, int, int, void *, void **))                    \
    X(MPI_Irecv, (void *, int, void *, int, int, void *, void **))                          \
    X(MPI_Improbe, (int, int, void *, int *, void **, void *))                              \
    X(MPI_Mrecv, (void *, int, void *, void **, void *))                                    \
    X(MPI_Iallgather, (const void *, int, void *, void *, int, void *, void *, void **))    \
    X(MPI_Ialltoall, (const void *, int, void *, void *, int, void *, void *, void **))     \
    X(MPI_Igather, (const void *, int, void *, void *, int, void *, int, void *, void **))  \
    X(MPI_Iscatter, (const void *, int, void *, void *, int, void *, int, void *, void **)) \
    X(MPI_Ibcast, (void *, int, void *, int, void *, void **))                              \
    X(MPI_Cancel, (void **))                                                                \
    X(MPI_Test, (void **, int *, void *))

#define UNDEFINED (-32766)

// Handles that a library has from the start, and its other constants.
struct constants {
    void *world, *byte, *return_errors; // NULL: symbols
    void *status_ignore;
    int any_source;
    int thread_multiple;
};

#define AT(number) ((void *)(uintptr_t)(number))
static const struct constants constants[] = {
    // 1.7 and later.
    [MPI_OPEN_MPI] = {.any_source = -1, .thread_multiple = 3},
    // 3.1 and later, and libraries with its ABI: https://www.mpich.org/abi/
    [MPI_MPICH] = {AT(0x44000000), AT(0x4c00010d), AT(0x54000001), AT(1), -2, 3},
    // Of any library: MPI 5.0, chapter 20 and appendix A.1; https://github.com/mpi-forum/mpi-abi-stubs
    [MPI_STANDARD] = {AT(0x101), AT(0x247), AT(0x142), NULL, -1, 4096},
};

static struct constants its;
static struct {
#define X(name, arguments) int(*name) arguments;
    FUNCTIONS(X)
#undef X
} at;

static const struct {
    const char *name;
    void *at;
} symbols[] = {
#define X(name, arguments) {#name, (void *)&at.name},
    FUNCTIONS(X)
#undef X
    // Of Open MPI alone.
    {"ompi_mpi_comm_world", (void *)&its.world},
    {"ompi_mpi_byte", (void *)&its.byte},
    {"ompi_mpi_errors_return", (void *)&its.return_errors},
};

void mpi_state(bool *out_initialized, bool *out_finalized)
{
    int initialized = 0;
    int finalized = 0;
    at.MPI_Initialized(&initialized);
    at.MPI_Finalized(&finalized);
    *out_initialized = initialized;
    *out_finalized = finalized;
}

int mpi_init(bool owner, bool *out_threaded)
{
    int level = 0;
    int error = owner ? at.MPI_Init_thread(NULL, NULL, its.thread_multiple, &level) : 0;
    if (!error)
        error = at.MPI_Query_thread(&level);
    *out_threaded = level == its.thread_multiple;
    return error;
}

void mpi_finalize(void)
{
    at.MPI_Finalize();
}

void mpi_error_text(int error, char *text)
{
    int size = 0;
    at.MPI_Error_string(error, text, &size);
}

int mpi_place(void *comm, int *out_rank, int *out_size)
{
    const int error = at.MPI_Comm_rank(comm, out_rank);
    return error ? error : at.MPI_Comm_size(comm, out_size);
}

void *mpi_world(void)
{
    return its.world;
}

int mpi_duplicate(void *comm, void **out_comm)
{
    const int error = at.MPI_Comm_dup(comm, out_comm);
    return error ? error : at.MPI_Comm_set_errhandler(*out_comm, its.return_errors);
}

int mpi_split(void *comm, int color, int key, void **out_comm, bool *out_any)
{
    *out_any = color >= 0;
    const int error = at.MPI_Comm_split(comm, *out_any ? color : UNDEFINED, key, out_comm);
    return error || !*out_any ? error : at.MPI_Comm_set_errhandler(*out_comm, its.return_errors);
}

void mpi_free(void *comm)
{
    at.MPI_Comm_free(&comm);
}

// A request that has begun unless there is an error.
static int begun(struct mpi_request *request, const char *function, bool receives, int error)
{
    request->active = error == 0;
    request->receives = receives;
    request->function = function;
    return error;
}

int mpi_send(const void *bytes, size_t size, uint32_t peer, int tag, void *comm,
             struct mpi_request *request)
{
    return begun(request, "MPI_Isend", false,
                 at.MPI_Isend(bytes, (int)size, its.byte, (int)peer, tag, comm, &request->handle));
}

int mpi_receive(void *bytes, size_t size, uint32_t peer, int tag, void *comm,
                struct mpi_request *request)
{
    return begun(request, "MPI_Irecv", true,
                 at.MPI_Irecv(bytes, (int)size, its.byte, (int)peer, tag, comm, &request->handle));
}

// The matched form: another thread cannot take the message in between.
bool mpi_take(void *bytes, size_t size, int tag, void *comm)
{
    int found = 0;
    void *message = NULL;
    const int error =
        at.MPI_Improbe(its.any_source, tag, comm, &found, &message, its.status_ignore);
    return error == 0 && found &&
           at.MPI_Mrecv(bytes, (int)size, its.byte, &message, its.status_ignore) == 0;
}

int mpi_collective(weir_collective kind, void *src, void *dst, size_t bytes, uint32_t root,
                   void *comm, struct mpi_request *request)
{
    void *byte = its.byte;
    void **handle = &request->handle;
    const int size = (int)bytes;
    const int from = (int)root;
    switch (kind) {
    case WEIR_ALL_GATHER:
        return begun(request, "MPI_Iallgather", false,
                     at.MPI_Iallgather(src, size, byte, dst, size, byte, comm, handle));
    case WEIR_ALL_TO_ALL:
        return begun(request, "MPI_Ialltoall", false,
                     at.MPI_Ialltoall(src, size, byte, dst, size, byte, comm, handle));
    case WEIR_GATHER:
        return begun(request, "MPI_Igather", false,
                     at.MPI_Igather(src, size, byte, dst, size, byte, from, comm, handle));
    case WEIR_SCATTER:
        return begun(request, "MPI_Iscatter", false,
                     at.MPI_Iscatter(src, size, byte, dst, size, byte, from, comm, handle));
    default:
        return begun(request, "MPI_Ibcast", false,
                     at.MPI_Ibcast(src, size, byte, from, comm, handle));
    }
}

int mpi_test(struct mpi_request *request)
{
    int done = 0;
    const int error = request->active ? at.MPI_Test(&request->handle, &done, its.status_ignore) : 0;
    request->active = request->active && !done;
    return error;
}

void mpi_cancel(struct mpi_request *request)
{
    (void)at.MPI_Cancel(&request->handle);
}

// The library that the program or another library has loaded already is the one to use: two MPIs in a
// process do not know of each other. Else the launcher's variables tell which one started it.

static struct {
    enum mpi_abi abi;
    char name[256];     // "": none is open
    char version[8192]; // as long as MPICH's may be
} library;

static void *load_any(int flags, const char **out_name)
{
    static const char *const names[] = {"libmpich.so.12", "libmpi.so.12", "libmpi.so.40",
                                        "libmpich.so.12", "libmpi.so.12", "libmpi_abi.so.0"};
    const bool mpich_first = getenv("PMI_RANK") && !getenv("OMPI_COMM_WORLD_RANK");
    void *handle = NULL;
    for (size_t i = mpich_first ? 0 : 2; i < sizeof names / sizeof *names && !handle; i++) {
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | flags);
        *out_name = names[i];
    }
    return handle;
}

// The text names the library, and the library the ABI.
static enum mpi_abi recognize(void *handle)
{
    int (*version)(char *, int *);
    int (*abi_version)(int *, int *);
    int size = 0;
    int major = -1;
    int minor = -1;
    void *symbol = dlsym(handle, "MPI_Get_library_version");
    memcpy(&version, &symbol, sizeof version);
    if (!symbol || version(library.version, &size) != 0)
        return MPI_NONE;
    library.version[strcspn(library.version, ",\n")] = '\0';
    // A library may have the function and another ABI; it says so.
    symbol = dlsym(handle, "MPI_Abi_get_version");
    memcpy(&abi_version, &symbol, sizeof abi_version);
    if (symbol && abi_version(&major, &minor) == 0 && major == 1)
        return MPI_STANDARD;
    if (dlsym(handle, "ompi_mpi_comm_world"))
        return MPI_OPEN_MPI;
    return strstr(library.version, "MPICH") || strstr(library.version, "Intel") ? MPI_MPICH
                                                                                : MPI_NONE;
}

static weir_status use(const struct weir_host *host, void *handle, const char *name)
{
    const enum mpi_abi abi = recognize(handle);
    const size_t count = sizeof symbols / sizeof *symbols - (abi == MPI_OPEN_MPI ? 0 : 3);
    if (abi == MPI_NONE)
        return weir_host_fail(host, WEIR_ERROR_UNSUPPORTED,
                              "use Open MPI 4, MPICH 4, or a library with MPICH's ABI or "
                              "that of MPI 5",
                              "%s is no MPI library whose ABI the transport 'mpi' knows", name);
    its = constants[abi];
    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym(handle, symbols[i].name);
        if (!symbol)
            return weir_host_fail(host, WEIR_ERROR_UNSUPPORTED, "install a version with MPI 3",
                                  "%s (%s) has no function %s", name, library.version,
                                  symbols[i].name);
        memcpy(symbols[i].at, &symbol, sizeof symbol);
    }
    library.abi = abi;
    snprintf(library.name, sizeof library.name, "%s", name);
    return WEIR_OK;
}

weir_status mpi_library_open(const struct weir_host *host, const char *name)
{
    const char *found = name;
    if (library.name[0] && (!name[0] || strcmp(name, library.name) == 0))
        return WEIR_OK;
    if (library.name[0])
        return weir_host_fail(host, WEIR_ERROR_CONFIG, "name one library in all configurations",
                              "[mpi] library is %s, and this process uses %s already", name,
                              library.name);
    void *handle = name[0] ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : load_any(RTLD_NOLOAD, &found);
    if (!handle && !name[0])
        handle = load_any(0, &found);
    if (!handle)
        return weir_host_fail(host, WEIR_ERROR_SYSTEM,
                              "install Open MPI 4 or MPICH 4, or set [mpi] library to the file",
                              "no MPI library is there: %s cannot be loaded", dlerror());
    const weir_status status = use(host, handle, found);
    if (status < 0)
        dlclose(handle);
    return status;
}

enum mpi_abi mpi_library_abi(void)
{
    return library.abi;
}

const char *mpi_library_version(void)
{
    return library.version;
}
