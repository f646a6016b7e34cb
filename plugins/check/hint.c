// Waits that order nothing: a line is told at the end if each of its waits was for an event after
// which its queue came already. What the host knew at the time does not count, since it may be late
// another time.
#include <stdlib.h>
#include <string.h>

#include "plugins/check/parts.h"

struct check_wait {
    struct check_wait *next;
    const char *file;
    int line;
    bool needed; // once
    struct check_conflict hint;
    char first_queue[CHECK_LABEL_SIZE];
    char second_queue[CHECK_LABEL_SIZE];
};

static struct check_wait *find(const struct check *check, const struct weir_operation *operation)
{
    struct check_wait *wait = check->waits;
    while (wait && (wait->line != operation->line || wait->file != operation->file))
        wait = wait->next;
    return wait;
}

static void describe(struct check_wait *wait, const struct check_queue *queue,
                     const struct check_queue *producer, const struct weir_operation *operation)
{
    const uint64_t sequence = operation->u.wait.event.sequence;
    const bool is_last = producer->actor.recorded == producer->actor.base + sequence;
    strncpy(wait->first_queue, producer->actor.label, CHECK_LABEL_SIZE - 1);
    strncpy(wait->second_queue, queue->actor.label, CHECK_LABEL_SIZE - 1);
    wait->hint = (struct check_conflict){
        .kind = WEIR_CHECK_IMPLIED_WAIT,
        .first = {.operation = WEIR_OPERATION_RECORD,
                  .queue = wait->first_queue,
                  .queue_id = producer->actor.id,
                  .sequence = sequence,
                  .file = is_last ? producer->record_file : NULL,
                  .line = is_last ? producer->record_line : 0,
                  .region_number = WEIR_NO_NUMBER},
        .second = {.operation = WEIR_OPERATION_WAIT,
                   .queue = wait->second_queue,
                   .queue_id = queue->actor.id,
                   .sequence = operation->sequence,
                   .file = operation->file,
                   .line = operation->line,
                   .region_number = WEIR_NO_NUMBER},
    };
}

void check_hint_wait(struct check *check, const struct check_queue *queue,
                     const struct check_queue *producer, const struct weir_operation *operation,
                     bool implied)
{
    struct check_wait *wait = find(check, operation);
    if (wait) {
        wait->needed = wait->needed || !implied;
        return;
    }
    wait = calloc(1, sizeof *wait);
    if (!wait)
        return;
    wait->file = operation->file;
    wait->line = operation->line;
    wait->needed = !implied;
    describe(wait, queue, producer, operation);
    wait->next = check->waits;
    check->waits = wait;
}

void check_hints_finish(struct check *check)
{
    while (check->waits) {
        struct check_wait *wait = check->waits;
        check->waits = wait->next;
        if (!wait->needed)
            (void)check_findings_add(check->findings, &wait->hint);
        free(wait);
    }
}
