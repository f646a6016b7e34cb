// Hosts of the network by name, with a deadline: a name service that does not answer keeps no call waiting past it.
#ifndef WEIR_BASE_LOOKUP_H
#define WEIR_BASE_LOOKUP_H

#include <netdb.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// As getaddrinfo() for streams; "localhost" and numbers ask no server. Returns NULL, or a text such as "Name or
// service not known". `deadline_ns` is of weir_clock_now_ns().
//
// Ownership: `*out_found` is the caller's, to be freed with freeaddrinfo().
// Threads: safe. A name service is asked on a thread of the C library.
const char *weir_lookup(const char *host, const char *service, uint64_t deadline_ns,
                        struct addrinfo **out_found);

#ifdef __cplusplus
}
#endif

#endif
