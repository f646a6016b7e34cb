#!/bin/bash
# weir train with a rank killed while it trains, for each program and way, and once again after the resumption: what
# is resumed has the curve and the parameters of a run without kills, to the bit.
. tests/cli/cli.sh
export WEIR_BACKEND=opencl
ulimit -c 0

small=(--side 8 --hidden 1 --width 16 --batch 8)
killed=0 # ranks, until now

# has_checkpoint: one that is newer than the mark.
has_checkpoint()
{
    [ -s run/checkpoint.safetensors ] && ! [ run/checkpoint.safetensors -ot mark ]
}

# steps_done: those of the checkpoint.
steps_done()
{
    python3 - <<'PYTHON'
import json, struct
with open("run/checkpoint.safetensors", "rb") as file:
    size = struct.unpack("<Q", file.read(8))[0]
    begin = json.loads(file.read(size))["progress"]["data_offsets"][0]
    file.seek(8 + size + begin)
    print(struct.unpack("<Q", file.read(8))[0])
PYTHON
}

# kill_one RANK: trains on from the checkpoint, and kills that rank once there is another one.
kill_one()
{
    local pid pids
    touch mark
    "$program" launch -n 2 --grace 1 "$program" train "${options[@]}" --every 20 --checkpoint run --resume \
        --steps 10000000 >log 2>&1 &
    pid=$!
    expect_soon has_checkpoint
    # The children of the launch are the ranks in their order. The file ends without a newline.
    read -r -a pids <"/proc/$pid/task/$pid/children" || true
    kill -s KILL "${pids[$1]}"
    expect_end 137 log
    expect_contains "$(cat log)" "weir: rank $1 of 2 (process ${pids[$1]}) was ended by signal 9"
}

# train OPTION...: two ranks to the end.
train()
{
    expect_data 0 "$weir" launch -n 2 --no-prefix "$program" train "${options[@]}" --steps "$steps" "$@"
}

# resumed KILLS PROGRAM [OPTION]...
resumed()
{
    local steps times="$1" i
    shift
    local options=("$@" "${small[@]}")
    rm -rf run
    for ((i = 0; i < times; i++)); do
        kill_one $((killed++ % 2))
    done
    steps=$(($(steps_done) + 23))
    train --json --checkpoint run --resume
    as_json "data['first_step'] == $steps - 23 and len(data['losses']) == $steps"
    printf '%s' "$output" >resumed.json
    if [ "$times" -gt 1 ]; then
        train --checkpoint run --resume
        expect_contains "$output" "none: the checkpoint has all $steps"
    fi
    train --json
    printf '%s' "$output" >whole.json
    python3 - <<'PYTHON' || fail "$*: what was resumed differs"
import json
resumed, whole = json.load(open("resumed.json")), json.load(open("whole.json"))
for key in "losses", "right", "parameters_digest":
    assert resumed[key] == whole[key], key
PYTHON
    echo "$*: $times kills in $steps steps, and the same bits"
}

resumed 2 ddp
resumed 1 accumulate --passes 3
resumed 1 augment --crop 6
resumed 1 augment --on-host
resumed 1 encdec --channels 2
resumed 1 encdec --channels 2 --serial
resumed 1 ddp --network convnet --channels 2 --optimizer adam --element bf16
