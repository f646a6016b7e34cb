#!/bin/bash
# weir train for 10,000 steps, with a rank killed every 1,000 and the run resumed: no step is lost, and the
# curve is that of a run without kills.
. tests/cli/cli.sh
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
export WEIR_BACKEND=opencl
ulimit -c 0

steps=10000
every=1000
options=(train ddp --side 8 --hidden 1 --width 16 --batch 8 --json)

# steps_done: those of the checkpoint.
steps_done()
{
    python3 - <<'TEXT'
import json, struct
try:
    with open("run/checkpoint.safetensors", "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        begin = json.loads(file.read(size))["progress"]["data_offsets"][0]
        file.seek(8 + size + begin)
        print(struct.unpack("<Q", file.read(8))[0])
except FileNotFoundError:
    print(0)
TEXT
}

for ((kill = every; kill < steps; kill += every)); do
    "$program" launch -n 2 --grace 1 "$program" "${options[@]}" --steps "$steps" --checkpoint run --every 50 \
        --resume >log 2>&1 &
    launch=$!
    until [ "$(steps_done)" -ge "$kill" ]; do
        kill -s 0 "$launch" 2>/dev/null || fail "it ended before $kill steps: $(cat log)"
        sleep 0.05
    done
    read -r -a ranks <"/proc/$launch/task/$launch/children" || true # it ends without a newline
    ranks=("${ranks[@]:1}") # the first is the guard of the launch
    victim=$((kill / every % 2))
    kill -s KILL "${ranks[victim]}"
    status=0
    wait "$launch" || status=$?
    [ "$status" -eq 137 ] || fail "with rank $victim killed it ended with $status: $(cat log)"
    echo "rank $victim killed; $(steps_done) steps are kept"
done
expect_data 0 "$weir" launch -n 2 --no-prefix "$program" "${options[@]}" --steps "$steps" --checkpoint run --resume
printf '%s' "$output" >resumed.json
expect_data 0 "$weir" launch -n 2 --no-prefix "$program" "${options[@]}" --steps "$steps"
printf '%s' "$output" >whole.json
python3 - <<'TEXT' || fail "what was resumed differs"
import json
resumed, whole = json.load(open("resumed.json")), json.load(open("whole.json"))
assert len(resumed["losses"]) == 10000
for key in "losses", "right", "parameters_digest":
    assert resumed[key] == whole[key], key
print("the same curve and parameters to the bit; the last loss is", whole["losses"][-1])
TEXT
