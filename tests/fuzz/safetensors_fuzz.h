// libFuzzer's entry, for the test that calls it without libFuzzer.
#ifndef WEIR_TESTS_FUZZ_SAFETENSORS_FUZZ_H
#define WEIR_TESTS_FUZZ_SAFETENSORS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

// Reads `data` as a safetensors file and aborts if the reader breaks its word.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
