// Bytes between the processes of one machine, through memory that all ranks have mapped: each copies to its window
// what others need of it, and they take it or add it up from there. That is a copy more than reading the others'
// memory, and yet faster, for the kernel does not have to look up their pages; and ranks wait for each other by words
// in the windows, without messages.
//
// Ranks agree on it when a group is made: each hands its window to each other one over their connection, as a
// descriptor of memory without a name whose size is sealed. What is read belongs to the group, and not to the caller,
// so a rank whose call has failed may return at once.
#ifndef WEIR_LOCAL_WINDOW_H
#define WEIR_LOCAL_WINDOW_H

#include "transports/local/tcp.h"

// Exchanges windows, if all ranks can. False if that has failed the group.
bool local_window_agree(struct tcp_group *group, uint64_t timeout_ns, uint64_t deadline_ns);
void local_window_destroy(struct tcp_group *group);
// Whether the call's bytes go that way: the same answer on all ranks.
bool local_window_takes(const struct local_run *run);
// Moves the pieces of one phase, after the ranks have met.
bool local_window_phase(struct local_run *run, uint32_t phase);

#endif
