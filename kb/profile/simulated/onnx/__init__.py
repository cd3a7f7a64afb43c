"""ONNX files: an own reader that never touches weights, shape inference, and the kernels a compiler would make."""
