"""The reader of tensors: see `tests.files.readers`."""

import safetensors.numpy

from t2t_lite import files
from t2t_lite.extras.hugging_face.hugging_face_folder import read_tensors
from tests.files.readers import READ, Reader, binary

READERS = {
    "tensors": Reader(
        safetensors.numpy.save({}),
        lambda path: read_tensors(files.read_bytes(path), path),
        binary("not a complete safetensors file") | {"CR": READ, "CR LF": READ},
    )
}
DAMAGED = {}
