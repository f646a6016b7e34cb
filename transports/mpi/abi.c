// Which MPI library a process has, and three ABIs: the same functions, with handles of different types and constants of
// different values.
#include "transports/mpi/mpi.h"

#include <dlfcn.h>

// MPICH's handles are numbers of 32 bits, for which these prototypes have pointers. It finds each in the lower half of the
// register, or of the word of the stack, that a pointer has, and stores it in the first half of one.
_Static_assert(sizeof(void *) == 8 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "a number of 32 bits is passed and stored as the lower half of a pointer");

#define AT(number) ((void *)(uintptr_t)(number))
static const struct mpi_constants constants[] = {
    // 1.7 and later.
    [MPI_OPEN_MPI] = {.any_source = -1, .thread_multiple = 3},
    // 3.1 and later, and libraries with its ABI: https://www.mpich.org/abi/
    [MPI_MPICH] = {AT(0x44000000), AT(0x4c00010d), AT(0x54000001), AT(1), -2, 3},
    // Of any library: MPI 5.0, chapter 20 and appendix A.1; https://github.com/mpi-forum/mpi-abi-stubs
    [MPI_STANDARD] = {AT(0x101), AT(0x247), AT(0x142), NULL, -1, 4096},
};

struct mpi_library mpi;

static const struct {
    const char *name;
    void *at;
} symbols[] = {
#define X(name, arguments) {"MPI_" #name, (void *)&mpi.name},
    MPI_FUNCTIONS(X)
#undef X
    // Of Open MPI alone.
    {"ompi_mpi_comm_world", (void *)&mpi.its.world},
    {"ompi_mpi_byte", (void *)&mpi.its.byte},
    {"ompi_mpi_errors_return", (void *)&mpi.its.return_errors},
};

// A request that has begun unless there is an error.
static int begun(struct mpi_request *request, const char *function, bool receives, int error)
{
    request->active = error == 0;
    request->receives = receives;
    request->function = function;
    return error;
}

int mpi_message(bool receives, void *bytes, size_t size, uint32_t peer, int tag, void *comm,
                struct mpi_request *request)
{
    if (receives)
        return begun(request, "MPI_Irecv", true,
                     mpi.Irecv(bytes, (int)size, mpi.its.byte, (int)peer, tag, comm,
                               &request->handle));
    return begun(request, "MPI_Isend", false,
                 mpi.Isend(bytes, (int)size, mpi.its.byte, (int)peer, tag, comm, &request->handle));
}

int mpi_collective(weir_collective kind, void *src, void *dst, size_t bytes, uint32_t root,
                   void *comm, struct mpi_request *request)
{
    void *byte = mpi.its.byte;
    void **handle = &request->handle;
    const int size = (int)bytes;
    const int from = (int)root;
    switch (kind) {
    case WEIR_ALL_GATHER:
        return begun(request, "MPI_Iallgather", false,
                     mpi.Iallgather(src, size, byte, dst, size, byte, comm, handle));
    case WEIR_ALL_TO_ALL:
        return begun(request, "MPI_Ialltoall", false,
                     mpi.Ialltoall(src, size, byte, dst, size, byte, comm, handle));
    case WEIR_GATHER:
        return begun(request, "MPI_Igather", false,
                     mpi.Igather(src, size, byte, dst, size, byte, from, comm, handle));
    case WEIR_SCATTER:
        return begun(request, "MPI_Iscatter", false,
                     mpi.Iscatter(src, size, byte, dst, size, byte, from, comm, handle));
    default:
        return begun(request, "MPI_Ibcast", false, mpi.Ibcast(src, size, byte, from, comm, handle));
    }
}

int mpi_test(struct mpi_request *request)
{
    int done = 0;
    const int error =
        request->active ? mpi.Test(&request->handle, &done, mpi.its.status_ignore) : 0;
    request->active = request->active && !done;
    return error;
}

// The library that the program or another library has loaded already is the one to use: two MPIs in a
// process do not know of each other. Else the launcher's variables tell which one started it.

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
    if (!symbol || version(mpi.version, &size) != 0)
        return MPI_NONE;
    mpi.version[strcspn(mpi.version, ",\n")] = '\0';
    // A library may have the function and another ABI; it says so.
    symbol = dlsym(handle, "MPI_Abi_get_version");
    memcpy(&abi_version, &symbol, sizeof abi_version);
    if (symbol && abi_version(&major, &minor) == 0 && major == 1)
        return MPI_STANDARD;
    if (dlsym(handle, "ompi_mpi_comm_world"))
        return MPI_OPEN_MPI;
    return strstr(mpi.version, "MPICH") || strstr(mpi.version, "Intel") ? MPI_MPICH : MPI_NONE;
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
    mpi.its = constants[abi];
    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym(handle, symbols[i].name);
        if (!symbol)
            return weir_host_fail(host, WEIR_ERROR_UNSUPPORTED, "install a version with MPI 3",
                                  "%s (%s) has no function %s", name, mpi.version, symbols[i].name);
        memcpy(symbols[i].at, &symbol, sizeof symbol);
    }
    mpi.abi = abi;
    snprintf(mpi.name, sizeof mpi.name, "%s", name);
    return WEIR_OK;
}

weir_status mpi_library_open(const struct weir_host *host, const char *name)
{
    const char *found = name;
    if (mpi.name[0] && (!name[0] || strcmp(name, mpi.name) == 0))
        return WEIR_OK;
    if (mpi.name[0])
        return weir_host_fail(host, WEIR_ERROR_CONFIG, "name one library in all configurations",
                              "[mpi] library is %s, and this process uses %s already", name,
                              mpi.name);
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
