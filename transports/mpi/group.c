// MPI in this process, and the life of groups. A group in which a call has failed may have requests that never end: it
// stays, reachable from here, and MPI is not told to end.
//
// MPI can be started once in a process, and not again after its end, so it runs until the process exits.
// One that the program has started itself is used, and its end is the program's business.
//
// Where MPI_Init() fails it ends the process, and where a rank never calls it the others wait for ever.
// So what can be known before is checked before, and a thread of its own calls it.
#include <inttypes.h>
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "transports/mpi/mpi.h"

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
    void *comm;
    struct mpi_group *world;
    pid_t owner;        // the process in which this file has called MPI_Init(); 0: none
    atomic_bool failed; // a group has: the exit does not wait for the other ranks for ever
    // A request is left that may never end, which MPI_Finalize() would wait for.
    atomic_bool spoiled;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

// Posts travel on a communicator of their own, of all ranks, so that they reach a group whatever its
// ranks are doing. Each rank that waits for something receives them, for all its groups. A post for
// a group that is gone is dropped.

enum kind {
    FAILED,
    LEFT
};

struct post {
    struct mpi_id id;
    uint64_t number;
    uint32_t kind;
    uint32_t rank;
    struct weir_cause cause; // FAILED
};

// On its way to the other ranks of a group.
struct mpi_sent {
    struct mpi_sent *next;
    const struct weir_host *host;
    struct post post;
    size_t count;
    struct mpi_request requests[];
};

static struct {
    pthread_mutex_t lock;
    void *comm;
    struct mpi_group *groups;
    struct mpi_sent *sent;
} posts = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void add_group(struct mpi_group *group)
{
    pthread_mutex_lock(&posts.lock);
    group->next = posts.groups;
    posts.groups = group;
    pthread_mutex_unlock(&posts.lock);
}

static void remove_group(struct mpi_group *group)
{
    pthread_mutex_lock(&posts.lock);
    struct mpi_group **at = &posts.groups;
    while (*at != group)
        at = &(*at)->next;
    *at = group->next;
    pthread_mutex_unlock(&posts.lock);
}

// Whether this is the first cause.
static bool kill_group(struct mpi_group *group, const struct weir_cause *cause)
{
    if (group->base.failed)
        return false;
    group->base.cause = *cause;
    group->base.failed = true;
    process.failed = true;
    return true;
}

// Receiving.

static void deliver(struct post *post)
{
    struct mpi_group *group = posts.groups;
    while (group && (group->id.number != post->id.number || group->id.color != post->id.color))
        group = group->next;
    if (!group || post->rank >= group->room)
        return;
    struct mpi_peer *peer = &group->peers[post->rank];
    if (post->kind == FAILED) {
        const struct weir_cause heard = weir_cause_heard(&post->cause, group->base.count);
        (void)kill_group(group, &heard);
        return;
    }
    peer->left_after = post->number;
    peer->left_ns = weir_clock_now_ns();
    peer->left = true;
}

// The matched form: another thread cannot take the message in between.
static bool take(struct post *out_post)
{
    int found = 0;
    void *message = NULL;
    const int error = mpi.Improbe(mpi.its.any_source, MPI_TAG_POST, posts.comm, &found, &message,
                                  mpi.its.status_ignore);
    return error == 0 && found &&
           mpi.Mrecv(out_post, (int)sizeof *out_post, mpi.its.byte, &message,
                     mpi.its.status_ignore) == 0;
}

void mpi_posts_poll(void)
{
    struct post post;
    struct mpi_sent **at = &posts.sent;
    pthread_mutex_lock(&posts.lock);
    while (take(&post))
        deliver(&post);
    while (*at) {
        struct mpi_sent *sent = *at;
        bool all = true;
        for (size_t i = 0; i < sent->count; i++) {
            (void)mpi_test(&sent->requests[i]);
            all = all && !sent->requests[i].active;
        }
        if (all) {
            *at = sent->next;
            sent->host->release(sent);
        } else {
            at = &sent->next;
        }
    }
    pthread_mutex_unlock(&posts.lock);
}

// Sending.

// A group sends one post at most: that it has failed, or that this rank leaves it.
static void send_to_all(struct mpi_group *group, enum kind kind, const struct weir_cause *cause)
{
    struct mpi_sent *sent = group->post;
    group->post = NULL;
    sent->host = group->base.host;
    sent->count = group->base.count;
    sent->post = (struct post){.id = group->id,
                               .number = group->last,
                               .kind = kind,
                               .rank = group->base.rank};
    if (cause)
        sent->post.cause = *cause;
    for (uint32_t i = 0; i < group->base.count; i++)
        if (i != group->base.rank)
            (void)mpi_message(false, &sent->post, sizeof sent->post, group->peers[i].world,
                              MPI_TAG_POST, posts.comm, &sent->requests[i]);
    sent->next = posts.sent;
    posts.sent = sent;
}

void mpi_posts_fail(void *group, const struct weir_cause *cause)
{
    struct mpi_group *own = group;
    pthread_mutex_lock(&posts.lock);
    if (kill_group(own, cause))
        send_to_all(own, FAILED, cause);
    pthread_mutex_unlock(&posts.lock);
}

// Of one of a group's two parts of memory, and at least of it for each rank.
#define STAGE_BYTES ((size_t)1 << 20)
#define BLOCK_BYTES ((size_t)16 << 10)

static void destroy_group(struct mpi_group *group)
{
    const struct weir_host *host = group->base.host;
    host->release(group->post);
    host->release(group->peers);
    host->release(group->heads);
    host->release(group->requests);
    host->release(group->src);
    host->release(group->dst);
    host->release(group);
}

static struct mpi_group *create_group(const struct weir_host *host, const char *label,
                                      uint32_t rank, uint32_t count)
{
    struct mpi_group *group = host->allocate(sizeof *group);
    const size_t block = STAGE_BYTES / count / 64 * 64;
    if (!group)
        return NULL;
    group->base.host = host;
    group->base.fail = mpi_posts_fail;
    group->base.rank = rank;
    group->base.count = count;
    group->room = count;
    group->block = block > BLOCK_BYTES ? block : BLOCK_BYTES;
    snprintf(group->base.label, sizeof group->base.label, "%s", label);
    group->peers = host->allocate(count * sizeof *group->peers);
    group->heads = host->allocate(count * sizeof *group->heads);
    group->requests = host->allocate(count * sizeof *group->requests);
    group->post = host->allocate(sizeof *group->post + count * sizeof *group->post->requests);
    group->src = host->allocate(count * group->block);
    group->dst = host->allocate(count * group->block);
    if (group->peers && group->heads && group->requests && group->post && group->src && group->dst)
        return group;
    destroy_group(group);
    return NULL;
}

// MPI in this process.

// When all ranks have come here their posts have arrived, and each has told its failures: mpirun ends
// the others when a process exits without MPI_Finalize(). It waits as long as MPI_Finalize() does,
// but for a time only after a failure, when a rank may never come.
static bool meet_at_exit(void)
{
    const uint64_t began_ns = weir_clock_now_ns();
    const uint64_t limit_ns = atomic_load(&process.failed) ? FAREWELL_NS : UINT64_MAX;
    struct mpi_group *world = process.world; // whose memory no call uses
    static struct mpi_request request;
    uint64_t pause_ns = 0;
    if (mpi_collective(WEIR_ALL_GATHER, world->src, world->dst, 1, 0, posts.comm, &request) != 0)
        return false;
    while (request.active) {
        if (mpi_test(&request) != 0 || !weir_clock_pause(began_ns, limit_ns, &pause_ns))
            return false;
        mpi_posts_poll();
    }
    return true;
}

static void finalize(void)
{
    int finalized = 0;
    if (process.owner != getpid() || !process.world)
        return;
    mpi.Finalized(&finalized);
    if (!finalized && meet_at_exit() && !atomic_load(&process.spoiled))
        mpi.Finalize();
}

static int find_rank(void *comm, int *out_rank, int *out_count)
{
    const int error = mpi.Comm_rank(comm, out_rank);
    return error ? error : mpi.Comm_size(comm, out_count);
}

// A communicator of all ranks that returns errors, in place of ending the process.
static int duplicate_world(void **out_comm)
{
    const int error = mpi.Comm_dup(mpi.its.world, out_comm);
    return error ? error : mpi.Comm_set_errhandler(*out_comm, mpi.its.return_errors);
}

// On the thread.
static void start(void *unused)
{
    int level = 0;
    int error = process.owner ? mpi.Init_thread(NULL, NULL, mpi.its.thread_multiple, &level) : 0;
    if (!error)
        error = mpi.Query_thread(&level);
    process.threaded = level == mpi.its.thread_multiple;
    if (!error)
        error = find_rank(mpi.its.world, &process.rank, &process.count);
    if (!error && process.threaded)
        error = duplicate_world(&process.comm);
    if (!error && process.threaded)
        error = duplicate_world(&posts.comm);
    process.error = error;
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
    const bool open_mpi = mpi.abi == MPI_OPEN_MPI;
    const bool standard = mpi.abi == MPI_STANDARD; // of any library
    const bool from_open_mpi = is_set("OMPI_COMM_WORLD_RANK") || is_set("PMIX_RANK");
    const bool from_mpich = is_set("PMI_RANK") || is_set("PMI_FD") || is_set("PMI_PORT");
    if (open_mpi ? from_open_mpi : from_mpich || (standard && from_open_mpi))
        return WEIR_OK;
    if (from_open_mpi || from_mpich)
        return weir_host_fail(host, WEIR_ERROR_CONFIG,
                              "start the program with this library's mpirun, or set [mpi] library",
                              "'%s': the program was started by the mpirun of another MPI than the "
                              "library in use, %s",
                              setup->label, mpi.version);
    return weir_host_fail(host, WEIR_ERROR_CONFIG,
                          "start it with `mpirun -n N`, or use the transport 'local'",
                          "'%s': the transport 'mpi' needs a program that mpirun, srun or the like "
                          "has started, and none of their variables is set",
                          setup->label);
}

static weir_status check_before(const struct weir_host *host,
                                const struct weir_transport_setup *setup)
{
    int initialized = 0;
    int finalized = 0;
    mpi.Initialized(&initialized);
    mpi.Finalized(&finalized);
    if (finalized)
        return weir_host_fail(host, WEIR_ERROR_INVALID,
                              "create communicators before the program calls MPI_Finalize()",
                              "'%s': MPI has ended in this process, and cannot be started again",
                              setup->label);
    process.owner = initialized ? 0 : getpid();
    return initialized ? WEIR_OK : check_launcher(host, setup);
}

#define CREATE_REMEDY "create the communicator on all ranks, or raise the timeout"

static weir_status wait_for_start(const struct weir_host *host,
                                  const struct weir_transport_setup *setup)
{
    const uint64_t start_ns = weir_clock_now_ns();
    uint64_t pause_ns = 0;
    while (!atomic_load(&process.done))
        if (!weir_clock_pause(start_ns, setup->timeout_ns, &pause_ns))
            return weir_host_fail(host, WEIR_ERROR_COMM, CREATE_REMEDY,
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
        create_group(host, "MPI_COMM_WORLD", (uint32_t)process.rank, (uint32_t)process.count);
    if (!world)
        return weir_host_no_memory(host, "the ranks of MPI");
    world->comm = process.comm;
    world->id.color = -1;
    for (uint32_t i = 0; i < world->base.count; i++)
        world->peers[i].world = i;
    add_group(world);
    process.world = world;
    return WEIR_OK;
}

// Starts MPI unless it runs already. With the lock.
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
    if (status < 0)
        return status;
    // After the start, in which MPICH 4.2 registers a function for the exit that tells mpirun of a good end: functions
    // that were registered last are called first, and MPI_Finalize() comes before it.
    static bool registered; // with the lock
    if (process.owner && !registered)
        registered = atexit(finalize) == 0;
    status = check_after(host, setup);
    if (status == WEIR_OK && !process.world)
        status = make_world(host);
    return status == WEIR_OK ? check_place(host, setup) : status;
}

// Making a group out of another one.

#define UNDEFINED (-32766) // MPI's color of none, in all ABIs

// All ranks are here. Posts may come from the first moment, when the part's ranks are not known yet.
static bool divide(struct mpi_run *run, struct mpi_group *part, int color, int key)
{
    struct mpi_group *whole = run->group;
    const bool any = color != WEIR_NO_COLOR;
    int rank = 0;
    int count = 0;
    int error = mpi.Comm_split(whole->comm, any ? color : UNDEFINED, key, &part->comm);
    if (!error && any)
        error = mpi.Comm_set_errhandler(part->comm, mpi.its.return_errors);
    if (!error && any)
        error = find_rank(part->comm, &rank, &count);
    if (error)
        return mpi_fail_in(run, "MPI_Comm_split", error);
    if (!any)
        return true;
    part->base.rank = (uint32_t)rank;
    part->base.count = (uint32_t)count;
    // All ranks learn which ranks of MPI the new group has.
    const uint32_t world = whole->peers[whole->base.rank].world;
    memcpy(part->src, &world, sizeof world);
    if (!mpi_move(run, part, WEIR_ALL_GATHER, sizeof world, 0))
        return false;
    for (uint32_t i = 0; i < part->base.count; i++)
        memcpy(&part->peers[i].world, part->dst + i * sizeof world, sizeof world);
    return true;
}

// Consumes the part, which has the whole's size, unless it is stored.
static void make(struct mpi_run *run, struct mpi_group *part, int color, int key, void **out_group)
{
    part->id = (struct mpi_id){.number = run->group->head.new_group, .color = color};
    add_group(part);
    if (!divide(run, part, color, key)) {
        atomic_store(&process.spoiled, true);
    } else if (color != WEIR_NO_COLOR) {
        *out_group = part;
    } else {
        remove_group(part);
        destroy_group(part);
    }
}

// The memory is taken before the ranks come together: after it the others would wait for this one in
// MPI_Comm_split(), which has no deadline.
static weir_status run_make(struct mpi_run *run, const struct weir_host *host, const char *label,
                            int color, int key, const char *remedy, void **out_group)
{
    struct mpi_group *group = run->group;
    *out_group = NULL;
    if (group->base.failed)
        return weir_group_report(group, WEIR_ERROR_COMM, remedy);
    struct mpi_group *part = create_group(host, label, 0, group->base.count);
    // A number that no other group of any rank has.
    static _Atomic uint32_t last;
    group->head.new_group = 0;
    if (group->base.rank == 0)
        group->head.new_group =
            (uint64_t)(process.rank + 1) << 32 | (atomic_fetch_add(&last, 1) + 1);
    if (!part)
        weir_caller_fail(&run->by, "rank %u has no memory left", group->base.rank);
    else if (mpi_meet(run))
        make(run, part, color, key, out_group);
    else
        destroy_group(part);
    return weir_group_report(group, WEIR_ERROR_COMM, remedy);
}

static weir_status join(void *state, const struct weir_transport_setup *setup, void **out_group)
{
    const struct weir_host *host = state;
    *out_group = NULL;
    if (setup->rendezvous && strncmp(setup->rendezvous, "process:", 8) == 0)
        return weir_host_fail(
            host, WEIR_ERROR_UNSUPPORTED,
            "create one communicator in each process, or use the transport 'local'",
            "'%s': the transport 'mpi' joins processes, not threads of one", setup->label);
    pthread_mutex_lock(&process.lock);
    weir_status status = begin(host, setup);
    if (status == WEIR_OK) {
        struct mpi_group *world = process.world;
        snprintf(world->base.label, sizeof world->base.label, "%s", setup->label);
        struct mpi_run run = mpi_run_begin(world,
                                           weir_head_of_line(WEIR_CALL_JOIN, world->last + 1,
                                                             setup->file, setup->line),
                                           setup->timeout_ns);
        status = run_make(&run, host, setup->label, 0, 0, CREATE_REMEDY, out_group);
    }
    pthread_mutex_unlock(&process.lock);
    return status;
}

static weir_status split(void *state, const struct weir_transport_split *split, void **out_part)
{
    struct mpi_group *group = state;
    struct mpi_run run =
        mpi_run_begin(group,
                      weir_head_of_line(WEIR_CALL_SPLIT, split->number, split->file, split->line),
                      split->timeout_ns);
    return run_make(&run, group->base.host, split->label, split->color, split->key, NULL, out_part);
}

static void leave(void *state)
{
    struct mpi_group *group = state;
    if (!group->base.failed) {
        pthread_mutex_lock(&posts.lock);
        send_to_all(group, LEFT, NULL);
        pthread_mutex_unlock(&posts.lock);
    }
    if (group->stuck) {
        atomic_store(&process.spoiled, true);
        return;
    }
    remove_group(group);
    mpi.Comm_free(&group->comm);
    destroy_group(group);
}

// The module.

static const struct weir_key keys[] = {
    WEIR_TEXT_KEY(
        "library", "",
        "The MPI library: a name that the dynamic linker finds, or a path; empty: the one "
        "that the program has loaded, else the one that mpirun belongs to."),
};

// No state but the services of the front end: MPI is the process's.
static weir_status transport_open(const struct weir_host *host,
                                  const struct weir_setting *const *settings, void **out_state)
{
    *out_state = (void *)(uintptr_t)host;
    return mpi_library_open(host, settings[0]->text);
}

static void transport_close(void *state)
{
}

static const char *transport_library(const void *state)
{
    return mpi.version;
}

static const struct weir_transport_ops mpi_ops = {
    .open = transport_open,
    .close = transport_close,
    .join = join,
    .split = split,
    .place = weir_group_place,
    .run = mpi_run_call,
    .abort = weir_group_abort,
    .leave = leave,
    .library = transport_library,
    .cause = weir_group_cause,
};

static const char *const about[] = {
    "summary", "Collectives through the MPI of a cluster.",
    "needs",   "Open MPI 4 or MPICH 4, and a program started by mpirun or srun",
    NULL,
};

WEIR_MODULE(WEIR_MODULE_TRANSPORT, "mpi", WEIR_VERSION_STRING, WEIR_MODULE_TRANSPORT_OPS(mpi_ops),
            .keys = keys, .key_count = sizeof keys / sizeof *keys, .about = about)
