// Small programs that lack a wait, or whose host is too early, each with the mended one. Without
// a plugin they give the right result on most machines, most of the time.
#ifndef WEIR_TESTS_RACY_H
#define WEIR_TESTS_RACY_H

#include <weir/weir.h>

struct racy_program {
    const char *name;
    // Runs on a device of its own, and stores the words of the result. Returns the first error.
    weir_status (*run)(weir_device *device, bool broken, uint32_t *words);
};

enum {
    RACY_WORDS = 8, // of a result, and 1, 2, 3 … when it is right
};

extern const struct racy_program racy_programs[];
extern const size_t racy_program_count;

bool racy_is_right(const uint32_t words[RACY_WORDS]);

#endif
