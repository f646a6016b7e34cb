#!/bin/bash
# The peers on this machine: tiny sizes, and times are not judged. Programs that need CUDA or
# PyTorch say why they do not run.
. tests/support/shell.sh

peers=tests/bench/peers
unset WEIR_CONFIG WEIR_PLUGINS WEIR_BACKEND
export WEIR_MODULE_PATH="$PWD/lib/weir" POCL_DEVICES="${POCL_DEVICES:-pthread}"

launcher=
# peer NAME OPTION...: the lines of that program on the CPU are as in torch_peer.py, round by round; $launcher starts it.
peer()
{
    expect_status 0 $launcher python3 "$peers/$1.py" --rounds 2 --device cpu "${@:2}"
    printf '%s: ' "$1"
    printf '%s\n' "$output" | python3 -c '
import json, sys
lines = [json.loads(line) for line in sys.stdin if line.startswith("{")]
head, rounds = lines[0], lines[1:]
if "skipped" in head:
    assert not rounds and head["skipped"], lines
    print("skipped: " + head["skipped"])
else:
    assert head["checked"] > 0 and head["device"], head
    assert rounds and [line["round"] for line in rounds] == list(range(len(rounds))), rounds
    assert all(ms > 0 for line in rounds for ms in line["ms"].values()), rounds
    assert set(rounds[0]["ms"]) == set(rounds[-1]["ms"])
    print("measured: " + " ".join(sorted(rounds[0]["ms"])))
'
}

# Jobs serve as peers, and say with status 3 what they lack.
jobs=tests/bench/jobs/jobs
expect_says 0 '"round": 1, "ms": {' env WEIR_BACKEND=opencl bash -c "printf '\n\n' | $jobs overlap --serve --quiet --size 1M"
expect_contains "$output" '"raw_three_queues_64_chunks": '
expect_status 3 env WEIR_BACKEND=cuda WEIR_MODULE_PATH=. "$jobs" overlap --serve

expect_status 0 env WEIR_BACKEND=opencl bash -c "printf '\n\n' |
    cli/weir bench arr-coc --serve --quiet --size 48 --slots 3 --graphs off,on --frames 1"
expect_contains "$output" '"frame_copies": '
expect_contains "$output" '"frame_3_slots_graphs": '

# Without PyTorch its peers say so; with it, they run on the CPU.
for script in torch_arr_coc torch_chunks torch_ddp torch_pageable torch_train; do
    expect_says 0 "--rounds" python3 "$peers/$script.py" --help
done
peer torch_chunks --bytes 1048576
launcher="cli/weir launch -n 2 --no-prefix" peer torch_ddp --layers 3 --width 64 --batch 16
peer torch_pageable --most 1048576
peer torch_train --batch 4 --side 8 --channels 2 --width 8 --steps 2

# All of them, alternating, and one table.
expect_status 0 python3 "$peers/side_by_side.py" --out "$TEST_TMPDIR/out" --rounds 1 --groups pocl,chunks \
    --pocl-bytes 1048576 --pocl-frames 1 --bytes 1048576
expect_contains "$output" "what: beside what"
expect_contains "$output" "PoCL: chunks, one queue: plain OpenCL, the same"
python3 - "$TEST_TMPDIR/out/side_by_side.json" <<'PYTHON'
import json, sys
report = json.load(open(sys.argv[1]))
rows = {row["what"]: row for row in report["rows"]}
row = rows["PoCL: chunks, one queue: plain OpenCL, the same"]
assert row["rounds"] == 1 and 0 < row["ratio"]["min"] <= row["ratio"]["median"], row
missing = rows["chunks, auto: copies both ways"]
assert missing["target"] == 1.012 and ("reason" in missing or missing["verdict"]), missing
PYTHON

# A program that prints something else, one that ends and one that is not there: each is reported,
# and the others continue.
python3 - "$peers" "$TEST_TMPDIR" <<'PYTHON'
import os, sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import side_by_side as s

def program(name, text):
    return s.Program(name, [sys.executable, "-c", text], dict(os.environ), ".", sys.argv[2])

head = "import sys; print('{\"peer\": 1, \"checked\": 1}', flush=True)\n"
good = head + "for _ in sys.stdin: print('{\"ms\": {\"x\": 1.5}}', flush=True)"
programs = [program("good", good), program("noise", head + "input(); print('what?')"),
            program("short", head + "input()"),
            program("failed", "print('{\"peer\": 1, \"failed\": \"wrong\"}', flush=True)"),
            s.Program("absent", ["/nonexistent"], dict(os.environ), ".", sys.argv[2])]
s.run_group(programs, 3, s.time.monotonic() + 60)
reasons = {p.name: p.reason for p in programs}
assert reasons["good"] is None and programs[0].samples("x") == [1.5] * 3, reasons
assert "no JSON" in reasons["noise"] and reasons["short"] == "ended early", reasons
assert reasons["failed"] == "FAILED: wrong" and "nonexistent" in reasons["absent"], reasons
PYTHON
expect_says 2 "there is no group 'nonsense'" python3 "$peers/side_by_side.py" --out "$TEST_TMPDIR/out" \
    --groups nonsense
