// What ranks say of their calls, its comparison, and the sentences of failures.
#include <inttypes.h>
#include <stdarg.h>

#include "base/text.h"
#include "transports/mpi/mpi.h"

enum {
    TEXT_SIZE = 160
};

static const char *name_of(const struct mpi_head *head)
{
    if (head->kind == MPI_JOIN)
        return "join";
    return head->kind == MPI_SPLIT ? "split" : weir_collective_name((weir_collective)head->kind);
}

struct mpi_head mpi_head_of_line(uint32_t kind, uint64_t number, const char *file, int line)
{
    struct mpi_head head = {.kind = kind, .number = number, .line = line};
    const size_t length = file ? strlen(file) : 0;
    // The end of a path names the file.
    if (file)
        snprintf(head.file, sizeof head.file, "%s",
                 length < sizeof head.file ? file : file + length - sizeof head.file + 1);
    return head;
}

// What a kind does not use is 0, and so equal on all ranks.
struct mpi_head mpi_head_of(const struct weir_transport_call *call)
{
    const weir_collective kind = call->kind;
    const bool reduces =
        kind == WEIR_ALL_REDUCE || kind == WEIR_REDUCE || kind == WEIR_REDUCE_SCATTER;
    const bool rooted = kind == WEIR_REDUCE || kind == WEIR_BROADCAST || kind == WEIR_GATHER ||
                        kind == WEIR_SCATTER;
    struct mpi_head head = mpi_head_of_line(kind, call->number, call->file, call->line);
    head.reduction = reduces ? call->reduction : 0;
    head.root = rooted ? call->root : 0;
    if (kind != WEIR_EXCHANGE && kind != WEIR_BARRIER) {
        head.element = call->element;
        head.count = call->count;
    }
    return head;
}

static void append_call(char *text, size_t size, size_t *used, const struct mpi_head *head)
{
    weir_text_append(text, size, used, "%s", name_of(head));
    if (mpi_is_numbered(head->kind))
        weir_text_append(text, size, used, " %" PRIu64, head->number);
}

// Of another rank, which may name its file as it likes.
static const char *describe(const struct mpi_head *head, char *text)
{
    char said[MPI_FILE_SIZE];
    char file[MPI_FILE_SIZE];
    size_t used = 0;
    snprintf(said, sizeof said, "%.*s", MPI_FILE_SIZE - 1, head->file);
    weir_text_escape(file, sizeof file, said, "");
    append_call(text, TEXT_SIZE, &used, head);
    if (file[0])
        weir_text_append(text, TEXT_SIZE, &used, " (%s:%d)", file, (int)head->line);
    return text;
}

WEIR_PRINTF(4, 0)
static bool fail(struct mpi_run *run, enum weir_transport_fault fault, uint32_t rank,
                 const char *format, va_list arguments)
{
    const struct mpi_head *head = &run->group->head;
    struct mpi_cause cause = {.number = head->number, .fault = fault, .rank = rank};
    size_t used = 0;
    append_call(cause.text, sizeof cause.text, &used, head);
    weir_text_append(cause.text, sizeof cause.text, &used, " of '%s'", run->group->label);
    if (head->file[0])
        weir_text_append(cause.text, sizeof cause.text, &used, ", %s:%d", head->file,
                         (int)head->line);
    weir_text_append(cause.text, sizeof cause.text, &used, ": ");
    vsnprintf(cause.text + used, sizeof cause.text - used, format, arguments);
    mpi_posts_fail(run->group, &cause);
    return false;
}

bool mpi_fail(struct mpi_run *run, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(run, WEIR_FAULT_OTHER, run->group->rank, format, arguments);
    va_end(arguments);
    return false;
}

bool mpi_blame(struct mpi_run *run, enum weir_transport_fault fault, uint32_t rank,
               const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(run, fault, rank, format, arguments);
    va_end(arguments);
    return false;
}

bool mpi_fail_in(struct mpi_run *run, const char *function, int error)
{
    char text[1024] = "";
    int size = 0;
    mpi_library()->error(error, text, &size);
    text[strcspn(text, "\n")] = '\0';
    return mpi_fail(run, "rank %u: %s failed: %s", run->group->rank, function, text);
}

static bool differs(struct mpi_run *run, uint32_t peer, const struct mpi_head *theirs,
                    const char *what, const char *their_value, const char *own_value)
{
    char text[TEXT_SIZE];
    return mpi_blame(run, WEIR_FAULT_DIFFERS, peer,
                     "rank %u has called %s with %s %s, and rank %u with %s", peer,
                     describe(theirs, text), what, their_value, run->group->rank, own_value);
}

static bool differs_in(struct mpi_run *run, uint32_t peer, const struct mpi_head *theirs,
                       const char *what, uint64_t their_value, uint64_t own_value)
{
    char their_text[24];
    char own_text[24];
    snprintf(their_text, sizeof their_text, "%" PRIu64, their_value);
    snprintf(own_text, sizeof own_text, "%" PRIu64, own_value);
    return differs(run, peer, theirs, what, their_text, own_text);
}

bool mpi_same(struct mpi_run *run, uint32_t peer, const struct mpi_head *theirs)
{
    const struct mpi_head *own = &run->group->head;
    char text[TEXT_SIZE];
    if (mpi_is_numbered(own->kind) && (theirs->kind != own->kind || theirs->number != own->number))
        return mpi_blame(run, WEIR_FAULT_DIFFERS, peer, "rank %u has called %s instead", peer,
                         describe(theirs, text));
    if (theirs->element != own->element)
        return differs(run, peer, theirs, "the datatype",
                       weir_datatype_name((weir_datatype)theirs->element),
                       weir_datatype_name((weir_datatype)own->element));
    if (theirs->count != own->count)
        return differs_in(run, peer, theirs, "the count", theirs->count, own->count);
    if (theirs->reduction != own->reduction)
        return differs(run, peer, theirs, "the reduction",
                       weir_reduction_name((weir_reduction)theirs->reduction),
                       weir_reduction_name((weir_reduction)own->reduction));
    return theirs->root == own->root ||
           differs_in(run, peer, theirs, "the root", theirs->root, own->root);
}

bool mpi_late(struct mpi_run *run, uint32_t rank)
{
    const struct mpi_peer *peer = &run->group->peers[rank];
    char duration[WEIR_TEXT_QUANTITY_SIZE];
    char text[TEXT_SIZE];
    weir_text_duration(duration, (double)run->timeout_ns);
    if (!peer->heard)
        return mpi_blame(run, WEIR_FAULT_SILENT, rank, "rank %u has submitted nothing in %s", rank,
                         duration);
    return mpi_blame(run, WEIR_FAULT_SILENT, rank, "rank %u has submitted nothing after %s in %s",
                     rank, describe(&peer->last, text), duration);
}

bool mpi_gone(struct mpi_run *run, uint32_t rank)
{
    const struct mpi_peer *peer = &run->group->peers[rank];
    char text[TEXT_SIZE];
    if (!peer->heard)
        return mpi_blame(run, WEIR_FAULT_LEFT, rank, "rank %u has destroyed the communicator",
                         rank);
    return mpi_blame(run, WEIR_FAULT_LEFT, rank, "rank %u has destroyed the communicator after %s",
                     rank, describe(&peer->last, text));
}

weir_status mpi_report(const struct mpi_group *group)
{
    return weir_host_fail(group->host, WEIR_ERROR_COMM,
                          "make all ranks submit the same collectives, or raise the timeout", "%s",
                          group->cause.text);
}
