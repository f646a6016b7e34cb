// The module's header and its functions.
#include <string.h>

#include "transports/local/meeting.h"

enum {
    KEY_SECRET_FILE,
    KEY_COUNT
};

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
    transport->secret_file = settings[KEY_SECRET_FILE]->text;
    *out_state = transport;
    return WEIR_OK;
}

static void transport_close(void *state)
{
    const struct transport *transport = state;
    transport->host->release(state);
}

static const char rendezvous_remedy[] =
    "name a place where the ranks meet, such as in WEIR_COMM_RENDEZVOUS: tcp://HOST:PORT, "
    "unix:PATH, file:PATH, or for ranks of one process process:NAME";

// One rank alone needs no name.
static weir_status join_at(const struct transport *transport,
                           const struct weir_transport_setup *setup, struct local_group **out_group)
{
    static const char *const kinds[] = {"process:", "tcp://", "unix:", "file:"};
    const struct weir_host *host = transport->host;
    struct weir_transport_setup named = *setup;
    if (!setup->rendezvous && setup->count == 1)
        named.rendezvous = "process:alone";
    const char *place = named.rendezvous;
    for (size_t i = 0; place && i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(place, kinds[i], strlen(kinds[i])) == 0)
            return local_mesh_join(host, &named, transport->secret_file, out_group);
    if (!place || !place[0])
        return weir_host_fail(host, WEIR_ERROR_CONFIG, rendezvous_remedy,
                              "'%s': no rendezvous is named, where %u ranks are to meet",
                              setup->label, setup->count);
    return weir_host_fail(host, WEIR_ERROR_CONFIG, rendezvous_remedy,
                          "'%s': the transport 'local' knows no rendezvous '%s'", setup->label,
                          place);
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

static const struct weir_key local_keys[KEY_COUNT] = {
    [KEY_SECRET_FILE] =
        {
            .name = "secret_file",
            .type = WEIR_KEY_TEXT,
            .fallback = "",
            .help = "A file that this user alone can read (chmod 600) with a text of 16 characters "
                    "or more, the same on all machines: ranks of other machines prove that they "
                    "know it. WEIR_COMM_SECRET goes before it.",
        },
};

static const char *const about[] = {
    "summary",
    "The transport of collectives between ranks of one machine: threads and processes.",
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
    .keys = local_keys,
    .key_count = KEY_COUNT,
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
