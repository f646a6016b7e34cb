// Creating communicators. Everything waits here: in a transport, at most the timeout.
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/thread.h"
#include "core/comm/comm.h"
#include "core/comm/engine.h"
#include "core/runtime/runtime.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/file_name.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

static const struct weir_comm_params defaults = {.struct_size = sizeof defaults};

weir_status weir__comm_refuse_wait(const char *function, const char *label, const char *file,
                                   int line)
{
    if (!weir__in_host_call())
        return WEIR_OK;
    return weir__fail_at(file, line, label, WEIR_ERROR_INVALID,
                         "call it on a thread of the program's",
                         "%s waits for the other ranks, and a host call may not wait", function);
}

// One rank on its way into a group.
struct joiner {
    weir_device *device;
    const struct weir_comm_params *params;
    struct weir__comm_place place;
    const char *file;
    int line;
    struct weir_thread thread;
    bool has_thread;
    weir_comm *comm;
    weir_status status;
    struct weir_error error; // if it failed
};

static weir_status join_group(const struct joiner *joiner, weir_comm *comm)
{
    void *state = NULL;
    const struct weir__comm_place *place = &joiner->place;
    const struct weir_transport_setup setup = {
        .struct_size = sizeof setup,
        .label = weir__label_or_none(comm->member.object.label),
        .rank = place->rank,
        .count = place->count,
        .rendezvous = place->has_rendezvous ? place->rendezvous : NULL,
        .timeout_ns = place->timeout_ns,
        .check = place->check,
        .file = joiner->file,
        .line = joiner->line,
    };
    weir_status status = weir__transport_get(joiner->device->runtime, &comm->transport, &state);
    return status < 0 ? status : comm->transport->join(state, &setup, &comm->group);
}

static void join(void *argument)
{
    struct joiner *joiner = argument;
    weir_comm *comm = weir__comm_allocate(joiner->device, joiner->params->label);
    joiner->status = comm ? join_group(joiner, comm) : WEIR_ERROR_OUT_OF_MEMORY;
    if (comm && joiner->status == WEIR_OK) {
        comm->timeout_ns = joiner->place.timeout_ns;
        comm->check = joiner->place.check;
        joiner->status = weir__engine_create(comm, joiner->file, joiner->line);
    }
    if (comm && joiner->status == WEIR_OK) {
        weir__comm_publish(comm);
        weir__member_place(&comm->member, joiner->file, joiner->line);
        joiner->comm = comm;
        return;
    }
    weir__error_place(joiner->status, joiner->params->label, joiner->file, joiner->line);
    joiner->error = weir__error_of(joiner->status);
    weir__comm_drop(comm);
}

weir_status weir_comm_create_at(weir_device *device, const struct weir_comm_params *params,
                                weir_comm **out_comm, const char *file, int line)
{
    struct weir_comm_params known;
    WEIR_REQUIRE_AT(file, line, NULL, out_comm);
    *out_comm = NULL;
    WEIR_ENTER_AT(file, line, device);
    WEIR_REQUIRE_AT(file, line, NULL, device);
    params = params ? params : &defaults;
    WEIR_READ_PARAMS(weir_comm_params, params, &known);
    weir_status status = weir__comm_refuse_wait("weir_comm_create", params->label, file, line);
    if (status < 0)
        return status;
    struct joiner joiner = {.device = device,
                            .params = params,
                            .file = weir__file_name(file),
                            .line = line};
    status = weir__comm_place(device->runtime->config, params, &joiner.place);
    if (status < 0) {
        weir__error_place(status, params->label, file, line);
        return status;
    }
    join(&joiner);
    if (joiner.status < 0)
        return weir__error_set(&joiner.error);
    *out_comm = joiner.comm;
    return WEIR_OK;
}

// Several devices of a process.

// Ranks that are all in this process meet at a name that nothing else uses.
static weir_status place_all(struct weir__comm_place *place, weir_runtime *runtime,
                             const struct weir_comm_params *params, uint32_t count)
{
    static atomic_uint_fast64_t meetings;
    struct weir_comm_params first = *params;
    first.rank = params->count ? params->rank : 0;
    first.count = params->count ? params->count : count;
    weir_status status = weir__comm_place(runtime->config, &first, place);
    if (status < 0)
        return status;
    if (count > place->count - place->rank)
        return weir__fail(WEIR_ERROR_INVALID, "correct params.count, or the number of devices",
                          "%" PRIu32 " devices from rank %" PRIu32 " on do not fit into %" PRIu32
                          " ranks",
                          count, place->rank, place->count);
    if (!params->rendezvous && place->count == count) {
        snprintf(place->rendezvous, sizeof place->rendezvous, "process:weir-%ld-%" PRIuFAST64,
                 (long)getpid(), atomic_fetch_add(&meetings, 1));
        place->has_rendezvous = true;
    }
    return WEIR_OK;
}

static void start(struct joiner *joiner)
{
    const int error = weir_thread_start(&joiner->thread, join, joiner);
    joiner->has_thread = error == 0;
    if (joiner->has_thread)
        return;
    joiner->status =
        weir__fail_at(joiner->file, joiner->line, joiner->params->label, WEIR_ERROR_SYSTEM,
                      "raise the limit of threads",
                      "weir_comm_create_all: no thread for rank %" PRIu32, joiner->place.rank);
    joiner->error = *weir_last_error();
}

static weir_status end_all(struct joiner *joiners, uint32_t count, weir_comm **out_comms)
{
    const struct joiner *failed = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (joiners[i].has_thread)
            weir_thread_join(&joiners[i].thread);
        if (joiners[i].status < 0 && !failed)
            failed = &joiners[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        if (failed)
            weir_comm_destroy(&joiners[i].comm);
        out_comms[i] = joiners[i].comm;
    }
    return failed ? weir__error_set(&failed->error) : WEIR_OK;
}

static weir_status create_all(weir_device *const *devices, uint32_t count,
                              const struct joiner *pattern, struct joiner *joiners,
                              weir_comm **out_comms)
{
    for (uint32_t i = 0; i < count; i++) {
        joiners[i] = *pattern;
        joiners[i].device = devices[i];
        joiners[i].place.rank = pattern->place.rank + i;
        start(&joiners[i]);
    }
    return end_all(joiners, count, out_comms);
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
        WEIR_ENTER_AT(file, line, devices[i]);
    params = params ? params : &defaults;
    WEIR_READ_PARAMS(weir_comm_params, params, &known);
    weir_status status = weir__comm_refuse_wait("weir_comm_create_all", params->label, file, line);
    if (status == WEIR_OK)
        status = check_devices(devices, device_count, file, line);
    if (status < 0)
        return status;
    struct joiner pattern = {.params = params, .file = weir__file_name(file), .line = line};
    status = place_all(&pattern.place, devices[0]->runtime, params, device_count);
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
    weir_status status = weir__comm_await_turn(comm, turn);
    if (status < 0)
        return status;
    status = comm->transport->split(comm->group, split, &part->group);
    if (status < 0) {
        weir__error_place(status, comm->member.object.label, split->file, split->line);
        struct weir_error cause = weir__error_of(status);
        weir__comm_find_remedy(comm, &cause);
        (void)weir__comm_fail(comm, &cause);
        status = weir__comm_status(comm);
    }
    weir__comm_end_turn(comm, turn);
    return status;
}

weir_status weir_comm_split_at(weir_comm *comm, int32_t color, int32_t key, const char *label,
                               weir_comm **out_part, const char *file, int line)
{
    WEIR_REQUIRE_AT(file, line, NULL, out_part);
    *out_part = NULL;
    WEIR_ENTER_AT(file, line, comm);
    WEIR_REQUIRE_AT(file, line, NULL, comm);
    WEIR_REQUIRE_AT(file, line, comm->member.object.label, color >= WEIR_NO_COLOR);
    weir_status status =
        weir__comm_refuse_wait("weir_comm_split", comm->member.object.label, file, line);
    if (status < 0)
        return status;
    weir_comm *part = weir__comm_allocate(comm->member.device, label);
    if (!part)
        return weir_last_error()->status;
    part->transport = comm->transport;
    part->timeout_ns = comm->timeout_ns;
    part->check = comm->check;

    weir_biased_lock_take(&comm->submit_lock);
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
    weir_biased_lock_release(&comm->submit_lock);
    status = split_group(comm, &split, turn, part);
    if (status == WEIR_OK && part->group)
        status = weir__engine_create(part, file, line);
    if (status < 0)
        weir__error_place(status, comm->member.object.label, file, line);
    if (status < 0 || !part->group) {
        weir__comm_drop(part);
        return status;
    }
    weir__comm_publish(part);
    weir__member_place(&part->member, file, line);
    *out_part = part;
    return WEIR_OK;
}
