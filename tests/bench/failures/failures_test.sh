#!/bin/bash
# Each way in which a rank fails, on each transport: the others are told, with the rank's number. Times are
# printed and not judged.
. tests/support/shell.sh

# The timeout is that of the creation too: longer than three processes take to start on a busy machine.
bash tests/bench/failures/measure.sh --ways soon --repetitions "${WEIR_TEST_REPETITIONS:-3}" --timeout 60
bash tests/bench/failures/measure.sh --ways late --repetitions "${WEIR_TEST_REPETITIONS:-1}" --timeout 5
