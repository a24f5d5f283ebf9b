"""Python that keeps a process from importing TensorFlow, also where it is installed.

For an entry None Python raises ImportError. (A finder that raises would stop PyTorch, which asks for TensorFlow.)
"""

BLOCK_TENSORFLOW = """
import sys
sys.modules.update(dict.fromkeys(["tensorflow", "tensorflow_datasets", "tensorflow_text"]))
"""
