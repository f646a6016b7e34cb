// How many copy channels a device has, by the turns that tell of them.
#ifndef WEIR_CLI_CALIBRATE_VOTES_H
#define WEIR_CLI_CALIBRATE_VOTES_H

#include <stddef.h>

enum {
    CAL_NO_VOTE = -1,
    CAL_CHANNELS_MOST = 12,
};

// The number from 0 to CAL_CHANNELS_MOST that most turns are for; CAL_NO_VOTE: too few have one in
// common. A vote is such a number, or CAL_NO_VOTE.
int cal_votes_count(const int *votes, size_t count);

#endif
