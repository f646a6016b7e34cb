// Mode `pair`: everything runs in the order of submission, except that an operation of the first
// line is held back until one of the second line, submitted after it, has run, and no further one is
// pending: in a loop it need not be the next one that races with it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/perturb/perturb.h"

static bool read_line(const char *text, size_t length, struct perturb_line *line)
{
    const char *colon = NULL;
    while (length > 0 && *text == ' ') {
        text++;
        length--;
    }
    while (length > 0 && text[length - 1] == ' ')
        length--;
    for (size_t i = 0; i < length; i++)
        if (text[i] == ':')
            colon = text + i;
    if (!colon || colon == text || (size_t)(colon - text) >= sizeof line->file)
        return false;
    snprintf(line->file, sizeof line->file, "%.*s", (int)(colon - text), text);
    line->line = 0;
    for (const char *at = colon + 1; at < text + length; at++) {
        if (*at < '0' || *at > '9' || line->line > 100000000)
            return false;
        line->line = 10 * line->line + (*at - '0');
    }
    return line->line > 0;
}

bool perturb_pair_read(const char *text, struct perturb_line pair[2])
{
    const char *comma = strchr(text, ',');
    return comma && read_line(text, (size_t)(comma - text), &pair[0]) &&
           read_line(comma + 1, strlen(comma + 1), &pair[1]);
}

// The program's compiler may have seen a longer path than the user writes, and the other way
// round.
static bool is_end_of(const char *end, const char *path)
{
    const size_t length = strlen(end);
    const size_t whole = strlen(path);
    return length <= whole && strcmp(path + whole - length, end) == 0 &&
           (length == whole || path[whole - length - 1] == '/');
}

static bool is_of(const struct perturb_line *line, const struct weir_operation *operation)
{
    return line->line == operation->line && operation->file &&
           (is_end_of(line->file, operation->file) || is_end_of(operation->file, line->file));
}

unsigned perturb_pair_side(const struct perturb *perturb, const struct weir_operation *operation)
{
    if (perturb->mode != PERTURB_PAIR)
        return 0;
    if (is_of(&perturb->pair[0], operation))
        return 1;
    return is_of(&perturb->pair[1], operation) ? 2 : 0;
}

static bool has_second_after(const struct perturb *perturb, uint64_t number)
{
    for (const struct perturb_queue *queue = perturb->queues; queue; queue = queue->next)
        for (const struct perturb_operation *at = queue->first; at; at = at->next)
            if (at->side == 2 && at->number > number)
                return true;
    return false;
}

bool perturb_pair_holds(const struct perturb *perturb, const struct perturb_operation *operation)
{
    return operation->side == 1 && (perturb->ran_second < operation->number ||
                                    has_second_after(perturb, operation->number));
}

static bool is_before(const struct perturb_queue *queue, uint64_t number)
{
    for (const struct perturb_operation *at = queue->first; at && at->number < number;
         at = at->next)
        if (at->side == 1)
            return true;
    return false;
}

void perturb_pair_note(struct perturb *perturb, const struct perturb_operation *operation)
{
    bool reversed = false;
    if (operation->side != 2)
        return;
    if (operation->number > perturb->ran_second)
        perturb->ran_second = operation->number;
    for (const struct perturb_queue *queue = perturb->queues; queue && !reversed;
         queue = queue->next)
        reversed = is_before(queue, operation->number);
    perturb->counts.reversed += reversed;
}
