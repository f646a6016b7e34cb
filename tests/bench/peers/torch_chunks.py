#!/usr/bin/env python3
"""The chunk job in PyTorch: pinned tensors go up, are multiplied and come down, in pieces, on
streams. On the CPU there are neither streams nor pinned memory, and the job is what a program
there would do: multiply from one tensor into another."""

import sys

import torch_peer

# (name, streams, chunks)
CASES = [("one_stream", 1, 1), ("streams_2", 2, 2), ("streams_4", 4, 4), ("streams_8", 8, 8),
         ("streams_8_64_chunks", 8, 64)]


class Job:
    def __init__(self, torch, device, size):
        self.torch, self.device = torch, device
        count = size // 4 // 64 * 64
        self.src = (torch.arange(count, dtype=torch.int64) * 40503 % 1048576).float()
        self.dst = torch.empty_like(self.src)
        if device.type == "cuda":
            self.src, self.dst = self.src.pin_memory(), self.dst.pin_memory()
            self.up = torch.empty(count, device=device)
            self.made = torch.empty(count, device=device)

    def run(self, streams, chunks, factor):
        if self.device.type == "cpu":
            for src, dst in zip(self.src.chunk(chunks), self.dst.chunk(chunks)):
                self.torch.mul(src, factor, out=dst)
            return
        pieces = zip(self.src.chunk(chunks), self.up.chunk(chunks), self.made.chunk(chunks),
                     self.dst.chunk(chunks))
        for number, (src, up, made, dst) in enumerate(pieces):
            with self.torch.cuda.stream(streams[number % len(streams)]):
                up.copy_(src, non_blocking=True)
                self.torch.mul(up, factor, out=made)
                dst.copy_(made, non_blocking=True)
        for stream in streams:
            stream.synchronize()

    def streams(self, count):
        if self.device.type == "cpu":
            return []
        return [self.torch.cuda.Stream() for _ in range(count)]

    def copies(self):
        """Both ways at once."""
        first, second = self.streams(2)
        began = torch_peer.now_ms()
        with self.torch.cuda.stream(first):
            self.up.copy_(self.src, non_blocking=True)
        with self.torch.cuda.stream(second):
            self.dst.copy_(self.made, non_blocking=True)
        first.synchronize()
        second.synchronize()
        return torch_peer.now_ms() - began


def make(torch, parsed):
    device, name = torch_peer.pick_device(torch, parsed.device)
    job = Job(torch, device, parsed.bytes)
    for number, (case, streams, chunks) in enumerate(CASES):
        job.run(job.streams(streams), chunks, float(number + 2))
        if not torch.equal(job.dst, job.src * float(number + 2)):
            raise torch_peer.Failed("%s: numbers are wrong" % case)

    def measure():
        figures = {"both_ways": job.copies()} if device.type == "cuda" else {}
        for case, count, chunks in CASES:
            streams = job.streams(count)
            for _ in range(2):
                began = torch_peer.now_ms()
                job.run(streams, chunks, 2.0)
                figures[case] = torch_peer.now_ms() - began
        return figures
    return name, len(CASES), {"bytes": parsed.bytes}, measure


sys.exit(torch_peer.main(__doc__, make, bytes=(1 << 30, "bytes each way (1 GiB)")))
