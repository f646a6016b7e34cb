// A test program without tests: the harness must not call that a success.

#include "tests/support/test.h"

_Static_assert(sizeof(struct weir_test) > 0, "the header alone registers nothing");
