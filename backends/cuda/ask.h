// Questions to the driver, waits and allocations that do not spoil what others capture.
//
// While a thread captures a stream in the mode GLOBAL, as cudaStreamBeginCapture() does unless told
// otherwise, the driver refuses these calls on other threads, and the capture is lost. The library asks on
// threads of its own, and when it submits, so a program would not expect it:
// https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__STREAM.html, cuThreadExchangeStreamCaptureMode.
// What is asked about here is never captured, so the thread is RELAXED meanwhile: two calls that change
// a variable of the thread, beside one that takes a microsecond.
#ifndef WEIR_BACKENDS_CUDA_ASK_H
#define WEIR_BACKENDS_CUDA_ASK_H

#include "backends/cuda/symbols.h"

// The thread is RELAXED until cu_unrelax() with what this returns.
static inline CUstreamCaptureMode cu_relax(const struct cu_symbols *cu)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    (void)cu->cuThreadExchangeStreamCaptureMode(&mode);
    return mode;
}

static inline void cu_unrelax(const struct cu_symbols *cu, CUstreamCaptureMode before)
{
    (void)cu->cuThreadExchangeStreamCaptureMode(&before);
}

// One call with the thread RELAXED.
#define CU_ASK(name, call, type)                                           \
    static inline CUresult name(const struct cu_symbols *cu, type subject) \
    {                                                                      \
        const CUstreamCaptureMode before = cu_relax(cu);                   \
        const CUresult code = cu->call(subject);                           \
        cu_unrelax(cu, before);                                            \
        return code;                                                       \
    }
CU_ASK(cu_ask_event, cuEventQuery, CUevent)
CU_ASK(cu_ask_stream, cuStreamQuery, CUstream)
CU_ASK(cu_await_event, cuEventSynchronize, CUevent)
CU_ASK(cu_await_stream, cuStreamSynchronize, CUstream)
#undef CU_ASK

#endif
