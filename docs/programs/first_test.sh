#!/usr/bin/env bash
# The README's first program runs and prints the right number, and so does the one with its kernel as text. On a
# modelled GPU it overlaps as the README says.
. tests/support/shell.sh
export WEIR_MODULE_PATH=lib/weir WEIR_CONFIG=conf/opencl.ini
output=$(docs/first/first) || fail "docs/first/first failed: $output"
[ "$output" = "1000 * 2 = 2000" ] || fail "it printed '$output'"
output=$(docs/first/first_cpp) || fail "docs/first/first_cpp failed: $output"
[ "$output" = "1000 * 2 = 2000" ] || fail "it printed '$output'"
output=$(docs/programs/overlap) || fail "docs/programs/overlap failed: $output"
expect_contains "$output" "8 pieces, the sum is 1048576, timed"
expect_contains "$output" "thrown: the program has no kernel 'scael'; did you mean 'scale'? (docs/programs/overlap.cc:"
output=$(docs/programs/outside) || fail "docs/programs/outside failed: $output"
[[ "$output" == "1000 * 2 = 2000 on "?* ]] || fail "it printed '$output'"

cd "$TEST_TMPDIR"
root="$OLDPWD"
export WEIR_MODULE_PATH="$root/lib/weir" WEIR_CONFIG="$root/conf/opencl.ini"
grep '^    printf ' "$root/README.md" | bash
expect_status 0 "$root/cli/weir" sim --gpu "$root/conf/gpus/k20c.ini" --costs kernels.ini --quiet "$root/docs/first/first"
expect_contains "$output" "65.6 %"
grep -q '^65.6 % on every machine' "$root/README.md" || fail "README.md has another overlap"
expect_status 0 "$root/cli/weir" trace check sim.json --overlap 'copy/compute>=0.6'
