"""The rows of docs/python.md for those who come from torch.cuda, run."""

import weir

runtime = weir.open()
device = runtime.device()

s = device.queue("side")
main = device.queue("main", priority=device.limits.priority_highest)
a = device.buffer(1024, "float32", label="a")
b = device.buffer(1024, "float32", label="b")
pinned = device.buffer(1024, "float32", placement="host", label="pinned")
numbers = bytearray(4096)

with pinned.host("w") as array:
    array[:] = 1.0
s.copy(a, pinned)
e = s.record()
main.wait(e)
main.copy(b, a)
main.wait(s)
s.wait(main.record())
s.sync()
device.sync()
e.sync()
assert e.done

timed = device.queue("timed", timing=True)
begin = timed.record()
timed.fill(a, 2.0)
end = timed.record()
end.sync()
elapsed_ms = begin.elapsed_ns(end) / 1e6
assert elapsed_ms >= 0

s.upload(a, numbers)
s.download(numbers, a)

calls = []
s.host_call(calls.append, 1)
s.sync()
assert calls == [1]

pool = device.pool(1 << 20)
x = pool.allocate(s, 256, "float32")
s.fill(x, 0.0)
x.free(s)

with s.capture() as capture:
    s.copy(b, a)
capture.graph.launch(s)
s.sync()
capture.graph.close()

print(device.info.name, device.info.memory_bytes)
runtime.close()
