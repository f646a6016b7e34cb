// The rules of docs/sim.md as they are written there: at each nanosecond all operations are looked
// at, again and again until nothing changes. Nothing here is fast, and nothing is shared with the
// engine.
#include <string.h>

#include "tests/plugins/sim/program.h"

struct state {
    uint32_t home;   // its queue's device
    uint32_t device; // whose engine it needs
    int engine;
    int place; // the same, with functions of the host
    bool submitted;
    bool known; // that what it waits for is complete
    bool ready;
    bool started;
    bool ended;
    int run; // of kernels, with late signals; -1: none
    uint64_t known_ns;
    uint64_t ready_ns; // when the signal is there, too
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t idle_ns; // latency, or a kernel's whole length
    uint64_t left;    // millionths of a byte
    uint32_t from;    // the engines whose ends made it ready, as bits
};

enum {
    HOST = 5,
    ELSEWHERE = 6, // another device
    ENGINES
};

struct oracle {
    struct program *program;
    struct state states[STEPS];
    uint64_t now;
    int runs;
    uint32_t channels[QUEUES];
    uint32_t lanes[QUEUES];    // copy channels
    int last_lane[2][ENGINES]; // of the last that started, for each device
    bool old[STEPS][STEPS];    // [i][before]: the end of `before` was seen when i was submitted
};

static const struct sim_model *model_of(const struct oracle *oracle, int i)
{
    return oracle->program->models[oracle->states[i].device];
}

// 0 kernels, 1 and 2 copies, 3 peers, 4 collectives; -1 without an engine.
static int engine_of(const struct sim_model *model, enum sim_kind kind)
{
    if (kind == SIM_KERNEL || kind == SIM_D2D)
        return 0;
    if (kind == SIM_H2D)
        return 1;
    if (kind == SIM_PEER && model->copy_engines > 2)
        return 3;
    if (kind == SIM_COLLECTIVE)
        return 4;
    if (kind == SIM_D2H || kind == SIM_PEER)
        return model->copy_engines > 1 ? 2 : 1;
    return -1;
}

static void set_places(struct oracle *oracle)
{
    const struct program *program = oracle->program;
    for (int i = 0; i < program->step_count; i++) {
        struct state *state = &oracle->states[i];
        const struct step *step = &program->steps[i];
        state->home = program->queues[step->queue].device;
        state->device = step->pulls ? 1 - state->home : state->home;
        state->engine = engine_of(model_of(oracle, i), step->kind);
        state->place = step->kind == SIM_HOST ? HOST : state->engine;
    }
}

static bool run_is_over(const struct oracle *oracle, int run)
{
    for (int i = 0; i < oracle->program->step_count; i++)
        if (oracle->states[i].submitted && oracle->states[i].run == run && !oracle->states[i].ended)
            return false;
    return true;
}

static bool sees_end(const struct oracle *oracle, int i, int before)
{
    const struct state *state = &oracle->states[before];
    if (!state->ended)
        return false;
    const bool kernels =
        oracle->states[i].engine == 0 && oracle->states[i].device == oracle->states[before].device;
    return state->run < 0 || kernels || run_is_over(oracle, state->run);
}

static bool is_last_of_queue(const struct oracle *oracle, int i, int before)
{
    for (int other = before + 1; other < i; other++)
        if (oracle->program->steps[other].queue == oracle->program->steps[before].queue)
            return false;
    return true;
}

static bool orders(const struct oracle *oracle, int i, int before)
{
    const struct program *program = oracle->program;
    const struct step *step = &program->steps[i];
    for (int wait = 0; wait < STEP_WAITS; wait++)
        if (step->waits[wait] == before)
            return true;
    return step->queue == program->steps[before].queue && is_last_of_queue(oracle, i, before);
}

// Only the one before it in its channel counts.
static bool channel_lets(const struct oracle *oracle, int i)
{
    if (!oracle->program->models[oracle->states[i].home]->channels)
        return true;
    for (int before = i - 1; before >= 0; before--)
        if (oracle->states[before].home == oracle->states[i].home &&
            oracle->channels[oracle->program->steps[before].queue] ==
                oracle->channels[oracle->program->steps[i].queue])
            return oracle->states[before].started;
    return true;
}

// Those from a device start in the order of their submission.
static bool pulls_let(const struct oracle *oracle, int i)
{
    for (int before = 0; before < i && oracle->program->steps[i].pulls; before++)
        if (oracle->program->steps[before].pulls &&
            oracle->states[before].device == oracle->states[i].device &&
            !oracle->states[before].started)
            return false;
    return true;
}

static bool is_ready(const struct oracle *oracle, int i)
{
    for (int before = 0; before < i; before++)
        if (orders(oracle, i, before) && !sees_end(oracle, i, before))
            return false;
    return channel_lets(oracle, i) && pulls_let(oracle, i);
}

// When `i` may know that `before` has ended.
static uint64_t seen_ns(const struct oracle *oracle, int i, int before)
{
    const struct state *state = &oracle->states[before];
    const bool kernels =
        oracle->states[i].engine == 0 && oracle->states[i].device == oracle->states[before].device;
    uint64_t ns = state->end_ns;
    for (int other = 0; state->run >= 0 && !kernels && other < oracle->program->step_count; other++)
        if (oracle->states[other].run == state->run && oracle->states[other].end_ns > ns)
            ns = oracle->states[other].end_ns;
    return ns;
}

// The engines of what made it ready now; a mark tells those of its own.
static uint32_t made_ready_by(const struct oracle *oracle, int i)
{
    uint32_t from = 0;
    for (int before = 0; before < i; before++) {
        if (!orders(oracle, i, before) || oracle->old[i][before] ||
            seen_ns(oracle, i, before) != oracle->now)
            continue;
        if (oracle->states[before].device != oracle->states[i].device)
            from |= 1u << ELSEWHERE;
        else if (oracle->states[before].place >= 0)
            from |= 1u << oracle->states[before].place;
        else if (oracle->states[before].ready_ns == oracle->now)
            from |= oracle->states[before].from;
    }
    return from;
}

// The one before it in its queue, with an engine or a function of the host if `placed`; -1: none.
static int before_in_queue(const struct oracle *oracle, int i, bool placed)
{
    for (int before = i - 1; before >= 0; before--)
        if (oracle->program->steps[before].queue == oracle->program->steps[i].queue &&
            (!placed || oracle->states[before].place >= 0))
            return before;
    return -1;
}

// Whether its queue had nothing left when it was submitted.
static bool is_rested(const struct oracle *oracle, int i)
{
    const int before = before_in_queue(oracle, i, false);
    return before < 0 || oracle->old[i][before];
}

// Whether what it comes after, in its queue or as what made it ready, was on another engine.
static bool is_signalled(const struct oracle *oracle, int i)
{
    const int place = oracle->states[i].place;
    if (place < 0)
        return false;
    if (oracle->program->steps[i].pulls || oracle->states[i].from & ~(1u << place))
        return true;
    if (oracle->program->steps[i].first ||
        (oracle->program->steps[i].kind == SIM_PEER && is_rested(oracle, i)))
        return false;
    const int before = before_in_queue(oracle, i, true);
    return before >= 0 && (oracle->states[before].place != place ||
                           oracle->states[before].device != oracle->states[i].device);
}

static int places_of(const struct oracle *oracle, int i)
{
    const int all = (int)model_of(oracle, i)->kernels;
    const int places = (int)oracle->program->steps[i].places;
    if (oracle->program->steps[i].kind != SIM_KERNEL || places == 0)
        return 1;
    return places < all ? places : all;
}

static int used_on(const struct oracle *oracle, uint32_t device, int engine)
{
    int count = 0;
    for (int i = 0; i < oracle->program->step_count; i++)
        if (oracle->states[i].started && !oracle->states[i].ended &&
            oracle->states[i].device == device && oracle->states[i].engine == engine)
            count += places_of(oracle, i);
    return count;
}

static int priority_of(const struct oracle *oracle, int i)
{
    const struct step *step = &oracle->program->steps[i];
    const bool counts =
        step->kind == SIM_KERNEL && model_of(oracle, i)->queues == SIM_STREAM_QUEUES;
    return counts ? oracle->program->queues[step->queue].priority : 0;
}

static bool yields_to(const struct oracle *oracle, int other, int i)
{
    const struct state *state = &oracle->states[other];
    const struct step *steps = oracle->program->steps;
    return state->started && !state->ended &&
           oracle->states[other].device == oracle->states[i].device &&
           steps[other].kind == SIM_KERNEL && steps[i].kind == SIM_KERNEL &&
           steps[other].yield_ns > 0 && priority_of(oracle, other) > priority_of(oracle, i);
}

// Places that it can have: those that are free, and those of kernels that yield to it.
static int room_for(const struct oracle *oracle, int i)
{
    const int engine = oracle->states[i].engine;
    int room = (engine == 0 ? (int)model_of(oracle, i)->kernels : 1) -
               used_on(oracle, oracle->states[i].device, engine);
    if (room >= places_of(oracle, i))
        return room;
    for (int other = 0; other < oracle->program->step_count; other++)
        room += yields_to(oracle, other, i) ? places_of(oracle, other) : 0;
    return room;
}

// Of two that yield: the worse priority, then what started later.
static bool yields_before(const struct oracle *oracle, int a, int b)
{
    if (priority_of(oracle, a) != priority_of(oracle, b))
        return priority_of(oracle, a) > priority_of(oracle, b);
    if (oracle->states[a].start_ns != oracle->states[b].start_ns)
        return oracle->states[a].start_ns > oracle->states[b].start_ns;
    return a > b;
}

// Takes the places that it lacks; how long it waits for them.
static uint64_t preempt(struct oracle *oracle, int i)
{
    const int engine = oracle->states[i].engine;
    uint64_t wait_ns = UINT64_MAX;
    bool asked[STEPS] = {false};
    // It has started, so it is among those that use places.
    int missing =
        used_on(oracle, oracle->states[i].device, engine) - (int)model_of(oracle, i)->kernels;
    missing = missing < places_of(oracle, i) ? missing : places_of(oracle, i);
    while (missing > 0) {
        int next = -1;
        for (int other = 0; other < oracle->program->step_count; other++)
            if (!asked[other] && yields_to(oracle, other, i) &&
                (next < 0 || yields_before(oracle, other, next)))
                next = other;
        if (next < 0)
            break;
        const uint64_t whole = (uint64_t)places_of(oracle, next);
        const uint64_t taken = (uint64_t)missing < whole ? (uint64_t)missing : whole;
        const uint64_t yield_ns = oracle->program->steps[next].yield_ns;
        uint64_t *idle_ns = &oracle->states[next].idle_ns;
        wait_ns = yield_ns < wait_ns ? yield_ns : wait_ns;
        wait_ns = *idle_ns < wait_ns ? *idle_ns : wait_ns;
        const uint64_t length = oracle->program->steps[i].length;
        *idle_ns += (length * taken + whole - 1) / whole;
        missing -= (int)taken;
        asked[next] = true;
    }
    return wait_ns == UINT64_MAX ? 0 : wait_ns;
}

static bool goes_before(const struct oracle *oracle, int a, int b)
{
    const struct state *states = oracle->states;
    if (model_of(oracle, a)->queues == SIM_ENGINE_QUEUES)
        return a < b;
    if (priority_of(oracle, a) != priority_of(oracle, b))
        return priority_of(oracle, a) < priority_of(oracle, b);
    return states[a].ready_ns != states[b].ready_ns ? states[a].ready_ns < states[b].ready_ns
                                                    : a < b;
}

static bool has_lanes(const struct oracle *oracle, int i)
{
    return model_of(oracle, i)->copy_channels > 0 &&
           model_of(oracle, i)->queues == SIM_STREAM_QUEUES &&
           (oracle->states[i].engine == 1 || oracle->states[i].engine == 2);
}

// A device may have fewer than the one whose queue it is.
static uint32_t lane_of(const struct oracle *oracle, int i)
{
    return oracle->lanes[oracle->program->steps[i].queue] % model_of(oracle, i)->copy_channels;
}

// The first of a copy channel that is ready; -1: none.
static int first_of_lane(const struct oracle *oracle, uint32_t device, int engine, uint32_t lane)
{
    for (int i = 0; i < oracle->program->step_count; i++) {
        const struct state *state = &oracle->states[i];
        if (state->ready && !state->started && state->device == device && state->engine == engine &&
            lane_of(oracle, i) == lane)
            return i;
    }
    return -1;
}

// The engine stays with its channel; else it takes the one whose first was ready first.
static bool has_turn_in_lanes(const struct oracle *oracle, int i)
{
    const uint32_t device = oracle->states[i].device;
    const int engine = oracle->states[i].engine;
    const int stays =
        first_of_lane(oracle, device, engine, (uint32_t)oracle->last_lane[device][engine]);
    if (stays >= 0)
        return stays == i;
    int first = -1;
    for (uint32_t lane = 0; lane < model_of(oracle, i)->copy_channels; lane++) {
        const int other = first_of_lane(oracle, device, engine, lane);
        const bool before =
            other >= 0 &&
            (first < 0 || oracle->states[other].ready_ns < oracle->states[first].ready_ns ||
             (oracle->states[other].ready_ns == oracle->states[first].ready_ns && other < first));
        first = before ? other : first;
    }
    return first == i;
}

// Whether it is its turn on its engine.
static bool may_start(const struct oracle *oracle, int i)
{
    const int engine = oracle->states[i].engine;
    const struct sim_model *model = model_of(oracle, i);
    const uint32_t device = oracle->states[i].device;
    if (!oracle->states[i].ready || oracle->states[i].started)
        return false;
    if (engine < 0)
        return true;
    if (room_for(oracle, i) < places_of(oracle, i))
        return false;
    if (has_lanes(oracle, i))
        return has_turn_in_lanes(oracle, i);
    for (int other = 0; other < oracle->program->step_count; other++) {
        const struct state *state = &oracle->states[other];
        const bool waits = state->submitted && !state->started &&
                           (state->ready || model->queues == SIM_ENGINE_QUEUES);
        if (other != i && waits && oracle->states[other].device == device &&
            oracle->states[other].engine == engine && goes_before(oracle, other, i))
            return false;
    }
    return true;
}

static bool is_copying(const struct oracle *oracle, uint32_t device, enum sim_kind kind)
{
    for (int i = 0; i < oracle->program->step_count; i++)
        if (oracle->states[i].started && !oracle->states[i].ended &&
            oracle->states[i].device == device && oracle->program->steps[i].kind == kind)
            return true;
    return false;
}

static bool other_way_is_busy(const struct oracle *oracle, int i)
{
    const enum sim_kind kind = oracle->program->steps[i].kind;
    const uint32_t device = oracle->states[i].device;
    return model_of(oracle, i)->copy_engines > 1 &&
           ((kind == SIM_H2D && is_copying(oracle, device, SIM_D2H)) ||
            (kind == SIM_D2H && is_copying(oracle, device, SIM_H2D)));
}

static uint64_t latency_ns(const struct oracle *oracle, int i)
{
    if (oracle->program->steps[i].pulls && model_of(oracle, i)->pull_latency_ns)
        return model_of(oracle, i)->pull_latency_ns;
    const struct sim_link *link = &model_of(oracle, i)->copies[oracle->program->steps[i].kind];
    return link->both_latency_ns && other_way_is_busy(oracle, i) ? link->both_latency_ns
                                                                 : link->latency_ns;
}

// How much later it starts than it may: a signal is on its way, or a kernel comes after another one.
static uint64_t lead_ns(const struct oracle *oracle, int i)
{
    const struct step *step = &oracle->program->steps[i];
    if (is_signalled(oracle, i))
        return model_of(oracle, i)->signal_ns;
    if (step->kind == SIM_KERNEL && !step->node && oracle->states[i].from & 1u)
        return model_of(oracle, i)->kernel_gap_ns;
    return 0;
}

// With stream queues an operation joins its engine's queue when the signal is there.
static bool is_sent(const struct oracle *oracle, int i)
{
    return model_of(oracle, i)->queues == SIM_STREAM_QUEUES && oracle->states[i].engine >= 0;
}

static void start(struct oracle *oracle, int i)
{
    const struct sim_model *model = model_of(oracle, i);
    const struct step *step = &oracle->program->steps[i];
    struct state *state = &oracle->states[i];
    state->started = true;
    state->start_ns = oracle->now;
    if (step->kind == SIM_KERNEL || step->kind == SIM_PAUSE)
        state->idle_ns = step->length;
    else if (step->kind == SIM_HOST)
        state->idle_ns = model->host_call_ns;
    else if (step->kind == SIM_MARK)
        state->idle_ns = 0;
    else
        state->idle_ns = latency_ns(oracle, i), state->left = step->length * 1000000;
    const uint64_t room_ns = step->kind == SIM_KERNEL ? preempt(oracle, i) : 0;
    const bool engine_queues = model_of(oracle, i)->queues == SIM_ENGINE_QUEUES;
    uint64_t wait_ns = 0;
    if (engine_queues || oracle->states[i].place == HOST)
        wait_ns = lead_ns(oracle, i);
    wait_ns = wait_ns > room_ns ? wait_ns : room_ns;
    state->idle_ns += wait_ns;
    state->start_ns += wait_ns;
    if (has_lanes(oracle, i))
        oracle->last_lane[oracle->states[i].device][oracle->states[i].engine] =
            (int)lane_of(oracle, i);
}

static bool end_some(struct oracle *oracle)
{
    bool any = false;
    for (int i = 0; i < oracle->program->step_count; i++) {
        struct state *state = &oracle->states[i];
        if (!state->started || state->ended || state->idle_ns || state->left)
            continue;
        state->ended = any = true;
        state->end_ns = oracle->now;
    }
    return any;
}

static bool ready_some(struct oracle *oracle)
{
    bool any = false;
    for (int i = 0; i < oracle->program->step_count; i++) {
        struct state *state = &oracle->states[i];
        if (!state->submitted || state->ready)
            continue;
        if (!state->known && is_ready(oracle, i)) {
            state->known = true;
            state->known_ns = oracle->now;
            state->from = made_ready_by(oracle, i);
        }
        if (!state->known ||
            oracle->now < state->known_ns + (is_sent(oracle, i) ? lead_ns(oracle, i) : 0))
            continue;
        state->ready = any = true;
        state->ready_ns = oracle->now;
    }
    return any;
}

// Those without an engine go first.
static bool start_first(struct oracle *oracle)
{
    int first = -1;
    for (int i = 0; i < oracle->program->step_count; i++) {
        if (!may_start(oracle, i))
            continue;
        const bool mark = oracle->program->steps[i].kind == SIM_MARK;
        if (mark) {
            first = i;
            break;
        }
        if (first < 0 || oracle->states[i].ready_ns < oracle->states[first].ready_ns)
            first = i;
    }
    if (first >= 0)
        start(oracle, first);
    return first >= 0;
}

static void settle(struct oracle *oracle)
{
    while (end_some(oracle) || ready_some(oracle) || start_first(oracle)) {
    }
}

static void submit(struct oracle *oracle, int i)
{
    const struct step *steps = oracle->program->steps;
    struct state *state = &oracle->states[i];
    state->submitted = true;
    state->run = -1;
    for (int before = 0; before < i; before++)
        oracle->old[i][before] = sees_end(oracle, i, before);
    if (steps[i].kind != SIM_KERNEL || !model_of(oracle, i)->late_signals)
        return;
    const bool joins = i > 0 && steps[i - 1].kind == SIM_KERNEL && oracle->states[i - 1].run >= 0 &&
                       oracle->states[i - 1].device == oracle->states[i].device &&
                       steps[i - 1].queue != steps[i].queue &&
                       !run_is_over(oracle, oracle->states[i - 1].run);
    state->run = joins ? oracle->states[i - 1].run : oracle->runs++;
}

// One nanosecond.
static void pass(struct oracle *oracle)
{
    uint64_t moves[STEPS] = {0};
    for (int i = 0; i < oracle->program->step_count; i++) {
        const enum sim_kind kind = oracle->program->steps[i].kind;
        const struct sim_link *link = &model_of(oracle, i)->copies[kind];
        const bool both = other_way_is_busy(oracle, i);
        moves[i] =
            (both && link->both_bytes_per_s ? link->both_bytes_per_s : link->bytes_per_s) / 1000;
    }
    for (int i = 0; i < oracle->program->step_count; i++) {
        struct state *state = &oracle->states[i];
        if (!state->started || state->ended)
            continue;
        if (state->idle_ns)
            state->idle_ns--;
        else
            state->left -= state->left < moves[i] ? state->left : moves[i];
    }
    oracle->now++;
}

// Each device gives its channels to its queues in turn.
static void give_channels(struct oracle *oracle)
{
    uint32_t next[2] = {0};
    uint32_t lanes[2] = {0};
    for (uint32_t i = 0; i < oracle->program->queue_count; i++) {
        const uint32_t device = oracle->program->queues[i].device;
        const uint32_t count = oracle->program->models[device]->channels;
        const uint32_t copy_count = oracle->program->models[device]->copy_channels;
        oracle->channels[i] = count ? next[device]++ % count : i;
        oracle->lanes[i] = copy_count ? lanes[device]++ % copy_count : 0;
    }
}

void run_oracle(struct program *program)
{
    static struct oracle oracle;
    uint64_t host_ns = 0;
    memset(&oracle, 0, offsetof(struct oracle, old)); // `old` is written before it is read
    oracle.program = program;
    set_places(&oracle);
    give_channels(&oracle);
    for (int i = 0; i < program->step_count; i++) {
        const struct step *step = &program->steps[i];
        while (step->host_wait >= 0 && !oracle.states[step->host_wait].ended)
            pass(&oracle), settle(&oracle);
        host_ns = (host_ns > oracle.now ? host_ns : oracle.now) + step->host_ns;
        while (oracle.now < host_ns)
            pass(&oracle), settle(&oracle);
        submit(&oracle, i);
        settle(&oracle);
    }
    for (int i = 0; i < program->step_count; i++) {
        while (!oracle.states[i].ended)
            pass(&oracle), settle(&oracle);
        program->slots[i] = (struct slot){oracle.states[i].start_ns, oracle.states[i].end_ns};
    }
}
