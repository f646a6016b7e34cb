// The disk cache, and the hash of its keys.
#define _GNU_SOURCE // setenv, syscall
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/disk_cache.h"
#include "tests/support/test.h"

// The disk cache: what it keeps, what it treats as damage, how its size is limited, and that
// processes that share it see complete entries.

// In place of the C library's, so that files can belong to another user where the test may not
// give them away: the program's user becomes another.
static uid_t pretended_user;

uid_t geteuid(void)
{
    return pretended_user ? pretended_user : (uid_t)syscall(SYS_geteuid);
}

struct place {
    char directory[512];
    char folder[520]; // of the cache
    char message[512];
    weir_disk_cache *cache;
};

static weir_disk_cache *open_cache(struct place *place, uint64_t limit_bytes)
{
    return weir_disk_cache_create(place->directory, "things", limit_bytes, place->message,
                                  sizeof place->message);
}

static void set_up(struct place *place, uint64_t limit_bytes)
{
    memset(place, 0, sizeof *place);
    snprintf(place->directory, sizeof place->directory, "%s", weir_test_temp_dir());
    snprintf(place->folder, sizeof place->folder, "%s/things", place->directory);
    place->cache = open_cache(place, limit_bytes);
    ASSERT_NOT_NULL(place->cache);
}

#define PLACE_TEST(suite, name, limit)                                                             \
    WEIR_TEST_WITH(suite, name, struct place, place, (set_up(place, limit), place->cache != NULL), \
                   weir_disk_cache_destroy(&place->cache))

static bool put(struct place *place, const char *key, const void *data, size_t size)
{
    return weir_disk_cache_write(place->cache, key, strlen(key), data, size, place->message,
                                 sizeof place->message);
}

static bool holds(const struct place *place, const char *key, const void *data, size_t size)
{
    void *found;
    size_t found_size;
    bool same = weir_disk_cache_read(place->cache, key, strlen(key), &found, &found_size) &&
                found_size == size && memcmp(found, data, size) == 0;
    free(found);
    return same;
}

// The path of the only entry.
static bool find_entry(const struct place *place, char *path, size_t size)
{
    DIR *folder = opendir(place->folder);
    bool found = false;
    for (struct dirent *file = folder ? readdir(folder) : NULL; file; file = readdir(folder)) {
        if (file->d_name[0] == '.')
            continue;
        found = true;
        snprintf(path, size, "%s/%s", place->folder, file->d_name);
    }
    if (folder)
        closedir(folder);
    return found;
}

PLACE_TEST(DiskCache, GivesBackWhatWasStored, 1 << 20)
{
    void *data;
    size_t size = 1;

    EXPECT_FALSE(weir_disk_cache_read(place->cache, "a", 1, &data, &size));
    EXPECT_NULL(data);
    EXPECT_UINT_EQ(size, 0);
    ASSERT_TRUE(put(place, "a", "first", 5));
    ASSERT_TRUE(put(place, "b", "", 0));
    EXPECT_TRUE(holds(place, "a", "first", 5));
    EXPECT_TRUE(holds(place, "b", "", 0));
    EXPECT_FALSE(holds(place, "ab", "first", 5));

    ASSERT_TRUE(put(place, "a", "second", 6));
    EXPECT_TRUE(holds(place, "a", "second", 6));
}

PLACE_TEST(DiskCache, EveryChangedByteIsDamage, 1 << 20)
{
    char path[600];
    ASSERT_TRUE(put(place, "key", "some data", 9));
    ASSERT_TRUE(find_entry(place, path, sizeof path));
    struct stat status;
    ASSERT_INT_EQ(stat(path, &status), 0);

    int file = open(path, O_RDWR);
    ASSERT_INT_GE(file, 0);
    for (off_t at = 0; at < status.st_size; at++) {
        unsigned char byte;
        ASSERT_INT_EQ(pread(file, &byte, 1, at), 1);
        byte ^= 0x10;
        ASSERT_INT_EQ(pwrite(file, &byte, 1, at), 1);
        EXPECT_FALSE(holds(place, "key", "some data", 9));
        byte ^= 0x10;
        ASSERT_INT_EQ(pwrite(file, &byte, 1, at), 1);
    }
    EXPECT_TRUE(holds(place, "key", "some data", 9));
    for (off_t length = status.st_size - 1; length >= 0; length--) {
        ASSERT_INT_EQ(ftruncate(file, length), 0);
        EXPECT_FALSE(holds(place, "key", "some data", 9));
    }
    close(file);
    ASSERT_TRUE(put(place, "key", "some data", 9));
    EXPECT_TRUE(holds(place, "key", "some data", 9));
}

PLACE_TEST(DiskCache, TwoKeysMayMeetInOneFile, 1 << 20)
{
    char path[600];
    char other[600];
    ASSERT_TRUE(put(place, "one", "1", 1));
    ASSERT_TRUE(find_entry(place, path, sizeof path));
    snprintf(other, sizeof other, "%s/away", place->directory);
    ASSERT_INT_EQ(rename(path, other), 0);
    ASSERT_TRUE(put(place, "two", "2", 1));
    ASSERT_TRUE(find_entry(place, path, sizeof path));
    // As if both had the same hash.
    ASSERT_INT_EQ(rename(other, path), 0);
    EXPECT_FALSE(holds(place, "two", "1", 1));
    EXPECT_FALSE(holds(place, "two", "2", 1));
}

PLACE_TEST(DiskCache, ForgetsWhatWasNotUsedForLongest, 8 * (1000 + 64))
{
    enum {
        ENTRIES = 8,
        SIZE = 1000
    };
    char data[SIZE];
    char key[] = "0";
    for (int i = 0; i < ENTRIES; i++) {
        key[0] = (char)('0' + i);
        memset(data, key[0], SIZE);
        ASSERT_TRUE(put(place, key, data, SIZE));
        usleep(20000); // files have times of the kernel's tick
    }
    memset(data, '0', SIZE);
    ASSERT_TRUE(holds(place, "0", data, SIZE));
    usleep(20000);
    memset(data, 'x', SIZE);
    ASSERT_TRUE(put(place, "x", data, SIZE));

    EXPECT_TRUE(holds(place, "x", data, SIZE));
    memset(data, '0', SIZE);
    EXPECT_TRUE(holds(place, "0", data, SIZE));
    memset(data, '1', SIZE);
    EXPECT_FALSE(holds(place, "1", data, SIZE));
    memset(data, '7', SIZE);
    EXPECT_TRUE(holds(place, "7", data, SIZE));
}

PLACE_TEST(DiskCache, RefusesAnEntryThatIsLargerThanTheLimit, 100)
{
    char data[200] = "";
    EXPECT_FALSE(put(place, "key", data, sizeof data));
    EXPECT_CONTAINS(place->message, "200 bytes");
    EXPECT_CONTAINS(place->message, "100");
    EXPECT_FALSE(holds(place, "key", data, sizeof data));
}

PLACE_TEST(DiskCache, RemovesWhatKilledWritersLeft, 1 << 20)
{
    char path[600];
    const struct timespec two_hours_ago[2] = {{time(NULL) - 7200, 0}, {time(NULL) - 7200, 0}};
    snprintf(path, sizeof path, "%s/.weir-1-1.tmp", place->folder);
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    ASSERT_INT_GE(file, 0);
    ASSERT_TRUE(put(place, "a", "1", 1));
    EXPECT_INT_EQ(access(path, F_OK), 0);
    EXPECT_INT_EQ(futimens(file, two_hours_ago), 0);
    close(file);
    ASSERT_TRUE(put(place, "a", "1", 1));
    EXPECT_INT_NE(access(path, F_OK), 0);
}

PLACE_TEST(DiskCache, TakesNoEntryThatOthersMayReadOrWrite, 1 << 20)
{
    char path[600];
    struct stat status;
    ASSERT_TRUE(put(place, "key", "data", 4));
    ASSERT_TRUE(find_entry(place, path, sizeof path));
    ASSERT_INT_EQ(chmod(path, 0666), 0);
    EXPECT_FALSE(holds(place, "key", "data", 4));
    ASSERT_INT_EQ(chmod(path, 0620), 0);
    EXPECT_FALSE(holds(place, "key", "data", 4));
    ASSERT_INT_EQ(chmod(path, 0640), 0);
    EXPECT_FALSE(holds(place, "key", "data", 4));

    // Its replacement is accessible to the user only, whatever was there before and whatever
    // the umask is.
    ASSERT_INT_EQ(chmod(path, 0666), 0);
    const mode_t mask = umask(0);
    EXPECT_TRUE(put(place, "key", "data", 4));
    umask(mask);
    ASSERT_INT_EQ(stat(path, &status), 0);
    EXPECT_INT_EQ(status.st_mode & 0777, 0600);
    EXPECT_TRUE(holds(place, "key", "data", 4));
}

PLACE_TEST(DiskCache, TakesNoEntryOfAnotherUser, 1 << 20)
{
    ASSERT_TRUE(put(place, "key", "data", 4));
    pretended_user = 54321;
    EXPECT_FALSE(holds(place, "key", "data", 4));
    pretended_user = 0;
    EXPECT_TRUE(holds(place, "key", "data", 4));
}

PLACE_TEST(DiskCache, FollowsNoSymbolicLinkToAnEntry, 1 << 20)
{
    char path[600];
    char other[600];
    ASSERT_TRUE(put(place, "key", "data", 4));
    ASSERT_TRUE(find_entry(place, path, sizeof path));
    snprintf(other, sizeof other, "%s/away", place->directory);
    ASSERT_INT_EQ(rename(path, other), 0);
    ASSERT_INT_EQ(symlink(other, path), 0);
    EXPECT_FALSE(holds(place, "key", "data", 4));
}

PLACE_TEST(DiskCache, RefusesAFolderThatOthersMayWrite, 1 << 20)
{
    EXPECT_INT_EQ(chmod(place->folder, 0777), 0);
    weir_disk_cache *cache = open_cache(place, 1 << 20);
    EXPECT_NULL(cache);
    EXPECT_CONTAINS(place->message, "/things: is not used as a cache");
    EXPECT_CONTAINS(place->message, "chmod go-w");
}

PLACE_TEST(DiskCache, WritesNothingWhereItsPathLeadsLater, 100)
{
    char path[600], away[600], victim[600], entry[700];
    snprintf(path, sizeof path, "%s/things", place->directory);
    snprintf(away, sizeof away, "%s/away", place->directory);
    snprintf(victim, sizeof victim, "%s/victim", place->directory);
    snprintf(entry, sizeof entry, "%s/0123456789abcdef.entry", victim);
    ASSERT_INT_EQ(mkdir(victim, 0700), 0);
    const int file = open(entry, O_WRONLY | O_CREAT, 0600);
    ASSERT_INT_EQ(ftruncate(file, 200), 0); // beyond the limit
    close(file);
    ASSERT_INT_EQ(rename(path, away), 0);
    ASSERT_INT_EQ(symlink("victim", path), 0);

    EXPECT_TRUE(put(place, "key", "data", 4));
    EXPECT_INT_EQ(access(entry, F_OK), 0);
    ASSERT_INT_EQ(unlink(entry), 0);
    EXPECT_INT_EQ(rmdir(victim), 0); // it is empty

    EXPECT_NULL(open_cache(place, 100));
    EXPECT_CONTAINS(place->message, "/things: the cache's folder cannot be");
    ASSERT_INT_EQ(unlink(path), 0);
    ASSERT_INT_EQ(rename(away, path), 0);
    EXPECT_TRUE(holds(place, "key", "data", 4));
}

PLACE_TEST(DiskCache, StaysWhereItWasOpened, 1 << 20)
{
    char before[512];
    ASSERT_NOT_NULL(getcwd(before, sizeof before));
    ASSERT_INT_EQ(chdir(place->directory), 0);
    weir_disk_cache *cache =
        weir_disk_cache_create(".", "things", 1 << 20, place->message, sizeof place->message);
    ASSERT_INT_EQ(chdir(before), 0);
    ASSERT_NOT_NULL(cache);
    EXPECT_TRUE(
        weir_disk_cache_write(cache, "key", 3, "data", 4, place->message, sizeof place->message));
    weir_disk_cache_destroy(&cache);
    EXPECT_TRUE(holds(place, "key", "data", 4));
}

PLACE_TEST(DiskCache, SaysWhyThereIsNoFolder, 1 << 20)
{
    char file[600];
    snprintf(file, sizeof file, "%s/things/file", place->directory);
    close(open(file, O_WRONLY | O_CREAT, 0600));
    EXPECT_NULL(weir_disk_cache_create(file, "x", 1, place->message, sizeof place->message));
    EXPECT_CONTAINS(place->message, "cannot be made");
    EXPECT_CONTAINS(place->message, "file");
}

// It is new.
static void expect_folder(const char *expected, const char *tail)
{
    char message[512];
    char path[700];
    weir_disk_cache *cache = weir_disk_cache_create(NULL, "things", 1000, message, sizeof message);
    snprintf(path, sizeof path, "%s/%s", expected, tail);
    ASSERT_NOT_NULL(cache);
    weir_disk_cache_destroy(&cache);
    EXPECT_INT_EQ(rmdir(path), 0);
}

PLACE_TEST(DiskCache, FindsItsDefaultPlace, 1000)
{
    setenv("HOME", place->directory, 1);
    setenv("XDG_CACHE_HOME", place->directory, 1);
    expect_folder(place->directory, "weir/things");
    setenv("XDG_CACHE_HOME", "relative/path", 1);
    expect_folder(place->directory, ".cache/weir/things");
    unsetenv("XDG_CACHE_HOME");
    expect_folder(place->directory, ".cache/weir/things");
    unsetenv("HOME");
    EXPECT_NULL(
        weir_disk_cache_create(NULL, "things", 1000, place->message, sizeof place->message));
    EXPECT_CONTAINS(place->message, "set XDG_CACHE_HOME or HOME");
}

// One process of several: it makes the cache, and writes and reads the same few keys repeatedly. Each value that it
// reads must be a complete one that one of the processes writes.
static int contend(struct place *place, int process)
{
    enum {
        SIZE = 3000,
        ROUNDS = 60
    };
    char data[SIZE];
    place->cache = open_cache(place, 8000); // of three entries one is always over the limit
    for (int round = 0; round < ROUNDS; round++) {
        const char key[] = {(char)('a' + round % 3), '\0'};
        memset(data, 'A' + process, SIZE);
        if (!place->cache || !put(place, key, data, SIZE))
            return 1;
        void *found;
        size_t size;
        if (!weir_disk_cache_read(place->cache, key, 1, &found, &size))
            continue; // removed by another one's trim
        const char *bytes = found;
        for (size_t i = 0; i < size; i++) {
            if (size != SIZE || bytes[i] != bytes[0] || bytes[0] < 'A' || bytes[0] > 'D')
                return 2;
        }
        free(found);
    }
    return 0;
}

PLACE_TEST(DiskCache, ProcessesShareIt, 8000)
{
    enum {
        PROCESSES = 4
    };
    pid_t children[PROCESSES];
    char byte;
    int gate[2];
    ASSERT_INT_EQ(pipe(gate), 0);
    strcat(place->directory, "/new");
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            close(gate[1]);
            _exit(read(gate[0], &byte, 1) != 0 ? 3 : contend(place, i));
        }
    }
    close(gate[0]);
    close(gate[1]); // all begin at once
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        ASSERT_INT_EQ(waitpid(children[i], &status, 0), children[i]);
        EXPECT_INT_EQ(status, 0);
    }
}
