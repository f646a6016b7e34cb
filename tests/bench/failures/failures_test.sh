#!/bin/bash
# Each way in which a rank fails: the others are told, with the rank's number. Times are printed and not judged. All
# ways through shared memory; what the other transports do then is tested beside them, so that each has one here.
. tests/support/shell.sh

measure=(bash tests/bench/failures/measure.sh --repetitions "${WEIR_TEST_REPETITIONS:-1}")
"${measure[@]}" --ways soon --transports memory --timeout 60
"${measure[@]}" --ways late --transports memory --timeout 2
"${measure[@]}" --ways abort --transports messages,openmpi,mpich,nccl --timeout 60
