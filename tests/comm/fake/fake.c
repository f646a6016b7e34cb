// A transport whose ranks are threads of one process, for tests of the front end: `local`, which can fail and
// hang where its section says so, takes any rendezvous as a name, and logs each call of rank 0.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "transports/local/local.h"

enum setting {
    FAIL_AT,
    HANG_AT,
    OPEN_FAILS,
    CREATION_FAILS,
};

static struct {
    const struct weir_host *host;
    const struct weir_setting *const *settings;
    atomic_int groups;
    atomic_bool aborted; // one of them
} fake;

static bool is_at(enum setting which, uint64_t number)
{
    return number && fake.settings[which]->integer == (int64_t)number;
}

static weir_status fake_open(const struct weir_host *host,
                             const struct weir_setting *const *settings, void **out_state)
{
    if (settings[OPEN_FAILS]->integer)
        return weir_host_fail(host, WEIR_ERROR_MODULE, "install libabsent", "libabsent is missing");
    fake.host = host;
    fake.settings = settings;
    fake.aborted = false;
    *out_state = &fake;
    return WEIR_OK;
}

static void fake_close(void *state)
{
    if (fake.groups)
        abort(); // a group was not left
}

static weir_status fake_join(void *state, const struct weir_transport_setup *setup,
                             void **out_group)
{
    struct weir_transport_setup named = *setup;
    char name[128];
    snprintf(name, sizeof name, "process:fake %s", setup->rendezvous ? setup->rendezvous : "");
    named.rendezvous = name;
    struct local_transport local = {fake.host, ""};
    if (local_join(&local, &named, out_group) != WEIR_OK)
        return weir_host_fail(fake.host, WEIR_ERROR_COMM, "start all ranks",
                              "creation of '%s': some of %u ranks are missing at '%s'",
                              setup->label, (unsigned)setup->count,
                              setup->rendezvous ? setup->rendezvous : "");
    fake.groups++;
    return WEIR_OK;
}

static weir_status fake_split(void *group, const struct weir_transport_split *split,
                              void **out_part)
{
    const weir_status status = local_split(group, split, out_part);
    fake.groups += *out_part != NULL;
    return status;
}

static weir_status fake_run(void *group, const struct weir_transport_call *call)
{
    const struct local_group *local = group;
    char text[160];
    snprintf(text, sizeof text, "%s %llu, %d", weir_collective_name(call->kind),
             (unsigned long long)call->number, call->line);
    if (local->base.rank == 0)
        fake.host->log(WEIR_LOG_DEBUG, "fake", text);
    if (fake.settings[CREATION_FAILS]->integer && call->number == 0)
        return weir_host_fail(fake.host, WEIR_ERROR_COMM, NULL, "rank 1 has died");
    if (is_at(FAIL_AT, call->number))
        return weir_host_fail(fake.host, WEIR_ERROR_COMM, "start it again",
                              "%s %llu of '%s', %s:%d: rank 1 has died",
                              weir_collective_name(call->kind), (unsigned long long)call->number,
                              local->base.label, call->file, call->line);
    while (is_at(HANG_AT, call->number) && !fake.aborted)
        weir_clock_sleep_ns(100000);
    return local_run_call(group, call);
}

static void fake_abort(void *group, const char *reason)
{
    weir_group_abort(group, reason);
    fake.aborted = true;
}

static void fake_leave(void *group)
{
    fake.groups--;
    local_leave(group);
}

static const struct weir_transport_ops transport_ops = {
    .open = fake_open,
    .close = fake_close,
    .join = fake_join,
    .split = fake_split,
    .place = weir_group_place,
    .run = fake_run,
    .abort = fake_abort,
    .leave = fake_leave,
};

#define NUMBER(name, help) WEIR_INTEGER_KEY(name, "0", 0, INT32_MAX, help)

static const struct weir_key keys[] = {
    [FAIL_AT] = NUMBER("fail_at", "The number of the collective that fails."),
    [HANG_AT] = NUMBER("hang_at", "The number of the collective that waits to be aborted."),
    [OPEN_FAILS] = NUMBER("open_fails", "Whether the transport cannot be opened."),
    [CREATION_FAILS] = NUMBER("creation_fails", "Whether the ranks fail after they have joined."),
};

WEIR_MODULE(WEIR_MODULE_TRANSPORT, "fake", "0.1.0", WEIR_MODULE_TRANSPORT_OPS(transport_ops),
            .keys = keys, .key_count = sizeof keys / sizeof *keys)
