#!/usr/bin/env python3
"""Copies of tensors that are not pinned, to the device and back, as programs write them. On the CPU
they are copies from one tensor to another."""

import sys

import torch_peer

LEAST = 4096
READY_BYTES = 64 << 20
REPEATS_MAX = 200


class Job:
    def __init__(self, torch, device, most):
        self.torch, self.device = torch, device
        self.src = (torch.arange(most // 8, dtype=torch.int64) * 40503).view(torch.uint8)
        self.dst = torch.zeros(most // 8, dtype=torch.int64).view(torch.uint8)
        self.memory = torch.empty(most, dtype=torch.uint8, device=device)

    def up(self, size):
        self.memory[:size].copy_(self.src[:size])

    def down(self, size):
        self.dst[:size].copy_(self.memory[:size])

    def time(self, copy, size):
        repeats = max(1, min(REPEATS_MAX, READY_BYTES // size))
        began = torch_peer.now_ms()
        for _ in range(repeats):
            copy(size)
            torch_peer.sync(self.torch, self.device)
        return (torch_peer.now_ms() - began) / repeats


def make(torch, parsed):
    device, name = torch_peer.pick_device(torch, parsed.device)
    job = Job(torch, device, parsed.most)
    job.up(parsed.most)
    job.down(parsed.most)
    torch_peer.sync(torch, device)
    if not torch.equal(job.src, job.dst):
        raise torch_peer.Failed("bytes that went up and down differ")

    def measure():
        sizes = [LEAST << bits for bits in range(0, 30, 2) if LEAST << bits <= parsed.most]
        return {"copy_%s_%d" % (way, size): job.time(getattr(job, way), size)
                for size in sizes for way in ("up", "down")}
    return name, 1, {}, measure


sys.exit(torch_peer.main(__doc__, make, most=(1 << 30, "the largest copy (1 GiB)")))
