// A runtime on null with the plugin check, for its tests: three queues and three buffers, whose contents are written
// and known to the host.
#ifndef WEIR_TESTS_PLUGINS_CHECK_RIG_H
#define WEIR_TESTS_PLUGINS_CHECK_RIG_H

#include <weir/check.h>
#include <weir/weir.h>

#include "tests/support/own.h"
#include "tests/support/test.h"

enum {
    SIZE = 256, // of each buffer
    RIG_QUEUES = 3,
};

struct rig {
    weir_runtime *runtime;
    weir_device *device;
    union {
        weir_queue *queues[RIG_QUEUES];
        struct {
            weir_queue *one, *two, *three;
        };
    };
    weir_buffer *a;
    weir_buffer *b;
    weir_buffer *host;
    struct weir_event event; // the last of a program's
};

// What the plugin has logged since the last rig was opened, with its hints.
extern char rig_told[8192];

// `section` is the text of [check].
void rig_open_with(struct rig *rig, const char *plugins, const char *section);
void rig_open(struct rig *rig, const char *section);
// The host learns what each queue did from itself, then all is destroyed. Does nothing the second time.
void rig_close(struct rig *rig);

#define RIG_TEST(suite, name, section)                                                   \
    WEIR_TEST_WITH(suite, name, struct rig, rig, (rig_open(rig, section), rig->runtime), \
                   rig_close(rig))

// Each of these has one line for all of its calls.
void rig_fill(weir_queue *queue, weir_buffer *buffer, size_t offset, size_t size);
void rig_sync(weir_queue *queue);
// The host uses the whole buffer.
void rig_use(weir_buffer *buffer, weir_access access);
// The queue waits for what the other one has.
void rig_follow(weir_queue *queue, weir_queue *other);

struct weir_check_finding rig_finding(const struct rig *rig, size_t index);

#endif
