// The few calls of cuBLAS that the command makes, on the fake libcuda's memory, which is
// the process's own. A product is computed at the call. FAKE_CUBLAS names a call that
// fails: "create" or "multiply".
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct handle {
    void *stream;
};

EXPORT int cublasCreate_v2(struct handle **out_handle);
EXPORT int cublasDestroy_v2(struct handle *handle);
EXPORT int cublasSetStream_v2(struct handle *handle, void *stream);
EXPORT int cublasGemmEx(struct handle *handle, int turn_a, int turn_b, int m, int n, int k,
                        const void *alpha, const void *a, int a_type, int a_pitch, const void *b,
                        int b_type, int b_pitch, const void *beta, void *c, int c_type, int c_pitch,
                        int compute, int algorithm);

static int fails(const char *call)
{
    const char *named = getenv("FAKE_CUBLAS");
    return named && strcmp(named, call) == 0;
}

int cublasCreate_v2(struct handle **out_handle)
{
    *out_handle = fails("create") ? NULL : calloc(1, sizeof **out_handle);
    return *out_handle ? 0 : 1;
}

int cublasDestroy_v2(struct handle *handle)
{
    free(handle);
    return 0;
}

int cublasSetStream_v2(struct handle *handle, void *stream)
{
    handle->stream = stream;
    return 0;
}

enum {
    TYPE_F32 = 0,
    TYPE_BF16 = 14,
    COMPUTE_F32 = 68,
    COMPUTE_TF32 = 77
};

// Element (row, column) of a matrix by columns, or of its transpose.
static float element(const void *matrix, int type, int pitch, int turned, int row, int column)
{
    const size_t at =
        (size_t)(turned ? row : column) * (size_t)pitch + (size_t)(turned ? column : row);
    float value;
    if (type == TYPE_F32)
        return ((const float *)matrix)[at];
    const unsigned bits = (unsigned)((const unsigned short *)matrix)[at] << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// A transposed factor has its pitch checked against the side that it is stored along.
int cublasGemmEx(struct handle *handle, int turn_a, int turn_b, int m, int n, int k,
                 const void *alpha, const void *a, int a_type, int a_pitch, const void *b,
                 int b_type, int b_pitch, const void *beta, void *c, int c_type, int c_pitch,
                 int compute, int algorithm)
{
    const float scale = *(const float *)alpha;
    const float keep = *(const float *)beta;
    const int known = a_type == b_type && (a_type == TYPE_F32 || a_type == TYPE_BF16) &&
                      c_type == TYPE_F32 &&
                      (compute == COMPUTE_F32 || (compute == COMPUTE_TF32 && a_type == TYPE_F32)) &&
                      algorithm == -1;
    if (!handle->stream || !known || a_pitch < (turn_a ? k : m) || b_pitch < (turn_b ? n : k) ||
        c_pitch < m || fails("multiply"))
        return 7;
    for (int column = 0; column < n; column++)
        for (int row = 0; row < m; row++) {
            float *to = (float *)c + (size_t)column * (size_t)c_pitch + (size_t)row;
            float sum = 0;
            for (int i = 0; i < k; i++)
                sum += element(a, a_type, a_pitch, turn_a, row, i) *
                       element(b, b_type, b_pitch, turn_b, i, column);
            *to = scale * sum + (keep != 0 ? keep * *to : 0);
        }
    return 0;
}
