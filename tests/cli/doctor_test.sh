#!/bin/bash
# weir doctor, devices and config check: sound and broken set-ups.
. tests/cli/cli.sh

# Sound. What is well of a topic with many findings is one line, and all of it with --all.
expect_data 0 "$weir" doctor --config small.ini
for part in "small.ini (--config) (" "opencl is used" "Portable Computing Language" "events are timed" "all is well"; do
    expect_contains "$output" "$part"
done
[ "$(grep -c '^ok  *module .* more: --all)$' <<<"$output")" -eq 1 ] && [ "$(grep -c '^ok  *module ' <<<"$output")" -eq 1 ] ||
    fail "modules are not one line: $output"
expect_data 0 "$weir" doctor --all --config small.ini
expect_not_contains "$output" "more: --all"
for part in "small.ini (--config)" "backend = opencl (small.ini:2)" "opencl is used" \
    "null 0.1.0, a backend, ABI 1" "null, summary: Buffers in host memory" \
    "opencl, summary: Runs on GPUs and CPUs" "cuda, summary: Runs on NVIDIA GPUs" \
    "trace, summary: Records which operation ran when" "Portable Computing Language" "PoCL cache" \
    "copy, kernel and copy back gave the right 1024 numbers" "events are timed" "all is well" \
    "POCL_CACHE_DIR=$POCL_CACHE_DIR"; do
    expect_contains "$output" "$part"
done
# What PoCL miscompiles before 7 is a note, with remedies, the last of which works.
if [[ "$output" =~ "Portable Computing Language; "([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -ge 7 ]; then
    expect_contains "$output" "ok       driver         kernels that some drivers miscompile gave the right numbers"
else
    expect_contains "$output" "note     driver         this driver gives each work-item its own copy of a __local variable"
fi
printf '[weir]\nbackend = opencl\n[opencl]\nbuild_options = -cl-opt-disable\n' >unoptimised.ini
expect_output 0 "ok       driver         kernels that some drivers miscompile gave the right numbers" "$weir" doctor --config unoptimised.ini
modules="$(find "$here/lib/weir/" -name 'weir_*.so' | wc -l)" # of the build tree
expect_json 0 'data["problems"] == 0 and any(f["topic"] == "self-test" for f in data["findings"])' "$weir" doctor --config small.ini --json
as_json '[sum(f["topic"] == "module" and part in f["text"] for f in data["findings"]) for part in (", ABI ", ", summary: ")] == ['"$modules, $modules"']'
as_json '"    summary: Runs on GPUs and CPUs" in data["load_report"]'
expect_output 0 "WEIR_BACKEND=opencl" env WEIR_BACKEND=opencl WEIR_PLUGINS= "$weir" doctor
expect_contains "$output" "no file: the defaults hold"

# Broken: a problem, a remedy, exit code 3.
mkdir vendors modules
expect_problem "no OpenCL driver is registered" "pocl-opencl-icd" \
    env OCL_ICD_VENDORS="$PWD/vendors/" "$weir" doctor --config small.ini
expect_problem "PoCL cannot keep compiled kernels in /proc/weir" "set POCL_CACHE_DIR" \
    env POCL_CACHE_DIR=/proc/weir "$weir" doctor --config small.ini
echo "This is no module." >modules/weir_opencl.so
expect_problem "$PWD/modules/weir_opencl.so" "" \
    env WEIR_MODULE_PATH="$PWD/modules" "$weir" doctor --config small.ini
expect_problem "no weir_opencl.so in /nonexistent" "WEIR_MODULE_PATH" \
    env WEIR_MODULE_PATH=/nonexistent "$weir" doctor --config small.ini
printf '[weir]\nbackend = opencl\ndevice = 99\n' >device.ini
expect_problem "99" "" "$weir" doctor --config device.ini
printf '[wier]\n' >broken.ini
expect_problem "broken.ini:1: " "weir" "$weir" doctor --config broken.ini
expect_contains "$output" "note     configuration  broken.ini (--config)"
expect_problem "missing.ini: there is no such file" "WEIR_CONFIG" env WEIR_CONFIG=missing.ini "$weir" doctor
expect_contains "$output" "note     configuration  missing.ini (WEIR_CONFIG)"
expect_problem "this device runs no kernels" "choose a backend that runs kernels" \
    env WEIR_BACKEND=null "$weir" doctor
expect_data 3 env WEIR_BACKEND=null "$weir" doctor --json
as_json 'data["problems"] == 1 and [f["remedy"] for f in data["findings"] if f["state"] == "problem"][0]'

# What `weir kernels` needs is not needed to run: notes, and no problem.
expect_noted()
{
    local part="$1"
    shift
    expect_output 3 "$part" env WEIR_BACKEND=null "$@" "$program" doctor --all
    expect_contains "$output" "1 problem"
}
expect_noted "ok       weir kernels   clang: /" CUDA_HOME=none
expect_contains "$output" "ok       weir kernels   libclc: /"
expect_contains "$output" "note     weir kernels   libdevice.10.bc is not found, and CUDA images need it"
expect_noted "note     weir kernels   libclc is not installed" WEIR_LIBCLC=none
expect_noted "note     weir kernels   clang is not installed, and compiling kernels needs it" PATH=/nonexistent
mkdir -p toolkit/bin toolkit/nvvm/libdevice
echo none >toolkit/nvvm/libdevice/libdevice.10.bc
printf '#!/bin/sh\n' >toolkit/bin/ptxas
cp toolkit/bin/ptxas toolkit/bin/nvcc
chmod +x toolkit/bin/ptxas toolkit/bin/nvcc
expect_noted "weir kernels   ptxas: $PWD/toolkit/bin/ptxas" CUDA_HOME="$PWD/toolkit"
expect_contains "$output" "weir kernels   nvcc: $PWD/toolkit/bin/nvcc"
expect_contains "$output" "weir kernels   libdevice: $PWD/toolkit/nvvm/libdevice/libdevice.10.bc"
expect_not_contains "$output" "note     weir kernels"

# Devices.
expect_output 0 "Portable Computing Language" "$weir" devices --config small.ini
expect_contains "$output" "largest buffer"
[[ "$output" =~ kind\ +cpu ]] || fail "PoCL's device is of another kind: $output"
expect_json 0 'data["module"] == "null" and len(data["devices"]) == 1' env WEIR_BACKEND=null "$weir" devices --json
as_json 'data["devices"][0]["limits"]["max_block"] == [1024, 1024, 64]'
as_json 'data["devices"][0]["limits"]["kind"] == "cpu"'
printf '[weir]\nbackend = null\n\n[null]\ndevices = 3\n' >three.ini
expect_json 0 '[d["index"] for d in data["devices"]] == [0, 1, 2]' "$weir" devices --config three.ini --json
printf '[weir]\nbackend = null\n\n[null]\ndevices = 0\n' >none.ini
expect_message 3 "found no device" "$weir" devices --config none.ini

# The configuration.
expect_output 0 "three.ini is sound" "$weir" config check three.ini
expect_contains "$output" "three.ini:5"
[[ "$output" =~ \[arr_coc\]\ +side\ =\ 1024\ +default ]] || fail "no default of [arr_coc]: $output"
expect_data 0 env WEIR_PLUGINS= "$weir" config check small.ini --json
as_json 'data["settings"]["arr_coc"]["side"] == {"value": "256", "origin": "small.ini:5"}'
as_json 'data["settings"]["weir"]["plugins"]["origin"] == "WEIR_PLUGINS"'
as_json '"library" in data["settings"]["opencl"]'
expect_data 0 env WEIR_OPENCL_CACHE=0 "$weir" config check small.ini --json
as_json 'data["settings"]["opencl"]["cache"] == {"value": "0", "origin": "WEIR_OPENCL_CACHE"}'
expect_message 3 "WEIR_OPENCL_CACHE: 'cache' of [opencl] must be 0 or 1, not '2'" env WEIR_OPENCL_CACHE=2 "$weir" config check small.ini

expect_unsound()
{
    local part="$1"
    printf '%b' "$2" >unsound.ini
    expect_data 3 "$weir" config check unsound.ini
    [ -z "$output" ] || fail "printed for an unsound file: $output"
    expect_contains "$messages" "$part"
}
expect_unsound "unsound.ini:2: unknown key 'bakend' in [weir]; did you mean 'backend'?" '[weir]\nbakend = x\n'
expect_unsound "unsound.ini:2: " '[arr_coc]\nside = 7\n'
expect_message 3 "nowhere.ini" "$weir" config check nowhere.ini

# What the file names and what is not there; a section alone may be for another machine, and is a note.
expect_missing()
{
    local part="$1"
    printf '%b' "$2" >absent.ini
    expect_message 1 "weir: $part" "$weir" config check absent.ini
    expect_contains "$output" "absent.ini needs 1 module that is not here"
}
expect_missing "absent.ini:2: backend names 'opncl', and there is no weir_opncl.so in the folder of modules; did you mean 'opencl'?" \
    '[weir]\nbackend = cuda, opncl\n'
expect_missing "absent.ini:4: transport names 'mpii', and there is no" '[weir]\nbackend = null\n[comm]\ntransport = mpii\n'
expect_missing "absent.ini:3: plugins names 'chekc', and there is no weir_chekc.so in the folder of modules; did you mean 'check'?" \
    '[weir]\nbackend = null\nplugins = trace, chekc\n'
expect_json 1 'data["missing"] == 1' env WEIR_BACKEND=nul "$weir" config check small.ini --json
expect_contains "$messages" "WEIR_BACKEND: backend names 'nul'"
mkdir few
cp -L "$here/lib/weir/weir_null.so" few
printf '[weir]\nbackend = null\nmodule_path = few\n[cuda]\nnccl = off\n' >section.ini
expect_message 0 "a section names 'cuda', and there is no weir_cuda.so in few: check the spelling and module_path" "$weir" config check section.ini

# Variables that nothing reads, with the nearest that something does; those that a manual page names are read.
expect_data 0 env WEIR_PLUGINS= WEIR_BACKENDS=x WEIR_TRACE_FIEL=y WEIR_SIM_GPU=k20c WEIR_OTHERWISE=1 WEIR_COMM_SECRET=hidden \
    "$weir" doctor --config small.ini
expect_contains "$output" "note     environment    nothing of Weir reads WEIR_BACKENDS; did you mean WEIR_BACKEND?"
expect_contains "$output" "nothing of Weir reads WEIR_TRACE_FIEL; did you mean WEIR_TRACE_FILE?"
grep -q "nothing of Weir reads WEIR_OTHERWISE$" <<<"$output" || fail "another name is suggested: $output"
expect_contains "$output" "note     environment    WEIR_SIM_GPU=k20c"
expect_contains "$output" "note     environment    WEIR_COMM_SECRET is set"
expect_not_contains "$output" "hidden"
while read -r name; do
    case "$name" in
    WEIR_BACKEND) value=null ;;
    WEIR_CONFIG) value=small.ini ;;
    WEIR_FAULT_FAULT) value=slow ;;
    WEIR_MODULE_PATH) value="$here/lib/weir" ;;
    WEIR_PLUGINS) value=trace ;;
    *) value=1 ;;
    esac
    output="$(env WEIR_BACKEND=null "$name=$value" "$program" doctor 2>&1 || true)"
    grep -q "environment    $name\(=$value\| is set\)$" <<<"$output" || fail "$name is unknown: $output"
done < <(grep -hoE '\bEv WEIR_[A-Z_]+' "$man"/*.1 | sed 's/^Ev //' | grep -v _KEY$ | sort -u)
