// Messages between processes: each is a head and its bytes, in the order of the parts of both sides.
#include "transports/local/tcp.h"

struct message {
    struct local_head head;
    struct tcp_span spans[2];
};

static void queue(struct local_run *run, const struct weir_transport_part *part,
                  struct message *message)
{
    struct tcp_peer *peer = &local_tcp_of(run)->peers[part->peer];
    struct tcp_list *list = part->receive ? &peer->in : &peer->out;
    message->head = run->head;
    message->head.element = part->element;
    message->head.count = part->count;
    message->spans[0] = (struct tcp_span){.at = (char *)&message->head,
                                          .left = sizeof message->head,
                                          .head = part->receive ? &message->head : NULL,
                                          .message = part};
    message->spans[1] =
        (struct tcp_span){.at = part->memory,
                          .left = (size_t)part->count * weir_datatype_size(part->element)};
    local_tcp_append(list, &message->spans[0]);
    local_tcp_append(list, &message->spans[1]);
}

bool local_tcp_messages(struct local_run *run)
{
    const struct weir_host *host = run->group->host;
    local_enlist(run->group);
    struct message *messages = host->allocate((run->part_count + 1) * sizeof *messages);
    if (!messages)
        return local_fail(run, "rank %u has no host memory left for %u messages", run->group->rank,
                          run->part_count);
    for (uint32_t i = 0; i < run->part_count; i++)
        queue(run, local_part_at(run, i), &messages[i]);
    const bool carried = local_tcp_pump(run, true);
    local_tcp_stop_asking(local_tcp_of(run));
    if (carried)
        local_tcp_tell_elsewhere(run, TCP_NONE);
    host->release(messages);
    return carried;
}
