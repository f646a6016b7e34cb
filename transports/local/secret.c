// NOLINTNEXTLINE(bugprone-reserved-identifier): for secure_getenv()
#define _GNU_SOURCE
#include "transports/local/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium/core.h>
#include <sodium/crypto_auth_hmacsha512256.h>
#include <sodium/crypto_generichash.h>
#include <sodium/randombytes.h>
#include <sodium/utils.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool local_secret_of(const char *text, size_t size, struct local_secret *out_secret)
{
    *out_secret = (struct local_secret){.is_set = sodium_init() >= 0};
    return out_secret->is_set && crypto_generichash(out_secret->key, sizeof out_secret->key,
                                                    (const uint8_t *)text, size, NULL, 0) == 0;
}

bool local_secret_random(struct local_secret *out_secret)
{
    *out_secret = (struct local_secret){.is_set = sodium_init() >= 0};
    if (out_secret->is_set)
        randombytes_buf(out_secret->key, sizeof out_secret->key);
    return out_secret->is_set;
}

// Only this user can have written it, and read it.
static bool is_private(int file)
{
    struct stat state;
    return fstat(file, &state) == 0 && S_ISREG(state.st_mode) && state.st_uid == geteuid() &&
           (state.st_mode & 077) == 0;
}

static ssize_t read_file(const char *path, char *text, size_t size, char *message,
                         size_t message_size)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t got = -1;
    if (file < 0)
        snprintf(message, message_size, "the secret's file %s cannot be opened: %s", path,
                 strerror(errno));
    else if (!is_private(file))
        snprintf(message, message_size,
                 "the secret's file %s is not a file that its user alone can read (chmod 600)",
                 path);
    else if ((got = read(file, text, size)) < 0)
        snprintf(message, message_size, "the secret's file %s cannot be read: %s", path,
                 strerror(errno));
    if (file >= 0)
        close(file);
    return got;
}

bool local_secret_read(const char *path, struct local_secret *out_secret, char *message,
                       size_t message_size)
{
    char text[LOCAL_SECRET_MOST];
    const char *variable = secure_getenv("WEIR_COMM_SECRET");
    const char *origin = variable ? "WEIR_COMM_SECRET" : path;
    ssize_t size = 0;
    *out_secret = (struct local_secret){.is_set = false};
    if (!variable && !path[0])
        return true;
    if (!variable)
        size = read_file(path, text, sizeof text, message, message_size);
    else if ((size = (ssize_t)strlen(variable)) <= (ssize_t)sizeof text)
        memcpy(text, variable, (size_t)size);
    if (size < 0)
        return false;
    while (!variable && size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r'))
        size--;
    if (size >= LOCAL_SECRET_LEAST && size <= (ssize_t)sizeof text &&
        local_secret_of(text, (size_t)size, out_secret))
        return true;
    snprintf(message, message_size, "the secret of %s has %zd characters, where %d to %d are right",
             origin, size, LOCAL_SECRET_LEAST, LOCAL_SECRET_MOST);
    return false;
}

bool local_nonce(uint8_t nonce[LOCAL_NONCE_SIZE])
{
    if (sodium_init() < 0)
        return false;
    randombytes_buf(nonce, LOCAL_NONCE_SIZE);
    return true;
}

void local_prove(const struct local_secret *secret, const char *purpose,
                 const uint8_t nonce[LOCAL_NONCE_SIZE], const void *data, size_t size,
                 uint8_t out_proof[LOCAL_PROOF_SIZE])
{
    crypto_auth_hmacsha512256_state state;
    crypto_auth_hmacsha512256_init(&state, secret->key, sizeof secret->key);
    crypto_auth_hmacsha512256_update(&state, (const uint8_t *)purpose, strlen(purpose) + 1);
    crypto_auth_hmacsha512256_update(&state, nonce, LOCAL_NONCE_SIZE);
    crypto_auth_hmacsha512256_update(&state, data, size);
    crypto_auth_hmacsha512256_final(&state, out_proof);
}

bool local_is_proven(const struct local_secret *secret, const char *purpose,
                     const uint8_t nonce[LOCAL_NONCE_SIZE], const void *data, size_t size,
                     const uint8_t proof[LOCAL_PROOF_SIZE])
{
    uint8_t right[LOCAL_PROOF_SIZE];
    local_prove(secret, purpose, nonce, data, size, right);
    return sodium_memcmp(right, proof, sizeof right) == 0;
}
