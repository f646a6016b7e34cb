// Collectives that are carried out: in the backend, by its engine, or through the host; and launches of graphs with them.
#include "core/comm/comm.h"

#include "base/random.h"
#include "core/buffer/buffer.h"
#include "core/comm/pulse.h"
#include "core/graph/graph.h"
#include "core/queue/operation.h"
#include "core/runtime/runtime.h"
#include "core/support/memory.h"

// What this rank has submitted to the engine before: a set of hashes that only grows, up to a limit; full, it takes
// no more. Safe with several threads.

enum {
    PROBES = 8 // past its own cell
};

// Whether the hash, which is not 0, is there, or now is.
static bool find_known(struct weir__pulse *pulse, uint64_t hash, bool adds)
{
    for (uint64_t i = 0; i <= PROBES; i++) {
        atomic_uint_fast64_t *cell =
            &pulse->known[((hash >> 32 ^ hash >> 1) + i) % WEIR__PULSE_KNOWN];
        uint_fast64_t found = atomic_load_explicit(cell, memory_order_acquire);
        if (found == 0 && (!adds || atomic_compare_exchange_strong(cell, &found, hash)))
            return adds;
        if (found == hash)
            return true;
    }
    return false;
}

// Of the operands, and of an exchange's parts; never 0. This rank's own: what a kind does not use may count.
static uint64_t likeness_of(const struct weir_operation *operation)
{
    const uint64_t what = operation->u.collective.kind |
                          (uint64_t)(uint8_t)operation->u.collective.element << 8 |
                          (uint64_t)(uint8_t)operation->u.collective.reduction << 16 |
                          (uint64_t)operation->u.collective.root << 32;
    uint64_t likeness = weir_random_draw(what, operation->u.collective.count);
    for (uint32_t i = 0; i < operation->u.collective.exchange_count; i++) {
        const struct weir_exchange *part = &operation->u.collective.exchanges[i];
        likeness = weir_random_draw(likeness ^ (part->peer * 2 + part->receive),
                                    part->count * 16 + part->element);
    }
    return likeness | 1;
}

struct weir_transport_call weir__call_of(const struct weir_operation *operation)
{
    return (struct weir_transport_call){
        .struct_size = sizeof(struct weir_transport_call),
        .kind = operation->u.collective.kind,
        .element = operation->u.collective.element,
        .reduction = operation->u.collective.reduction,
        .root = operation->u.collective.root,
        .count = operation->u.collective.count,
        .number = operation->u.collective.number,
        .timeout_ns = operation->u.collective.comm->timeout_ns,
        .file = operation->file,
        .line = operation->line,
    };
}

// An engine's collectives are submitted to the backend in the order of their turns. A turn that is due
// is submitted on the program's thread; otherwise, and the first time that a rank calls something,
// for which engines wait for the other ranks while they connect, the queue is held and its worker
// submits it.

enum {
    ENGINE_NAME_SIZE = 32
};

// Creation.

static weir_status gather(const struct weir_comm_setup *setup, const void *own, void *all,
                          size_t size)
{
    weir_comm *comm = setup->user;
    const struct weir_transport_call call = {
        .struct_size = sizeof call,
        .kind = WEIR_ALL_GATHER,
        .element = WEIR_U8,
        .reduction = WEIR_SUM,
        .count = size,
        .src = own,
        .dst = all,
        .timeout_ns = setup->timeout_ns,
    };
    return comm->transport->run(comm->group, &call);
}

// Whether all ranks have the same engine, that of the backend.
static weir_status agree(const struct weir_comm_setup *setup, const struct weir_link *backend,
                         bool *out_same)
{
    const weir_comm *comm = setup->user;
    char own[ENGINE_NAME_SIZE] = "";
    char *all = weir__allocate((size_t)setup->count * sizeof own);
    if (!all)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a communicator");
    if (backend->ops->comm_create && comm->member.device->limits.collectives == 2)
        snprintf(own, sizeof own, "%s", backend->name);
    weir_status status = gather(setup, own, all, sizeof own);
    *out_same = own[0] != '\0';
    for (uint32_t i = 0; i < setup->count && status == WEIR_OK; i++)
        *out_same = *out_same && memcmp(own, all + i * sizeof own, sizeof own) == 0;
    weir__release(all);
    return status;
}

static weir_status start_pulse(weir_comm *comm, const char *file, int line)
{
    void *group = NULL;
    const struct weir_transport_split split = {
        .struct_size = sizeof split,
        .label = weir__label_or_none(comm->member.object.label),
        .timeout_ns = comm->timeout_ns,
        .file = weir__file_name(file),
        .line = line,
    };
    weir_status status = comm->transport->split(comm->group, &split, &group);
    return status < 0 ? status : weir__pulse_start(comm, group);
}

// Without an engine the bytes go through the host, which not every transport carries to other machines.
static weir_status refuse_far_ranks(const weir_comm *comm)
{
    if (!comm->transport->carries_data || comm->transport->carries_data(comm->group))
        return WEIR_OK;
    return weir__fail(
        WEIR_ERROR_UNSUPPORTED,
        "run it under mpirun with WEIR_COMM_TRANSPORT=mpi; or give each rank a device "
        "whose memory NCCL carries",
        "the ranks of '%s' are on several machines, and the transport '%s' carries "
        "host memory within one",
        weir__label_or_none(comm->member.object.label),
        weir__transport_name(comm->member.device->runtime));
}

static weir_status create(weir_comm *comm, const char *file, int line)
{
    const struct weir_link *backend = weir__chain_backend(comm->member.device->chain);
    bool same = false;
    void **data = &comm->member.object.data[backend->index];
    struct weir_comm_setup setup = {
        .struct_size = sizeof setup,
        .timeout_ns = comm->timeout_ns,
        .all_gather = gather,
        .user = comm,
    };
    comm->transport->place(comm->group, &comm->rank, &comm->count);
    setup.rank = comm->rank;
    setup.count = comm->count;
    weir_status status = agree(&setup, backend, &same);
    if (status < 0 || !same)
        return status < 0 ? status : refuse_far_ranks(comm);
    status = backend->ops->comm_create(backend, comm->member.device, comm, &setup, data);
    if (status < 0 || !*data)
        return status < 0 ? status : refuse_far_ranks(comm);
    comm->engine = backend;
    status = start_pulse(comm, file, line);
    // All ranks have the communicator, or none: one that fails aborts the group, in which the others wait here.
    return status < 0 ? status : gather(&setup, NULL, NULL, 0);
}

weir_status weir__engine_create(weir_comm *comm, const char *file, int line)
{
    weir_status status = create(comm, file, line);
    if (status == WEIR_OK) {
        weir__member_enlist(&comm->member);
        weir__member_place(&comm->member, file, line);
        return WEIR_OK;
    }
    // Another rank's failure comes from the group, which has told of it.
    struct weir_error cause = weir__error_of(status);
    if (cause.status == WEIR_ERROR_COMM && !cause.remedy[0])
        snprintf(cause.remedy, sizeof cause.remedy,
                 "see what the rank at fault has printed; then create the communicator again on "
                 "all ranks");
    weir__comm_tell(comm, cause.message);
    return weir__error_set(&cause);
}

// A collective through the host: the bytes of device memory come to the host, the transport runs,
// and what it wrote goes back. The copies go to the backend directly, as parts of
// the collective, so plugins see one operation.

#define STAGING_ALIGNMENT ((size_t)64)

// A range of the collective.
struct side {
    struct weir_note_range range;
    bool staged;
    size_t at; // in the staging memory
};

// One collective under way.
struct carried {
    weir_queue *queue;
    const struct weir_operation *operation;
    weir_comm *comm;
    struct side *sides;
    struct side fixed[2];
    uint32_t count;
    struct weir_transport_part *parts; // of messages
};

// The message whose range this is; of a collective only the element counts.
static struct weir_exchange part_at(const struct weir_operation *operation, uint32_t index)
{
    if (operation->u.collective.kind == WEIR_EXCHANGE)
        return operation->u.collective.exchanges[index];
    return (struct weir_exchange){.count = operation->u.collective.count,
                                  .element = operation->u.collective.element,
                                  .peer = operation->u.collective.root,
                                  .receive = operation->u.collective.kind == WEIR_RECV};
}

// Whether the host can use the range where it is. The memory of a wrapped buffer may begin anywhere.
static bool is_on_host(const struct weir_note_range *range, size_t element_size)
{
    const weir_buffer *buffer = range->buffer;
    return buffer->placement != WEIR_PLACE_DEVICE &&
           (uintptr_t)(buffer->pointer + range->offset) % element_size == 0;
}

// Makes a pinned buffer of at least `size` bytes; the caller has the turn.
static weir_status make_staging(weir_comm *comm, size_t size)
{
    const struct weir_buffer_setup setup = {.struct_size = sizeof setup,
                                            .size = size,
                                            .placement = WEIR_PLACE_HOST};
    if (size == 0 || (comm->staging && comm->staging->size >= size))
        return WEIR_OK;
    weir_buffer_destroy(&comm->staging);
    return weir__buffer_make(comm->member.device, "staging of collectives", &setup, true,
                             &comm->staging);
}

static weir_status plan(struct carried *run)
{
    size_t size = 0;
    for (uint32_t i = 0; i < run->count; i++) {
        struct side *side = &run->sides[i];
        (void)weir_operation_range_at(run->operation, i, &side->range);
        side->staged =
            side->range.size &&
            !is_on_host(&side->range, weir_datatype_size(part_at(run->operation, i).element));
        side->at = size;
        if (side->staged)
            size +=
                (side->range.size + STAGING_ALIGNMENT - 1) / STAGING_ALIGNMENT * STAGING_ALIGNMENT;
    }
    return make_staging(run->comm, size);
}

static char *host_of(const struct carried *run, const struct side *side)
{
    static char nothing; // the address of no bytes
    if (side->staged)
        return run->comm->staging->pointer + side->at;
    return side->range.size ? side->range.buffer->pointer + side->range.offset : &nothing;
}

// Copies the staged ranges of one direction, and waits for it.
static weir_status copy_staged(const struct carried *run, weir_access access)
{
    const struct weir_link *backend = run->queue->delivery.backend;
    const struct weir_operation *whole = run->operation;
    const uint32_t flags = WEIR_OPERATION_INTERNAL | (whole->flags & WEIR_OPERATION_PART);
    weir_status status = WEIR_OK;
    bool copied = false;
    for (uint32_t i = 0; i < run->count && status == WEIR_OK; i++) {
        const struct side *side = &run->sides[i];
        const bool up = access == WEIR_ACCESS_WRITE;
        if (!side->staged || side->range.access != access)
            continue;
        struct weir_operation copy;
        weir__operation_begin(&copy, WEIR_OPERATION_COPY, flags, whole->file, whole->line);
        copy.sequence = whole->sequence;
        weir_buffer *own = side->range.buffer, *staging = run->comm->staging;
        if (up)
            weir_box_row(&copy.u.box, own, side->range.offset, staging, side->at, side->range.size);
        else
            weir_box_row(&copy.u.box, staging, side->at, own, side->range.offset, side->range.size);
        status = backend->ops->queue_submit(backend, run->queue, &copy);
        copied = true;
    }
    return status == WEIR_OK && copied ? backend->ops->queue_finish(backend, run->queue) : status;
}

static weir_status call_transport(const struct carried *run)
{
    struct weir_transport_call call = weir__call_of(run->operation);
    call.parts = run->parts;
    call.part_count = run->parts ? run->count : 0;
    for (uint32_t i = 0; i < run->count; i++) {
        void *host = host_of(run, &run->sides[i]);
        if (run->parts) {
            const struct weir_exchange part = part_at(run->operation, i);
            run->parts[i] = (struct weir_transport_part){
                .struct_size = sizeof *run->parts,
                .peer = part.peer,
                .receive = part.receive,
                .element = part.element,
                .count = part.count,
                .memory = host,
            };
        } else if (run->sides[i].range.access == WEIR_ACCESS_READ) {
            call.src = host;
        } else {
            call.dst = host;
        }
    }
    return run->comm->transport->run(run->comm->group, &call);
}

static weir_status carry_out(struct carried *run)
{
    weir_status status = plan(run);
    if (status == WEIR_OK)
        status = copy_staged(run, WEIR_ACCESS_READ);
    if (status < 0) {
        const struct weir_error cause = weir__error_of(status);
        weir__comm_excuse(run->operation, &cause);
        return status;
    }
    status = call_transport(run);
    return status < 0 ? weir__comm_blame(run->comm, status) : copy_staged(run, WEIR_ACCESS_WRITE);
}

// The caller has the turn. The queue has finished. The room for messages is allocated, with the transport's parts.
static weir_status carry(weir_queue *queue, const struct weir_operation *operation)
{
    struct carried run = {.queue = queue,
                          .operation = operation,
                          .comm = operation->u.collective.comm};
    struct weir_note_range range;
    run.sides = run.fixed;
    while (weir_operation_range_at(operation, run.count, &range))
        run.count++;
    if (weir_is_numbered(operation->u.collective.kind) || run.count == 0)
        return carry_out(&run);
    run.sides = weir__allocate(run.count * (sizeof *run.sides + sizeof *run.parts));
    if (!run.sides) {
        weir__report(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for %u parts", run.count);
        weir__comm_excuse(operation, weir_last_error());
        return WEIR_ERROR_OUT_OF_MEMORY;
    }
    run.parts = (struct weir_transport_part *)(void *)(run.sides + run.count);
    weir_status status = carry_out(&run);
    weir__release(run.sides);
    return status;
}

// Submission. The collectives of an operation are itself, or those of the graph that it launches. A backend that has the
// graph gets the launch in one piece, as the calls of all its collectives: in the first turn of each communicator, and all
// of its turns end with it. Where delivery replays the nodes, each collective is a call of its own.

// The node's collective in this launch.
static struct weir_operation in_launch(const struct weir_operation *launch,
                                       const struct weir_operation *node)
{
    struct weir_operation operation = *node;
    uint32_t i = 0;
    while (launch->u.graph_comms.comms[i].comm != node->u.collective.comm)
        i++;
    operation.u.collective.number += launch->u.graph_comms.comms[i].number;
    operation.u.collective.turn += launch->u.graph_comms.comms[i].turn;
    return operation;
}

// The same as a part of the launch, in the queue of that.
static struct weir_operation in_queue(const struct weir_operation *launch,
                                      const struct weir_operation *node)
{
    struct weir_operation operation = in_launch(launch, node);
    operation.sequence = launch->sequence;
    operation.flags |= WEIR_OPERATION_PART;
    return operation;
}

// False: there are not so many.
static bool collective_at(const struct weir_operation *operation, uint32_t index,
                          struct weir_operation *out_collective)
{
    const bool launch = operation->kind == WEIR_OPERATION_GRAPH;
    const struct weir__graph_comms *all = launch ? &operation->u.graph.graph->comms : NULL;
    if (index >= (all ? all->collective_count : 1))
        return false;
    *out_collective = all ? in_queue(operation, all->collectives[index]) : *operation;
    return true;
}

// The turns in one communicator. False: there are not so many of them.
static bool turns_at(const struct weir_operation *operation, uint32_t index,
                     struct weir_graph_comm *out_turns)
{
    const bool launch = operation->kind == WEIR_OPERATION_GRAPH;
    if (index >= (launch ? operation->u.graph_comms.count : 1))
        return false;
    if (launch)
        *out_turns = operation->u.graph_comms.comms[index];
    else
        *out_turns = (struct weir_graph_comm){.comm = operation->u.collective.comm,
                                              .turn = operation->u.collective.turn,
                                              .count = 1};
    return true;
}

void weir__comm_excuse(const struct weir_operation *operation, const struct weir_error *cause)
{
    weir_comm *comm = operation->u.collective.comm;
    char reason[1024];
    size_t used = 0;
    weir_text_append(reason, sizeof reason, &used, "%srank %u cannot take part: %s",
                     weir__comm_name(operation).text, (unsigned)comm->rank, cause->message);
    weir__comm_abort(comm, cause, reason);
}

static void skip(const struct weir_operation *operation)
{
    const struct weir_error cause = *weir_last_error();
    struct weir_operation collective;
    for (uint32_t i = 0; collective_at(operation, i, &collective); i++)
        weir__comm_excuse(&collective, &cause);
}

// Returns the first cause, if the engine was told to abort meanwhile.
WEIR_COLD static weir_status fail(const struct weir_operation *operation, weir_status status)
{
    const struct weir_error cause = weir__error_of(status);
    weir__error_set(&cause);
    skip(operation);
    return weir__comm_status(weir__comm_of(operation));
}

static bool takes(const struct weir_operation *operation)
{
    weir_comm *comm = operation->u.collective.comm;
    return comm->engine && comm->engine->ops->comm_takes(comm->engine, comm, operation);
}

static bool captures(const struct weir_operation *node)
{
    weir_comm *comm = node->u.collective.comm;
    return takes(node) && comm->engine->ops->comm_captures &&
           comm->engine->ops->comm_captures(comm->engine, comm, node);
}

// Whether all turns have come, and no call is compared before. What is known was taken by the engine before; that a backend
// has had the launch is asked by replay.
static bool is_ready(const struct weir_operation *operation)
{
    struct weir_graph_comm turns;
    bool ready = true;
    for (uint32_t i = 0; ready && turns_at(operation, i, &turns); i++)
        ready = !turns.comm->check &&
                atomic_load_explicit(&turns.comm->turn, memory_order_acquire) == turns.turn;
    if (!ready || operation->kind == WEIR_OPERATION_GRAPH)
        return ready;
    struct weir__pulse *pulse = operation->u.collective.comm->pulse;
    return pulse && find_known(pulse, likeness_of(operation), false);
}

static weir_status submit(weir_queue *queue, const struct weir_operation *operation)
{
    weir_comm *comm = operation->u.collective.comm;
    weir_status status = WEIR_OK;
    if (!weir__pulse_note(comm, queue, operation))
        status = weir_last_error()->status;
    else
        status = comm->engine->ops->queue_submit(comm->engine, queue, operation);
    if (status < 0)
        status = fail(operation, status);
    weir__comm_end_turn(comm, operation->u.collective.turn);
    return status;
}

// Before the engine gets a call that it does not compare.
static weir_status compare(const struct weir_operation *operation)
{
    weir_comm *comm = operation->u.collective.comm;
    if (!comm->check || !weir_is_numbered(operation->u.collective.kind))
        return WEIR_OK;
    const struct weir_transport_call call = weir__call_of(operation);
    const weir_status status = comm->transport->run(comm->group, &call);
    return status < 0 ? weir__comm_blame(comm, status) : WEIR_OK;
}

// Of the first `count` communicators.
static void end_turns(const struct weir_operation *operation, uint32_t count)
{
    struct weir_graph_comm turns;
    for (uint32_t i = 0; i < count && turns_at(operation, i, &turns); i++)
        weir__comm_end_turn(turns.comm, turns.turn + turns.count - 1);
}

// All launches that share communicators have their turns in one order, so they do not wait for each other.
static weir_status await_turns(const struct weir_operation *operation)
{
    struct weir_graph_comm turns;
    weir_status status = WEIR_OK;
    for (uint32_t i = 0; status == WEIR_OK && turns_at(operation, i, &turns); i++) {
        status = weir__comm_await_turn(turns.comm, turns.turn);
        if (status < 0)
            end_turns(operation, i);
    }
    return status;
}

// With the turns. Noted are the collectives of `noted`, an operation of `queue`; `lane` gets `operation`. These are one and
// the same outside of graphs that are replayed.
static weir_status submit_in_turn(weir_queue *queue, const struct weir_operation *noted,
                                  weir_queue *lane, const struct weir_operation *operation)
{
    const weir_comm *comm = weir__comm_of(operation);
    struct weir_operation one;
    weir_status status = WEIR_OK;
    for (uint32_t i = 0; status == WEIR_OK && collective_at(noted, i, &one); i++)
        status = compare(&one);
    for (uint32_t i = 0; status == WEIR_OK && collective_at(noted, i, &one); i++)
        if (!weir__pulse_note(one.u.collective.comm, queue, &one))
            status = weir_last_error()->status;
    if (status == WEIR_OK)
        status = comm->engine->ops->queue_submit(comm->engine, lane, operation);
    if (status < 0)
        return fail(operation, status);
    if (operation->kind == WEIR_OPERATION_COLLECTIVE)
        (void)find_known(comm->pulse, likeness_of(operation), true);
    return WEIR_OK;
}

static weir_status run_in_turn(weir_queue *queue, const struct weir_operation *noted,
                               weir_queue *lane, const struct weir_operation *operation)
{
    weir_status status = await_turns(operation);
    if (status < 0)
        return fail(operation, status);
    // The detail of an earlier function in this thread must not be mistaken for this one's.
    weir_error_set(NULL);
    if (operation->kind == WEIR_OPERATION_GRAPH || takes(operation)) {
        status = submit_in_turn(queue, noted, lane, operation);
    } else {
        status = carry(lane, operation);
        // An abort while it ran is the first cause.
        if (status < 0 && weir__comm_status(operation->u.collective.comm) < 0)
            status = weir_last_error()->status;
    }
    end_turns(operation, UINT32_MAX);
    return status;
}

static weir_status run(weir_queue *queue, const struct weir_operation *operation)
{
    return run_in_turn(queue, operation, queue, operation);
}

static weir_status run_node(weir_queue *queue, const struct weir_operation *launch,
                            weir_queue *lane, const struct weir_operation *node)
{
    const struct weir_operation noted = in_queue(launch, node);
    const struct weir_operation operation = in_launch(launch, node);
    const struct weir_link *backend = queue->delivery.backend;
    weir_status status = takes(node) ? WEIR_OK : backend->ops->queue_finish(backend, lane);
    return status < 0 ? status : run_in_turn(queue, &noted, lane, &operation);
}

const struct weir__comm_ops weir__comm_ops = {
    .status = weir__comm_status,
    .takes = takes,
    .is_ready = is_ready,
    .submit = submit,
    .run = run,
    .skip = skip,
    .captures = captures,
    .run_node = run_node,
};

const char *weir_comm_engine(const weir_comm *comm)
{
    if (!WEIR_IS_ALIVE(comm))
        return "";
    return comm->engine ? comm->engine->ops->comm_engine(comm->engine, (weir_comm *)comm)
                        : weir__transport_name(comm->member.device->runtime);
}
