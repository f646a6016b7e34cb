// A runtime with the plugin `check` and hints = 1 on null, three queues and three buffers, whose
// contents are written and known to the host; and what the plugin told.
#ifndef WEIR_TESTS_PLUGINS_CHECK_HINTS_RIG_H
#define WEIR_TESTS_PLUGINS_CHECK_HINTS_RIG_H

#include <weir/weir.h>

enum {
    SIZE = 256
};

struct rig {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *one;
    weir_queue *two;
    weir_queue *three;
    weir_buffer *a;
    weir_buffer *b;
    weir_buffer *host;
};

// Messages of the plugin, of the last rig.
extern char told[4096];

void rig_open(struct rig *rig);
// The host learns what each queue did from itself, then all is destroyed.
void rig_close(struct rig *rig);
// The same, and nothing was told.
void expect_silence(struct rig *rig);

weir_queue *make_queue(struct rig *rig, const char *label);
void fill(weir_queue *queue, weir_buffer *buffer, size_t offset, size_t size);
void copy(weir_queue *queue, weir_buffer *to, weir_buffer *from);
// An access of the host to all bytes.
void use(weir_buffer *buffer, weir_access access);
void sync(weir_queue *queue);
// At line `line` of a file "syncs".
void sync_at(weir_queue *queue, int line);
// The wait is at line `line` of a file "waits".
void wait_for(weir_queue *queue, weir_queue *other, int line);

#endif
