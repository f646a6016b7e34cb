// The functions of one ABI: abi.c includes this once for each, and defines before
//
//   NAME(word)          the word with the ABI's name
//   HANDLE, FIELD       the type of handles, and the member of union mpi_handle that has it
//   TABLE_NAME          the library's name
//   WORLD, BYTE, RETURN_ERRORS                handles of the library
//   ANY_SOURCE, UNDEFINED, STATUS_IGNORE, THREAD_MULTIPLE   its other constants
//   EXTRA(X)            the data symbols that these need

static struct {
#define X(name, arguments) int(*name) arguments;
    FUNCTIONS(X)
#undef X
#define X(name) void *name;
    EXTRA(X)
#undef X
} NAME(at);

static bool NAME(load)(void *library, const char **out_missing)
{
    const struct {
        const char *name;
        void *at;
    } symbols[] = {
#define X(name, arguments) {#name, (void *)&NAME(at).name},
        FUNCTIONS(X)
#undef X
#define X(name) {#name, (void *)&NAME(at).name},
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

static void NAME(state)(bool *out_initialized, bool *out_finalized)
{
    int initialized = 0;
    int finalized = 0;
    NAME(at).MPI_Initialized(&initialized);
    NAME(at).MPI_Finalized(&finalized);
    *out_initialized = initialized;
    *out_finalized = finalized;
}

static int NAME(init)(void)
{
    int provided;
    return NAME(at).MPI_Init_thread(NULL, NULL, THREAD_MULTIPLE, &provided);
}

static int NAME(finalize)(void)
{
    return NAME(at).MPI_Finalize();
}

static int NAME(is_threaded)(bool *out_threaded)
{
    int level = 0;
    const int error = NAME(at).MPI_Query_thread(&level);
    *out_threaded = level == THREAD_MULTIPLE;
    return error;
}

static int NAME(error_text)(int error, char *text, int *out_size)
{
    return NAME(at).MPI_Error_string(error, text, out_size);
}

static union mpi_handle NAME(world)(void)
{
    return (union mpi_handle){.FIELD = WORLD};
}

static int NAME(place)(union mpi_handle comm, int *out_rank, int *out_size)
{
    const int error = NAME(at).MPI_Comm_rank(comm.FIELD, out_rank);
    return error ? error : NAME(at).MPI_Comm_size(comm.FIELD, out_size);
}

static int NAME(duplicate)(union mpi_handle comm, union mpi_handle *out_comm)
{
    const int error = NAME(at).MPI_Comm_dup(comm.FIELD, &out_comm->FIELD);
    return error ? error : NAME(at).MPI_Comm_set_errhandler(out_comm->FIELD, RETURN_ERRORS);
}

static int NAME(split)(union mpi_handle comm, int color, int key, union mpi_handle *out_comm,
                       bool *out_any)
{
    *out_any = color >= 0;
    const int error =
        NAME(at).MPI_Comm_split(comm.FIELD, *out_any ? color : UNDEFINED, key, &out_comm->FIELD);
    return error || !*out_any ? error
                              : NAME(at).MPI_Comm_set_errhandler(out_comm->FIELD, RETURN_ERRORS);
}

static int NAME(free_comm)(union mpi_handle *comm)
{
    return NAME(at).MPI_Comm_free(&comm->FIELD);
}

static int NAME(send)(const void *bytes, int count, int peer, int tag, union mpi_handle comm,
                      union mpi_handle *out_request)
{
    return NAME(at).MPI_Isend(bytes, count, BYTE, peer, tag, comm.FIELD, &out_request->FIELD);
}

static int NAME(receive)(void *bytes, int count, int peer, int tag, union mpi_handle comm,
                         union mpi_handle *out_request)
{
    return NAME(at).MPI_Irecv(bytes, count, BYTE, peer, tag, comm.FIELD, &out_request->FIELD);
}

// The matched form: another thread cannot take the message in between.
static int NAME(take)(void *bytes, int count, int tag, union mpi_handle comm, bool *out_taken)
{
    int found = 0;
    HANDLE message;
    const int error =
        NAME(at).MPI_Improbe(ANY_SOURCE, tag, comm.FIELD, &found, &message, STATUS_IGNORE);
    *out_taken = error == 0 && found;
    return *out_taken ? NAME(at).MPI_Mrecv(bytes, count, BYTE, &message, STATUS_IGNORE) : error;
}

static int NAME(collective)(weir_collective kind, void *src, void *dst, int count, int root,
                            union mpi_handle comm, union mpi_handle *out_request)
{
    HANDLE *request = &out_request->FIELD;
    switch (kind) {
    case WEIR_ALL_GATHER:
        return NAME(at).MPI_Iallgather(src, count, BYTE, dst, count, BYTE, comm.FIELD, request);
    case WEIR_ALL_TO_ALL:
        return NAME(at).MPI_Ialltoall(src, count, BYTE, dst, count, BYTE, comm.FIELD, request);
    case WEIR_GATHER:
        return NAME(at).MPI_Igather(src, count, BYTE, dst, count, BYTE, root, comm.FIELD, request);
    case WEIR_SCATTER:
        return NAME(at).MPI_Iscatter(src, count, BYTE, dst, count, BYTE, root, comm.FIELD, request);
    default:
        return NAME(at).MPI_Ibcast(src, count, BYTE, root, comm.FIELD, request);
    }
}

static int NAME(test)(union mpi_handle *request, bool *out_done)
{
    int done = 0;
    const int error = NAME(at).MPI_Test(&request->FIELD, &done, STATUS_IGNORE);
    *out_done = done;
    return error;
}

static int NAME(cancel)(union mpi_handle *request, bool *out_done)
{
    const int error = NAME(at).MPI_Cancel(&request->FIELD);
    *out_done = false;
    return error ? error : NAME(test)(request, out_done);
}

const struct mpi_abi NAME(mpi_abi) = {
    .name = TABLE_NAME,
    .load = NAME(load),
    .state = NAME(state),
    .init = NAME(init),
    .finalize = NAME(finalize),
    .is_threaded = NAME(is_threaded),
    .error = NAME(error_text),
    .world = NAME(world),
    .place = NAME(place),
    .duplicate = NAME(duplicate),
    .split = NAME(split),
    .free = NAME(free_comm),
    .send = NAME(send),
    .receive = NAME(receive),
    .take = NAME(take),
    .collective = NAME(collective),
    .test = NAME(test),
    .cancel = NAME(cancel),
};

#undef NAME
#undef HANDLE
#undef FIELD
#undef TABLE_NAME
#undef WORLD
#undef BYTE
#undef RETURN_ERRORS
#undef ANY_SOURCE
#undef UNDEFINED
#undef STATUS_IGNORE
#undef THREAD_MULTIPLE
#undef EXTRA
