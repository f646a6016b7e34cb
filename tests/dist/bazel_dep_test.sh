#!/bin/bash
# A user's project with Weir's tree as a module of Bazel, as docs/install.md has it: Bazel 7 or later.
. tests/dist/dist.sh
need bazel
tree="$(dirname "$(readlink -f MODULE.bazel)")"
release="$(bazel --version)"
release="${release#bazel }"
case "${release%%.*}" in
[0-6] | no_version) skip bazel "bazel is $release, and modules begin with 7" ;;
esac
mkdir -p "$TEST_TMPDIR/both/project"
cd "$TEST_TMPDIR/both/project"
ln -s "$tree" ../weir
block bazel 1 >MODULE.bazel
block bazel 2 >BUILD
cp "$root/docs/first/scale.cl" .
cat >main.c <<'TEXT'
#include <stdio.h>
#include <weir/weir.h>
#include "scale.h"

int main(void)
{
    const struct weir_open_params params = {.struct_size = sizeof params, .backend = "null"};
    weir_runtime *runtime;
    weir_device *device;
    weir_program *program;
    WEIR_CHECK(weir_open(&params, &runtime));
    WEIR_CHECK(weir_device_open(runtime, NULL, &device));
    WEIR_CHECK(weir_program_create(device, WEIR_PARAMS(weir_program, .bundle = &scale_kernels), &program));
    printf("Weir %s, %zu kernel\n", weir_version(), (size_t)scale_kernels.kernel_count);
    weir_program_destroy(&program);
    WEIR_CHECK(weir_device_close(&device));
    WEIR_CHECK(weir_close(&runtime));
    return 0;
}
TEXT
{
    printf 'build --%s\n' force_pic dynamic_mode=off conlyopt=-std=c11 conlyopt=-D_POSIX_C_SOURCE=200809L
    [ ! -e /usr/share/bazel/rules/cc/MODULE.bazel ] ||
        sed "s,%workspace%,$tree," "$tree/tools/bazel/debian7.bazelrc"
} >.bazelrc
expect_status 0 bazel --nohome_rc --output_user_root="$TEST_TMPDIR/bazel" run --noshow_progress \
    ${CUDA_HOME+--repo_env=CUDA_HOME="$CUDA_HOME"} --jobs=2 //:main
bazel --nohome_rc --output_user_root="$TEST_TMPDIR/bazel" shutdown
expect_contains "$output" "Weir $version, 1 kernel"
chmod -R u+w "$TEST_TMPDIR/bazel"
