#!/bin/bash
# tools/corpus/versus.py without a GPU: what it says then, and on a driver of this test's what the sides launch, how
# their results are judged, and the ratios of their times.
. tests/support/shell.sh

export PYTHONPATH="$PWD/tools/corpus" PYTHONDONTWRITEBYTECODE=1
cd "$TEST_TMPDIR"

mkdir images
cat >images/index.json <<'TEXT'
{"gemm": [{"gemm": "gemm"}, {"gemm_kernel": "_Z11gemm_kernel"}],
 "own_chain": [{"chain": "a"}, {"chain": "b"}]}
TEXT

# Memory at addresses in steps of 2^32. A launch adds ADDS to the first word of what each argument is the address of, a
# launch of WRONG twice that; side 0 takes twice as long as side 1.
cat >run.py <<'TEXT'
import ctypes, os, struct, sys
import versus

class Driver:
    stream, events = None, [1, 2]

    def __init__(self):
        self.memory, self.names, self.graphs, self.launched, self.captures = {}, [], 0, [], False

    def make(self, name, *arguments, kind=None):
        if name == "cuMemAlloc_v2":
            self.memory[(len(self.memory) + 1) << 32] = bytearray(arguments[0].value)
            return kind(len(self.memory) << 32)
        if name == "cuEventElapsedTime":
            return kind(2.0 if self.graph == 1 else 1.0)
        if name == "cuGraphInstantiateWithFlags":
            print(self.launched)
            self.graphs += 1
            return self.graphs
        self.names.append(arguments[-1].decode())
        return len(self.names) - 1

    def __call__(self, name, *arguments):
        if name == "cuMemcpyHtoD_v2":
            self.memory[arguments[0].value][:] = ctypes.string_at(arguments[1], arguments[2].value)
        elif name == "cuMemcpyDtoH_v2":
            arguments[0][:] = bytes(self.memory[arguments[1].value])
        elif name == "cuMemcpyDtoDAsync_v2":
            self.memory[arguments[0].value][:] = self.memory[arguments[1].value]
        elif "Capture" in name:
            self.captures = "Begin" in name
        elif name == "cuGraphLaunch":
            self.graph = arguments[0]
        elif name == "cuLaunchKernel" and not self.captures:
            self.launched.append((self.names[arguments[0]], arguments[1:8]))
            adds = float(os.environ["ADDS"]) * (1 + (self.names[arguments[0]] == os.environ["WRONG"]))
            for pointer in arguments[9]:
                data = self.memory.get(ctypes.c_uint64.from_address(pointer).value, bytearray(4))
                struct.pack_into("f", data, 0, struct.unpack_from("f", data)[0] + adds)

versus.Driver = Driver
sys.argv = ["versus.py", "run", "--images", "images", "--json", "figures.json", "--rounds", "5"] + sys.argv[1:]
versus.main()
TEXT
run()
{
    ADDS="$1" WRONG="$2" python3 run.py --only "$3"
}

expect_status 0 run 0.25 none 'gemm|chain'
expect_contains "$output" "[('gemm', (16, 64, 1, 32, 8, 1, 0)), ('_Z11gemm_kernel', (16, 64, 1, 32, 8, 1, 0))]"
expect_contains "$output" "2.000 (2.000 ... 2.000)"
expect_contains "$output" "not in the mean"
expect_contains "$output" "geometric mean of 1"
expect_contains "$(cat figures.json)" '"ratio"'

# One that fails is named, and ends the run with 1.
expect_status 1 run 0.25 _Z11gemm_kernel '^gemm'
expect_contains "$output" "the results differ"
expect_status 1 run 0 none '^gemm'
expect_contains "$output" "the kernels changed nothing"
expect_status 1 run nan none '^gemm'
expect_contains "$output" "a result is not finite"

# Contents whose form kernels rely on.
expect_status 0 python3 -c '
import types, versus
make = lambda *words: list(versus.Session.contents(types.SimpleNamespace(random=versus.random.Random(1)), *words))
assert make(9, "borders", 3, 10) == [0, -10, -20, -10, 0, 0, -20, 0, 0]
assert make(6, "nodes", 4) == [0, 4, 4, 4, 8, 4]
assert make(2, "bytes") == [1, 0] and make(2, "zeros") == [0, 0]
assert set(make(999, "integers", -1, 2)) == {-1, 0, 1}
assert [x > 4 for x in make(4, "diagonal", 2)] == [False] * 4 and [x > 2 for x in make(4, "diagonal", 2)][::3] == [True] * 2
assert all(3 <= x < 5 for x in make(999, "uniform", 3, 5))'

if [ -e /dev/nvidia0 ]; then
    echo "skipped: what is said without a GPU, as there is one"
    exit 0
fi
expect_status 1 python3 -m versus run --images images
expect_contains "$output" "versus: no NVIDIA driver"
