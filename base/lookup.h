// Hosts of the network by name, with a deadline: a name service that does not answer keeps no call waiting past it; and
// which addresses are this machine's.
#ifndef WEIR_BASE_LOOKUP_H
#define WEIR_BASE_LOOKUP_H

#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

// Splits "HOST:PORT", where a host with colons stands in brackets, or "PORT", whose host is "". False if the port is
// no number from 1 to 65535 without leading zeros, a bracket is not closed, or the host has `size` bytes.
bool weir_address_split(const char *text, char *host, size_t size, const char **out_port);

// As getaddrinfo() for streams; "localhost" and numbers ask no server. Returns NULL, or a text such as "Name or
// service not known". `deadline_ns` is of weir_clock_now_ns().
//
// Ownership: `*out_found` is the caller's, to be freed with freeaddrinfo().
// Threads: safe. A name service is asked on a thread of the C library.
const char *weir_lookup(const char *host, const char *service, uint64_t deadline_ns,
                        struct addrinfo **out_found);

// Whether this machine has the address, which is of IPv4 or IPv6; its port does not count.
bool weir_address_is_own(const struct sockaddr *address, socklen_t size);

// An address of this machine that other machines can reach, else loopback. The port is 0.
struct sockaddr_in weir_address_of_host(void);

#endif
