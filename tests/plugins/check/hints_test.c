// Hints: waits and syncs that no use of memory needs, and waits because of different bytes of one buffer, are told;
// beside each the like of it that must not be.
#include <pthread.h>

#include "core/object/device.h"
#include "tests/plugins/check/rig.h"

// At line `line` of a file "syncs"; 0: at none of its own.
static void sync_at(weir_queue *queue, int line)
{
    if (line == 0)
        rig_sync(queue);
    else
        EXPECT_OK(weir_queue_sync_at(queue, WEIR_FOREVER, "syncs", line));
}

// The wait is at line `line` of a file "waits".
static void wait_for(weir_queue *queue, weir_queue *other, int line)
{
    const struct weir_event event = test_record(other);
    EXPECT_OK(weir_queue_wait_at(queue, event, "waits", line));
}

static const char with_hints[] = "hints = 1";

// Programs of a table. A step is a word, then queues by number, buffers by letter, and a line:
//
//     fill 1 a lo    a fill on queue one of buffer a: its lower half, its higher one (hi), the lower one and a
//                    byte more (more), or all of it
//     copy 2 b a lo  a copy on queue two, to b from a
//     wait 2 1 10    queue two waits, at line 10, for what queue one has
//     sync 1 10      the host waits for queue one at line 10; `await 10` for the last event
//     record 1       of queue one, the last event; `limit`, `query` and `error` are calls about that
//     take 2 10      queue two waits, at line 10, for the last event
//     use h r        an access of the host, to read or to write (w); `down 1 a` is a download
//     call 1         a host call that uses nothing; `look 1` one that uses the host's buffer
//     end 2, make 2  of the queue; `free b` of a buffer; `native 2` takes the queue's native one

static weir_status look(void *user)
{
    void *pointer;
    const weir_status status = weir_host_begin(user, 0, SIZE, WEIR_ACCESS_WRITE, &pointer);
    return status < 0 ? status : weir_host_end(user, 0, SIZE, WEIR_ACCESS_WRITE);
}

struct words {
    char verb[8], first[8], second[8], third[8], fourth[8];
};

static weir_queue **queue_of(struct rig *rig, const char *word)
{
    return &rig->queues[word[0] - '1'];
}

static weir_buffer **buffer_of(struct rig *rig, const char *word)
{
    return word[0] == 'a' ? &rig->a : word[0] == 'b' ? &rig->b : &rig->host;
}

static int line_of(const char *word)
{
    return (int)strtol(word, NULL, 10);
}

static size_t offset_of(const char *part)
{
    return strcmp(part, "hi") == 0 ? SIZE / 2 : 0;
}

static size_t size_of(const char *part)
{
    return !*part ? SIZE : SIZE / 2 + (strcmp(part, "more") == 0);
}

// A step that uses memory, or none.
static bool do_work(struct rig *rig, const struct words *w)
{
    weir_queue *queue = *queue_of(rig, w->first);
    char bytes[SIZE];
    if (strcmp(w->verb, "fill") == 0)
        rig_fill(queue, *buffer_of(rig, w->second), offset_of(w->third), size_of(w->third));
    else if (strcmp(w->verb, "copy") == 0)
        EXPECT_OK(weir_queue_copy(queue, *buffer_of(rig, w->second), 0, *buffer_of(rig, w->third),
                                  offset_of(w->fourth), size_of(w->fourth)));
    else if (strcmp(w->verb, "down") == 0)
        EXPECT_OK(weir_download(queue, bytes, *buffer_of(rig, w->second), 0, SIZE));
    else if (strcmp(w->verb, "call") == 0)
        EXPECT_OK(weir_queue_host_call(queue, own_host_nothing, NULL));
    else if (strcmp(w->verb, "look") == 0)
        EXPECT_OK(weir_queue_host_call(queue, look, rig->host));
    else if (strcmp(w->verb, "record") == 0)
        EXPECT_OK(weir_queue_record(queue, &rig->event));
    else
        return false;
    return true;
}

static bool do_object(struct rig *rig, const struct words *w)
{
    struct weir_native_queue native = {.struct_size = sizeof native};
    const struct weir_link *first = rig->device->first;
    if (strcmp(w->verb, "end") == 0)
        weir_queue_destroy(queue_of(rig, w->first));
    else if (strcmp(w->verb, "make") == 0)
        *queue_of(rig, w->first) = test_queue(rig->device, "made");
    else if (strcmp(w->verb, "free") == 0)
        weir_buffer_destroy(buffer_of(rig, w->first));
    else if (strcmp(w->verb, "native") == 0) // where there are none, the front end asks no plugin
        WEIR_IGNORE(first->ops->queue_native(first, *queue_of(rig, w->first), &native));
    else
        return false;
    return true;
}

static bool do_host(struct rig *rig, const struct words *w)
{
    if (strcmp(w->verb, "use") == 0)
        rig_use(*buffer_of(rig, w->first),
                w->second[0] == 'r' ? WEIR_ACCESS_READ : WEIR_ACCESS_WRITE);
    else if (strcmp(w->verb, "wait") == 0)
        wait_for(*queue_of(rig, w->first), *queue_of(rig, w->second), line_of(w->third));
    else if (strcmp(w->verb, "take") == 0)
        EXPECT_OK(
            weir_queue_wait_at(*queue_of(rig, w->first), rig->event, "waits", line_of(w->second)));
    else if (strcmp(w->verb, "sync") == 0)
        sync_at(*queue_of(rig, w->first), line_of(w->second));
    else if (strcmp(w->verb, "await") == 0)
        EXPECT_OK(weir_event_sync_at(rig->event, WEIR_FOREVER, "syncs", line_of(w->first)));
    else if (strcmp(w->verb, "limit") == 0)
        EXPECT_OK(weir_event_sync(rig->event, WEIR_FOREVER - 1));
    else if (strcmp(w->verb, "query") == 0)
        EXPECT_OK(weir_event_query(rig->event));
    else if (strcmp(w->verb, "error") == 0)
        EXPECT_OK(weir_event_error(rig->event));
    else
        return false;
    return true;
}

static void run_text(struct rig *rig, const char *steps)
{
    for (const char *step = steps; step; step = strchr(step, ',') ? strchr(step, ',') + 1 : NULL) {
        struct words w = {.verb = ""};
        char text[40];
        snprintf(text, sizeof text, "%.*s", (int)strcspn(step, ","), step);
        (void)sscanf(text, "%7s %7s %7s %7s %7s", w.verb, w.first, w.second, w.third, w.fourth);
        if (!do_host(rig, &w) && !do_object(rig, &w) && !do_work(rig, &w))
            weir_test_fail(__FILE__, __LINE__, "no step '%s'", text);
    }
}

struct row {
    const char *name;
    const char *steps;
    const char *told;   // words, with | between them; "": nothing is told
    const char *others; // words that are not told
};

static void expect_words(const char *words, bool told)
{
    char word[128];
    for (size_t length; *words; words += length + (words[length] == '|')) {
        length = strcspn(words, "|");
        snprintf(word, sizeof word, "%.*s", (int)length, words);
        if (told)
            EXPECT_CONTAINS(rig_told, word);
        else
            EXPECT_NOT_CONTAINS(rig_told, word);
    }
}

static void run_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct rig rig;
        weir_test_note("%s", rows[i].name);
        rig_open(&rig, with_hints);
        run_text(&rig, rows[i].steps);
        rig_close(&rig);
        expect_words(rows[i].told, true);
        expect_words(rows[i].others, false);
        if (!*rows[i].told)
            EXPECT_STR_EQ(rig_told, "");
    }
    weir_test_note(NULL);
}

WEIR_TEST(CheckHints, Waits)
{
    static const struct row rows[] = {
        {"that nothing needs", "fill 1 a, wait 2 1 10, copy 2 b h",
         "needless-wait: the wait on 'two' at waits:10|'one'|remove the wait of waits:10", ""},
        {"that a use needs", "fill 1 a, wait 2 1 10, copy 2 b a", "", ""},
        {"of a line that is needed in one of two rounds",
         "fill 1 a, wait 2 1 10, copy 2 b a, wait 1 2 11, fill 1 a, wait 2 1 10, copy 2 b h, wait "
         "1 2 11",
         "", ""},
        {"of a line that is never needed",
         "fill 1 a, wait 2 1 10, copy 2 b h, fill 1 a, wait 2 1 10, copy 2 b h",
         "needless-wait|waits:10", ""},
        {"that a later one contains", "fill 1 a, wait 2 1 10, fill 1 h, wait 2 1 11, copy 2 b a",
         "waits:10", "waits:11"},
        {"through a queue that uses nothing of it",
         "fill 1 a, wait 2 1 10, wait 3 2 11, copy 3 b a", "", ""},
        {"through a third queue for nothing",
         "fill 1 a, wait 2 1 10, fill 2 h, wait 3 2 11, copy 3 b h", "needless-wait|waits:10",
         "waits:11"},
        {"through a queue that has ended when the use comes: then the host knew",
         "fill 1 a, wait 2 1 10, wait 3 2 11, end 2, copy 3 b a, make 2, wait 3 1 12, wait 2 3 13, "
         "fill 2 b",
         "needless-wait|waits:11", "waits:10|waits:13"},
        {"that orders reads, so that a write is after both",
         "copy 1 b a, wait 2 1 10, copy 2 h a, wait 3 2 11, fill 3 a", "", ""},
        {"through which the host knows", "fill 1 a, wait 2 1 10, sync 2 0", "", ""},
        {"for what the host knew", "fill 1 a, wait 2 1 10, sync 1 0, sync 2 0",
         "needless-wait|waits:10", ""},
        {"for what the host may not know another time",
         "fill 1 a, record 1, wait 2 1 10, limit, query, copy 3 h a, copy 2 b a", "", ""},
        {"for what the host has waited for, here and another time",
         "fill 1 a, record 1, wait 2 1 10, await 10, copy 2 b a", "needless-wait|waits:10",
         "needless-sync"},
        {"for what another one brings, always, and of a line that brings something once",
         "fill 1 a, record 1, wait 2 1 10, take 2 11, copy 2 b a, wait 1 2 12, fill 1 a, record 1, "
         "wait 2 1 10, take 2 11, take 2 13, copy 2 b a, wait 1 2 12, fill 1 a, record 1, take 2 "
         "13, copy 2 b a",
         "implied-wait: the wait on 'two' at waits:11", "waits:10|waits:13"},
        {"before a host call", "fill 1 a, wait 2 1 10, call 2", "", ""},
        {"for a host call", "look 1, wait 2 1 10, copy 2 b h", "", ""},
        {"and a finding", "fill 1 a, wait 2 1 10, fill 1 a, copy 2 b a", "read-after-write",
         "needless-wait"},
        {"and a native queue", "fill 1 a, wait 2 1 10, native 2", "", ""},
    };
    run_rows(rows, sizeof rows / sizeof *rows);
}

WEIR_TEST(CheckHints, FalseSharing)
{
    static const struct row rows[] = {
        {"of other bytes", "fill 1 a lo, wait 2 1 10, fill 2 a hi",
         "false-sharing|'two'|buffer 'a'", "needless-wait"},
        {"not of one byte", "fill 1 a more, wait 2 1 10, fill 2 a hi", "", ""},
        {"not of other bytes, and the same of another buffer",
         "fill 1 a lo, fill 1 b, wait 2 1 10, fill 2 a hi, fill 2 b", "", ""},
        {"not of reads", "copy 1 b a lo, wait 2 1 10, copy 2 h a hi", "needless-wait|waits:10",
         "false-sharing"},
    };
    run_rows(rows, sizeof rows / sizeof *rows);
}

WEIR_TEST(CheckHints, Syncs)
{
    static const struct row rows[] = {
        {"of each round",
         "fill 1 a, copy 1 h a, sync 1 10, fill 1 a, copy 1 h a, sync 1 10, sync 1 11, copy 1 h a, "
         "sync 1 12, use h r",
         "needless-sync: the host at syncs:10 waits for 'one'|remove the sync of syncs:10|syncs:11",
         "syncs:12"},
        {"of each round, and a read",
         "copy 1 h a, sync 1 10, copy 1 h a, sync 1 10, use h r, copy 1 h a, sync 1 11, copy 1 h a",
         "syncs:11", "syncs:10"},
        {"for none of the bytes that the host reads",
         "use h r, copy 1 a h, fill 2 b, sync 1 10, sync 2 11, use h r, copy 1 a h, fill 2 b",
         "syncs:10|syncs:11", ""},
        {"of which one stays, whichever the host needs",
         "fill 1 h, sync 1 10, fill 1 a, sync 1 11, use h r, fill 1 a", "syncs:10", "syncs:11"},
        {"before a write of the source", "copy 1 a h, sync 1 10, use h w", "", ""},
        {"before a download, which waits for its own queue",
         "fill 1 a, sync 1 10, down 1 a, fill 1 a, sync 1 11, down 2 a", "syncs:10", "syncs:11"},
        {"through another queue", "copy 1 h a, wait 2 1 10, record 2, await 11, use h r", "", ""},
        {"of an event", "copy 1 h a, record 1, await 10, copy 1 h a",
         "needless-sync: the host at syncs:10|the record on 'one'", ""},
        {"between two queues", "fill 1 a, sync 1 10, copy 2 b a", "", ""},
        {"and a query, or a wait with a limit, which may say something else",
         "fill 1 a, record 1, sync 1 10, query, fill 1 a, record 1, sync 1 11, limit, record 1, "
         "sync 1 12, error, fill 1 a",
         "", ""},
        {"before the end of a buffer", "fill 1 b, sync 1 10, free b", "", ""},
        {"before the end of a queue",
         "fill 2 b, sync 2 10, end 2, make 2, fill 2 b, sync 2 11, fill 2 b", "syncs:11",
         "syncs:10"},
        {"of a host call, which uses what is the program's",
         "call 1, sync 1 10, fill 2 b, sync 2 11, call 1", "", ""},
        {"and a finding", "fill 1 a, sync 1 10, fill 1 a, copy 2 b a", "read-after-write",
         "needless-sync"},
    };
    run_rows(rows, sizeof rows / sizeof *rows);
}

// Nothing is told.
#define SILENT_TEST(name)                                                                        \
    WEIR_TEST_WITH(CheckHints, name, struct rig, rig, (rig_open(rig, with_hints), rig->runtime), \
                   (rig_close(rig), EXPECT_STR_EQ(rig_told, "")))

static weir_status failing(void *user)
{
    return WEIR_ERROR_HOST_CALL;
}

RIG_TEST(CheckHints, SyncThatFails, with_hints)
{
    weir_queue *queue = test_queue(rig->device, "failing");
    EXPECT_OK(weir_queue_host_call(queue, failing, NULL));
    EXPECT_OK(weir_queue_record(rig->queues[0], &rig->event));
    sync_at(rig->queues[0], 10);
    EXPECT_INT_EQ(weir_queue_sync_at(queue, WEIR_FOREVER, "syncs", 11), WEIR_ERROR_HOST_CALL);
    EXPECT_OK(weir_queue_recover(queue));
    weir_queue_destroy(&queue);
    rig_close(rig);
    EXPECT_NOT_CONTAINS(rig_told, "syncs:11");
}

// Another thread may do so elsewhere another time.
static void *sync_in_thread(void *user)
{
    rig_sync(user);
    return NULL;
}

SILENT_TEST(SyncsOfTwoThreads)
{
    pthread_t thread;
    run_text(rig, "fill 1 a, sync 1 10");
    ASSERT_INT_EQ(pthread_create(&thread, NULL, sync_in_thread, rig->queues[1]), 0);
    pthread_join(thread, NULL);
}

SILENT_TEST(SyncAndMemoryOfTheProgram)
{
    static _Alignas(4096) char memory[4096];
    own_buffer wrapped = NULL;
    ASSERT_OK(weir_buffer_wrap(rig->device,
                               WEIR_PARAMS(weir_wrap, .pointer = memory, .size = sizeof memory),
                               &wrapped));
    run_text(rig, "fill 1 a, sync 1 10");
}

// So many uses that those which the host knows of are dropped.
SILENT_TEST(SyncBeforeManyUses)
{
    own_buffer large = test_buffer(rig->device, "large", 8192, WEIR_PLACE_DEVICE);
    rig_fill(rig->queues[0], large, 8190, 1);
    sync_at(rig->queues[0], 10);
    for (size_t i = 0; i < 2000; i++)
        rig_fill(rig->queues[0], large, 2 * i, 1);
    sync_at(rig->queues[0], 11);
    rig_fill(rig->queues[1], large, 8190, 1);
}

// Random programs: one that is right must be right without any wait or sync that is told.

enum {
    STEPS = 14,
    PROGRAMS = 800,
    STEP_SIZE = 40
};

static unsigned next_number(unsigned *state, unsigned limit)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 16) % limit;
}

// A step at that line. A wait with a limit is not left out.
static void make_step(char text[STEP_SIZE], int line, unsigned *seed)
{
    static const char *const parts[] = {"", "lo", "hi", "more"};
    const unsigned kind = next_number(seed, 19), queue = 1 + next_number(seed, 3);
    const unsigned other = 1 + (queue + next_number(seed, 2)) % 3;
    const char *part = parts[next_number(seed, 4)];
    const char buffer = other == 1 ? 'a' : 'b';
    if (kind <= 2)
        snprintf(text, STEP_SIZE, "fill %u %c %s", queue, buffer, part);
    else if (kind <= 4)
        snprintf(text, STEP_SIZE, "copy %u h %c %s", queue, buffer, part);
    else if (kind == 5)
        snprintf(text, STEP_SIZE, "sync %u %d", queue, line);
    else if (kind == 6)
        snprintf(text, STEP_SIZE, "record %u, await %d", queue, line);
    else if (kind == 7)
        snprintf(text, STEP_SIZE, "record %u, limit", queue);
    else if (kind == 8)
        snprintf(text, STEP_SIZE, "use h %c", other == 1 ? 'r' : 'w');
    else if (kind == 9)
        snprintf(text, STEP_SIZE, "down %u %c", queue, buffer);
    else
        snprintf(text, STEP_SIZE, "wait %u %u %d", queue, other, line);
}

// Without step `left_out`.
static void run_program(char steps[STEPS][STEP_SIZE], int left_out)
{
    struct rig rig;
    rig_open(&rig, with_hints);
    for (int i = 0; i < STEPS; i++)
        if (i != left_out)
            run_text(&rig, steps[i]);
    rig_close(&rig);
}

static bool is_right(void)
{
    return !strstr(rig_told, "nothing orders the two") && !strstr(rig_told, "may still");
}

// One after the other. Returns how many there are.
static int leave_out(char steps[STEPS][STEP_SIZE], const char *hints, const char *word)
{
    int count = 0;
    for (const char *at = hints; (at = strstr(at, word)); at = strchr(at, '\n')) {
        run_program(steps, (int)strtol(at + strlen(word), NULL, 10) - 1);
        EXPECT_TRUE(is_right());
        count++;
    }
    return count;
}

WEIR_TEST(CheckHints, RandomProgramsWithoutAWaitThatIsTold)
{
    char steps[STEPS][STEP_SIZE];
    int right = 0;
    int waits = 0, syncs = 0;
    for (unsigned seed = 1; seed <= PROGRAMS; seed++) {
        static char first[sizeof rig_told];
        unsigned state = seed;
        for (int i = 0; i < STEPS; i++)
            make_step(steps[i], i + 1, &state);
        run_program(steps, -1);
        if (!is_right())
            continue;
        right++;
        memcpy(first, rig_told, sizeof first);
        waits += leave_out(steps, first, "at waits:");
        syncs += leave_out(steps, first, "at syncs:");
    }
    EXPECT_INT_GT(right, PROGRAMS / 4);
    EXPECT_INT_GT(waits, PROGRAMS / 10);
    EXPECT_INT_GT(syncs, PROGRAMS / 10);
}
