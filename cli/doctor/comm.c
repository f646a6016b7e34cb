// weir doctor comm: whether two machines reach each other, and what NCCL and the link between the devices say.
// NOLINTNEXTLINE(bugprone-reserved-identifier): for NI_MAXHOST and dladdr()
#define _GNU_SOURCE
#include "cli/doctor/doctor.h"

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/inspect.h>

#include "base/lookup.h"
#include "cli/common/options.h"
#include "cli/common/progress.h"
#include "cli/runtime/open.h"

enum {
    DOCTOR_HOST_SIZE = 256
};

struct doctor_comm {
    const char *listen; // PORT or HOST:PORT; NULL
    const char *connect;
    uint64_t timeout; // seconds
};

// Of a runtime without plugins, and without a device's driver if the backend is null.
static struct weir_open_params doctor_comm_params(const struct doctor *doctor, const char *backend)
{
    struct weir_open_params params = cli_open_params(doctor->config);
    params.backend = backend;
    params.plugins = "";
    return params;
}

// Opens a runtime without a device's driver, whose communicators use that transport.
static weir_status doctor_comm_open(const struct doctor *doctor, const char *transport,
                                    weir_runtime **out_runtime)
{
    const struct weir_open_params params = doctor_comm_params(doctor, "null");
    setenv("WEIR_COMM_TRANSPORT", transport, 1);
    return weir_open_at(&params, out_runtime, NULL, 0);
}

// Plain connections, so that each address of a host is told on its own.

#define WAIT_MS 5000

static void name_of(const struct sockaddr *address, socklen_t size, char *text, size_t text_size)
{
    if (getnameinfo(address, size, text, (socklen_t)text_size, NULL, 0, NI_NUMERICHOST) != 0)
        snprintf(text, text_size, "?");
}

// 0, or the error of the connection.
static int try_address(const struct addrinfo *address)
{
    int error = 0;
    socklen_t size = sizeof error;
    const int it = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (it < 0)
        return errno;
    struct pollfd poll_it = {.fd = it, .events = POLLOUT};
    if (connect(it, address->ai_addr, address->ai_addrlen) != 0)
        error = errno;
    if (error == EINPROGRESS) {
        error = poll(&poll_it, 1, WAIT_MS) == 1 ? 0 : ETIMEDOUT;
        if (!error && getsockopt(it, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
            error = errno;
    }
    close(it);
    return error;
}

static const char *remedy_of(int error)
{
    switch (error) {
    case ECONNREFUSED:
        return "start `weir doctor comm --listen HOST:PORT` there first, with WEIR_COMM_SECRET, "
               "the same port and this address; if it runs, a firewall refuses the connection";
    case ETIMEDOUT:
        return "let the firewalls between the two machines pass the port, and see that the address "
               "is the other machine's";
    case ENETUNREACH:
    case EHOSTUNREACH:
        return "name an address of a network that both machines are in";
    default:
        return "name another address";
    }
}

static void tell_address(struct doctor *doctor, const struct addrinfo *address, const char *port,
                         int error, double ns, bool *reached)
{
    char name[NI_MAXHOST];
    name_of(address->ai_addr, address->ai_addrlen, name, sizeof name);
    const bool last = error && !address->ai_next && !*reached; // else another one may do
    doctor_add(doctor,
               last    ? DOCTOR_PROBLEM
               : error ? DOCTOR_NOTE
                       : DOCTOR_OK,
               "reaching", last ? remedy_of(error) : NULL, "%s, port %s%s%s", name, port,
               error ? ": " : ", answers in ",
               error ? strerror(error) : weir_text_duration(ns).text);
    *reached = *reached || !error;
}

// For `connect`: whether anything is reached there, and if not, why. `host` is a name or a number.
static bool doctor_comm_reach(struct doctor *doctor, const struct doctor_comm *comm,
                              const char *host, const char *port)
{
    struct addrinfo *addresses = NULL;
    bool reached = false;
    const char *failure =
        weir_lookup(host, port, cli_now_ns() + comm->timeout * UINT64_C(1000000000), &addresses);
    if (failure) {
        doctor_add(doctor, DOCTOR_PROBLEM, "reaching",
                   "name the host by its number, or enter it in /etc/hosts or the name service",
                   "the host '%s' is not found: %s", host, failure);
        return false;
    }
    for (const struct addrinfo *it = addresses; it; it = it->ai_next) {
        if (weir_address_is_own(it->ai_addr, it->ai_addrlen)) {
            doctor_ok(doctor, "reaching",
                      "%s is this machine, whose ranks meet at a socket of their user", host);
            reached = true;
            break;
        }
        const uint64_t began = cli_now_ns();
        const int error = try_address(it);
        tell_address(doctor, it, port, error, (double)(cli_now_ns() - began), &reached);
    }
    freeaddrinfo(addresses);
    return reached;
}

// Which NCCL the backend `cuda` would open. It needs neither a GPU nor the driver to be asked.

#define LEAST_VERSION 21800
#define REMEDY "install libnccl2, or name the file by `nccl` of [cuda] or WEIR_CUDA_NCCL"

// 22809 is 2.28.9.
static void tell_version(struct doctor *doctor, void *library)
{
    int (*get_version)(int *);
    int version = 0;
    Dl_info where = {.dli_fname = "?"};
    void *symbol = dlsym(library, "ncclGetVersion");
    memcpy(&get_version, &symbol, sizeof symbol);
    if (!symbol || get_version(&version) != 0) {
        doctor_note(doctor, "nccl", "the library is none of NCCL's; " REMEDY);
        return;
    }
    dladdr(symbol, &where);
    doctor_add(doctor, version < LEAST_VERSION ? DOCTOR_NOTE : DOCTOR_OK, "nccl", NULL,
               "NCCL %d.%d.%d, %s%s", version / 10000, version / 100 % 100, version % 100,
               where.dli_fname,
               version < LEAST_VERSION ? "; it is too old: 2.18 or newer is needed" : "");
}

static void tell_library(struct doctor *doctor, const char *setting)
{
    const char *name = strcmp(setting, "auto") == 0 ? "libnccl.so.2" : setting;
    if (strcmp(setting, "off") == 0) {
        doctor_ok(doctor, "nccl", "not used: `nccl` of [cuda] is off");
        return;
    }
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        doctor_note(doctor, "nccl", "%s; " REMEDY, dlerror());
        return;
    }
    tell_version(doctor, library);
    dlclose(library);
}

static bool ask(void *user, const char *section, const struct weir_setting *setting)
{
    if (strcmp(section, "cuda") != 0 || !setting || strcmp(setting->key->name, "nccl") != 0)
        return true;
    tell_library(user, setting->text);
    return false;
}

// Which NCCL there is.
static void doctor_comm_nccl(struct doctor *doctor)
{
    const struct weir_open_params params = doctor_comm_params(doctor, "cuda");
    const size_t before = doctor->count;
    // What is wrong with the configuration was told by its checks.
    if (weir_inspect_settings(&params, ask, doctor) >= 0 && doctor->count == before)
        doctor_note(doctor, "nccl", "the backend cuda cannot be loaded; `weir doctor` tells why");
}

// Two ranks, one on each machine, that meet as ranks of any program do, through the transport `local`.

enum {
    REDUCTIONS = 100
};

struct link {
    struct doctor *doctor;
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_buffer *buffer;
    weir_comm *comm;
};

static weir_status create(struct link *link, const struct doctor_comm *comm, const char *host,
                          const char *port)
{
    const struct weir_comm_params params = {
        .struct_size = sizeof params,
        .label = "doctor",
        .rank = comm->connect ? 1 : 0,
        .count = 2,
        .rendezvous = cli_text(strchr(host, ':') ? "tcp://[%s]:%s" : "tcp://%s:%s", host, port),
        .timeout_ns = comm->timeout * UINT64_C(1000000000),
    };
    weir_status status = doctor_comm_open(link->doctor, "local", &link->runtime);
    if (status == WEIR_OK)
        status = weir_device_open_at(link->runtime, NULL, &link->device, NULL, 0);
    if (status == WEIR_OK)
        status = weir_queue_create(link->device, NULL, &link->queue);
    if (status == WEIR_OK)
        status = weir_buffer_create(link->device, WEIR_PARAMS(weir_buffer, .size = sizeof(int32_t)),
                                    &link->buffer);
    return status == WEIR_OK ? weir_comm_create(link->device, &params, &link->comm) : status;
}

// Each rank's number, of which both get the larger one.
static weir_status reduce(const struct link *link, double *out_ns, int32_t *out_value)
{
    const int32_t own = (int32_t)weir_comm_rank(link->comm) + 1;
    weir_status status = weir_upload(link->queue, link->buffer, 0, &own, sizeof own);
    const uint64_t began = cli_now_ns();
    for (int i = 0; i < REDUCTIONS && status == WEIR_OK; i++)
        status = weir_queue_all_reduce(link->queue, link->comm, link->buffer, 0, link->buffer, 0, 1,
                                       WEIR_I32, WEIR_MAXIMUM);
    if (status == WEIR_OK)
        status = weir_download(link->queue, out_value, link->buffer, 0, sizeof own);
    *out_ns = (double)(cli_now_ns() - began) / REDUCTIONS;
    return status;
}

static void tell(const struct link *link)
{
    double ns = 0;
    int32_t value = 0;
    if (reduce(link, &ns, &value) < 0)
        doctor_add_error(link->doctor, "exchange",
                         "let the network pass connections between the two machines that last");
    else if (value != 2)
        doctor_add(link->doctor, DOCTOR_PROBLEM, "exchange",
                   "let both machines run the same version of weir",
                   "the larger one of 1 and 2 came out as %d", (int)value);
    else
        doctor_ok(link->doctor, "exchange", "an all-reduce of 4 bytes takes %s",
                  weir_text_duration(ns).text);
}

static void meet(struct link *link, const struct doctor_comm *comm, const char *host,
                 const char *port)
{
    const weir_status status = create(link, comm, host, port);
    if (status == WEIR_ERROR_UNSUPPORTED) {
        // They have met, and know that no host memory goes from one to the other.
        doctor_ok(link->doctor, "meeting",
                  "this machine is rank %d of 2, reaches the other one both ways, and has the "
                  "same secret; NCCL carries device memory between them, and MPI the host's",
                  comm->connect ? 1 : 0);
        return;
    }
    if (status < 0) {
        doctor_add_error(link->doctor, "meeting",
                         "let the firewalls of both machines pass connections to all their ports, "
                         "for ranks listen at ports of their own once they have met");
        return;
    }
    doctor_ok(link->doctor, "meeting",
              "this machine is rank %u of 2, and reaches the other one both ways",
              (unsigned)weir_comm_rank(link->comm));
    tell(link);
}

// Meets the other rank, and on one machine reduces numbers with it.
static void doctor_comm_link(struct doctor *doctor, const struct doctor_comm *comm)
{
    struct link link = {.doctor = doctor};
    char host[DOCTOR_HOST_SIZE];
    const char *port;
    if (!weir_address_split(comm->connect ? comm->connect : comm->listen, host, sizeof host,
                            &port) ||
        (comm->connect && !host[0])) {
        doctor_add(doctor, DOCTOR_PROBLEM, "meeting",
                   comm->connect ? "name a host and a port, such as node1:29500"
                                 : "name a port, such as 29500, or HOST:PORT",
                   "'%s' is no place to meet", comm->connect ? comm->connect : comm->listen);
        return;
    }
    if (!host[0]) { // an address of this machine that others can reach, else a loopback one
        const struct sockaddr_in own = weir_address_of_host();
        name_of((const struct sockaddr *)&own, sizeof own, host, sizeof host);
    }
    if (comm->listen)
        cli_note("waits at %s; on the other machine run weir doctor comm --connect %s:%s, with the "
                 "same WEIR_COMM_SECRET",
                 comm->listen, host, port);
    if (comm->listen || doctor_comm_reach(doctor, comm, host, port))
        meet(&link, comm, host, port);
    weir_buffer_destroy(&link.buffer);
    weir_queue_destroy(&link.queue);
    weir_comm_destroy(&link.comm);
    WEIR_IGNORE(weir_device_close(&link.device));
    WEIR_IGNORE(weir_close(&link.runtime));
}

// weir doctor comm: what communicators of this machine would use, and whether two machines reach each
// other.

enum {
    TIMEOUT_MOST = 86400
};

static bool add_setting(void *user, const char *section, const struct weir_setting *setting)
{
    static const char *const keys[] = {"transport", "rendezvous", "timeout"};
    const bool is_own = strcmp(section, "comm") == 0;
    for (size_t i = 0; is_own && i < sizeof keys / sizeof *keys; i++)
        if (strcmp(setting->key->name, keys[i]) == 0 && setting->text[0])
            doctor_ok(user, "comm", "%s = %s%s (%s)", keys[i], setting->text,
                      i == 2 ? " seconds" : "", setting->origin);
    return is_own || strcmp(section, "weir") == 0;
}

static void examine_configuration(struct doctor *doctor)
{
    const struct weir_open_params params = doctor_comm_params(doctor, NULL);
    struct weir_inspect_place place;
    if (weir_inspect_settings(&params, add_setting, doctor) < 0)
        doctor_add_error(doctor, "configuration", "correct what it names");
    else if (weir_inspect_place(&params, &place) < 0)
        doctor_add_error(doctor, "comm", "correct what it names");
    else
        doctor_ok(doctor, "comm", "rank %u of %u, %s%s", (unsigned)place.rank,
                  (unsigned)place.count,
                  place.rendezvous[0] ? "meeting at " : "without a rendezvous", place.rendezvous);
}

// A transport that another program may want to use is no problem of this one.
static void try_transport(struct doctor *doctor, const char *name)
{
    const char *library = "";
    weir_runtime *runtime = NULL;
    if (doctor_comm_open(doctor, name, &runtime) < 0 ||
        weir_inspect_transport(runtime, &library) < 0)
        doctor_note(doctor, "transport", "%s cannot be used: %s; %s", name,
                    weir_last_error()->message, weir_last_error()->remedy);
    else
        doctor_ok(doctor, "transport", "%s%s%s", name, *library ? ", with " : "", library);
    WEIR_IGNORE(weir_close(&runtime));
}

int cli_doctor_comm(int argc, char **argv)
{
    struct doctor doctor = {0};
    struct doctor_comm comm = {.timeout = 60};
    bool as_json = false;
    const struct cli_option options[] = {
        {"listen", "PORT", "wait for the other machine at this port, or at HOST:PORT", CLI_TEXT,
         &comm.listen, 0, 0},
        {"connect", "HOST:PORT", "where the other machine listens", CLI_TEXT, &comm.connect, 0, 0},
        {"timeout", "SECONDS", "how long to wait for it (60)", CLI_COUNT, &comm.timeout, 1,
         TIMEOUT_MOST},
        CLI_CONFIG(&doctor.config),
        {"json", NULL, "print the findings as JSON", CLI_FLAG, &as_json, 0, 0},
    };
    const struct cli_usage usage = CLI_FORM_PLAIN(
        "weir doctor comm",
        "Tells what communicators would use: rank, rendezvous, transports and their "
        "libraries.\n"
        "With --listen on one machine and --connect on another it tries whether ranks there\n"
        "would meet, and tells what is in the way; on one machine it also reduces numbers.\n\n"
        "  weir doctor comm --listen 29500\n"
        "  weir doctor comm --connect node1:29500",
        options);
    cli_parse(&usage, argc, argv);
    if (comm.listen && comm.connect)
        cli_fail(CLI_USAGE, "weir doctor comm takes one of --listen and --connect; run the other "
                            "one on the other machine");
    cli_log_to_stderr();
    examine_configuration(&doctor);
    try_transport(&doctor, "local");
    try_transport(&doctor, "mpi");
    doctor_comm_nccl(&doctor);
    if (comm.listen || comm.connect)
        doctor_comm_link(&doctor, &comm);
    return doctor_report(&doctor, true, as_json);
}
