// Shared by the files of `weir launch`: command.c, options, the ranks' lines and what is printed of their end, and
// watch.c, the ranks from their start until the last of them has ended.
#ifndef WEIR_CLI_LAUNCH_LAUNCH_H
#define WEIR_CLI_LAUNCH_LAUNCH_H

#include <signal.h>
#include <sys/types.h>

#include "cli/program/program.h"

enum {
    RANK_LIMIT = 1024,
    LINE_LIMIT = 65536, // a longer line is cut
    READ_SIZE = 8192,
    LATE_LIMIT = 1 << 20, // no pipe of a program without privileges holds more
    PREFIX_SIZE = 8,      // "[1023] " and a NUL
    ESCAPE_SIZE = 4,      // "\x1b"
    // A held line and as many empty lines as one read can bring, and the line that an escape ends.
    SINK_SIZE = LINE_LIMIT + (READ_SIZE + 1) * (PREFIX_SIZE + 1) + ESCAPE_SIZE,
};

struct launch_options {
    char **command;
    uint64_t count;
    uint64_t port; // 0: a free one
    uint64_t grace_s;
    bool no_prefix;
    bool json;
};

struct rank {
    pid_t process;
    int code;   // its exit status
    int signal; // that ended it; 0: none
    bool ended;
    bool stopped; // it ran when the launch told all ranks to end
    bool killed;  // it ran when the grace time was over
};

// Standard output or standard error of this process.
struct sink {
    int descriptor;
    size_t used;
    size_t written; // of `used`
    bool broken;    // what comes is dropped
    char bytes[SINK_SIZE];
};

// Standard output or standard error of one rank.
struct stream {
    int from; // -1: at its end
    struct sink *to;
    char prefix[PREFIX_SIZE];
    size_t late;   // how many bytes were read after the end of all ranks
    bool returned; // the last line ended with a carriage return
    size_t used;   // of a line that has not ended
    char line[LINE_LIMIT];
};

// Reads what is there, at most READ_SIZE, and adds the lines to the sink, which must be empty. What
// remains at the end of the stream becomes a line. Returns how many bytes were read.
size_t stream_read(struct stream *stream);

// Adds what is held as a line, and closes the stream.
void stream_end(struct stream *stream);

// Writes a part that ends with a line, or, of a line that is too long for that, PIPE_BUF bytes: as
// much as does not block where poll() found room. `*out_middle` is set if a line is not written whole.
//
// Errors: false with errno set; the sink is broken then.
bool sink_write(struct sink *sink, bool *out_middle);

struct launch {
    const struct launch_options *options;
    struct rank *ranks;
    size_t started;
    size_t running;
    struct stream *streams; // two for each rank; NULL: the ranks write to this process's own
    struct pollfd *polled;
    struct sink *output;
    struct sink *messages;
    struct sink *middle;       // of which a line is written in part
    size_t turn;               // counts: another stream and another sink comes first each time
    struct sigaction old_pipe; // of SIGPIPE
    sigset_t old_mask;
    int input;
    int guard; // the pipe to the guard; -1: there is none
    pid_t guarding;
    char port[8];
    char place[128];  // where the ranks meet
    int first_failed; // -1: none
    int signal;       // that this process got, which ends the ranks; 0: none
    int failure;      // an exit code, after an error of this process that was told; 0: none
    bool stopping;
    bool hurried;     // a second signal came before the grace time was over
    uint64_t kill_ns; // when `stopping`: at which ranks are killed
};

// Starts all ranks, and waits until they have ended.
void watch(struct launch *launch);

#endif
