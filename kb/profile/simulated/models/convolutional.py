"""Convolutional networks: ResNet-50 in inference and training, and YOLOv8."""

from __future__ import annotations

from typing import Final

import msgspec

from kb.profile.simulated.graph import Operator, Tensor, Workload
from kb.profile.simulated.layout import Seat
from kb.profile.simulated.models.backward import Gradients
from kb.profile.simulated.models.precision import recording
from kb.profile.simulated.models.recording import Recording
from kb.profile.simulated.options import Options

RESNET50: Final = ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2))
"""(blocks, inner width, stride of the first) of each stage; outputs are four times as wide."""
IMAGE: Final = 224
CLASSES: Final = 1000


class YoloShape(msgspec.Struct, frozen=True):
    """A published YOLOv8 scale: width and depth multiples and the widest layer."""

    width: float
    depth: float
    widest: int


YOLOV8N = YoloShape(0.25, 1 / 3, 1024)
YOLOV8S = YoloShape(0.5, 1 / 3, 1024)
YOLO_IMAGE: Final = 640
YOLO_OUTPUTS: Final = (64, 80)
"""Box distribution and class channels of the head."""


def resnet50(options: Options, _seat: Seat) -> Workload:
    """One inference of ``options.batch`` images; batch normalisation is folded into the convolutions."""
    r = recording(options, "FLOAT16")
    image = _resnet(r, options, training=False)
    return Workload(r.graph(), 1, host_work=False, left_out=("image decoding",), input_bytes=image.bytes)


def resnet50_training(options: Options, _seat: Seat) -> Workload:
    """One step on ``options.batch`` images: forward, backward, momentum update; data-parallel ranks reduce gradients."""
    r = recording(options, "FLOAT16")
    image = _resnet(r, options, training=True)
    forward = r.since(0)
    gradients = Gradients(r, accumulate=False)
    gradients.begin(forward[-1].outputs[0])
    sent = 0
    for operator in reversed(forward):
        gradients.walk((operator,))
        if options.overlap_comm and options.data_parallel > 1:
            sent = _reduced(r, gradients, sent, options, least=options.bucket_mb * 1e6)
    if options.data_parallel > 1:
        _reduced(r, gradients, sent, options, least=0.0)
        r.join()
    _momentum(r, forward, gradients)
    return Workload(r.graph(), 1, host_work=False, left_out=("image decoding",), phase="training", input_bytes=image.bytes)


def yolov8(shape: YoloShape, options: Options, _seat: Seat) -> Workload:
    """One inference of ``options.batch`` images of 640 x 640."""
    r = recording(options, "FLOAT16")
    net = _Yolo(r, shape, options)
    image = r.tensor(options.batch, 3, YOLO_IMAGE, YOLO_IMAGE)
    net.run(image)
    return Workload(r.graph(), 1, host_work=False, left_out=("image decoding", "non-maximum suppression"), input_bytes=image.bytes)


def _resnet(r: Recording, options: Options, *, training: bool) -> Tensor:
    image = r.tensor(options.batch, 3, IMAGE, IMAGE)
    x = _activated(r, _normed(r, r.convolution(image, 64, 7, 2), training))
    batch, width, height, columns = x.shape
    x = r.vector("MaxPoolV3", r.tensor(batch, width, height // 2, columns // 2), x)
    for blocks, inner, stride in RESNET50:
        for number in range(blocks):
            x = _bottleneck(r, x, inner, stride if number == 0 else 1, training)
    pooled = r.vector("AvgPoolV2", r.tensor(options.batch, x.shape[1]), x)
    r.linear(pooled, CLASSES)
    return image


def _bottleneck(r: Recording, x: Tensor, inner: int, stride: int, training: bool) -> Tensor:
    y = _activated(r, _normed(r, r.convolution(x, inner, 1), training))
    y = _activated(r, _normed(r, r.convolution(y, inner, 3, stride), training))
    y = _normed(r, r.convolution(y, 4 * inner, 1), training)
    if x.shape != y.shape:
        x = _normed(r, r.convolution(x, 4 * inner, 1, stride), training)
    return _activated(r, r.elementwise("Add", y, x))


def _activated(r: Recording, x: Tensor) -> Tensor:
    return r.elementwise("Relu", x)


def _normed(r: Recording, x: Tensor, training: bool) -> Tensor:
    """Statistics over the batch, then the normalisation; nothing in inference."""
    if not training:
        return x
    scale = r.tensor(x.shape[1], weight=True, dtype="FLOAT")
    sums = r.vector("BNTrainingReduce", r.tensor(x.shape[1], dtype="FLOAT"), x)
    return r.vector("BNTrainingUpdate", r.like(x), x, sums, scale)


def _reduced(r: Recording, gradients: Gradients, sent: int, options: Options, *, least: float) -> int:
    """Reduce the gradients made since the last call once they reach ``least`` B; returns how many have left."""
    fresh = list(gradients.weights.values())[sent:]
    size = sum(gradient.bytes for gradient in fresh)
    if not fresh or size < least:
        return sent
    part = r.tensor(max(1, size // 4), dtype="INT8" if options.quantized_comm else "FLOAT")
    r.communicate("allReduce", "dp", f"bucket{sent}", part, blocking=False)
    return sent + len(fresh)


def _momentum(r: Recording, forward: tuple[Operator, ...], gradients: Gradients) -> None:
    weights = {tensor.id: tensor for operator in forward for tensor in operator.inputs if tensor.weight}
    for identity, gradient in gradients.weights.items():
        flat = (weights[identity].elements,)
        master, velocity = (r.tensor(*flat, weight=True, dtype="FLOAT") for _ in range(2))
        r.vector("ApplyMomentum", master, master, velocity, r.view(gradient, *flat))


class _Yolo:
    """Backbone, neck and head of YOLOv8 by their published layer list."""

    def __init__(self, r: Recording, shape: YoloShape, options: Options) -> None:
        self._r, self._shape, self._options = r, shape, options

    def run(self, x: Tensor) -> None:
        """All of it."""
        x = self._conv(self._conv(x, 64, 3, 2), 128, 3, 2)
        x = self._c2f(x, 128, 3)
        small = self._c2f(self._conv(x, 256, 3, 2), 256, 6)
        middle = self._c2f(self._conv(small, 512, 3, 2), 512, 6)
        large = self._sppf(self._c2f(self._conv(middle, 1024, 3, 2), 1024, 3))
        up = self._c2f(self._concat(self._up(large), middle), 512, 3)
        first = self._c2f(self._concat(self._up(up), small), 256, 3)
        second = self._c2f(self._concat(self._conv(first, 256, 3, 2), up), 512, 3)
        third = self._c2f(self._concat(self._conv(second, 512, 3, 2), large), 1024, 3)
        for scale in (first, second, third):
            for channels in YOLO_OUTPUTS:
                inner = max(channels, first.shape[1] // 4 if channels == YOLO_OUTPUTS[0] else first.shape[1])
                y = self._plain(self._plain(scale, inner, 3, 1), inner, 3, 1)
                self._r.convolution(y, channels, 1)

    def _wide(self, channels: int) -> int:
        return max(16, int(min(channels, self._shape.widest) * self._shape.width))

    def _conv(self, x: Tensor, channels: int, kernel: int, stride: int = 1) -> Tensor:
        return self._plain(x, self._wide(channels), kernel, stride)

    def _plain(self, x: Tensor, channels: int, kernel: int, stride: int) -> Tensor:
        y = self._r.convolution(x, channels, kernel, stride)
        if self._options.fused_elementwise:
            return self._r.elementwise("Swish", y)
        return self._r.elementwise("Mul", y, self._r.elementwise("Sigmoid", y))

    def _c2f(self, x: Tensor, channels: int, depth: int) -> Tensor:
        x = self._conv(x, channels, 1)
        batch, wide, height, columns = x.shape
        half = self._r.rearrange("Slice", (batch, wide // 2, height, columns), x)
        parts = [x]
        for _ in range(max(1, round(depth * self._shape.depth))):
            half = self._r.elementwise("Add", self._plain(self._plain(half, wide // 2, 3, 1), wide // 2, 3, 1), half)
            parts.append(half)
        joined = self._r.rearrange("ConcatD", (batch, sum(part.shape[1] for part in parts), height, columns), *parts)
        return self._conv(joined, channels, 1)

    def _sppf(self, x: Tensor) -> Tensor:
        x = self._plain(x, x.shape[1] // 2, 1, 1)
        parts = [x]
        for _ in range(3):
            parts.append(self._r.vector("MaxPoolV3", self._r.like(x), parts[-1]))
        batch, wide, height, columns = x.shape
        return self._plain(self._r.rearrange("ConcatD", (batch, 4 * wide, height, columns), *parts), 2 * wide, 1, 1)

    def _up(self, x: Tensor) -> Tensor:
        batch, wide, height, columns = x.shape
        return self._r.rearrange("ResizeNearestNeighborV2", (batch, wide, 2 * height, 2 * columns), x)

    def _concat(self, a: Tensor, b: Tensor) -> Tensor:
        batch, _, height, columns = a.shape
        return self._r.rearrange("ConcatD", (batch, a.shape[1] + b.shape[1], height, columns), a, b)
