// What ranks tell each other while an engine of the device carries their collectives out.
//
// An engine reports neither a rank that has died nor one that calls something else, and after an abort
// its events complete as if nothing had happened. So each communicator has a thread, which in turns
// asks the engine how far it is and exchanges a beat with the other ranks, over a group of the
// transport's: what this rank has called last. A connection that ends, a call that differs, and a
// collective that takes longer than the timeout end the communicator. The first cause is booked on
// the queues before the engine is told to abort.
#ifndef WEIR_CORE_COMM_PULSE_H
#define WEIR_CORE_COMM_PULSE_H

#include "core/comm/comm.h"

// Starts the thread of a communicator that has its engine. `group` becomes the pulse's.
weir_status weir__pulse_start(weir_comm *comm, void *group);

// Ends it, after telling the other ranks that this one leaves, and leaves the group. Waits for them, at
// most a second.
void weir__pulse_finish(weir_comm *comm);

// The communicator has failed: the other ranks are told `reason`.
void weir__pulse_tell(weir_comm *comm, const char *reason);

#endif
