#!/bin/bash
# `weir bench swim` through the real backend code, with the fake libcuda: with priorities, and with
# products of a fake cuBLAS on Weir's queues. Times are not judged.

. tests/support/shell.sh
. tests/cli/bench.sh

export WEIR_BACKEND=cuda WEIR_MODULE_PATH=backends/cuda
fake="$PWD/tests/support/libcuda"
blas="$PWD/tests/support/libcublas"
unset WEIR_CONFIG WEIR_PLUGINS
weir="$PWD/cli/weir"
small=(--side 40 --copies 3 --products 5 --turns 2)

export LD_LIBRARY_PATH="$fake:$blas${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
expect_status 0 "$weir" bench swim "${small[@]}" --json --quiet
report '
assert data["backend"] == "cuda"
parts = {row["part"]: median(row["ms"]) for row in tables["parts"]}
assert {"products, twin", "products, cuBLAS", "products, tensor cores"} < set(parts), parts
assert all(ms > 0 for ms in parts.values())
assert [row["light_kernels"] for row in tables["kernels"]] == [
    "after them, same queue", "beside them, own queue", "beside them, highest priority",
    "after tensor cores, same queue", "beside tensor cores, own queue"]
copies = 2 + 2 + 4 * 2
assert data["results_checked"] == copies + 256 * 5 * (1 + 4 + 3 + 2 * 5)
assert not any("not measured" in note for note in data["notes"]), data["notes"]
'

# A product that is refused is an error that names the call.
expect_says 3 "cuBLAS refused a product" env FAKE_CUBLAS=multiply "$weir" bench swim "${small[@]}" --quiet
expect_contains "$output" "cublasGemmEx"

# Without cuBLAS the rest is measured, and a note says why.
expect_status 0 env FAKE_CUBLAS=create "$weir" bench swim "${small[@]}" --json --quiet
report '
assert "not measured: cuBLAS: cuBLAS refused the device" in data["notes"], data["notes"]
assert len(tables["parts"]) == 6 and len(tables["kernels"]) == 3
'

# So it is without an image of the twin for the GPU.
expect_status 0 env WEIR_TEST_CUDA_ARCH=75 "$weir" bench swim "${small[@]}" --json --quiet
report '
assert any(note.startswith("not measured: twin: ") and "which is sm_75" in note for note in data["notes"]), data["notes"]
assert "products, twin" not in [row["part"] for row in tables["parts"]]
'

# What only CUDA has is left out if asked.
expect_status 0 "$weir" bench swim "${small[@]}" --json --quiet --portable
report '
assert len(tables["parts"]) == 5 and not any("cuBLAS" in note for note in data["notes"]), data["notes"]
'
