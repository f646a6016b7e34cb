// What `check` should find in a small program, by brute force: every call is a node, the edges are
// those that the program declares, and two nodes are in order if one reaches the other. Bytes are
// bits of a word. Nothing here is shared with the plugin.
//
// The plugin tells of a missing wait once: after a finding it goes on as if the wait were there. So
// its findings are compared one after the other. Each must be a pair that conflicts and that neither
// the declared edges nor the findings before it order; with an edge for each finding no pair may be
// left.
#ifndef WEIR_TESTS_RACES_FUZZ_ORACLE_H
#define WEIR_TESTS_RACES_FUZZ_ORACLE_H

#include <weir/check.h>

enum {
    ORACLE_NODES = 64, // bits of a word
    ORACLE_BYTES = 64, // of a buffer
    ORACLE_BUFFERS = 64,
    ORACLE_USES = 12,
    ORACLE_QUEUES = 64,
    ORACLE_OPEN = 4,
    ORACLE_THREADS = 4, // of the host
    ORACLE_KEYS = 8,    // of weir_check_release(), or what stands for a lock
    ORACLE_HOST = -1,
};

struct oracle_use {
    uint32_t buffer;
    weir_access access;
    uint64_t bytes;
};

struct oracle_node {
    uint64_t after; // the nodes that it was declared to come after
    int queue;      // or ORACLE_HOST
    int thread;     // that made the call
    bool frees;     // memory of a pool
    bool call;      // a host call, whose uses are the host's own
    int of_call;    // the host call whose function, that ran later, this is; else -1
    struct oracle_use uses[ORACLE_USES];
    size_t use_count;
};

// An access of the host that has not ended.
struct oracle_open {
    int node;
    struct oracle_use use;
};

struct oracle {
    struct oracle_node nodes[ORACLE_NODES];
    int count;
    int last[ORACLE_QUEUES]; // node; -1: none
    bool strict;             // threads are ordered by what they tell only, else all of them are one
    int thread;              // that makes the next call; 0 if all are one
    int host_last[ORACLE_THREADS];
    uint64_t keys[ORACLE_KEYS]; // nodes that released each
    uint64_t known;             // nodes before everything that follows
    int legacy, legacy_last;    // the number of the legacy queue, and its last node; -1: none
    // A host call whose function has not run to its end; -1: none. What comes before the call is known to the
    // host once the function has begun, which may be any time.
    int waiting_call;
    uint64_t maybe[ORACLE_NODES];       // edges that hold if such a function had begun
    uint64_t unwritten[ORACLE_BUFFERS]; // bytes of each
    int born[ORACLE_BUFFERS];           // of a pool's memory, the node that allocated it; else -1
    struct oracle_open open[ORACLE_OPEN];
    size_t open_count;
    uint64_t opens[ORACLE_NODES]; // of each access, the nodes that used its bytes before its end
    uint64_t reads_unwritten;     // nodes
    uint64_t may_read_unwritten;  // nodes that write the same bytes, perhaps first
};

// The bytes of a range, of which those after the first ORACLE_BYTES are left out.
uint64_t bits(size_t offset, size_t size);

void oracle_init(struct oracle *oracle);

// A call on a queue, or of the host, that comes after what the host knows, and after what the queue
// was given before. Returns its node.
int oracle_add(struct oracle *oracle, int queue);
void oracle_after(struct oracle *oracle, int node, int earlier);
// The function of a host call runs now. Operations after the call may have been submitted before, and
// come after it.
int oracle_run_call(struct oracle *oracle, int call);
void oracle_use(struct oracle *oracle, int node, uint32_t buffer, weir_access access,
                uint64_t bytes);
// Whether two uses have a byte in common, and one of them writes.
bool oracle_conflict(const struct oracle_use *a, const struct oracle_use *b);
// The host's thread has waited for the node.
void oracle_host_knows(struct oracle *oracle, int node);
// All that follows, on any thread, comes after the node.
void oracle_all_know(struct oracle *oracle, int node);
// The thread releases a key, or acquires it.
void oracle_release(struct oracle *oracle, int key);
void oracle_acquire(struct oracle *oracle, int key);
// The thread makes another one, or joins it.
void oracle_create(struct oracle *oracle, int thread);
void oracle_join(struct oracle *oracle, int thread);
// The node allocates the buffer from a pool. Its memory may be that of an earlier buffer.
void oracle_allocate(struct oracle *oracle, int node, uint32_t buffer);

// The host's access of a node stays open until it is closed. False: there are too many.
bool oracle_open(struct oracle *oracle, int node);
void oracle_close(struct oracle *oracle, size_t index);

// What stands at a line of the program: one node, or for a node of a graph every launch of it.
struct oracle_place {
    int nodes[ORACLE_NODES];
    int count;
};

// One comparison of findings with an oracle.
struct comparison {
    const struct oracle *oracle;
    uint64_t found[ORACLE_NODES];    // nodes before each, by findings
    uint64_t repaired[ORACLE_NODES]; // the same with all that their queues had been given
    uint64_t opens[ORACLE_NODES];
    uint64_t reads_unwritten;
    char difference[256]; // "" if there is none
};

void comparison_begin(struct comparison *comparison, const struct oracle *oracle);
// `first` is empty where the finding has one use only.
void comparison_add(struct comparison *comparison, const struct weir_check_finding *finding,
                    const struct oracle_place *first, const struct oracle_place *second);
// After the last finding. Returns whether there is no difference.
bool comparison_end(struct comparison *comparison);

#endif
