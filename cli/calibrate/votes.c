#include "cli/calibrate/votes.h"

// Of the turns, so many have to be for one number.
#define VOTES_SHARE 0.6
#define EXACT_SHARE 0.4

// Groups that are taken two at a time, each copy of one before one of the other, look like half as many: a
// turn for a part of a number is for that too, if enough are for no less.
static size_t turns_for(const int *votes, size_t count, int channels)
{
    size_t turns = 0, exact = 0;
    for (size_t i = 0; i < count; i++) {
        exact += votes[i] == channels;
        turns += votes[i] == channels || (votes[i] > 1 && channels % votes[i] == 0);
    }
    return (double)exact >= EXACT_SHARE * (double)count ? turns : 0;
}

int cal_votes_count(const int *votes, size_t count)
{
    size_t most = 0;
    int best = CAL_NO_VOTE;
    for (int channels = 0; channels <= CAL_CHANNELS_MOST; channels++) {
        const size_t turns = turns_for(votes, count, channels);
        if (turns > most) {
            most = turns;
            best = channels;
        }
    }
    return (double)most >= VOTES_SHARE * (double)count ? best : CAL_NO_VOTE;
}
