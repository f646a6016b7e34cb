// A runtime with the plugin `check`, on the backend that WEIR_BACKEND names, three buffers and a
// kernel of verify.cl; and what the plugin logged. On null kernels do nothing, so nothing is found.
#ifndef WEIR_TESTS_PLUGINS_CHECK_VERIFY_RIG_H
#define WEIR_TESTS_PLUGINS_CHECK_VERIFY_RIG_H

#include <weir/weir.h>

enum {
    WORDS = 2048, // of each buffer
    PART = 1024,  // what launches declare, from the start or the middle
    BYTES = WORDS * 4,
    HALF = PART * 4,
};

struct rig {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_buffer *in;  // word i is i
    weir_buffer *out; // zeros
    weir_buffer *host;
    weir_program *program;
    weir_kernel *kernel;
    int line; // of the launch
};

// A launch of `rig`'s kernel, on its queue.
#define LAUNCH(...)       \
    (rig.line = __LINE__, \
     EXPECT_INT_EQ(weir_queue_launch(rig.queue, rig.kernel, __VA_ARGS__), WEIR_OK))

// `section` is the text of [check].
void rig_open(struct rig *rig, const char *section, const char *kernel);
void rig_close(struct rig *rig);
bool runs_kernels(const struct rig *rig);
weir_queue *make_queue(struct rig *rig, const char *label);
uint32_t word_of(struct rig *rig, weir_buffer *buffer, size_t index);

// Blocks of 64 work-items.
static const struct weir_extent block = {64, 1, 1};
struct weir_extent items(size_t count);

// How often the plugin's log since rig_open() has the text.
size_t count_notes(const char *text);
// The only finding is that of the last LAUNCH(), and says `text`; "": there is none.
void expect_finding(const struct rig *rig, const char *text);

#endif
