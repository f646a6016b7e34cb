"""The stubs say what the extension has, and a type checker uses them."""

import glob
import json
import os
import pwd
import subprocess
import sys

import pytest

import weir

PACKAGE = os.path.dirname(os.path.dirname(weir.__file__))

GOOD = """
import weir


async def work(config: str) -> int:
    with weir.open(config) as runtime, runtime.device(0) as device:
        queue = device.queue("copy", priority=device.limits.priority_highest)
        a, b = device.buffer((4, 4), "float32", "host", label="a"), device.buffer(16, "float32")
        with a.host("w") as array:
            array[:] = 1
        queue.copy(b[:4], a[0])
        kernel = device.program("...").kernel("scale")
        kernel[4, (64, 1)](queue, weir.In(a), weir.Out(b), 2.0, (1, 2), None)
        kernel[100](queue, weir.In(a), weir.Out(b), 2.0)
        event = queue.record()
        queue.wait(event)
        await event
        event.sync(timeout=1)
        with queue.capture() as capture:
            queue.fill(b, 0)
        if capture.graph:
            capture.graph.launch(queue)
        return event.time_ns
"""
BAD = """
import weir

device = weir.open().device()
queue = device.queue(priority="high")
queue.copy(device.buffer(4))
device.buffer(4, placement="far")
device.program("").kernel("k")[1, 1](queue, weir.In("a"), object())
"""


def mypy(*arguments, folder):
    pytest.importorskip("mypy", reason="mypy is not installed")
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "MYPYPATH": PACKAGE},
    )


def test_the_stubs_are_those_of_the_extension(tmp_path):
    # What only type checkers import; what the patterns have begins with a small letter.
    (tmp_path / "allowed").write_text(r"weir\._patterns\.[A-Z]\w*")
    result = mypy("mypy.stubtest", "weir", "--ignore-missing-stub", "--ignore-unused-allowlist", "--allowlist", "allowed", folder=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_public_name_has_a_stub_and_a_text():
    with open(os.path.join(os.path.dirname(weir.__file__), "__init__.pyi"), encoding="utf-8") as file:
        stubs = file.read()
    for name in (name for name in dir(weir) if not name.startswith("_")):
        value = getattr(weir, name)
        if getattr(value, "__module__", "weir").split(".")[0] != "weir" or type(value).__name__ == "module":
            continue
        assert name in stubs or issubclass(value, weir.Error)  # whose classes the stubs import
        assert value.__doc__, name
        if isinstance(value, type) and not issubclass(value, (tuple, BaseException)):
            for member in (member for member in vars(value) if not member.startswith("_")):
                assert getattr(value, member).__doc__, f"{name}.{member}"


def test_a_checker_takes_what_is_right_and_refuses_what_is_not(tmp_path):
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "bad.py").write_text(BAD)
    good = mypy("mypy", "--strict", "--follow-imports=silent", "good.py", folder=tmp_path)
    assert good.returncode == 0, good.stdout
    bad = mypy("mypy", "--follow-imports=silent", "bad.py", folder=tmp_path)
    lines = sorted({int(line.split(":")[1]) for line in bad.stdout.splitlines() if ": error:" in line})
    assert lines == [5, 6, 7, 8], bad.stdout


def pyright(folder):
    """What pyright says of a folder's programs, as (file, line), without its warnings."""
    # tools/setup.sh --tests puts it there. Bazel's tests have no HOME.
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(pwd.getpwuid(os.getuid()).pw_dir, ".cache")
    command = os.path.join(cache, "weir/pyright/bin/basedpyright")
    if not os.path.exists(command):
        pytest.skip(f"{command} is missing: tools/setup.sh --tests installs it from PyPI")
    (folder / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [PACKAGE], "typeCheckingMode": "standard"}))
    result = subprocess.run([command, "--pythonpath", sys.executable, "--outputjson", str(folder)],
                            capture_output=True, text=True, env={**os.environ, "LD_PRELOAD": ""})
    said = json.loads(result.stdout)
    assert said["summary"]["filesAnalyzed"] > 0, result
    return [(os.path.basename(each["file"]), each["range"]["start"]["line"] + 1)
            for each in said["generalDiagnostics"] if each["severity"] == "error"]


def test_pyright_takes_the_examples_and_what_is_right_and_refuses_what_is_not(tmp_path):
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "bad.py").write_text(BAD)
    examples = glob.glob("python/examples/*.py")
    assert examples
    for file in examples:
        with open(file, encoding="utf-8") as text:
            (tmp_path / os.path.basename(file)).write_text(text.read())
    assert sorted(set(pyright(tmp_path))) == [("bad.py", line) for line in (5, 6, 7, 8)]
