// Fuzzer of the safetensors reader. What an accepted file must hold is checked here
// from the outside: every tensor inside the body, none over another, values readable.
//
// Built with clang -fsanitize=fuzzer,address,undefined it is driven by libFuzzer;
// safetensors_fuzz_test.c drives the same function over seeded mutations.
#include "tests/fuzz/safetensors_fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "io/safetensors.h"

// A failed check must stop the fuzzer, with or without NDEBUG.
static void check(bool holds)
{
    if (!holds)
        abort();
}

static uint64_t check_tensors(const weir_io_safetensors *file)
{
    uint64_t total = 0;
    const unsigned char *due = NULL;
    for (size_t i = 0; i < weir_io_safetensors_count(file); i++) {
        const struct weir_io_tensor *tensor = weir_io_safetensors_at(file, i);
        uint64_t bytes = 0;
        check(tensor->rank >= 0 && tensor->rank <= WEIR_IO_MAX_RANK);
        check(weir_io_shape_bytes(tensor->dtype, tensor->rank, tensor->shape, &bytes));
        check(bytes == tensor->size_bytes);
        check(due == NULL || due == tensor->data);
        check(weir_io_safetensors_get(file, tensor->name) == tensor);
        due = (const unsigned char *)tensor->data + bytes;
        total += bytes;

        const float *values = NULL;
        struct weir_io_error error;
        if (weir_io_safetensors_find(file, tensor->name, tensor->rank, tensor->shape, &values,
                                     &error)) {
            check(tensor->dtype == WEIR_IO_F32 && (const void *)values == tensor->data);
            // Touches every value, so that the address sanitizer sees a wrong size.
            weir_io_check_finite("fuzz", "value", values, (size_t)(bytes / 4), &error);
        }
    }
    return total;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weir_io_safetensors *file = NULL;
    struct weir_io_error error;
    memset(&error, 0, sizeof error);
    bool ok = weir_io_safetensors_open_memory("fuzz", data, size, &file, &error);
    check(ok == (file != NULL));
    if (!ok) {
        check(strncmp(error.message, "fuzz: ", 6) == 0 && strlen(error.message) > 16);
        return 0;
    }
    const float *values = NULL;
    check(!weir_io_safetensors_find(file, "no such tensor anywhere", 0, NULL, &values, &error));
    uint64_t header = 0;
    for (int i = 7; i >= 0; i--)
        header = header << 8 | data[i];
    check(check_tensors(file) == size - 8 - header);
    weir_io_safetensors_destroy(&file);
    return 0;
}
