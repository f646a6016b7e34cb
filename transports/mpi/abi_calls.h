// The functions of one ABI: included once for each. Before it are defined
//
//   HANDLE, FIELD       the type of handles, and the member of union mpi_handle that has it
//   TABLE, TABLE_NAME   the table to define, and the library's name
//   WORLD, BYTE, RETURN_ERRORS                handles of the library
//   ANY_SOURCE, UNDEFINED, STATUS_IGNORE, THREAD_MULTIPLE   its other constants
//   EXTRA(X)            the data symbols that these need
//
// No include guard: it defines what is static in the file that includes it.
#include <dlfcn.h>
#include <string.h>

#include "transports/mpi/abi.h"

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

static struct {
#define X(name, arguments) int(*name) arguments;
    FUNCTIONS(X)
#undef X
#define X(name) void *name;
    EXTRA(X)
#undef X
} at;

static bool load(void *library, const char **out_missing)
{
    const struct {
        const char *name;
        void *at;
    } symbols[] = {
#define X(name, arguments) {#name, (void *)&at.name},
        FUNCTIONS(X)
#undef X
#define X(name) {#name, (void *)&at.name},
            EXTRA(X)
#undef X
    };
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        *out_missing = symbols[i].name;
        if (!symbol)
            return false;
        memcpy(symbols[i].at, &symbol, sizeof symbol);
    }
    return true;
}

static void state(bool *out_initialized, bool *out_finalized)
{
    int initialized = 0;
    int finalized = 0;
    at.MPI_Initialized(&initialized);
    at.MPI_Finalized(&finalized);
    *out_initialized = initialized;
    *out_finalized = finalized;
}

static int init(void)
{
    int provided;
    return at.MPI_Init_thread(NULL, NULL, THREAD_MULTIPLE, &provided);
}

static int finalize(void)
{
    return at.MPI_Finalize();
}

static int is_threaded(bool *out_threaded)
{
    int level = 0;
    const int error = at.MPI_Query_thread(&level);
    *out_threaded = level == THREAD_MULTIPLE;
    return error;
}

static int error_text(int error, char *text, int *out_size)
{
    return at.MPI_Error_string(error, text, out_size);
}

static union mpi_handle world(void)
{
    return (union mpi_handle){.FIELD = WORLD};
}

static int place(union mpi_handle comm, int *out_rank, int *out_size)
{
    const int error = at.MPI_Comm_rank(comm.FIELD, out_rank);
    return error ? error : at.MPI_Comm_size(comm.FIELD, out_size);
}

static int duplicate(union mpi_handle comm, union mpi_handle *out_comm)
{
    const int error = at.MPI_Comm_dup(comm.FIELD, &out_comm->FIELD);
    return error ? error : at.MPI_Comm_set_errhandler(out_comm->FIELD, RETURN_ERRORS);
}

static int split(union mpi_handle comm, int color, int key, union mpi_handle *out_comm,
                 bool *out_any)
{
    *out_any = color >= 0;
    const int error =
        at.MPI_Comm_split(comm.FIELD, *out_any ? color : UNDEFINED, key, &out_comm->FIELD);
    return error || !*out_any ? error : at.MPI_Comm_set_errhandler(out_comm->FIELD, RETURN_ERRORS);
}

static int free_comm(union mpi_handle *comm)
{
    return at.MPI_Comm_free(&comm->FIELD);
}

static int send(const void *bytes, int count, int peer, int tag, union mpi_handle comm,
                union mpi_handle *out_request)
{
    return at.MPI_Isend(bytes, count, BYTE, peer, tag, comm.FIELD, &out_request->FIELD);
}

static int receive(void *bytes, int count, int peer, int tag, union mpi_handle comm,
                   union mpi_handle *out_request)
{
    return at.MPI_Irecv(bytes, count, BYTE, peer, tag, comm.FIELD, &out_request->FIELD);
}

// The matched form: another thread cannot take the message in between.
static int take(void *bytes, int count, int tag, union mpi_handle comm, bool *out_taken)
{
    int found = 0;
    HANDLE message;
    const int error = at.MPI_Improbe(ANY_SOURCE, tag, comm.FIELD, &found, &message, STATUS_IGNORE);
    *out_taken = error == 0 && found;
    return *out_taken ? at.MPI_Mrecv(bytes, count, BYTE, &message, STATUS_IGNORE) : error;
}

static int collective(weir_collective kind, void *src, void *dst, int count, int root,
                      union mpi_handle comm, union mpi_handle *out_request)
{
    HANDLE *request = &out_request->FIELD;
    switch (kind) {
    case WEIR_ALL_GATHER:
        return at.MPI_Iallgather(src, count, BYTE, dst, count, BYTE, comm.FIELD, request);
    case WEIR_ALL_TO_ALL:
        return at.MPI_Ialltoall(src, count, BYTE, dst, count, BYTE, comm.FIELD, request);
    case WEIR_GATHER:
        return at.MPI_Igather(src, count, BYTE, dst, count, BYTE, root, comm.FIELD, request);
    case WEIR_SCATTER:
        return at.MPI_Iscatter(src, count, BYTE, dst, count, BYTE, root, comm.FIELD, request);
    default:
        return at.MPI_Ibcast(src, count, BYTE, root, comm.FIELD, request);
    }
}

static int test(union mpi_handle *request, bool *out_done)
{
    int done = 0;
    const int error = at.MPI_Test(&request->FIELD, &done, STATUS_IGNORE);
    *out_done = done;
    return error;
}

static int cancel(union mpi_handle *request, bool *out_done)
{
    const int error = at.MPI_Cancel(&request->FIELD);
    *out_done = false;
    return error ? error : test(request, out_done);
}

const struct mpi_abi TABLE = {
    .name = TABLE_NAME,
    .load = load,
    .state = state,
    .init = init,
    .finalize = finalize,
    .is_threaded = is_threaded,
    .error = error_text,
    .world = world,
    .place = place,
    .duplicate = duplicate,
    .split = split,
    .free = free_comm,
    .send = send,
    .receive = receive,
    .take = take,
    .collective = collective,
    .test = test,
    .cancel = cancel,
};
