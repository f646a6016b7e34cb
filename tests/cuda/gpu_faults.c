// The part of gpu_check about errors: bad input, a process that is killed, and
// kernels that leave their buffers. Faults that destroy the context are provoked in
// separate processes.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "kernels/conformance/conformance.h"
#include "tests/cuda/gpu_check.h"

#define IMAGES 32

// Starts this program again; its output goes to `output`, or to this process's
// standard output.
static pid_t start_program(const char *program, const char *mode, const char *argument, int output)
{
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        if (output >= 0)
            dup2(output, STDOUT_FILENO);
        execl("/proc/self/exe", program, mode, argument, (char *)NULL);
        _exit(127);
    }
    return child;
}

// Messages.

static bool says(const char *part, const char *other)
{
    return strstr(weir_last_error_text(), part) && strstr(weir_last_error_text(), other);
}

// An expected refusal: its status, and two parts of its message.
static void check_refusal(weir_status status, weir_status wanted, const char *part,
                          const char *other, const char *what)
{
    check(status == wanted && says(part, other), "%s: %s", what, weir_last_error_text());
}

static void check_too_much_memory(const struct bench *bench)
{
    weir_buffer *buffer = NULL;
    char asked[64];
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .size =
                                                  weir_device_limits(bench->device)->memory_bytes};
    snprintf(asked, sizeof asked, "%zu bytes was asked for", params.size);
    check_refusal(weir_buffer_create(bench->device, &params, &buffer), WEIR_ERROR_OUT_OF_MEMORY,
                  asked, "are free", "all of the device's memory is refused");
    weir_buffer_destroy(&buffer);
}

static weir_status try_bundle(const struct bench *bench, const struct weir_bundle *bundle)
{
    weir_program *program = NULL;
    const weir_status status =
        weir_program_create(bench->device, WEIR_PARAMS(weir_program, .bundle = bundle), &program);
    weir_program_destroy(&program);
    return status;
}

// The cubins of other generations, the latest one first.
static uint32_t foreign_images(const struct bench *bench, struct weir_image *images)
{
    uint32_t count = 0;
    for (uint32_t i = conformance_kernels.image_count; i-- > 0 && count < IMAGES;) {
        struct weir_bundle alone = conformance_kernels;
        alone.images = &conformance_kernels.images[i];
        alone.image_count = 1;
        if (weir_image_is(alone.images, WEIR_IMAGE_CUBIN) && try_bundle(bench, &alone) < 0)
            images[count++] = *alone.images;
    }
    return count;
}

static void check_foreign_images(const struct bench *bench)
{
    struct weir_image images[IMAGES];
    struct weir_bundle bundle = conformance_kernels;
    bundle.images = images;
    bundle.image_count = foreign_images(bench, images);
    if (bundle.image_count == 0) {
        printf("      every image suits this device\n");
        return;
    }
    check_refusal(try_bundle(bench, &bundle), WEIR_ERROR_UNSUPPORTED, "no image for", "it has",
                  "images of other generations are refused");
    // One that claims to be of this generation, so that the driver has to refuse
    // it.
    const struct weir_device_info *info = weir_device_get_info(bench->device);
    for (uint32_t architecture = 75; architecture < 130; architecture++) {
        char target[16];
        snprintf(target, sizeof target, "sm_%u", (unsigned)architecture);
        images[0].target = target;
        bundle.image_count = 1;
        if (try_bundle(bench, &bundle) < 0 && says("does not take the cubin", info->name)) {
            check(true, "an image under a wrong name is refused: %s", weir_last_error_text());
            return;
        }
    }
    check(false, "an image under a wrong name is refused");
}

static void check_missing_kernel(const struct bench *bench)
{
    struct weir_kernel_signature kernels[2] = {conformance_kernels.kernels[0],
                                               conformance_kernels.kernels[0]};
    struct weir_bundle bundle = conformance_kernels;
    kernels[1].name = "not_there";
    bundle.kernels = kernels;
    bundle.kernel_count = 2;
    check_refusal(try_bundle(bench, &bundle), WEIR_ERROR_NOT_FOUND,
                  "kernel 'not_there' is missing from", bundle.name,
                  "an image that lacks a kernel is refused");
}

void check_messages(const struct bench *bench)
{
    check_too_much_memory(bench);
    check_foreign_images(bench);
    check_missing_kernel(bench);
    check(weir_queue_sync(bench->queue, WEIR_FOREVER) == WEIR_OK,
          "the queue works after all of these");
}

// A process that is killed.

static bool launch_iota_at(const struct bench *bench, weir_queue *queue, size_t offset,
                           uint32_t first)
{
    return weir_queue_launch(queue, bench->iota, weir_dim(1024, 1, 1), weir_dim(1024, 1, 1),
                             weir_out(bench->memory, offset, 4 << 20), first,
                             (uint32_t)1 << 20) == WEIR_OK;
}

static bool launch_iota(const struct bench *bench, weir_queue *queue, uint32_t first)
{
    return launch_iota_at(bench, queue, 0, first);
}

// Both queues always have work, each on its own bytes, until the process is killed.
static int be_busy(void)
{
    struct bench bench;
    struct weir_event events[2];
    if (!start_with(&bench, NULL)) {
        printf("failed: %s\n", weir_last_error_text());
        return 1;
    }
    weir_queue *queues[] = {bench.queue, bench.other};
    for (uint64_t turn = 0;; turn++) {
        weir_queue *queue = queues[turn % 2];
        const size_t at = (size_t)(turn % 2) << 24;
        WEIR_IGNORE(weir_queue_copy(queue, bench.memory, at, bench.pinned, at, (size_t)16 << 20));
        launch_iota_at(&bench, queue, at, 1);
        WEIR_IGNORE(weir_queue_copy(queue, bench.pinned, at, bench.memory, at, (size_t)16 << 20));
        if (weir_queue_record(queue, &events[turn % 2]) != WEIR_OK)
            return 1;
        if (turn == 100) {
            puts("busy");
            fflush(stdout);
        }
        if (turn > 8 && weir_event_sync(events[(turn + 1) % 2], WEIR_FOREVER) != WEIR_OK)
            return 1;
    }
}

static bool is_busy(int input)
{
    char line[512] = "";
    size_t used = 0;
    ssize_t got;
    while (used < sizeof line - 1 && !strchr(line, '\n') &&
           (got = read(input, line + used, sizeof line - 1 - used)) > 0)
        used += (size_t)got;
    if (strcmp(line, "busy\n") != 0)
        printf("      the process that was to be killed says: %s\n", line);
    return strcmp(line, "busy\n") == 0;
}

static bool gives_right_results(void)
{
    static uint32_t result[1 << 20];
    struct bench bench;
    bool good = start_with(&bench, NULL) && launch_iota(&bench, bench.queue, 7) &&
                weir_download(bench.queue, result, bench.memory, 0, sizeof result) == WEIR_OK;
    for (uint32_t i = 0; good && i < sizeof result / sizeof *result; i++)
        good = result[i] == 7 + i;
    if (good)
        finish(&bench);
    return good;
}

void check_killed(const char *program)
{
    int ends[2];
    int status = 0;
    if (pipe(ends) != 0) {
        check(false, "pipe");
        return;
    }
    const pid_t child = start_program(program, "busy", "", ends[1]);
    close(ends[1]);
    const bool busy = is_busy(ends[0]);
    weir_clock_sleep_ns(20000000);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    close(ends[0]);
    check(busy && WIFSIGNALED(status), "a process is killed while its queues are busy");
    check(gives_right_results(), "the next process opens the device, and its kernels are right");
}

// Faults.

static unsigned logged;

static void print_log(void *user, weir_log_level level, const char *source, const char *message)
{
    printf("      log: %s: %s\n", source, message);
    logged += strstr(message, "queue 'faulty'") != NULL;
}

static weir_queue *named_queue(const struct bench *bench, const char *label)
{
    weir_queue *queue = NULL;
    if (weir_queue_create(bench->device, WEIR_PARAMS(weir_queue, .label = label), &queue) !=
        WEIR_OK)
        check(false, "weir_queue_create");
    return queue;
}

// The range is within the buffer; `n` makes the kernel leave it.
static void leave_the_buffer(const struct bench *bench, weir_queue *queue, weir_buffer *small)
{
    launch_iota(bench, queue, 1);                                                    // operation 1
    WEIR_IGNORE(weir_queue_launch(queue, bench->iota, weir_dim((1 << 22) - 1, 1, 1), // operation 2
                                  weir_dim(1024, 1, 1), weir_out(small, 0, 64), 0u, UINT32_MAX));
    WEIR_IGNORE(weir_queue_copy(queue, bench->pinned, 0, bench->memory, 0, 1 << 20)); // operation 3
}

static void check_report(bool attributed)
{
    const char *text = weir_last_error_text();
    if (attributed)
        check(strstr(text, "the fault is in operation 2 of queue 'faulty', a launch of 'iota' at"),
              "the report names the one operation: %s", text);
    else
        check(strstr(text, "not known to have finished: operations 1 to 3 of queue 'faulty', the "
                           "oldest a launch of 'iota' at"),
              "the report names the suspects: %s", text);
}

static void check_afterwards(struct bench *bench, struct weir_event seen)
{
    struct weir_event event;
    weir_buffer *none = NULL;
    const char *part = "a launch of 'iota'";
    check(weir_event_query(seen) == WEIR_OK, "what was seen complete before stays complete");
    check(weir_queue_copy(bench->other, bench->memory, 0, bench->pinned, 0, 64) ==
                  WEIR_ERROR_DEVICE_LOST &&
              says(part, "restart the process"),
          "another queue's copy reports the first cause");
    check(weir_queue_record(bench->queue, &event) == WEIR_ERROR_DEVICE_LOST &&
              says(part, "restart the process"),
          "and its record");
    check(weir_buffer_create(bench->device, WEIR_PARAMS(weir_buffer, .size = 64), &none) ==
                  WEIR_ERROR_DEVICE_LOST &&
              says(part, "restart the process"),
          "and a new buffer");
    check(weir_queue_recover(bench->other) == WEIR_ERROR_DEVICE_LOST, "and recovering");
}

// Whether a process gets a new context after a fault depends on the driver; either
// the context works, or the refusal says what to do.
static void check_second_life(void)
{
    struct bench bench;
    if (start_with(&bench, NULL))
        check(weir_queue_sync(bench.queue, WEIR_FOREVER) == WEIR_OK,
              "the device opens again in the same process, and works");
    else
        check(says("restart the process", "lost the device before"),
              "the driver opens no device after a fault, and that is said: %s",
              weir_last_error_text());
}

static int fault_once(bool attributed)
{
    struct bench bench;
    struct weir_event seen = {0};
    weir_log_set(print_log, NULL, WEIR_LOG_WARNING);
    if (!start_with(&bench, attributed ? "[cuda]\nattribute_faults = 1\n"
                                       : "[cuda]\nattribute_faults = 0\n")) {
        check(false, "opening the CUDA backend and its kernels");
        return 1;
    }
    weir_queue *healthy = named_queue(&bench, "healthy");
    weir_queue *faulty = named_queue(&bench, "faulty");
    weir_buffer *small = buffer_of(&bench, 64, WEIR_PLACE_DEVICE);
    WEIR_IGNORE(weir_queue_copy(healthy, bench.memory, (size_t)8 << 20, bench.pinned, 0, 64));
    WEIR_IGNORE(weir_queue_record(healthy, &seen));
    check(weir_event_sync(seen, WEIR_FOREVER) == WEIR_OK, "a healthy queue works");
    leave_the_buffer(&bench, faulty, small);
    check(weir_queue_sync(faulty, WEIR_FOREVER) == WEIR_ERROR_DEVICE_LOST,
          "a fault is reported, with attribute_faults = %d", attributed);
    check_report(attributed);
    check(logged == 1, "the log has a line for the queue that had work");
    check_afterwards(&bench, seen);
    weir_buffer_destroy(&small);
    weir_queue_destroy(&healthy);
    weir_queue_destroy(&faulty);
    finish(&bench);
    check_second_life();
    return 0;
}

static int fault_in_processes(const char *program)
{
    for (int attributed = 0; attributed <= 1; attributed++) {
        int status = 0;
        const pid_t child = start_program(program, "fault-once", attributed ? "1" : "0", -1);
        waitpid(child, &status, 0);
        check(WIFEXITED(status) && WEXITSTATUS(status) == 0,
              "the process with attribute_faults = %d ends as it should", attributed);
    }
    return 0;
}

static int try_messages(const char *program)
{
    struct bench bench;
    check_killed(program);
    if (!start_with(&bench, NULL)) {
        check(false, "opening the CUDA backend and its kernels");
        return 1;
    }
    check_messages(&bench);
    finish(&bench);
    return 0;
}

int run_mode(const char *program, const char *mode, const char *argument)
{
    if (strcmp(mode, "fault") == 0)
        return fault_in_processes(program);
    if (strcmp(mode, "messages") == 0)
        return try_messages(program);
    if (strcmp(mode, "fault-once") == 0)
        return fault_once(strcmp(argument, "1") == 0);
    if (strcmp(mode, "busy") == 0)
        return be_busy();
    fprintf(stderr, "gpu_check: there is no '%s'; try fault, graphs or messages\n", mode);
    return 2;
}
