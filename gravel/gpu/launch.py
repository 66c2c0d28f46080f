"""Kernels: started on a device, or taken down once and started again and again."""

import warp as wp


def run(kernel, dim, inputs, device):
    """Start a kernel; of nothing to do there is nothing to start."""
    if dim > 0:
        wp.launch(kernel, dim=dim, inputs=inputs, device=device, record_tape=False)


def scan(counts, starts):
    """starts (n + 1,) := sums of the counts (n,) before each, and of all."""
    n = counts.shape[0]
    if n > 0:
        wp.utils.array_scan(counts, starts[1:], inclusive=True)


def last_of(starts):
    """The last number of an array of whole numbers; waits for the device."""
    return int(starts[starts.shape[0] - 1 :].numpy()[0])


class Graph:
    """Kernels that were taken down, to be started as one."""

    def __init__(self, device, launches, kernels):
        """``launches``: a function that starts them; ``kernels``: which, so that none is compiled while they are taken down."""
        for kernel in kernels:
            wp.load_module(kernel.module, device)
        with wp.ScopedCapture(device=device, force_module_load=False) as capture:
            launches()
        self.graph = capture.graph

    def start(self):
        wp.capture_launch(self.graph)
