// See the header.
#include "tests/races/fuzz/steps.h"

void step_sync(struct run *run)
{
    const int queue = pick_queue(run, run->step[1]);
    open_gate(run);
    SAY(run, "sync q%d", queue);
    ok(run, weir_queue_sync_at(run->queues[queue], WEIR_FOREVER, FILE_NAME, line(run)));
    note_sync(run, queue);
}

void step_sync_event(struct run *run)
{
    const struct event *a = &run->events[run->step[1] % EVENTS];
    const struct event *b = &run->events[run->step[2] % EVENTS];
    const struct weir_event both[] = {a->event, b->event};
    size_t which = 0;

    if (a->node < 0 || b->node < 0)
        return;
    open_gate(run);
    SAY(run, "sync of e%d and e%d, way %d", run->step[1] % EVENTS, run->step[2] % EVENTS,
        run->step[3] % 4);
    switch (run->step[3] % 4) {
    case 0:
        ok(run, weir_event_sync_at(a->event, WEIR_FOREVER, FILE_NAME, line(run)));
        oracle_host_knows(run->oracle, a->node);
        break;
    case 1:
        ok(run, weir_event_sync_any_at(both, 2, WEIR_FOREVER, &which, FILE_NAME, line(run)));
        oracle_host_knows(run->oracle, which == 0 ? a->node : b->node);
        break;
    case 2:
        ok(run, weir_event_sync_all_at(both, 2, WEIR_FOREVER, FILE_NAME, line(run)));
        oracle_host_knows(run->oracle, a->node);
        oracle_host_knows(run->oracle, b->node);
        break;
    default:
        if (weir_event_query_at(a->event, FILE_NAME, line(run)) == WEIR_OK)
            oracle_host_knows(run->oracle, a->node);
        break;
    }
}

// The host.

void step_host(struct run *run)
{
    const struct range range = pick_range(run, run->step[1], run->step[2], run->step[3]);
    const weir_access access = pick_access(run->step[4]);
    void *pointer;

    SAY(run, "host access %d of b%u[%zu..%zu]%s", (int)access, range.slot->id, range.offset,
        range.offset + range.size - 1, run->step[5] % 4 == 0 ? ", open" : "");
    ok(run, weir_host_begin_at(range.slot->buffer, range.offset, range.size, access, &pointer,
                               FILE_NAME, line(run)));
    const int node = oracle_add(run->oracle, ORACLE_HOST);
    use(run, node, range, access);
    if (run->step[5] % 4 == 0 && oracle_open(run->oracle, node))
        run->open[run->oracle->open_count - 1] =
            (struct open_access){*range.slot, range.offset, range.size, access};
    else
        ok(run, weir_host_end_at(range.slot->buffer, range.offset, range.size, access, FILE_NAME,
                                 line(run)));
}

void close_access(struct run *run, size_t which)
{
    const struct open_access *open = &run->open[which];
    SAY(run, "end of the access to b%u[%zu..%zu]", open->slot.id, open->offset,
        open->offset + open->size - 1);
    ok(run, weir_host_end_at(open->slot.buffer, open->offset, open->size, open->access, FILE_NAME,
                             line(run)));
    oracle_close(run->oracle, which);
    run->open[which] = run->open[run->oracle->open_count];
}

void step_host_end(struct run *run)
{
    if (run->oracle->open_count > 0)
        close_access(run, run->step[1] % run->oracle->open_count);
}

static weir_status access_in_call(void *user)
{
    struct call *call = user;
    void *pointer;
    while (sem_wait(&call->gate) != 0)
        continue;
    call->status =
        weir_host_begin_at(call->range.slot->buffer, call->range.offset, call->range.size,
                           call->access, &pointer, FILE_NAME, call->line);
    if (call->status == WEIR_OK)
        call->status = weir_host_end_at(call->range.slot->buffer, call->range.offset,
                                        call->range.size, call->access, FILE_NAME, call->line);
    if (call->key >= 0)
        release_key(call->run, call->key);
    return WEIR_OK;
}

// The function runs when the gate is opened: at once, or before the program waits next.
void step_host_call(struct run *run)
{
    struct call *call = &run->call;

    open_gate(run);
    *call =
        (struct call){.queue = pick_queue(run, run->step[1]),
                      .range = pick_range(run, run->step[2], run->step[3], run->step[4]),
                      .access = pick_access(run->step[5]),
                      .key =
                          run->oracle->strict && run->step[6] & 2 ? run->step[7] % ORACLE_KEYS : -1,
                      .run = run};
    sem_init(&call->gate, 0, 0);
    SAY(run, "q%d host call", call->queue);
    ok(run, weir_queue_host_call_at(run->queues[call->queue], access_in_call, call, FILE_NAME,
                                    line(run)));
    call->node = add(run, call->queue);
    call->pending = true;
    oracle_wait_for_call(run->oracle, call->node);
    if (run->step[6] & 1)
        open_gate(run);
}

void open_gate(struct run *run)
{
    struct call *call = &run->call;

    if (!call->pending)
        return;
    call->pending = false;
    call->line = line(run);
    SAY(run, "the host call runs: access %d of b%u[%zu..%zu], sync", (int)call->access,
        call->range.slot->id, call->range.offset, call->range.offset + call->range.size - 1);
    const int node = oracle_run_call(run->oracle, call->node);
    use(run, node, call->range, call->access);
    if (call->key >= 0) {
        SAY(run, "with a release of key %d", call->key);
        run->oracle->keys[call->key] |= UINT64_C(1) << node;
    }
    sem_post(&call->gate);
    ok(run, weir_queue_sync_at(run->queues[call->queue], WEIR_FOREVER, FILE_NAME, line(run)));
    ok(run, call->status);
    const int record = add(run, call->queue);
    oracle_after(run->oracle, record, node);
    oracle_host_knows(run->oracle, record);
    sem_destroy(&call->gate);
}

void step_transfer(struct run *run)
{
    const int queue = pick_queue(run, run->step[1]);
    const struct range range = pick_range(run, run->step[2], run->step[3], run->step[4]);
    const bool up = run->step[5] & 1;
    unsigned char bytes[ORACLE_BYTES] = {0};

    open_gate(run);
    SAY(run, "q%d %s b%u[%zu..%zu]", queue, up ? "upload" : "download", range.slot->id,
        range.offset, range.offset + range.size - 1);
    if (up)
        ok(run, weir_upload_at(run->queues[queue], range.slot->buffer, range.offset, bytes,
                               range.size, FILE_NAME, line(run)));
    else
        ok(run, weir_download_at(run->queues[queue], bytes, range.slot->buffer, range.offset,
                                 range.size, FILE_NAME, line(run)));
    use(run, add(run, queue), range, up ? WEIR_ACCESS_WRITE : WEIR_ACCESS_READ);
    const int record = add(run, queue);
    oracle_host_knows(run->oracle, record);
    oracle_all_know(run->oracle, record);
}
