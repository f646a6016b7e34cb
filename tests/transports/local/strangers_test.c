// Who is no rank: processes of other users, programs that know no secret, or know what a rank has said before, and a
// rank 0 that lies. Each is refused, and the ranks meet all the same. Whatever else they say, the fuzzers of
// tests/fuzz/strangers say.
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/text.h"
#include "tests/support/test.h"
#include "tests/transports/local/places.h"

#define SHORT (RANKS_SECOND / 20)

static uint64_t patience(void)
{
    return weir_clock_now_ns() + RANKS_PATIENCE;
}

static struct local_hello hello_of(uint32_t rank, uint32_t count)
{
    struct local_hello hello = {.purpose = LOCAL_TO_MEET,
                                .rank = rank,
                                .count = count,
                                .where = local_here()};
    memcpy(hello.magic, LOCAL_MAGIC, sizeof hello.magic);
    return hello;
}

// Whether the other side has ended the connection, or has said no, rather than let it wait.
static bool is_refused(int connection)
{
    struct local_welcome welcome;
    return !local_read_all(connection, &welcome, sizeof welcome, patience()) || welcome.cause[0];
}

// Other users. The process that is one has nothing that root alone can read but what it is told here.

static bool can_be_another_user(void)
{
    int status = -1;
    const pid_t child = fork();
    if (child == 0)
        _exit(setuid(OTHER_USER) == 0 ? 0 : 1);
    return waitpid(child, &status, 0) == child && status == 0;
}

#define NO_OTHER_USER "this process cannot become another user, as root can outside of a sandbox"

// Connects, says a perfect hello, and waits for any byte.
static int come_as_another(uint32_t number, const struct local_hello *hello)
{
    const struct local_address address = local_address_at_number(number);
    const int connection = socket(AF_UNIX, SOCK_STREAM, 0);
    char byte = 0;
    if (setuid(OTHER_USER) != 0 ||
        connect(connection, (const struct sockaddr *)&address.address, address.size) != 0)
        return 2;
    (void)local_write_all(connection, hello, sizeof *hello, patience());
    return local_read_all(connection, &byte, 1, patience()) ? 1 : 0;
}

WEIR_TEST(Strangers, OfAnotherUserAreNotLetIn)
{
    if (!can_be_another_user())
        WEIR_SKIP(NO_OTHER_USER);
    struct place place = place_open("file:");
    struct joiner joiners[2] = {{.failed = NULL}};
    struct local_hello hello = hello_of(1, 2);
    int status = -1;
    place_start(&place, &joiners[0], 0, 2);
    place_await(&place);
    const struct local_rendezvous its = place_read(&place);
    hello.token = its.token;
    const pid_t child = fork();
    if (child == 0)
        _exit(come_as_another(its.door.where.number, &hello));
    EXPECT_INT_EQ(waitpid(child, &status, 0), child);
    EXPECT_INT_EQ(WEXITSTATUS(status), 0);
    place_start(&place, &joiners[1], 1, 2);
    ranks_expect_joined(joiners, 2);
    EXPECT_TRUE(place_close(&place));
}

// Another user's process listens where a rank comes.
static int listen_as_another(int told, int until)
{
    const struct local_address address = local_address_at_number(0);
    uint32_t number = 0;
    char byte;
    if (setuid(OTHER_USER) != 0 || local_listen(&address, &number) < 0)
        return 1;
    return write(told, &number, sizeof number) == sizeof number && read(until, &byte, 1) == 0 ? 0
                                                                                              : 1;
}

WEIR_TEST(Strangers, OfAnotherUserAreNotBelieved)
{
    struct local_hello hello = hello_of(1, 2);
    const struct local_secret none = {.is_set = false};
    uint32_t number = 0;
    int told[2];
    int until[2];
    int status = -1;
    if (!can_be_another_user())
        WEIR_SKIP(NO_OTHER_USER);
    ASSERT_INT_EQ(pipe(told), 0);
    ASSERT_INT_EQ(pipe(until), 0);
    const pid_t child = fork();
    if (child == 0)
        _exit(close(until[1]) == 0 ? listen_as_another(told[1], until[0]) : 1);
    EXPECT_INT_EQ(read(told[0], &number, sizeof number), sizeof number);
    const struct local_address address = local_address_at_number(number);
    EXPECT_INT_EQ(local_knock(&address, &none, &hello, patience()), -1);
    EXPECT_INT_EQ(errno, EPERM);
    close(until[1]);
    EXPECT_INT_EQ(waitpid(child, &status, 0), child);
    EXPECT_INT_EQ(status, 0);
    close(until[0]), close(told[0]), close(told[1]);
}

// After its hello a rank is silent until it is answered. One of this user's that is not ends the meeting, at once.
PLACE_TEST(Strangers, MaySayTooMuch, "unix:")
{
    struct joiner first = {.failed = NULL};
    struct local_hello hello[2] = {hello_of(1, 3), hello_of(2, 3)};
    place_start(place, &first, 0, 3);
    place_await(place);
    hello[0].token = hello[1].token = place_read(place).token;
    int stranger = place_connect(place);
    EXPECT_TRUE(local_write_all(stranger, hello, sizeof hello, patience()));
    EXPECT_TRUE(is_refused(stranger));
    local_close(&stranger);
    EXPECT_RANK(rank_await(&first), WEIR_ERROR_COMM, first.rank, "rank 1 ");
}

// A process without descriptors.

static bool next_at(struct local_door *door, struct local_stranger *out_rank)
{
    struct pollfd polls[DOOR_POLLS];
    const bool came = local_door_next(door, polls, 0, patience(), out_rank);
    local_close(&out_rank->connection);
    return came;
}

// The one that a silent stranger holds is for a rank. Where strangers hold none, the rank 0 fails at once, and does not
// spin until its time is over.
WEIR_TEST(Strangers, GiveBackTheLastDescriptor)
{
    static struct local_door door;
    const struct local_secret none = {.is_set = false};
    const struct local_hello right = hello_of(1, 2);
    struct local_stranger came;
    struct rlimit limit;
    int held[64] = {0};
    int count = 0;
    local_door_init(&door, &none);
    ASSERT_TRUE(local_door_open(&door, NULL));
    const struct local_address address = local_address_at_number(door.where.number);
    int silent = local_connect(&address, patience());
    int rank = local_connect(&address, patience());
    EXPECT_TRUE(local_write_all(rank, &right, sizeof right, patience()));
    ASSERT_INT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit before = limit;
    limit.rlim_cur = (rlim_t)test_descriptors() + 8;
    EXPECT_INT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while (count < 64 && (held[count] = dup(rank)) >= 0)
        count++;
    ASSERT_INT_LT(0, count);
    close(held[--count]);
    EXPECT_TRUE(next_at(&door, &came));
    EXPECT_INT_EQ(came.answer.hello.rank, 1);
    held[count++] = dup(rank);
    local_close(&silent);
    silent = -1;
    while (count < 64 && (held[count] = dup(rank)) >= 0)
        count++;
    close(held[--count]);
    int other = local_connect(&address, patience());
    EXPECT_INT_LE(0, other);
    EXPECT_FALSE(next_at(&door, &came));
    EXPECT_INT_EQ(errno, EMFILE);
    setrlimit(RLIMIT_NOFILE, &before);
    while (count > 0)
        close(held[--count]);
    local_close(&other);
    local_close(&rank);
    local_door_close(&door);
}

// On the network. A door that lets in so many ranks.

struct served {
    struct local_secret secret;
    struct local_door door;
    struct local_address address;
    pthread_t thread;
    int wanted;
    int came;
    uint32_t rank; // of the last one
};

static void *serve(void *argument)
{
    struct served *served = argument;
    struct pollfd polls[DOOR_POLLS];
    const uint64_t deadline_ns = patience();
    while (served->came < served->wanted) {
        struct local_stranger rank;
        if (!local_door_next(&served->door, polls, 0, deadline_ns, &rank))
            break;
        served->came++;
        served->rank = rank.answer.hello.rank;
        local_close(&rank.connection);
    }
    return NULL;
}

static const char known[] = "what all ranks of this job know";

static void serve_start(struct served *served, int wanted)
{
    *served = (struct served){.wanted = wanted};
    EXPECT_TRUE(local_secret_of(known, sizeof known - 1, &served->secret));
    EXPECT_TRUE(local_address_parse("127.0.0.1", &served->address));
    local_door_init(&served->door, &served->secret);
    EXPECT_TRUE(local_door_open(&served->door, &served->address));
    local_address_set_port(&served->address, (uint16_t)served->door.where.port);
    pthread_create(&served->thread, NULL, serve, served);
}

// How many were refused.
static uint32_t serve_end(struct served *served)
{
    pthread_join(served->thread, NULL);
    EXPECT_INT_EQ(served->came, served->wanted);
    local_door_close(&served->door);
    return served->door.refused;
}

// A stranger without the secret, with another secret, or with a recorded proof of a rank is refused. A recorded proof is
// worth nothing, as each challenge has a new number.
WEIR_TEST(Strangers, NeedTheSameSecretOnTheNetwork)
{
    static struct served served;
    struct local_answer answer = {.hello = hello_of(1, 9)};
    struct local_challenge challenges[2];
    uint8_t proof[LOCAL_PROOF_SIZE];
    struct local_hello hello = hello_of(1, 9);
    struct local_secret other = {.is_set = false};
    serve_start(&served, 2);
    for (int i = 0; i < 2; i++) {
        EXPECT_INT_EQ(local_knock(&served.address, &other, &hello, patience()), -1);
        EXPECT_INT_EQ(errno, EACCES);
        EXPECT_TRUE(local_secret_of(known, sizeof known - 2, &other));
    }
    for (int i = 0; i < 2; i++) {
        int connection = local_connect(&served.address, patience());
        EXPECT_TRUE(local_read_all(connection, &challenges[i], sizeof challenges[i], patience()));
        if (i == 0)
            local_prove(&served.secret, "rank", challenges[i].nonce, &answer.hello, answer.proof);
        EXPECT_TRUE(local_write_all(connection, &answer, sizeof answer, patience()));
        EXPECT_INT_EQ(local_read_all(connection, proof, sizeof proof, patience()), i == 0);
        local_close(&connection);
    }
    EXPECT_TRUE(memcmp(&challenges[0], &challenges[1], sizeof challenges[0]) != 0);
    hello = hello_of(7, 9);
    int connection = local_knock(&served.address, &served.secret, &hello, patience());
    EXPECT_INT_LE(0, connection);
    local_close(&connection);
    EXPECT_INT_EQ(serve_end(&served), 3);
    EXPECT_INT_EQ(served.rank, 7);
}

static bool reads(const char *path, const struct local_secret *wanted)
{
    struct local_secret secret;
    char message[512];
    return local_secret_read(path, &secret, message, sizeof message) && secret.is_set &&
           memcmp(&secret.key, &wanted->key, sizeof secret.key) == 0;
}

// A file of this user's that no other user can read. Another thing is refused, and not waited for.
PLACE_TEST(Secret, IsReadFromAPrivateFile, "file:")
{
    struct local_secret secret;
    char link[96];
    char message[512];
    const char *path = place_path(place);
    snprintf(link, sizeof link, "%s/link", place->folder);
    EXPECT_TRUE(local_secret_of(known, sizeof known - 1, &secret));
    const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_INT_EQ(dprintf(file, "%s\n", known), sizeof known);
    close(file);
    EXPECT_TRUE(reads(path, &secret));
    EXPECT_INT_EQ(symlink(path, link), 0);
    EXPECT_FALSE(reads(link, &secret));
    EXPECT_INT_EQ(chmod(path, 0640), 0);
    EXPECT_FALSE(local_secret_read(path, &secret, message, sizeof message));
    EXPECT_CONTAINS(message, "the secret's file ");
    EXPECT_CONTAINS(message, "chmod 600");
    EXPECT_INT_EQ(unlink(path), 0);
    EXPECT_FALSE(reads(path, &secret));
    EXPECT_INT_EQ(mkfifo(path, 0600), 0);
    EXPECT_FALSE(reads(path, &secret));
    EXPECT_INT_EQ(unlink(link), 0);
}

PLACE_TEST(Secret, OfTheMostCharactersMayEndItsLine, "file:")
{
    char text[LOCAL_SECRET_MOST + 1];
    struct local_secret secret;
    memset(text, 'x', LOCAL_SECRET_MOST);
    text[LOCAL_SECRET_MOST] = '\0';
    EXPECT_TRUE(local_secret_of(text, LOCAL_SECRET_MOST, &secret));
    const int file = open(place_path(place), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_INT_EQ(dprintf(file, "%s\r\n", text), LOCAL_SECRET_MOST + 2);
    EXPECT_TRUE(reads(place_path(place), &secret));
    EXPECT_INT_EQ(dprintf(file, "x"), 1);
    EXPECT_FALSE(reads(place_path(place), &secret));
    close(file);
}

// A rank 0 of this user's that lies.

static atomic_int lookups; // of all threads

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names for functions that it wraps
int __real_getaddrinfo_a(int mode, void *list[], int count, void *event);
int __wrap_getaddrinfo_a(int mode, void *list[], int count, void *event);
int __real_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                       struct addrinfo **result);
int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                       struct addrinfo **result);

int __wrap_getaddrinfo_a(int mode, void *list[], int count, void *event)
{
    lookups++;
    return __real_getaddrinfo_a(mode, list, count, event);
}

int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                       struct addrinfo **result)
{
    lookups += !hints || !(hints->ai_flags & AI_NUMERICHOST);
    return __real_getaddrinfo(name, service, hints, result);
}
// NOLINTEND(bugprone-reserved-identifier)

struct tyrant {
    pthread_t thread;
    int listener;
    struct local_welcome welcome;
    struct local_entry entries[3];
};

static void *rule(void *argument)
{
    const struct tyrant *it = argument;
    struct local_address from;
    struct local_hello hello;
    char byte;
    int connection = -1;
    while ((connection = local_accept(it->listener, &from)) < 0)
        weir_clock_sleep_ns(RANKS_SECOND / 1000);
    local_read_all(connection, &hello, sizeof hello, patience());
    local_write_all(connection, &it->welcome, sizeof it->welcome, patience());
    local_write_all(connection, it->entries, sizeof it->entries, patience());
    while (local_read_all(connection, &byte, 1, patience()))
        continue;
    local_close(&connection);
    return NULL;
}

// What rank 2 of three comes to.
static struct rank rank_under(struct tyrant *tyrant)
{
    struct place place = place_open("unix:");
    const struct local_address any = local_address_at_number(0);
    struct local_rendezvous its = {.magic = LOCAL_RENDEZVOUS,
                                   .door.where = local_here(),
                                   .token = tyrant->welcome.token};
    struct rank rank = {.rank = 2};
    const int before = test_descriptors();
    tyrant->listener = local_listen(&any, &its.door.where.number);
    place_write(&place, &its, sizeof its, 0600);
    lookups = 0;
    pthread_create(&tyrant->thread, NULL, rule, tyrant);
    const struct weir_transport_setup setup = place_setup(place.rendezvous, 3, RANKS_SECOND);
    rank_join(&rank, &setup);
    pthread_join(tyrant->thread, NULL);
    local_close(&tyrant->listener);
    EXPECT_INT_EQ(lookups, 0);
    EXPECT_INT_EQ(test_descriptors(), before);
    EXPECT_INT_EQ(test_host_blocks(), 1);
    EXPECT_TRUE(place_close(&place));
    return rank;
}

#define NO_END "\1" // in place of a text that fills its room

static void write_lie(char *to, size_t size, const char *text)
{
    memset(to, strcmp(text, NO_END) == 0 ? 'x' : 0, size);
    if (strcmp(text, NO_END) != 0)
        memcpy(to, text, strlen(text));
}

// It says that a rank is on another machine, at that host, or why it refuses this one, which gets into logs and to terminals.
// Nothing is looked up, and without a secret a rank goes nowhere on the network.
static const struct {
    uint32_t rank;
    const char *host;
    const char *refusal;
    weir_status status;
    const char *words;
} lies[] = {
    {1, "rank-1.example.org", NULL, WEIR_ERROR_CONFIG, "rank 1"},
    {1, "localhost", NULL, WEIR_ERROR_CONFIG, "rank 1"},
    {1, "a\nb", NULL, WEIR_ERROR_CONFIG, "rank 1"},
    {1, "%s%n%n", NULL, WEIR_ERROR_CONFIG, "rank 1"},
    {1, NO_END, NULL, WEIR_ERROR_CONFIG, "rank 1"},
    {0, "127.0.0.1", NULL, WEIR_ERROR_CONFIG, "rank 0"},
    {0, NULL, "go away\nweir: error: \x1b[2Jforged", WEIR_ERROR_COMM, "go away"},
    {0, NULL, NO_END, WEIR_ERROR_COMM, "xxx"},
};

WEIR_TEST(RankZero, IsNotBelieved)
{
    struct local_address address;
    struct local_address from;
    uint32_t port = 0;
    ranks_state();
    EXPECT_TRUE(local_address_parse("127.0.0.1", &address));
    int listener = local_listen(&address, &port);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct tyrant tyrant = {.welcome = {.token = 1}};
        struct local_entry *entry = &tyrant.entries[lies[i].rank];
        for (int k = 0; k < 3; k++)
            tyrant.entries[k].where = local_here();
        entry->where.port = port;
        if (lies[i].refusal)
            write_lie(tyrant.welcome.cause, sizeof tyrant.welcome.cause, lies[i].refusal);
        if (lies[i].host) {
            memset(&entry->where.machine, 5, sizeof entry->where.machine);
            write_lie(entry->host, sizeof entry->host, lies[i].host);
        }
        const struct rank rank = rank_under(&tyrant);
        EXPECT_RANK(rank.status, lies[i].status, rank, lies[i].words);
        EXPECT_TRUE(weir_text_is_clean(rank.error.message, ""));
    }
    EXPECT_INT_EQ(local_accept(listener, &from), -1);
    EXPECT_INT_EQ(errno, EAGAIN);
    local_close(&listener);
}
