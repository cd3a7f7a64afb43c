"""Every value that crosses a layer. Frozen, typed, no input or output."""
