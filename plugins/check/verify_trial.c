// Runs of one launch on copies of its buffers.
#include <stdlib.h>
#include <string.h>

#include "plugins/check/verify.h"

enum {
    GUARD_BYTE = 0x5a,
    FLIP = 0xff,
};

// Operations of the plugin's own come in the place of the launch, which is not handed on yet.
static weir_status submit(const struct check_trial *trial, struct weir_operation *operation)
{
    const struct weir_link *next = trial->link->next;
    operation->flags |= WEIR_OPERATION_INTERNAL;
    operation->sequence = trial->operation->sequence - 1;
    return next->ops->queue_submit(next, trial->queue, operation);
}

static weir_status submit_copy(const struct check_trial *trial, weir_buffer *dst, size_t dst_offset,
                               weir_buffer *src, size_t size)
{
    struct weir_operation copy = {
        .struct_size = sizeof copy,
        .kind = WEIR_OPERATION_COPY,
        .file = trial->operation->file,
        .line = trial->operation->line,
    };
    copy.u.copy.dst = dst;
    copy.u.copy.dst_offset = dst_offset;
    copy.u.copy.src = src;
    copy.u.copy.size = size;
    return submit(trial, &copy);
}

static weir_status submit_launch(const struct check_trial *trial)
{
    struct weir_operation_room room;
    struct weir_operation *launch = weir_operation_copy(&room, trial->operation);
    launch->u.launch.arguments = trial->arguments;
    return submit(trial, launch);
}

static weir_status finish(const struct check_trial *trial)
{
    const struct weir_link *next = trial->link->next;
    return next->ops->queue_finish(next, trial->queue);
}

// The copies.

static weir_status allocate(const struct check_trial *trial, struct check_twin *twin)
{
    weir_device *device = check_queue_of(trial->link, trial->queue)->device;
    void *pointer = NULL;
    weir_status status = check_own_create(trial->link, device, twin->total, WEIR_PLACE_DEVICE,
                                          &twin->device, &pointer);
    if (status == WEIR_OK)
        status = check_own_create(trial->link, device, twin->total, WEIR_PLACE_HOST, &twin->host,
                                  &pointer);
    if (status < 0)
        return status;
    twin->bytes = pointer;
    twin->truth = malloc(twin->total);
    twin->initial = malloc(twin->total);
    twin->first = malloc(twin->total);
    twin->declared = calloc(1, twin->total);
    if (!twin->truth || !twin->initial || !twin->first || !twin->declared)
        return weir_host_no_memory(trial->link->host, "the copy of a buffer");
    memset(twin->truth, GUARD_BYTE, twin->total);
    return WEIR_OK;
}

static struct check_twin *find_twin(const struct check_trial *trial, const weir_buffer *original)
{
    struct check_twin *twin = trial->twins;
    while (twin && twin->original != original)
        twin = twin->next;
    return twin;
}

static weir_status add_twin(struct check_trial *trial, weir_buffer *original)
{
    struct check_twin *twin = calloc(1, sizeof *twin);
    if (!twin)
        return weir_host_no_memory(trial->link->host, "the copy of a buffer");
    twin->original = original;
    twin->size = check_buffer_of(trial->link, original)->size;
    twin->total = twin->size + 2 * (size_t)CHECK_GUARD_BYTES;
    twin->next = trial->twins;
    trial->twins = twin;
    trial->total += twin->total;
    return allocate(trial, twin);
}

static weir_status replace(struct check_trial *trial, struct weir_argument *argument)
{
    if (argument->kind != WEIR_PARAMETER_BUFFER)
        return WEIR_OK;
    struct check_twin *twin = find_twin(trial, argument->buffer);
    if (!twin) {
        weir_status status = add_twin(trial, argument->buffer);
        if (status < 0)
            return status;
        twin = trial->twins;
    }
    argument->buffer = twin->device;
    argument->offset += CHECK_GUARD_BYTES;
    for (size_t i = 0; i < argument->size; i++)
        twin->declared[argument->offset + i] |= (unsigned char)argument->access;
    return WEIR_OK;
}

static weir_status fetch_truth(struct check_trial *trial)
{
    weir_status status = WEIR_OK;
    for (struct check_twin *twin = trial->twins; twin && status >= 0; twin = twin->next)
        status = submit_copy(trial, twin->host, CHECK_GUARD_BYTES, twin->original, twin->size);
    const weir_status finished = finish(trial);
    if (status < 0 || finished < 0)
        return status < 0 ? status : finished;
    for (struct check_twin *twin = trial->twins; twin; twin = twin->next)
        memcpy(twin->truth + CHECK_GUARD_BYTES, twin->bytes + CHECK_GUARD_BYTES, twin->size);
    return WEIR_OK;
}

weir_status check_trial_begin(struct check_trial *trial, const struct weir_link *link,
                              weir_queue *queue, const struct weir_operation *operation)
{
    const size_t count = operation->u.launch.argument_count;
    *trial = (struct check_trial){.link = link, .queue = queue, .operation = operation};
    trial->arguments = malloc(count * sizeof *trial->arguments);
    if (!trial->arguments)
        return weir_host_no_memory(link->host, "the arguments of a launch");
    memcpy(trial->arguments, operation->u.launch.arguments, count * sizeof *trial->arguments);
    for (size_t i = 0; i < count; i++) {
        weir_status status = replace(trial, &trial->arguments[i]);
        if (status < 0)
            return status;
    }
    return fetch_truth(trial);
}

void check_trial_end(struct check_trial *trial)
{
    while (trial->twins) {
        struct check_twin *twin = trial->twins;
        trial->twins = twin->next;
        check_own_destroy(trial->link, &twin->device);
        check_own_destroy(trial->link, &twin->host);
        free(twin->truth);
        free(twin->initial);
        free(twin->first);
        free(twin->declared);
        free(twin);
    }
    free(trial->arguments);
}

// Runs.

static void fill(struct check_twin *twin, size_t flipped)
{
    memcpy(twin->initial, twin->truth, twin->total);
    for (size_t i = 0; i < twin->total && i < flipped; i++)
        if (!(twin->declared[i] & CHECK_DECLARED_READ))
            twin->initial[i] ^= FLIP;
    memcpy(twin->bytes, twin->initial, twin->total);
}

static weir_status submit_all(const struct check_trial *trial)
{
    const struct check_twin *twin;
    weir_status status = WEIR_OK;
    for (twin = trial->twins; twin && status >= 0; twin = twin->next)
        status = submit_copy(trial, twin->device, 0, twin->host, twin->total);
    if (status >= 0)
        status = submit_launch(trial);
    for (twin = trial->twins; twin && status >= 0; twin = twin->next)
        status = submit_copy(trial, twin->host, 0, twin->device, twin->total);
    return status;
}

weir_status check_trial_run(struct check_trial *trial, size_t flipped)
{
    size_t before = 0;
    for (struct check_twin *twin = trial->twins; twin; twin = twin->next) {
        fill(twin, flipped > before ? flipped - before : 0);
        before += twin->total;
    }
    const weir_status status = submit_all(trial);
    const weir_status finished = finish(trial);
    return status < 0 ? status : finished;
}

void check_trial_keep(struct check_trial *trial)
{
    for (struct check_twin *twin = trial->twins; twin; twin = twin->next)
        memcpy(twin->first, twin->bytes, twin->total);
}

// Results.

static bool is_other(const struct check_twin *twin, size_t i)
{
    if (!(twin->declared[i] & CHECK_DECLARED_WRITTEN) || twin->bytes[i] == twin->first[i])
        return false;
    return twin->bytes[i] != twin->initial[i] || twin->first[i] != twin->truth[i];
}

bool check_trial_differs(const struct check_trial *trial)
{
    for (const struct check_twin *twin = trial->twins; twin; twin = twin->next)
        for (size_t i = 0; i < twin->total; i++)
            if (is_other(twin, i))
                return true;
    return false;
}

void check_twin_find_strays(struct check_twin *twin)
{
    struct check_span span = twin->strays;
    for (size_t i = 0; i < twin->total; i++) {
        if (twin->bytes[i] == twin->initial[i] || twin->declared[i] & CHECK_DECLARED_WRITTEN)
            continue;
        const bool none = span.begin == span.end;
        span.begin = none || i < span.begin ? i : span.begin;
        span.end = none || i >= span.end ? i + 1 : span.end;
    }
    twin->strays = span;
}
