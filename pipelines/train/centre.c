#include "pipelines/train/centre.h"

#include <stdlib.h>

#include "kernels/augment/augment.h"
#include "pipelines/train/fail.h"

struct weir_train_centre {
    size_t count;
    bool whole;
    weir_program *program;
    weir_kernel *kernel;
    weir_buffer *numbers;
};

weir_status weir_train_centre_create(weir_device *device, size_t count, bool whole,
                                     weir_train_centre **out_centre)
{
    const struct weir_program_params program = {.struct_size = sizeof program,
                                                .bundle = &augment_kernels};
    weir_train_centre *centre = calloc(1, sizeof *centre);
    *out_centre = NULL;
    if (!centre)
        return train_fail_memory("batches");
    centre->count = count;
    centre->whole = whole;
    weir_status status = weir_program_create(device, &program, &centre->program);
    if (status == WEIR_OK)
        status = weir_kernel_create(centre->program, "centre", &centre->kernel);
    if (status == WEIR_OK)
        status = weir_buffer_create(device,
                                    WEIR_PARAMS(weir_buffer, .label = "numbers",
                                                .size = count * sizeof(float)),
                                    &centre->numbers);
    if (status == WEIR_OK)
        *out_centre = centre;
    else
        weir_train_centre_destroy(&centre);
    return status;
}

void weir_train_centre_destroy(weir_train_centre **centre)
{
    if (!centre || !*centre)
        return;
    weir_buffer_destroy(&(*centre)->numbers);
    weir_kernel_destroy(&(*centre)->kernel);
    weir_program_destroy(&(*centre)->program);
    free(*centre);
    *centre = NULL;
}

weir_status weir_train_centre_submit(weir_train_centre *centre, weir_queue *queue,
                                     weir_buffer *images, weir_buffer **out_numbers)
{
    *out_numbers = centre->numbers;
    return weir_queue_launch_count(queue, centre->kernel, centre->count,
                                   weir_in(images, 0, centre->count),
                                   weir_whole_out(centre->numbers), (uint64_t)centre->count,
                                   (uint32_t)centre->whole);
}
