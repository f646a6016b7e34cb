"""For pytest: `--weir-check`, `--weir-perturb N`, and the mark `weir(overlap="copy/compute>=0.6")`.

A test that opens runtimes fails if the plugin check finds uses of the same bytes that nothing orders. The text
has both lines of Python; it is the test's, so reports (junit) have it too. Runtimes that a fixture of a wider
scope opened count too, for the test that runs."""

import glob
import os
import subprocess
import tempfile

import pytest


def pytest_addoption(parser):
    group = parser.getgroup("weir", "Weir: queues, events and buffers")
    group.addoption("--weir-check", action="store_true", help="fail tests in which a wait is missing")
    group.addoption("--weir-perturb", type=int, default=0, metavar="N",
                    help="run each test N more times, with operations in other orders that the waits allow")


def pytest_configure(config):
    config.addinivalue_line("markers", "weir(overlap): what a run in virtual time on a GPU must reach, such as "
                                       "'copy/compute>=0.6'; gpu: the model, 'h200'; costs: the kernels' file")
    if config.getoption("--weir-perturb") < 0:
        raise pytest.UsageError("--weir-perturb takes the number of runs, 1 or more")


def pytest_generate_tests(metafunc):
    """Each test with a number, from which perturb draws its order; 0 is the usual order."""
    count = metafunc.config.getoption("--weir-perturb")
    if count and "weir_seed" not in metafunc.fixturenames:
        metafunc.fixturenames.append("weir_seed")
    if count:
        metafunc.parametrize("weir_seed", range(count + 1), ids=lambda seed: f"seed{seed}" if seed else "usual",
                             indirect=True, scope="session")


@pytest.fixture(scope="session")
def weir_seed(request):
    """The number of the order that perturb makes; 0: the usual one."""
    return getattr(request, "param", 0)


def _environment(item, mark, trace):
    """Variables for the time of a test."""
    plugins = [name.strip() for name in os.environ.get("WEIR_PLUGINS", "").split(",") if name.strip()]
    values = {}
    if item.config.getoption("--weir-check") and "check" not in plugins:
        plugins.insert(0, "check")
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    if parameters.get("weir_seed", 0) and "perturb" not in plugins:
        plugins.append("perturb")
        values.update(WEIR_PERTURB_MODE="random", WEIR_PERTURB_SEED=str(parameters["weir_seed"]))
    if mark:
        plugins += [name for name in ("trace", "sim") if name not in plugins]
        values.update(WEIR_TRACE_FILE=trace, WEIR_SIM_GPU=mark.kwargs.get("gpu", "h200"))
        costs = mark.kwargs.get("costs")
        values.update({"WEIR_SIM_COSTS": os.path.abspath(costs)} if costs else {"WEIR_SIM_KERNELS": "scale"})
    if plugins:
        values["WEIR_PLUGINS"] = ",".join(plugins)
    return values


def _mark(item):
    mark = item.get_closest_marker("weir")
    if mark and (mark.args or set(mark.kwargs) - {"overlap", "gpu", "costs"} or "overlap" not in mark.kwargs):
        raise pytest.UsageError(f"{item.nodeid}: the mark weir takes overlap=\"copy/compute>=0.6\", gpu=\"h200\" and "
                                "costs=\"kernels.ini\"")
    return mark


def _text(findings):
    return "\n".join(f"{finding['kind']}, {finding['count']} time{'s' if finding['count'] > 1 else ''}\n"
                     f"  {finding['message']}\n  to do: {finding['remedy']}" for finding in findings)


def _check_overlap(mark, traces):
    """A sentence, if one of the test's traces does not reach what the mark asks for."""
    command = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "weir")
    for trace in traces:
        done = subprocess.run([command, "trace", "check", trace, "--overlap", mark.kwargs["overlap"]],
                              capture_output=True, text=True)
        if done.returncode != 0:
            return done.stdout + done.stderr
    return ""


def _judge(item, outcome, is_last):
    """Fails the test by what is known now: in its call, or, where a fixture closes the runtime, after that."""
    import weir  # a program without Weir does not load it

    mark = _mark(item)
    text = _text(weir.findings()) if item.config.getoption("--weir-check") else ""
    traces = glob.glob(os.path.join(item.weir_folder, "*.json")) if weir._weir._alive()[0] == 0 else []
    if mark and not text and not item.weir_judged and (traces or is_last):
        item.weir_judged = True
        text = _check_overlap(mark, traces) if traces else (
            "the mark weir asks for an overlap, but the test has opened no runtime, or has not closed it")
    if not text or outcome.excinfo is not None:
        return
    error = pytest.fail.Exception(text, pytrace=False)
    if not hasattr(outcome, "force_exception"):  # before pluggy 1.1
        raise error
    outcome.force_exception(error)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    mark = _mark(item)
    with tempfile.TemporaryDirectory() as folder:
        item.weir_folder = folder
        item.weir_judged = False
        with pytest.MonkeyPatch.context() as patch:  # they are read when a runtime is opened
            for name, value in _environment(item, mark, os.path.join(folder, "trace.json")).items():
                patch.setenv(name, value)
            yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    outcome = yield
    if item.config.getoption("--weir-check") or _mark(item):
        _judge(item, outcome, False)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item):
    outcome = yield
    if item.config.getoption("--weir-check") or _mark(item):
        _judge(item, outcome, True)
