// What the raw peers share: the vendors' libraries, whose failures are those of the peer.
#ifndef WEIR_TESTS_BENCH_PEERS_RAW_PEER_H
#define WEIR_TESTS_BENCH_PEERS_RAW_PEER_H

#include "tests/bench/peers/peer.h"
#include "tests/bench/raw/raw.h"

// The driver, its first device, and the conformance kernels. Without one of them the peer is skipped.
//
// Errors: false after peer_skip() or peer_fail(); raw_cuda_close() frees what was created.
bool raw_peer_cuda(struct raw_cuda *cu);
// Its three steps.
bool raw_peer_init(struct raw_cuda *cu);
bool raw_peer_open_device(struct raw_cuda *cu);
bool raw_peer_load_kernels(struct raw_cuda *cu);

// The first device of OpenCL, and the conformance kernels, likewise.
bool raw_peer_opencl(struct raw_opencl *cl);

// False after peer_fail() with the call and the error's name or number, unless the last argument is 0.
bool raw_peer_cuda_fine(struct raw_cuda *cu, const char *call, CUresult result);
bool raw_peer_opencl_fine(cl_int code, const char *call);
#define RAW_CUDA(cu, name, ...) raw_peer_cuda_fine(cu, #name, (cu)->name(__VA_ARGS__))
#define RAW_OPENCL(cl, name, ...) raw_peer_opencl_fine((cl)->name(__VA_ARGS__), #name)

#endif
