"""Keeps out triton, which CUDA builds of torch bring: its LLVM and TensorFlow's in one process abort it."""

import sys

sys.modules.setdefault("triton", None)
