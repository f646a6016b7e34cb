// The secret that ranks of several machines share, and the proof that one knows it without telling it: each side
// sends a number that is used once, and the other one answers with an authentication code of it and of what it says
// (HMAC-SHA-512-256 of libsodium).
#ifndef WEIR_LOCAL_SECRET_H
#define WEIR_LOCAL_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOCAL_NONCE_SIZE 32
#define LOCAL_PROOF_SIZE 32
#define LOCAL_SECRET_LEAST 16  // characters
#define LOCAL_SECRET_MOST 4096 // bytes of a file

struct local_secret {
    bool is_set;
    uint8_t key[32];
};

// A secret of the text, or of random numbers. False if the system's library or numbers cannot be had.
bool local_secret_of(const char *text, size_t size, struct local_secret *out_secret);
bool local_secret_random(struct local_secret *out_secret);
// That of WEIR_COMM_SECRET, else of the file, whose path may be empty, else none. False with a sentence: too
// short, or a file that another user can read or write.
bool local_secret_read(const char *path, struct local_secret *out_secret, char *message,
                       size_t message_size);

bool local_nonce(uint8_t nonce[LOCAL_NONCE_SIZE]);
// `purpose` keeps the proofs of both sides apart.
void local_prove(const struct local_secret *secret, const char *purpose,
                 const uint8_t nonce[LOCAL_NONCE_SIZE], const void *data, size_t size,
                 uint8_t out_proof[LOCAL_PROOF_SIZE]);
bool local_is_proven(const struct local_secret *secret, const char *purpose,
                     const uint8_t nonce[LOCAL_NONCE_SIZE], const void *data, size_t size,
                     const uint8_t proof[LOCAL_PROOF_SIZE]);

#endif
