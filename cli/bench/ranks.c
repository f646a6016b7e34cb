// See the header.
#include "cli/bench/ranks.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/runtime/devices.h"

static bool open_device(struct bench *bench, struct bench_ranks *all, struct bench_rank *rank,
                        uint32_t index)
{
    const size_t devices = weir_device_count(bench->runtime);
    char select[16];
    snprintf(select, sizeof select, "%u", (unsigned)(devices ? index % devices : 0));
    const struct weir_device_params params = {.struct_size = sizeof params, .select = select};
    for (uint32_t i = 0; devices && i < all->local_count; i++)
        if (&all->ranks[i] != rank && all->ranks[i].device && i % devices == index % devices)
            rank->device = all->ranks[i].device;
    if (rank->device)
        return true;
    if ((weir_device_open)(bench->runtime, devices > 1 ? &params : NULL, &rank->device) < 0)
        return bench_fail_weir(bench);
    rank->opened = true;
    return true;
}

static bool create_all(struct bench *bench, uint64_t asked, struct bench_ranks *all)
{
    const struct weir_comm_params params = {.struct_size = sizeof params, .label = "bench"};
    weir_device *devices[BENCH_RANKS_MAX];
    weir_comm *comms[BENCH_RANKS_MAX];
    all->local_count = (uint32_t)asked;
    for (uint32_t i = 0; i < all->local_count; i++) {
        if (!open_device(bench, all, &all->ranks[i], i))
            return false;
        devices[i] = all->ranks[i].device;
    }
    if (weir_comm_create_all(devices, all->local_count, &params, comms) < 0)
        return bench_fail_weir(bench);
    for (uint32_t i = 0; i < all->local_count; i++)
        all->ranks[i].comm = comms[i];
    return true;
}

static bool create_comms(struct bench *bench, uint64_t asked, struct bench_ranks *all)
{
    const struct weir_comm_params params = {.struct_size = sizeof params, .label = "bench"};
    uint32_t rank;
    cli_local_rank(&rank);
    if (!open_device(bench, all, &all->ranks[0], rank))
        return false;
    all->local_count = 1;
    if (weir_comm_create(all->ranks[0].device, &params, &all->ranks[0].comm) < 0)
        return bench_fail_weir(bench);
    if (weir_comm_count(all->ranks[0].comm) > 1)
        return true;
    weir_comm_destroy(&all->ranks[0].comm);
    return create_all(bench, asked, all);
}

bool bench_ranks_open(struct bench *bench, uint64_t asked, struct bench_ranks *out_ranks)
{
    *out_ranks = (struct bench_ranks){0};
    if (!create_comms(bench, asked, out_ranks))
        return false;
    out_ranks->first = weir_comm_rank(out_ranks->ranks[0].comm);
    out_ranks->count = weir_comm_count(out_ranks->ranks[0].comm);
    return true;
}

void bench_ranks_close(struct bench *bench, struct bench_ranks *ranks)
{
    for (uint32_t i = ranks->local_count; i-- > 0;)
        weir_comm_destroy(&ranks->ranks[i].comm);
    for (uint32_t i = ranks->local_count; i-- > 0;) {
        struct bench_rank *rank = &ranks->ranks[i];
        if (rank->opened && weir_device_close(&rank->device) < 0)
            (void)bench_fail_weir(bench);
    }
}
