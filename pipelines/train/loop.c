// The loop over the steps. The host submits at most TRAIN_AHEAD steps before it waits for the first of
// them, so that what is in flight stays small.
#include "pipelines/train/run_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "pipelines/train/augment.h"
#include "pipelines/train/product.h"

// One step: its passes, each forward and backward, the reduction of the gradients, and the update.

// Buckets have the parameters in the order of the backward pass.
static weir_status mark(void *user, size_t index, weir_queue *queue)
{
    const struct train *train = user;
    return weir_buckets_ready(train->buckets, train->parameter_count - 1 - (uint32_t)index, queue);
}

static weir_status backward(struct train *train, bool last)
{
    const bool serial = train->params->serial;
    TRY(weir_buckets_begin(train->buckets, last));
    TRY(weir_train_model_backward(train->model, train->queue, weir_buckets_pass(train->buckets) > 0,
                                  serial ? NULL : mark, train));
    for (uint32_t i = train->parameter_count; serial && i > 0; i--)
        TRY(mark(train, i - 1, train->queue));
    return WEIR_OK;
}

static weir_status do_pass(struct train *train, uint64_t step, uint32_t pass)
{
    struct weir_train_batch batch;
    TRY(train_feed_next(train->feed, &batch));
    TRY(weir_train_model_forward(train->model, train->queue, &batch,
                                 train_curve_place(&train->curve, step), pass > 0));
    // Only the forward pass reads the batch.
    TRY(train_feed_release(train->feed));
    TRY(backward(train, pass + 1 == train->order.passes));
    return weir_buckets_finish(train->buckets, train->queue);
}

// Submits one step.
static weir_status train_step(struct train *train, uint64_t step)
{
    const struct weir_train_rates rates = {.rate = train->params->rate,
                                           .scale = 1 / (float)train->curve.samples,
                                           .step = step + 1};
    for (uint32_t pass = 0; pass < train->order.passes; pass++)
        TRY(do_pass(train, step, pass));
    return weir_train_optimizer_update(train->optimizer, train->queue, 0, train->parameter_count,
                                       &rates);
}

// A batch is loaded as its source makes it: the inputs, then the labels. AUGMENT and ENCDEC load bytes,
// and prepare them, from there into one of two slots.

enum {
    SLOTS = 2
};

struct slot {
    weir_buffer *memory; // inputs, then labels, as the model reads them
    struct weir_event ready;
    struct weir_event freed;
};

struct train_feed {
    struct train_feed_params params;
    size_t image_bytes;    // of a sample, as bytes
    size_t loaded_inputs;  // bytes of a batch before its labels
    size_t slot_inputs;    // the same of a slot
    uint64_t pass_count;   // of all steps
    uint64_t prepared;     // passes
    uint64_t taken;        // passes
    unsigned char *images; // AUGMENT on the host: a batch
    weir_train_augment *augment;
    weir_train_centre *centre; // ENCDEC
    weir_loader *loader;
    weir_queue *ahead;      // that prepares; with `serial` the one that trains
    struct weir_batch held; // of the loader, where nothing is prepared
    weir_buffer *loaded;    // `serial`: on the device
    unsigned char *host;    // and on the host
    struct slot slots[SLOTS];
};

static uint64_t train_position(const struct train_order *order, uint64_t step, uint32_t pass)
{
    return ((step * order->passes + pass) * order->ranks + order->rank) * order->batch;
}

static bool is_augmented(const train_feed *feed)
{
    return feed->params.run->program == WEIR_TRAIN_AUGMENT;
}

// On a queue, and not as it is loaded.
static bool is_prepared(const train_feed *feed)
{
    return feed->augment || feed->params.encoder;
}

// Loading.

static void load_images(const train_feed *feed, uint64_t position, unsigned char *images,
                        uint32_t *labels)
{
    const weir_train_data *data = feed->params.run->data;
    for (uint32_t i = 0; i < feed->params.order.batch; i++) {
        const uint64_t index =
            weir_train_data_shuffled(data, feed->params.order.seed, position + i);
        labels[i] = weir_train_data_bytes(data, index, images + i * feed->image_bytes);
    }
}

static void load(const train_feed *feed, uint64_t pass, unsigned char *memory)
{
    const struct train_feed_params *p = &feed->params;
    const uint64_t position = train_position(&p->order, p->first + pass / p->order.passes,
                                             (uint32_t)(pass % p->order.passes));
    uint32_t *labels = (uint32_t *)(void *)(memory + feed->loaded_inputs);
    if (!is_augmented(feed) && !p->encoder) {
        weir_train_data_fill(p->run->data, p->order.seed, position, p->order.batch,
                             p->run->exact ? WEIR_TRAIN_INTEGERS : WEIR_TRAIN_CENTRED,
                             (float *)(void *)memory, labels);
        return;
    }
    load_images(feed, position, feed->images ? feed->images : memory, labels);
    if (feed->images)
        weir_train_augment_on_host(p->augment, feed->images, (float *)(void *)memory,
                                   p->order.batch, position);
}

static size_t loaded_bytes(const train_feed *feed)
{
    return feed->loaded_inputs + feed->params.order.batch * sizeof(uint32_t);
}

static weir_status load_for_loader(void *user, uint64_t index, void *memory, size_t capacity,
                                   size_t *out_size)
{
    const train_feed *feed = user;
    (void)capacity;
    *out_size = index < feed->pass_count ? loaded_bytes(feed) : 0;
    if (index < feed->pass_count)
        load(feed, index, memory);
    return WEIR_OK;
}

// The next batch as it is loaded, for `queue`.
static weir_status take_loaded(train_feed *feed, weir_queue *queue, uint64_t pass,
                               struct weir_batch *out_batch)
{
    if (feed->loader)
        return weir_loader_next(feed->loader, queue, out_batch);
    load(feed, pass, feed->host);
    *out_batch = (struct weir_batch){.buffer = feed->loaded};
    return weir_upload(queue, feed->loaded, 0, feed->host, loaded_bytes(feed));
}

static weir_status give_loaded(train_feed *feed, weir_queue *queue, struct weir_batch *batch)
{
    return feed->loader ? weir_loader_release(feed->loader, batch, queue) : WEIR_OK;
}

// Preparing.

static weir_status encode(train_feed *feed, const struct slot *slot, weir_buffer *loaded)
{
    const struct weir_train_view to = {slot->memory, 0};
    weir_buffer *numbers;
    TRY(weir_train_centre_submit(feed->centre, feed->ahead, loaded, &numbers));
    return weir_train_model_encode(feed->params.encoder, feed->ahead,
                                   (struct weir_train_view){numbers, 0}, to);
}

static weir_status fill_slot(train_feed *feed, uint64_t pass, const struct slot *slot,
                             weir_buffer *loaded)
{
    const struct train_feed_params *p = &feed->params;
    const uint64_t position = train_position(&p->order, p->first + pass / p->order.passes,
                                             (uint32_t)(pass % p->order.passes));
    TRY(feed->augment ? weir_train_augment_submit(feed->augment, feed->ahead, loaded, slot->memory,
                                                  p->order.batch, position)
                      : encode(feed, slot, loaded));
    return weir_queue_copy(feed->ahead, slot->memory, feed->slot_inputs, loaded,
                           feed->loaded_inputs, p->order.batch * sizeof(uint32_t));
}

static weir_status prepare(train_feed *feed)
{
    const uint64_t pass = feed->prepared++;
    struct slot *slot = &feed->slots[pass % SLOTS];
    struct weir_batch loaded;
    TRY(take_loaded(feed, feed->ahead, pass, &loaded));
    if (slot->freed.queue)
        TRY(weir_queue_wait(feed->ahead, slot->freed));
    TRY(fill_slot(feed, pass, slot, loaded.buffer));
    TRY(give_loaded(feed, feed->ahead, &loaded));
    return weir_queue_record(feed->ahead, &slot->ready);
}

// The next pass is prepared before this one is submitted, so that both are in flight.
static weir_status next_prepared(train_feed *feed, weir_buffer **out_memory)
{
    const struct slot *slot = &feed->slots[feed->taken % SLOTS];
    if (feed->prepared == feed->taken)
        TRY(prepare(feed));
    *out_memory = slot->memory;
    TRY(weir_queue_wait(feed->params.queue, slot->ready));
    if (feed->loader && feed->prepared < feed->pass_count)
        TRY(prepare(feed));
    return WEIR_OK;
}

weir_status train_feed_next(train_feed *feed, struct weir_train_batch *out_batch)
{
    weir_buffer *memory = NULL;
    if (is_prepared(feed)) {
        TRY(next_prepared(feed, &memory));
    } else {
        TRY(take_loaded(feed, feed->params.queue, feed->taken, &feed->held));
        memory = feed->held.buffer;
    }
    const size_t labels = is_prepared(feed) ? feed->slot_inputs : feed->loaded_inputs;
    *out_batch = (struct weir_train_batch){.inputs = {memory, 0}, .labels = {memory, labels}};
    return WEIR_OK;
}

weir_status train_feed_release(train_feed *feed)
{
    struct slot *slot = &feed->slots[feed->taken++ % SLOTS];
    if (is_prepared(feed))
        return weir_queue_record(feed->params.queue, &slot->freed);
    return give_loaded(feed, feed->params.queue, &feed->held);
}

// Creating.

static size_t round_up(size_t size, size_t alignment)
{
    return (size + alignment - 1) / alignment * alignment;
}

static void measure(train_feed *feed, size_t model_inputs)
{
    const struct train_feed_params *p = &feed->params;
    const struct weir_train_shape shape = weir_train_data_shape(p->run->data);
    const weir_device *device = weir_comm_device(p->run->comm);
    const size_t alignment = weir_device_limits(device)->argument_alignment_bytes;
    const size_t batch = p->order.batch;
    feed->image_bytes = (size_t)shape.height * shape.width * shape.channels;
    feed->slot_inputs = round_up(batch * model_inputs * sizeof(float), alignment);
    feed->loaded_inputs = round_up(batch * feed->image_bytes * sizeof(float), alignment);
    if (is_augmented(feed) && p->run->augment_on_host)
        feed->loaded_inputs = feed->slot_inputs;
    else if (is_augmented(feed) || p->encoder)
        feed->loaded_inputs = round_up(batch * feed->image_bytes, alignment);
    feed->pass_count = (p->run->steps - p->first) * p->order.passes;
}

static weir_status create_memory(weir_device *device, size_t size, weir_buffer **out)
{
    return weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .label = "batch", .size = size),
                              out);
}

static weir_status create_slots(train_feed *feed, weir_device *device)
{
    const size_t size = feed->slot_inputs + feed->params.order.batch * sizeof(uint32_t);
    for (int i = 0; i < SLOTS && is_prepared(feed); i++)
        TRY(create_memory(device, size, &feed->slots[i].memory));
    return WEIR_OK;
}

// What loads, and the queue that prepares.
static weir_status create_loading(train_feed *feed, weir_device *device)
{
    feed->ahead = feed->params.queue;
    if (feed->params.run->serial) {
        feed->host = calloc(1, loaded_bytes(feed));
        return feed->host ? create_memory(device, loaded_bytes(feed), &feed->loaded)
                          : weir__pattern_no_memory("batch", "a batch");
    }
    if (is_prepared(feed)) {
        feed->ahead = NULL;
        TRY(weir_queue_create(device, WEIR_PARAMS(weir_queue, .label = "prepare"), &feed->ahead));
    }
    const struct weir_loader_params loader = {.struct_size = sizeof loader,
                                              .device = device,
                                              .label = "batches",
                                              .batch_bytes = loaded_bytes(feed),
                                              .source = load_for_loader,
                                              .user = feed};
    return weir_loader_create(&loader, &feed->loader);
}

static weir_status create_conversion(train_feed *feed, weir_device *device)
{
    if (feed->params.encoder)
        return weir_train_centre_create(device, feed->params.order.batch * feed->image_bytes,
                                        feed->params.run->exact, &feed->centre);
    if (!is_augmented(feed))
        return WEIR_OK;
    if (!feed->params.run->augment_on_host)
        return weir_train_augment_create(device, feed->params.augment, &feed->augment);
    feed->images = malloc(feed->params.order.batch * feed->image_bytes);
    return feed->images ? WEIR_OK : weir__pattern_no_memory("batch", "a batch");
}

weir_status train_feed_create(const struct train_feed_params *params, size_t model_inputs,
                              train_feed **out_feed)
{
    weir_device *device = weir_comm_device(params->run->comm);
    train_feed *feed = calloc(1, sizeof *feed);
    *out_feed = feed;
    if (!feed)
        return weir__pattern_no_memory("batches", "batches");
    feed->params = *params;
    measure(feed, model_inputs);
    TRY(create_conversion(feed, device));
    TRY(create_slots(feed, device));
    return create_loading(feed, device);
}

void train_feed_destroy(train_feed **feed)
{
    train_feed *f = *feed;
    if (!f)
        return;
    // An encoder's native calls that are held would run after the run has freed what they read.
    if (f->ahead && f->ahead != f->params.queue)
        WEIR_IGNORE(weir_queue_sync(f->ahead, WEIR_FOREVER));
    WEIR_IGNORE(weir_loader_destroy(&f->loader));
    if (f->ahead != f->params.queue)
        weir_queue_destroy(&f->ahead);
    for (int i = 0; i < SLOTS; i++)
        weir_buffer_destroy(&f->slots[i].memory);
    weir_buffer_destroy(&f->loaded);
    weir_train_centre_destroy(&f->centre);
    weir_train_augment_destroy(&f->augment);
    free(f->host);
    free(f->images);
    free(f);
    *feed = NULL;
}

static void train_feed_statistics(train_feed *feed, struct weir_loader_statistics *out_statistics)
{
    weir_loader_get_statistics(feed->loader, out_statistics);
}

// The figures that have become known, since step `before`.
static weir_status look(struct train *train, uint64_t before)
{
    const struct train_curve *curve = &train->curve;
    const struct weir_train_run_params *p = train->params;
    for (uint64_t i = before; i < curve->known; i++)
        if (!isfinite(curve->losses[i]))
            return weir__pattern_refuse("train", "train with a lower learning rate",
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
    TRY(train_curve_flush(&train->curve, train->queue, steps));
    TRY(look(train, before));
    if (train->order.rank == 0)
        TRY(train_state_write(train, steps));
    train->checkpoint_ns += weir_clock_now_ns() - began_ns;
    return WEIR_OK;
}

static weir_status submit(struct train *train, uint64_t step)
{
    struct weir_event *end = &train->submitted[step % TRAIN_AHEAD];
    if (end->queue)
        TRY(weir_event_sync(*end, WEIR_FOREVER));
    TRY(train_step(train, step));
    return weir_queue_record(train->queue, end);
}

static weir_status advance(struct train *train, uint64_t step)
{
    const uint64_t known = train->curve.known;
    TRY(submit(train, step));
    TRY(train_curve_step(&train->curve, train->queue, step));
    TRY(look(train, known));
    return save(train, step + 1);
}

// The first step includes what the driver compiles, so the time begins after it.
static weir_status run_steps(struct train *train, struct weir_train_figures *figures)
{
    const uint64_t steps = train->params->steps;
    uint64_t began_ns = 0;
    for (uint64_t step = train->first_step; step < steps; step++) {
        TRY(advance(train, step));
        if (step == train->first_step) {
            TRY(weir_queue_sync(train->queue, WEIR_FOREVER));
            train->checkpoint_ns = 0;
            began_ns = weir_clock_now_ns();
        }
    }
    TRY(weir_queue_sync(train->queue, WEIR_FOREVER));
    if (steps > train->first_step + 1)
        figures->wall_ns = weir_clock_now_ns() - began_ns;
    return WEIR_OK;
}

static weir_status finish(struct train *train, struct weir_train_figures *figures)
{
    const uint64_t known = train->curve.known;
    TRY(train_curve_flush(&train->curve, train->queue, train->params->steps));
    TRY(look(train, known));
    return train_digest(train, figures);
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
        WEIR_IGNORE(weir_comm_abort(train->params->comm, cause->message));
    if (train->queue)
        WEIR_IGNORE(weir_queue_sync(train->queue, WEIR_FOREVER));
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
