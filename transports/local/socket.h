// Sockets of the wire "tcp": all are non-blocking, closed over exec and not kept by a child of fork()
// (descriptors.h), and waits end at a deadline of weir_clock_now_ns().
#ifndef WEIR_LOCAL_SOCKET_H
#define WEIR_LOCAL_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define LOCAL_HOST_SIZE 64

struct local_address {
    struct sockaddr_storage address;
    socklen_t size; // 0: none
};

// Resolves a host by name or number. False with a text such as "Name or service not known".
bool local_address_find(const char *host, uint16_t port, struct local_address *out_address,
                        const char **out_error);
void local_address_set_port(struct local_address *address, uint16_t port);
bool local_address_is_loopback(const struct local_address *address);
// The number of the host, without the port.
void local_address_text(const struct local_address *address, char *text, size_t size);
// An address of this machine that other machines can reach, else loopback.
void local_address_of_host(struct local_address *out_address);

// Listens at the address, or with `any` at all addresses of its family and at its port; with port 0
// at one that is free. Returns a descriptor, or -1 with errno.
int local_listen(struct local_address address, bool any, uint16_t *out_port);
// Accepts one connection. -1 with errno: ETIMEDOUT at the deadline, or what the process lacks.
int local_accept(int listener, uint64_t deadline_ns, struct local_address *out_from);
// Connects; tries again while nothing listens there, if `patient`. -1 with errno.
int local_connect(const struct local_address *address, bool patient, uint64_t deadline_ns);

// False at the deadline, at the end of the connection, and on errors.
bool local_write_all(int descriptor, const void *data, size_t size, uint64_t deadline_ns);
bool local_read_all(int descriptor, void *data, size_t size, uint64_t deadline_ns);

static inline uint64_t local_sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

// What is left until the deadline, for poll(): rounded up, at most a minute.
int local_poll_ms(uint64_t deadline_ns);
// Closes the descriptor unless it is -1, and makes it -1.
void local_close(int *descriptor);

#endif
