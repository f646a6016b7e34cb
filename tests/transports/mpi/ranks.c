// One rank under mpirun, for mpi_test.sh: calls the transport's functions directly. The first argument
// names what to do, one after the other with commas between, the second the library. Prints "ok" when all is as
// expected.
#include "tests/transports/mpi/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct weir_transport_ops *ops;
void *state;
uint32_t rank;
uint32_t count;

void expect(bool condition, const char *what, const char *file, int line)
{
    if (condition)
        return;
    fprintf(stderr, "%s:%d: rank %u: %s; the last error: %s\n", file, line, rank, what,
            ranks_error()->message);
    abort();
}

weir_status open_library(const char *library)
{
    const struct weir_setting setting = {.text = library};
    const struct weir_setting *const settings[] = {&setting};
    ops = weir_module_query(WEIR_MODULE_ABI, &ranks_host)->transport;
    return ops->open(&ranks_host, settings, &state);
}

static uint32_t number_in(const char *first, const char *second)
{
    const char *text = getenv(first) ? getenv(first) : getenv(second);
    return text ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

weir_status try_join(const char *rendezvous, uint64_t timeout_ns, void **out_group)
{
    const struct weir_transport_setup setup = {.struct_size = sizeof setup,
                                               .label = "grads",
                                               .rank = rank,
                                               .count = count,
                                               .rendezvous = rendezvous,
                                               .timeout_ns = timeout_ns,
                                               .file = "dir/join.c",
                                               .line = 5};
    return ops->join(state, &setup, out_group);
}

void *join_all(void)
{
    void *group;
    uint32_t own;
    uint32_t all;
    EXPECT(try_join(NULL, PATIENCE, &group) == WEIR_OK);
    ops->place(group, &own, &all);
    EXPECT(own == rank && all == count);
    return group;
}

uint64_t next;

weir_status try_split(void *group, int32_t color, int32_t key, void **out_part)
{
    const struct weir_transport_split params = {.struct_size = sizeof params,
                                                .label = "part",
                                                .color = color,
                                                .key = key,
                                                .number = ++next,
                                                .timeout_ns = PATIENCE,
                                                .file = "app.c",
                                                .line = 20};
    return ops->split(group, &params, out_part);
}

weir_status run(void *group, struct weir_transport_call call)
{
    const bool numbered =
        call.kind != WEIR_SEND && call.kind != WEIR_RECV && call.kind != WEIR_EXCHANGE;
    next += numbered;
    call.struct_size = sizeof call;
    call.number = next;
    call.timeout_ns = call.timeout_ns ? call.timeout_ns : PATIENCE;
    call.file = "app.c";
    return ops->run(group, &call);
}

static bool do_in_group(const char *what)
{
    if (strcmp(what, "collectives") == 0)
        do_collectives();
    else if (strcmp(what, "order") == 0)
        do_order();
    else if (strcmp(what, "large") == 0)
        do_large();
    else if (strcmp(what, "messages") == 0)
        do_messages();
    else if (strcmp(what, "groups") == 0)
        do_groups();
    else if (strncmp(what, "other-kind", 10) == 0)
        do_mismatch(what[10] ? 0 : 1);
    else if (strcmp(what, "message") == 0)
        do_message_mismatch();
    else if (strcmp(what, "late") == 0 || strcmp(what, "leave") == 0 || strcmp(what, "stop") == 0)
        do_absent(what, 1);
    else if (strcmp(what, "late-0") == 0)
        do_absent("late", 0);
    else if (strcmp(what, "abort") == 0 || strcmp(what, "abort-receive") == 0)
        do_abort(what[5] == '-');
    else if (strncmp(what, "memory-", 7) == 0)
        do_memory(strtol(what + 7, NULL, 10), false);
    else if (strncmp(what, "message-memory-", 15) == 0)
        do_memory(strtol(what + 15, NULL, 10), true);
    else if (strcmp(what, "fail") == 0)
        do_fail();
    else if (strcmp(what, "place") == 0)
        do_wrong_place();
    else if (strcmp(what, "missing") == 0)
        do_missing();
    else
        return false;
    return true;
}

// mpirun may put a line of one rank into that of another, so each has a file of its own.
static bool redirect_output(void)
{
    char path[4096];
    const char *folder = getenv("RANKS_OUTPUT");
    if (!folder)
        return true;
    snprintf(path, sizeof path, "%s/%u", folder, rank);
    return freopen(path, "w", stdout);
}

int main(int argc, char **argv)
{
    void *group;
    if (argc < 3)
        return 2;
    rank = number_in("OMPI_COMM_WORLD_RANK", "PMI_RANK");
    count = number_in("OMPI_COMM_WORLD_SIZE", "PMI_SIZE");
    if (!redirect_output())
        return 2;
    if (strncmp(argv[1], "own-", 4) == 0) {
        do_own(argv[2], argv[1] + 4);
        return 0;
    }
    if (strcmp(argv[1], "load") == 0) {
        rank = 0;
        const weir_status status = open_library(argv[2]);
        report(status == WEIR_OK ? try_join(argc > 3 ? argv[3] : NULL, PATIENCE, &group) : status);
        return 0;
    }
    EXPECT(open_library(argv[2]) == WEIR_OK);
    for (char *what = strtok(argv[1], ","); what; what = strtok(NULL, ",")) {
        next = 0;
        if (!do_in_group(what))
            return 2;
    }
    ops->close(state);
    if (rank == 0)
        printf("ok\n");
    return 0;
}