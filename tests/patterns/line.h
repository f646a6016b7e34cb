// The pipelines under test, with their environment: frames pass through a diamond of copies, and each word that
// arrives must be its frame's.
#ifndef WEIR_TESTS_PATTERNS_LINE_H
#define WEIR_TESTS_PATTERNS_LINE_H

#include "patterns/device_link.h"
#include "patterns/pipeline.h"
#include "tests/patterns/rig.h"

struct frame {
    uint32_t number;
    bool fails_in_submit;    // `left` returns an error after submitting half of its work
    bool fails_in_host_call; // `left` submits a host call that fails
    bool calls_always;       // `left` submits a host call that always runs
    bool gated;              // `upload` starts with a host call that waits at the gate
};

// One at a time: line_open() begins it, line_close() ends it. The stages are upload, then
// `left` and `right`, which process one half of the words each, then `join` and `download`.
struct line {
    weir_pipeline *pipeline;
    struct recorder recorder;
    struct gate gate;
    weir_device *other;     // if it is set, `join` and `download` are on this device,
    weir_device_link *link; // to which this leads
    bool jitter;            // stages start with a slow host call
    unsigned slots_alive;
    unsigned wrong_words;  // in delivered frames
    unsigned early_reuses; // slots that changed while they were delivered
    unsigned deliver_ns;   // time that deliver takes
    int failing_line;      // where a failing host call is submitted
};

extern struct line line;

// Opens the rig. `config` is as in rig_open_with(); NULL: none.
weir_status line_open(const char *config);

// Params of the line, without timing, with the policy WEIR_PIPELINE_BLOCK; also of one on another device than the rig's.
struct weir_pipeline_params line_params(uint32_t slot_count);
struct weir_pipeline_params line_params_on(weir_device *device, uint32_t slot_count);

// Creates the pipeline, submits the frames and waits until all are delivered.
void line_run(const struct weir_pipeline_params *params, struct frame *frames, uint32_t count);

// The same, and expects that after the first `warm` frames nothing is allocated, by this
// program's C code or by modules, and no native object made.
void line_expect_flat(const struct weir_pipeline_params *params, struct frame *frames,
                      uint32_t count, uint32_t warm);

// The line's `deliver`: checks the words and records the delivery.
void line_deliver(void *user, void *data_frame, void *data,
                  const struct weir_pipeline_result *result);

// Destroys the pipeline, if there is one, and closes the rig. Fails the test if any word was
// wrong.
void line_close(void);

// A test on an open line.
#define LINE_TEST(suite, name) \
    WEIR_TEST_BETWEEN(suite, name, EXPECT_OK(line_open(NULL)), line_close())

// Numbers frames from 1.
void number_frames(struct frame *frames, uint32_t count);

#endif
