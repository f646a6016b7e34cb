#include "base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/test.h"
#include "tests/unit/io_made_files.h"

static char message[512];

static bool put(const char *path, const void *bytes, size_t size)
{
    message[0] = '\0';
    weir_file_writer *writer = weir_file_writer_create(path, message, sizeof message);
    if (!writer)
        return false;
    weir_file_writer_append(writer, bytes, size);
    bool ok = weir_file_writer_commit(&writer, message, sizeof message);
    EXPECT_NULL(writer);
    return ok;
}

static void expect_content(const char *path, const char *content)
{
    void *data = NULL;
    size_t size = 0;
    ASSERT_TRUE(weir_file_read(path, 1000, &data, &size, message, sizeof message));
    EXPECT_UINT_EQ(size, strlen(content));
    EXPECT_STR_EQ((char *)data, content);
    free(data);
}

WEIR_TEST(BaseFile, WritesAndReadsBack)
{
    const char *folder = weir_test_temp_dir();
    const char *path = made_path(folder, "a.txt");
    ASSERT_TRUE(put(path, "hello", 5));
    expect_content(path, "hello");
    ASSERT_TRUE(put(path, "", 0));
    expect_content(path, "");
    EXPECT_INT_EQ(made_folder_count(folder), 1);
}

WEIR_TEST(BaseFile, WritesIntoTheCurrentFolder)
{
    char back[4096];
    ASSERT_NOT_NULL(getcwd(back, sizeof back));
    const char *folder = weir_test_temp_dir();
    ASSERT_INT_EQ(chdir(folder), 0);
    bool ok = put("plain.txt", "x", 1);
    ASSERT_INT_EQ(chdir(back), 0);
    EXPECT_TRUE(ok);
    expect_content(made_path(folder, "plain.txt"), "x");
}

WEIR_TEST(BaseFile, TheOldFileStandsUntilCommit)
{
    const char *folder = weir_test_temp_dir();
    const char *path = made_path(folder, "a.txt");
    ASSERT_TRUE(put(path, "old", 3));
    weir_file_writer *writer = weir_file_writer_create(path, message, sizeof message);
    ASSERT_NOT_NULL(writer);
    weir_file_writer_append(writer, "new", 3);
    expect_content(path, "old");
    EXPECT_INT_EQ(made_folder_count(folder), 2);
    ASSERT_TRUE(weir_file_writer_commit(&writer, message, sizeof message));
    expect_content(path, "new");
    EXPECT_INT_EQ(made_folder_count(folder), 1);
}

WEIR_TEST(BaseFile, ANewFileReplacesNone)
{
    const char *folder = weir_test_temp_dir();
    const char *path = made_path(folder, "a.txt");
    weir_file_writer *writers[2];
    for (int i = 0; i < 2; i++) {
        writers[i] = weir_file_writer_create(path, message, sizeof message);
        ASSERT_NOT_NULL(writers[i]);
        weir_file_writer_append(writers[i], i ? "second" : "first", i ? 6 : 5);
    }
    EXPECT_TRUE(weir_file_writer_commit_new(&writers[0], message, sizeof message));
    EXPECT_FALSE(weir_file_writer_commit_new(&writers[1], message, sizeof message));
    EXPECT_INT_EQ(errno, EEXIST);
    EXPECT_CONTAINS(message, "nothing was kept");
    expect_content(path, "first");
    EXPECT_INT_EQ(made_folder_count(folder), 1);
}

WEIR_TEST(BaseFile, ADroppedWriterLeavesNothing)
{
    const char *folder = weir_test_temp_dir();
    weir_file_writer *writer =
        weir_file_writer_create(made_path(folder, "a.txt"), message, sizeof message);
    ASSERT_NOT_NULL(writer);
    weir_file_writer_append(writer, "x", 1);
    weir_file_writer_destroy(&writer);
    EXPECT_NULL(writer);
    weir_file_writer_destroy(&writer);
    EXPECT_INT_EQ(made_folder_count(folder), 0);
}

WEIR_TEST(BaseFile, PermissionsFollowTheUmaskOrTheOldFile)
{
    const char *folder = weir_test_temp_dir();
    const char *path = made_path(folder, "a.txt");
    struct stat status;
    mode_t mask = umask(0027);
    bool ok = put(path, "x", 1);
    umask(mask);
    ASSERT_TRUE(ok);
    ASSERT_INT_EQ(stat(path, &status), 0);
    EXPECT_INT_EQ(status.st_mode & 0777, 0640);

    ASSERT_INT_EQ(chmod(path, 0604), 0);
    ASSERT_TRUE(put(path, "y", 1));
    ASSERT_INT_EQ(stat(path, &status), 0);
    EXPECT_INT_EQ(status.st_mode & 0777, 0604);
}

WEIR_TEST(BaseFile, ASymbolicLinkIsReplacedNotFollowed)
{
    const char *folder = weir_test_temp_dir();
    const char *target = made_path(folder, "target");
    const char *link = made_path(folder, "link");
    ASSERT_TRUE(put(target, "keep", 4));
    ASSERT_INT_EQ(symlink(target, link), 0);
    ASSERT_TRUE(put(link, "new", 3));
    expect_content(target, "keep");
    expect_content(link, "new");
}

WEIR_TEST(BaseFile, AFullDiskKeepsTheOldFileAndLeavesNothingElse)
{
    const char *folder = weir_test_temp_dir();
    const char *path = made_path(folder, "a.txt");
    ASSERT_TRUE(put(path, "old", 3));
    // Small enough to sit in the stream's buffer until commit, and larger than it.
    static const char bytes[100000];
    static const size_t sizes[] = {200, sizeof bytes};
    for (size_t i = 0; i < 2; i++) {
        ASSERT_TRUE(made_disk_limit(100));
        bool ok = put(path, bytes, sizes[i]);
        ASSERT_TRUE(made_disk_limit(0));
        EXPECT_FALSE(ok);
        EXPECT_CONTAINS(message, "a.txt: could not be written, nothing was kept");
        EXPECT_CONTAINS(message, "ulimit -f");
        expect_content(path, "old");
        EXPECT_INT_EQ(made_folder_count(folder), 1);
    }
}

WEIR_TEST(BaseFile, RefusesPlacesThatCannotBeWritten)
{
    const char *folder = weir_test_temp_dir();
    ASSERT_TRUE(put(made_path(folder, "file"), "x", 1));
    ASSERT_INT_EQ(mkdir(made_path(folder, "sub"), 0777), 0);
    ASSERT_INT_EQ(mkfifo(made_path(folder, "pipe"), 0666), 0);
    static const struct {
        const char *name;
        const char *part;
    } rows[] = {
        {"missing/a.txt", "create the directory first"},
        {"file/a.txt", "is a file, not a directory"},
        {"sub", "it is a directory"},
        {"sub/", "names no file"},
        {"pipe", "it is a pipe or a device"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        weir_test_note("%s", rows[i].name);
        EXPECT_FALSE(put(made_path(folder, rows[i].name), "x", 1));
        EXPECT_CONTAINS(message, rows[i].part);
        EXPECT_CONTAINS(message, rows[i].name);
    }
    EXPECT_FALSE(put("", "x", 1));
    EXPECT_FALSE(put("/dev/null", "x", 1));
    EXPECT_CONTAINS(message, "/dev/null: cannot be written: it is a pipe or a device");
    EXPECT_INT_EQ(made_folder_count(folder), 3);
    EXPECT_INT_EQ(made_folder_count(made_path(folder, "sub")), 0);
}

// Root may write into any folder, so as root the test takes another user's identity.
WEIR_TEST(BaseFile, AReadOnlyFolderIsNamedWithTheReason)
{
    const char *folder = weir_test_temp_dir();
    ASSERT_INT_EQ(chmod(folder, 0555), 0);
    bool root = geteuid() == 0;
    if (root && seteuid(65534) != 0) {
        ASSERT_INT_EQ(chmod(folder, 0755), 0);
        WEIR_SKIP("this process is root and may not become another user");
    }
    bool ok = put(made_path(folder, "a.txt"), "x", 1);
    if (root)
        ASSERT_INT_EQ(seteuid(0), 0);
    ASSERT_INT_EQ(chmod(folder, 0755), 0);
    EXPECT_FALSE(ok);
    EXPECT_CONTAINS(message, "a.txt: cannot be written: Permission denied");
    EXPECT_CONTAINS(message, "check the permissions of the directory");
    EXPECT_INT_EQ(made_folder_count(folder), 0);
}

WEIR_TEST(BaseFile, RefusesToReadWhatIsNotAFile)
{
    const char *folder = weir_test_temp_dir();
    void *data = NULL;
    size_t size = 7;
    EXPECT_FALSE(weir_file_read(made_path(folder, "none"), 9, &data, &size, message, 512));
    EXPECT_CONTAINS(message, "none: there is no such file");
    EXPECT_NULL(data);
    EXPECT_UINT_EQ(size, 0);
    EXPECT_FALSE(weir_file_read(folder, 9, &data, &size, message, 512));
    EXPECT_CONTAINS(message, "is a directory");
    const char *pipe = made_path(folder, "pipe");
    ASSERT_INT_EQ(mkfifo(pipe, 0666), 0);
    EXPECT_FALSE(weir_file_read(pipe, 9, &data, &size, message, 512));
    EXPECT_CONTAINS(message, "is a pipe or a device");
}
