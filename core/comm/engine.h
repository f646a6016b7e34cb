// Communicators whose collectives an engine of the device carries out, such as NCCL.
//
// The transport has joined the ranks before, and remains: it carries what the engine's creation
// exchanges, splits, collectives that the engine does not take, and the pulse.
#ifndef WEIR_CORE_COMM_ENGINE_H
#define WEIR_CORE_COMM_ENGINE_H

#include "core/comm/comm.h"

// Gives a communicator that has its group its rank and count and, if every rank has the same engine,
// the engine's part. Waits for the other ranks, which are told if that fails.
weir_status weir__engine_create(weir_comm *comm, const char *file, int line);

// Ends it; a communicator without one is accepted.
void weir__engine_finish(weir_comm *comm);

#endif
