// The lines that a program of the corpus marks.
#ifndef WEIR_TESTS_RACES_MARKS_H
#define WEIR_TESTS_RACES_MARKS_H

#include "tests/races/race.h"

enum {
    MARKS_MAX = 4,
};

// One finding that the broken program has.
struct mark {
    char letter;       // '\0' for marks without one
    int first, second; // lines; 0: in a file that marks none, such as that of a pattern
};

struct marks {
    struct mark list[MARKS_MAX];
    size_t count;
};

// Reads the marks of a program from its source, which lies at `path`.
//
// Returns whether the program was found and has marks.
bool marks_read(const struct race_pair *pair, const char *path, struct marks *out_marks);

// Whether the finding is one of those that the broken program has.
bool marks_expect(const struct marks *marks, const struct race_pair *pair,
                  const struct weir_check_finding *finding);

#endif
