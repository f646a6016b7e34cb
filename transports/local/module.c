// The module's header, its functions, and the choice of a wire by the rendezvous.
#include <string.h>

#include "transports/local/rendezvous.h"

// No state but the services of the front end, which live as long as the module.
static weir_status transport_open(const struct weir_host *host,
                                  const struct weir_setting *const *settings, void **out_state)
{
    (void)settings;
    const struct weir_host **state = host->allocate(sizeof *state);
    if (!state)
        return weir_host_no_memory(host, "the transport 'local'");
    *state = host;
    *out_state = state;
    return WEIR_OK;
}

static void transport_close(void *state)
{
    const struct weir_host **host = state;
    (*host)->release(state);
}

static const char *after(const char *text, const char *prefix)
{
    const size_t length = strlen(prefix);
    return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

// One rank alone is complete as soon as it has joined, so it needs no name.
static weir_status join_at(const struct weir_host *host, const struct weir_transport_setup *setup,
                           struct local_group **out_group)
{
    const char *place = setup->rendezvous;
    const char *name = place ? after(place, "process:") : "alone";
    if (name && name[0] && (place || setup->count == 1))
        return local_hub_join(host, setup, name, out_group);
    if (place && (after(place, "tcp://") || after(place, "file:")))
        return local_tcp_join(host, setup, out_group);
    return weir_host_fail(host, WEIR_ERROR_CONFIG,
                          "name a place where the ranks meet: tcp://HOST:PORT, file:PATH, or for "
                          "ranks of one process process:NAME",
                          "'%s': the transport 'local' knows no rendezvous '%s'", setup->label,
                          place ? place : "");
}

static weir_status transport_join(void *state, const struct weir_transport_setup *setup,
                                  void **out_group)
{
    const struct weir_host *host = *(const struct weir_host **)state;
    struct local_group *group = NULL;
    *out_group = NULL;
    if (setup->count > LOCAL_MAX_RANKS)
        return weir_host_fail(host, WEIR_ERROR_UNSUPPORTED, "use the transport 'mpi'",
                              "'%s': the transport 'local' joins at most %u ranks, not %u",
                              setup->label, LOCAL_MAX_RANKS, setup->count);
    const weir_status status = join_at(host, setup, &group);
    *out_group = group;
    return status;
}

static const struct weir_transport_ops local_ops = {
    .open = transport_open,
    .close = transport_close,
    .join = transport_join,
    .split = local_split,
    .place = local_place,
    .run = local_run_call,
    .abort = local_abort,
    .leave = local_leave,
};

static const char *const about[] = {
    "summary",
    "The reference transport of collectives: ranks of one process, or processes over TCP.",
    NULL,
};

static const struct weir_module local_module = {
    .abi = WEIR_MODULE_ABI,
    .struct_size = sizeof local_module,
    .kind = WEIR_MODULE_TRANSPORT,
    .name = "local",
    .version = WEIR_VERSION_STRING,
    .build_id = __VERSION__, // the compiler's
    .sanitizer = WEIR_MODULE_SANITIZER,
    .key_size = sizeof(struct weir_key),
    .about = about,
    .transport = &local_ops,
    .transport_slot_count = WEIR_TRANSPORT_SLOT_COUNT,
};

const struct weir_module *weir_module_query(uint32_t host_abi, const struct weir_host *host)
{
    (void)host_abi;
    (void)host;
    return &local_module;
}
