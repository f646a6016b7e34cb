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

enum {
    DOCTOR_HOST_SIZE = 256
};

#endif
