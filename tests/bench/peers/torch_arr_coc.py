#!/usr/bin/env python3
"""ARR-COC in PyTorch, in the form of the published example: three streams, an event after
each stage, and a host that waits for every image. Also without that wait, and with the stages
under torch.compile. The arithmetic is that of docs/arr-coc.md, and the results are compared with
those that `weir run` left in --dump before anything is timed."""

import json
import math
import os
import sys

import torch_peer

SIDE, GRID, BUDGET, CHANNELS = 1024, 32, 4096, 13
PATCH = SIDE // GRID
PATCHES = GRID * GRID
MOST = BUDGET // 64  # patches that a budget can buy
LEAST_SIDE, MOST_SIDE = 8, 20
RING = 8  # pinned frames that a run cycles through


def norm(torch, values):
    low, high = values.min(), values.max()
    return (values - low) / (high - low + 1e-8)


class Model:
    """What does not depend on the image, on the device."""

    def __init__(self, torch, device, weights, query):
        self.torch, self.device = torch, device
        self.weights = {name: tensor.to(device) for name, tensor in weights.items()}
        self.query = query.to(device)
        line = (torch.arange(SIDE, dtype=torch.float64) + 0.5) / SIDE
        y, x = torch.meshgrid(line, line, indexing="ij")
        self.position = torch.stack([
            y, x, torch.atan2(y - 0.5, x - 0.5) / (2 * math.pi) + 0.5,
            torch.sqrt((y - 0.5) ** 2 + (x - 0.5) ** 2) / math.sqrt(0.5)]).float().to(device)
        self.to_xyz = torch.tensor(
            [[0.412453 / 0.950456, 0.357580 / 0.950456, 0.180423 / 0.950456],
             [0.212671, 0.715160, 0.072169],
             [0.019334 / 1.088754, 0.119193 / 1.088754, 0.950227 / 1.088754]]).to(device)
        self.luma = torch.tensor([0.299, 0.587, 0.114]).to(device).reshape(3, 1, 1)
        self.sobel = torch.tensor(
            [[[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]],
             [[-1.0, -2.0, -1.0], [0.0, 0.0, 0.0], [1.0, 2.0, 1.0]]]).div(8).unsqueeze(1).to(device)
        patch = torch.arange(PATCHES).reshape(GRID, GRID)
        patch = patch.repeat_interleave(PATCH, 0).repeat_interleave(PATCH, 1)
        self.first_bin = (patch.reshape(-1) * 32).to(device)
        self.areas = self.area_table().to(device)
        self.cell_row = torch.arange(MOST_SIDE).reshape(1, MOST_SIDE, 1).to(device)
        self.cell_column = torch.arange(MOST_SIDE).reshape(1, 1, MOST_SIDE).to(device)
        self.rank = torch.arange(MOST).to(device)

    def area_table(self):
        """[side, cell, pixel]: how much of each pixel is in a cell, as a mean."""
        table = self.torch.zeros(MOST_SIDE + 1, MOST_SIDE, PATCH, dtype=self.torch.float64)
        for side in range(LEAST_SIDE, MOST_SIDE + 1):
            for cell in range(side):
                begin, end = cell * PATCH / side, (cell + 1) * PATCH / side
                for pixel in range(PATCH):
                    covered = min(end, pixel + 1) - max(begin, pixel)
                    table[side, cell, pixel] = max(0.0, covered) * side / PATCH
        return table.float()

    # The stages.

    def texture(self, image):
        """[H, W, 3] bytes to [13, S, S]. The frames have the working size, so that none is
        resized."""
        torch = self.torch
        rgb = image.permute(2, 0, 1).float() / 255.0
        linear = torch.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        xyz = (self.to_xyz @ linear.reshape(3, -1)).reshape(3, SIDE, SIDE)
        f = torch.where(xyz > 0.008856, xyz.clamp(min=1e-9) ** (1.0 / 3.0),
                        7.787 * xyz + 16.0 / 116.0)
        lab = torch.stack([(116.0 * f[1] - 16.0) / 100.0,
                           (500.0 * (f[0] - f[1]) + 128.0) / 255.0,
                           (200.0 * (f[1] - f[2]) + 128.0) / 255.0]).clamp(0.0, 1.0)
        gray = (rgb * self.luma).sum(0, keepdim=True).unsqueeze(0)
        padded = torch.nn.functional.pad(gray, (1, 1, 1, 1), mode="replicate")
        gradient = torch.nn.functional.conv2d(padded, self.sobel)[0]
        strength = math.sqrt(2.0) * (gradient ** 2).sum(0, keepdim=True).sqrt()
        return torch.cat([rgb, lab, gradient + 0.5, strength, self.position])

    def entropy(self, lightness):
        torch = self.torch
        t = 31.0 * lightness.reshape(-1)
        k = t.floor().clamp(max=30.0)
        weight = (256.0 * (t - k) + 0.5).floor()
        at = self.first_bin + k.long()
        bins = torch.zeros(PATCHES * 32, device=self.device)
        bins = bins.scatter_add(0, at, 256.0 - weight).scatter_add(0, at + 1, weight)
        p = bins.reshape(PATCHES, 32) / (256.0 * PATCH * PATCH)
        return -(p * torch.where(p > 0, p, torch.ones_like(p)).log2()).sum(1) / 5.0

    def relevance(self, texture):
        """(relevance [N], scores [3, N], balance [3])."""
        torch, w = self.torch, self.weights
        means = torch.nn.functional.avg_pool2d(texture.unsqueeze(0), PATCH)[0].reshape(CHANNELS, -1)
        hidden = torch.relu(means.t() @ w["participatory.0.weight"].t()
                            + w["participatory.0.bias"])
        feature = hidden @ w["participatory.2.weight"].t() + w["participatory.2.bias"]
        lengths = feature.norm(dim=1) * self.query.norm()
        scores = torch.stack([norm(torch, self.entropy(texture[3])), norm(torch, means[8]),
                              0.5 + 0.5 * (feature @ self.query) / lengths.clamp(min=1e-12)])
        z = torch.cat([torch.stack([scores.mean(1), scores.amax(1), scores.std(1)], 1).reshape(-1),
                       self.query])
        a = torch.relu(w["balancer.0.weight"] @ z + w["balancer.0.bias"])
        a = torch.relu(w["balancer.2.weight"] @ a + w["balancer.2.bias"])
        balance = torch.softmax(w["balancer.4.weight"] @ a + w["balancer.4.bias"], 0)
        return norm(torch, balance @ scores), scores, balance

    def allocate(self, texture, relevance):
        """(tokens [B, 13], patches [MOST, 3], counts [2]); what is not taken is zero."""
        torch = self.torch
        order = torch.sort(relevance, descending=True, stable=True).indices[:MOST]
        # One rounding, as fma() has: the product and the sum are exact in float64.
        side = 8 + (12.0 * relevance[order].double() + 0.5).float().floor().long()
        cost = (side * side).cumsum(0)
        taken = (cost <= BUDGET).sum()
        used = torch.where(cost <= BUDGET, cost, torch.zeros_like(cost)).amax()
        last = (BUDGET - used).double().sqrt().floor().long()
        last = torch.where(last >= LEAST_SIDE, last, torch.zeros_like(last))
        side = torch.where(self.rank < taken, side,
                           torch.where(self.rank == taken, last, torch.zeros_like(side)))
        start = (side * side).cumsum(0) - side * side
        tiles = texture.reshape(CHANNELS, GRID, PATCH, GRID, PATCH)
        tiles = tiles.permute(1, 3, 0, 2, 4).reshape(PATCHES, CHANNELS, PATCH, PATCH)[order]
        area = self.areas[side].unsqueeze(1)
        cells = area @ tiles @ area.transpose(2, 3)
        wide = side.reshape(MOST, 1, 1)
        at = start.reshape(MOST, 1, 1) + self.cell_row * wide + self.cell_column
        inside = (self.cell_row < wide) & (self.cell_column < wide)
        at = torch.where(inside, at, torch.full_like(at, BUDGET)).reshape(-1)
        tokens = torch.zeros(BUDGET + 1, CHANNELS, device=self.device)
        tokens = tokens.index_copy(0, at, cells.permute(0, 2, 3, 1).reshape(-1, CHANNELS))
        patches = torch.stack([order, side, start], 1).int()
        counts = torch.stack([(side > 0).sum(), (side * side).sum()]).int()
        return tokens[:BUDGET], patches, counts


class Streams:
    """The three streams of the example, or one thread of control on the CPU."""

    def __init__(self, torch, model, frame, compiled):
        self.torch, self.model = torch, model
        self.on_gpu = model.device.type == "cuda"
        stages = [model.texture, model.relevance, model.allocate]
        self.stages = [torch.compile(stage, dynamic=False) for stage in stages] if compiled \
            else stages
        self.frames = [frame.clone() for _ in range(RING)]
        if self.on_gpu:
            self.frames = [f.pin_memory() for f in self.frames]
            self.streams = [torch.cuda.Stream() for _ in range(3)]
            self.results = [self.make_results() for _ in range(RING)]
            torch.cuda.synchronize()

    def make_results(self):
        torch = self.torch
        shapes = [((BUDGET, CHANNELS), torch.float32), ((MOST, 3), torch.int32),
                  ((2,), torch.int32), ((PATCHES,), torch.float32), ((3, PATCHES), torch.float32),
                  ((3,), torch.float32)]
        return [torch.empty(shape, dtype=kind).pin_memory() for shape, kind in shapes]

    def one(self, number):
        """Submits an image, and gives its results once they are waited for."""
        torch = self.torch
        image = self.frames[number % RING]
        if not self.on_gpu:
            texture = self.stages[0](image)
            relevance, scores, balance = self.stages[1](texture)
            return [*self.stages[2](texture, relevance), relevance, scores, balance]
        first, second, third = self.streams
        results = self.results[number % RING]
        with torch.cuda.stream(first):
            texture = self.stages[0](image.to(self.model.device, non_blocking=True))
            texture_done = first.record_event()
        with torch.cuda.stream(second):
            second.wait_event(texture_done)
            relevance, scores, balance = self.stages[1](texture)
            relevance_done = second.record_event()
        with torch.cuda.stream(third):
            third.wait_event(relevance_done)
            made = [*self.stages[2](texture, relevance), relevance, scores, balance]
            for to, value in zip(results, made):
                to.copy_(value, non_blocking=True)
        # Without this the allocator reuses memory that another stream still reads.
        texture.record_stream(second)
        texture.record_stream(third)
        for value in (relevance, scores, balance):
            value.record_stream(third)
        return results

    def wait(self):
        if self.on_gpu:
            self.streams[2].synchronize()

    def time(self, count, in_flight):
        """Milliseconds an image. `in_flight`: the host waits every RING images and not after
        each, as the results have RING places."""
        began = torch_peer.now_ms()
        for number in range(count):
            self.one(number)
            if not in_flight or (number + 1) % RING == 0:
                self.wait()
        self.wait()
        return (torch_peer.now_ms() - began) / count


def compare(torch, model, streams, dump):
    """Stages 1 and 2 against Weir's; stage 3 on Weir's own relevance, exactly."""
    def far(a, b):
        return (a.cpu().double() - b.double()).abs().max().item()
    wanted = {name: torch_peer.read_npy(torch, os.path.join(dump, "frame.%s.npy" % name))
              for name in ("relevance", "scores", "patches", "tokens")}
    with open(os.path.join(dump, "frame.json"), encoding="utf-8") as file:
        balance = json.load(file)["weights"]
    wanted["balance"] = torch.tensor([balance[name] for name in (
        "propositional", "perspectival", "participatory")])
    made = streams.one(0)
    streams.wait()
    distances = {"relevance": far(made[3], wanted["relevance"].reshape(-1)),
                 "scores": far(made[4], wanted["scores"].reshape(3, -1)),
                 "balance": far(made[5], wanted["balance"])}
    texture = model.texture(streams.frames[0].to(model.device))
    tokens, patches, counts = model.allocate(texture,
                                             wanted["relevance"].reshape(-1).to(model.device))
    taken, used = counts.tolist()
    if not torch.equal(patches[:taken].cpu(), wanted["patches"]):
        raise torch_peer.Failed("the patches are not those of Weir")
    distances["tokens"] = far(tokens[:used], wanted["tokens"])
    for name, distance in distances.items():
        if not distance <= {"tokens": 1e-4}.get(name, 5e-4):
            raise torch_peer.Failed("%s are %g away from Weir's" % (name, distance))
    return distances


def make(torch, parsed):
    if not parsed.dump or not parsed.weights:
        raise torch_peer.Skipped("--dump and --weights say what to compare with: see README.md")
    device, name = torch_peer.pick_device(torch, parsed.device)
    # Whole float32, as Weir computes.
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    frame = torch_peer.read_npy(torch, os.path.join(parsed.dump, "frame.npy")).to(torch.uint8)
    query = torch_peer.read_npy(torch, os.path.join(parsed.dump, "query.npy"))
    model = Model(torch, device, torch_peer.read_safetensors(torch, parsed.weights), query)
    kinds = {"eager": Streams(torch, model, frame, False)}
    facts, checked = {}, 0
    with torch.inference_mode():
        for kind in ("eager", "compiled"):
            try:
                if kind == "compiled":
                    kinds[kind] = Streams(torch, model, frame, True)
                facts[kind + "_away"] = compare(torch, model, kinds[kind], parsed.dump)
                checked += 4
            except torch_peer.Failed as failure:
                raise torch_peer.Failed("%s: %s" % (kind, failure))
            except Exception as error:
                if kind == "eager":
                    raise
                # No C or C++ compiler, or a GPU that Triton does not know.
                facts["compiled_skipped"] = str(error).strip().split("\n")[0][:200]
                kinds.pop(kind, None)

    def measure():
        figures = {}
        with torch.inference_mode():
            for kind, streams in kinds.items():
                figures["frame_" + kind] = streams.time(parsed.frames, False)
                if streams.on_gpu:
                    figures["frame_%s_in_flight" % kind] = streams.time(parsed.frames, True)
        return figures
    return name, checked, facts, measure


sys.exit(torch_peer.main(__doc__, make, dump=("", "the folder of results of weir run"),
                         weights=("", "the .safetensors file"), frames=(50, "images of a figure (50)")))
