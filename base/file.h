// Whole files: read at once, and written atomically, so that a reader sees the old file or the new
// one and never a part.
//
// Errors: functions that fail write one sentence into `message` (at most
// `message_size` bytes, always terminated) that names the file, what went
// wrong and the remedy. 512 bytes hold every sentence.
// Threads: safe, as long as one writer is used by one thread at a time.
#ifndef WEIR_BASE_FILE_H
#define WEIR_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Opens a regular file for reading and stores its descriptor and its size.
// Anything else (a directory, a pipe, a device) is refused, without blocking.
//
// Ownership: the descriptor is the caller's, to be closed with close(). It is
// not inherited over exec.
// Errors: false; `*out_descriptor` is -1 and `*out_size` 0.
bool weir_file_open(const char *path, int *out_descriptor, uint64_t *out_size, char *message,
                    size_t message_size);

// Reads exactly `size` bytes at the descriptor's position into `data`. `path`
// serves the message.
//
// Errors: false on a read error or when the file ends early.
bool weir_file_read_exactly(int descriptor, const char *path, void *data, size_t size,
                            char *message, size_t message_size);

// Reads a whole regular file of at most `limit_bytes` bytes. The data is followed
// by a zero byte that `*out_size` does not count, so text can be used as a string.
//
// Ownership: `*out_data` is the caller's, to be freed with free().
// Errors: false; `*out_data` is NULL and `*out_size` 0.
bool weir_file_read(const char *path, size_t limit_bytes, void **out_data, size_t *out_size,
                    char *message, size_t message_size);

// The same for a file that only this user can have written, or can read: it belongs to the effective user, no other
// user may read or write it, and the path's last component is not a symbolic link. Owner and mode are those of the
// opened file.
bool weir_file_read_private(const char *path, size_t limit_bytes, void **out_data, size_t *out_size,
                            char *message, size_t message_size);

// Opens a file to be written in place, with O_CLOEXEC and `flags` (O_TRUNC, O_APPEND), and creates it if
// needed. A pipe is written to if it has a reader.
//
// Errors: -1 and errno; ENXIO: a pipe without a reader, for which open() would wait.
int weir_file_open_to_write(const char *path, int flags);

// Creates every missing folder of `path`. False and errno if one cannot be made.
bool weir_file_make_folders(const char *path, mode_t mode);

// A file that is being written. The data goes to a temporary file in the same directory
// (".weir-PROCESS-NUMBER.tmp"); commit syncs it to the disk and renames it over
// the path. If anything fails, the temporary file is removed and the file at the
// path does not change. A new file gets the permissions that the umask leaves; a
// replacement gets those of the file that it replaces; a symbolic link is replaced, not
// followed; a directory or a device at the path is refused.
//
//     weir_file_writer *writer = weir_file_writer_create(path, message, size);
//     if (!writer)
//         return false;
//     weir_file_writer_append(writer, data, data_size);
//     return weir_file_writer_commit(&writer, message, size);
typedef struct weir_file_writer weir_file_writer;

// Starts a file. Returns NULL on failure, and then nothing was created.
//
// Ownership: the caller's, until commit or destroy.
weir_file_writer *weir_file_writer_create(const char *path, char *message, size_t message_size);

// The same in the open directory `folder`, which lives as long as the writer, under the last component of
// `path`, whose rest serves the messages; or at `path` for AT_FDCWD. `is_private`: only this user may read and
// write the file, regardless of the umask and of the file that it replaces.
weir_file_writer *weir_file_writer_create_in(int folder, const char *path, bool is_private,
                                             char *message, size_t message_size);

// Appends `size` bytes. After a failure later appends do nothing, and commit reports the failure,
// so the result may be ignored.
bool weir_file_writer_append(weir_file_writer *writer, const void *data, size_t size);

// Puts the file in place and destroys the writer, also on failure.
bool weir_file_writer_commit(weir_file_writer **writer, char *message, size_t message_size);

// The same, but what is at the path stays. False with EEXIST in errno: something is there.
bool weir_file_writer_commit_new(weir_file_writer **writer, char *message, size_t message_size);

// Discards the file and sets `*writer` to NULL. A pointer to NULL is accepted.
void weir_file_writer_destroy(weir_file_writer **writer);

// Writes a whole file from memory.
bool weir_file_write(const char *path, const void *data, size_t size, char *message,
                     size_t message_size);

#endif
