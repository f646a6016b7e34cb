// Sockets between processes: of this machine, which have no name in the file system, and of the network. All are non-
// blocking, closed over exec and not kept by a child of fork() (below), and every wait ends at a deadline of
// weir_clock_now_ns().
#ifndef WEIR_LOCAL_SOCKET_H
#define WEIR_LOCAL_SOCKET_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define LOCAL_HOST_SIZE 64

struct local_address {
    struct sockaddr_storage address;
    socklen_t size; // 0: none
};

// Takes the first of the addresses, and frees them. False: NULL, there is none.
bool local_address_take(struct addrinfo *found, struct local_address *out_address);
// Resolves a host's number, which asks no server.
bool local_address_parse(const char *number, struct local_address *out_address);
// A socket of this machine, at a number, which the system gives.
struct local_address local_address_at_number(uint32_t number);
bool local_address_is_machine(const struct local_address *address); // of this machine's kind
void local_address_set_port(struct local_address *address, uint16_t port);
// From where an address of the network is reached.
enum local_reach {
    LOCAL_REACH_LOOPBACK, // this machine alone
    LOCAL_REACH_NETWORK,
    LOCAL_REACH_ALL, // it stands for all addresses of the machine
};
enum local_reach local_address_reach(const struct local_address *address);
// This machine's address on the way to another one's. False with errno if there is no way.
bool local_address_toward(const struct local_address *other, struct local_address *out_own);
// The number of the host, without the port; "this machine" for a socket of the machine.
void local_address_text(const struct local_address *address, char *text, size_t size);

// Listens at exactly that address. With the port 0, or of the machine with the number 0, at one that is free;
// `*out_number` is the port or the number then. Returns a descriptor, or -1 with errno.
int local_listen(const struct local_address *address, uint32_t *out_number);
// Accepts a connection that is there; -1 with errno: EPERM if it is one of the machine, and of another user's process.
int local_accept(int listener, struct local_address *out_from);
// Connects once; -1 with errno: EPERM if another user's process listens at a socket of the machine.
int local_connect(const struct local_address *address, uint64_t deadline_ns);

// False at the deadline, at the end of the connection, and on errors.
bool local_write_all(int descriptor, const void *data, size_t size, uint64_t deadline_ns);
bool local_read_all(int descriptor, void *data, size_t size, uint64_t deadline_ns);
// After an error of such a call: waits until it may be made again. False at the deadline, and if it never may.
bool local_may_try_again(int descriptor, short events, uint64_t deadline_ns);

static inline uint64_t local_sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

// What is left until the deadline, for poll(): rounded up, at most a minute.
int local_poll_ms(uint64_t deadline_ns);
// Closes the descriptor unless it is -1, and makes it -1. Keeps errno.
void local_close(int *descriptor);

// A child of fork() does not keep the sockets of this process: a child that lived on would hold them
// open when its parent has died, and the other ranks would not see the end. fork() closes the child's copies; the
// parent's connections go on. (A child by a bare clone(), without fork()'s handlers, keeps them until it executes
// a program.) In such a child the front end refuses all calls, so nothing here is asked for what was the parent's.

// Threads: safe, also while another one forks.

// What all groups of the process share is guarded by its lock, which fork() takes too. Nothing waits with it held.
void local_process_lock(void);
void local_process_unlock(void);

#endif
