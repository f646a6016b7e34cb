#!/usr/bin/env python3
"""The puzzle "Swimming in streams" in PyTorch, with what `weir bench swim` measures: products,
copies down and copies up, pinned and pageable, on one stream and on three. The published
program's own copies down allocate pageable memory for every copy, and its copies up start from
pageable tensors, with non_blocking=True too; that form is here as "published"."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import torch_peer


class Swim:
    def __init__(self, torch, device, side, copies, products):
        self.torch, self.device, self.products = torch, device, products
        shape = (copies, side, side)
        self.on_gpu = [torch.rand(side, side, device=device) for _ in range(copies)]
        self.plain = list(torch.rand(shape).unbind())
        self.pinned = list(torch.rand(shape).pin_memory().unbind())
        self.plain_down = list(torch.empty(shape).unbind())
        self.pinned_down = list(torch.empty(shape).pin_memory().unbind())
        self.up_to = [torch.empty(side, side, device=device) for _ in range(copies)]
        self.factors = [torch.rand(side, side, device=device) for _ in range(8)]
        self.results = [torch.empty(side, side, device=device) for _ in range(8)]

    def multiply(self, stream):
        with self.torch.cuda.stream(stream):
            for number in range(self.products):
                self.torch.matmul(self.factors[number % 8], self.factors[number % 8],
                                  out=self.results[number % 8])

    def down(self, stream, pinned):
        with self.torch.cuda.stream(stream):
            for to, value in zip(self.pinned_down if pinned else self.plain_down, self.on_gpu):
                to.copy_(value, non_blocking=pinned)

    def up(self, stream, pinned):
        with self.torch.cuda.stream(stream):
            for to, value in zip(self.up_to, self.pinned if pinned else self.plain):
                to.copy_(value, non_blocking=pinned)

    def published(self, streams, non_blocking):
        torch = self.torch
        self.multiply(streams[0])
        with torch.cuda.stream(streams[1]):
            for value in self.on_gpu:
                value.to("cpu", non_blocking=non_blocking)
        with torch.cuda.stream(streams[2]):
            for value in self.plain:
                value.to(self.device, non_blocking=non_blocking)

    def way(self, streams, parts, pinned):
        if "products" in parts:
            self.multiply(streams[0])
        if "down" in parts:
            self.down(streams[1], pinned)
        if "up" in parts:
            self.up(streams[2], pinned)


def make(torch, parsed):
    device, name = torch_peer.pick_device(torch, parsed.device)
    if device.type == "cpu":
        raise torch_peer.Skipped("PyTorch's CPU has no streams and no copies to measure")
    swim = Swim(torch, device, parsed.side, parsed.copies, parsed.products)
    own = [torch.cuda.Stream() for _ in range(3)]
    one = [own[0]] * 3
    everything = ("products", "down", "up")
    ways = {
        "products": lambda: swim.way(own, ("products",), True),
        "down_pinned": lambda: swim.way(own, ("down",), True),
        "down_pageable": lambda: swim.way(own, ("down",), False),
        "up_pinned": lambda: swim.way(own, ("up",), True),
        "up_pageable": lambda: swim.way(own, ("up",), False),
        "pinned_one_queue": lambda: swim.way(one, everything, True),
        "pinned_three_queues": lambda: swim.way(own, everything, True),
        "pageable_one_queue": lambda: swim.way(one, everything, False),
        "pageable_three_queues": lambda: swim.way(own, everything, False),
        "published_non_blocking": lambda: swim.published(own, True),
        "published_blocking": lambda: swim.published(own, False),
    }
    checked = 0
    for pinned in (True, False):
        swim.way(own, everything, pinned)
        torch.cuda.synchronize()
        down = swim.pinned_down if pinned else swim.plain_down
        up = swim.pinned if pinned else swim.plain
        if not all(torch.equal(a, b.cpu()) for a, b in zip(down, swim.on_gpu)):
            raise torch_peer.Failed("what came down is not what was there")
        if not all(torch.equal(a, b.cpu()) for a, b in zip(up, swim.up_to)):
            raise torch_peer.Failed("what went up is not what was sent")
        checked += 2 * parsed.copies
    exact = swim.factors[0].double() @ swim.factors[0].double()
    if not (swim.results[0].double() - exact).abs().max().item() < 1e-5 * parsed.side:
        raise torch_peer.Failed("a product is wrong")

    def measure():
        figures = {}
        for way, run in ways.items():
            torch.cuda.synchronize()
            began = torch_peer.now_ms()
            run()
            figures[way + "_host"] = torch_peer.now_ms() - began
            torch.cuda.synchronize()
            figures[way] = torch_peer.now_ms() - began
        return figures
    return name, checked + 1, {"products": parsed.products, "copies": parsed.copies}, measure


def main():
    parser = torch_peer.arguments("torch_swim", __doc__)
    parser.add_argument("--side", type=int, default=1024, help="rows of a matrix (1024)")
    parser.add_argument("--copies", type=int, default=100, help="copies each way (100)")
    parser.add_argument("--products", type=int, default=1000, help="products (1000)")
    return torch_peer.run("torch_swim", parser.parse_args(), make)


sys.exit(main())
