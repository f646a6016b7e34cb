// The part of gpu_check about kernels that leave their buffers, which destroys the context: each in a process of
// its own.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cuda/gpu_check.h"

static bool says(const char *part, const char *other)
{
    return strstr(weir_last_error_text(), part) && strstr(weir_last_error_text(), other);
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
    WEIR_IGNORE(weir_queue_launch(queue, bench->iota, weir_dim(1024, 1, 1), // operation 1
                                  weir_dim(1024, 1, 1), weir_out(bench->memory, 0, 4 << 20), 1u,
                                  1u << 20));
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

int run_faults(const char *program, const char *mode, const char *argument)
{
    if (strcmp(mode, "fault-once") == 0)
        return fault_once(strcmp(argument, "1") == 0) || check_failures;
    if (strcmp(mode, "fault") != 0) {
        fprintf(stderr, "gpu_check: there is no '%s'; try fault\n", mode);
        return 2;
    }
    for (int attributed = 0; attributed <= 1; attributed++) {
        int status = 0;
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0) {
            execl("/proc/self/exe", program, "fault-once", attributed ? "1" : "0", (char *)NULL);
            _exit(127);
        }
        waitpid(child, &status, 0);
        check(WIFEXITED(status) && WEXITSTATUS(status) == 0,
              "the process with attribute_faults = %d ends as it should", attributed);
    }
    return check_failures != 0;
}
