// Shared by the peers that use Weir.
#ifndef WEIR_TESTS_BENCH_PEERS_WEIR_H
#define WEIR_TESTS_BENCH_PEERS_WEIR_H

#include <weir/weir.h>

#include "tests/bench/peers/peer.h"

// A runtime on the backend that WEIR_BACKEND names, and its first device. If the backend
// is not available, the peer is skipped.
bool weir_peer_open(weir_runtime **out_runtime, weir_device **out_device);
// Its two steps.
bool weir_peer_open_runtime(weir_runtime **out_runtime);
bool weir_peer_open_device(weir_runtime *runtime, weir_device **out_device);
void weir_peer_close(weir_runtime **runtime, weir_device **device);

// False after peer_fail() with the thread's error, unless `status` is WEIR_OK.
bool weir_peer_fine(weir_status status);

bool weir_peer_buffer(weir_device *device, const char *label, size_t size, weir_placement placement,
                      weir_buffer **out_buffer);
bool weir_peer_queue(weir_device *device, const char *label, weir_queue **out_queue);

// The whole memory of a HOST buffer, which the host accesses until weir_peer_unmap().
void *weir_peer_map(weir_buffer *buffer, weir_access access);
bool weir_peer_unmap(weir_buffer *buffer, weir_access access);

#endif
