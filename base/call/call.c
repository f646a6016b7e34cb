// For the front end and the transports, which say the same of the same.
#include "base/call/call.h"

#include "base/text.h"

// The end of a path, which names the file, matters more than its beginning.
struct weir_head weir_head_of_line(uint32_t kind, uint64_t number, const char *file, int line)
{
    struct weir_head head = {.kind = kind, .number = number, .line = line};
    const size_t length = file ? strlen(file) : 0;
    const char *end = length < sizeof head.file ? file : file + length - sizeof head.file + 1;
    if (file)
        snprintf(head.file, sizeof head.file, "%s", end);
    return head;
}

struct weir_head weir_head_of(const struct weir_transport_call *call)
{
    const weir_collective kind = call->kind;
    const bool rooted = weir_is_rooted(kind) || kind == WEIR_SEND || kind == WEIR_RECV;
    const bool sized = kind != WEIR_EXCHANGE && kind != WEIR_BARRIER;
    struct weir_head head = weir_head_of_line(kind, call->number, call->file, call->line);
    head.element = sized ? call->element : 0;
    head.reduction = weir_is_reduction(kind) ? call->reduction : 0;
    head.root = rooted ? call->root : 0;
    head.count = sized ? call->count : 0;
    return head;
}

void weir_head_append(char *text, size_t size, size_t *used, const struct weir_head *head)
{
    weir_text_append(text, size, used, "%s",
                     head->kind == WEIR_CALL_JOIN    ? "join"
                     : head->kind == WEIR_CALL_SPLIT ? "split"
                                                     : weir_collective_name(head->kind));
    if (weir_is_numbered(head->kind))
        weir_text_append(text, size, used, " %llu", (unsigned long long)head->number);
}

bool weir_head_file(const struct weir_head *head, char file[WEIR_HEAD_FILE_SIZE])
{
    char said[WEIR_HEAD_FILE_SIZE];
    snprintf(said, sizeof said, "%.*s", WEIR_HEAD_FILE_SIZE - 1, head->file);
    weir_text_escape(file, WEIR_HEAD_FILE_SIZE, said, "");
    return file[0];
}

const char *weir_head_describe(const struct weir_head *head, char text[WEIR_HEAD_TEXT_SIZE])
{
    char file[WEIR_HEAD_FILE_SIZE];
    size_t used = 0;
    weir_head_append(text, WEIR_HEAD_TEXT_SIZE, &used, head);
    if (weir_head_file(head, file))
        weir_text_append(text, WEIR_HEAD_TEXT_SIZE, &used, " (%s:%d)", file, (int)head->line);
    return text;
}

// A message and its receiver are a pair: neither has a number of its own.
static bool is_message(const struct weir_head *own, const struct weir_head *theirs)
{
    return !weir_is_numbered(own->kind) && !weir_is_numbered(theirs->kind);
}

bool weir_head_equals(const struct weir_head *own, const struct weir_head *theirs)
{
    return own->element == theirs->element && own->count == theirs->count &&
           (is_message(own, theirs) ||
            (own->kind == theirs->kind && own->number == theirs->number &&
             own->reduction == theirs->reduction && own->root == theirs->root));
}

struct difference {
    char text[48];
};

// What `head` has that `other` has not: "64 f32", "the reduction sum", "the root 1".
static struct difference difference(const struct weir_head *head, const struct weir_head *other)
{
    struct difference found;
    if (head->element != other->element || head->count != other->count)
        snprintf(found.text, sizeof found.text, "%llu %s", (unsigned long long)head->count,
                 weir_datatype_name(head->element));
    else if (head->reduction != other->reduction)
        snprintf(found.text, sizeof found.text, "the reduction %s",
                 weir_reduction_name(head->reduction));
    else
        snprintf(found.text, sizeof found.text, "the root %u", head->root);
    return found;
}

const char *weir_head_differ(const struct weir_head *own, uint32_t rank,
                             const struct weir_head *theirs, uint32_t peer, bool blames,
                             char text[WEIR_CALLS_TEXT_SIZE])
{
    char called[WEIR_HEAD_TEXT_SIZE];
    char right[WEIR_HEAD_TEXT_SIZE];
    const bool other =
        !is_message(own, theirs) && (own->kind != theirs->kind || own->number != theirs->number);
    weir_head_describe(theirs, called);
    weir_head_describe(own, right);
    if (other && blames)
        snprintf(text, WEIR_CALLS_TEXT_SIZE, "rank %u has called %s instead", peer, called);
    else if (other)
        snprintf(text, WEIR_CALLS_TEXT_SIZE, "rank %u has called %s, and rank %u %s", peer, called,
                 rank, right);
    else
        snprintf(text, WEIR_CALLS_TEXT_SIZE, "rank %u has called %s with %s, and rank %u with %s",
                 peer, called, difference(theirs, own).text, rank, difference(own, theirs).text);
    return text;
}

// One that is not known has not even called the same as itself.
static bool is_same(weir_head_find *find, const void *user, uint32_t a, uint32_t b)
{
    const struct weir_head *first = find(user, a);
    const struct weir_head *second = find(user, b);
    return first && second && weir_head_equals(first, second);
}

// The first rank that has called what more than half have, of which one is in the first half; the number of ranks if
// there is no such half.
static uint32_t first_of_most(uint32_t count, weir_head_find *find, const void *user)
{
    for (uint32_t i = 0; i <= count / 2; i++) {
        uint32_t alike = 0;
        for (uint32_t k = i; k < count; k++)
            alike += is_same(find, user, i, k);
        if (alike > count / 2)
            return i;
    }
    return count;
}

bool weir_heads_find_odd(uint32_t count, weir_head_find *find, const void *user,
                         struct weir_odd *out_odd)
{
    struct weir_odd odd = {.rank = first_of_most(count, find, user)};
    odd.is_odd = odd.rank < count;
    for (odd.rank = odd.is_odd ? odd.rank : 0; odd.rank < count && !find(user, odd.rank);)
        odd.rank++;
    while (odd.peer < count && (!find(user, odd.peer) || is_same(find, user, odd.rank, odd.peer)))
        odd.peer++;
    *out_odd = odd;
    return odd.peer < count;
}
