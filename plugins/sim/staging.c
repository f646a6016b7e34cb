// Memory that is not pinned: uploads and downloads copy through pinned pieces. Of a small transfer the
// calling thread copies one after the other; of a large one several threads do, each a part at a time,
// in the order in which the calling thread gives them away; one that has nothing to do sleeps, and has to
// wake first. That the calling thread copies a part which it waits for, and which none has begun, is left
// out.
#include "plugins/sim/sim.h"

static uint64_t copy_ns(struct sim *sim, size_t size, uint64_t bytes_per_s)
{
    const double ns = bytes_per_s ? (double)size * 1e9 / (double)bytes_per_s + 0.5 : 0;
    return sim_vary(&sim->jitter, (uint64_t)ns);
}

// Of one of that many threads.
static uint64_t rate_of(const struct sim_staging_rate *rate, uint32_t threads)
{
    if (threads == 0 || rate->all_bytes_per_s == 0)
        return rate->bytes_per_s;
    const uint64_t part = rate->all_bytes_per_s / threads;
    return rate->bytes_per_s == 0 || part < rate->bytes_per_s ? part : rate->bytes_per_s;
}

static uint32_t threads_of(const struct weir_host_note *note)
{
    const uint32_t threads =
        (note->flags & WEIR_HOST_NOTE_THREADS_MASK) >> WEIR_HOST_NOTE_THREADS_SHIFT;
    return threads < SIM_COPIERS_MOST ? threads : SIM_COPIERS_MOST;
}

// The thread that is free first takes it.
static uint64_t give_away(struct sim *sim, uint32_t threads, uint64_t ns)
{
    const uint64_t now_ns = sim_self(sim)->now_ns;
    uint64_t *first = &sim->copiers.free_ns[0];
    for (uint32_t i = 1; i < threads; i++)
        if (sim->copiers.free_ns[i] < *first)
            first = &sim->copiers.free_ns[i];
    *first = (*first > now_ns ? *first : now_ns + sim->model->wake_ns) + ns;
    return *first;
}

static struct sim_piece *find(struct sim_copiers *copiers, const struct weir_host_note *note)
{
    for (size_t i = 0; i < copiers->count; i++)
        if (copiers->pieces[i].buffer == note->u.access.buffer &&
            copiers->pieces[i].offset == note->u.access.offset)
            return &copiers->pieces[i];
    return NULL;
}

static void forget(struct sim_copiers *copiers, struct sim_piece *piece)
{
    *piece = copiers->pieces[--copiers->count];
}

// One that has no room takes its time when it ends, as if the calling thread copied it. One in its memory
// that has not ended was refused by a link before this one, which did not tell its end.
static void begin(struct sim *sim, const struct weir_host_note *note, uint64_t ns)
{
    struct sim_copiers *copiers = &sim->copiers;
    struct sim_piece *refused = find(copiers, note);
    if (refused)
        forget(copiers, refused);
    if (threads_of(note) == 0 || copiers->count == SIM_PIECES_MOST)
        return;
    copiers->pieces[copiers->count++] =
        (struct sim_piece){note->u.access.buffer, note->u.access.offset,
                           give_away(sim, threads_of(note), ns)};
}

static void end(struct sim *sim, const struct weir_host_note *note, uint64_t ns)
{
    struct sim_piece *piece = find(&sim->copiers, note);
    if (!piece) {
        sim_spend(sim, ns);
        return;
    }
    sim_wait_until(sim, piece->end_ns);
    forget(&sim->copiers, piece);
}

static void take_time(struct sim *sim, const struct weir_host_note *note)
{
    sim_enter(sim);
    const uint64_t ns =
        copy_ns(sim, note->u.access.size, rate_of(&sim->model->staging, threads_of(note)));
    (note->kind == WEIR_HOST_NOTE_BEGIN ? begin : end)(sim, note, ns);
    sim_leave(sim);
}

// A beginning that a link refuses was none.
weir_status sim_host_note(const struct weir_link *link, const struct weir_host_note *note)
{
    struct sim *sim = sim_of(link);
    const bool piece = sim->host == SIM_HOST_FIXED && note->flags & WEIR_HOST_NOTE_INTERNAL;
    if (piece && note->kind == WEIR_HOST_NOTE_END)
        take_time(sim, note);
    const weir_status status = link->next->ops->host_note(link->next, note);
    if (piece && note->kind == WEIR_HOST_NOTE_BEGIN && status >= 0)
        take_time(sim, note);
    return status;
}
