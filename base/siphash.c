// https://www.aumasson.jp/siphash/siphash.pdf has the function and its reasons.
#include "base/siphash.h"

struct state {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotate(uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

static void half_round(uint64_t *a, uint64_t *b, uint64_t *c, uint64_t *d, unsigned s, unsigned t)
{
    *a += *b;
    *c += *d;
    *b = rotate(*b, s) ^ *a;
    *d = rotate(*d, t) ^ *c;
    *a = rotate(*a, 32);
}

static void rounds(struct state *s, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        half_round(&s->v0, &s->v1, &s->v2, &s->v3, 13, 16);
        half_round(&s->v2, &s->v1, &s->v0, &s->v3, 17, 21);
    }
}

static void absorb(struct state *s, uint64_t word)
{
    s->v3 ^= word;
    rounds(s, 2);
    s->v0 ^= word;
}

// At most eight bytes, little-endian.
static uint64_t word_of(const unsigned char *bytes, size_t count)
{
    uint64_t word = 0;
    for (size_t i = count; i-- > 0;)
        word = word << 8 | bytes[i];
    return word;
}

uint64_t weir_siphash(const struct weir_siphash_key *key, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    struct state s = {
        .v0 = key->words[0] ^ UINT64_C(0x736f6d6570736575),
        .v1 = key->words[1] ^ UINT64_C(0x646f72616e646f6d),
        .v2 = key->words[0] ^ UINT64_C(0x6c7967656e657261),
        .v3 = key->words[1] ^ UINT64_C(0x7465646279746573),
    };
    size_t left = size;
    for (; left >= 8; left -= 8, bytes += 8)
        absorb(&s, word_of(bytes, 8));
    absorb(&s, word_of(bytes, left) | (uint64_t)size << 56);
    s.v2 ^= 0xff;
    rounds(&s, 4);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
