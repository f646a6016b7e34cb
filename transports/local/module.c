// The module's header and its functions.
#include "transports/local/meeting.h"

struct transport {
    const struct weir_host *host;
    const char *secret_file; // of the settings, which outlive this
};

static weir_status transport_open(const struct weir_host *host,
                                  const struct weir_setting *const *settings, void **out_state)
{
    struct transport *transport = host->allocate(sizeof *transport);
    if (!transport)
        return weir_host_no_memory(host, "the transport 'local'");
    transport->host = host;
    transport->secret_file = settings[0]->text;
    *out_state = transport;
    return WEIR_OK;
}

static void transport_close(void *state)
{
    const struct transport *transport = state;
    transport->host->release(state);
}

// One rank alone needs no name.
static weir_status join_at(const struct transport *transport,
                           const struct weir_transport_setup *setup, struct local_group **out_group)
{
    struct weir_transport_setup named = *setup;
    if (!setup->rendezvous && setup->count == 1)
        named.rendezvous = "process:alone";
    if (named.rendezvous && named.rendezvous[0])
        return local_mesh_join(transport->host, &named, transport->secret_file, out_group);
    return weir_host_fail(transport->host, WEIR_ERROR_CONFIG, LOCAL_PLACE_REMEDY,
                          "'%s': no rendezvous is named, where %u ranks are to meet", setup->label,
                          setup->count);
}

static weir_status transport_join(void *state, const struct weir_transport_setup *setup,
                                  void **out_group)
{
    const struct transport *transport = state;
    const struct weir_host *host = transport->host;
    struct local_group *group = NULL;
    *out_group = NULL;
    if (setup->count > LOCAL_MAX_RANKS)
        return weir_host_fail(host, WEIR_ERROR_UNSUPPORTED, "use the transport 'mpi'",
                              "'%s': the transport 'local' joins at most %u ranks, not %u",
                              setup->label, LOCAL_MAX_RANKS, setup->count);
    const weir_status status = join_at(transport, setup, &group);
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
    .shrink = local_shrink,
    .carries_data = local_carries_data,
    .cause = local_first_cause,
};

static const struct weir_key keys[] = {
    WEIR_TEXT_KEY("secret_file", "",
                  "A file that this user alone can read (chmod 600) with a text of 16 characters "
                  "or more, the same on all machines: ranks of other machines prove that they "
                  "know it. WEIR_COMM_SECRET goes before it."),
};

static const char *const about[] = {
    "summary",
    "The transport of collectives between ranks of one machine: threads and processes.",
    NULL,
};

WEIR_MODULE(WEIR_MODULE_TRANSPORT, "local", WEIR_VERSION_STRING,
            WEIR_MODULE_TRANSPORT_OPS(local_ops), .keys = keys,
            .key_count = sizeof keys / sizeof *keys, .about = about)
