"""Hand-made model files for tests, with the library the format comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

LIGHT = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data" / "light").glob("light_*.onnx"))


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int | str]],
    outputs: Mapping[str, Sequence[int | str] | None],
    weights: Mapping[str, Any] | None = None,
    *,
    opset: int = 17,
    dtype: int = TensorProto.FLOAT,
) -> bytes:
    """A model as bytes."""
    graph = helper.make_graph(
        list(nodes),
        "made",
        [helper.make_tensor_value_info(name, dtype, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, dtype, shape) for name, shape in outputs.items()],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in (weights or {}).items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    data: bytes = made.SerializeToString()
    return data


def floats(*shape: int) -> Any:
    """Zeros of a weight."""
    return np.zeros(shape, dtype=np.float32)


def node(op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> onnx.NodeProto:
    """One operator."""
    return helper.make_node(op_type, list(inputs), list(outputs), **attributes)


def convolutional(size: int | str = 32) -> bytes:
    """Convolution, normalisation, activation, pool, product, softmax."""
    return model(
        [
            node("Conv", ["x", "w"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
            node("BatchNormalization", ["c", "s", "b", "m", "v"], ["n"]),
            node("Relu", ["n"], ["r"]),
            node("GlobalAveragePool", ["r"], ["p"]),
            node("Flatten", ["p"], ["f"]),
            node("Gemm", ["f", "k"], ["g"]),
            node("Softmax", ["g"], ["y"]),
        ],
        {"x": ["batch", 3, size, size]},
        {"y": ["batch", 10]},
        {"w": floats(16, 3, 3, 3), "s": floats(16), "b": floats(16), "m": floats(16), "v": floats(16), "k": floats(16, 10)},
    )


def attention(tokens: int = 64, heads: int = 4, width: int = 32) -> bytes:
    """One attention, spelt out, whose shapes are computed from the input's as exporters do."""
    hidden = heads * width
    return model(
        [
            node("Shape", ["x"], ["shape"]),
            node("Gather", ["shape", "one"], ["tokens"], axis=0),
            node("Concat", ["minus", "tokens", "split"], ["parts"], axis=0),
            node("MatMul", ["x", "wq"], ["q0"]),
            node("MatMul", ["x", "wk"], ["k0"]),
            node("MatMul", ["x", "wv"], ["v0"]),
            node("Reshape", ["q0", "parts"], ["q1"]),
            node("Reshape", ["k0", "parts"], ["k1"]),
            node("Reshape", ["v0", "parts"], ["v1"]),
            node("Transpose", ["q1"], ["q"], perm=[0, 2, 1, 3]),
            node("Transpose", ["k1"], ["k"], perm=[0, 2, 3, 1]),
            node("Transpose", ["v1"], ["v"], perm=[0, 2, 1, 3]),
            node("MatMul", ["q", "k"], ["scores"]),
            node("Mul", ["scores", "scale"], ["scaled"]),
            node("Softmax", ["scaled"], ["probabilities"], axis=-1),
            node("MatMul", ["probabilities", "v"], ["context"]),
            node("Transpose", ["context"], ["joined"], perm=[0, 2, 1, 3]),
            node("Reshape", ["joined", "whole"], ["y"]),
        ],
        {"x": ["batch", "tokens", hidden]},
        {"y": ["batch", "tokens", hidden]},
        {
            "wq": floats(hidden, hidden),
            "wk": floats(hidden, hidden),
            "wv": floats(hidden, hidden),
            "one": np.array([1]),
            "minus": np.array([-1]),
            "split": np.array([heads, width]),
            "scale": np.array(0.1, dtype=np.float32),
            "whole": np.array([0, 0, hidden]),
        },
    )
