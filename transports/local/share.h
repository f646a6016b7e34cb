// Bytes between the processes of one machine: a rank reads the others' memory, one copy by the kernel
// (process_vm_readv), in place of two and the way through TCP.
//
// Ranks agree on it when a group is made: each must be able to read each, which not every kernel's
// policy allows, and have the setting. Ranks then say in the head where their memory is, and exchange a byte between
// phases and at the end. After a failure a rank returns while others may still read: so each
// has a word, which is cleared then, and which they read after all else.
#ifndef WEIR_LOCAL_SHARE_H
#define WEIR_LOCAL_SHARE_H

#include "transports/local/tcp.h"

// Finds out whether the ranks of a new group reach each other's memory. False if that has failed the
// group.
bool local_share_agree(struct tcp_group *group, uint64_t timeout_ns, uint64_t deadline_ns);
// Collects a record of each rank of a new group.
bool local_share_gather(struct tcp_group *group, uint64_t timeout_ns, uint64_t deadline_ns,
                        const void *record, size_t size, void *records);
// Whether the call's bytes are read so: the same answer on all ranks.
bool local_share_takes(const struct local_run *run);
bool local_share_phase(struct local_run *run, uint32_t phase);
bool local_share_end(struct local_run *run);

#endif
