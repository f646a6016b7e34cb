// A batch is loaded as its source makes it: the inputs, then the labels. AUGMENT and ENCDEC load bytes,
// and prepare them, from there into one of two slots.
#include <stdlib.h>
#include <string.h>

#include "pipelines/train/centre.h"
#include "pipelines/train/fail.h"
#include "pipelines/train/run_parts.h"

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

uint64_t train_position(const struct train_order *order, uint64_t step, uint32_t pass)
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
    const weir_status status =
        weir_train_centre_submit(feed->centre, feed->ahead, loaded, &numbers);
    if (status != WEIR_OK)
        return status;
    return weir_train_model_encode(feed->params.encoder, feed->ahead,
                                   (struct weir_train_view){numbers, 0}, to);
}

static weir_status fill_slot(train_feed *feed, uint64_t pass, const struct slot *slot,
                             weir_buffer *loaded)
{
    const struct train_feed_params *p = &feed->params;
    const uint64_t position = train_position(&p->order, p->first + pass / p->order.passes,
                                             (uint32_t)(pass % p->order.passes));
    const weir_status status =
        feed->augment ? weir_train_augment_submit(feed->augment, feed->ahead, loaded, slot->memory,
                                                  p->order.batch, position)
                      : encode(feed, slot, loaded);
    if (status != WEIR_OK)
        return status;
    return weir_queue_copy(feed->ahead, slot->memory, feed->slot_inputs, loaded,
                           feed->loaded_inputs, p->order.batch * sizeof(uint32_t));
}

static weir_status prepare(train_feed *feed)
{
    const uint64_t pass = feed->prepared++;
    struct slot *slot = &feed->slots[pass % SLOTS];
    struct weir_batch loaded;
    weir_status status = take_loaded(feed, feed->ahead, pass, &loaded);
    if (status == WEIR_OK && slot->freed.queue)
        status = weir_queue_wait(feed->ahead, slot->freed);
    if (status == WEIR_OK)
        status = fill_slot(feed, pass, slot, loaded.buffer);
    if (status == WEIR_OK)
        status = give_loaded(feed, feed->ahead, &loaded);
    return status == WEIR_OK ? weir_queue_record(feed->ahead, &slot->ready) : status;
}

// The next pass is prepared before this one is submitted, so that both are in flight.
static weir_status next_prepared(train_feed *feed, weir_buffer **out_memory)
{
    const struct slot *slot = &feed->slots[feed->taken % SLOTS];
    weir_status status = feed->prepared == feed->taken ? prepare(feed) : WEIR_OK;
    *out_memory = slot->memory;
    if (status == WEIR_OK)
        status = weir_queue_wait(feed->params.queue, slot->ready);
    if (status == WEIR_OK && feed->loader && feed->prepared < feed->pass_count)
        status = prepare(feed);
    return status;
}

weir_status train_feed_next(train_feed *feed, struct weir_train_batch *out_batch)
{
    weir_buffer *memory = NULL;
    weir_status status;
    if (is_prepared(feed)) {
        status = next_prepared(feed, &memory);
    } else {
        status = take_loaded(feed, feed->params.queue, feed->taken, &feed->held);
        memory = feed->held.buffer;
    }
    const size_t labels = is_prepared(feed) ? feed->slot_inputs : feed->loaded_inputs;
    *out_batch = (struct weir_train_batch){.inputs = {memory, 0}, .labels = {memory, labels}};
    return status;
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
    weir_status status = WEIR_OK;
    for (int i = 0; i < SLOTS && status == WEIR_OK && is_prepared(feed); i++)
        status = create_memory(device, size, &feed->slots[i].memory);
    return status;
}

// What loads, and the queue that prepares.
static weir_status create_loading(train_feed *feed, weir_device *device)
{
    feed->ahead = feed->params.queue;
    if (feed->params.run->serial) {
        feed->host = calloc(1, loaded_bytes(feed));
        return feed->host ? create_memory(device, loaded_bytes(feed), &feed->loaded)
                          : train_fail_memory("batch");
    }
    if (is_prepared(feed)) {
        feed->ahead = NULL;
        const weir_status status =
            weir_queue_create(device, WEIR_PARAMS(weir_queue, .label = "prepare"), &feed->ahead);
        if (status != WEIR_OK)
            return status;
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
    return feed->images ? WEIR_OK : train_fail_memory("batch");
}

weir_status train_feed_create(const struct train_feed_params *params, size_t model_inputs,
                              train_feed **out_feed)
{
    weir_device *device = weir_comm_device(params->run->comm);
    train_feed *feed = calloc(1, sizeof *feed);
    *out_feed = feed;
    if (!feed)
        return train_fail_memory("batches");
    feed->params = *params;
    measure(feed, model_inputs);
    weir_status status = create_conversion(feed, device);
    if (status == WEIR_OK)
        status = create_slots(feed, device);
    return status == WEIR_OK ? create_loading(feed, device) : status;
}

void train_feed_destroy(train_feed **feed)
{
    train_feed *f = *feed;
    if (!f)
        return;
    // An encoder's native calls that are held would run after the run has freed what they read.
    if (f->ahead && f->ahead != f->params.queue)
        (void)weir_queue_sync(f->ahead, WEIR_FOREVER);
    weir_loader_destroy(&f->loader);
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

void train_feed_statistics(train_feed *feed, struct weir_loader_statistics *out_statistics)
{
    weir_loader_get_statistics(feed->loader, out_statistics);
}
