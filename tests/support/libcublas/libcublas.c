// The few calls of cuBLAS that the command makes, on the fake libcuda's memory, which is
// the process's own. A product is computed at the call. FAKE_CUBLAS names a call that
// fails: "create" or "multiply".
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct handle {
    void *stream;
    int math;
};

EXPORT int cublasCreate_v2(struct handle **out_handle);
EXPORT int cublasDestroy_v2(struct handle *handle);
EXPORT int cublasSetStream_v2(struct handle *handle, void *stream);
EXPORT int cublasSetMathMode(struct handle *handle, int mode);
EXPORT int cublasSgemm_v2(struct handle *handle, int turn_a, int turn_b, int m, int n, int k,
                          const float *alpha, const float *a, int a_pitch, const float *b,
                          int b_pitch, const float *beta, float *c, int c_pitch);

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

int cublasSetMathMode(struct handle *handle, int mode)
{
    handle->math = mode;
    return mode == 0 || mode == 3 ? 0 : 7;
}

// Column by column, as BLAS counts.
int cublasSgemm_v2(struct handle *handle, int turn_a, int turn_b, int m, int n, int k,
                   const float *alpha, const float *a, int a_pitch, const float *b, int b_pitch,
                   const float *beta, float *c, int c_pitch)
{
    if (!handle->stream || turn_a != 0 || turn_b != 0 || *beta != 0 || fails("multiply"))
        return 7;
    for (int column = 0; column < n; column++)
        for (int row = 0; row < m; row++) {
            float sum = 0;
            for (int i = 0; i < k; i++)
                sum += a[(size_t)i * (size_t)a_pitch + (size_t)row] *
                       b[(size_t)column * (size_t)b_pitch + (size_t)i];
            c[(size_t)column * (size_t)c_pitch + (size_t)row] = *alpha * sum;
        }
    return 0;
}
