// The notes to plugins of what the host does, observed with the plugin `notes`: each has the line
// of its call, also if the event was known to be complete before, and the library's own queries
// send none.
#include <poll.h>
#include <unistd.h>

#include "tests/plugins/notes/notes.h"
#include "tests/plugins/rig.h"

enum {
    SIZE = 64
};

struct noted {
    struct rig rig;
    const struct notes *notes;
};

static bool start(struct noted *noted, const char *plugins, const char *sections)
{
    const bool begun = rig_begin(&noted->rig, plugins, sections);
    noted->notes = weir_runtime_extension(noted->rig.runtime, "notes");
    return begun && noted->notes;
}

#define NOTES_TEST(name, plugins, sections)                                           \
    WEIR_TEST_WITH(Notes, name, struct noted, noted, start(noted, plugins, sections), \
                   rig_finish(&noted->rig))

// Note `index`; one of nothing, and the test fails, if there are not so many.
static const struct weir_host_note *note_of(const struct noted *noted, size_t index)
{
    static const struct weir_host_note none;
    EXPECT_UINT_LT(index, noted->notes->count);
    return index < noted->notes->count ? &noted->notes->list[index] : &none;
}

static void expect_complete(const struct noted *noted, size_t index, struct weir_event event,
                            uint32_t flags, int line)
{
    const struct weir_host_note *note = note_of(noted, index);
    EXPECT_INT_EQ(note->kind, WEIR_HOST_NOTE_COMPLETE);
    EXPECT_INT_EQ(note->flags, flags);
    EXPECT_INT_EQ(note->line, line);
    EXPECT_STR_EQ(note->file, __FILE__);
    EXPECT_TRUE(note->u.complete.producer == noted->rig.up);
    EXPECT_TRUE(note->u.complete.event.queue == event.queue);
    EXPECT_TRUE(note->u.complete.event.sequence == event.sequence);
    EXPECT_INT_EQ(note->u.complete.status, WEIR_OK);
}

NOTES_TEST(EachCallAboutAnEvent, "notes", "")
{
    struct weir_event events[2];
    int lines[8];
    size_t index;
    uint64_t time_ns;
    for (size_t i = 0; i < 2; i++)
        ASSERT_OK(weir_queue_record(noted->rig.up, &events[i]));
    EXPECT_UINT_EQ(noted->notes->count, 0);

    EXPECT_OK(weir_event_sync(events[1], WEIR_FOREVER)), lines[0] = __LINE__;
    EXPECT_OK(weir_event_sync(events[0], WEIR_FOREVER)), lines[1] = __LINE__;
    EXPECT_OK(weir_event_query(events[0])), lines[2] = __LINE__;
    EXPECT_OK(weir_event_error(events[1])), lines[3] = __LINE__;
    EXPECT_OK(weir_event_sync_any(events, 2, WEIR_FOREVER, &index)), lines[4] = __LINE__;
    EXPECT_OK(weir_event_sync_all(events, 2, WEIR_FOREVER)), lines[5] = __LINE__;
    EXPECT_INT_EQ(weir_event_time_ns(events[1], &time_ns), WEIR_ERROR_INVALID), lines[6] = __LINE__;
    EXPECT_OK(weir_event_sync(events[1], WEIR_FOREVER - 1)), lines[7] = __LINE__;

    const uint32_t waited = WEIR_HOST_NOTE_WAITED;
    EXPECT_UINT_EQ(noted->notes->count, 9);
    expect_complete(noted, 0, events[1], waited, lines[0]);
    expect_complete(noted, 1, events[0], waited, lines[1]);
    expect_complete(noted, 2, events[0], 0, lines[2]);
    expect_complete(noted, 3, events[1], 0, lines[3]);
    expect_complete(noted, 4, events[0], 0, lines[4]);
    expect_complete(noted, 5, events[0], waited, lines[5]);
    expect_complete(noted, 6, events[1], waited, lines[5]);
    expect_complete(noted, 7, events[1], 0, lines[6]);
    expect_complete(noted, 8, events[1], 0, lines[7]);
}

// A failed event has ended too, and recovery waits for the rest.
NOTES_TEST(FailureAndRecovery, "notes", "")
{
    struct weir_event event;
    ASSERT_OK(weir_queue_host_call(noted->rig.up, rig_fail_call, NULL));
    WEIR_IGNORE(weir_queue_record(noted->rig.up, &event));
    const int line = __LINE__ + 1;
    const weir_status status = weir_queue_sync(noted->rig.up, WEIR_FOREVER);
    EXPECT_INT_EQ(status, WEIR_ERROR_HOST_CALL);
    const size_t before = noted->notes->count;
    if (before > 0) { // unless the record was refused already
        EXPECT_INT_EQ(note_of(noted, 0)->u.complete.status, WEIR_ERROR_HOST_CALL);
        EXPECT_INT_EQ(note_of(noted, 0)->line, line);
    }
    EXPECT_OK(weir_queue_recover(noted->rig.up));
    ASSERT_UINT_EQ(noted->notes->count, before + 1);
    EXPECT_INT_EQ(note_of(noted, before)->kind, WEIR_HOST_NOTE_COMPLETE);
    EXPECT_INT_EQ(note_of(noted, before)->u.complete.status, WEIR_OK);
    EXPECT_STR_EQ(note_of(noted, before)->file, __FILE__);
}

struct late_call {
    weir_queue *queue;
    int ends[2]; // of a pipe that the call reads
    bool submitted;
};

static void read_pipe(void *user, weir_status status)
{
    const struct late_call *late = user;
    char byte;
    EXPECT_INT_EQ(status, WEIR_ERROR_HOST_CALL);
    EXPECT_INT_EQ(read(late->ends[0], &byte, 1), 1);
}

static void submit_late(void *user)
{
    struct late_call *late = user;
    if (!late->submitted)
        EXPECT_OK(weir_queue_host_call_always(late->queue, read_pipe, late));
    late->submitted = true;
}

// A call that always runs may come while the queue is recovered, after the wait. It is not told to be
// complete, since it runs still.
NOTES_TEST(RecoveryTellsOfWhatHasEnded, "notes", "")
{
    struct late_call late = {.queue = noted->rig.up};
    ASSERT_INT_EQ(pipe(late.ends), 0);
    ASSERT_OK(weir_queue_host_call(noted->rig.up, rig_fail_call, NULL)); // operation 1
    while (weir_queue_flush(noted->rig.up) == WEIR_OK &&
           weir_queue_fill(noted->rig.up, noted->rig.frame, 0, 0, "x", 1) == WEIR_OK) {
    }
    *noted->notes->hook = (struct notes_hook){.function = submit_late, .user = &late};
    EXPECT_OK(weir_queue_recover(noted->rig.up));
    *noted->notes->hook = (struct notes_hook){.function = NULL};
    EXPECT_TRUE(late.submitted);
    ASSERT_UINT_EQ(noted->notes->count, 1);
    const struct weir_event told = note_of(noted, 0)->u.complete.event;

    const struct weir_event end = test_record(noted->rig.up);
    EXPECT_INT_EQ(weir_event_query(end), WEIR_NOT_READY);
    EXPECT_TRUE(told.sequence + 2 == end.sequence); // the late call is between them
    ASSERT_INT_EQ(write(late.ends[1], "x", 1), 1);
    EXPECT_OK(weir_event_sync(end, WEIR_FOREVER));
    close(late.ends[0]);
    close(late.ends[1]);
}

static void expect_access(const struct noted *noted, size_t index, enum weir_host_note_kind kind,
                          size_t size, weir_access access)
{
    const struct weir_host_note *note = note_of(noted, index);
    EXPECT_INT_EQ(note->kind, kind);
    EXPECT_STR_EQ(note->file, __FILE__);
    EXPECT_UINT_EQ(note->u.access.size, size);
    EXPECT_INT_EQ(note->u.access.access, access);
}

NOTES_TEST(Accesses, "notes", "[notes]\nrefused_bytes = 7")
{
    void *pointer;
    EXPECT_OK(weir_host_begin(noted->rig.frame, 8, 16, WEIR_ACCESS_WRITE, &pointer));
    EXPECT_OK(weir_host_end(noted->rig.frame, 8, 16, WEIR_ACCESS_WRITE));
    EXPECT_INT_EQ(weir_host_begin(noted->rig.frame, 8, 7, WEIR_ACCESS_READ, &pointer),
                  WEIR_ERROR_INVALID);
    EXPECT_TRUE(pointer == NULL);
    EXPECT_STR_EQ(weir_last_error()->message, "an access of 7 bytes was to be refused");
    ASSERT_UINT_EQ(noted->notes->count, 3);
    expect_access(noted, 0, WEIR_HOST_NOTE_BEGIN, 16, WEIR_ACCESS_WRITE);
    expect_access(noted, 1, WEIR_HOST_NOTE_END, 16, WEIR_ACCESS_WRITE);
    EXPECT_TRUE(note_of(noted, 0)->u.access.buffer == noted->rig.frame);
    EXPECT_UINT_EQ(note_of(noted, 0)->u.access.offset, 8);
}

// A plugin that refuses a begin which the next link has taken tells that its end.
NOTES_TEST(ABeginThatIsRefusedLater, "check, notes", "[check]\nreport = fail")
{
    void *pointer;
    EXPECT_OK(weir_queue_fill(noted->rig.up, noted->rig.frame, 0, SIZE, "x", 1));
    EXPECT_INT_EQ(weir_host_begin(noted->rig.frame, 8, 16, WEIR_ACCESS_READ, &pointer),
                  WEIR_ERROR_INVALID);
    EXPECT_TRUE(pointer == NULL);
    const int line = __LINE__ - 3;
    ASSERT_UINT_EQ(noted->notes->count, 2);
    expect_access(noted, 0, WEIR_HOST_NOTE_BEGIN, 16, WEIR_ACCESS_READ);
    expect_access(noted, 1, WEIR_HOST_NOTE_END, 16, WEIR_ACCESS_READ);
    const struct weir_host_note *end = note_of(noted, 1);
    EXPECT_TRUE(end->u.access.buffer == noted->rig.frame);
    EXPECT_UINT_EQ(end->u.access.offset, 8);
    EXPECT_INT_EQ(end->flags, 0);
    EXPECT_INT_EQ(end->line, line);
    EXPECT_OK(weir_queue_sync(noted->rig.up, WEIR_FOREVER));
}

// The staging memory of both directions, and the syncs on it.
NOTES_TEST(UploadsAndDownloads, "notes", "")
{
    char bytes[SIZE] = "some bytes";
    char back[SIZE];
    EXPECT_OK(weir_upload(noted->rig.up, noted->rig.frame, 0, bytes, SIZE));
    ASSERT_UINT_EQ(noted->notes->count, 3);
    expect_access(noted, 0, WEIR_HOST_NOTE_BEGIN, SIZE, WEIR_ACCESS_WRITE);
    expect_access(noted, 1, WEIR_HOST_NOTE_END, SIZE, WEIR_ACCESS_WRITE);
    EXPECT_INT_EQ(note_of(noted, 2)->kind, WEIR_HOST_NOTE_COMPLETE);
    EXPECT_OK(weir_download(noted->rig.up, back, noted->rig.frame, 0, SIZE));
    EXPECT_STR_EQ(back, bytes);
    ASSERT_UINT_EQ(noted->notes->count, 6);
    EXPECT_INT_EQ(note_of(noted, 3)->kind, WEIR_HOST_NOTE_COMPLETE);
    expect_access(noted, 4, WEIR_HOST_NOTE_BEGIN, SIZE, WEIR_ACCESS_READ);
    expect_access(noted, 5, WEIR_HOST_NOTE_END, SIZE, WEIR_ACCESS_READ);
    for (size_t i = 0; i < 6; i++)
        EXPECT_INT_EQ(note_of(noted, i)->flags,
                      note_of(noted, i)->kind == WEIR_HOST_NOTE_COMPLETE
                          ? WEIR_HOST_NOTE_INTERNAL | WEIR_HOST_NOTE_WAITED
                          : WEIR_HOST_NOTE_INTERNAL);
}

// A refused access of the staging memory is the upload's error, and the next one works.
NOTES_TEST(RefusedUpload, "notes", "[notes]\nrefused_bytes = 7")
{
    EXPECT_INT_EQ(weir_upload(noted->rig.up, noted->rig.frame, 0, "1234567", 7),
                  WEIR_ERROR_INVALID);
    EXPECT_STR_EQ(weir_last_error()->message, "an access of 7 bytes was to be refused");
    EXPECT_OK(weir_upload(noted->rig.up, noted->rig.frame, 0, "12345678", 8));
}

NOTES_TEST(TheThreadOfDescriptors, "notes", "")
{
    int fd;
    const struct weir_event event = test_record(noted->rig.up);
    ASSERT_OK(weir_event_fd(event, &fd));
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    EXPECT_INT_EQ(poll(&waiting, 1, 60000), 1);
    close(fd);
    ASSERT_UINT_EQ(noted->notes->count, 1);
    EXPECT_INT_EQ(note_of(noted, 0)->flags, WEIR_HOST_NOTE_INTERNAL);
    EXPECT_TRUE(note_of(noted, 0)->u.complete.event.sequence == event.sequence);
}

// Calls about events of a queue that is gone reach no plugin, so its end is told.
NOTES_TEST(ADestroyedQueue, "notes", "")
{
    weir_queue *queue;
    ASSERT_OK(weir_queue_create(noted->rig.device, NULL, &queue));
    const struct weir_event event = test_record(queue);
    weir_queue_destroy(&queue);
    EXPECT_OK(weir_event_sync(event, WEIR_FOREVER));
    ASSERT_UINT_EQ(noted->notes->count, 1);
    EXPECT_INT_EQ(note_of(noted, 0)->kind, WEIR_HOST_NOTE_COMPLETE);
    EXPECT_INT_EQ(note_of(noted, 0)->flags, WEIR_HOST_NOTE_INTERNAL);
    EXPECT_TRUE(note_of(noted, 0)->u.complete.event.queue == event.queue);
    EXPECT_TRUE(note_of(noted, 0)->u.complete.event.sequence >= event.sequence);
}

// A plugin is told what the program asked for, and not the size of the block.
NOTES_TEST(SizesOfPoolOperations, "notes", "")
{
    own_pool pool = NULL;
    weir_buffer *buffer;
    ASSERT_OK(weir_pool_create(noted->rig.device, NULL, &pool));
    ASSERT_OK(weir_pool_allocate(pool, noted->rig.up, 1000, &buffer));
    EXPECT_OK(weir_pool_free(noted->rig.up, &buffer));
    EXPECT_UINT_EQ(noted->notes->allocated_bytes, 1000);
    EXPECT_UINT_EQ(noted->notes->freed_bytes, 1000);
}

// Callers may keep their place to themselves.
NOTES_TEST(WithoutPlace, "notes", "")
{
    struct weir_event event;
    ASSERT_OK(weir_queue_record(noted->rig.up, &event));
    EXPECT_OK(weir_event_sync_at(event, WEIR_FOREVER, NULL, 0));
    EXPECT_OK(weir_event_query_at(event, NULL, 0));
    EXPECT_OK(weir_event_error_at(event, NULL, 0));
    EXPECT_OK(weir_event_sync_all_at(&event, 1, WEIR_FOREVER, NULL, 0));
    EXPECT_OK(weir_queue_recover_at(noted->rig.up, NULL, 0));
    ASSERT_UINT_EQ(noted->notes->count, 4);
    for (size_t i = 0; i < noted->notes->count; i++) {
        EXPECT_TRUE(note_of(noted, i)->file == NULL);
        EXPECT_INT_EQ(note_of(noted, i)->line, 0);
    }
}

NOTES_TEST(Extension, "notes", "")
{
    EXPECT_TRUE(weir_runtime_extension(noted->rig.runtime, "notes") != NULL);
    EXPECT_TRUE(weir_runtime_extension(noted->rig.runtime, "another") == NULL);
    EXPECT_TRUE(weir_runtime_extension(noted->rig.runtime, NULL) == NULL);
    EXPECT_TRUE(weir_runtime_extension(NULL, "notes") == NULL);
}
