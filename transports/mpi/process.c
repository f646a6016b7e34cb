// MPI can be started once in a process, and not again after its end, so it runs until the process exits.
// One that the program has started itself is used, and its end is the program's business.
//
// Where MPI_Init() fails it ends the process, and where a rank never calls it the others wait for ever.
// So what can be known before is checked before, and a thread of its own calls it.
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "transports/mpi/mpi.h"

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

// At the exit of a process in which a group has failed.
#define FAREWELL_NS UINT64_C(5000000000)

static struct {
    pthread_mutex_t lock; // of one join at a time
    struct weir_thread thread;
    bool started; // the thread
    atomic_bool done;
    bool threaded;
    int error;
    int rank;
    int count;
    union mpi_handle comm;
    union mpi_handle posts;
    struct mpi_group *world;
    pid_t owner;         // the process in which this file has called MPI_Init(); 0: none
    atomic_bool failed;  // a group has
    atomic_bool spoiled; // a request is left
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

void mpi_process_note_failure(void)
{
    atomic_store(&process.failed, true);
}

void mpi_process_spoil(void)
{
    atomic_store(&process.spoiled, true);
}

// When all ranks have come here their posts have arrived, and each has told its failures: mpirun ends
// the others when a process exits without MPI_Finalize(). It waits as long as MPI_Finalize() does,
// but for a time only after a failure, when a rank may never come.
static bool meet_at_exit(void)
{
    const uint64_t began_ns = weir_clock_now_ns();
    const uint64_t limit_ns = atomic_load(&process.failed) ? FAREWELL_NS : UINT64_MAX;
    static char src;
    static char *dst;
    union mpi_handle request;
    uint64_t pause_ns = 0;
    bool done = false;
    dst = calloc(1, (size_t)process.count);
    if (!dst ||
        mpi_library()->collective(WEIR_ALL_GATHER, &src, dst, 1, 0, process.posts, &request) != 0)
        return false;
    while (!done) {
        if (mpi_library()->test(&request, &done) != 0 ||
            !weir_clock_pause(began_ns, limit_ns, &pause_ns))
            return false;
        mpi_posts_poll();
    }
    free(dst);
    return true;
}

static void finalize(void)
{
    bool initialized = false;
    bool finalized = false;
    if (process.owner != getpid() || !process.world)
        return;
    mpi_library()->state(&initialized, &finalized);
    if (finalized)
        return;
    if (meet_at_exit() && !atomic_load(&process.spoiled))
        mpi_library()->finalize();
}

// On the thread.
static void start(void *unused)
{
    const struct mpi_abi *abi = mpi_library();
    (void)unused;
    if (process.owner)
        process.error = abi->init();
    if (!process.error)
        process.error = abi->is_threaded(&process.threaded);
    if (!process.error)
        process.error = abi->place(abi->world(), &process.rank, &process.count);
    if (!process.error && process.threaded)
        process.error = abi->duplicate(abi->world(), &process.comm);
    if (!process.error && process.threaded)
        process.error = abi->duplicate(abi->world(), &process.posts);
    atomic_store(&process.done, true);
}

// What can be known before.

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

static weir_status check_launcher(const struct weir_host *host,
                                  const struct weir_transport_setup *setup)
{
    const bool open_mpi = mpi_library() == &mpi_abi_open_mpi;
    const bool standard = mpi_library() == &mpi_abi_standard; // of any library
    const bool from_open_mpi = is_set("OMPI_COMM_WORLD_RANK") || is_set("PMIX_RANK");
    const bool from_mpich = is_set("PMI_RANK") || is_set("PMI_FD") || is_set("PMI_PORT");
    if (open_mpi ? from_open_mpi : from_mpich || (standard && from_open_mpi))
        return WEIR_OK;
    if (from_open_mpi || from_mpich)
        return weir_host_fail(host, WEIR_ERROR_CONFIG,
                              "start the program with this library's mpirun, or set [mpi] library",
                              "'%s': the program was started by the mpirun of another MPI than the "
                              "library in use, %s",
                              setup->label, mpi_library_version());
    return weir_host_fail(host, WEIR_ERROR_CONFIG,
                          "start it with `mpirun -n N`, or use the transport 'local'",
                          "'%s': the transport 'mpi' needs a program that mpirun, srun or the like "
                          "has started, and none of their variables is set",
                          setup->label);
}

static weir_status check_before(const struct weir_host *host,
                                const struct weir_transport_setup *setup)
{
    bool initialized = false;
    bool finalized = false;
    mpi_library()->state(&initialized, &finalized);
    if (finalized)
        return weir_host_fail(host, WEIR_ERROR_INVALID,
                              "create communicators before the program calls MPI_Finalize()",
                              "'%s': MPI has ended in this process, and cannot be started again",
                              setup->label);
    process.owner = initialized ? 0 : getpid();
    return initialized ? WEIR_OK : check_launcher(host, setup);
}

static weir_status wait_for_start(const struct weir_host *host,
                                  const struct weir_transport_setup *setup)
{
    const uint64_t start_ns = weir_clock_now_ns();
    uint64_t pause_ns = 0;
    while (!atomic_load(&process.done))
        if (!weir_clock_pause(start_ns, setup->timeout_ns, &pause_ns))
            return weir_host_fail(host, WEIR_ERROR_COMM,
                                  "create the communicator on all ranks, or raise the timeout",
                                  "'%s': MPI has not started in %" PRIu64
                                  " ms: a rank has not created the communicator",
                                  setup->label, setup->timeout_ns / 1000000);
    return WEIR_OK;
}

// What is known after.

static weir_status check_after(const struct weir_host *host,
                               const struct weir_transport_setup *setup)
{
    if (process.error)
        return weir_host_fail(host, WEIR_ERROR_SYSTEM, "see what MPI has printed",
                              "'%s': MPI cannot be started: error %d", setup->label, process.error);
    if (!process.threaded)
        return weir_host_fail(host, WEIR_ERROR_CONFIG,
                              "start it with MPI_Init_thread() and MPI_THREAD_MULTIPLE",
                              "'%s': the program has started MPI without MPI_THREAD_MULTIPLE",
                              setup->label);
    return WEIR_OK;
}

// The other ranks are told: they wait for this one.
static weir_status check_place(const struct weir_host *host,
                               const struct weir_transport_setup *setup)
{
    struct weir_cause cause = {.rank = UINT32_MAX};
    if (setup->count == (uint32_t)process.count && setup->rank == (uint32_t)process.rank)
        return WEIR_OK;
    snprintf(cause.text, sizeof cause.text,
             "'%s': this is rank %u of %u by the configuration, and rank %d of %d of MPI",
             setup->label, setup->rank, setup->count, process.rank, process.count);
    mpi_posts_fail(process.world, &cause);
    return weir_host_fail(host, WEIR_ERROR_CONFIG, "leave rank and count out: mpirun tells them",
                          "%s", cause.text);
}

static weir_status make_world(const struct weir_host *host)
{
    struct mpi_group *world =
        mpi_group_create(host, "MPI_COMM_WORLD", (uint32_t)process.rank, (uint32_t)process.count);
    if (!world)
        return weir_host_no_memory(host, "the ranks of MPI");
    world->comm = process.comm;
    world->id.color = -1;
    for (uint32_t i = 0; i < world->count; i++)
        world->peers[i].world = i;
    mpi_posts_open(process.posts);
    mpi_posts_add(world);
    process.world = world;
    return WEIR_OK;
}

// After the start, in which MPICH 4.2 registers a function for the exit that tells mpirun of a good end: functions
// that were registered last are called first, and MPI_Finalize() comes before it.
static void finalize_at_exit(void)
{
    static bool registered; // with the lock
    if (process.owner && !registered)
        registered = atexit(finalize) == 0;
}

static weir_status begin(const struct weir_host *host, const struct weir_transport_setup *setup)
{
    weir_status status = process.started ? WEIR_OK : check_before(host, setup);
    if (status < 0)
        return status;
    if (!process.started) {
        process.started = weir_thread_start(&process.thread, start, NULL) == 0;
        if (!process.started)
            return weir_host_fail(host, WEIR_ERROR_SYSTEM, "end some threads",
                                  "'%s': the thread that starts MPI cannot be created",
                                  setup->label);
    }
    status = wait_for_start(host, setup);
    if (status == WEIR_OK)
        finalize_at_exit();
    if (status == WEIR_OK)
        status = check_after(host, setup);
    if (status == WEIR_OK && !process.world)
        status = make_world(host);
    return status == WEIR_OK ? check_place(host, setup) : status;
}

weir_status mpi_process_acquire(const struct weir_host *host,
                                const struct weir_transport_setup *setup,
                                struct mpi_group **out_world)
{
    pthread_mutex_lock(&process.lock);
    const weir_status status = begin(host, setup);
    *out_world = process.world;
    if (status < 0)
        pthread_mutex_unlock(&process.lock);
    return status;
}

void mpi_process_release(void)
{
    pthread_mutex_unlock(&process.lock);
}

uint64_t mpi_process_new_id(void)
{
    static _Atomic uint64_t last;
    return (uint64_t)(process.rank + 1) << 32 | (atomic_fetch_add(&last, 1) + 1);
}
