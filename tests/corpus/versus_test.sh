#!/bin/bash
# tools/corpus/versus.py and its program without a GPU: what they say then, and what the scripts for
# the program are.
. tests/support/shell.sh

folder="$PWD/tools/corpus"
versus="$folder/versus"
cd "$TEST_TMPDIR"

if [ -e /dev/nvidia0 ]; then
    echo "skipped: versus.py needs images of other projects' kernels, and there is a GPU"
    exit 0
fi
expect_status 1 "$versus" </dev/null
expect_contains "$output" "versus: "

# A program that writes its script down, and its times: side 0 takes twice as long as side 1.
cat >program <<'TEXT'
#!/bin/bash
cat >script
printf 'error 0\n%s\n' "200 100" "202 101" "240 120"
TEXT
chmod +x program
mkdir images
cat >images/index.json <<'TEXT'
{"gemm": [{"gemm": "gemm"}, {"gemm_kernel": "_Z11gemm_kernel"}],
 "scan_any_block": [{"reduce": "a", "top_scan": "b", "bottom_scan": "c"},
                    {"reduce": "d", "scan_single_block": "e", "bottom_scan": "f"}]}
TEXT
run()
{
    python3 "$folder/versus.py" run --images images --program "$1" --only 'gemm|any_block' \
        --json figures.json
}
expect_status 0 run ./program
expect_contains "$output" "2.000 (2.000 ... 2.000)"
expect_contains "$output" "not in the mean"
expect_contains "$output" "geometric mean of 1"
expect_contains "$(cat figures.json)" '"ratio"'
expect_contains "$(cat script)" "image 0 images/scan_any_block.ours.cubin"
expect_contains "$(cat script)" "launch 0 a 64 1 1 256 1 1 1024 b0 b2"
expect_contains "$(cat script)" "time 21 10"

# One that fails is named, and ends the run with 1.
printf '#!/bin/bash\necho "versus: the results differ" >&2\nexit 1\n' >program
expect_status 1 run ./program
expect_contains "$output" "the results differ"
