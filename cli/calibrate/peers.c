// Copies to another device of the machine, if there is one that the first can reach.
#include "cli/calibrate/calibrate.h"
#include "cli/runtime/open.h"

static bool create_buffers(struct calibration *c)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .label = "calibrate/across",
                                              .size = c->large};
    return (weir_buffer_create(c->device, &params, &c->from[CAL_ACROSS]) == WEIR_OK &&
            weir_buffer_create(c->peer, &params, &c->to[CAL_ACROSS]) == WEIR_OK &&
            weir_buffer_create(c->device, &params, &c->to[CAL_PULL]) == WEIR_OK &&
            weir_buffer_create(c->peer, &params, &c->from[CAL_PULL]) == WEIR_OK) ||
           cal_fail_weir(c);
}

static bool measure_at_once(struct calibration *c, size_t at, double *out_share)
{
    (void)at;
    return cal_hidden(c, CAL_ACROSS, CAL_DOWN, out_share);
}

static bool measure_submit(struct calibration *c, size_t at, double *out_ns)
{
    const struct cal_work work = {.kind = at == CAL_SUBMIT_PULL ? CAL_PULL : CAL_ACROSS,
                                  .bytes = c->sizes[0]};
    return cal_submits(c, &work, out_ns);
}

// A queue of the other device waits for records of the first one's.
static bool time_pairs(struct calibration *c, weir_queue *other, double *out_ns)
{
    if (!cal_gate(c, 0))
        return false;
    const uint64_t began = cli_now_ns();
    if (!cal_submit_pairs(c, other, c->queues[0], CAL_SUBMITS))
        return false;
    *out_ns = (double)(cli_now_ns() - began) / CAL_SUBMITS - c->figures[CAL_SUBMIT_MARK].value;
    return cal_sync(c, 0);
}

static bool measure_wait(struct calibration *c, size_t at, double *out_ns)
{
    const struct weir_queue_params params = {.struct_size = sizeof params, .label = "calibrate"};
    weir_queue *other = NULL;
    (void)at;
    if (weir_queue_create(c->peer, &params, &other) < 0)
        return cal_fail_weir(c);
    const bool fine = time_pairs(c, other, out_ns);
    weir_queue_destroy(&other);
    return fine;
}

// One comes after the other, so that each waits for a signal of the other device.
static bool measure_pull(struct calibration *c, size_t at, double *out_ns)
{
    const struct cal_work pull = {.kind = CAL_PULL, .bytes = c->sizes[0]};
    (void)at;
    if (!cal_each(c, &pull, CAL_IN_A_ROW, out_ns))
        return false;
    *out_ns -= (double)pull.bytes / c->figures[CAL_PEER].value + c->figures[CAL_SIGNAL].value;
    return true;
}

static void leave_all(struct calibration *c, const char *why)
{
    cal_figure_leave(c, CAL_PEER_ENGINE, why);
    cal_figure_leave(c, CAL_PEER, why);
    cal_figure_leave(c, CAL_PEER_LATENCY, why);
    cal_figure_leave(c, CAL_PULL_LATENCY, why);
    cal_figure_leave(c, CAL_SUBMIT_PEER, why);
    cal_figure_leave(c, CAL_SUBMIT_PULL, why);
    cal_figure_leave(c, CAL_SUBMIT_PEER_WAIT, why);
}

bool cal_measure_peers(struct calibration *c)
{
    struct cal_figure hidden;
    if (cli_open_other(c->runtime, c->device, &c->peer) < 0)
        return cal_fail_weir(c);
    if (!c->peer || !weir_device_can_peer(c->device, c->peer)) {
        leave_all(c, c->peer ? "the devices cannot reach each other" : "there is one device");
        return true;
    }
    if (!create_buffers(c) ||
        !cal_figure_measure(c, measure_submit, CAL_SUBMIT_PEER, &c->figures[CAL_SUBMIT_PEER]) ||
        !cal_figure_measure(c, measure_submit, CAL_SUBMIT_PULL, &c->figures[CAL_SUBMIT_PULL]) ||
        !cal_figure_measure(c, measure_wait, 0, &c->figures[CAL_SUBMIT_PEER_WAIT]) ||
        !cal_measure_copies(c, CAL_ACROSS) ||
        !cal_figure_measure(c, measure_pull, 0, &c->figures[CAL_PULL_LATENCY]) ||
        !cal_figure_measure(c, measure_at_once, 0, &hidden))
        return false;
    cal_figure_set(c, CAL_PEER_ENGINE, hidden.value > 0.5);
    return true;
}
