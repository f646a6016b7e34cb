#!/usr/bin/env python3
"""The work of `weir train augment` and `weir train encdec` in PyTorch: the same network, optimizer and
sizes; augmentation on the host, on the device after the upload, and on a stream of its own beside the
training; a frozen encoder before the head's training, and on a stream of its own beside it. Images are
random bytes in pinned memory. A batch is a run of them, so the host copies and
shuffles nothing, which `weir train` does: the better case for PyTorch. Figures are milliseconds a step."""

import sys

import torch_peer

CLASSES = 10
CONTRAST, BRIGHTNESS, MEAN, DEVIATION = 0.2, 0.1, 0.5, 0.25


def convnet(torch, side, channels, outputs, device):
    nn = torch.nn
    small = (side + 3) // 4
    return nn.Sequential(
        nn.Conv2d(3, channels, 3, 2, 1), nn.ReLU(),
        nn.Conv2d(channels, 2 * channels, 3, 2, 1), nn.ReLU(), nn.Flatten(),
        nn.Linear(2 * channels * small * small, 4 * channels), nn.ReLU(),
        nn.Linear(4 * channels, outputs)).to(device)


class Augmentation:
    """What is drawn for each image of a batch, on the host; applied on any device."""

    def __init__(self, torch, batch, side, crop, generator):
        def draw(low, high):
            return torch.rand(batch, generator=generator) * (high - low) + low

        self.torch, self.crop = torch, crop
        self.top = torch.randint(0, side - crop + 1, (batch,), generator=generator)
        self.left = torch.randint(0, side - crop + 1, (batch,), generator=generator)
        self.mirrored = torch.randint(0, 2, (batch,), generator=generator)
        self.gain = draw(1 - CONTRAST, 1 + CONTRAST)
        self.bias = draw(-BRIGHTNESS, BRIGHTNESS)

    def to(self, device):
        for name in "top", "left", "mirrored", "gain", "bias":
            setattr(self, name, getattr(self, name).to(device, non_blocking=True))
        return self

    def apply(self, images):
        torch, count = self.torch, images.shape[0]
        along = torch.arange(self.crop, device=images.device)
        columns = torch.where(self.mirrored[:, None] == 1, self.crop - 1 - along[None], along[None])
        rows = self.top[:, None] + along[None]
        columns = self.left[:, None] + columns
        which = torch.arange(count, device=images.device)[:, None, None]
        cut = images[which, rows[:, :, None], columns[:, None, :]].float() / 255
        cut = cut * self.gain[:, None, None, None] + self.bias[:, None, None, None]
        return ((cut - MEAN) / DEVIATION).permute(0, 3, 1, 2).contiguous()


class Work:
    """Batches in pinned memory, a model and its optimizer."""

    def __init__(self, torch, device, parsed):
        self.torch, self.device, self.parsed = torch, device, parsed
        self.cuda = device.type == "cuda"
        self.generator = torch.Generator().manual_seed(1)
        images, labels = self.make(parsed)
        self.images = self.pin(images).split(parsed.batch)
        self.labels = self.pin(labels).split(parsed.batch)
        self.batches = len(images) // parsed.batch
        self.crop = parsed.side - parsed.side // 8
        self.criterion = torch.nn.CrossEntropyLoss()

    def make(self, parsed):
        """As many as there are batches of different bytes."""
        count, torch = 8 * parsed.batch, self.torch
        shape = (count, parsed.side, parsed.side, 3)
        return (torch.randint(0, 256, shape, dtype=torch.uint8, generator=self.generator),
                torch.randint(0, CLASSES, (count,), generator=self.generator))

    def pin(self, tensor):
        return tensor.pin_memory() if self.cuda else tensor

    def batch(self, step):
        return (self.images[step % self.batches].to(self.device, non_blocking=True),
                self.labels[step % self.batches].to(self.device, non_blocking=True))

    def use(self, model):
        self.model = model
        self.optimizer = self.torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)

    def train(self, inputs, labels):
        self.optimizer.zero_grad(set_to_none=True)
        self.criterion(self.model(inputs), labels).backward()
        self.optimizer.step()

    def timed(self, steps):
        """`steps(count)` submits that many; the first few warm up."""
        steps(3)
        torch_peer.sync(self.torch, self.device)
        began = torch_peer.now_ms()
        steps(self.parsed.steps)
        torch_peer.sync(self.torch, self.device)
        return (torch_peer.now_ms() - began) / self.parsed.steps

    def serial(self, prepare):
        return self.timed(lambda count: [self.train(*prepare(step)) for step in range(count)])

    def overlapped(self, prepare):
        """The next batch is prepared on a stream of its own, before the training on this one."""
        torch = self.torch
        ahead, own = torch.cuda.Stream(), torch.cuda.current_stream()

        def on_stream(step):
            with torch.cuda.stream(ahead):
                return prepare(step), ahead.record_event()

        def steps(count):
            following = on_stream(0)
            for step in range(count):
                made, ready = following
                own.wait_event(ready)
                for tensor in made:
                    tensor.record_stream(own)
                if step + 1 < count:
                    following = on_stream(step + 1)
                self.train(*made)
        return self.timed(steps)


def augment(work):
    parsed = work.parsed
    work.use(convnet(work.torch, work.crop, parsed.channels, CLASSES, work.device))

    def draw():
        return Augmentation(work.torch, parsed.batch, parsed.side, work.crop, work.generator)

    def on_host(step):
        made = work.pin(draw().apply(work.images[step % work.batches]))
        return (made.to(work.device, non_blocking=True),
                work.labels[step % work.batches].to(work.device, non_blocking=True))

    def on_device(step):
        images, labels = work.batch(step)
        return draw().to(work.device).apply(images), labels

    figures = {"augment_host": work.serial(on_host), "augment_serial": work.serial(on_device)}
    if work.cuda:
        figures["augment_overlapped"] = work.overlapped(on_device)
    return figures


def encdec(work):
    torch, parsed = work.torch, work.parsed
    encoder = convnet(torch, parsed.side, parsed.channels, parsed.width, work.device)
    work.use(torch.nn.Sequential(torch.nn.Linear(parsed.width, parsed.width), torch.nn.ReLU(),
                                 torch.nn.Linear(parsed.width, CLASSES)).to(work.device))

    def features(step):
        images, labels = work.batch(step)
        with torch.no_grad():
            inputs = ((images.float() - 128) / 64).permute(0, 3, 1, 2).contiguous()
            return torch.relu(encoder(inputs)), labels

    figures = {"encdec_serial": work.serial(features)}
    if work.cuda:
        figures["encdec_overlapped"] = work.overlapped(features)
    return figures


def check(work):
    """The device augments as the host does."""
    drawn = Augmentation(work.torch, work.parsed.batch, work.parsed.side, work.crop, work.generator)
    host = drawn.apply(work.images[0])
    device = drawn.to(work.device).apply(work.images[0].to(work.device)).cpu()
    if not work.torch.allclose(host, device, atol=1e-5):
        raise torch_peer.Failed("host and device augment differently")
    return host.numel()


def make(torch, parsed):
    device, name = torch_peer.pick_device(torch, parsed.device)
    work = Work(torch, device, parsed)
    checked = check(work)

    def measure():
        return dict(augment(work), **encdec(work))

    facts = {"batch": parsed.batch, "side": parsed.side, "channels": parsed.channels,
             "width": parsed.width}
    return name, checked, facts, measure


sys.exit(torch_peer.main(__doc__, make, batch=(256, ""), side=(32, ""), channels=(32, ""), width=(512, ""),
                         steps=(100, "steps of a figure")))
