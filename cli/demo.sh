#!/bin/bash
# bazel run //:demo: the command on the two photographs, five times each, so that warm
# frames are seen too, with its files in out/demo of the folder that it was called from.
set -eu
from="${BUILD_WORKING_DIRECTORY:-$PWD}"
root="${RUNFILES_DIR:-$0.runfiles}/weir"
[ -d "$root" ] || root=. # bazel run starts at the root of the runfiles
root="$(cd "$root" && pwd)"
cd "$from" # so that the command names its files as the user does
exec "$root/cli/weir" run arr-coc --config "$root/conf/opencl.ini" --output out/demo \
    --repeat 5 \
    "$root/tests/data/images/coffee.png" "$root/tests/data/images/chelsea.png"
