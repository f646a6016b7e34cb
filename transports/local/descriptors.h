// The sockets of this module, which a child of fork() does not keep: a child that lived on would hold them
// open when its parent has died, and the other ranks would not see the end. fork() closes the child's copies; the
// parent's connections go on. (A child by a bare clone(), without fork()'s handlers, keeps them until it executes
// a program.)
//
// In the child their numbers are free, and the program may have given them to files of its own. So what was
// made before the fork, which local_descriptor_forks() tells, neither closes them nor sends to them: a child may
// leave an inherited group, which frees its memory alone, and any other call on it fails. It may join groups of
// its own.
#ifndef WEIR_LOCAL_DESCRIPTORS_H
#define WEIR_LOCAL_DESCRIPTORS_H

#include <sys/socket.h>

// As socket() of a stream, accept() and eventfd(), non-blocking and closed over exec: a descriptor, or -1 with
// errno.
//
// Threads: safe, also while another one forks.
int local_descriptor_socket(int family);
int local_descriptor_accept(int listener, struct sockaddr *address, socklen_t *size);
int local_descriptor_event(void);
// How many forks lie between this process and the first one that opened one. What was opened at another number
// is the parent's.
unsigned local_descriptor_forks(void);
// Closes it; also one that is of another origin. Not one of before a fork.
void local_descriptor_close(int descriptor);

#endif
