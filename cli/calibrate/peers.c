// Copies to another device of the machine, if there is one that the first can reach.
#include "cli/calibrate/calibrate.h"
#include "cli/runtime/open.h"

static bool create_buffers(struct calibration *c)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .label = "calibrate/across",
                                              .size = c->large};
    return (weir_buffer_create(c->device, &params, &c->from[CAL_ACROSS]) == WEIR_OK &&
            weir_buffer_create(c->peer, &params, &c->to[CAL_ACROSS]) == WEIR_OK) ||
           cal_fail_weir(c);
}

static bool measure_at_once(struct calibration *c, size_t at, double *out_share)
{
    const struct cal_work across = {.kind = CAL_ACROSS, .bytes = c->large};
    const struct cal_work down = {.kind = CAL_DOWN, .bytes = c->large};
    double one = 0, other = 0, both = 0;
    (void)at;
    if (!cal_time(c, &across, 1, &one) || !cal_time(c, &down, 1, &other) ||
        !cal_pair(c, &across, &down, &both))
        return false;
    const double shorter = one < other ? one : other;
    *out_share = (one + other - both) / shorter; // of the shorter one, how much was hidden
    return true;
}

static void leave_all(struct calibration *c, const char *why)
{
    cal_figure_leave(c, CAL_PEER_ENGINE, why);
    cal_figure_leave(c, CAL_PEER, why);
    cal_figure_leave(c, CAL_PEER_LATENCY, why);
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
    if (!create_buffers(c) || !cal_measure_copies(c, CAL_ACROSS) ||
        !cal_figure_measure(c, measure_at_once, 0, &hidden))
        return false;
    cal_figure_set(c, CAL_PEER_ENGINE, hidden.value > 0.5);
    return true;
}
