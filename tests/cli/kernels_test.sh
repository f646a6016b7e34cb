#!/bin/bash
# weir kernels: what it makes, what it refuses, and its JSON. A toolkit that is made here stands in for
# CUDA's, so that each machine runs all of it.
. tests/cli/cli.sh

export CUDA_HOME=none
mkdir way
export TMPDIR="$PWD/way"

cat >tone.cl <<'TEXT'
#include "times.h"
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void tone(__global const float *in,
                                                                   __global float *out, float gain,
                                                                   __local int *some)
{
    out[get_global_id(0)] = in[get_global_id(0)] * gain * TIMES(MORE);
}
TEXT
cat >empty.cl <<'TEXT'
__kernel void nothing(void)
{
}
TEXT
mkdir include
echo '#define TIMES(x) (x)' >include/times.h
cat >wrong.cl <<'TEXT'
__kernel void wrong(__global int *out)
{
    char c = 300;
    out[0] = missing + c;
}
TEXT
cat >image.cl <<'TEXT'
__kernel void image(__read_only image2d_depth_t in, __global int *out)
{
    out[0] = 1;
}
TEXT
words=(-Iinclude -D MORE=2 tone.cl)

# images FILE: those of a bundle.
images()
{
    grep -o 'WEIR_IMAGE_[A-Z_]*, "[a-z_0-9]*"' "$1" | sed 's/WEIR_IMAGE_//; s/, / /; s/"//g' |
        sort | tr '\n' ';'
}

# build: the bundle, its names, and the note that there are no images for CUDA.
expect_data 0 "$weir" kernels build "${words[@]}" empty.cl -o tone.c
[ -z "$output" ] || fail "build printed $output"
expect_contains "$messages" "the bundle has no CUDA images: libdevice.10.bc is not found"
expect_contains "$(cat tone.c)" '#include "tone.h"'
expect_contains "$(cat tone.c)" 'const struct weir_bundle tone_kernels = {'
expect_contains "$(cat tone.h)" 'extern const struct weir_bundle tone_kernels;'
expect_contains "$(cat tone.h)" 'The kernels tone, nothing.'
expect_not_contains "$(cat tone.c)" 'WEIR_IMAGE_PTX'
expect_quiet 0 "$weir" kernels build empty.cl -o way/2-d.c --cubin none
expect_contains "$(cat way/2-d.h)" '_2_d_kernels;'
expect_contains "$(cat way/2-d.h)" '#ifndef WEIR_BUNDLE__2_d_kernels'
expect_data 0 "$weir" kernels build empty.cl -o named.c --symbol other --ptx=none
expect_contains "$(cat named.h)" 'weir_bundle other;'
rm -f way/*
# It replaces what it made, and nothing else.
expect_data 0 "$weir" kernels build empty.cl -o named.c --ptx none
expect_contains "$(cat named.h)" 'weir_bundle named_kernels;'
for file in own.c own.h; do
    rm -f own.*
    echo "#define OWN" >$file
    expect_message 1 "$file exists and was not made by this command" "$weir" kernels build empty.cl -o own.c --ptx none
    [ "$(cat own.*)" = "#define OWN" ] || fail "$file was replaced"
done

# A pipe is neither waited for nor replaced.
rm -f own.*
mkfifo own.h
expect_message 1 "own.h" timeout 60 "$weir" kernels build empty.cl -o own.c --ptx none
expect_contains "$messages" "a pipe or a device"
[ -p own.h ] && [ ! -e own.c ] || fail "the pipe was replaced"

# The files that it depends on, as make reads them.
odd='a $'b#c
mkdir "$odd"
cp tone.cl "$odd/"
echo '#line 7 "absent.y"' >>"$odd/tone.cl"
expect_data 0 "$weir" kernels build -Iinclude -DMORE=1 "$odd/tone.cl" empty.cl --ptx none -o dep.c --depfile dep.d
[ "$(cat dep.d)" = "dep.c: \\
  $PWD/a\\ \$\$b\\#c/tone.cl \\
  $PWD/include/times.h \\
  $PWD/empty.cl" ] || fail "the rule is $(cat dep.d)"
expect_message 1 "/nonexistent/dep.d" "$weir" kernels build empty.cl --ptx none -o dep.c --depfile /nonexistent/dep.d

# refused CODE PART ARGUMENT...: a sentence, and no file.
refused()
{
    local code="$1" part="$2"
    shift 2
    expect_data "$code" "$weir" kernels "$@"
    expect_contains "$messages" "$part"
    expect_not_contains "$messages" "(null)"
    [ -z "$output" ] || fail "weir kernels $* printed $output"
    expect_nothing way
    [ -z "$(compgen -G 'no.?')" ] || fail "a bundle was written"
}
refused 2 "weir kernels needs a COMMAND"
refused 2 "did you mean 'build'?" biuld
refused 2 "needs a file in OpenCL C" build -o no.c
refused 2 "needs --output OUT.c" build empty.cl
refused 2 "-o takes the name of a C file, such as kernels.c, not 'no.o'" build empty.cl -o no.o
refused 2 "not '.c'" build empty.cl -o .c
refused 2 "not 'no\"x.c'" build empty.cl -o 'no"x.c'
refused 1 "File name too long" build empty.cl -o "$(printf 'n%.0s' $(seq 600)).c"
refused 2 "--symbol takes a name of C" build empty.cl -o no.c --symbol a-b
refused 2 "--std takes CL1.0, CL1.1, CL1.2, CL2.0 or CL3.0, not 'CL9'" build empty.cl -o no.c --std CL9
refused 2 "-D takes NAME or NAME=VALUE, in one line and without a backslash at its end, not '1X'" check -D1X empty.cl
refused 2 "in one line" check -D "X=$(printf 'a\nb')" empty.cl
refused 2 "rename the file" check 'a"b.cl'
refused 2 "--cubin takes architectures from 75 on, separated by commas" build empty.cl -o no.c --cubin 70
for list in "80," ",80" "80,x" 1000 90a; do
    refused 2 "not '$list'" build empty.cl -o no.c --ptx "$list"
done
refused 2 "--ptx takes 16 architectures at most" build empty.cl -o no.c --ptx "$(seq -s, 75 91)"
refused 2 "--arch takes one architecture, such as 90, not '80,90'" ptx --arch 80,90 empty.cl
refused 2 "--arch takes" sass --arch none empty.cl
refused 2 "--arch takes" resources --arch x empty.cl
refused 1 "wrong.cl:4:14: error: use of undeclared identifier 'missing'" build wrong.cl -o no.c
refused 3 "libdevice.10.bc is not found" build empty.cl -o no.c --cubin 90
for command in ptx sass resources; do
    refused 3 "libdevice.10.bc is not found" "$command" empty.cl
done
(
    export WEIR_LIBCLC=none
    refused 3 "install the package libclc of clang's version" build empty.cl -o no.c --ptx 90
    expect_message 0 "functions that CUDA lacks are not looked for: libclc is not installed" "$weir" kernels check empty.cl
)

# check: a sound file says nothing; --json is read by a parser.
expect_silence 0 "$weir" kernels check "${words[@]}"
expect_json 0 'data == {"sound": True, "diagnostics": []}' "$weir" kernels check --json empty.cl
expect_quiet 1 "$weir" kernels check --json wrong.cl
as_json 'data["sound"] is False'
as_json '{"file": "wrong.cl", "line": 4, "column": 14, "severity": "error",
          "message": "use of undeclared identifier '"'missing'"'"} in data["diagnostics"]'
as_json '[(d["line"], d["column"]) for d in data["diagnostics"] if d["severity"] == "warning"] == [(3, 14)]'
as_json 'all(len(d) == 5 for d in data["diagnostics"])'
expect_data 1 "$weir" kernels check --json image.cl
as_json '([(d["file"], d["line"], d["column"], d["severity"]) for d in data["diagnostics"]] ==
          [("image.cl", 1, None, "error")])'
expect_data 1 "$weir" kernels check --json absent.cl
as_json '([(d["file"], d["line"], d["severity"], d["message"]) for d in data["diagnostics"]] ==
          [("absent.cl", None, "error", "there is no such file; check the path")])'
expect_json 1 'data["diagnostics"][0]["file"] == "tone.cl" and data["diagnostics"][0]["line"] == 1' "$weir" kernels check --json tone.cl
as_json 'data["diagnostics"][0]["severity"] == "fatal error"'
# Files that include each other without end have a name and no line.
for number in $(seq 70); do
    echo "#include \"deep$((number + 1)).h\"" >"deep$number.h"
done
echo '#include "deep1.h"' >deep.cl
expect_data 1 "$weir" kernels check --json deep.cl
as_json 'any(d["file"] and d["file"].startswith("deep")
             for d in data["diagnostics"])'
# Text of the source that looks like a diagnostic is none.
cat >quote.cl <<'TEXT'
    __constant char text[] = "x.cl:1:2: error: no"; int broken
TEXT
expect_json 1 'all(d["file"] in ("quote.cl", None) for d in data["diagnostics"])' "$weir" kernels check --json quote.cl

# The standard input, and warnings.
echo '__kernel void k(__global long long *p) { int unused; p[0] = nothing; }' >input.cl
expect_message 1 "<stdin>:1:61: error: use of undeclared identifier 'nothing'" "$weir" kernels check - <input.cl
echo '__kernel void k(__global long long *p) { p[0] = 1; }' >input.cl
expect_message 0 "warning: 'long long'" "$weir" kernels check input.cl
expect_quiet 0 "$weir" kernels check -w input.cl
refused 1 "error: 'long long'" check -Werror input.cl
echo '__kernel void k(__global int *p) { p[0] = 0 < p[1] <= p[2]; }' >chain.cl
expect_quiet 0 "$weir" kernels check -w chain.cl
refused 1 "-Wparentheses" check -Werror chain.cl
refused 2 "here: --std CL2.0" check -cl-std=CL2.0 input.cl

# Options of the language.
echo '#ifndef A
#error another language
#elif __OPENCL_C_VERSION__ != 200 || A != 1 || B != 5 || F(3) != 6
#error not what the options say
#endif
__kernel void k(__global int *out) { out[0] = 1; }' >language.cl
expect_data 0 "$weir" kernels check --std CL2.0 -D A -DB=5 '-DF(x)=2 * x' --fast language.cl
refused 1 "language.cl:2:2: error: another language" check language.cl

# list.
expect_data 0 "$weir" kernels list "${words[@]}" empty.cl
[ "$output" = "tone, blocks of 64 x 1 x 1
  in    const float *  buffer, read
  out   float *        buffer, read and written
  gain  float          value, 4 bytes
  some  int *          local memory
nothing" ] || fail "list printed $output"
expect_json 0 '[k["name"] for k in data["kernels"]] == ["tone", "nothing"]' "$weir" kernels list --json "${words[@]}" empty.cl
as_json '[k["required_block"] for k in data["kernels"]] == [[64, 1, 1], None]'
as_json '([(p["name"], p["kind"], p["writable"]) for p in data["kernels"][0]["parameters"]] ==
          [("in", "buffer", False), ("out", "buffer", True), ("gain", "value", False), ("some", "local", False)])'
as_json 'data["kernels"][0]["parameters"][2]["size"] == 4 and data["kernels"][1]["parameters"] == []'

# A toolkit: libdevice without a function, and programs that tell how they were called.
clang="$(command -v clang-22 || command -v clang)"
mkdir -p toolkit/bin toolkit/nvvm/libdevice
: | "$clang" -target nvptx64-unknown-nvidiacl -x cl -c -emit-llvm -o toolkit/nvvm/libdevice/libdevice.10.bc -
export CUDA_HOME="$PWD/toolkit"
# Another toolkit's ptxas would be taken.
if ! command -v ptxas /usr/local/cuda/bin/ptxas >/dev/null; then
    expect_message 0 "the bundle has PTX and no cubins: ptxas is not found" "$weir" kernels build empty.cl -o ptx.c
    [ "$(grep -c WEIR_IMAGE_PTX ptx.c)" -eq 2 ] || fail "the bundle has not two images of PTX"
    refused 3 "ptxas is not found, and cubins need it" build empty.cl -o no.c --cubin 90
    refused 3 "ptxas is not found" resources empty.cl
    refused 3 "ptxas is not found" sass empty.cl
fi
expect_output 0 ".target sm_90" "$weir" kernels ptx empty.cl
expect_contains "$output" ".entry nothing"
expect_output 0 ".target sm_75" "$weir" kernels ptx --arch 75 empty.cl

# Functions of kernels/library take the place of libclc's.
cat >saturated.cl <<'TEXT'
__kernel void saturated(__global const double *in, __global long *out, __global half *halves)
{
    out[0] = convert_long_sat_rte(in[0]);
    out[1] = convert_int_sat(NAN);
    vstore_half_rtp((float)in[1], 0, halves);
}
TEXT
expect_output 0 "__nv_double2ll_rn" "$weir" kernels ptx saturated.cl
grep -qE 'st\.global\.b64[[:space:]]+\[%rd[0-9]+\+8\], 0;' <<<"$output" || fail "a saturated NaN is not 0"
expect_contains "$output" "cvt.f32.f16" # the nearest half is compared with the number

cat >toolkit/bin/ptxas <<'TEXT'
#!/bin/bash
if [ "$1" = --help ]; then
    echo "  'sm_75','sm_90','sm_90a'."
    exit 0
fi
if [ "$1" = -v ]; then
    [ "$3 $4" = "-o /dev/null" ] || exit 9
    grep -q '\.entry tone' "$5" || exit 9
    cat >&2 <<'END'
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'nothing' for 'sm_90'
ptxas info    : Function properties for nothing
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 4 registers, used 0 barriers
ptxas info    : Compiling entry function 'tone' for 'sm_90'
ptxas info    : Function properties for tone
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 56 registers, used 1 barriers, 256 bytes smem, 380 bytes cmem[0]
END
    exit 0
fi
echo "cubin $1" >"$4"
TEXT
chmod +x toolkit/bin/ptxas
expect_quiet 0 "$weir" kernels build empty.cl -o both.c
[ "$(images both.c)" = "CUBIN sm_75;CUBIN sm_90;OPENCL_C ;PTX sm_120;PTX sm_75;" ] || fail "the bundle has $(images both.c)"
expect_data 0 "$weir" kernels build empty.cl -o both.c --cubin 90,75,90
[ "$(grep -c 'WEIR_IMAGE_CUBIN' both.c)" -eq 2 ] || fail "an architecture that is named twice is made twice"
expect_not_contains "$(cat both.c)" WEIR_IMAGE_PTX
refused 3 "ptxas makes no cubins for 91: install a CUDA toolkit that does" build empty.cl -o no.c --cubin 75,91

expect_data 0 "$weir" kernels resources "${words[@]}" empty.cl
[[ "$(tr -s ' ' <<<"$output")" =~ ^"kernel registers local spill stores spill loads shared PTX instructions a*b+c in one
tone 56 16 B 8 B 12 B 256 B "[1-9][0-9]*" 0
nothing 4 0 B 0 B 0 B 0 B 1 0"$ ]] || fail "resources printed $output"
expect_json 0 'data["architecture"] == "75"' "$weir" kernels resources --json --arch 75 "${words[@]}" empty.cl
as_json 'data["kernels"][0] == {"name": "tone", "registers": 56, "local_bytes": 16, "spill_store_bytes": 8,
                                "spill_load_bytes": 12, "shared_bytes": 256, "fused": 0,
                                "ptx_instructions": data["kernels"][0]["ptx_instructions"]}'
refused 1 "toolkit/bin/ptxas fails" resources empty.cl
for command in resources sass; do
    refused 3 "ptxas makes no cubins for 91: install a CUDA toolkit that does" "$command" --arch 91 empty.cl
done

# CUDA C++ in place of it. The stand-in for nvcc makes PTX; the letter c is for what would be a cubin.
cat >toolkit/bin/nvcc <<'TEXT'
#!/bin/bash
echo "$*" >>calls
target="${2#*_}"
[ "$1" = -ptx ] || target+=c
depends="$(grep -o -e '-MF [^ ]*' <<<"$*")"
[ -z "$depends" ] || echo "x : empty.cu include/times.h" >"${depends#-MF }"
printf '.version 9.0\n.target sm_%s\n.visible .entry %s()\n{\n}\n' "$target" "$(cat kernel)" >"${@: -1}"
TEXT
chmod +x toolkit/bin/nvcc
echo nothing >kernel
echo '#include "include/times.h"' >empty.cu
expect_quiet 0 "$weir" kernels build empty.cl --cuda empty.cu -o twin.c -Iinclude -DN=1 --nvcc-option=-lineinfo --depfile twin.d
[ "$(images twin.c)" = "OPENCL_C ;PTX sm_120;PTX sm_75;PTX sm_75c;PTX sm_90c;TWIN ;" ] || fail "the bundle has $(images twin.c)"
expect_contains "$(sort calls)" "-cubin -arch=sm_90 -lineinfo -Iinclude -DN=1 empty.cu -o "
expect_contains "$(cat twin.d)" "$PWD/empty.cl \\
  $PWD/empty.cu \\
  $PWD/include/times.h"
expect_data 0 "$weir" kernels build empty.cl --cuda empty.cu -o twin.c --cubin 90a,90,90a
[ "$(images twin.c)" = "OPENCL_C ;PTX sm_90ac;PTX sm_90c;TWIN ;" ] || fail "the bundle has $(images twin.c)"
refused 2 "not '90aa'" build empty.cl --cuda empty.cu -o no.c --cubin 90aa
refused 3 "ptxas makes no cubins for 91" build empty.cl --cuda empty.cu -o no.c --cubin 91
CUDA_HOME=none refused 3 "nvcc is not found, and CUDA C++ needs it" build empty.cl --cuda empty.cu -o no.c --cubin 90

# Images that are there.
printf '.target sm_80\n.entry nothing()\n' >80.ptx
printf '.target sm_90\n.entry nothing()\n' >90.ptx
expect_quiet 0 "$weir" kernels build empty.cl --cuda-image 80.ptx --cuda-image 90.ptx -o twin.c --depfile twin.d
[ "$(images twin.c)" = "OPENCL_C ;PTX sm_80;PTX sm_90;TWIN ;" ] || fail "the bundle has $(images twin.c)"
expect_contains "$(cat twin.d)" "$PWD/80.ptx"
refused 2 "--cuda and --cuda-image both name what CUDA runs" build empty.cl --cuda empty.cu --cuda-image 80.ptx -o no.c
refused 2 "leave --cubin and --ptx out" build empty.cl --cuda-image 80.ptx --ptx 80 -o no.c
refused 2 "--nvcc-option is for the file of --cuda, and there is none" build empty.cl --nvcc-option=-O1 -o no.c

# Both forms, on a device that runs the OpenCL C alone.
cat >add.cl <<'TEXT'
__kernel void add(__global int *p, int more, __global const float *q, __local float *s)
{
    s[0] = q[get_global_id(0)];
    p[get_global_id(0)] += more + (int)s[0];
}
TEXT
printf '.target sm_90\n.entry add(.param .u64 a, .param .s32 b, .param .u64 c, .param .u64 d)\n' >add.ptx
cat >cases.json <<'TEXT'
{"cases": [{"name": "small", "kernel": "add", "grid": [4], "block": [1], "tolerance": {"relative": 1e-6},
            "arguments": [{"count": 4, "from": 0}, {"value": 3}, {"count": 4, "random": [1, 2]}, {"local": 4}]}]}
TEXT
expect_data 0 env WEIR_BACKEND=opencl CUDA_HOME=none "$weir" kernels compare --cases cases.json add.cl --cuda-image add.ptx --std CL2.0
expect_contains "$output" "skipped: add.ptx needs a CUDA device, and the backend is opencl; the OpenCL C runs twice"
expect_contains "$output" "ok    small: 'p': 4 elements, equal"
touch add.cu
expect_data 0 env WEIR_BACKEND=opencl CUDA_HOME=none "$weir" kernels compare --cases cases.json add.cl --cuda add.cu
expect_data 1 env WEIR_BACKEND=null "$weir" kernels compare --cases cases.json add.cl --cuda-image add.ptx
compare=(compare --cases cases.json)
refused 2 "weir kernels compare needs --cases FILE" compare add.cl --cuda add.cu
refused 2 "weir kernels compare needs --cuda FILE.cu or --cuda-image FILE" "${compare[@]}" add.cl
refused 2 "--arch takes one architecture" "${compare[@]}" add.cl --cuda add.cu --arch 80,90
refused 2 "not '90a'" "${compare[@]}" add.cl --cuda-image add.ptx --arch 90a

mv toolkit/bin/ptxas ptxas
# One that tells nothing of a kernel, and one that does not even list GPUs.
# shellcheck disable=SC2016
printf '#!/bin/bash\n[ "$1" != --help ] || echo "sm_75 \x27sm_90\x27"\n' >toolkit/bin/ptxas
chmod +x toolkit/bin/ptxas
expect_data 0 "$weir" kernels resources empty.cl
expect_contains "$(tr -s ' ' <<<"$output")" "nothing - - - - - 1 0"
expect_json 0 'data["kernels"][0]["registers"] is None' "$weir" kernels resources empty.cl --json
printf '#!/bin/bash\nexit 0\n' >toolkit/bin/ptxas
refused 3 "ptxas --help does not list GPUs" resources empty.cl
refused 3 "ptxas --help does not list GPUs" build empty.cl -o no.c
mv ptxas toolkit/bin/ptxas

# Machine code is shown by what the toolkit or the search path has.
if ! command -v nvdisasm cuobjdump >/dev/null; then
    refused 3 "neither nvdisasm nor cuobjdump is found" sass empty.cl
fi
mkdir path
# shellcheck disable=SC2016
printf '#!/bin/bash\necho "$1"; cat "$2"\n' >path/cuobjdump
chmod +x path/cuobjdump
expect_data 0 env PATH="$PWD/path:/usr/bin:/bin" "$weir" kernels sass empty.cl
[ "$output" = "-sass
cubin -arch=sm_90" ] || fail "sass printed $output"
# shellcheck disable=SC2016
printf '#!/bin/bash\ncat "$1"\n' >toolkit/bin/nvdisasm
chmod +x toolkit/bin/nvdisasm
expect_data 0 "$weir" kernels sass --arch 75 empty.cl
[ "$output" = "cubin -arch=sm_75" ] || fail "sass printed $output"
for command in list ptx resources sass; do
    refused 1 "wrong.cl:4:14: error" "$command" wrong.cl
done
printf '#!/bin/bash\necho "cannot read it" >&2\nexit 1\n' >toolkit/bin/nvdisasm
refused 1 "toolkit/bin/nvdisasm fails: cannot read it" sass empty.cl
[[ "$messages" != *$'\n'* ]] || fail "more than one line: $messages"
expect_nothing way

# The bundle is C.
expect_status 0 cc -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$here/api" -c tone.c -o tone.o
