// Messages between the processes that mpirun.sh has started: a file that all have mapped has a ring of
// bytes from each to each. All functions are called with wire_lock.
#ifndef WEIR_TESTS_SUPPORT_LIBMPI_WIRE_H
#define WEIR_TESTS_SUPPORT_LIBMPI_WIRE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct wire_head {
    int comm;
    int from; // both ranks are those of the world
    int tag;
    size_t size;
};

// One that has come, or is on its way out.
struct wire_message {
    struct wire_message *next;
    struct wire_head head;
    size_t moved; // of head and bytes
    int *left;    // of a send: counts down when it has gone; NULL: nothing waits for it
    char bytes[];
};

extern pthread_mutex_t wire_lock;
extern int wire_rank;
extern int wire_count;

// Maps the file that FAKE_MPI names.
void wire_open(int rank, int count);
void wire_send(int to, const struct wire_head *head, const void *bytes, int *left);
// Moves what can be moved, and calls arrive() for each message that is complete, which then owns it.
void wire_move(void (*arrive)(struct wire_message *message));
// Whether all that this process has sent has gone.
bool wire_is_idle(void);
// A number that no other call in any process has had, and the next `count - 1`.
int wire_numbers(int count);
// Counts the processes that have come to `stage` (0 or 1), and returns whether all have.
void wire_come(int stage);
bool wire_all_have_come(int stage);

#endif
