// The loop over the steps. The host submits at most TRAIN_AHEAD steps before it waits for the first of
// them, so that what is in flight stays small.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "pipelines/train/fail.h"
#include "pipelines/train/run_parts.h"

// The figures that have become known, since step `before`.
static weir_status look(struct train *train, uint64_t before)
{
    const struct train_curve *curve = &train->curve;
    const struct weir_train_run_params *p = train->params;
    for (uint64_t i = before; i < curve->known; i++)
        if (!isfinite(curve->losses[i]))
            return weir__pattern_fail("train", WEIR_ERROR_INVALID,
                                      "train with a lower learning rate",
                                      "the loss of step %" PRIu64 " is %g", i + 1,
                                      (double)curve->losses[i]);
    if (curve->known > before && p->progress && train->order.rank == 0)
        p->progress(p->user, curve->known, curve->losses[curve->known - 1]);
    return WEIR_OK;
}

// The checkpoint after `steps` steps, if it is due.
static weir_status save(struct train *train, uint64_t steps)
{
    const struct weir_train_run_params *p = train->params;
    if (!p->checkpoint ||
        (steps != p->steps && (p->checkpoint_every == 0 || steps % p->checkpoint_every != 0)))
        return WEIR_OK;
    const uint64_t began_ns = weir_clock_now_ns(), before = train->curve.known;
    weir_status status = train_curve_flush(&train->curve, train->queue, steps);
    if (status == WEIR_OK)
        status = look(train, before);
    if (status == WEIR_OK && train->order.rank == 0)
        status = train_state_write(train, steps);
    train->checkpoint_ns += weir_clock_now_ns() - began_ns;
    return status;
}

static weir_status submit(struct train *train, uint64_t step)
{
    struct weir_event *end = &train->submitted[step % TRAIN_AHEAD];
    weir_status status = end->queue ? weir_event_sync(*end, WEIR_FOREVER) : WEIR_OK;
    if (status == WEIR_OK)
        status = train_step(train, step);
    return status == WEIR_OK ? weir_queue_record(train->queue, end) : status;
}

static weir_status advance(struct train *train, uint64_t step)
{
    const uint64_t known = train->curve.known;
    weir_status status = submit(train, step);
    if (status == WEIR_OK)
        status = train_curve_step(&train->curve, train->queue, step);
    if (status == WEIR_OK)
        status = look(train, known);
    return status == WEIR_OK ? save(train, step + 1) : status;
}

// The first step includes what the driver compiles, so the time begins after it.
static weir_status run_steps(struct train *train, struct weir_train_figures *figures)
{
    const uint64_t steps = train->params->steps;
    uint64_t began_ns = 0;
    weir_status status = WEIR_OK;
    for (uint64_t step = train->first_step; step < steps && status == WEIR_OK; step++) {
        status = advance(train, step);
        if (step == train->first_step && status == WEIR_OK) {
            status = weir_queue_sync(train->queue, WEIR_FOREVER);
            train->checkpoint_ns = 0;
            began_ns = weir_clock_now_ns();
        }
    }
    if (status == WEIR_OK)
        status = weir_queue_sync(train->queue, WEIR_FOREVER);
    if (steps > train->first_step + 1)
        figures->wall_ns = weir_clock_now_ns() - began_ns;
    return status;
}

static weir_status finish(struct train *train, struct weir_train_figures *figures)
{
    const uint64_t known = train->curve.known;
    weir_status status = train_curve_flush(&train->curve, train->queue, train->params->steps);
    if (status == WEIR_OK)
        status = look(train, known);
    return status == WEIR_OK ? train_digest(train, figures) : status;
}

static void take_figures(struct train *train, struct weir_train_figures *figures)
{
    const double encoder = train->encoder ? weir_train_model_flop(train->encoder, false) : 0;
    figures->first_step = train->first_step;
    figures->steps = train->params->steps;
    figures->samples = train->curve.samples;
    figures->losses = train->curve.losses;
    figures->right = train->curve.right;
    figures->flop = train->order.passes * (weir_train_model_flop(train->model, true) + encoder);
    figures->checkpoint_ns = train->checkpoint_ns;
    weir_buckets_get_plan(train->buckets, &figures->plan);
    weir_buckets_get_statistics(train->buckets, &figures->buckets);
    train_feed_statistics(train->feed, &figures->loader);
    train->curve.losses = train->curve.right = NULL;
}

static weir_status run(struct train *train, struct weir_train_figures *figures)
{
    weir_status status = train_state_begin(train);
    if (status != WEIR_OK)
        return status;
    const struct train_feed_params feed = {
        .run = train->params,
        .order = train->order,
        .queue = train->queue,
        .first = train->first_step,
        .encoder = train->encoder,
        .augment = &train->augment,
    };
    status =
        train_feed_create(&feed,
                          weir_train_model_inputs(train->encoder ? train->encoder : train->model),
                          &train->feed);
    if (status == WEIR_OK)
        status = run_steps(train, figures);
    return status == WEIR_OK ? finish(train, figures) : status;
}

// The other ranks are told. Work under way is waited for, since what it uses is destroyed next.
static void give_up(struct train *train, const struct weir_error *cause)
{
    if (train->params->comm)
        weir_comm_abort(train->params->comm, cause->message);
    if (train->queue)
        weir_queue_sync(train->queue, WEIR_FOREVER);
}

weir_status weir_train_run(const struct weir_train_run_params *params,
                           struct weir_train_figures *out_figures)
{
    struct weir_train_run_params known;
    struct train train = {.params = &known};
    *out_figures = (struct weir_train_figures){0};
    weir_status status = weir__pattern_params("weir_train_run", "struct weir_train_run_params",
                                              params, &known, sizeof known);
    if (status != WEIR_OK)
        return status;
    status = train_create(&train, &known);
    if (status == WEIR_OK)
        status = run(&train, out_figures);
    const struct weir_error cause = *weir_last_error();
    if (status == WEIR_OK)
        take_figures(&train, out_figures);
    else
        give_up(&train, &cause);
    train_destroy(&train);
    return status == WEIR_OK ? WEIR_OK : weir_error_set(&cause);
}

void weir_train_figures_finish(struct weir_train_figures *figures)
{
    free(figures->losses);
    free(figures->right);
    *figures = (struct weir_train_figures){0};
}
