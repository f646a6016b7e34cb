// Properties that hold for any bytes given to the reader of safetensors files.
#ifndef WEIR_TESTS_FUZZ_SAFETENSORS_FUZZ_H
#define WEIR_TESTS_FUZZ_SAFETENSORS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

// Reads `size` bytes as a file. Returns NULL, or which rule was broken:
//   - a refusal is a sentence that begins with the file's name, and leaves no file;
//   - the tensors lie in the body, side by side in their order, and fill it;
//   - each has the bytes of its shape, is found under its name, and its values can be read.
const char *safetensors_fuzz_check(const uint8_t *data, size_t size);

// The number of inputs read so far.
size_t safetensors_fuzz_accepted(void);

#endif
