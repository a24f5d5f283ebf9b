"""Images of one size, each pixel of which is predicted from those before it."""

import types

from t2t_lite.data.base_problem import Problem
from t2t_lite.errors import NotWritten, UserError
from t2t_lite.extras.images import png_files
from t2t_lite.extras.images.image_encoder import ImageEncoder
from t2t_lite.tasks.language_model import LanguageModelTask
from t2t_lite.text.vocabulary import UNK_ID


class ImageProblem(Problem):
    """Images that a language model learns pixel by pixel. Subclasses write `image_size` and `generate_images`.

    An example has the id of a class as `inputs`, and as `targets` the ids of all pixels, without an end: see
    `ImageEncoder`. Evaluations give the loss in bits per dimension, which is a channel of a pixel.

    Attributes:
        image_size: (height, width, channels); channels: 1 (grey) or 3 (RGB).
        class_labels: names of the classes; empty: images have none.
        image_blocks: (rows, columns) of blocks that are learned one after the other, as attention in `local_2d` needs;
            columns of channels count each. None: the order of rows.
        sample_bits: how many of the 16 bits of 16-bit PNGs hold data, such as 12; None: 16, unless a PNG looks as if it
            held fewer, which is an error.
        unknown_class_rate: share of the training images that are shown without their class, so that images whose class
            nobody knows can be completed, too.
    """

    features = types.MappingProxyType({"inputs": 2, "targets": 2})
    task = LanguageModelTask.name
    unit = "image"
    eval_decode_metric = None
    loss_metrics = ("bits_per_dim",)
    decode_defaults = types.MappingProxyType({"sampling": True})
    readers = types.MappingProxyType({"png": png_files.read_upper_halves})
    writers = types.MappingProxyType({"png": png_files.write_grid})
    targets_are_places = True
    class_labels = ()
    image_blocks = None
    sample_bits = None
    unknown_class_rate = 0.1

    @property
    def image_size(self):
        """(height, width, channels) of all images."""
        raise NotWritten(f"{type(self).__name__}: write image_size.")

    def generate_images(self, data_dir, tmp_dir, dataset_split):
        """Yields (uint8 array of `image_size`, the name of its class, or "" if that is not known)."""
        raise NotWritten(f"{type(self).__name__}: write generate_images.")

    def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"inputs": [id of the class], "targets": ids of the pixels}, and counts these."""
        encoder = self.feature_encoders(data_dir)["targets"]
        for image, label in self.generate_images(data_dir, tmp_dir, dataset_split):
            png_files.check_size(f"{self.name}: an image", image.shape, encoder.size, "image_size says")
            png_files.check_samples(f"{self.name}: an image", image)
            self.unit_counts["dim"] += encoder.length
            yield {"inputs": encoder.encode(label), "targets": encoder.encode_image(image)}

    def feature_encoders(self, data_dir):
        """Returns one `ImageEncoder`, of classes and of pixels."""
        encoder = ImageEncoder(self.image_size, self.class_labels, self.image_blocks, self.sample_bits)
        return dict.fromkeys(self.features, encoder)

    def augment(self, batch, seeds):
        """Forgets the classes of some images: see `unknown_class_rate`."""
        import tensorflow as tf

        from t2t_lite.data.random_numbers import uniform_numbers

        is_forgotten = uniform_numbers(seeds, 1, 1)[:, 0, :, 0] < self.unknown_class_rate
        return {**batch, "inputs": tf.where(is_forgotten, UNK_ID, batch["inputs"])}

    def model_hparams(self, hparams):
        """As `Problem.model_hparams`; refuses attention to blocks where images have none."""
        if "local_2d" in hparams.self_attention_type and not self.image_blocks:
            raise UserError(
                f"self_attention_type={hparams.self_attention_type}: local_2d sees an image's blocks, one after the "
                f"other, and pixels of {self.full_name} are in the order of rows. Expected local_1d, or a problem with "
                "`image_blocks`, such as image_cifar10_plain_gen_blocks."
            )
        return super().model_hparams(hparams)

    def example_length(self, encoders):
        """Returns the number of ids of an image and its class."""
        return 1 + encoders["targets"].length

    def given_part(self, given, encoders):
        """Returns the rows of which all pixels are given: see `Problem.given_part`."""
        height = encoders["targets"].size[0]
        rows = encoders["targets"].count_pixels(given) * height // encoders["targets"].length
        return (0, 0, 1, min(rows, height) / height) if rows else None

    @property
    def sequence_length(self):
        """The number of ids of an image."""
        height, width, channels = self.image_size
        return height * width * channels

    def max_length(self, model_hparams):
        """Returns `sequence_length`, whatever the hyperparameters say."""
        return self.sequence_length
