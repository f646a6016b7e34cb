// The words of findings. A sentence begins with the operation whose line lacks something.
#include <inttypes.h>
#include <string.h>

#include "plugins/check/finding.h"

const char *check_operation_name(uint32_t operation)
{
    static const char *const names[] = {
        [0] = "host access",
        [WEIR_OPERATION_COPY] = "copy",
        [WEIR_OPERATION_COPY_2D] = "2-D copy",
        [WEIR_OPERATION_FILL] = "fill",
        [WEIR_OPERATION_LAUNCH] = "launch",
        [WEIR_OPERATION_HOST_CALL] = "host call",
        [WEIR_OPERATION_RECORD] = "record",
        [WEIR_OPERATION_WAIT] = "wait",
        [WEIR_OPERATION_GRAPH] = "graph",
        [WEIR_OPERATION_NATIVE] = "native call",
        [WEIR_OPERATION_POOL_ALLOCATE] = "pool allocation",
        [WEIR_OPERATION_POOL_FREE] = "pool free",
        [WEIR_OPERATION_FILL_2D] = "2-D fill",
        [WEIR_OPERATION_COPY_3D] = "3-D copy",
        [WEIR_OPERATION_COLLECTIVE] = "collective",
        [WEIR_OPERATION_NOTE] = "note",
    };
    return operation < sizeof names / sizeof *names ? names[operation] : "operation";
}

static bool is_host(const struct weir_check_use *use)
{
    return use->queue_id == 0;
}

static bool is_free(const struct weir_check_use *use)
{
    return strcmp(use->operation, check_operation_name(WEIR_OPERATION_POOL_FREE)) == 0;
}

// Work that Weir did not submit goes by its own name.
static bool is_note(const struct weir_check_use *use)
{
    return strcmp(use->operation, check_operation_name(WEIR_OPERATION_NOTE)) == 0;
}

// Parts of sentences.

static void add_place(struct weir_long_text *text, const struct weir_check_use *use)
{
    if (use->file[0] && use->line)
        weir_long_text_add(text, "%s:%d", use->file, use->line);
    else if (use->file[0])
        weir_long_text_add(text, "%s", use->file);
    else
        weir_long_text_add(text, "a line that is not known");
}

static void add_at(struct weir_long_text *text, const char *words, const struct weir_check_use *use)
{
    weir_long_text_add(text, "%s", words);
    add_place(text, use);
}

// Queues with the same label have their numbers beside it.
static void add_queue(struct weir_long_text *text, const struct weir_check_finding *finding,
                      const struct weir_check_use *use)
{
    const struct weir_check_use *first = &finding->first;
    const struct weir_check_use *second = &finding->second;
    const bool alike =
        first->queue_id != second->queue_id && strcmp(first->queue, second->queue) == 0;
    if (use->queue[0])
        weir_long_text_add(text, "'%s'", use->queue);
    if (alike || !use->queue[0])
        weir_long_text_add(text, "%squeue %" PRIu64 "%s", use->queue[0] ? " (" : "", use->queue_id,
                           use->queue[0] ? ")" : "");
}

static void add_use(struct weir_long_text *text, const struct weir_check_finding *finding,
                    const struct weir_check_use *use)
{
    if (is_host(use)) {
        weir_long_text_add(text, "the host at ");
    } else {
        if (is_note(use))
            weir_long_text_add(text, "'%s'", use->kernel);
        else
            weir_long_text_add(text, "the %s", use->operation);
        if (use->kernel[0] && !is_note(use))
            weir_long_text_add(text, " of '%s'", use->kernel);
        weir_long_text_add(text, " on ");
        add_queue(text, finding, use);
        weir_long_text_add(text, " at ");
    }
    add_place(text, use);
    if (use->region[0])
        weir_long_text_add(text, " in region '%s'", use->region);
    if (use->region[0] && use->region_number != UINT64_MAX)
        weir_long_text_add(text, " %" PRIu64, use->region_number);
}

static const char *infinitive(weir_access access)
{
    if (access == WEIR_ACCESS_READ)
        return "read";
    return access == WEIR_ACCESS_WRITE ? "write" : "read and write";
}

static const char *verb(const struct weir_check_use *use)
{
    static const char *const certain[] = {"reads", "writes", "reads and writes"};
    static const char *const assumed[] = {"may read", "may write", "may read and write"};
    const size_t index = use->access == WEIR_ACCESS_READ    ? 0
                         : use->access == WEIR_ACCESS_WRITE ? 1
                                                            : 2;
    return use->assumed ? assumed[index] : certain[index];
}

// Why a sentence says "may".
static void add_assumption(struct weir_long_text *text, const struct weir_check_finding *finding)
{
    const struct weir_check_use *first = &finding->first;
    const struct weir_check_use *second = &finding->second;
    if (first->assumed && second->assumed && strcmp(first->kernel, second->kernel) != 0)
        weir_long_text_add(text, "; which bytes '%s' and '%s' use is assumed", first->kernel,
                           second->kernel);
    else if (first->assumed || second->assumed)
        weir_long_text_add(text, "; which bytes '%s' uses is assumed",
                           second->assumed ? second->kernel : first->kernel);
}

// "bytes 0 to 4095 of buffer 'image'".
static void add_bytes(struct weir_long_text *text, const struct weir_check_finding *finding)
{
    if (finding->size == 1)
        weir_long_text_add(text, "byte %zu of ", finding->offset);
    else if (finding->size > 1)
        weir_long_text_add(text, "bytes %zu to %zu of ", finding->offset,
                           finding->offset + finding->size - 1);
    if (finding->buffer[0])
        weir_long_text_add(text, "buffer '%s'", finding->buffer);
    else
        weir_long_text_add(text, "buffer %" PRIu64, finding->buffer_id);
}

// Sentences.

// "… reads bytes 0 to 4095 of buffer 'image', which … "
static void say_pair(struct weir_long_text *text, const struct weir_check_finding *finding,
                     const char *does, const char *to)
{
    add_use(text, finding, &finding->second);
    weir_long_text_add(text, " %s ", does);
    add_bytes(text, finding);
    weir_long_text_add(text, "%s, which ", to);
    add_use(text, finding, &finding->first);
}

static void say_race(struct weir_long_text *text, const struct weir_check_finding *finding)
{
    say_pair(text, finding, verb(&finding->second), "");
    weir_long_text_add(text, " %s, and nothing orders the two", verb(&finding->first));
}

static void say_host(struct weir_long_text *text, const struct weir_check_finding *finding)
{
    say_pair(text, finding, verb(&finding->second), "");
    weir_long_text_add(text, " may still %s", infinitive(finding->first.access));
}

static void say_open(struct weir_long_text *text, const struct weir_check_finding *finding)
{
    say_pair(text, finding, verb(&finding->second), "");
    weir_long_text_add(text, " %s until weir_host_end()", verb(&finding->first));
}

static void say_after_free(struct weir_long_text *text, const struct weir_check_finding *finding)
{
    if (is_free(&finding->first)) {
        say_pair(text, finding, verb(&finding->second), "");
        weir_long_text_add(text, " has returned to its pool");
        return;
    }
    say_pair(text, finding, "returns", " to its pool");
    weir_long_text_add(text, " may still %s", infinitive(finding->first.access));
}

static void say_unwritten(struct weir_long_text *text, const struct weir_check_finding *finding)
{
    add_use(text, finding, &finding->second);
    weir_long_text_add(text, " reads ");
    add_bytes(text, finding);
    weir_long_text_add(text, ", which nothing has written");
}

static void say_outside(struct weir_long_text *text, const struct weir_check_finding *finding)
{
    const struct weir_check_use *use = &finding->second;
    const char *participle = use->access == WEIR_ACCESS_READ ? "read" : "written";
    add_use(text, finding, use);
    weir_long_text_add(text, " %s %s", verb(use), finding->size ? "" : "in front of ");
    add_bytes(text, finding);
    if (use->size)
        weir_long_text_add(text, ", and declares only bytes %zu to %zu to be %s", use->offset,
                           use->offset + use->size - 1, participle);
    else
        weir_long_text_add(text, ", and declares none of it to be %s", participle);
}

static void say_wait(struct weir_long_text *text, const struct weir_check_finding *finding)
{
    add_use(text, finding, &finding->second);
    weir_long_text_add(text, " names ");
    add_use(text, finding, &finding->first);
    weir_long_text_add(text, finding->kind == WEIR_CHECK_IMPLIED_WAIT
                                 ? ", after which its queue comes already"
                                 : ", and no use of memory needs that");
}

static void say_false_sharing(struct weir_long_text *text, const struct weir_check_finding *finding)
{
    add_use(text, finding, &finding->second);
    weir_long_text_add(text, " waits for ");
    add_use(text, finding, &finding->first);
    weir_long_text_add(text, ", and they use different bytes of ");
    add_bytes(text, finding);
}

static void say_needless_sync(struct weir_long_text *text, const struct weir_check_finding *finding)
{
    add_use(text, finding, &finding->second);
    weir_long_text_add(text, " waits for ");
    if (finding->first.file[0])
        add_use(text, finding, &finding->first);
    else
        add_queue(text, finding, &finding->first);
    weir_long_text_add(text, ", and no use of memory needs that");
}

// Remedies.

static bool is_in_call(const struct weir_check_use *use)
{
    return !is_host(use) && strcmp(use->operation, check_operation_name(0)) == 0;
}

// Where the program submits it.
static void add_submission(struct weir_long_text *text, const struct weir_check_use *use)
{
    weir_long_text_add(text, is_in_call(use) ? "the host call that runs " : "");
    add_place(text, use);
}

static void add_record_and(struct weir_long_text *text, const struct weir_check_finding *finding,
                           const struct weir_check_use *before)
{
    weir_long_text_add(text, "record on ");
    add_queue(text, finding, before);
    weir_long_text_add(text, " after ");
    add_submission(text, before);
}

static void order_queues(struct weir_long_text *text, const struct weir_check_finding *finding,
                         const struct weir_check_use *before, const struct weir_check_use *after)
{
    add_record_and(text, finding, before);
    weir_long_text_add(text, ", wait on ");
    add_queue(text, finding, after);
    weir_long_text_add(text, " before ");
    add_submission(text, after);
}

static void order_host_after(struct weir_long_text *text, const struct weir_check_finding *finding)
{
    add_record_and(text, finding, &finding->first);
    add_at(text, ", sync with that event before ", &finding->second);
}

// With `threads = strict`: the host's use came first, on another thread.
static void order_threads(struct weir_long_text *text, const struct weir_check_finding *finding)
{
    add_at(text, "take a lock for ", &finding->first);
    add_at(text, " and then for ", &finding->second);
    weir_long_text_add(text, ", or join the thread of the first");
}

static void order(struct weir_long_text *text, const struct weir_check_finding *finding)
{
    if (is_host(&finding->first))
        order_threads(text, finding);
    else if (is_host(&finding->second))
        order_host_after(text, finding);
    else
        order_queues(text, finding, &finding->first, &finding->second);
}

static void end_access(struct weir_long_text *text, const struct weir_check_finding *finding)
{
    add_at(text, "end the host's access of ", &finding->first);
    add_at(text, " before ", &finding->second);
}

static void move_free(struct weir_long_text *text, const struct weir_check_finding *finding)
{
    const bool same = finding->first.queue_id == finding->second.queue_id;
    if (!is_free(&finding->first)) {
        order_queues(text, finding, &finding->first, &finding->second);
        return;
    }
    add_at(text, "move the free of ", &finding->first);
    add_at(text, " after ", &finding->second);
    if (same || is_host(&finding->second))
        return;
    weir_long_text_add(text, "; ");
    order_queues(text, finding, &finding->second, &finding->first);
}

static void write_first(struct weir_long_text *text, const struct weir_check_finding *finding)
{
    add_at(text, "write the bytes before ", &finding->second);
    weir_long_text_add(text, ", on its queue or with a wait in between");
}

static void declare(struct weir_long_text *text, const struct weir_check_finding *finding)
{
    add_at(text, "declare the bytes in the launch of ", &finding->second);
    weir_long_text_add(text, ", or keep the kernel inside its range");
}

static void remove_wait(struct weir_long_text *text, const struct weir_check_finding *finding)
{
    add_at(text, "remove the wait of ", &finding->second);
}

static void share_less(struct weir_long_text *text, const struct weir_check_finding *finding)
{
    add_at(text, "remove the wait between ", &finding->first);
    add_at(text, " and ", &finding->second);
    weir_long_text_add(text, ", or give each queue a buffer");
}

static void remove_sync(struct weir_long_text *text, const struct weir_check_finding *finding)
{
    add_at(text, "remove the sync of ", &finding->second);
    weir_long_text_add(text, ", unless it is there to measure time, to learn of a failure, or to "
                             "keep the host from running ahead");
}

typedef void words_function(struct weir_long_text *text, const struct weir_check_finding *finding);

struct words {
    weir_check_kind kind;
    words_function *say;
    words_function *mend;
};

static const struct words table[] = {
    {WEIR_CHECK_READ_AFTER_WRITE, say_race, order},
    {WEIR_CHECK_WRITE_AFTER_READ, say_race, order},
    {WEIR_CHECK_WRITE_AFTER_WRITE, say_race, order},
    {WEIR_CHECK_HOST_READ, say_host, order},
    {WEIR_CHECK_HOST_WRITE, say_host, order},
    {WEIR_CHECK_OPEN_ACCESS, say_open, end_access},
    {WEIR_CHECK_AFTER_FREE, say_after_free, move_free},
    {WEIR_CHECK_UNWRITTEN, say_unwritten, write_first},
    {WEIR_CHECK_OUTSIDE, say_outside, declare},
    {WEIR_CHECK_IMPLIED_WAIT, say_wait, remove_wait},
    {WEIR_CHECK_NEEDLESS_WAIT, say_wait, remove_wait},
    {WEIR_CHECK_FALSE_SHARING, say_false_sharing, share_less},
    {WEIR_CHECK_NEEDLESS_SYNC, say_needless_sync, remove_sync},
};

// A program without Weir has no call of Weir's to add.
static void add_unseen_order(struct weir_long_text *message, struct weir_long_text *remedy,
                             const struct weir_check_finding *finding)
{
    weir_long_text_add(message,
                       "; a flag or an atomic variable between their threads, which is not "
                       "seen, may order them");
    weir_long_text_add(remedy, is_note(&finding->first) && is_note(&finding->second)
                                   ? "; if a flag or an atomic variable does, also wait for the "
                                     "first one's event on the thread of the second one"
                                   : "; if atomic variables or futexes order their threads, "
                                     "weir_check_release() after the first and "
                                     "weir_check_acquire() before the second");
}

void check_words_write(const struct weir_check_finding *finding,
                       const struct weir_check_finding *placed, bool threads,
                       struct weir_long_text *message, struct weir_long_text *remedy)
{
    const struct words *words = table;
    while (words->kind != finding->kind)
        words++;
    words->say(message, finding);
    add_assumption(message, finding);
    words->mend(remedy, placed);
    if (threads)
        add_unseen_order(message, remedy, finding);
}
