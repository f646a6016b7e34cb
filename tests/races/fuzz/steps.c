// See the header.
#include <semaphore.h>

#include "tests/races/fuzz/steps.h"

static const unsigned char pattern = 0;

static struct slot *pick_slot(struct run *run, uint8_t byte)
{
    struct slot *slot = &run->slots[byte % (PLAIN + POOLED)];
    return slot->buffer ? slot : &run->slots[byte % PLAIN];
}

struct range pick_range(struct run *run, uint8_t buffer, uint8_t where, uint8_t length)
{
    struct range range = {pick_slot(run, buffer), where % ORACLE_BYTES, 0};
    const size_t room = ORACLE_BYTES - range.offset;
    const size_t most = length & 0x80 ? ORACLE_BYTES : 12;
    range.size = 1 + length % (room < most ? room : most);
    return range;
}

void use(struct run *run, int node, struct range range, weir_access access)
{
    oracle_use(run->oracle, node, range.slot->id, access, bits(range.offset, range.size));
}

// Operations.

static bool overlaps(struct range a, struct range b)
{
    return a.slot->buffer == b.slot->buffer &&
           (bits(a.offset, a.size) & bits(b.offset, b.size)) != 0;
}

void step_copy(struct run *run)
{
    const int queue = pick_queue(run, run->step[1]);
    const struct range dst = pick_range(run, run->step[2], run->step[3], run->step[4]);
    struct range src = pick_range(run, run->step[5], run->step[6], run->step[4]);
    const size_t size = dst.size < src.size ? dst.size : src.size;
    const struct range to = {dst.slot, dst.offset, size}, from = {src.slot, src.offset, size};

    if (overlaps(to, from))
        return;
    SAY(run, "q%d copy " RANGE " <- " RANGE, queue, WORDS_OF(to), WORDS_OF(from));
    ok(run, weir_queue_copy_at(run->queues[queue], to.slot->buffer, to.offset, from.slot->buffer,
                               from.offset, size, FILE_NAME, line(run)));
    const int node = add(run, queue);
    use(run, node, from, WEIR_ACCESS_READ);
    use(run, node, to, WEIR_ACCESS_WRITE);
}

void step_fill(struct run *run)
{
    const int queue = pick_queue(run, run->step[1]);
    const struct range dst = pick_range(run, run->step[2], run->step[3], run->step[4]);

    SAY(run, "q%d fill " RANGE, queue, WORDS_OF(dst));
    ok(run, weir_queue_fill_at(run->queues[queue], dst.slot->buffer, dst.offset, dst.size, &pattern,
                               1, FILE_NAME, line(run)));
    use(run, add(run, queue), dst, WEIR_ACCESS_WRITE);
}

void step_launch(struct run *run)
{
    const int queue = pick_queue(run, run->step[1]);
    const struct range a = pick_range(run, run->step[2], run->step[3], run->step[4]);
    const struct range b = pick_range(run, run->step[5], run->step[6], run->step[4]);
    const struct range c = pick_range(run, run->step[7], run->step[3], run->step[6]);
    const struct weir_argument arguments[] = {
        weir_in(a.slot->buffer, a.offset, a.size),
        weir_in(b.slot->buffer, b.offset, b.size),
        run->step[7] & 0x40 ? weir_inout(c.slot->buffer, c.offset, c.size)
                            : weir_out(c.slot->buffer, c.offset, c.size),
    };

    SAY(run, "q%d launch in " RANGE ", in " RANGE ", %s " RANGE, queue, WORDS_OF(a), WORDS_OF(b),
        run->step[7] & 0x40 ? "inout" : "out", WORDS_OF(c));
    ok(run, weir_queue_launch_at(run->queues[queue], run->ground->sum, weir_dim(1, 1, 1),
                                 weir_dim(1, 1, 1), arguments, 3, FILE_NAME, line(run)));
    const int node = add(run, queue);
    use(run, node, a, WEIR_ACCESS_READ);
    use(run, node, b, WEIR_ACCESS_READ);
    use(run, node, c, arguments[2].access);
}

// A box by four bytes, which fits into a buffer.
struct box {
    struct slot *slot;
    size_t offset, width, height, depth, pitch, slice_pitch;
};

static struct box pick_box(struct run *run, uint8_t buffer, uint8_t where, uint8_t extents,
                           uint8_t pitches)
{
    struct box box = {.slot = pick_slot(run, buffer),
                      .width = 1 + extents % 3,
                      .height = 1 + extents / 4 % 3,
                      .depth = 1 + extents / 16 % 3};
    box.pitch = box.width + pitches % 4;
    box.slice_pitch = box.pitch * (box.height - 1) + box.width + pitches / 4 % 8;
    const size_t end = box.slice_pitch * (box.depth - 1) + box.pitch * (box.height - 1) + box.width;
    box.offset = where % (ORACLE_BYTES - end + 1);
    return box;
}

static uint64_t box_bits(const struct box *box)
{
    uint64_t mask = 0;
    for (size_t slice = 0; slice < box->depth; slice++)
        for (size_t row = 0; row < box->height; row++)
            mask |= bits(box->offset + slice * box->slice_pitch + row * box->pitch, box->width);
    return mask;
}

static void say_box(struct run *run, const char *word, const struct box *box)
{
    if (run->text)
        fprintf(run->text, "     %s b%u at %zu, %zu x %zu x %zu, pitches %zu and %zu\n", word,
                box->slot->id, box->offset, box->width, box->height, box->depth, box->pitch,
                box->slice_pitch);
}

static weir_status submit_box_copy(const struct run *run, weir_queue *queue, const struct box *to,
                                   const struct box *from)
{
    if (to->depth == 1)
        return weir_queue_copy_2d_at(queue,
                                     (struct weir_plane){to->slot->buffer, to->offset, to->pitch},
                                     (struct weir_plane){from->slot->buffer, from->offset,
                                                         from->pitch},
                                     to->width, to->height, FILE_NAME, line(run));
    return weir_queue_copy_3d_at(
        queue, (struct weir_volume){to->slot->buffer, to->offset, to->pitch, to->slice_pitch},
        (struct weir_volume){from->slot->buffer, from->offset, from->pitch, from->slice_pitch},
        to->width, to->height, to->depth, FILE_NAME, line(run));
}

void step_copy_box(struct run *run)
{
    const int queue = pick_queue(run, run->step[1]);
    const struct box to = pick_box(run, run->step[2], run->step[3], run->step[4], run->step[5]);
    const struct box from = pick_box(run, run->step[6], run->step[7], run->step[4],
                                     (uint8_t)(run->step[5] ^ run->step[1]));

    if (to.slot->buffer == from.slot->buffer)
        return;
    SAY(run, "q%d copy of boxes", queue);
    say_box(run, "to", &to);
    say_box(run, "from", &from);
    ok(run, submit_box_copy(run, run->queues[queue], &to, &from));
    const int node = add(run, queue);
    oracle_use(run->oracle, node, from.slot->id, WEIR_ACCESS_READ, box_bits(&from));
    oracle_use(run->oracle, node, to.slot->id, WEIR_ACCESS_WRITE, box_bits(&to));
}

void step_fill_box(struct run *run)
{
    const int queue = pick_queue(run, run->step[1]);
    const struct box to =
        pick_box(run, run->step[2], run->step[3], run->step[4] % 16, run->step[5]);

    SAY(run, "q%d fill of a plane", queue);
    say_box(run, "to", &to);
    ok(run, weir_queue_fill_2d_at(run->queues[queue],
                                  (struct weir_plane){to.slot->buffer, to.offset, to.pitch},
                                  to.width, to.height, &pattern, 1, FILE_NAME, line(run)));
    oracle_use(run->oracle, add(run, queue), to.slot->id, WEIR_ACCESS_WRITE, box_bits(&to));
}

// Edges.

void step_record(struct run *run)
{
    const int queue = pick_queue(run, run->step[1]);
    const size_t which = run->step[2] % EVENTS;
    SAY(run, "q%d record e%zu", queue, which);
    ok(run,
       weir_queue_record_at(run->queues[queue], &run->events[which].event, FILE_NAME, line(run)));
    run->events[which].node = add(run, queue);
}

static bool is_alive(const struct run *run, int number)
{
    bool alive = false;
    for (int i = 0; i < run->queue_count; i++)
        alive = alive || run->numbers[i] == number;
    return alive;
}

// A wait for an event of a queue that is gone is no operation, so the thread tells its queue nothing.
void step_wait(struct run *run)
{
    const int queue = pick_queue(run, run->step[1]);
    const size_t which = run->step[2] % EVENTS;
    const int node = run->events[which].node;
    if (node < 0 || (run->oracle->strict && !is_alive(run, run->oracle->nodes[node].queue)))
        return;
    SAY(run, "q%d wait e%zu", queue, which);
    ok(run, weir_queue_wait_at(run->queues[queue], run->events[which].event, FILE_NAME, line(run)));
    oracle_after(run->oracle, add(run, queue), node);
}

// A record and a wait at once, so that edges are not rare.
void step_after(struct run *run)
{
    const int queue = pick_queue(run, run->step[1]), other = pick_queue(run, run->step[2]);
    struct weir_event event;
    SAY(run, "q%d record, q%d wait", other, queue);
    ok(run, weir_queue_record_at(run->queues[other], &event, FILE_NAME, line(run)));
    const int record = add(run, other);
    ok(run, weir_queue_wait_at(run->queues[queue], event, FILE_NAME, line(run)));
    oracle_after(run->oracle, add(run, queue), record);
}

// Queues and pools.

weir_status make_queue(struct run *run, int which)
{
    run->numbers[which] = run->next_number++;
    return weir_queue_create(run->ground->device, NULL, &run->queues[which]);
}

// Not of the legacy queue, which is the library's.
void step_new_queue(struct run *run)
{
    const int queue = pick_queue(run, run->step[1]);
    if (run->numbers[queue] == run->oracle->legacy || run->next_number == ORACLE_QUEUES)
        return;
    open_gate(run);
    SAY(run, "sync q%d, destroy it, create it anew", queue);
    ok(run, weir_queue_sync_at(run->queues[queue], WEIR_FOREVER, FILE_NAME, line(run)));
    note_sync(run, queue);
    oracle_all_know(run->oracle, run->oracle->last[run->numbers[queue]]);
    weir_queue_destroy(&run->queues[queue]);
    ok(run, make_queue(run, queue));
}

static void close_accesses_of(struct run *run, const struct slot *slot)
{
    for (size_t i = run->oracle->open_count; i-- > 0;)
        if (run->open[i].slot.id == slot->id)
            close_access(run, i);
}

static void free_slot(struct run *run, struct slot *slot, int queue)
{
    if (run->call.pending && run->call.range.slot == slot)
        open_gate(run);
    close_accesses_of(run, slot);
    SAY(run, "q%d free b%u", queue, slot->id);
    ok(run, weir_pool_free_at(run->queues[queue], &slot->buffer, FILE_NAME, line(run)));
    slot->buffer = NULL;
    const int node = add(run, queue);
    run->oracle->nodes[node].frees = true;
    oracle_use(run->oracle, node, slot->id, WEIR_ACCESS_WRITE, UINT64_MAX);
}

void step_pool(struct run *run)
{
    const int queue = pick_queue(run, run->step[1]);
    struct slot *slot = &run->slots[PLAIN + run->step[2] % POOLED];
    if (slot->buffer) {
        free_slot(run, slot, queue);
        return;
    }
    if (run->next_buffer == ORACLE_BUFFERS)
        return;
    slot->id = run->next_buffer++;
    SAY(run, "q%d allocate b%u", queue, slot->id);
    ok(run, weir_pool_allocate_at(run->pool, run->queues[queue], ORACLE_BYTES, &slot->buffer,
                                  FILE_NAME, line(run)));
    oracle_allocate(run->oracle, add(run, queue), slot->id);
}

// Threads that their locks order: each lock is one or two keys of the oracle.

static pthread_mutex_t mutexes[EACH] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_rwlock_t rwlocks[EACH] = {PTHREAD_RWLOCK_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER};
static sem_t semaphores[EACH];

__attribute__((constructor)) static void make_semaphores(void)
{
    for (int i = 0; i < EACH; i++)
        sem_init(&semaphores[i], 0, 0);
}

void take_and_give_mutex(int which)
{
    pthread_mutex_lock(&mutexes[which]);
    pthread_mutex_unlock(&mutexes[which]);
}

void lock_mutex(struct run *run, int which)
{
    SAY(run, "mutex %d", which);
    take_and_give_mutex(which);
    oracle_acquire(run->oracle, KEY_MUTEX + which);
    oracle_release(run->oracle, KEY_MUTEX + which);
}

static void post_semaphore(int which)
{
    sem_post(&semaphores[which]);
}

void forget_posts(void)
{
    for (int i = 0; i < EACH; i++)
        while (sem_trywait(&semaphores[i]) == 0)
            continue;
}

static void post(struct run *run, int which)
{
    SAY(run, "post of semaphore %d", which);
    post_semaphore(which);
    oracle_release(run->oracle, KEY_SEMAPHORE + which);
}

static void wait_for(struct run *run, int which)
{
    if (sem_trywait(&semaphores[which]) != 0)
        return;
    SAY(run, "wait for semaphore %d", which);
    oracle_acquire(run->oracle, KEY_SEMAPHORE + which);
}

static void lock_to_read(struct run *run, int which)
{
    SAY(run, "lock %d to read", which);
    pthread_rwlock_rdlock(&rwlocks[which]);
    pthread_rwlock_unlock(&rwlocks[which]);
    oracle_acquire(run->oracle, KEY_WRITERS + which);
    oracle_release(run->oracle, KEY_READERS + which);
}

static void lock_to_write(struct run *run, int which)
{
    SAY(run, "lock %d to write", which);
    pthread_rwlock_wrlock(&rwlocks[which]);
    pthread_rwlock_unlock(&rwlocks[which]);
    oracle_acquire(run->oracle, KEY_WRITERS + which);
    oracle_acquire(run->oracle, KEY_READERS + which);
    oracle_release(run->oracle, KEY_WRITERS + which);
}

// Another thread. While it can be joined there is no second one.

enum {
    CHILD = PROGRAM_THREADS
};

static void *run_child(void *user)
{
    struct child *child = user;
    child->step(child->run);
    gate_open(&child->done);
    return NULL;
}

void end_child(struct run *run)
{
    if (run->child.lives)
        pthread_join(run->child.thread, NULL);
    run->child.lives = false;
}

static void join_child(struct run *run)
{
    SAY(run, "join");
    end_child(run);
    oracle_join(run->oracle, CHILD);
}

static void make_child(struct run *run, void (*step)(struct run *run))
{
    struct child *child = &run->child;
    const int maker = run->oracle->thread;
    SAY(run, "makes a thread, which does");
    oracle_create(run->oracle, CHILD);
    child->step = step;
    child->run = run;
    run->oracle->thread = CHILD;
    gate_shut(&child->done);
    child->lives = pthread_create(&child->thread, NULL, run_child, child) == 0;
    if (child->lives)
        ok(run, gate_pass(&child->done));
    run->oracle->thread = maker;
    ok(run, child->lives ? WEIR_OK : WEIR_ERROR_SYSTEM);
}

static void work_in_child(struct run *run, int which)
{
    static void (*const steps[])(struct run * run) = {step_host, step_copy, step_host, step_sync};
    if (run->child.lives)
        join_child(run);
    else
        make_child(run, steps[run->step[3] % 4]);
}

void step_lock(struct run *run)
{
    static void (*const ways[8])(struct run * run, int which) = {
        lock_mutex,   lock_mutex,    post,          wait_for,
        lock_to_read, lock_to_write, work_in_child, work_in_child,
    };
    ways[run->step[2] % 8](run, run->step[1] % EACH);
}

// What threads tell each other, and the threads.

enum {
    KEYS = 2
};

static const char keys[KEYS];

void release_key(const struct run *run, int key)
{
    if (run->ground->order == GROUND_LOCKS)
        post_semaphore(key);
    else
        weir_check_release(run->ground->runtime, &keys[key]);
}

// The key stays with the runtime, so what an earlier program released may be acquired, of which
// nothing is left.
void step_release(struct run *run)
{
    const int key = run->step[1] % KEYS;
    SAY(run, "release of key %d", key);
    release_key(run, key);
    oracle_release(run->oracle, key);
}

void step_acquire(struct run *run)
{
    const int key = run->step[1] % KEYS;
    SAY(run, "acquire of key %d", key);
    weir_check_acquire(run->ground->runtime, &keys[key]);
    oracle_acquire(run->oracle, key);
}

// The threads.

// Waits for an opening, which it takes.
static void take(struct gate *gate)
{
    while (gate_pass(gate) != WEIR_OK)
        continue;
    gate_shut(gate);
}

static void *work(void *user)
{
    struct ground_thread *thread = user;
    for (;;) {
        take(&thread->begin);
        if (!thread->step)
            return NULL;
        thread->step(thread->run);
        gate_open(&thread->end);
    }
}

bool ground_thread_start(struct ground_thread *thread)
{
    thread->started = pthread_create(&thread->thread, NULL, work, thread) == 0;
    return thread->started;
}

void ground_thread_stop(struct ground_thread *thread)
{
    if (!thread->started)
        return;
    thread->step = NULL;
    gate_open(&thread->begin);
    pthread_join(thread->thread, NULL);
}

static void do_on_thread(struct run *run, int which, void (*step)(struct run *run))
{
    struct ground_thread *thread = &run->ground->threads[which];
    if (which == 0) {
        step(run);
        return;
    }
    thread->run = run;
    thread->step = step;
    gate_open(&thread->begin);
    take(&thread->end);
}

void run_on_thread(struct run *run, int thread, void (*step)(struct run *run))
{
    run->oracle->thread = thread;
    if (run->text)
        fprintf(run->text, "T%d ", thread);
    do_on_thread(run, thread, step);
    run->oracle->thread = 0;
}

static void release_at_the_end(struct run *run)
{
    if (run->ground->order == GROUND_LOCKS)
        take_and_give_mutex(0);
    else
        release_key(run, 0);
}

void gather_threads(struct run *run)
{
    for (int i = 1; i < PROGRAM_THREADS; i++)
        do_on_thread(run, i, release_at_the_end);
    if (run->ground->order == GROUND_LOCKS)
        take_and_give_mutex(0);
    else
        weir_check_acquire(run->ground->runtime, &keys[0]);
}
