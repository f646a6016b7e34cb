#!/usr/bin/env python3
"""The step of the job `ddp` in PyTorch: layers without bias, forward and backward, under
DistributedDataParallel with NCCL, or gloo on the CPU. A launcher starts the ranks, `weir launch` or
torchrun, of which rank 0 prints."""

import os
import sys

import torch_peer

RANK = int(os.environ.get("RANK", 0))


def numbers(text):
    return [float(part) if "." in part else int(part) for part in text.split(",")]


class Step:
    """One batch size. Models are separate: each DistributedDataParallel hooks the gradients of its own."""

    def __init__(self, torch, device, parsed, batch, kind):
        self.torch, self.device, self.kind, self.parsed = torch, device, kind, parsed
        torch.manual_seed(100 + RANK)
        self.x = (torch.rand(batch, parsed.width) * 2 - 1).to(device=device, dtype=kind)
        self.dy = (torch.rand(batch, parsed.width) * 2 - 1).to(device=device, dtype=kind)

    def plain(self):
        torch, width = self.torch, self.parsed.width
        torch.manual_seed(1)
        weight = (torch.rand(width, width) * 2 - 1) * (3 / width) ** 0.5
        model = torch.nn.Sequential(*[
            torch.nn.Linear(width, width, bias=False, device=self.device, dtype=self.kind)
            for _ in range(self.parsed.layers)
        ])
        with torch.no_grad():
            for layer in model:
                layer.weight.copy_(weight)
        return model

    def wrapped(self, cap):
        ids = [self.device] if self.device.type == "cuda" else None
        return self.torch.nn.parallel.DistributedDataParallel(
            self.plain(), device_ids=ids, bucket_cap_mb=cap, gradient_as_bucket_view=True)

    def run(self, model):
        for parameter in model.parameters():
            parameter.grad = None
        model(self.x).backward(self.dy)


def time_step(torch, dist, step, model):
    step.run(model)  # what ran before sets the clocks of a GPU
    dist.barrier()
    torch_peer.sync(torch, step.device)
    began = torch_peer.now_ms()
    step.run(model)
    torch_peer.sync(torch, step.device)
    spent = torch.tensor([torch_peer.now_ms() - began], dtype=torch.float64, device=step.device)
    dist.all_reduce(spent, op=dist.ReduceOp.MAX)
    return spent.item()


def check(torch, dist, step, plain, model):
    """The averages against those of plain all-reduces."""
    step.run(plain)
    wanted = []
    for parameter in list(plain.parameters())[:3]:
        average = parameter.grad.float()
        dist.all_reduce(average)
        wanted.append(average / dist.get_world_size())
    step.run(model)
    torch_peer.sync(torch, step.device)
    for parameter, average in zip(model.parameters(), wanted):
        if not torch.allclose(parameter.grad.float(), average, rtol=2e-2,
                              atol=1e-3 * average.abs().max().item()):
            raise torch_peer.Failed("a gradient is not the average over all ranks")
    return len(wanted)


def make(torch, parsed):
    """All ranks measure as many rounds."""
    import torch.distributed as dist

    if "WORLD_SIZE" not in os.environ:
        raise torch_peer.Skipped("it is started by a launcher: weir launch -n 2 --no-prefix python3 torch_ddp.py")
    cuda = parsed.device != "cpu" and torch.cuda.is_available()
    if cuda and torch.cuda.device_count() < int(os.environ["LOCAL_WORLD_SIZE"]):
        raise torch_peer.Skipped("there are fewer GPUs than ranks")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if cuda else "gloo")
    kind = torch.bfloat16 if cuda else torch.float32
    steps, checked = {}, 0
    for batch in numbers(parsed.batch):
        step = Step(torch, device, parsed, batch, kind)
        plain = step.plain()
        models = {cap: step.wrapped(cap) for cap in numbers(parsed.caps)}
        for model in models.values():
            checked += check(torch, dist, step, plain, model)
        steps[batch] = (step, plain, models)

    def measure():
        ms = {}
        for batch, (step, plain, models) in steps.items():
            ms["compute_%d" % batch] = time_step(torch, dist, step, plain)
            for cap, model in models.items():
                ms["ddp_%d_%s" % (batch, cap)] = time_step(torch, dist, step, model)
        return ms

    facts = {"ranks": dist.get_world_size(), "layers": parsed.layers, "width": parsed.width}
    return torch.cuda.get_device_name(0) if cuda else "CPU", checked, facts, measure


def main():
    if RANK > 0:
        sys.stdout = open(os.devnull, "w")
    code = torch_peer.main(__doc__, make, layers=(96, ""), width=(2048, ""),
                           batch=("2048,4096,8192", "samples of a rank"), caps=("25,64", "bucket_cap_mb"))
    dist = sys.modules.get("torch.distributed")
    if dist and dist.is_initialized():
        dist.destroy_process_group()
    return code


if __name__ == "__main__":
    sys.exit(main())
