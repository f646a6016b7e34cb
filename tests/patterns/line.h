// The pipelines under test, with their environment: frames pass through a diamond of copies, and each word that
// arrives must be its frame's.
#ifndef WEIR_TESTS_PATTERNS_LINE_H
#define WEIR_TESTS_PATTERNS_LINE_H

#include "patterns/device_link.h"
#include "patterns/pipeline.h"
#include "tests/patterns/rig.h"

enum {
    FRAMES_MAX = 1000
};

struct frame {
    uint32_t number;         // from 1
    bool fails_in_submit;    // `left` returns an error after submitting half of its work
    bool fails_in_host_call; // `left` submits a host call that fails
    bool calls_always;       // `left` submits a host call that always runs
    bool gated;              // `upload` starts with a host call that waits at the gate
};

// One at a time: line_open() begins it, line_close() ends it. The stages are upload, then
// `left` and `right`, which process one half of the words each, then `join` and `download`.
struct line {
    struct frame frames[FRAMES_MAX]; // of the test, none of which goes wrong
    weir_pipeline *pipeline;
    struct recorder recorder;
    struct gate gate;
    weir_device *other;     // if it is set, `join` and `download` are on this device,
    weir_device_link *link; // to which this leads
    bool in_group;          // several pipelines deliver, and each counts its own frames
    bool jitter;            // stages start with a slow host call
    unsigned slots_alive;
    unsigned wrong_words;  // in delivered frames
    unsigned early_reuses; // slots that changed while they were delivered
    unsigned deliver_ns;   // time that deliver takes
    int failing_line;      // where a failing host call is submitted
};

extern struct line line;

// Opens the rig. `config` is as in rig_open(NULL); NULL: none.
weir_status line_open(const char *config);

// Params of the line, without timing, with the policy WEIR_PIPELINE_BLOCK; also of one on another device than the rig's.
struct weir_pipeline_params line_params(uint32_t slot_count);
struct weir_pipeline_params line_params_on(weir_device *device, uint32_t slot_count);

// Creates the pipeline; submits frames `first` and so on; and waits until all are delivered.
weir_status line_create(struct weir_pipeline_params params);
void line_submit(uint32_t first, uint32_t count);
void line_drain(void);

// All of it with the first `count` frames.
void line_run(struct weir_pipeline_params params, uint32_t count);

// The same, and expects that after the first `warm` frames nothing is allocated, by this
// program's C code or by modules, and no native object made.
void line_expect_flat(struct weir_pipeline_params params, uint32_t count, uint32_t warm);

// Expects that the first `count` frames, and no others, were delivered in their order; and that all have succeeded.
void line_expect_order(uint32_t count);
void line_expect_ok(uint32_t count);

// The line's `deliver`: checks the words and records the delivery.
void line_deliver(void *user, void *data_frame, void *data,
                  const struct weir_pipeline_result *result);

// Destroys the pipeline, if there is one, and closes the rig. Fails the test if any word was
// wrong.
void line_close(void);

// A test on an open line.
#define LINE_TEST(suite, name) \
    WEIR_TEST_BETWEEN(suite, name, EXPECT_OK(line_open(NULL)), line_close())

#endif
