// Where a communicator's rank, count and rendezvous come from: parameters, then WEIR_COMM_* and
// [comm], which the configuration has joined already, then the variables of launchers. A rank and
// its count are always from one source.
#define _GNU_SOURCE // secure_getenv
#include "core/comm/comm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/comm/slurm.h"
#include "core/support/error.h"

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

static weir_status read_launcher(const struct launcher *launcher, const char *rank,
                                 const char *count, struct weir__comm_place *place)
{
    if (!rank || !count)
        return refuse_half(rank ? launcher->rank : launcher->count,
                           rank ? launcher->count : launcher->rank);
    weir_status status = read_number(launcher->rank, rank, &place->rank);
    if (status == WEIR_OK)
        status = read_number(launcher->count, count, &place->count);
    return status == WEIR_OK ? check_place(launcher->count, place->rank, place->count) : status;
}

static weir_status ask_launchers(struct weir__comm_place *place)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const char *rank = secure_getenv(launchers[i].rank);
        const char *count = secure_getenv(launchers[i].count);
        if (rank || count)
            return read_launcher(&launchers[i], rank, count, place);
    }
    place->rank = 0;
    place->count = 1;
    return WEIR_OK;
}

static weir_status find_rank(const struct weir__config *config,
                             const struct weir_comm_params *params, struct weir__comm_place *place)
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

static weir_status take_rendezvous(struct weir__comm_place *place, const char *format,
                                   const char *text, const char *port)
{
    const int length =
        snprintf(place->rendezvous, sizeof place->rendezvous, format, text, port ? port : "");
    if (length < 0 || (size_t)length >= sizeof place->rendezvous)
        return weir__fail(WEIR_ERROR_CONFIG, "use a shorter one",
                          "the rendezvous '%.40s…' has more than %d bytes", text,
                          WEIR__COMM_RENDEZVOUS_SIZE - 1);
    place->has_rendezvous = true;
    return WEIR_OK;
}

// Under srun: the first host of the step, and a port that follows from its numbers.
static weir_status ask_slurm(struct weir__comm_place *place)
{
    const char *const rank = secure_getenv("SLURM_PROCID");
    const char *const job = secure_getenv("SLURM_JOB_ID");
    const char *list = secure_getenv("SLURM_STEP_NODELIST");
    char host[256];
    char port[8];
    if (!list)
        list = secure_getenv("SLURM_JOB_NODELIST");
    if (!rank || !job || !list || place->count == 1)
        return WEIR_OK;
    if (!weir__slurm_first_host(list, host, sizeof host))
        return weir__fail(WEIR_ERROR_CONFIG, "set MASTER_ADDR and MASTER_PORT",
                          "no first host is found in SLURM's list of hosts, '%.80s'", list);
    snprintf(port, sizeof port, "%u",
             (unsigned)weir__slurm_port(job, secure_getenv("SLURM_STEP_ID")));
    return take_rendezvous(place, "tcp://%s:%s", host, port);
}

static weir_status find_rendezvous(const struct weir__config *config,
                                   const struct weir_comm_params *params,
                                   struct weir__comm_place *place)
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

weir_status weir__comm_place(const struct weir__config *config,
                             const struct weir_comm_params *params,
                             struct weir__comm_place *out_place)
{
    *out_place = (struct weir__comm_place){
        .timeout_ns = params->timeout_ns,
        .check = params->check || weir__config_comm(config, "check")->integer,
    };
    if (!out_place->timeout_ns)
        out_place->timeout_ns =
            (uint64_t)weir__config_comm(config, "timeout")->integer * 1000000000u;
    weir_status status = find_rank(config, params, out_place);
    return status == WEIR_OK ? find_rendezvous(config, params, out_place) : status;
}
