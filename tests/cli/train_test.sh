#!/bin/bash
# weir train: figures, curves, ranks, data in files, and what it refuses.
. tests/cli/cli.sh
export WEIR_BACKEND=opencl
ulimit -c 0

small=(--side 8 --hidden 1 --width 16 --batch 8)

# digest: of the parameters, from $output.
digest()
{
    printf '%s' "$output" | python3 -c "import json, sys; print(json.load(sys.stdin)['parameters_digest'])"
}

# Text, JSON, a curve.
expect_output 0 "mlp, 1210 parameters, f32" "$weir" train ddp "${small[@]}" --steps 100 --plot curve.svg
expect_contains "$output" "8 samples: 1 rank, 1 pass, 8 samples each"
expect_contains "$output" " at first, "
expect_contains "$output" " of the parameters"
[ -z "$messages" ] || fail "it wrote to standard error: $messages"
python3 - <<'TEXT'
import xml.etree.ElementTree as xml
root = xml.parse("curve.svg").getroot()
lines = root.findall(".//{http://www.w3.org/2000/svg}polyline")
assert len(lines) == 2, lines
assert [len(line.get("points").split()) for line in lines] == [64, 64]
texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
assert "loss" in texts and "weir train ddp" in texts, texts
TEXT
expect_json 0 'data["program"] == "ddp" and data["module"] == "opencl" and data["ranks"] == 1' "$weir" train ddp "${small[@]}" --steps 100 --json
as_json 'len(data["losses"]) == 100 and data["losses"][99] < 0.3 * data["losses"][0]'
as_json 'data["first_step"] == 0 and data["parameters"] == 1210 and data["wall_ns"] > 0'
plain="$(digest)"
expect_data 0 "$weir" train ddp "${small[@]}" --steps 100 --json --serial --buckets 0.001
as_json 'data["serial"] and data["buckets"]["count"] > 1 and data["loader"]["delivered"] == 0'
[ "$(digest)" = "$plain" ] || fail "one after the other it has $(digest), not $plain"
expect_silence 0 "$weir" train ddp "${small[@]}" --steps 2 --quiet

# The other programs, networks, optimizers and elements.
for options in "accumulate --passes 2" "augment --crop 6" "augment --on-host" "encdec --exact" \
    "ddp --network convnet --channels 2 --optimizer adam --element bf16 --wire bf16 --buckets auto"; do
    # shellcheck disable=SC2086
    expect_json 0 'len(data["right"]) == 20 and all(0 <= part <= 1 for part in data["right"])' "$weir" train $options "${small[@]}" --steps 20 --json
done

# Of several devices the one of the rank's number on its machine, or the one that is named.
two_devices()
{
    expect_data 0 env POCL_DEVICES="pthread basic" LOCAL_RANK="$1" "$weir" train ddp "${small[@]}" --steps 2 --json \
        "${@:2}"
}
two_devices 1
first="$(printf '%s' "$output" | python3 -c "import json, sys; print(json.load(sys.stdin)['device'])")"
two_devices 2
second="$(printf '%s' "$output" | python3 -c "import json, sys; print(json.load(sys.stdin)['device'])")"
[ "$second" != "$first" ] || fail "two ranks on $first"
two_devices 3
as_json "data['device'] == '$first'"
for name in "$first" "$second"; do
    two_devices 0 --device "$name"
    as_json "data['device'] == '$name'"
done

# Nothing that they do lacks a wait.
for options in ddp "accumulate --passes 2 --serial" augment encdec; do
    # shellcheck disable=SC2086
    expect_message 0 "nothing was found" "$weir" check "$program" train $options "${small[@]}" --channels 2 --steps 5
done

# An operation that fails is told, or made good with the same bits.
cat >digest.sh <<'TEXT'
"$@" >figures 2>messages || { code=$? && cat messages && exit $code; }
grep digest figures
TEXT
expect_status 0 "$weir" fault --every 13 --recovers sh digest.sh "$program" train encdec "${small[@]}" \
    --channels 1 --steps 2
expect_contains "$output" " told the cause"

# Ranks: one prints, and with integers two have the parameters of one.
expect_data 0 "$weir" train ddp --side 8 --hidden 1 --width 16 --batch 16 --steps 30 --exact --json
one="$(digest)"
expect_data 0 "$weir" launch -n 2 --no-prefix "$program" train ddp "${small[@]}" --steps 30 --exact --json
as_json 'data["ranks"] == 2 and data["samples"] == 16'
[ "$(digest)" = "$one" ] || fail "two ranks have $(digest), and one has $one"

# MNIST's files.
mkdir mnist
python3 - <<'TEXT'
import random, struct
random.seed(1)
with open("mnist/train-images-idx3-ubyte", "wb") as images, \
        open("mnist/train-labels-idx1-ubyte", "wb") as labels:
    images.write(struct.pack(">IIII", 0x803, 60, 7, 9))
    labels.write(struct.pack(">II", 0x801, 60))
    for i in range(60):
        images.write(bytes(random.randrange(80) + (150 if k // 21 == i % 3 else 0) for k in range(63)))
        labels.write(bytes([i % 3]))
TEXT
expect_data 0 "$weir" train ddp --data mnist --hidden 1 --width 16 --batch 8 --steps 100 --json
as_json 'data["parameters"] == 63 * 16 + 16 + 16 * 3 + 3 and data["losses"][99] < 0.3 * data["losses"][0]'

# What is refused.
expect_message 2 "weir train needs a PROGRAM" "$weir" train
expect_message 2 "--network takes mlp or convnet, not 'mpl'; did you mean mlp?" "$weir" train ddp --network mpl
expect_message 2 "--rate takes a number above 0 and below 1e+06, not '0'" "$weir" train ddp --rate 0
expect_message 2 "--momentum takes a number from 0 and below 1, not '1'" "$weir" train ddp --momentum 1
expect_message 2 "--momentum is of sgd, and adam has none; leave it out" "$weir" train ddp --optimizer adam --momentum 0.5
expect_message 2 "--buckets takes auto, or MiB above 0 and below 65536, not 'much'" "$weir" train ddp --buckets much
expect_message 2 "--resume needs a folder: --checkpoint DIR" "$weir" train ddp --resume
expect_message 2 "the path of the file in --checkpoint is longer than 4095 bytes" "$weir" train ddp --checkpoint "$(printf 'x%.0s' {1..4090})"
expect_message 3 "9 x 9 pixels cannot be cut out of images of 8 x 8" "$weir" train augment "${small[@]}" --crop 9
expect_contains "$messages" "; cut out fewer pixels, or take larger images"
expect_message 1 "nowhere/train-images-idx3-ubyte" "$weir" train ddp --data nowhere
expect_data 1 "$weir" train ddp "${small[@]}" --checkpoint no/such/folder
expect_contains "$messages" "no/such/folder cannot be made: No such file or directory; make the folder above it"
expect_message 3 "cuBLAS" "$weir" train ddp "${small[@]}" --products cublas
expect_message 3 "train with a lower learning rate" "$weir" train ddp "${small[@]}" --rate 100000 --steps 300

# Among ranks, the first alone makes the folder.
expect_message 1 "[0] weir: no/such/folder cannot be made" "$weir" launch -n 2 "$program" train ddp "${small[@]}" --checkpoint no/such/folder
expect_not_contains "$messages" "[1] weir: no/such/folder"

# A rank without its data tells the other one, which would wait for it for minutes.
expect_told()
{
    local data="$1" sentence="$2"
    export WEIR_COMM_COUNT=2 WEIR_COMM_RENDEZVOUS="file:$PWD/without-data"
    WEIR_COMM_RANK=1 "$program" train ddp "${small[@]}" --data "$data" >/dev/null 2>&1 &
    WEIR_COMM_RANK=0 expect_data 1 "$weir" train ddp "${small[@]}"
    wait "$!" && exit 1
    unset WEIR_COMM_COUNT WEIR_COMM_RENDEZVOUS
    expect_contains "$messages" "rank 1 has aborted 'train'"
    expect_contains "$messages" "$sentence"
}
expect_told nowhere "nowhere/train-images-idx3-ubyte"
mkdir cut
head -c 1000 mnist/train-images-idx3-ubyte >cut/train-images-idx3-ubyte
cp mnist/train-labels-idx1-ubyte cut/
expect_told cut "cut/train-images-idx3-ubyte"
