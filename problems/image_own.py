"""`image_own`: the user's own PNGs, all of one size, for a model that makes and completes images.

    t2t-datagen --problem=image_own --train_files=train --dev_files=dev --data_dir=D

Files are PNGs, or folders of them, at any depth. If the training images lie in several folders, each is a class, and
its name that of the class. `D/image_own.json` stores everything that was asked for, so that later commands need only
`--data_dir=D`.
"""

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit, ImageProblem
from t2t_lite.errors import UserError
from t2t_lite.media.png_files import check_size, class_of, read_png
from t2t_lite.problems.own_problem import OwnProblem
from t2t_lite.problems.own_settings import own_settings


@registry.register_problem
class ImageOwn(OwnProblem, ImageProblem):
    """PNGs given to `configure`."""

    settings = own_settings("problem", "files", "image_size", "class_labels")
    file_endings = (".png",)
    example_flags = "--train_files=train --dev_files=dev"
    expected_lines = "PNGs, or folders of them"
    sample_unit = "images"

    @property
    def image_size(self):
        """(height, width, channels) of the first training image."""
        return tuple(self.determined("image_size"))

    @property
    def class_labels(self):
        """The names of the folders of the training images, sorted; none of a single folder."""
        return self.config.get("class_labels") or ()

    def check_corpus(self, data_dir, tmp_dir):
        """Finds the size and the classes; see `OwnProblem.check_corpus`."""
        paths = [facts["path"] for facts in self.files_of(DatasetSplit.TRAIN)]
        classes = sorted({*map(class_of, paths)})
        self.config["image_size"] = list(read_png(paths[0]).shape)
        self.config["class_labels"] = classes if len(classes) > 1 else None
        super().check_corpus(data_dir, tmp_dir)

    def check_split(self, split, watch, data_dir, tmp_dir):
        """See `OwnProblem.check_split`."""
        for _ in watch(self.generate_images(data_dir, tmp_dir, split)):
            pass

    def generate_images(self, data_dir, tmp_dir, dataset_split):
        """Yields (image, name of its class)."""
        self.read_config(data_dir)
        first = f"as {self.files_of(DatasetSplit.TRAIN)[0]['path']}"
        for path in (facts["path"] for facts in self.files_of(dataset_split)):
            label = class_of(path) if self.class_labels else ""
            try:
                image = read_png(path)
                check_size(path, image.shape, self.image_size, first)
                if label and label not in self.class_labels:
                    known = ", ".join(self.class_labels)
                    raise UserError(f"{path}: its folder is no class of the training images. Expected one of {known}.")
            except UserError as error:
                if not self.on_bad_line:
                    raise
                self.on_bad_line(str(error))
                continue
            yield image, label
