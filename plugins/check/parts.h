// Shared by the files of the plugin's engine.
//
//   clock.c      vector clocks
//   history.c    sets of bytes; the uses of some memory
//   module.c     the ops table, and a link's life; queues, buffers, kernels as they come and go
//   operation.c  the path of an operation, and what operations and graphs use; regions of threads
//   use.c        one use of some bytes, against those before it; from two uses to a conflict
//   host.c       what the host does between submissions; host calls
//   thread.c     its threads and their locks, with `threads = strict`
//   hint.c       waits of queues and of the host that nothing needs
//   verify.c     what kernels do, against what their launches declare
//   finding.c    the store of findings: each pair of lines once; the file of suppressions; the files that are written
//   words.c      the sentence and the line to add, for each kind
//
// One lock guards the state of a link. Findings are added with it held, and told after its release, since
// that calls the program's log.
//
// The host's knowledge. With `threads = one` all threads of the host are one actor, and everything
// that is submitted comes after what that actor knows by then, so its clock is the floor of all
// clocks: what is below it has finished, for every later operation. The host's own accesses come
// before everything that is submitted after their end, so they are kept only as long as they last.
//
// After a conflict the engine goes on as if the missing wait were there, so one missing wait is one
// finding, and not one for each operation that would have needed it.
#ifndef WEIR_PLUGINS_CHECK_PARTS_H
#define WEIR_PLUGINS_CHECK_PARTS_H

#include <pthread.h>

#include <weir/module/check.h>
#include <weir/module/error.h>
#include <weir/module/module.h>

#include "base/cold.h"
#include "base/lock.h"
#include "base/lock_listener.h"
#include "base/names.h"
#include "base/table.h"
#include "base/thread_local.h"
#include "plugins/check/clock.h"
#include "plugins/check/history.h"

// What the engine has found: a finding without its sentences, with texts that are copied; NULL is "". `first` was
// submitted before `second`. A host access has the queue of the host call that it is in; what is told of it has none.
//
// What the two are, where it is not plain:
//   HOST_READ, HOST_WRITE  first: of a queue; second: the host
//   OPEN_ACCESS            first: the host, where its access began; second: of a queue
//   AFTER_FREE             one of them is a pool's free, the other uses the memory
//   UNWRITTEN              first: none (all zero); second: the read
//   OUTSIDE                first: none; second: the launch, with the range that it declares
//   IMPLIED_WAIT, NEEDLESS_WAIT  first: the record; second: the wait, access 0
//   FALSE_SHARING          first, second: the uses that touch no common byte
//   NEEDLESS_SYNC          first: the record, without a line if it is the sync's own; second: the host
//   READ_AFTER_WRITE, WRITE_AFTER_READ, WRITE_AFTER_WRITE: with `threads = strict` one or both may
//   be the host's.
struct check_conflict {
    struct weir_check_finding finding;
    bool threads; // an order of threads that is not seen would order the two
};

// In the order of the key table.
enum key {
    KEY_REPORT,
    KEY_THREADS,
    KEY_HINTS,
    KEY_VERIFY,
    KEY_SUPPRESSIONS,
    KEY_TEXT,
    KEY_JSON,
    KEY_SARIF,
    KEY_COUNT,
    CHECK_FORMS = KEY_COUNT - KEY_TEXT // of the files that are written
};

#define CHECK_PATIENCE_NS 200000000 // of a lock of the program's for the link's
#define CHECK_KEY_HEADS 4096

// What the program releases and acquires.
struct check_key {
    struct check_key *next; // with the same hash, or of the spare one
    const void *key;
    uint64_t *counts;
};

struct check_keys {
    struct check_key *heads[CHECK_KEY_HEADS];
    uint32_t count;
    struct check_key *spares; // for a signal handler, which cannot allocate
    uint32_t spare_count;
    uint32_t capacity; // of all clocks, that of actors
};

// Some memory. Buffers may share it.
struct check_memory {
    struct check_history history;
    struct check_history probe; // that of a graph alone, while it is examined
    struct check_memory *next_probed;
    bool probed;
};

// The state of a link.
struct check {
    const struct weir_link *link;
    struct check_findings *findings;
    struct weir_check_extension extension;
    struct weir_lock lock; // guards what follows
    struct check_actors actors;
    struct check_found found; // scratch
    uint64_t serial;          // of uses
    bool strict;              // threads = strict
    bool hints;
    bool needless; // hints, and threads = one: waits that no use needs are looked for
    bool verify;
    bool addressed;     // the program knows the address of a buffer
    bool impatient;     // host calls did not return in time
    bool unseen_writes; // native calls or the like may have written anywhere
    bool unseen_uses;   // what waits were needed for is not known
    bool unseen_syncs;  // the same of the host's waits
    bool has_synced;
    pthread_t sync_thread; // the last one that waited
    bool found_more;       // findings are not told yet
    struct weir_names
        *names; // of kernels, regions and notes, and texts of findings, which outlive these
    struct check_memory wrapped; // memory of the user's that has an address, by that
    struct check_shared *shared; // memory of the user's that has a handle
    struct check_memory *probed; // of the graph that is examined
    uint32_t waiting_calls;      // host calls that have not returned
    uint64_t number;             // no other link has it
    struct check_thread *threads;
    struct check_keys keys;
    size_t drop_from;                      // where the next key is dropped
    const struct weir_lock_source *source; // of the program's locks; NULL: they are not seen
    struct weir_lock_listener listener;
    uint64_t lost;             // of the source, when threads last learnt of it
    struct check_wait *waits;  // of all lines
    uint64_t visit;            // of queues, for hints
    struct check_wait *syncs;  // the same of the host's
    struct check_known *known; // by index: what the host has waited for
    uint32_t known_count;
};

// The wait that raised an entry of a queue's clock last.
struct check_cause {
    struct check_wait *wait;      // NULL: none of the user's
    struct check_queue *producer; // NULL: no cause
    bool through;                 // the entry is not the producer's own
};

// A queue, and what it has submitted.
struct check_queue {
    struct check_actor actor; // the first member
    weir_device *device;
    const char *record_file; // of its last record
    int record_line;
    uint32_t waiting_calls; // host calls that have not returned
    // Of the one that runs.
    const struct check *check; // the link
    uint64_t call;             // its count
    uint32_t open;             // accesses that its function has begun and not ended
    struct check_queue *outer; // of the call of another link that the thread is in
    // With hints.
    uint64_t worked;            // the count of its last operation that may use bytes
    uint64_t called;            // of its last host call
    struct check_edge *edges;   // the lines at which it has waited, each once
    struct check_cause *causes; // of the entries of its clock
    uint32_t cause_count;
    uint64_t visit;
};

// An access of the host that has not ended.
struct check_open {
    struct check_open *next;
    uint64_t begin;
    uint64_t size;
    weir_access access;
    struct check_origin origin;
};

// Memory of the user's of which only the handle is known.
struct check_shared {
    struct check_memory memory;
    struct check_shared *next;
    uint64_t handle;
    uint32_t users;
};

struct check_buffer {
    struct check_memory *memory; // its own, or one that it shares
    uint64_t base;               // of byte 0 there
    struct check_open *open;
    struct check_history gaps;   // the bytes that nothing has written yet
    struct check_shared *shared; // the memory that it shares, or NULL
    uint64_t size;
    uint32_t freed_index; // the actor that returned it to its pool last, and when; count 0: none
    uint64_t freed_count;
    struct check_memory own;
    const weir_buffer *object;
};

// What uses bytes now: an operation of a queue or of a graph's branch, or the host.
struct check_user {
    struct check_actors *actors;      // the link's, or the branches of a graph
    struct check_actor *actor;        // NULL: the host as one
    uint64_t count;                   // of the actor
    const uint64_t *counts;           // the clock of a late user
    const struct check_actor *thread; // the thread that it runs on, with `strict`; else NULL
    struct check_origin origin;
    bool late;    // a host call that runs now: later operations were submitted before it
    bool passing; // no use of it is kept
    bool probe;   // a graph is examined
};

WEIR_STATE_OF(check_of, struct check)
WEIR_DATA_OF(check_queue_of, struct check_queue, weir_queue)
WEIR_DATA_OF(check_buffer_of, struct check_buffer, weir_buffer)

// operation.c

weir_status check_queue_submit(const struct weir_link *link, weir_queue *object,
                               const struct weir_operation *operation);
weir_status check_graph_create(const struct weir_link *link, weir_device *device,
                               weir_graph *object, const struct weir_graph_setup *setup,
                               void **out_data);
void check_graph_destroy(const struct weir_link *link, weir_graph *object);
weir_status check_graph_update(const struct weir_link *link, weir_graph *object, uint32_t index,
                               const struct weir_graph_node *node);
void check_region(const struct weir_link *link, const char *name, uint64_t number);
// Of an operation of that kind, or 0, at that line, with the calling thread's region.
struct check_origin check_origin_at(const struct check *check, const char *file, int line,
                                    uint32_t operation);

// thread.c

// Whether the calling thread holds a link's lock, or is about to: what it does then is not the program's.
extern WEIR_MODULE_THREAD_LOCAL unsigned check_inside;

// Sets `strict` by the word of the key `threads`, with `hints` set.
void check_threads_open(struct check *check, const char *threads);
// Nothing is heard from then on. Without the lock.
void check_threads_close(struct check *check);
// There may be more actors. Not in a signal handler.
void check_threads_more(struct check *check);
// The calling thread's actor, made at its first call; NULL if out of memory.
struct check_actor *check_thread_self(struct check *check);
// What a thread or a key knows has changed.
void check_news(const struct check *check);
void check_release(void *user, const void *key);
void check_acquire(void *user, const void *key);

// hint.c

// Before the queue learns from the producer: a wait.
void check_hint_wait(struct check *check, struct check_queue *queue, struct check_queue *producer,
                     const struct weir_operation *operation);
// With `needless` only:
// All that the queue has waited for is needed.
void check_hint_need_all(struct check *check, struct check_queue *queue);
// The user's bytes are compared with those of an earlier use, which goes or stays.
void check_hint_use(struct check *check, const struct check_user *user,
                    const struct check_buffer *buffer, const struct check_shape *shape,
                    weir_access access, const struct check_use *use, bool goes);
// A use at `count` of the actor with that index is dropped, or is not compared with all others.
void check_hint_forget_use(struct check *check, uint32_t index, uint64_t count);
// A use of bytes comes after one at `count` of that actor, or replaces it, or that one is dropped. Returns whether
// the host has waited for it.
bool check_sync_need(const struct check *check, uint32_t index, uint64_t count);
// Before the host learns that `count` of the queue has passed: it has waited, or the program has asked, as the note
// says; NULL: in a host call, or at the queue's end.
void check_hint_host_learns(struct check *check, struct check_queue *queue, uint64_t count,
                            const struct weir_host_note *note);
// What the operation may need without using it.
void check_hint_operation(struct check *check, struct check_queue *queue,
                          const struct weir_operation *operation);
// Before its actor is removed.
void check_hint_queue_ends(struct check *check, struct check_queue *gone);
// An object that a sync may have been for is changed, or goes.
void check_note_change(struct check *check);
// Tells the lines whose waits were all implied, and those whose waits or syncs nothing needed.
void check_hints_finish(struct check *check);

// use.c

// Nothing has written its first `size` bytes. If out of memory, all of it counts as written.
void check_gaps_reset(struct check_buffer *buffer, uint64_t size);

static inline bool check_writes(weir_access access)
{
    return access & WEIR_ACCESS_WRITE;
}

void check_use_set(struct check_use *node, struct check *check, const struct check_user *user,
                   weir_access access);

// `user` uses bytes of the buffer: what is wrong with that is told, and the use is kept.
void check_use_bytes(struct check *check, const struct check_user *user,
                     struct check_buffer *buffer, const struct check_shape *shape,
                     weir_access access);

// Drops the uses of its bytes.
void check_buffer_clear(struct check *check, struct check_buffer *buffer);

// What is told of a use, of bytes with the offsets of the buffer above `base`, and of a pair of uses. The texts are the
// link's, the queues' and the buffer's.
struct check_conflict check_conflict_by(const struct check_user *user, weir_check_kind kind,
                                        const struct check_buffer *buffer,
                                        const struct check_shape *shape, weir_access access,
                                        uint64_t base);
struct check_conflict check_conflict_of(const struct check_user *user,
                                        const struct check_buffer *buffer,
                                        const struct check_use *first,
                                        const struct check_shape *shape, weir_access access);
// finding.c

// Reads the suppressions, and writes the files as those of a run that has found nothing yet. Texts outlive the link.
//
// Ownership: the link's, until check_findings_destroy().
// Errors: WEIR_ERROR_CONFIG for a file of suppressions that is missing or wrong; WEIR_ERROR_IO for a
// file that cannot be written; both reported to the host.
weir_status check_findings_create(struct check *check, const struct weir_setting *const *settings);

// Completes the files, and tells which suppressions were not used. What could not be written is
// reported to the host's `error`.
void check_findings_destroy(struct check *check);

// Adds a conflict to the findings, which check_unlock() tells.
void check_tell(struct check *check, const struct check_conflict *conflict);

// What check_unlock() calls if something was found: for new pairs of lines it writes the files again and logs them,
// without the lock, since the first waits for a disk and the second calls the program.
// Returns WEIR_OK, or, if a conflict is to be refused, which no hint is and none that a suppression matches, the error
// for that: WEIR_ERROR_INVALID, with the finding as message, which was reported to the host.
WEIR_COLD weir_status check_unlock_and_tell(struct check *check);

// Of struct weir_check_extension, whose user is the link's state.
size_t check_findings_count(void *user);
size_t check_findings_error_count(void *user);
bool check_findings_get(void *user, size_t index, struct weir_check_finding *out_finding,
                        size_t size);

// words.c

// "copy", "host access"; "operation" for a kind that is not known.
const char *check_operation_name(uint32_t operation);
// One sentence, without the full stop, and what to add where. The texts of the conflict are not NULL.
void check_words_write(const struct check_conflict *conflict, struct weir_long_text *message,
                       struct weir_long_text *remedy);

static inline void check_lock(struct check *check)
{
    check_inside++;
    weir_lock_take(&check->lock);
}

// Releases the lock and tells what was found. Returns the error of a finding with `report = fail`.
static inline weir_status check_unlock(struct check *check)
{
    if (check->found_more)
        return check_unlock_and_tell(check);
    weir_lock_release(&check->lock);
    check_inside--;
    return WEIR_OK;
}

// host.c

weir_status check_host_note(const struct weir_link *link, const struct weir_host_note *note);
// The queue and the place of the host call of this link that the calling thread runs, or NULL.
struct check_actor *check_call_place(const struct check *check, uint64_t *out_count);
// So many of the queue's host calls have returned, or never will.
void check_calls_end(struct check *check, struct check_queue *queue, uint32_t count);

// verify.c

// Verifies the launch, or those of a graph. `*out_done`: nothing is left to hand on. Returns the
// error of a finding with `report = fail`, or one of the device.
weir_status check_verify(const struct weir_link *link, weir_queue *queue,
                         const struct weir_operation *operation, bool *out_done);

#endif
