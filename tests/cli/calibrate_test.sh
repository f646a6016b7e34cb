#!/bin/bash
# weir calibrate: what it measures on a modelled GPU is the model, and on PoCL a model of the processor.
. tests/cli/cli.sh
export WEIR_COPY_THREADS=2 WEIR_MODULE_PATH="$here/lib/weir"

printf '[kernel advance]\nfixed_ns = 2000\nper_argument_1_ns = 5\n' >costs.ini

# What was measured on the GPU of $1, with `changes` $2, is what its model says: rates and times to 1 %
# and 2 ns, the others exactly. What it could not measure is not in the file.
expect_model()
{
    expect_data 0 env WEIR_BACKEND=null WEIR_PLUGINS=sim WEIR_SIM_GPU="$1" WEIR_SIM_CHANGES="$2" \
        WEIR_SIM_COSTS=costs.ini "$weir" calibrate --turns 1 --output card.ini
    expect_contains "$output" "h2d_gb_per_s"
    expect_contains "$(cat card.ini)" "; The times are those of a modelled GPU."
    python3 - "$1" "$2" <<'TEXT' || fail "$1 with '$2': $(cat card.ini)"
import re, sys

def keys(text):
    return dict(re.findall(r"^(\w+) = (.*)$", text, re.M))

name, changes = sys.argv[1:]
model = keys(open(name).read().split("[kernel")[0])
model.update(re.findall(r"(\w+)=([^, ]+)", changes))
found = keys(open("card.ini").read())
for key, value in found.items():
    if key == "name":
        continue
    defaults = {"kind": "gpu", "queues": "stream", "d2d_gb_per_s": "100000", "peer_gb_per_s": "100000"}
    wanted = model.get(key, defaults.get(key, "0"))
    if key == "submit_graph_ns" and float(wanted) == 0:
        wanted = model.get("submit_kernel_ns", "0")
    if key == "copy_engines" and "peer_gb_per_s" not in found:
        wanted = str(min(2, int(wanted)))
    if key == "staging_all_gb_per_s": # of two threads
        two = 2 * float(model["staging_gb_per_s"])
        wanted = str(min(two, float(wanted) or two))
    if key in ("pull_latency_ns", "copy_both_latency_ns") and float(wanted) == 0:
        wanted = model.get("copy_latency_ns", "0")
    if "_both_gb" in key and float(wanted) == 0:
        wanted = model.get(key.replace("_both", ""), "0")
    if key in ("kind", "queues"):
        same = value == wanted
    elif "_ns" in key or "_gb_" in key:
        # Submits and waits of the pieces are part of those, and each copy is beside two of the other direction for a while.
        share = 0.04 if "staging" in key or "_both_latency" in key else 0.015 if "_both_" in key else 0.01
        same = abs(float(value) - float(wanted)) <= share * float(wanted) + (2 if "_ns" in key else 0)
    else:
        same = float(value) == float(wanted)
    assert same, f"{key} is {value}, and was {wanted}"
for key in ("queues", "copy_engines", "kernels", "h2d_gb_per_s", "d2h_gb_per_s"):
    assert key in found, key
TEXT
}

gpus="$here/conf/gpus"
# Slow copies last longer than all submits without many bytes, which the machine copies too.
slow="h2d_both_gb_per_s=16.5, d2h_both_gb_per_s=17.2, h2d_gb_per_s=20.1, d2h_gb_per_s=21.3"
expect_model "$gpus/h200.ini" "copy_latency_ns=1400, copy_both_latency_ns=1800, d2d_gb_per_s=1500, host_call_ns=7000,\
 submit_copy_ns=1900, submit_mark_ns=350, wait_ns=5200, wake_ns=17000, signal_ns=5600, submit_graph_ns=1170, submit_branch_ns=310, copy_channels=3,\
 $slow, kernels=33, multiprocessors=33, graph_ns=1900, staging_gb_per_s=3.1, staging_all_gb_per_s=5.5"
for line in "greatest_priority = -5" "staging_gb_per_s = " "copy_channels = 3"; do
    expect_contains "$(cat card.ini)" "$line"
done
# One direction that is much slower than the other hides all of it.
expect_model "$gpus/h200.ini" "copy_channels=2, $slow, d2h_both_gb_per_s=4, d2h_gb_per_s=4"
expect_contains "$(cat card.ini)" "copy_engines = 2"
expect_contains "$(cat card.ini)" "copy_channels = 2"
expect_model "$gpus/c1060.ini" "staging_gb_per_s=1, graph_ns=800"
expect_model "$gpus/c2050.ini" "submit_kernel_ns=2500"
expect_contains "$output" "each queue holds up all others"
expect_contains "$(cat card.ini)" "; staging_all_gb_per_s was not measured: the host copies as fast as the device"

# Times that vary by a twentieth change no number of anything.
expect_data 0 env WEIR_BACKEND=null WEIR_PLUGINS=sim WEIR_SIM_GPU="$gpus/h200.ini" \
    WEIR_SIM_CHANGES="copy_channels=4, channels=34, d2d_gb_per_s=90, $slow" WEIR_SIM_JITTER=5 WEIR_SIM_SEED=2 \
    WEIR_SIM_COSTS=costs.ini "$weir" calibrate --turns 3 --output varied.ini
for line in "queues = stream" "channels = 34" "copy_engines = 2" "copy_channels = 4" "kernels = 128"; do
    grep -qx "$line" varied.ini || fail "with jitter, no '$line': $(cat varied.ini)"
done

# Two devices.
export WEIR_NULL_DEVICES=2
expect_model "$gpus/k20c.ini" "kernels=1, copy_engines=3, peer_gb_per_s=3, copy_latency_ns=2500, submit_mark_ns=600, pull_latency_ns=12400"
expect_contains "$(cat card.ini)" "copy_engines = 3"
expect_model "$gpus/k20c.ini" "kernels=1, peer_gb_per_s=7"
expect_contains "$(cat card.ini)" "copy_engines = 2"
unset WEIR_NULL_DEVICES

# The file is a model.
expect_data 0 env WEIR_BACKEND=null WEIR_PLUGINS=sim WEIR_SIM_GPU=card.ini "$weir" devices

# As JSON, with how each figure was found. The device is no other device, however it was chosen.
on_sim=(env WEIR_BACKEND=null WEIR_PLUGINS=sim WEIR_SIM_GPU=k20c)
expect_data 0 "${on_sim[@]}" WEIR_SIM_COSTS=costs.ini "$weir" calibrate --turns 2 --json --device "null device"
as_json 'data["virtual"] and data["turns"] == 2'
as_json '{f["key"]: f for f in data["figures"]}["queues"]["value"] == "stream"'
as_json '{f["key"]: f for f in data["figures"]}["wait_ns"]["value"]["median"] == 0'
as_json '{f["key"]: f for f in data["figures"]}["peer_gb_per_s"]["not_measured"] == "there is one device"'
as_json 'all(f["how"] for f in data["figures"])'

# On the processor. A machine that is too busy may hide what a copy takes.
status=0
output="$(WEIR_BACKEND=opencl "$weir" calibrate --turns 3 2>messages)" || status=$?
if [ "$status" -eq 0 ]; then
    expect_contains "$output" "; The device is the machine's processors: these are no figures of a GPU."
    printf '%s\n' "$output" >cpu.ini
    expect_data 0 env WEIR_BACKEND=null WEIR_PLUGINS=sim WEIR_SIM_GPU=cpu.ini "$weir" devices
else
    expect_contains "$(cat messages)" "is the machine busy?"
fi

# A device that does not time its work: the order in which copies end is not known.
status=0
output="$(WEIR_BACKEND=opencl WEIR_OPENCL_LIBRARY="$here/tests/support/libopencl/libOpenCL.so.1" \
    WEIR_TEST_OPENCL_NO_TIMES=1 "$weir" calibrate --turns 1 2>messages)" || status=$?
if [ "$status" -eq 0 ]; then
    expect_contains "$output" "copy_channels was not measured: the device keeps no times"
else
    expect_contains "$(cat messages)" "is the machine busy?"
fi

# What has no times, and what cannot be measured.
expect_message 3 "of the backend null runs no kernels, so its times tell nothing of a GPU" env WEIR_BACKEND=null "$weir" calibrate
[ -z "$output" ] || fail "it printed a model: $output"
expect_message 3 "sim: the kernel 'advance' has no cost" "${on_sim[@]}" "$weir" calibrate --turns 1
printf '[kernel advance]\nfixed_ns = 2000\n' >fixed.ini
expect_data 1 "${on_sim[@]}" WEIR_SIM_COSTS=fixed.ini "$weir" calibrate --turns 1
expect_contains "$messages" "its time does not grow with its work, so kernels at once cannot be counted"
expect_contains "$messages" "give it a cost with per_item_argument_1_ns"
expect_message 3 "7" env WEIR_BACKEND=null "$weir" calibrate --device 7
expect_message 1 "absent" env WEIR_BACKEND=null "$weir" calibrate --output absent/card.ini
