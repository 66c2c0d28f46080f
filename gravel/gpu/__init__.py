"""The engine for GPUs, in Warp: the same stages as ``gravel.cpu``, under the same names. On ``warp:cpu`` its kernels run on one thread."""
