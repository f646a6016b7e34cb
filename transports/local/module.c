// The module's header, its table, its keys.
#include "transports/local/local.h"

static weir_status transport_open(const struct weir_host *host,
                                  const struct weir_setting *const *settings, void **out_state)
{
    struct local_transport *transport = host->allocate(sizeof *transport);
    if (!transport)
        return weir_host_no_memory(host, "the transport 'local'");
    transport->host = host;
    transport->secret_file = settings[0]->text;
    *out_state = transport;
    return WEIR_OK;
}

static void transport_close(void *state)
{
    const struct local_transport *transport = state;
    transport->host->release(state);
}

static const struct weir_transport_ops local_ops = {
    .open = transport_open,
    .close = transport_close,
    .join = local_join,
    .split = local_split,
    .place = weir_group_place,
    .run = local_run_call,
    .abort = weir_group_abort,
    .leave = local_leave,
    .shrink = local_shrink,
    .carries_data = local_carries_data,
    .cause = weir_group_cause,
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
