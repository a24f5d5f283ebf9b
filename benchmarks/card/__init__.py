"""The parts of `benchmarks/gpu.py`: what is measured, the sides that measure it, and how they are asked."""
