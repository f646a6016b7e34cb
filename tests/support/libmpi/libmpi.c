// The MPI library of the tests: what the transport calls, between processes that mpirun.sh
// has started. It receives only when it is called, as MPI may. WEIR_TEST_MPI_FAIL=NAME:N:RANK makes the N-th
// call of that function fail on that rank.
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

// The ABI of the standard, MPI 5.0, as far as the fake has it. Handles are the addresses of the fake's objects.

typedef void *handle;

#define FAKE_WORLD ((void *)(uintptr_t)0x101)
#define FAKE_BYTE ((void *)(uintptr_t)0x247)
#define FAKE_RETURN_ERRORS ((void *)(uintptr_t)0x142)
#define FAKE_ANY_SOURCE (-1)
#define FAKE_IGNORE NULL

// No header of the library's is here.
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

// Messages between the processes that mpirun.sh has started: they lie one after the other in a file that all have
// mapped, and each is linked to the one before it from the same rank to the same rank. All functions are called with
// wire_lock.

struct wire_head {
    int comm;
    int from; // both ranks are those of the world
    int tag;
    size_t size;
};

struct wire_message {
    atomic_size_t next;           // where in the file; 0: there is none yet
    struct wire_message *waiting; // of this process: after it among those that no receive has taken
    struct wire_head head;
    _Alignas(16) char bytes[];
};

enum {
    MOST_RANKS = 64
};

#define FILE_BYTES ((size_t)1 << 36) // of which those exist that are written

struct shared {
    atomic_int come[2];
    atomic_int numbers;
    atomic_size_t used;
    atomic_size_t first[MOST_RANKS][MOST_RANKS]; // from and to
};

static pthread_mutex_t wire_lock = PTHREAD_MUTEX_INITIALIZER;
static int wire_rank;
static int wire_count;
static struct shared *shared;
static atomic_size_t *outward[MOST_RANKS], *inward[MOST_RANKS]; // where the next message is linked

// Maps the file that FAKE_MPI names.
static void wire_open(int rank, int count)
{
    const char *path = getenv("FAKE_MPI");
    const int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0 || ftruncate(file, (off_t)FILE_BYTES) != 0 || count > MOST_RANKS)
        abort();
    shared = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (shared == MAP_FAILED)
        abort();
    wire_rank = rank;
    wire_count = count;
    for (int i = 0; i < count; i++) {
        outward[i] = &shared->first[rank][i];
        inward[i] = &shared->first[i][rank];
    }
}

static void wire_send(int to, const struct wire_head *head, const void *bytes)
{
    const size_t size = (sizeof(struct wire_message) + head->size + 15) / 16 * 16;
    const size_t at = sizeof *shared + atomic_fetch_add(&shared->used, size);
    struct wire_message *message = (void *)((char *)shared + (at + 15) / 16 * 16);
    message->head = *head;
    if (head->size > 0)
        memcpy(message->bytes, bytes, head->size);
    atomic_store(outward[to], (size_t)((char *)message - (char *)shared));
    outward[to] = &message->next;
}

// The library.

#define EXPORT __attribute__((visibility("default")))

enum {
    OTHER_ERROR = 15,
};

struct comm {
    int id;
    int rank;
    int count;
    int calls; // collectives so far
    int world[];
};

struct request {
    int left; // messages that have not come
};

// A receive that waits for its message.
struct receive {
    struct receive *next;
    struct wire_head head; // `size` is that of the room
    void *bytes;
    struct request *request;
};

static bool initialized;
static bool finalized;
static int level;
static struct comm *world;
static struct receive *receives;
static struct wire_message *messages; // that no receive has taken, in the order of their coming

// Handles.

static void *get(handle at)
{
    return at == FAKE_WORLD ? world : at;
}

// Calls.

static int admit(const char *name)
{
    static long calls;
    const char *failing = getenv("WEIR_TEST_MPI_FAIL");
    const size_t length = strlen(name);
    char *end;
    if (!failing || strncmp(failing, name, length) != 0 || failing[length] != ':')
        return 0;
    const long wanted = strtol(failing + length + 1, &end, 10);
    const bool here = strtol(end + 1, NULL, 10) == wire_rank;
    return here && ++calls == wanted ? OTHER_ERROR : 0;
}

#define BEGIN                       \
    pthread_mutex_lock(&wire_lock); \
    int code = admit(__func__)
#define END                           \
    pthread_mutex_unlock(&wire_lock); \
    return code

static void expect(bool right)
{
    if (!right)
        abort();
}

// Messages.

static bool matches(const struct receive *receive, const struct wire_head *head)
{
    return receive->head.comm == head->comm && receive->head.tag == head->tag &&
           (receive->head.from == FAKE_ANY_SOURCE || receive->head.from == head->from);
}

static void take(const struct receive *receive, struct wire_message *message)
{
    expect(message->head.size <= receive->head.size);
    if (message->head.size > 0)
        memcpy(receive->bytes, message->bytes, message->head.size);
    receive->request->left--;
}

static void arrive(struct wire_message *message)
{
    struct receive **at = &receives;
    while (*at && !matches(*at, &message->head))
        at = &(*at)->next;
    struct receive *receive = *at;
    if (receive) {
        *at = receive->next;
        take(receive, message);
        free(receive);
        return;
    }
    struct wire_message **end = &messages;
    while (*end)
        end = &(*end)->waiting;
    message->waiting = NULL;
    *end = message;
}

// Takes what has come.
static void move(void)
{
    for (int i = 0; i < wire_count; i++) {
        size_t at;
        while ((at = atomic_load(inward[i])) != 0) {
            struct wire_message *message = (void *)((char *)shared + at);
            inward[i] = &message->next;
            arrive(message);
        }
    }
}

static struct wire_message *find(const struct receive *receive)
{
    struct wire_message **at = &messages;
    while (*at && !matches(receive, &(*at)->head))
        at = &(*at)->waiting;
    struct wire_message *message = *at;
    if (message)
        *at = message->waiting;
    return message;
}

// `from` is a rank of the world.
static void post(struct request *request, const struct comm *comm, int from, int tag, void *bytes,
                 size_t size)
{
    struct receive *receive = calloc(1, sizeof *receive);
    *receive = (struct receive){NULL, {comm->id, from, tag, size}, bytes, request};
    request->left++;
    struct wire_message *message = find(receive);
    if (message) {
        take(receive, message);
        free(receive);
        return;
    }
    struct receive **end = &receives;
    while (*end)
        end = &(*end)->next;
    *end = receive;
}

static void give(const struct comm *comm, int to, int tag, const void *bytes, size_t size)
{
    wire_send(to, &(struct wire_head){comm->id, wire_rank, tag, size}, bytes);
}

static struct request *make_request(void)
{
    struct request *request = calloc(1, sizeof *request);
    expect(request);
    return request;
}

// Collectives: each rank sends parts to some ranks and receives parts of some. NULL: it sends, or
// receives, nothing. The tags are below those of messages.

static void trade(struct request *request, struct comm *comm, const char *src, size_t src_step,
                  char *dst, size_t dst_step, size_t size, int root)
{
    const int tag = -++comm->calls;
    for (int i = 0; i < comm->count; i++) {
        const bool is_root = root == comm->rank;
        const bool sends = src && (root < 0 || (is_root ? !dst || src_step > 0 : i == root));
        const bool takes = dst && (root < 0 || (is_root ? dst_step > 0 : i == root));
        if (i == comm->rank && src && dst)
            memcpy(dst + (size_t)i * dst_step, src + (size_t)i * src_step, size);
        if (i == comm->rank)
            continue;
        if (sends)
            give(comm, comm->world[i], tag, src + (size_t)i * src_step, size);
        if (takes)
            post(request, comm, comm->world[i], tag, dst + (size_t)i * dst_step, size);
    }
}

// With the lock, which is released for a moment.
static void rest(void)
{
    static const struct timespec pause = {.tv_nsec = 200000};
    pthread_mutex_unlock(&wire_lock);
    nanosleep(&pause, NULL);
    pthread_mutex_lock(&wire_lock);
    move();
}

static void await(const struct request *request)
{
    move();
    while (request->left > 0)
        rest();
}

// Waits until all processes have come to `stage`, 0 or 1.
static void await_stage(int stage)
{
    atomic_fetch_add(&shared->come[stage], 1);
    while (shared->come[stage] != wire_count)
        rest();
}

// The library's life.

EXPORT int MPI_Get_library_version(char *text, int *size)
{
    *size = snprintf(text, 256, "An MPI 5.0 of the tests");
    return 0;
}

EXPORT int MPI_Abi_get_version(int *major, int *minor)
{
    *major = 1;
    *minor = 0;
    return 0;
}

// Functions that tell a number.
#define TELL(name, parameters, statement) \
    EXPORT int name parameters            \
    {                                     \
        BEGIN;                            \
        statement;                        \
        END;                              \
    }
TELL(MPI_Initialized, (int *flag), *flag = initialized)
TELL(MPI_Finalized, (int *flag), *flag = finalized)
TELL(MPI_Query_thread, (int *provided), *provided = level)
TELL(MPI_Comm_rank, (handle at, int *rank), *rank = ((struct comm *)get(at))->rank)
TELL(MPI_Comm_size, (handle at, int *count), *count = ((struct comm *)get(at))->count)

static int number_of(const char *name)
{
    const char *text = getenv(name);
    return text ? (int)strtol(text, NULL, 10) : 0;
}

// As MPICH 4.2 does, which tells mpirun then that the process ends well: MPI_Finalize() must have been called.
static bool told_the_end;

static void tell_the_end(void)
{
    told_the_end = true;
}

// NOLINTNEXTLINE(readability-non-const-parameter): as MPI declares it
EXPORT int MPI_Init_thread(int *count, char ***arguments, int required, int *provided)
{
    (void)count, (void)arguments;
    pthread_mutex_lock(&wire_lock);
    wire_open(number_of("PMI_RANK"), number_of("PMI_SIZE"));
    world = calloc(1, sizeof *world + (size_t)wire_count * sizeof *world->world);
    expect(world);
    world->rank = wire_rank;
    world->count = wire_count;
    for (int i = 0; i < wire_count; i++)
        world->world[i] = i;
    await_stage(0);
    expect(atexit(tell_the_end) == 0);
    initialized = true;
    level = *provided = required;
    pthread_mutex_unlock(&wire_lock);
    return 0;
}

EXPORT int MPI_Finalize(void)
{
    BEGIN;
    expect(!told_the_end);
    await_stage(1);
    finalized = true;
    END;
}

// A process that ends without MPI_Finalize(): mpirun would end the others, which do not wait for it here.
static void __attribute__((destructor)) go(void)
{
    if (initialized && !finalized)
        atomic_fetch_add(&shared->come[1], 1);
}

EXPORT int MPI_Error_string(int error, char *text, int *size)
{
    *size = snprintf(text, 256, "the fake's error %d", error);
    return 0;
}

// Communicators.

EXPORT int MPI_Comm_set_errhandler(handle at, handle handler)
{
    BEGIN;
    expect(get(at) && handler == FAKE_RETURN_ERRORS);
    END;
}

struct choice {
    int color;
    int key;
    int number; // rank 0's: of the new communicators
};

// Those with this rank's color, by key and then by rank.
static struct comm *part_of(const struct comm *comm, const struct choice *choices)
{
    const struct choice *own = &choices[comm->rank];
    struct comm *part = calloc(1, sizeof *part + (size_t)comm->count * sizeof *part->world);
    int keys[64];
    int ranks[64];
    expect(part && comm->count <= 64);
    part->id = -1;
    for (int i = 0; i < comm->count; i++) {
        if (choices[i].color != own->color)
            continue;
        part->id = part->id < 0 ? choices[0].number + i : part->id;
        int at = part->count++;
        for (; at > 0 && keys[at - 1] > choices[i].key; at--)
            keys[at] = keys[at - 1], ranks[at] = ranks[at - 1];
        keys[at] = choices[i].key, ranks[at] = i;
    }
    for (int i = 0; i < part->count; i++) {
        part->world[i] = comm->world[ranks[i]];
        part->rank = ranks[i] == comm->rank ? i : part->rank;
    }
    return part;
}

static void split(struct comm *comm, int color, int key, handle *out)
{
    struct choice own = {color, key,
                         comm->rank == 0 ? atomic_fetch_add(&shared->numbers, comm->count) + 1 : 0};
    struct choice *choices = calloc((size_t)comm->count, sizeof *choices);
    struct request request = {0};
    expect(choices);
    trade(&request, comm, (const char *)&own, 0, (char *)choices, sizeof own, sizeof own, -1);
    await(&request);
    if (color >= 0)
        *out = part_of(comm, choices);
    free(choices);
}

EXPORT int MPI_Comm_split(handle at, int color, int key, handle *out)
{
    BEGIN;
    if (code == 0)
        split(get(at), color, key, out);
    END;
}

EXPORT int MPI_Comm_dup(handle at, handle *out)
{
    BEGIN;
    if (code == 0)
        split(get(at), 0, 0, out);
    END;
}

EXPORT int MPI_Comm_free(handle *at)
{
    BEGIN;
    free(get(*at));
    *at = NULL;
    END;
}

// Messages of the caller's.

EXPORT int MPI_Isend(const void *bytes, int size, handle type, int to, int tag, handle at,
                     handle *out)
{
    BEGIN;
    const struct comm *comm = get(at);
    expect(type == FAKE_BYTE && tag > 0 && to < comm->count);
    if (code == 0) {
        struct request *request = make_request();
        give(comm, comm->world[to], tag, bytes, (size_t)size);
        *out = request;
    }
    END;
}

EXPORT int MPI_Irecv(void *bytes, int size, handle type, int from, int tag, handle at, handle *out)
{
    BEGIN;
    const struct comm *comm = get(at);
    expect(type == FAKE_BYTE && tag > 0 && from < comm->count);
    if (code == 0) {
        struct request *request = make_request();
        post(request, comm, comm->world[from], tag, bytes, (size_t)size);
        *out = request;
    }
    END;
}

EXPORT int MPI_Improbe(int from, int tag, handle at, int *found, handle *out, void *status)
{
    BEGIN;
    const struct comm *comm = get(at);
    const struct receive any = {.head = {comm->id, FAKE_ANY_SOURCE, tag, 0}};
    expect(from == FAKE_ANY_SOURCE && status == FAKE_IGNORE);
    move();
    struct wire_message *message = code == 0 ? find(&any) : NULL;
    *found = message != NULL;
    if (message)
        *out = message;
    END;
}

EXPORT int MPI_Mrecv(void *bytes, int size, handle type, handle *at, void *status)
{
    BEGIN;
    struct request request = {.left = 1};
    const struct receive receive = {.head = {.size = (size_t)size},
                                    .bytes = bytes,
                                    .request = &request};
    expect(type == FAKE_BYTE && status == FAKE_IGNORE);
    take(&receive, get(*at));
    *at = NULL;
    END;
}

EXPORT int MPI_Test(handle *at, int *done, void *status)
{
    BEGIN;
    expect(status == FAKE_IGNORE);
    move();
    struct request *request = get(*at);
    *done = code == 0 && (!request || request->left == 0);
    if (*done && request) {
        *at = NULL;
        free(request);
    }
    END;
}

EXPORT int MPI_Cancel(handle *at)
{
    BEGIN;
    struct request *request = get(*at);
    struct receive **place = &receives;
    while (*place && (*place)->request != request)
        place = &(*place)->next;
    struct receive *receive = *place;
    if (receive) {
        *place = receive->next;
        request->left--;
        free(receive);
    }
    END;
}

// Collectives of the caller's.

#define COLLECTIVE(src, src_step, dst, dst_step, size, root)                      \
    BEGIN;                                                                        \
    struct comm *comm = get(at);                                                  \
    if (code == 0) {                                                              \
        struct request *request = make_request();                                 \
        trade(request, comm, src, src_step, dst, dst_step, (size_t)(size), root); \
        *out = request;                                                           \
    }                                                                             \
    END

EXPORT int MPI_Iallgather(const void *src, int size, handle type, void *dst, int dst_size,
                          handle dst_type, handle at, handle *out)
{
    expect(type == FAKE_BYTE && dst_type == type && dst_size == size);
    COLLECTIVE(src, 0, dst, (size_t)size, size, -1);
}

EXPORT int MPI_Ialltoall(const void *src, int size, handle type, void *dst, int dst_size,
                         handle dst_type, handle at, handle *out)
{
    expect(type == FAKE_BYTE && dst_type == type && dst_size == size);
    COLLECTIVE(src, (size_t)size, dst, (size_t)size, size, -1);
}

EXPORT int MPI_Igather(const void *src, int size, handle type, void *dst, int dst_size,
                       handle dst_type, int root, handle at, handle *out)
{
    expect(type == FAKE_BYTE && dst_type == type && dst_size == size);
    COLLECTIVE(src, 0, comm->rank == root ? dst : NULL, (size_t)size, size, root);
}

EXPORT int MPI_Iscatter(const void *src, int size, handle type, void *dst, int dst_size,
                        handle dst_type, int root, handle at, handle *out)
{
    expect(type == FAKE_BYTE && dst_type == type && dst_size == size);
    COLLECTIVE(comm->rank == root ? src : NULL, (size_t)size, dst, 0, size, root);
}

EXPORT int MPI_Ibcast(void *bytes, int size, handle type, int root, handle at, handle *out)
{
    expect(type == FAKE_BYTE);
    COLLECTIVE(comm->rank == root ? bytes : NULL, 0, comm->rank == root ? NULL : bytes, 0, size,
               root);
}
