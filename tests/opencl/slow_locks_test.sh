#!/bin/bash
# Cases that wait for the driver on several threads, while its locks are late now and then.
LD_PRELOAD="$PWD/tests/support/slow_locks.so" exec tests/conformance/conformance --gtest_filter='GraphCall.*' \
    --gtest_repeat=20
