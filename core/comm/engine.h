// Communicators whose collectives an engine of the device carries out, such as NCCL.
//
// The transport has joined the ranks before, and remains: it carries what the engine's creation
// exchanges, splits, collectives that the engine does not take, and the pulse.
#ifndef WEIR_CORE_COMM_ENGINE_H
#define WEIR_CORE_COMM_ENGINE_H

#include "core/comm/comm.h"

// Creates the engine's part of a communicator that has its group, if every rank has the same engine.
// Waits for the other ranks.
weir_status weir__engine_create(weir_comm *comm, const char *file, int line);

// Ends it; a communicator without one is accepted.
void weir__engine_finish(weir_comm *comm);

#endif
