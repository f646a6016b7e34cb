// Learns that a submit is blocked: its thread waits for a condition. Link with //tests/patterns:blocked,
// which makes the linker use its function instead of the C library's.
#ifndef WEIR_TESTS_PATTERNS_BLOCKED_H
#define WEIR_TESTS_PATTERNS_BLOCKED_H

// None is blocked so far.
void blocked_begin(void);

// On the thread that is going to submit.
void blocked_watch(void);

// Waits until such a thread is blocked.
void blocked_await(void);

#endif
