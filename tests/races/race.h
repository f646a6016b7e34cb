// The corpus of races: programs that lack an order, each beside its mended form. A program is one
// function, written as a user would write it, and `race->mended` says whether it is the mended one:
//
//     RACE(fill_then_copy, READ_AFTER_WRITE)
//     {
//         must(weir_queue_fill(one, b, 0, SIZE, &seven, 1)); // first
//         if (race->mended)
//             after(two, one); // a record and a wait
//         must(weir_queue_copy(two, c, 0, b, 0, SIZE)); // second
//         race_expect(race, c, 0, SIZE, 7);
//     }
//
// A program of RACE() is given three queues and buffers of SIZE bytes, on the device (`a` to `d`) and pinned
// (`in`, `out`). All bytes of `a` and `in` are 7, those of the others 0. A program of RACE_OWN() makes its own.
//
// The broken program has exactly one finding, of the given kind, with the lines marked `first` and
// `second`. A program with several findings has letters after these words: `// second a, first b`.
// Marks may stand in functions between the program before and this one.
#ifndef WEIR_TESTS_RACES_RACE_H
#define WEIR_TESTS_RACES_RACE_H

#include <weir/check.h>
#include <weir/weir.h>

enum {
    SIZE = 1024, // bytes of a buffer, if nothing is said; arguments begin at halves of it
    RACE_OBJECTS_MAX = 64,
    RACE_KERNELS = 4, // in races.cl
    RACE_LINES_MAX = 8,
};

// What programs write.
static const unsigned char five = 5, seven = 7, nine = 9;

// One run of one program.
struct race {
    bool mended;
    weir_device *device;
    struct weir_extent grid, block; // SIZE work-items
    bool wrong;                     // the program computed another result than it should
    // What the functions below made; freed after the run.
    weir_program *program;
    weir_queue *queues[RACE_OBJECTS_MAX];
    weir_buffer *buffers[RACE_OBJECTS_MAX];
    weir_kernel *kernels[RACE_KERNELS];
    size_t queue_count, buffer_count;
};

struct race_pair {
    const char *name;
    const char *file;
    int line;
    weir_check_kind kind; // of its findings
    void (*run)(struct race *race);
    const char *steady; // why no order of its operations gives a wrong result; NULL: one does
    bool kernels;       // it launches kernels, which do nothing on null
    bool native;        // it needs limits.native
    bool pinned;        // its kernels use HOST buffers: limits.host_in_kernels
    bool twice;         // it wraps the same memory twice, which CUDA refuses
    struct race_pair *next;
};

// Before the constructors that make tests of the programs.
#define RACE_PRIORITY 1000

// Defines and registers a program; designated members of struct race_pair may follow the kind,
// which is that of <weir/check.h>.
#define RACE_OWN(name_, ...)                                                       \
    static void name_(struct race *race);                                          \
    __attribute__((constructor(RACE_PRIORITY))) static void race_add_##name_(void) \
    {                                                                              \
        static struct race_pair pair = {.name = #name_,                            \
                                        .file = __FILE__,                          \
                                        .line = __LINE__,                          \
                                        .run = name_,                              \
                                        RACE_KIND_(__VA_ARGS__)};                  \
        race_add(&pair);                                                           \
    }                                                                              \
    static void name_(struct race *race)
#define RACE(name_, ...)                                                                        \
    static void name_##_with(struct race *race, RACE_OBJECTS);                                  \
    RACE_OWN(name_, __VA_ARGS__)                                                                \
    {                                                                                           \
        weir_queue *one = race_queue(race, "one"), *two = race_queue(race, "two");              \
        weir_queue *three = race_queue(race, "three");                                          \
        weir_buffer *a = race_buffer(race, "a", SIZE, 7), *b = race_buffer(race, "b", SIZE, 0); \
        weir_buffer *c = race_buffer(race, "c", SIZE, 0), *d = race_buffer(race, "d", SIZE, 0); \
        weir_buffer *in = race_pinned(race, "in", SIZE, 7),                                     \
                    *out = race_pinned(race, "out", SIZE, 0);                                   \
        name_##_with(race, one, two, three, a, b, c, d, in, out);                               \
    }                                                                                           \
    static void name_##_with(struct race *race, RACE_OBJECTS)
#define RACE_OBJECTS                                                                     \
    weir_queue *one, weir_queue *two, weir_queue *three, weir_buffer *a, weir_buffer *b, \
        weir_buffer *c, weir_buffer *d, weir_buffer *in, weir_buffer *out
#define RACE_KIND_(...) .kind = WEIR_CHECK_##__VA_ARGS__

void race_add(struct race_pair *pair);

// All programs, in the order of their files and lines.
struct race_pair *race_first(void);

// Runs a program on an open device.
//
// Returns whether its result was right.
bool race_run(const struct race_pair *pair, bool mended, weir_device *device);

// For programs. Everything that fails ends the process with the reason.

void must(weir_status status);

weir_queue *race_queue(struct race *race, const char *label);

// A DEVICE or a HOST buffer of which every byte is `value`, which the host knows.
weir_buffer *race_buffer(struct race *race, const char *label, size_t size, int value);
weir_buffer *race_pinned(struct race *race, const char *label, size_t size, int value);

// The same, without contents.
weir_buffer *race_blank(struct race *race, const char *label, size_t size,
                        weir_placement placement);

// A kernel of races.cl.
weir_kernel *race_kernel(const struct race *race, const char *name);

// Submits a kernel of races.cl with a work-item for each byte of a buffer.
#define launch(queue, name, ...) \
    weir_queue_launch(queue, race_kernel(race, name), race->grid, race->block, __VA_ARGS__)

// Makes `queue` wait for what `other` has been given so far.
void after(weir_queue *queue, weir_queue *other);

// The same in the mended program alone: what the broken one lacks.
void mend(const struct race *race, weir_queue *queue, weir_queue *other);

// Waits for all queues, and marks the result as wrong unless every byte of the range is `value`.
void race_expect(struct race *race, weir_buffer *buffer, size_t offset, size_t size, int value);

// The host reads a range of pinned memory, of which every byte should be `value`, or writes it.
#define host_sees(race, buffer, offset, size, value) \
    race_look(race, buffer, offset, size, value, __FILE__, __LINE__)
#define host_puts(buffer, offset, size, value) \
    race_put(buffer, offset, size, value, __FILE__, __LINE__)
void race_look(struct race *race, weir_buffer *buffer, size_t offset, size_t size, int value,
               const char *file, int line);
void race_put(weir_buffer *buffer, size_t offset, size_t size, int value, const char *file,
              int line);

// Marks the result as wrong if `right` is false.
void race_saw(struct race *race, bool right);

// Whether `size` bytes at `memory` are `value`.
bool all_bytes(const void *memory, size_t size, int value);

#endif
