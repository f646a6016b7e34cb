#!/bin/bash
# Each way in which a rank fails: the others are told, with the rank's number. Times are printed and not judged. All
# ways by the transport `local`; by NCCL those that need processes, and through the others one, since what they do then is
# tested beside them.
. tests/support/shell.sh

measure() # measure TRANSPORTS WAYS TIMEOUT
{
    python3 tests/bench/failures/measure.py --repetitions "${WEIR_TEST_REPETITIONS:-1}" \
        --transports "$1" --ways "$2" --timeout "$3"
}
measure local soon 60
measure local late 2
measure local,openmpi,mpich abort 60
measure nccl kill,shrink,abort 60
measure nccl stop,absent 3
