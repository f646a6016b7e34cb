// The check, and the entry point of libFuzzer:
//
//     clang -std=c11 -D_POSIX_C_SOURCE=200809L -I. -Iapi -g -O1
//         -fsanitize=fuzzer,address,undefined tests/fuzz/safetensors_fuzz.c
//         io/safetensors.c io/array.c io/error.c base/*.c -ljansson -lm -o safetensors_fuzz
//     ./safetensors_fuzz -max_len=2000 CORPUS
#include "tests/fuzz/safetensors_fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/safetensors.h"

static size_t accepted;

size_t safetensors_fuzz_accepted(void)
{
    return accepted;
}

static const char *check_tensor(const weir_io_safetensors *file,
                                const struct weir_io_tensor *tensor)
{
    uint64_t bytes = 0;
    const float *values = NULL;
    struct weir_io_error error;
    if (tensor->rank < 0 || tensor->rank > WEIR_IO_MAX_RANK)
        return "a tensor's rank is outside of its limits";
    if (!weir_io_shape_bytes(tensor->dtype, tensor->rank, tensor->shape, &bytes) ||
        bytes != tensor->size_bytes)
        return "a tensor has not the bytes of its shape";
    if (weir_io_safetensors_get(file, tensor->name) != tensor)
        return "a tensor is not found under its name";
    if (!weir_io_safetensors_find(file, tensor->name, tensor->rank, tensor->shape, &values, &error))
        return NULL; // of another type than float32
    if (tensor->dtype != WEIR_IO_F32 || (const void *)values != tensor->data)
        return "a tensor's values are not its data";
    // Touches every value, so that the address sanitizer sees a wrong size.
    weir_io_check_finite("fuzz", "value", values, (size_t)(bytes / 4), &error);
    return NULL;
}

static const char *check_file(const weir_io_safetensors *file, uint64_t body)
{
    const float *values = NULL;
    struct weir_io_error error;
    uint64_t total = 0;
    const unsigned char *due = NULL;
    for (size_t i = 0; i < weir_io_safetensors_count(file); i++) {
        const struct weir_io_tensor *tensor = weir_io_safetensors_at(file, i);
        const char *broken = check_tensor(file, tensor);
        if (broken)
            return broken;
        if (due && due != tensor->data)
            return "a tensor does not begin where the one before it ends";
        due = (const unsigned char *)tensor->data + tensor->size_bytes;
        total += tensor->size_bytes;
    }
    if (weir_io_safetensors_find(file, "no such tensor anywhere", 0, NULL, &values, &error))
        return "a tensor is found that is not there";
    return total == body ? NULL : "the tensors do not fill the body";
}

const char *safetensors_fuzz_check(const uint8_t *data, size_t size)
{
    weir_io_safetensors *file = NULL;
    struct weir_io_error error = {{0}};
    uint64_t header = 0;
    if (!weir_io_safetensors_open_memory("fuzz", data, size, &file, &error)) {
        if (file)
            return "a refusal left a file";
        return strncmp(error.message, "fuzz: ", 6) == 0 && strlen(error.message) > 16
                   ? NULL
                   : "a refusal is no sentence that begins with the file's name";
    }
    if (!file)
        return "a file was read and is not there";
    for (int i = 7; i >= 0; i--)
        header = header << 8 | data[i];
    const char *broken = check_file(file, size - 8 - header);
    weir_io_safetensors_destroy(&file);
    accepted++;
    return broken;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *broken = safetensors_fuzz_check(data, size);
    if (broken) {
        fprintf(stderr, "%s\n", broken);
        abort();
    }
    return 0;
}
