// One rank of the conformance matrix: creates the communicator that the environment describes, runs each case, and
// compares the results with float64, and their bits with those of rank 0. Prints how many cases were right, or the
// first that was not. With an argument, its buffers are of that placement: "device" or "host".
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "tests/comm/matrix.h"

enum {
    MOST_RANKS = 4
};

struct program {
    weir_queue *queue;
    weir_comm *comm;
    weir_buffer *src;
    weir_buffer *dst;
    char *sent;
    char *got;
    char *first; // what rank 0 has got
    uint32_t rank;
    int right;
    char text[256];
};

static void check(weir_status status)
{
    if (status >= 0)
        return;
    fprintf(stderr, "%s\n", weir_last_error_text());
    exit(3);
}

static char *allocate(size_t size)
{
    char *memory = calloc(1, size);
    if (!memory)
        exit(4);
    return memory;
}

// Rank 0 broadcasts what it has got, as bytes, and all others have the same.
static bool is_as_on_rank_0(struct program *p, const struct matrix_case *it, size_t size)
{
    check(weir_upload(p->queue, p->src, 0, p->got, size));
    check(weir_queue_broadcast(p->queue, p->comm, p->src, 0, p->src, 0, size, WEIR_U8, 0));
    check(weir_download(p->queue, p->first, p->src, 0, size));
    if (memcmp(p->first, p->got, size) == 0)
        return true;
    snprintf(p->text, sizeof p->text, "%s of %zu %s, %s%s: rank %u has other bits than rank 0",
             weir_collective_name(it->kind), it->count, weir_datatype_name(it->element),
             weir_reduction_name(it->reduction), it->in_place ? ", in place" : "", p->rank);
    return false;
}

static bool run(void *user, const struct matrix_case *it)
{
    struct program *p = user;
    size_t src_offset;
    size_t dst_offset;
    const size_t read = matrix_read(it, p->rank, &src_offset);
    const size_t written = matrix_written(it, p->rank, &dst_offset);
    weir_buffer *dst = it->in_place ? p->src : p->dst;
    const struct weir_collective_params params = {
        .struct_size = sizeof params,
        .kind = it->kind,
        .element = it->element,
        .reduction = it->reduction,
        .root = matrix_root(it),
        .src = p->src,
        .src_offset = src_offset,
        .dst = dst,
        .dst_offset = dst_offset,
        .count = it->count,
    };
    matrix_fill(it, p->rank, p->sent);
    check(weir_upload(p->queue, p->src, src_offset, p->sent, read));
    check(weir_queue_collective(p->queue, p->comm, &params));
    check(weir_download(p->queue, p->got, dst, dst_offset, written));
    p->right++;
    return matrix_check(it, p->rank, p->got, p->text, sizeof p->text) &&
           (!matrix_is_equal(it) || is_as_on_rank_0(p, it, written));
}

int main(int count, char **arguments)
{
    const bool host = count > 1 && strcmp(arguments[1], "host") == 0;
    const struct weir_buffer_params memory = {.struct_size = sizeof memory,
                                              .size = MOST_RANKS * MATRIX_BYTES,
                                              .placement =
                                                  host ? WEIR_PLACE_HOST : WEIR_PLACE_DEVICE};
    struct program p = {.sent = allocate(memory.size),
                        .got = allocate(memory.size),
                        .first = allocate(memory.size)};
    weir_runtime *runtime;
    weir_device *device;
    check(weir_open(NULL, &runtime));
    check(weir_device_open(runtime, NULL, &device));
    check(weir_comm_create(device, WEIR_PARAMS(weir_comm, .label = "grads"), &p.comm));
    check(weir_queue_create(device, NULL, &p.queue));
    check(weir_buffer_create(device, &memory, &p.src));
    check(weir_buffer_create(device, &memory, &p.dst));
    p.rank = weir_comm_rank(p.comm);
    const bool right = matrix_each(weir_comm_count(p.comm), run, &p);
    if (right)
        printf("rank %u of %u: %d cases are right\n", p.rank, weir_comm_count(p.comm), p.right);
    else
        WEIR_IGNORE(weir_comm_abort(p.comm, p.text));
    fprintf(stderr, "%s", p.text);
    weir_comm_destroy(&p.comm), weir_queue_destroy(&p.queue);
    weir_buffer_destroy(&p.src), weir_buffer_destroy(&p.dst);
    check(weir_device_close(&device));
    check(weir_close(&runtime));
    free(p.sent), free(p.got), free(p.first);
    return right ? 0 : 1;
}
