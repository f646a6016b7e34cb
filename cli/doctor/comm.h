// What the files of `weir doctor comm` share.
#ifndef WEIR_CLI_DOCTOR_COMM_H
#define WEIR_CLI_DOCTOR_COMM_H

#include "cli/doctor/doctor.h"

struct doctor_comm {
    const char *listen; // PORT or HOST:PORT; NULL
    const char *connect;
    uint64_t timeout; // seconds
};

int doctor_comm_main(int argc, char **argv);

// Opens a runtime without a device's driver, whose communicators use that transport.
weir_status doctor_comm_open(const struct doctor *doctor, const char *transport,
                             weir_runtime **out_runtime);

// Which NCCL there is.
void doctor_comm_nccl(struct doctor *doctor);

// Meets the other machine, and exchanges data with it.
void doctor_comm_link(struct doctor *doctor, const struct doctor_comm *comm);

// For `connect`: whether anything is reached there, and if not, why. `host` is a name or a number.
bool doctor_comm_reach(struct doctor *doctor, const struct doctor_comm *comm, const char *host,
                       const char *port);

enum {
    DOCTOR_HOST_SIZE = 256
};

// For `listen`: an address of this machine that others can reach, else a loopback one.
void doctor_comm_own_address(char host[DOCTOR_HOST_SIZE]);

#endif
