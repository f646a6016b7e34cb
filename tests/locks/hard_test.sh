#!/bin/bash
# What the library must live through: forks, signals, threads that end, runtimes that come and go, a malloc()
# with a lock, another program in the process's place, programs that do not know of Weir.
. tests/support/shell.sh
export WEIR_BACKEND=null WEIR_MODULE_PATH=lib/weir

for way in fork reopen signal threads locks malloc exit; do
    expect_says 0 "nothing was found" timeout 50 cli/weir check tests/locks/hard "$way"
done

expect_says 0 "nothing was found" timeout 50 cli/weir check sh -c 'exec "$0" mended mutex' tests/locks/pairs

# Without Weir in it the library is idle.
export LD_PRELOAD="$PWD/lib/weir/libweir_locks.so"
expect_status 0 sh -c 'ls / | sort | head -n 1'
expect_status 0 sort --parallel=4 tests/locks/hard_test.sh
