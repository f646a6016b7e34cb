// The module's key, and its functions.
#include "transports/mpi/mpi.h"

static const struct weir_key keys[] = {
    {
        .name = "library",
        .type = WEIR_KEY_TEXT,
        .fallback = "",
        .help = "The MPI library: a name that the dynamic linker finds, or a path; empty: the one "
                "that the program has loaded, else the one that mpirun belongs to.",
    },
};

// No state but the services of the front end: MPI is the process's.
static weir_status transport_open(const struct weir_host *host,
                                  const struct weir_setting *const *settings, void **out_state)
{
    const weir_status status = mpi_library_open(host, settings[0]->text);
    *out_state = NULL;
    if (status < 0)
        return status;
    const struct weir_host **state = host->allocate(sizeof *state);
    if (!state)
        return weir_host_no_memory(host, "the transport 'mpi'");
    *state = host;
    *out_state = state;
    return WEIR_OK;
}

static void transport_close(void *state)
{
    const struct weir_host **host = state;
    (*host)->release(state);
}

static const char *transport_library(const void *state)
{
    (void)state;
    return mpi_library_version();
}

static const struct weir_transport_ops mpi_ops = {
    .open = transport_open,
    .close = transport_close,
    .join = mpi_join,
    .split = mpi_split,
    .place = mpi_place,
    .run = mpi_run_call,
    .abort = mpi_abort,
    .leave = mpi_leave,
    .library = transport_library,
    .cause = mpi_first_cause,
};

static const char *const about[] = {
    "summary", "Collectives through the MPI of a cluster.",
    "needs",   "Open MPI 4 or MPICH 4, and a program started by mpirun or srun",
    NULL,
};

static const struct weir_module mpi_module = {
    .abi = WEIR_MODULE_ABI,
    .struct_size = sizeof mpi_module,
    .kind = WEIR_MODULE_TRANSPORT,
    .name = "mpi",
    .version = WEIR_VERSION_STRING,
    .build_id = __VERSION__, // the compiler's
    .sanitizer = WEIR_MODULE_SANITIZER,
    .keys = keys,
    .key_count = sizeof keys / sizeof *keys,
    .key_size = sizeof *keys,
    .about = about,
    .transport = &mpi_ops,
    .transport_slot_count = WEIR_TRANSPORT_SLOT_COUNT,
};

const struct weir_module *weir_module_query(uint32_t host_abi, const struct weir_host *host)
{
    (void)host_abi;
    (void)host;
    return &mpi_module;
}
