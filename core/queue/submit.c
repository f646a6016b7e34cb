// The queue's operations, as users call them. A refused argument returns before the submit
// lock is taken; after that only a number is assigned and the chain is called.
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include <weir/launch.h>
#include <weir/program.h>

#include "base/cold.h"
#include "core/object/buffer.h"
#include "core/object/program.h"
#include "core/queue/host_call.h"
#include "core/queue/operation.h"
#include "core/queue/queue.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/thread.h"

struct launch {
    weir_kernel *kernel; // that of the queue's device
    struct weir_extent grid;
    struct weir_extent block;
    const struct weir_argument *arguments;
    size_t argument_count;
    const char *file;
    int line;
    bool cooperative;
};

// Hints in debug mode. What a kernel touches is not known, so each hint compares numbers that seldom meet by
// chance: the launch's work-items, the elements that its parameters point to, and its counts.

enum told {
    TOLD_ITEMS = 1,
    TOLD_EMPTY = 2,
    TOLD_ELEMENTS = 4,
};

static void tell(const struct launch *launch, enum told what, const char *format, ...)
    WEIR_PRINTF(3, 4);

static void tell(const struct launch *launch, enum told what, const char *format, ...)
{
    char text[384], message[640];
    if (atomic_fetch_or(&launch->kernel->told, what) & what)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(message, sizeof message, "launch of '%.80s': %s (%s:%d)",
             weir__label_or_none(launch->kernel->member.object.label), text,
             launch->file ? launch->file : "?", launch->line);
    weir__log(WEIR_LOG_WARNING, "core", message);
}

static double product(struct weir_extent extent)
{
    return (double)extent.x * extent.y * extent.z;
}

// With as many work-items as the grid has blocks, each has a byte of the largest range; with those of all
// blocks, most have none, and one in `block` would have done. A grid that was rounded up has fewer.
static void hint_items(const struct launch *launch)
{
    const struct weir_extent grid = launch->grid, block = launch->block;
    const double blocks = product(grid), items = product(block);
    size_t most = 0;
    for (size_t i = 0; i < launch->argument_count; i++)
        if (launch->arguments[i].kind == WEIR_PARAMETER_BUFFER && launch->arguments[i].size > most)
            most = launch->arguments[i].size;
    const bool divides = grid.x % block.x == 0 && grid.y % block.y == 0 && grid.z % block.z == 0;
    if (items == 1 || !divides || blocks > (double)most || blocks * items <= 2 * (double)most)
        return;
    tell(launch, TOLD_ITEMS,
         "%.0f blocks of %.0f are %.0f work-items, and its largest range has %zu bytes; a grid "
         "counts "
         "blocks: is it meant in work-items? weir_queue_launch_count() takes their number",
         blocks, items, blocks * items, most);
}

static const struct weir_parameter *parameter_at(const struct launch *launch, size_t index)
{
    const struct weir_kernel_signature *signature = launch->kernel->signature;
    return index < signature->parameter_count ? weir_signature_parameter(signature, (uint32_t)index)
                                              : NULL;
}

// The bytes of what the parameter points to; 0: not known.
static size_t unit_of(const struct weir_parameter *parameter)
{
    static const unsigned char sizes[] = {
        [WEIR_SCALAR_I8] = 1,  [WEIR_SCALAR_U8] = 1,  [WEIR_SCALAR_I16] = 2, [WEIR_SCALAR_U16] = 2,
        [WEIR_SCALAR_I32] = 4, [WEIR_SCALAR_U32] = 4, [WEIR_SCALAR_I64] = 8, [WEIR_SCALAR_U64] = 8,
        [WEIR_SCALAR_F32] = 4, [WEIR_SCALAR_F64] = 8, [WEIR_SCALAR_F16] = 2,
    };
    const size_t element = (size_t)parameter->element;
    const size_t width = parameter->width == 3 ? 4 : parameter->width;
    return element < sizeof sizes ? sizes[element] * width : 0;
}

// Whether a value of the launch is that number: a count of elements.
static bool is_passed(const struct launch *launch, uint64_t number)
{
    for (size_t i = 0; i < launch->argument_count; i++) {
        const struct weir_argument *argument = &launch->arguments[i];
        const bool is_integer =
            argument->scalar >= WEIR_SCALAR_I32 && argument->scalar <= WEIR_SCALAR_U64;
        if (argument->kind == WEIR_PARAMETER_VALUE && !argument->pointer && is_integer &&
            argument->bits == number)
            return true;
    }
    return false;
}

// Whether the range has as many bytes as there are work-items, but for a last block that is not full.
static bool is_of_items(const struct launch *launch, size_t bytes)
{
    const double items = product(launch->block), all = product(launch->grid) * items;
    return bytes > 1 && (double)bytes <= all && (double)bytes > all - items;
}

// Whether no range of larger elements has more bytes.
static bool is_largest(const struct launch *launch, size_t bytes)
{
    for (size_t i = 0; i < launch->argument_count; i++)
        if (launch->arguments[i].kind == WEIR_PARAMETER_BUFFER && launch->arguments[i].size > bytes)
            return false;
    return true;
}

static void hint_elements(const struct launch *launch, size_t index)
{
    const struct weir_argument *argument = &launch->arguments[index];
    const struct weir_parameter *parameter = parameter_at(launch, index);
    const size_t bytes = argument->size, unit = parameter ? unit_of(parameter) : 0;
    char place[WEIR__PLACE_SIZE];
    if (argument->kind != WEIR_PARAMETER_BUFFER || unit < 2 || !argument->buffer ||
        !is_of_items(launch, bytes) || is_passed(launch, bytes / unit))
        return;
    const weir_buffer *buffer = argument->buffer;
    const bool is_part = argument->offset == 0 && buffer->size / unit == bytes;
    if (!is_part && !is_passed(launch, bytes) && !is_largest(launch, bytes))
        return;
    weir__member_created(&buffer->member, place);
    tell(launch, TOLD_ELEMENTS,
         "%zu work-items, and '%.40s' has %zu bytes of '%.40s'%s, which are %zu of its elements; "
         "sizes "
         "count bytes: is this one meant in elements? Multiply it by %zu",
         (size_t)(product(launch->grid) * product(launch->block)), parameter->name, bytes,
         weir__label_or_none(buffer->member.object.label), place, bytes / unit, unit);
}

// A grid of work-items instead of blocks, one without blocks, and ranges that count elements instead of
// bytes.
static void hint_launch(const struct launch *given)
{
    struct launch launch = *given;
    if (launch.block.x == 0 || !launch.kernel || (launch.argument_count && !launch.arguments))
        return; // refused
    if (launch.grid.x == 0) {
        tell(&launch, TOLD_EMPTY,
             "its grid has 0 blocks, so nothing runs; a count divided by the block's size rounds "
             "down: round up, or call weir_queue_launch_count() with the count");
        return;
    }
    launch.grid = weir__operation_extent(launch.grid);
    launch.block = weir__operation_extent(launch.block);
    hint_items(&launch);
    for (size_t i = 0; i < launch.argument_count; i++)
        hint_elements(&launch, i);
}

WEIR_COLD static weir_status refuse(weir_queue *queue, const struct weir_operation *operation)
{
    return weir__tell_refused(weir__completion_refuse(queue), weir__operation_name(operation->kind),
                              operation->file, operation->line);
}

weir_status weir__queue_submit(weir_queue *queue, struct weir_operation *operation)
{
    weir_status status;
    if (weir__queue_is_called_back(queue))
        return weir__queue_refuse_callback(queue, operation->file, operation->line);
    weir__queue_enter(queue);
    if (!weir__is_capturing(queue) || !weir__queue_note(queue, operation, &status))
        status = atomic_load_explicit(&queue->completion.failed, memory_order_acquire) &&
                         !weir__is_always(operation)
                     ? refuse(queue, operation)
                     : weir__queue_submit_locked(queue, operation);
    weir_lock_release(&queue->submit_lock);
    return status;
}

// The queue's capture notes a record. False: it has just ended.
static bool note_record(weir_queue *queue, struct weir_event *out_event, weir_status *out_status)
{
    return atomic_load_explicit(&queue->capture, memory_order_relaxed)
        ->ops->record(queue, out_event, out_status);
}

static struct weir__caller caller_of(const weir_queue *queue, const char *file, int line)
{
    return (struct weir__caller){queue->member.device,
                                 queue->member.object.label,
                                 file,
                                 line,
                                 !weir__is_capturing(queue),
                                 false};
}

weir_status weir_queue_copy_at(weir_queue *queue, weir_buffer *dst, size_t dst_offset,
                               weir_buffer *src, size_t src_offset, size_t size, const char *file,
                               int line)
{
    WEIR_ENTER_AT(file, line, queue, dst, src);
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    struct weir_operation operation;
    const struct weir__caller caller = caller_of(queue, file, line);
    weir_status status =
        weir__operation_copy(&caller, dst, dst_offset, src, src_offset, size, &operation);
    return status < 0 ? status : weir__queue_submit(queue, &operation);
}

weir_status weir_queue_copy_2d_at(weir_queue *queue, struct weir_plane dst, struct weir_plane src,
                                  size_t width, size_t height, const char *file, int line)
{
    WEIR_ENTER_AT(file, line, queue, dst.buffer, src.buffer);
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    struct weir_operation operation;
    const struct weir__caller caller = caller_of(queue, file, line);
    weir_status status = weir__operation_copy_2d(&caller, &dst, &src, width, height, &operation);
    return status < 0 ? status : weir__queue_submit(queue, &operation);
}

weir_status weir_queue_copy_3d_at(weir_queue *queue, struct weir_volume dst, struct weir_volume src,
                                  size_t width, size_t height, size_t depth, const char *file,
                                  int line)
{
    WEIR_ENTER_AT(file, line, queue, dst.buffer, src.buffer);
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    struct weir_operation operation;
    const struct weir__caller caller = caller_of(queue, file, line);
    weir_status status =
        weir__operation_copy_3d(&caller, &dst, &src, width, height, depth, &operation);
    return status < 0 ? status : weir__queue_submit(queue, &operation);
}

weir_status weir_queue_fill_at(weir_queue *queue, weir_buffer *dst, size_t dst_offset, size_t size,
                               const void *pattern, size_t pattern_size, const char *file, int line)
{
    WEIR_ENTER_AT(file, line, queue, dst);
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    WEIR_REQUIRE_AT(file, line, weir_queue_label(queue), pattern);
    struct weir_operation operation;
    const struct weir__caller caller = caller_of(queue, file, line);
    weir_status status =
        weir__operation_fill(&caller, dst, dst_offset, size, pattern, pattern_size, &operation);
    return status < 0 ? status : weir__queue_submit(queue, &operation);
}

weir_status weir_queue_fill_2d_at(weir_queue *queue, struct weir_plane dst, size_t width,
                                  size_t height, const void *pattern, size_t pattern_size,
                                  const char *file, int line)
{
    WEIR_ENTER_AT(file, line, queue, dst.buffer);
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    WEIR_REQUIRE_AT(file, line, weir_queue_label(queue), pattern);
    struct weir_operation operation;
    const struct weir__caller caller = caller_of(queue, file, line);
    weir_status status =
        weir__operation_fill_2d(&caller, &dst, width, height, pattern, pattern_size, &operation);
    return status < 0 ? status : weir__queue_submit(queue, &operation);
}

// In debug mode: what a launch is given.
WEIR_COLD static weir_status look_at_launch(const char *function, const weir_queue *queue,
                                            const struct launch *launch)
{
    const weir_status status = weir__enter_arguments(function, launch->file, launch->line,
                                                     launch->arguments, launch->argument_count);
    if (status < 0)
        return status;
    struct launch there = *launch;
    there.kernel = weir__kernel_on(launch->kernel, queue->member.device);
    hint_launch(&there);
    return WEIR_OK;
}

static weir_status submit_launch(weir_queue *queue, const struct launch *launch);

WEIR_COLD static weir_status submit_widened(weir_queue *queue, const struct launch *launch)
{
    struct weir_argument widened[WEIR__WIDEN_LIMIT];
    struct launch wide = *launch;
    weir__kernel_widen(weir__kernel_on(launch->kernel, queue->member.device), launch->arguments,
                       widened);
    wide.arguments = widened;
    return submit_launch(queue, &wide);
}

static weir_status submit_launch(weir_queue *queue, const struct launch *launch)
{
    struct weir_operation operation;
    struct weir__caller caller = caller_of(queue, launch->file, launch->line);
    caller.cooperative = launch->cooperative;
    const weir_status status =
        weir__operation_launch(&caller, launch->kernel, launch->grid, launch->block,
                               launch->arguments, launch->argument_count, &operation);
    if (status == WEIR_OK)
        return weir__queue_submit(queue, &operation);
    return status < 0 ? status : submit_widened(queue, launch);
}

static inline weir_status look_and_submit(const char *function, weir_queue *queue,
                                          const struct launch *launch)
{
    const weir_status status =
        weir__is_unusual() ? look_at_launch(function, queue, launch) : WEIR_OK;
    return status < 0 ? status : submit_launch(queue, launch);
}

// What the functions of a launch are given, by the names of their parameters.
#define CHECK_LAUNCH()                                            \
    WEIR_ENTER_AT(file, line, queue, kernel);                     \
    WEIR_REQUIRE_AT(file, line, NULL, queue);                     \
    WEIR_REQUIRE_AT(file, line, weir_queue_label(queue), kernel); \
    WEIR_REQUIRE_AT(file, line, weir_queue_label(queue), arguments || argument_count == 0)

weir_status weir_queue_launch_at(weir_queue *queue, weir_kernel *kernel, struct weir_extent grid,
                                 struct weir_extent block, const struct weir_argument *arguments,
                                 size_t argument_count, const char *file, int line)
{
    CHECK_LAUNCH();
    const struct launch launch = {kernel,         grid, block, arguments,
                                  argument_count, file, line,  false};
    return look_and_submit(__func__, queue, &launch);
}

weir_status weir_queue_launch_cooperative_at(weir_queue *queue, weir_kernel *kernel,
                                             struct weir_extent grid, struct weir_extent block,
                                             const struct weir_argument *arguments,
                                             size_t argument_count, const char *file, int line)
{
    CHECK_LAUNCH();
    const struct launch launch = {kernel, grid, block, arguments, argument_count, file, line, true};
    return look_and_submit(__func__, queue, &launch);
}

weir_status weir_queue_launch_count_at(weir_queue *queue, weir_kernel *kernel, size_t count,
                                       const struct weir_argument *arguments, size_t argument_count,
                                       const char *file, int line)
{
    CHECK_LAUNCH();
    const weir_kernel *own = weir__kernel_on(kernel, queue->member.device);
    const uint32_t items = weir__usual_block(own ? own : kernel);
    if (items == 0)
        return weir__fail_at(
            file, line, weir_queue_label(queue), WEIR_ERROR_INVALID,
            "launch it with weir_queue_launch()",
            "weir_queue_launch_count: kernel '%s' requires blocks of more than one "
            "dimension",
            weir__label_or_none(kernel->member.object.label));
    const size_t blocks = count / items + (count % items != 0);
    if (blocks > UINT32_MAX)
        return weir__fail_at(
            file, line, weir_queue_label(queue), WEIR_ERROR_INVALID, "launch it in parts",
            "weir_queue_launch_count: %zu work-items for kernel '%s' are %zu blocks "
            "of %u; a grid has at most %u",
            count, weir__label_or_none(kernel->member.object.label), blocks, items, UINT32_MAX);
    const struct launch launch = {.kernel = kernel,
                                  .grid = weir_dim((uint32_t)blocks, 1, 1),
                                  .block = weir_dim(items, 1, 1),
                                  .arguments = arguments,
                                  .argument_count = argument_count,
                                  .file = file,
                                  .line = line};
    // A count of 0 is on purpose, unlike a grid of 0 blocks.
    return count == 0 ? submit_launch(queue, &launch) : look_and_submit(__func__, queue, &launch);
}

WEIR_COLD static weir_status refuse_global(const weir_queue *queue, const weir_kernel *kernel,
                                           struct weir_extent items, struct weir_extent block,
                                           const char *file, int line)
{
    static const char remedy[] =
        "launch more work-items, and let the kernel compare get_global_id() with the size: "
        "weir_queue_launch_count(), or weir_queue_launch() with a grid that is rounded up";
    const char *label = weir__label_or_none(kernel->member.object.label);
    if (kernel->signature->required_block.x > 0)
        return weir__fail_at(file, line, weir_queue_label(queue), WEIR_ERROR_INVALID, remedy,
                             "weir_queue_launch_global: %u×%u×%u work-items are not whole blocks "
                             "of %u×%u×%u, which kernel '%s' requires",
                             items.x, items.y, items.z, block.x, block.y, block.z, label);
    return weir__fail_at(
        file, line, weir_queue_label(queue), WEIR_ERROR_INVALID, remedy,
        "weir_queue_launch_global: of blocks of kernel '%s' that divide %u×%u×%u "
        "work-items the largest is %u×%u×%u; the device wants %u work-items or more",
        label, items.x, items.y, items.z, block.x, block.y, block.z,
        kernel->info.preferred_block_items);
}

weir_status weir_queue_launch_global_at(weir_queue *queue, weir_kernel *kernel,
                                        struct weir_extent items,
                                        const struct weir_argument *arguments,
                                        size_t argument_count, const char *file, int line)
{
    CHECK_LAUNCH();
    const weir_kernel *there = weir__kernel_on(kernel, queue->member.device);
    const weir_kernel *own = there ? there : kernel;
    struct weir_extent block;
    items = weir__operation_extent(items);
    if (!weir__exact_block(own, items, &block))
        return refuse_global(queue, own, items, block, file, line);
    const struct launch launch = {.kernel = kernel,
                                  .grid = {items.x / block.x, items.y / block.y, items.z / block.z},
                                  .block = block,
                                  .arguments = arguments,
                                  .argument_count = argument_count,
                                  .file = file,
                                  .line = line};
    return look_and_submit(__func__, queue, &launch);
}
#undef CHECK_LAUNCH

weir_status weir_queue_host_call_at(weir_queue *queue, weir_host_function function, void *user,
                                    const char *file, int line)
{
    WEIR_ENTER_AT(file, line, queue);
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    WEIR_REQUIRE_AT(file, line, queue->member.object.label, function);
    struct weir_operation operation;
    weir__operation_begin(&operation, WEIR_OPERATION_HOST_CALL, 0, file, line);
    operation.u.host_call.function = function;
    operation.u.host_call.user = user;
    return weir__queue_submit(queue, &operation);
}

static weir_status look_at_ranges(const struct weir_note_params *params, const char *file, int line)
{
    for (size_t i = 0; weir__is_unusual() && i < params->range_count; i++)
        WEIR_ENTER_OF("weir_queue_note_at", file, line, params->ranges[i].buffer);
    return WEIR_OK;
}

weir_status weir_queue_note_at(weir_queue *queue, const struct weir_note_params *params,
                               uint64_t *out_note, const char *file, int line)
{
    struct weir_note_params known;
    struct weir_operation operation;
    if (out_note)
        *out_note = 0;
    WEIR_ENTER_AT(file, line, queue);
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    WEIR_READ_PARAMS(file, line, weir_note_params, params, &known);
    WEIR_REQUIRE_AT(file, line, weir_queue_label(queue), params->name);
    WEIR_REQUIRE_AT(file, line, weir_queue_label(queue),
                    params->ranges || params->range_count == 0);
    weir_status status = look_at_ranges(params, file, line);
    const struct weir__caller caller = caller_of(queue, file, line);
    if (status == WEIR_OK)
        status = weir__operation_note(&caller, params, &operation);
    if (status < 0)
        return status;
    status = weir__queue_submit(queue, &operation);
    if (status == WEIR_OK && out_note)
        *out_note = operation.sequence;
    return status;
}

weir_status weir_queue_note_times(weir_queue *queue, uint64_t note, uint64_t begin_ns,
                                  uint64_t end_ns)
{
    WEIR_ENTER(queue);
    WEIR_REQUIRE(NULL, queue);
    WEIR_REQUIRE(weir_queue_label(queue), note > 0);
    WEIR_REQUIRE(weir_queue_label(queue), begin_ns <= end_ns);
    if (weir__takes_notes(queue->member.device))
        weir__host_note_ran(WEIR_HOST_NOTE_TIMES, queue, note, begin_ns, end_ns,
                            &(struct weir__host_caller){NULL, 0, 0});
    return WEIR_OK;
}

weir_status weir__queue_record(weir_queue *queue, struct weir_event *out_event, const char *file,
                               int line)
{
    struct weir_operation operation;
    weir__operation_begin(&operation, WEIR_OPERATION_RECORD, 0, file, line);

    if (weir__queue_is_called_back(queue))
        return weir__queue_refuse_callback(queue, file, line);
    weir__queue_enter(queue);
    weir_status status;
    if (weir__is_capturing(queue) && note_record(queue, out_event, &status)) {
        // noted
    } else if (atomic_load_explicit(&queue->completion.failed, memory_order_acquire)) {
        status = refuse(queue, &operation);
    } else {
        status = weir__queue_submit_locked(queue, &operation);
        if (status == WEIR_OK) {
            queue->last_record = operation.sequence;
            *out_event = (struct weir_event){queue->member.object.id, operation.sequence};
        }
    }
    weir_lock_release(&queue->submit_lock);
    return status;
}

weir_status weir_queue_record_at(weir_queue *queue, struct weir_event *out_event, const char *file,
                                 int line)
{
    WEIR_REQUIRE_AT(file, line, NULL, out_event);
    *out_event = (struct weir_event){0};
    WEIR_ENTER_AT(file, line, queue);
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    return weir__queue_record(queue, out_event, file, line);
}

weir_status weir_queue_flush_at(weir_queue *queue, const char *file, int line)
{
    WEIR_ENTER_AT(file, line, queue);
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    weir_status status = queue->first->ops->queue_flush(queue->first, queue);
    if (status < 0)
        weir__error_place(status, queue->member.object.label, file, line);
    return status;
}

static void finish_all(const weir_runtime *runtime)
{
    const struct weir_error saved = *weir_last_error();
    uint32_t index = 0;
    weir_queue *queue;
    while ((queue = weir__registry_next(&index))) {
        if (queue->member.device->runtime == runtime)
            (void)weir__queue_finish(queue);
        weir__registry_unpin(queue);
    }
    weir__error_set(&saved);
}

// Takes the submit lock once the producers of the failed queue's waits have ended; more may come while they
// are waited for.
static void enter_settled(weir_queue *queue)
{
    const atomic_uint_fast32_t *refused = &queue->completion.refused;
    for (;;) {
        const uint_fast32_t known = atomic_load(refused);
        if (weir__refused_any(queue))
            finish_all(queue->member.device->runtime);
        weir_lock_take(&queue->submit_lock);
        if (atomic_load(refused) == known)
            return;
        weir_lock_release(&queue->submit_lock);
    }
}

weir_status weir_queue_recover_at(weir_queue *queue, const char *file, int line)
{
    WEIR_ENTER_AT(file, line, queue);
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    if (weir__in_host_call())
        return weir__fail_at(file, line, queue->member.object.label, WEIR_ERROR_INVALID,
                             "call it on a thread of the program's",
                             "weir_queue_recover waits, and a host call may not wait");
    if (weir__is_capturing(queue))
        return weir__queue_refuse_capturing(queue, file, line,
                                            "weir_queue_recover would mix with it",
                                            "end or cancel the capture first");
    if (!atomic_load(&queue->completion.failed))
        return WEIR_OK;
    weir_status status = weir__completion_refuse(queue);
    if (status == WEIR_ERROR_DEVICE_LOST)
        return status;
    // After the lock was taken later submits see the failure. What a failed queue takes, calls that
    // always run and frees to pools, may still come, and is told of the failure.
    // The wait itself is outside the lock, since a running host call may need it.
    weir_lock_take(&queue->submit_lock);
    weir_lock_release(&queue->submit_lock);
    status = weir__queue_finish(queue);
    if (status < 0)
        return status;
    // Not the last number: what came since may run still.
    const struct weir_event last = {queue->member.object.id,
                                    atomic_load(&queue->completion.completed)};
    enter_settled(queue);
    weir__completion_recover(queue, queue->sequence);
    queue->saw = queue->sequence; // the legacy queue does not get its failure
    weir_lock_release(&queue->submit_lock);
    if (weir__takes_notes(queue->member.device))
        weir__host_note_complete(queue, last, status, &(struct weir__host_caller){file, line, 0});
    return status;
}
