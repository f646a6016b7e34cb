// The words of findings. A sentence begins with the operation whose line lacks something.
#include <inttypes.h>

#include "plugins/check/parts.h"

const char *check_operation_name(uint32_t operation)
{
    return operation ? weir_operation_kind_name(operation) : "host access";
}

static bool is_host(const struct weir_check_use *use)
{
    return use->queue_id == 0;
}

static bool is(const struct weir_check_use *use, uint32_t operation)
{
    return strcmp(use->operation, check_operation_name(operation)) == 0;
}

static bool is_in_call(const struct weir_check_use *use)
{
    return !is_host(use) && is(use, 0);
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
    if (is_host(use) || is_in_call(use)) {
        weir_long_text_add(text, "the host at ");
    } else {
        if (is(use, WEIR_OPERATION_NOTE)) // work that Weir did not submit goes by its own name
            weir_long_text_add(text, "'%s'", use->kernel);
        else
            weir_long_text_add(text, use->kernel[0] ? "the %s of '%s'" : "the %s%s", use->operation,
                               use->kernel);
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

// By weir_access.
static const char *const certain[] = {"uses", "reads", "writes", "reads and writes"};
static const char *const assumed[] = {"may use", "may read", "may write", "may read and write"};

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

// What the launch declares of the buffer.
static void add_declared(struct weir_long_text *text, const struct weir_check_use *use)
{
    if (use->size)
        weir_long_text_add(text, "only bytes %zu to %zu", use->offset, use->offset + use->size - 1);
    else
        weir_long_text_add(text, "none of it");
}

// Sentences and remedies. In their texts stand, with the number of the use: %u1 the use, %p1 its place, %s1 where
// the program submits it, %q1 its queue, %v1 what it does, %i1 the same after "may", %d1 what it declares, %r1 to
// be what; and %b the bytes.

static const char *sentence_of(const struct weir_check_finding *finding)
{
    switch (finding->kind) {
    case WEIR_CHECK_HOST_READ:
    case WEIR_CHECK_HOST_WRITE:
        return "%u2 %v2 %b, which %u1 may still %i1";
    case WEIR_CHECK_OPEN_ACCESS:
        return "%u2 %v2 %b, which %u1 %v1 until weir_host_end()";
    case WEIR_CHECK_AFTER_FREE:
        return is(&finding->first, WEIR_OPERATION_POOL_FREE)
                   ? "%u2 %v2 %b, which %u1 has returned to its pool"
                   : "%u2 returns %b to its pool, which %u1 may still %i1";
    case WEIR_CHECK_UNWRITTEN:
        return "%u2 reads %b, which nothing has written";
    case WEIR_CHECK_OUTSIDE:
        return finding->size ? "%u2 %v2 %b, and declares %d2 to be %r2"
                             : "%u2 %v2 in front of %b, and declares %d2 to be %r2";
    case WEIR_CHECK_IMPLIED_WAIT:
        return "%u2 names %u1, after which its queue comes already";
    case WEIR_CHECK_NEEDLESS_WAIT:
        return "%u2 names %u1, and no use of memory needs that";
    case WEIR_CHECK_FALSE_SHARING:
        return "%u2 waits for %u1, and they use different bytes of %b";
    case WEIR_CHECK_NEEDLESS_SYNC: // the record has a line, or is the sync's own
        return finding->first.file[0] ? "%u2 waits for %u1, and no use of memory needs that"
                                      : "%u2 waits for %q1, and no use of memory needs that";
    default: // two operations
        return "%u2 %v2 %b, which %u1 %v1, and nothing orders the two";
    }
}

static const char *remedy_of(const struct weir_check_finding *finding)
{
    const struct weir_check_use *first = &finding->first;
    const struct weir_check_use *second = &finding->second;
    const bool elsewhere = !is_host(second) && first->queue_id != second->queue_id;
    switch (finding->kind) {
    case WEIR_CHECK_OPEN_ACCESS:
        return "end the host's access of %p1 before %p2";
    case WEIR_CHECK_AFTER_FREE:
        if (!is(first, WEIR_OPERATION_POOL_FREE))
            break;
        return elsewhere // then a wait of the queue that frees is missing too
                   ? "move the free of %p1 after %p2; record on %q2 after %s2, wait on %q1 before "
                     "%s1"
                   : "move the free of %p1 after %p2";
    case WEIR_CHECK_UNWRITTEN:
        return "write the bytes before %p2, on its queue or with a wait in between";
    case WEIR_CHECK_OUTSIDE:
        return "declare the bytes in the launch of %p2, or keep the kernel inside its range";
    case WEIR_CHECK_IMPLIED_WAIT:
    case WEIR_CHECK_NEEDLESS_WAIT:
        return "remove the wait of %p2";
    case WEIR_CHECK_FALSE_SHARING:
        return "remove the wait between %p1 and %p2, or give each queue a buffer";
    case WEIR_CHECK_NEEDLESS_SYNC:
        return "remove the sync of %p2, unless it is there to measure time, to learn of a failure, "
               "or to keep the host from running ahead";
    default:
        if (is_host(first)) // with `threads = strict`, on another thread
            return "take a lock for %p1 and then for %p2, or join the thread of the first";
        if (is_host(second))
            return "record on %q1 after %s1, sync with that event before %p2";
    }
    return "record on %q1 after %s1, wait on %q2 before %s2";
}

static void add_part(struct weir_long_text *text, const struct weir_check_finding *finding,
                     char part, const struct weir_check_use *use)
{
    switch (part) {
    case 'u':
        add_use(text, finding, use);
        break;
    case 's':
        weir_long_text_add(text, is_in_call(use) ? "the host call that runs " : "");
        add_place(text, use);
        break;
    case 'p':
        add_place(text, use);
        break;
    case 'q':
        add_queue(text, finding, use);
        break;
    case 'v':
        weir_long_text_add(text, "%s", (use->assumed ? assumed : certain)[use->access]);
        break;
    case 'i':
        weir_long_text_add(text, "%s", assumed[use->access] + strlen("may "));
        break;
    case 'd':
        add_declared(text, use);
        break;
    case 'r':
        weir_long_text_add(text, use->access == WEIR_ACCESS_READ ? "read" : "written");
        break;
    default:
        add_bytes(text, finding);
        break;
    }
}

static void write_words(struct weir_long_text *text, const char *words,
                        const struct weir_check_finding *finding)
{
    for (const char *at = words; *at;) {
        const size_t plain = strcspn(at, "%");
        weir_long_text_add(text, "%.*s", (int)plain, at);
        at += plain;
        if (!*at)
            break;
        const char part = at[1];
        add_part(text, finding, part, at[2] == '1' ? &finding->first : &finding->second);
        at += part == 'b' ? 2 : 3;
    }
}

void check_words_write(const struct check_conflict *conflict, struct weir_long_text *message,
                       struct weir_long_text *remedy)
{
    const struct weir_check_finding *finding = &conflict->finding;
    write_words(message, sentence_of(finding), finding);
    add_assumption(message, finding);
    write_words(remedy, remedy_of(finding), finding);
    if (!conflict->threads)
        return;
    weir_long_text_add(message, "; a flag or an atomic variable between their threads, which is "
                                "not seen, may order them");
    // A program without Weir has no call of Weir's to add.
    weir_long_text_add(remedy, is(&finding->first, WEIR_OPERATION_NOTE) &&
                                       is(&finding->second, WEIR_OPERATION_NOTE)
                                   ? "; if a flag or an atomic variable does, also wait for the "
                                     "first one's event on the thread of the second one"
                                   : "; if atomic variables or futexes order their threads, "
                                     "weir_check_release() after the first and "
                                     "weir_check_acquire() before the second");
}
