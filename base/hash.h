// A hash of 64 bits, for names and checksums: against damage and chance, not against forgery. Each change within
// eight bytes gives another one. It depends on the machine's byte order.
#ifndef WEIR_BASE_HASH_H
#define WEIR_BASE_HASH_H

#include <string.h>

#include "base/random.h"

// `seed` is what the hash depends on besides, such as the hash of what came before.
static inline uint64_t weir_hash(uint64_t seed, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t hash = weir_random_stream(seed, size);
    for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, bytes + at, size - at < sizeof word ? size - at : sizeof word);
        hash = weir_random_draw(hash ^ word, 0);
    }
    return hash;
}

#endif
