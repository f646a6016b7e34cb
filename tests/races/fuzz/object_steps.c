// See the header.
#include "tests/races/fuzz/steps.h"

weir_status make_queue(struct run *run, int which)
{
    run->numbers[which] = run->next_number++;
    return weir_queue_create(run->ground->device, NULL, &run->queues[which]);
}

// Not of the legacy queue, which is the library's.
void step_new_queue(struct run *run)
{
    const int queue = pick_queue(run, run->step[1]);
    if (run->numbers[queue] == run->oracle->legacy || run->next_number == ORACLE_QUEUES)
        return;
    open_gate(run);
    SAY(run, "sync q%d, destroy it, create it anew", queue);
    ok(run, weir_queue_sync_at(run->queues[queue], WEIR_FOREVER, FILE_NAME, line(run)));
    note_sync(run, queue);
    oracle_all_know(run->oracle, run->oracle->last[run->numbers[queue]]);
    weir_queue_destroy(&run->queues[queue]);
    ok(run, make_queue(run, queue));
}

static void close_accesses_of(struct run *run, const struct slot *slot)
{
    for (size_t i = run->oracle->open_count; i-- > 0;)
        if (run->open[i].slot.id == slot->id)
            close_access(run, i);
}

void free_slot(struct run *run, struct slot *slot, int queue)
{
    if (run->call.pending && run->call.range.slot == slot)
        open_gate(run);
    close_accesses_of(run, slot);
    SAY(run, "q%d free b%u", queue, slot->id);
    ok(run, weir_pool_free_at(run->queues[queue], &slot->buffer, FILE_NAME, line(run)));
    slot->buffer = NULL;
    const int node = add(run, queue);
    run->oracle->nodes[node].frees = true;
    oracle_use(run->oracle, node, slot->id, WEIR_ACCESS_WRITE, UINT64_MAX);
}

void step_pool(struct run *run)
{
    const int queue = pick_queue(run, run->step[1]);
    struct slot *slot = &run->slots[PLAIN + run->step[2] % POOLED];
    if (slot->buffer) {
        free_slot(run, slot, queue);
        return;
    }
    if (run->next_buffer == ORACLE_BUFFERS)
        return;
    slot->id = run->next_buffer++;
    SAY(run, "q%d allocate b%u", queue, slot->id);
    ok(run, weir_pool_allocate_at(run->pool, run->queues[queue], ORACLE_BYTES, &slot->buffer,
                                  FILE_NAME, line(run)));
    oracle_allocate(run->oracle, add(run, queue), slot->id);
}
