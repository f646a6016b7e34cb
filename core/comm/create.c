// Creating communicators: where a rank is, and how the ranks meet. Everything waits here: in a transport,
// at most the timeout.
#define _GNU_SOURCE // secure_getenv
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include <weir/inspect.h>

#include "core/comm/comm.h"
#include "core/runtime/runtime.h"
#include "core/support/memory.h"

#define FIRST_PORT 15000u
#define PORTS 10000u

// The first host of a list such as "node[1-4,7],gpu3": "node1". False for a text that is none, and for a
// name of more than `size` - 1 bytes.
static bool first_host(const char *list, char *out_host, size_t size)
{
    const size_t prefix = strcspn(list, "[,");
    size_t number = 0;
    const char *suffix = "";
    if (list[prefix] == '[') {
        const char *range = list + prefix + 1;
        const char *close = strchr(range, ']');
        number = strcspn(range, "-,]"); // with leading zeros, as in node[01-16]
        if (!close || number == 0)
            return false;
        suffix = close + 1;
    }
    const size_t rest = strcspn(suffix, ",");
    if (prefix + number + rest == 0 || prefix + number + rest >= size || memchr(suffix, '[', rest))
        return false;
    snprintf(out_host, size, "%.*s%.*s%.*s", (int)prefix, list, (int)number, list + prefix + 1,
             (int)rest, suffix);
    return true;
}

// Where a communicator's rank, count and rendezvous come from: parameters, then WEIR_COMM_* and
// [comm], which the configuration has joined already, then the variables of launchers. A rank and
// its count are always from one source.

struct launcher {
    const char *rank;
    const char *count;
};

static const struct launcher launchers[] = {
    {"RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"SLURM_PROCID", "SLURM_NTASKS"},
};

static weir_status check_place(const char *where, uint32_t rank, uint32_t count)
{
    if (rank < count)
        return WEIR_OK;
    return weir__fail(WEIR_ERROR_CONFIG, "ranks are numbered from 0 to the count less one",
                      "rank %" PRIu32 " of %" PRIu32 " ranks (%s)", rank, count, where);
}

static weir_status read_number(const char *name, const char *text, uint32_t *out_number)
{
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno || value > UINT32_MAX)
        return weir__fail(WEIR_ERROR_CONFIG, "set WEIR_COMM_RANK and WEIR_COMM_COUNT",
                          "%s is '%.64s', which is no number of 32 bits", name, text);
    *out_number = (uint32_t)value;
    return WEIR_OK;
}

static weir_status refuse_half(const char *present, const char *missing)
{
    return weir__fail(WEIR_ERROR_CONFIG, "set both, or neither", "%s is set, and %s is not",
                      present, missing);
}

static weir_status ask_launchers(struct weir_inspect_place *place)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const struct launcher *launcher = &launchers[i];
        const char *rank = secure_getenv(launcher->rank);
        const char *count = secure_getenv(launcher->count);
        if (!rank && !count)
            continue;
        if (!rank || !count)
            return refuse_half(rank ? launcher->rank : launcher->count,
                               rank ? launcher->count : launcher->rank);
        weir_status status = read_number(launcher->rank, rank, &place->rank);
        if (status == WEIR_OK)
            status = read_number(launcher->count, count, &place->count);
        return status == WEIR_OK ? check_place(launcher->count, place->rank, place->count) : status;
    }
    place->rank = 0;
    place->count = 1;
    return WEIR_OK;
}

static weir_status find_rank(const struct weir__config *config,
                             const struct weir_comm_params *params,
                             struct weir_inspect_place *place)
{
    const struct weir_setting *rank = weir__config_comm(config, "rank");
    const struct weir_setting *count = weir__config_comm(config, "count");
    if (params->count) {
        place->rank = params->rank;
        place->count = params->count;
        return check_place("the parameters", place->rank, place->count);
    }
    if (!count->integer && !rank->integer)
        return ask_launchers(place);
    if (!count->integer)
        return refuse_half(rank->origin, "`count` of [comm]");
    if (strcmp(rank->origin, "default") == 0)
        return refuse_half(count->origin, "`rank` of [comm]");
    place->rank = (uint32_t)rank->integer;
    place->count = (uint32_t)count->integer;
    return check_place(count->origin, place->rank, place->count);
}

static weir_status take_rendezvous(struct weir_inspect_place *place, const char *format,
                                   const char *text, const char *port)
{
    const int length =
        snprintf(place->rendezvous, sizeof place->rendezvous, format, text, port ? port : "");
    if (length < 0 || (size_t)length >= sizeof place->rendezvous)
        return weir__fail(WEIR_ERROR_CONFIG, "use a shorter one",
                          "the rendezvous '%.40s…' has more than %zu bytes", text,
                          sizeof place->rendezvous - 1);
    return WEIR_OK;
}

// Under srun: the first host of the step, and a port that follows from its numbers.
static weir_status ask_slurm(struct weir_inspect_place *place)
{
    const char *const rank = secure_getenv("SLURM_PROCID");
    const char *const job = secure_getenv("SLURM_JOB_ID");
    const char *const step = secure_getenv("SLURM_STEP_ID");
    const char *list = secure_getenv("SLURM_STEP_NODELIST");
    char host[256];
    char port[8];
    if (!list)
        list = secure_getenv("SLURM_JOB_NODELIST");
    if (!rank || !job || !list || place->count == 1)
        return WEIR_OK;
    if (!first_host(list, host, sizeof host))
        return weir__fail(WEIR_ERROR_CONFIG, "set MASTER_ADDR and MASTER_PORT",
                          "no first host is found in SLURM's list of hosts, '%.80s'", list);
    // A port that all ranks of a job step compute alike, and steps that run at once rarely share.
    const unsigned long long number =
        strtoull(job, NULL, 10) + (step ? strtoull(step, NULL, 10) * 101 : 0);
    snprintf(port, sizeof port, "%u", FIRST_PORT + (unsigned)(number % PORTS));
    return take_rendezvous(place, "tcp://%s:%s", host, port);
}

static weir_status find_rendezvous(const struct weir__config *config,
                                   const struct weir_comm_params *params,
                                   struct weir_inspect_place *place)
{
    const char *text = weir__config_comm(config, "rendezvous")->text;
    const char *host = secure_getenv("MASTER_ADDR");
    const char *port = secure_getenv("MASTER_PORT");
    if (params->rendezvous)
        return take_rendezvous(place, "%s%s", params->rendezvous, NULL);
    if (text[0])
        return take_rendezvous(place, "%s%s", text, NULL);
    if (!host && !port)
        return ask_slurm(place);
    if (!host || !port)
        return refuse_half(host ? "MASTER_ADDR" : "MASTER_PORT",
                           host ? "MASTER_PORT" : "MASTER_ADDR");
    const bool bare = strchr(host, ':') && host[0] != '['; // an address of IPv6
    return take_rendezvous(place, bare ? "tcp://[%s]:%s" : "tcp://%s:%s", host, port);
}

static weir_status find_place(const struct weir__config *config,
                              const struct weir_comm_params *params,
                              struct weir_inspect_place *out_place)
{
    *out_place = (struct weir_inspect_place){.rank = 0};
    weir_status status = find_rank(config, params, out_place);
    return status == WEIR_OK ? find_rendezvous(config, params, out_place) : status;
}

static const struct weir_comm_params defaults = {.struct_size = sizeof defaults};

weir_status weir_inspect_place_sized(const struct weir_open_params *params,
                                     struct weir_inspect_place *out_place, size_t size)
{
    struct weir_inspect_place place;
    struct weir__config *config = NULL;
    struct weir_open_params read;
    WEIR_REQUIRE(NULL, out_place);
    if (params)
        WEIR_READ_PARAMS(NULL, 0, weir_open_params, params, &read);
    weir_status status = weir__config_load(params, &config);
    if (status == WEIR_OK)
        status = find_place(config, &defaults, &place);
    weir__config_destroy(&config);
    if (status < 0)
        return status;
    weir_write(out_place, size, &place, sizeof place);
    return WEIR_OK;
}

// Creating communicators.

// One rank on its way into a group.
struct joiner {
    weir_device *device;
    const struct weir_comm_params *params;
    struct weir_inspect_place place;
    const char *file;
    int line;
    struct weir_thread thread;
    bool has_thread;
    weir_comm *comm;
    struct weir_error error; // if it failed
};

static weir_status make(const struct joiner *joiner, weir_comm *comm)
{
    void *state = NULL;
    const struct weir_inspect_place *place = &joiner->place;
    const struct weir_transport_setup setup = {
        .struct_size = sizeof setup,
        .label = weir__label_or_none(comm->member.object.label),
        .rank = place->rank,
        .count = place->count,
        .rendezvous = place->rendezvous[0] ? place->rendezvous : NULL,
        .timeout_ns = comm->timeout_ns,
        .file = joiner->file,
        .line = joiner->line,
    };
    weir_status status = weir__transport_get(joiner->device->runtime, &comm->transport, &state);
    if (status == WEIR_OK)
        status = comm->transport->join(state, &setup, &comm->group);
    return status == WEIR_OK ? weir__engine_create(comm, joiner->file, joiner->line) : status;
}

static void join(void *argument)
{
    struct joiner *joiner = argument;
    const struct weir__config *config = joiner->device->runtime->config;
    weir_comm *comm = weir__comm_allocate(joiner->device, joiner->params->label, NULL);
    weir_status status = WEIR_ERROR_OUT_OF_MEMORY;
    if (comm) {
        comm->timeout_ns = joiner->params->timeout_ns;
        if (!comm->timeout_ns)
            comm->timeout_ns =
                (uint64_t)weir__config_comm(config, "timeout")->integer * 1000000000u;
        comm->check = joiner->params->check || weir__config_comm(config, "check")->integer;
        status = make(joiner, comm);
    }
    if (status == WEIR_OK) {
        joiner->comm = comm;
        return;
    }
    weir__error_place(status, joiner->params->label, joiner->file, joiner->line);
    joiner->error = weir__error_of(status);
    weir__comm_drop(comm);
}

weir_status weir_comm_create_at(weir_device *device, const struct weir_comm_params *params,
                                weir_comm **out_comm, const char *file, int line)
{
    struct weir_comm_params known;
    WEIR_ENTER_FOR(file, line, out_comm, device);
    params = params ? params : &defaults;
    WEIR_READ_PARAMS(file, line, weir_comm_params, params, &known);
    WEIR_REFUSE_HOST_CALL_AT(file, line, params->label, "call it on a thread of the program's");
    struct joiner joiner = {.device = device,
                            .params = params,
                            .file = weir__file_name(file),
                            .line = line};
    const weir_status status = find_place(device->runtime->config, params, &joiner.place);
    if (status < 0) {
        weir__error_place(status, params->label, file, line);
        return status;
    }
    join(&joiner);
    if (joiner.error.status < 0)
        return weir__error_set(&joiner.error);
    *out_comm = joiner.comm;
    return WEIR_OK;
}

// Several devices of a process.

// Ranks that are all in this process meet at a name that nothing else uses.
static weir_status place_all(struct weir_inspect_place *place, weir_runtime *runtime,
                             const struct weir_comm_params *params, uint32_t count)
{
    static atomic_uint_fast64_t meetings;
    struct weir_comm_params first = *params;
    first.rank = params->count ? params->rank : 0;
    first.count = params->count ? params->count : count;
    TRY(find_place(runtime->config, &first, place));
    if (count > place->count - place->rank)
        return weir__fail(WEIR_ERROR_INVALID, "correct params.count, or the number of devices",
                          "%" PRIu32 " devices from rank %" PRIu32 " on do not fit into %" PRIu32
                          " ranks",
                          count, place->rank, place->count);
    if (!params->rendezvous && place->count == count)
        snprintf(place->rendezvous, sizeof place->rendezvous, "process:weir-%ld-%" PRIuFAST64,
                 (long)getpid(), atomic_fetch_add(&meetings, 1));
    return WEIR_OK;
}

static void start(struct joiner *joiner)
{
    const int error = weir_thread_start(&joiner->thread, join, joiner);
    joiner->has_thread = error == 0;
    if (joiner->has_thread)
        return;
    weir__report_at(joiner->file, joiner->line, joiner->params->label, WEIR_ERROR_SYSTEM,
                    "raise the limit of threads",
                    "weir_comm_create_all: no thread for rank %" PRIu32, joiner->place.rank);
    joiner->error = *weir_last_error();
}

static weir_status create_all(weir_device *const *devices, uint32_t count,
                              const struct joiner *pattern, struct joiner *joiners,
                              weir_comm **out_comms)
{
    const struct joiner *failed = NULL;
    for (uint32_t i = 0; i < count; i++) {
        joiners[i] = *pattern;
        joiners[i].device = devices[i];
        joiners[i].place.rank = pattern->place.rank + i;
        start(&joiners[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (joiners[i].has_thread)
            weir_thread_join(&joiners[i].thread);
        if (joiners[i].error.status < 0 && !failed)
            failed = &joiners[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        if (failed)
            weir_comm_destroy(&joiners[i].comm);
        out_comms[i] = joiners[i].comm;
    }
    return failed ? weir__error_set(&failed->error) : WEIR_OK;
}

static weir_status check_devices(weir_device *const *devices, uint32_t count, const char *file,
                                 int line)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!devices[i])
            return weir__fail_at(file, line, NULL, WEIR_ERROR_INVALID, weir__null_remedy("device"),
                                 "weir_comm_create_all: device %" PRIu32 " is NULL", i);
        if (devices[i]->runtime != devices[0]->runtime)
            return weir__fail_at(file, line, NULL, WEIR_ERROR_INVALID,
                                 "open all of them from one runtime",
                                 "weir_comm_create_all: device %" PRIu32
                                 " is of another runtime than device 0",
                                 i);
    }
    return WEIR_OK;
}

weir_status weir_comm_create_all_at(weir_device *const *devices, uint32_t device_count,
                                    const struct weir_comm_params *params, weir_comm **out_comms,
                                    const char *file, int line)
{
    struct weir_comm_params known;
    WEIR_REFUSE_FORK_AT(file, line);
    WEIR_REQUIRE_AT(file, line, NULL, out_comms);
    for (uint32_t i = 0; i < device_count; i++)
        out_comms[i] = NULL;
    WEIR_REQUIRE_AT(file, line, NULL, devices);
    WEIR_REQUIRE_AT(file, line, NULL, device_count > 0);
    for (uint32_t i = 0; i < device_count; i++)
        WEIR_LOOK_AT(file, line, devices[i]);
    params = params ? params : &defaults;
    WEIR_READ_PARAMS(file, line, weir_comm_params, params, &known);
    WEIR_REFUSE_HOST_CALL_AT(file, line, params->label, "call it on a thread of the program's");
    TRY(check_devices(devices, device_count, file, line));
    struct joiner pattern = {.params = params, .file = weir__file_name(file), .line = line};
    weir_status status = place_all(&pattern.place, devices[0]->runtime, params, device_count);
    if (status < 0) {
        weir__error_place(status, params->label, file, line);
        return status;
    }
    struct joiner *joiners = weir__allocate(device_count * sizeof *joiners);
    if (!joiners)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for communicators");
    status = create_all(devices, device_count, &pattern, joiners, out_comms);
    weir__release(joiners);
    return status;
}

// Splits.

static weir_status split_group(weir_comm *comm, const struct weir_transport_split *split,
                               uint32_t turn, weir_comm *part)
{
    TRY(weir__comm_await_turn(comm, turn));
    weir_status status = comm->transport->split(comm->group, split, &part->group);
    if (status < 0) {
        weir__error_place(status, comm->member.object.label, split->file, split->line);
        status = weir__comm_blame(comm, status);
    }
    weir__comm_end_turn(comm, turn);
    return status;
}

weir_status weir_comm_split_at(weir_comm *comm, int32_t color, int32_t key, const char *label,
                               weir_comm **out_part, const char *file, int line)
{
    WEIR_ENTER_FOR(file, line, out_part, comm);
    WEIR_REQUIRE_AT(file, line, comm->member.object.label, color >= WEIR_NO_COLOR);
    WEIR_REFUSE_HOST_CALL_AT(file, line, comm->member.object.label,
                             "call it on a thread of the program's");
    weir_comm *part = weir__comm_allocate(comm->member.device, label, comm);
    if (!part)
        return weir_last_error()->status;

    weir_lock_take(&comm->submit_lock);
    const uint32_t turn = comm->next_turn++;
    const struct weir_transport_split split = {
        .struct_size = sizeof split,
        .label = weir__label_or_none(part->member.object.label),
        .color = color,
        .key = key,
        .number = ++comm->number,
        .timeout_ns = comm->timeout_ns,
        .file = weir__file_name(file),
        .line = line,
    };
    weir_lock_release(&comm->submit_lock);
    weir_status status = split_group(comm, &split, turn, part);
    if (status == WEIR_OK && part->group)
        status = weir__engine_create(part, file, line);
    if (status < 0)
        weir__error_place(status, comm->member.object.label, file, line);
    if (status < 0 || !part->group) {
        weir__comm_drop(part);
        return status;
    }
    *out_part = part;
    return WEIR_OK;
}
