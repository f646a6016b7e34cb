// All-reduces between the processes of one machine, through memory that all ranks have mapped: each copies
// to its window what others need of it, and they add it up from there. That is a copy more than reading
// the others' memory, and yet faster, for the kernel does not have to look up their pages; and ranks
// wait for each other by words in the windows, without messages.
//
// Ranks agree on it when a group is made, after they have found that they read each other's memory: each
// opens the others' windows in /proc. What is read belongs to the group, and not to the caller, so a
// rank whose call has failed may return at once.
#ifndef WEIR_LOCAL_WINDOW_H
#define WEIR_LOCAL_WINDOW_H

#include "transports/local/tcp.h"

// Finds out whether the ranks of a new group reach each other's windows. False if that has failed the
// group.
bool local_window_agree(struct tcp_group *group, uint64_t timeout_ns, uint64_t deadline_ns);
void local_window_destroy(struct tcp_group *group);
// Whether the call's bytes go that way: the same answer on all ranks.
bool local_window_takes(const struct local_run *run);
// All of it, after the ranks have met.
bool local_window_all_reduce(struct local_run *run);

#endif
