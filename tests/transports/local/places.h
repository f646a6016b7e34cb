// Places where ranks meet, one of each kind, for tests of the transport "local".
#ifndef WEIR_TESTS_TRANSPORTS_PLACES_H
#define WEIR_TESTS_TRANSPORTS_PLACES_H

#include <unistd.h>

#include "tests/transports/local/ranks.h"
#include "transports/local/local.h"

// Another user than this one: mostly the one of the system that owns no files.
#define OTHER_USER (geteuid() == 65534 ? 65533 : 65534)

enum {
    PLACE_KINDS = 3
};
extern const char *const place_kinds[PLACE_KINDS]; // such as "unix:"

struct place {
    char folder[32]; // of its own
    char rendezvous[96];
    int port; // holds that of "tcp://", so that no other test takes it
};

struct place place_open(const char *kind);
// Removes it. False if something else is left in its folder.
bool place_close(struct place *place);
// A test with a place, `place`, in whose folder nothing else may be left.
#define PLACE_TEST(suite, name, kind)                                                       \
    WEIR_TEST_WITH(suite, name, struct place, place, (*place = place_open(kind)).folder[0], \
                   EXPECT_TRUE(place_close(place)))
// The file.
const char *place_path(const struct place *place);
bool place_is_taken(const struct place *place);
void place_await(const struct place *place);
void place_write(const struct place *place, const void *data, size_t size, mode_t mode);
// What rank 0 has left there.
struct local_rendezvous place_read(const struct place *place);
// A connection to rank 0, or -1.
int place_connect(const struct place *place);

struct weir_transport_setup place_setup(const char *rendezvous, uint32_t count,
                                        uint64_t timeout_ns);
// rank_start() of one of `count` ranks at the place, with patience.
void place_start(const struct place *place, struct joiner *joiner, uint32_t rank, uint32_t count);

#endif
