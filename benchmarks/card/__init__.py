"""The parts of `benchmarks/gpu.py`: the cases, the processes that run them, and the communication between processes."""
