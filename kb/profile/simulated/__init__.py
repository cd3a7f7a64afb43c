"""The simulated Ascend backend: physics, no stored answers."""
