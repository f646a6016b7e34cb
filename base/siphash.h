// SipHash-2-4 of J.-P. Aumasson and D. J. Bernstein: a hash of 64 bits under a secret key.
//
// Under a known key, for names and checksums.
//
// It is part of the tree, with the test vectors of its authors, because no C library has it
// and a module should need no more shared libraries than its driver does.
//
// Threads: safe.
#ifndef WEIR_BASE_SIPHASH_H
#define WEIR_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

// The key's 16 bytes as two words, little-endian.
struct weir_siphash_key {
    uint64_t words[2];
};

uint64_t weir_siphash(const struct weir_siphash_key *key, const void *data, size_t size);

#endif
