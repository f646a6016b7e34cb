// What the pairs of C and of C++ share. A pair is a program twice: its first thread writes bytes on the
// host, its second one reads them, and a primitive hands them over; or what should hand them over does
// not, which is a finding. A byte in a pipe makes the second come later in both, and orders nothing that
// is seen.
#ifndef WEIR_TESTS_LOCKS_PAIR_H
#define WEIR_TESTS_LOCKS_PAIR_H

#include <stdbool.h>

#include <weir/check.h>
#include <weir/weir.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pair {
    const char *name;
    void (*give)(bool mended); // of the first thread, after it has written
    void (*take)(bool mended); // of the second one, before it reads
    bool meets;                // the two wait for each other: the byte is sent before `give`
    bool writes;               // the first one reads, and the second one writes
    void (*run)(bool mended);  // in place of all this
};

// The runtime, and a queue and buffers of it, which are new for each pair.
extern weir_runtime *pair_runtime;
extern weir_device *pair_device;
extern weir_queue *pair_queue;
extern weir_buffer *pair_bytes;

enum {
    PAIR_SIZE = 64
};

// Ends the process with the reason if the call has failed.
void pair_must(weir_status status);
void pair_write(void); // on the host
void pair_read(void);
// The pipe: what one has sent the other waits for.
void pair_send(void);
void pair_receive(void);

// Runs all pairs, and compares what is found. Returns the exit status; after lines that say what differs.
int pair_main(const struct pair *pairs, size_t count, int argc, char **argv);

#ifdef __cplusplus
}
#endif

#endif
