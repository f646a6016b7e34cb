// Controls of the libnccl.so.2 of this folder, which is not NCCL but behaves like it for ranks of one
// process, on the streams of the fake libcuda: a call returns at once, the thread of its stream waits
// for the other ranks, and after an abort it goes on as if all were well.
//
// The environment is read when the library is loaded:
//   WEIR_TEST_NCCL_VERSION=22809
//   WEIR_TEST_NCCL_FOLDER=PATH   ranks are in processes of their own, and meet in files of this folder;
//                                there are no sends and receives then
//   WEIR_TEST_NCCL_FAIL=NAME:N   the N-th call of function NAME fails, see `fail`
//
// In the process that loaded the library, a test may look up `weir_test_nccl` in it.
#ifndef WEIR_TESTS_SUPPORT_LIBNCCL_CONTROL_H
#define WEIR_TESTS_SUPPORT_LIBNCCL_CONTROL_H

#include <stdbool.h>

#define WEIR_TEST_NCCL_SYMBOL "weir_test_nccl"

struct weir_test_nccl {
    // Makes the N-th call of function `name` from now on, from 1, fail with that code. NULL: none, and
    // ncclCommInitRank fails that waits for other ranks, which may never come.
    void (*fail)(const char *name, long n, int code);
    // What ncclCommGetAsyncError stores from now on; 0: nothing.
    void (*async_error)(int code);
    // While held, calls of function `name` do not return; NULL releases them. One name at a time.
    void (*hold)(const char *name);
    // The same for one call only, the next one: as of a rank that has stopped.
    void (*hold_one)(const char *name);
    // Calls of a function so far, refused ones included.
    long (*calls)(const char *name);
    // Waits until a call of the held function is waiting.
    void (*await_held)(void);
    // While set, calls that are under way go on after their communicator's abort, which returns: a kernel
    // that does not see it.
    void (*endless)(bool endless);
    // While not set, as with NCCL_COMM_BLOCKING=0: communicators are created, and calls that move data end, with
    // ncclInProgress, and the next questions for the error have it too.
    void (*blocking)(bool blocking);
    // Communicators that exist.
    long (*live)(void);
};

#endif
