// Controls of the libcuda.so.1 of this folder, which is not a driver but behaves like one:
// host memory takes the place of device memory, a thread that of each stream, and functions
// in C (twins.c) those of the conformance kernels. It is stricter than the real one where
// that would only be slow: copies of pageable memory, and from host to host, are errors,
// and so are a call without a current context, and a use of another device's memory without
// access to it. Calls that wait for the whole device there also do so here.
//
// The environment is read when the library is loaded:
//   WEIR_TEST_CUDA_VERSION=13000   what the driver supports
//                                  (libcuda_old.so.1 is 11.8 and lacks cuGetProcAddress_v2)
//   WEIR_TEST_CUDA_DEVICES=1       up to 4; 0: cuInit fails with CUDA_ERROR_NO_DEVICE.
//                                  An empty CUDA_VISIBLE_DEVICES does the same.
//   WEIR_TEST_CUDA_PEERS=1         whether devices can reach each other's memory
//   WEIR_TEST_CUDA_COOPERATIVE=1   whether devices have cooperative launches
//   WEIR_TEST_CUDA_REGISTERS=16    of a work-item of every kernel
//   WEIR_TEST_CUDA_LOCAL=0         bytes of local memory that every kernel declares
//   WEIR_TEST_CUDA_MANAGED=1       whether the host may use managed memory while kernels run; if
//                                  not, there is none
//   WEIR_TEST_CUDA_ARCH=90
//   WEIR_TEST_CUDA_PINNED=BYTES    that can be pinned in all; 1 GiB
//   WEIR_TEST_CUDA_FAIL=NAME:N[:CODE]  see `fail`
//
// In the process that loaded the library, a test may look up `weir_test_cuda` in it.
#ifndef WEIR_TESTS_SUPPORT_LIBCUDA_CONTROL_H
#define WEIR_TESTS_SUPPORT_LIBCUDA_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

#define WEIR_TEST_CUDA_SYMBOL "weir_test_cuda"

struct weir_test_cuda {
    // Makes the N-th call of function `name` from now on fail, from 1; with a code from 700
    // to 799 every later call fails with it too, until the primary context is gone. Code 0
    // means CUDA_ERROR_UNKNOWN. NULL: nothing fails.
    void (*fail)(const char *name, long n, int code);
    // Makes the N-th run of kernel `name` from now on, from 1, leave its buffers: the
    // context is dead with CUDA_ERROR_ILLEGAL_ADDRESS, permanently. Every call that needs a
    // context returns it, work that has not run by then never runs, and data written to
    // pinned memory stays. As with driver 580, another context of this process is dead from
    // the start. The same happens when kernel iota really leaves its buffer.
    void (*fault)(const char *name, long n);
    // How often the failure happened since `fail`.
    long (*struck)(void);
    // Native objects that exist: streams, events, modules, pools, memory of any
    // kind, and references of contexts.
    long (*live)(void);
    // Calls of a function since the library was loaded, refused ones included.
    long (*calls)(const char *name);
    // Name of function `index` of those that the backend may call; NULL past the last.
    const char *(*name)(size_t index);
    // Streams do nothing from now on, until they are released.
    void (*hold)(int held);
    // A stream that is destroyed while it works is waited for (0), or goes on by itself (1).
    void (*let_go)(int lets_go);
    // Makes the stream's thread call `function(user)`, in its place among the stream's work. In a dead
    // context too.
    void (*enqueue)(void *stream, void (*function)(void *user), void *user);
    // The same for a stream that is captured: the node calls `function(clone(user))` in each launch, and
    // the end of its graph `drop(user)`. False: it is not captured, and nothing is done.
    bool (*capture)(void *stream, void (*function)(void *user), void *user,
                    void *(*clone)(void *user), void (*drop)(void *user));
    // A captured stream comes after two nodes when it has been given an operation (1), as after work in
    // two branches, or after one (0).
    void (*fork_captures)(int fork);
    // What a call that cannot be captured does to the capture of the stream; false: it is not
    // captured.
    bool (*spoil)(void *stream);
    // Another library captures a stream in the mode GLOBAL from now on (1), or no more (0). Questions,
    // waits and some allocations of threads that are not RELAXED fail and spoil it. Returns how many
    // have since the last call.
    long (*others_capture)(int begin);
    // The caller's own stream, of device 0, which only the caller creates and destroys, after its work.
    void *(*create_stream)(void);
    void (*destroy_stream)(void *stream);
    // The calling thread's context: sets a foreign one (1) or none (0), and returns whether
    // the foreign one is current.
    void (*set_foreign_context)(int foreign);
    int (*has_foreign_context)(void);
};

#endif
