// A test program without tests: the harness must not treat this as a success.

#include "tests/support/test.h"

_Static_assert(sizeof(int) >= 4, "a file must declare something");
