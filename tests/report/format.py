"""format.py FOLDER: what Perfetto, chrome://tracing and HTA need of a trace of PyTorch's profiler, and their unstated assumptions."""

import collections
import glob
import json
import re
import sys

DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
OTHERS = {"cuda_runtime", "cuda_sync", "user_annotation", "host_call", "graph"}
COPY = re.compile(r"Memcpy \wto\w \([A-Za-z]+ -> [A-Za-z]+\)$")


def unique(pairs):
    assert len(dict(pairs)) == len(pairs), "a key is there twice"
    return dict(pairs)


def are_counts(values, *keys):
    return all(type(values[key]) is int and values[key] >= 0 for key in keys)


def check_head(root, text):
    assert root["schemaVersion"] == 1 and root["distributedInfo"]["rank"] == 0
    assert '"rank": 0' in text  # HTA looks for the text, with the space
    assert are_counts(root, "baseTimeNanoseconds") and root["deviceProperties"]
    for device in root["deviceProperties"]:
        assert are_counts(device, "id", "totalGlobalMem") and isinstance(device["name"], str)


def check_slice(event, line):
    category, name, args = event["cat"], event["name"], event["args"]
    assert event["ts"] >= 0 and event["dur"] >= 0 and category in DEVICE | OTHERS
    # Microseconds that are written with three decimals, as the profiler does.
    assert re.search(r'"ts":\d+\.\d{3},"dur":\d+\.\d{3}[,}]', line)
    # Whatever has a stream counts as work of the device, and HTA tells kinds by their names only.
    assert ("stream" in args) == (category in DEVICE)
    assert category not in DEVICE or (args["stream"], args["device"]) == (event["tid"], event["pid"])
    assert category not in DEVICE or are_counts(args, "stream", "device", "correlation")
    assert category not in DEVICE or ("Memcpy" in name, "Memset" in name) == (category == "gpu_memcpy", category == "gpu_memset")
    assert category != "gpu_memcpy" or (COPY.match(name) and are_counts(args, "bytes"))
    assert category != "cuda_runtime" or are_counts(args, "correlation")


def check_event(event, line):
    assert json.loads(line.rstrip(",")) == event  # one event a line, in order
    assert isinstance(event["name"], str) and are_counts(event, "pid", "tid")
    if event["ph"] == "X":
        check_slice(event, line)
    elif event["ph"] in "sf":
        assert are_counts(event, "id") and event["cat"] in ("ac2g", "wait") and event["name"] == event["cat"]
        assert re.search(r'"ts":\d+\.\d{3}[,}]', line) and event.get("bp") == ("e" if event["ph"] == "f" else None)
    elif event["ph"] == "M":
        assert isinstance(event["args"]["name"], str)
    else:
        assert event["ph"] == "i" and event["s"] == "t"


def check(path):
    """Returns how many arrows of waits there are."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    root = json.loads(text, object_pairs_hook=unique)
    events = root["traceEvents"]
    check_head(root, text)
    for event, line in zip(events, text.partition('"traceEvents": [\n')[2].splitlines()):
        check_event(event, line)
    slices = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            slices[event["pid"], event["tid"]].append((event["ts"] - 1e-9, event["ts"] + event["dur"] + 1e-9))
    ends = collections.Counter()
    for event in events:
        if event["ph"] in "sf":
            ends[event["cat"], event["id"], event["ph"]] += 1
            # An end must be inside a slice of its row, or viewers do not draw it.
            assert any(begin <= event["ts"] <= end for begin, end in slices[event["pid"], event["tid"]])
    # Each arrow has both ends, and each end belongs to one arrow.
    assert all(count == 1 and (category, number, "sf"[phase == "s"]) in ends for (category, number, phase), count in ends.items())
    # Each operation has the call that submitted it, on a row of no device.
    operations = [event for event in events if event["ph"] in "Xi" and "weir.sequence" in event["args"]]
    calls = [event for event in events if event.get("cat") == "cuda_runtime"]
    assert sorted(event["args"]["correlation"] for event in calls) == sorted(event["args"]["correlation"] for event in operations)
    assert not {event["pid"] for event in calls} & {event["pid"] for event in operations}
    return sum(category == "wait" and phase == "s" for category, _, phase in ends)


arrows = 0
paths = glob.glob(sys.argv[1] + "/*.json")
for path in paths:
    try:
        arrows += check(path)
    except AssertionError:
        print(path)
        raise
assert len(paths) > 100 and arrows > 100
