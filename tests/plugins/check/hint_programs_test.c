// Random programs: one that is right must be right without any wait or sync that is told.
#include <stdlib.h>
#include <string.h>

#include "tests/plugins/check/hints_rig.h"
#include "tests/support/test.h"

#define EXPECT_OK(call) EXPECT_INT_EQ(call, WEIR_OK)

enum {
    STEPS = 14,
    PROGRAMS = 4000
};

struct step {
    // 0 to 2: a fill; 3, 4: a copy; 5: the queue is synced; 6: an event is; 16: a wait with a limit,
    // which is not left out; 17: the host's access; 18: a download; else: a wait
    int kind;
    int queue;
    int other;
    size_t offset;
    size_t size;
};

static unsigned next_number(unsigned *state, unsigned limit)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 16) % limit;
}

static void make_program(struct step *steps, unsigned seed)
{
    for (int i = 0; i < STEPS; i++) {
        steps[i].kind = (int)next_number(&seed, 19);
        steps[i].queue = (int)next_number(&seed, 3);
        steps[i].other = (steps[i].queue + 1 + (int)next_number(&seed, 2)) % 3;
        steps[i].offset = (size_t)next_number(&seed, 3) * (SIZE / 4);
        steps[i].size = (1 + (size_t)next_number(&seed, 2)) * (SIZE / 4);
    }
}

static void run_step(struct rig *rig, const struct step *step, int line)
{
    weir_queue *const queues[] = {rig->one, rig->two, rig->three};
    weir_queue *queue = queues[step->queue];
    weir_buffer *buffer = step->other == 0 ? rig->a : rig->b;
    struct weir_event event;
    char bytes[SIZE];

    if (step->kind <= 2) {
        fill(queue, buffer, step->offset, step->size);
    } else if (step->kind <= 4) {
        EXPECT_OK(
            weir_queue_copy(queue, rig->host, step->offset, buffer, step->offset, step->size));
    } else if (step->kind == 5) {
        sync_at(queue, line);
    } else if (step->kind == 6) {
        EXPECT_OK(weir_queue_record(queue, &event));
        EXPECT_OK(weir_event_sync_at(event, WEIR_FOREVER, "syncs", line));
    } else if (step->kind == 16) {
        EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER - 1));
    } else if (step->kind == 17) {
        use(rig->host, step->other == 0 ? WEIR_ACCESS_READ : WEIR_ACCESS_WRITE);
    } else if (step->kind == 18) {
        EXPECT_OK(weir_download(queue, bytes, buffer, step->offset, step->size));
    } else {
        wait_for(queue, queues[step->other], line);
    }
}

// Without step `left_out`.
static void run_program(const struct step *steps, int left_out)
{
    struct rig rig;
    rig_open(&rig);
    for (int i = 0; i < STEPS; i++)
        if (i != left_out)
            run_step(&rig, &steps[i], i + 1);
    rig_close(&rig);
}

static bool is_right(void)
{
    return !strstr(told, "nothing orders the two") && !strstr(told, "may still");
}

// One after the other. Returns how many there are.
static int leave_out(const struct step *steps, const char *hints, const char *word)
{
    int count = 0;
    for (const char *at = hints; (at = strstr(at, word)); at = strchr(at, '\n')) {
        run_program(steps, (int)strtol(at + strlen(word), NULL, 10) - 1);
        EXPECT_TRUE(is_right());
        count++;
    }
    return count;
}

WEIR_TEST(CheckHintPrograms, RandomProgramsWithoutAWaitThatIsTold)
{
    struct step steps[STEPS];
    int right = 0;
    int waits = 0, syncs = 0;
    for (unsigned seed = 1; seed <= PROGRAMS; seed++) {
        static char first[sizeof told];
        make_program(steps, seed);
        run_program(steps, -1);
        if (!is_right())
            continue;
        right++;
        memcpy(first, told, sizeof first);
        waits += leave_out(steps, first, "at waits:");
        syncs += leave_out(steps, first, "at syncs:");
    }
    EXPECT_INT_GT(right, PROGRAMS / 4);
    EXPECT_INT_GT(waits, PROGRAMS / 10);
    EXPECT_INT_GT(syncs, PROGRAMS / 10);
}
