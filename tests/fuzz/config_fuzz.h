// Properties that hold for any bytes given to the configuration parser.
#ifndef WEIR_TESTS_FUZZ_CONFIG_FUZZ_H
#define WEIR_TESTS_FUZZ_CONFIG_FUZZ_H

#include <stddef.h>
#include <stdint.h>

// Reads `size` bytes as a configuration and checks every section that it has
// against tables. Returns NULL, or which rule was broken:
//   - a refusal is WEIR_ERROR_CONFIG and its message starts with the file and a
//     line that the bytes have;
//   - what holds a zero byte is refused;
//   - accepted values are inside their limits, and the origin of each is "default"
//     or a line that the bytes have;
//   - written out again from its settings, it reads the same.
const char *config_fuzz_check(const uint8_t *data, size_t size);

// The number of inputs accepted so far.
size_t config_fuzz_accepted(void);

#endif
