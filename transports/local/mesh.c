// Calls: a collective or messages, until a call has all that it waits for, and notices meanwhile a rank that has died, has
// left, or tells of a failure.
//
// NOLINTNEXTLINE(bugprone-reserved-identifier): for sched_getcpu() and syscall()
#define _GNU_SOURCE
#include "transports/local/local.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

static bool was_interrupted(void)
{
    return errno == EAGAIN || errno == EINTR;
}

static void take_head(struct local_run *run, uint32_t index, const struct weir_head *head)
{
    struct mesh_peer *peer = &run->group->peers[index];
    peer->has_come = true;
    peer->incoming = *head;
    if (weir_is_numbered(peer->incoming.kind))
        peer->head = peer->incoming;
    if (run->differs || weir_head_equals(&run->by.head, &peer->incoming))
        return;
    run->differs = true;
    run->by.deadline_ns = weir_judge_by(run->by.deadline_ns);
}

static const struct weir_head *head_of(const void *user, uint32_t rank)
{
    const struct mesh_peer *peer = &((const struct local_group *)user)->peers[rank];
    return peer->has_come ? &peer->incoming : NULL;
}

static bool judge(const struct local_run *run)
{
    return weir_caller_judge(&run->by, head_of, run->group);
}

// The last rank that comes to a stage wakes those that sleep. Both sides write their word before they read the
// other's, so that one of them sees it: in one order for all, which acquire and release are not.
static void wake(struct local_group *group)
{
    for (uint32_t i = 0; group->windows && i < group->base.count; i++) {
        struct mesh_window *window = group->windows[i];
        if (!window || !atomic_load(&window->asleep)) // a group that is being made has not all
            continue;
        atomic_fetch_add(&window->bell, 1);
        syscall(SYS_futex, &window->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

static void tell(struct local_group *group, const struct mesh_news *news)
{
    for (uint32_t i = 0; i < group->base.count; i++) {
        // It fits, for a rank sends little there before a failure, and after it. Ranks that are gone need no
        // news.
        if (group->peers[i].control >= 0)
            (void)!send(group->peers[i].control, news, sizeof *news, MSG_NOSIGNAL);
    }
}

void local_mesh_fail(void *group, const struct weir_cause *cause)
{
    struct local_group *local = group;
    const struct mesh_news news = {.kind = MESH_FAILED, .cause = *cause};
    pthread_mutex_lock(&local->lock);
    if (!local->base.failed) {
        local->base.cause = *cause;
        local->base.failed = true;
        tell(local, &news);
        wake(local);
    }
    pthread_mutex_unlock(&local->lock);
}

void local_leave(void *group)
{
    tell(group, &(struct mesh_news){.kind = MESH_LEAVES});
    local_mesh_destroy(group);
}

// How long the control connection of a peer may take to say why the other one has ended.
#define VERDICT_NS (UINT64_C(500) * 1000 * 1000)

bool local_mesh_next_news(struct mesh_peer *peer)
{
    while (!peer->left) {
        const ssize_t got = recv(peer->control, (char *)&peer->news + peer->news_size,
                                 sizeof peer->news - peer->news_size, 0);
        if (got < 0 && was_interrupted())
            return false;
        peer->left = peer->died = got <= 0;
        peer->news_size += got > 0 ? (size_t)got : 0;
        if (peer->news_size < sizeof peer->news)
            continue;
        peer->news_size = 0;
        peer->left = peer->news.kind == MESH_LEAVES;
        if (!peer->left)
            return true;
    }
    return false;
}

bool local_mesh_read_news(const struct local_run *run, uint32_t index)
{
    struct local_group *group = run->group;
    struct mesh_peer *peer = &group->peers[index];
    if (!local_mesh_next_news(peer))
        return true;
    if (peer->news.kind != MESH_FAILED || !peer->news.cause.text[0])
        return weir_caller_fail(&run->by, "rank %u has failed, and has not said why", index);
    const struct weir_cause heard = weir_cause_heard(&peer->news.cause, group->base.count);
    local_mesh_fail(group, &heard);
    return false;
}

// The connection for data has ended, and the one for control says why. If it has only left, what it has called before
// may.
static bool fail_of_end(const struct local_run *run, uint32_t index)
{
    struct mesh_peer *peer = &run->group->peers[index];
    const uint64_t deadline_ns = weir_clock_now_ns() + VERDICT_NS;
    while (!peer->left && weir_clock_now_ns() < deadline_ns) {
        struct pollfd control = {.fd = peer->control, .events = POLLIN};
        poll(&control, 1, local_poll_ms(deadline_ns));
        if (!local_mesh_read_news(run, index))
            return false;
    }
    if (run->differs && !judge(run))
        return false;
    return weir_caller_lost(&run->by, peer->left && !peer->died ? WEIR_FAULT_LEFT : WEIR_FAULT_DIED,
                            index, &peer->head);
}

static bool message_is_right(const struct local_run *run, uint32_t index,
                             const struct mesh_way *way)
{
    const struct weir_head *head = &way->head;
    struct weir_caller by = run->by;
    char call[WEIR_HEAD_TEXT_SIZE];
    by.head.element = way->part->element;
    by.head.count = way->part->count;
    if (!weir_caller_agrees(&by, index, head))
        return false;
    // A message's number is that of the collective before it.
    return head->number == by.head.number ||
           weir_caller_blame(&run->by, WEIR_FAULT_DIFFERS, UINT32_MAX,
                             "rank %u has called %s after collective %llu, and rank %u after %llu",
                             index, weir_head_describe(head, call),
                             (unsigned long long)head->number, run->group->base.rank,
                             (unsigned long long)by.head.number);
}

// Between machines of a collective: each rank's head to each other one, and the bytes of an all-gather, which a split is too.
static void begin_gather(const struct local_run *run, uint32_t index, struct mesh_way *way,
                         bool sends)
{
    const struct weir_transport_call *call = run->call;
    way->size = call->src ? call->count * weir_datatype_size(call->element) : 0;
    way->memory =
        sends || !call->src ? (char *)(uintptr_t)call->src : (char *)call->dst + index * way->size;
}

// Begins with what comes next on the way, if anything does.
static void begin(const struct local_run *run, uint32_t index, bool sends)
{
    const struct weir_transport_call *call = run->call;
    struct mesh_peer *peer = &run->group->peers[index];
    struct mesh_way *way = sends ? &peer->out : &peer->in;
    const bool is_message = !weir_is_numbered(run->by.head.kind);
    way->done = 0;
    way->part = NULL;
    way->head = run->by.head;
    for (; is_message && way->next < call->part_count && !way->part; way->next++) {
        const struct weir_transport_part *part = weir_transport_part_at(call, way->next);
        if (part->peer == index && part->receive != sends)
            way->part = part;
    }
    way->busy = is_message ? way->part != NULL : index != run->group->base.rank && way->next++ == 0;
    if (!way->part) {
        begin_gather(run, index, way, sends);
        return;
    }
    way->head.element = way->part->element;
    way->head.count = way->part->count;
    way->memory = way->part->memory;
    way->size = (size_t)way->part->count * weir_datatype_size(way->part->element);
}

// Sends, or receives, of a peer's way what can be. `*moved` becomes true if that is anything.
static bool move(struct local_run *run, uint32_t index, bool sends, bool *moved)
{
    struct mesh_peer *peer = &run->group->peers[index];
    struct mesh_way *way = sends ? &peer->out : &peer->in;
    const size_t head = sizeof way->head;
    while (way->busy) {
        char *at =
            way->done < head ? (char *)&way->head + way->done : way->memory + (way->done - head);
        const size_t left = way->done < head ? head - way->done : head + way->size - way->done;
        ssize_t size = 0;
        if (left > 0)
            size = sends ? send(peer->data, at, left, MSG_NOSIGNAL) : recv(peer->data, at, left, 0);
        if (size < 0 && was_interrupted())
            return true;
        // What it has said before it went may tell more.
        if (size <= 0 && left > 0)
            return (!sends || move(run, index, false, moved)) && fail_of_end(run, index);
        *moved = true;
        way->done += (size_t)size;
        if (!sends && (size_t)size == left && way->done == head) {
            if (!way->part)
                take_head(run, index, &way->head);
            else if (!message_is_right(run, index, way))
                return false;
        }
        if (way->done == head + way->size)
            begin(run, index, sends);
    }
    return true;
}

static bool is_busy(const struct mesh_peer *peer)
{
    return peer->in.busy || peer->out.busy;
}

// A rank whose peers are about to come asks again for so long before it sleeps: being woken takes
// longer than most messages do. Only where each rank may have a processor of its own.
#define EAGER_NS (UINT64_C(50) * 1000)

static bool is_eager(const struct local_group *group, uint64_t *until_ns)
{
    if (!group->eager)
        return false;
    const uint64_t now_ns = weir_clock_now_ns();
    if (*until_ns == 0)
        *until_ns = now_ns + EAGER_NS;
    sched_yield();
    return now_ns < *until_ns;
}

// What a rank waits in, in its windows: for the others of the group, and, where it waits long, in its other groups.
#define LONG_NS (UINT64_C(50) * 1000 * 1000)

// It is another process's.
static void read_text(struct window_text *text, char to[LOCAL_ELSEWHERE_SIZE])
{
    char said[LOCAL_ELSEWHERE_SIZE];
    for (size_t i = 0; i < sizeof said; i++)
        said[i] = atomic_load_explicit(&text->at[i], memory_order_relaxed);
    said[sizeof said - 1] = '\0';
    weir_text_escape(to, LOCAL_ELSEWHERE_SIZE, said, "");
}

static void show_wait(const struct local_run *run, uint32_t first, uint64_t now_ns)
{
    struct local_group *group = run->group;
    struct mesh_window *own = local_window_of(group, group->base.rank);
    char call[WEIR_HEAD_TEXT_SIZE];
    char text[LOCAL_ELSEWHERE_SIZE];
    weir_head_describe(&run->by.head, call);
    if (own && own->awaits != first + 1) {
        local_text_write(&own->waits_in, call);
        own->waits_in_number = run->by.head.number;
        own->awaits = first + 1;
    }
    if (group->elsewhere || now_ns < run->by.deadline_ns - run->by.timeout_ns + LONG_NS)
        return;
    snprintf(text, sizeof text, "%.80s of '%s' for its rank %u", call, group->base.label, first);
    group->elsewhere = true;
    local_say_elsewhere(group, text);
}

// The end of a call that has not failed.
static void stop_showing(struct local_group *group)
{
    struct mesh_window *own = local_window_of(group, group->base.rank);
    if (own)
        own->awaits = 0;
    if (group->elsewhere)
        local_say_elsewhere(group, "");
    group->elsewhere = false;
}

// The first peer that this rank still waits for.
static uint32_t first_busy(const struct local_group *group)
{
    uint32_t index = 0;
    while (index + 1 < group->base.count && !is_busy(&group->peers[index]))
        index++;
    return index;
}

// The rank for which another one waits; a number above all: for none that is known. One that waits for what comes after
// the wait of the first has done its part of that, and a first one that waits still has stopped.
static uint32_t awaited_by(struct local_group *group, uint32_t rank)
{
    const struct mesh_window *first = local_window_of(group, rank);
    const uint32_t awaited = first ? first->awaits - 1 : UINT32_MAX;
    if (awaited >= group->base.count)
        return UINT32_MAX;
    const struct mesh_window *second = local_window_of(group, awaited);
    const bool later = (int32_t)(second->stage - first->stage) > 0 ||
                       (second->awaits && second->waits_in_number > first->waits_in_number);
    return later ? UINT32_MAX : awaited;
}

// Of the ranks that wait for each other, from `first` on; as many as there is room for.
static bool fail_in_circle(const struct local_run *run, uint32_t first)
{
    char waits[WEIR_CAUSE_SIZE] = "";
    char call[LOCAL_ELSEWHERE_SIZE];
    size_t used = 0;
    uint32_t rank = first;
    for (uint32_t n = 0; n < run->group->base.count; n++) {
        const uint32_t awaited = awaited_by(run->group, rank);
        if (awaited >= run->group->base.count || (n > 0 && rank == first))
            break;
        read_text(&local_window_of(run->group, rank)->waits_in, call);
        weir_text_append(waits, sizeof waits, &used, "%srank %u waits in %.80s for rank %u",
                         used ? ", " : "", rank, call, awaited);
        rank = awaited;
    }
    return weir_caller_blame(&run->by, WEIR_FAULT_SILENT, UINT32_MAX,
                             "the ranks wait in a circle, for %s: %s",
                             weir_text_duration((double)run->by.timeout_ns).text, waits);
}

// The deadline has passed. A peer that waits itself is not the cause, unless all wait for each other.
static bool give_up(const struct local_run *run, uint32_t first)
{
    struct local_group *group = run->group;
    char elsewhere[LOCAL_ELSEWHERE_SIZE] = "";
    uint32_t index = first;
    if (run->differs)
        return judge(run);
    for (uint32_t n = 0; n < group->base.count && awaited_by(group, index) < group->base.count; n++)
        index = awaited_by(group, index);
    if (awaited_by(group, index) < group->base.count)
        return fail_in_circle(run, index);
    if (local_window_of(group, index))
        read_text(&local_window_of(group, index)->elsewhere, elsewhere);
    if (!elsewhere[0])
        return weir_caller_late(&run->by, index, &group->peers[index].head);
    return weir_caller_blame(
        &run->by, WEIR_FAULT_SILENT, index,
        "rank %u has not come to it in %s: it waits in %s; use communicators in the same "
        "order on all ranks",
        index, weir_text_duration((double)run->by.timeout_ns).text, elsewhere);
}

static bool may_wait(struct local_run *run, uint32_t first)
{
    const uint64_t now_ns = weir_clock_now_ns();
    if (now_ns >= run->by.deadline_ns)
        return give_up(run, first);
    show_wait(run, first, now_ns);
    return true;
}

// A peer that comes to a collective in its window wakes no other one, and neither does an abort of this rank's program,
// so a rank that waits for messages looks again.
#define LOOK_NS (UINT64_C(5) * 1000 * 1000)

// Whether the rank has come to a collective to which this one has not, and its call.
static bool is_ahead(struct local_group *group, uint32_t rank, struct weir_head *out_head)
{
    const uint32_t stage = group->stage + 1;
    struct mesh_window *window = local_window_of(group, rank);
    if (!window || (int32_t)(window->stage - stage) < 0)
        return false;
    *out_head = window->heads[stage & 1];
    return true;
}

// Sleeps until something can be done. Each peer has two entries.
static bool rest(struct local_run *run)
{
    struct local_group *group = run->group;
    const size_t count = group->base.count;
    struct weir_head head;
    const uint32_t first = first_busy(group);
    const bool ahead = is_ahead(group, first, &head);
    for (size_t i = 0; i < count; i++) {
        const struct mesh_peer *peer = &group->peers[i];
        const short events = (short)((peer->in.busy ? POLLIN : 0) | (peer->out.busy ? POLLOUT : 0));
        group->polls[2 * i] = (struct pollfd){.fd = events ? peer->data : -1, .events = events};
        group->polls[2 * i + 1] =
            (struct pollfd){.fd = peer->left ? -1 : peer->control, .events = POLLIN};
    }
    poll(group->polls, 2 * count,
         local_poll_ms(local_sooner(run->by.deadline_ns, weir_clock_now_ns() + LOOK_NS)));
    for (uint32_t i = 0; i < count; i++)
        if (group->polls[2 * i + 1].revents && !local_mesh_read_news(run, i))
            return false;
    // What it has sent was there before.
    if (ahead && !group->polls[2 * (size_t)first].revents && is_busy(&group->peers[first]))
        return weir_caller_agrees(&run->by, first, &head);
    return may_wait(run, first);
}

// Sends and receives until all that is to be received is there, and all is sent.
static bool pump(struct local_run *run)
{
    struct local_group *group = run->group;
    for (uint32_t i = 0; i < group->base.count; i++) {
        group->peers[i].in.next = group->peers[i].out.next = 0;
        begin(run, i, false);
        begin(run, i, true);
    }
    uint64_t eager_until_ns = 0; // 0: something has just moved
    for (;;) {
        bool moved = false;
        bool busy = false;
        for (uint32_t i = 0; i < group->base.count; i++) {
            if (!move(run, i, true, &moved) || !move(run, i, false, &moved))
                return false;
            busy = busy || is_busy(&group->peers[i]);
        }
        if (group->base.failed)
            return false;
        if (!busy)
            return true;
        if (moved)
            eager_until_ns = 0;
        else if (!is_eager(group, &eager_until_ns) && !rest(run))
            return false;
    }
}

// Of ranks whose calls differ the one that waits for the fewest bytes gets them all, and tells the others.
static bool gather(struct local_run *run)
{
    const struct weir_transport_call *call = run->call;
    const size_t size = call->src ? call->count * weir_datatype_size(call->element) : 0;
    if (size > 0 && (char *)call->dst + run->group->base.rank * size != call->src)
        memcpy((char *)call->dst + run->group->base.rank * size, call->src, size);
    return pump(run) && (!run->differs || judge(run));
}

// Collectives in windows. A window has two areas, of which a rank gives in one and then in the other. A rank writes an area
// again when all have read it, which it knows from their stages: every rank counts, before it waits, how far it is.

// Of one step, on each rank; both areas of two ranks fit into a usual cache.
#define STEP_BYTES ((size_t)512 << 10)
#define HEAD_BYTES ((size_t)4096)
_Static_assert(LOCAL_WINDOW_BYTES == HEAD_BYTES + 2 * STEP_BYTES, "it has a head and two areas");
// Where each rank takes another part of an area, that has at most a multiple of this.
#define PART_UNIT ((size_t)64)
_Static_assert(STEP_BYTES / LOCAL_MAX_RANKS >= PART_UNIT, "there is a part for each rank");

#define EAGER_LOOKS 256
// It sleeps for so long before it looks whether a rank has died.
#define SLEEP_NS 1000000
#define LONG_SLEEP_NS 5000000 // of many ranks, and after so many
#define SHORT_SLEEPS 100
#define MANY_RANKS 16

static char *area_of(struct local_group *group, uint32_t rank, uint32_t index)
{
    return (char *)group->windows[rank] + HEAD_BYTES + (size_t)index * STEP_BYTES;
}

static bool is_at(struct local_group *group, uint32_t rank, uint32_t stage)
{
    return (int32_t)(group->windows[rank]->stage - stage) >= 0;
}

static bool are_at(struct local_group *group, uint32_t stage)
{
    uint32_t rank = 0;
    while (rank < group->base.count && is_at(group, rank, stage))
        rank++;
    return rank == group->base.count;
}

static void sleep_until_woken(struct local_group *group, uint32_t stage, int turn)
{
    const bool is_long = turn >= SHORT_SLEEPS || group->base.count > MANY_RANKS;
    const struct timespec most = {.tv_nsec = is_long ? LONG_SLEEP_NS : SLEEP_NS};
    struct mesh_window *own = group->windows[group->base.rank];
    const uint32_t bell = atomic_load(&own->bell);
    atomic_store(&own->asleep, 1);
    if (!are_at(group, stage) && !group->base.failed)
        syscall(SYS_futex, &own->bell, FUTEX_WAIT, bell, &most, NULL, 0);
    atomic_store(&own->asleep, 0);
}

// Takes the calls of those that have come to the first stage of a collective.
static void read_heads(struct local_run *run, uint32_t stage)
{
    struct local_group *group = run->group;
    for (uint32_t i = 0; i < group->base.count; i++)
        if (i != group->base.rank && !group->peers[i].has_come && is_at(group, i, stage))
            take_head(run, i, &group->windows[i]->heads[stage & 1]);
}

// Looks whether the wait is in vain: false once that has failed the group.
static bool may_wait_at(struct local_run *run, uint32_t stage)
{
    struct local_group *group = run->group;
    struct weir_head head;
    uint32_t first = UINT32_MAX;
    if (group->base.failed) // this rank's program has aborted
        return false;
    for (uint32_t i = 0; i < group->base.count; i++) {
        // Also of one that has come to it: it may fail while this one waits for another.
        if (i != group->base.rank && !local_mesh_read_news(run, i))
            return false;
        if (is_at(group, i, stage))
            continue;
        first = i < first ? i : first;
        // One that has left may have come to it before.
        if (group->peers[i].left && !is_at(group, i, stage))
            return fail_of_end(run, i);
        // Where it is to come to a collective it sends no message.
        if (recv(group->peers[i].data, &head, sizeof head, MSG_PEEK) == (ssize_t)sizeof head &&
            !weir_caller_agrees(&run->by, i, &head))
            return false;
    }
    return first == UINT32_MAX || may_wait(run, first);
}

static bool looks_eagerly(struct local_group *group, uint32_t stage, int cpu)
{
    const uint64_t until_ns = weir_clock_now_ns() + EAGER_NS;
    bool eager = group->eager;
    // A rank that was last on this processor does not come while this one looks for it.
    for (uint32_t i = 0; i < group->base.count && eager; i++)
        eager = is_at(group, i, stage) || group->windows[i]->cpu != cpu;
    if (!eager)
        return false;
    do {
        for (int i = 0; i < EAGER_LOOKS; i++)
            if (are_at(group, stage))
                return true;
    } while (weir_clock_now_ns() < until_ns);
    return false;
}

static bool await_others(struct local_run *run, uint32_t stage, bool first)
{
    struct local_group *group = run->group;
    for (int turn = 0; !are_at(group, stage); turn += turn < SHORT_SLEEPS) {
        sleep_until_woken(group, stage, turn);
        if (first)
            read_heads(run, stage);
        if (!are_at(group, stage) && !may_wait_at(run, stage))
            return false;
    }
    return true;
}

// All ranks have come so far, the first time with their heads, which are the same. False once that has failed the group.
static bool meet(struct local_run *run)
{
    struct local_group *group = run->group;
    struct mesh_window *own = group->windows[group->base.rank];
    const uint32_t stage = ++group->stage;
    const int cpu = sched_getcpu();
    const bool first = !run->met;
    own->heads[stage & 1] = run->by.head;
    own->cpu = cpu;
    own->stage = stage;
    if (are_at(group, stage))
        wake(group);
    if (!looks_eagerly(group, stage, cpu) && !await_others(run, stage, first))
        return false;
    run->met = true;
    if (first)
        read_heads(run, stage);
    return !run->differs || judge(run);
}

// What is given in a move is in the area of its stage, for each rank what all take, or parts one after the other.

static char *give(void *user)
{
    const struct local_run *run = user;
    return area_of(run->group, run->group->base.rank, (run->group->stage + 1) & 1);
}

static const char *given(void *user, uint32_t from)
{
    const struct local_run *run = user;
    return area_of(run->group, from, run->group->stage & 1) + run->given_at;
}

static bool pass(void *user, weir_collective kind, size_t size)
{
    struct local_run *run = user;
    const bool parts = kind == WEIR_ALL_TO_ALL || kind == WEIR_SCATTER;
    run->given_at = parts ? run->group->base.rank * size : 0;
    return meet(run);
}

// An all-reduce always takes two moves, so that a rank that comes to it late hears of another one's failure.
static bool carry_in_windows(struct local_run *run)
{
    const struct local_group *group = run->group;
    const struct weir_carrier carrier = {
        .user = run,
        .rank = group->base.rank,
        .count = group->base.count,
        .one = STEP_BYTES,
        .each = STEP_BYTES / group->base.count / PART_UNIT * PART_UNIT,
        .whole = STEP_BYTES,
        .give = give,
        .move = pass,
        .given = given,
    };
    return weir_carry(&carrier, run->call) && (run->met || meet(run));
}

bool local_carry(struct local_run *run)
{
    struct local_group *group = run->group;
    bool carried;
    for (uint32_t i = 0; i < group->base.count; i++)
        group->peers[i].has_come = i == group->base.rank;
    group->peers[group->base.rank].incoming = run->by.head;
    if (!weir_is_numbered(run->by.head.kind))
        carried = pump(run);
    else if (group->windows)
        carried = carry_in_windows(run);
    else
        carried = gather(run);
    if (carried && !group->base.failed)
        stop_showing(group);
    return carried && !group->base.failed;
}

#define MPI_REMEDY \
    "run it under mpirun with WEIR_COMM_TRANSPORT=mpi, which carries host memory between machines"

// Between machines: what makes and watches an engine's communicator, and compares calls.
static bool fits_the_line(const struct weir_transport_call *call)
{
    const bool may = call->kind == WEIR_ALL_GATHER || !weir_is_numbered(call->kind);
    const size_t most = may ? LOCAL_CONTROL_BYTES : 0;
    bool fits =
        (!call->src && !call->dst) || call->count * weir_datatype_size(call->element) <= most;
    for (uint32_t i = 0; i < call->part_count && fits; i++) {
        const struct weir_transport_part *part = weir_transport_part_at(call, i);
        fits = part->count * weir_datatype_size(part->element) <= most;
    }
    return fits;
}

weir_status local_run_call(void *group, const struct weir_transport_call *call)
{
    struct local_run run = local_run_begin(group, weir_head_of(call), call->timeout_ns);
    run.call = call;
    const weir_status status = weir_group_report(group, WEIR_ERROR_COMM, NULL);
    if (status)
        return status;
    if (!local_carries_data(group) && !fits_the_line(call)) {
        // Strangers on the way could read, and change, what goes to another machine.
        weir_caller_fail(
            &run.by,
            "rank %u is asked to send host memory to another machine, and 'local' does not",
            run.group->base.rank);
        return weir_group_report(group, WEIR_ERROR_UNSUPPORTED, MPI_REMEDY);
    }
    return local_carry(&run) ? WEIR_OK : weir_group_report(group, WEIR_ERROR_COMM, NULL);
}
