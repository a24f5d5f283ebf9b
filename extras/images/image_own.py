"""`image_own`: the user's own PNGs, all of one size, for a model that makes and completes images.

    t2t-datagen --problem=image_own --train_files=train --dev_files=dev --data_dir=D

Files are PNGs, or folders of them. As in torchvision's `ImageFolder`, each folder directly below a given one is a
class, with all images below it. `D/image_own.json` stores everything that was asked for, so that later commands need
only `--data_dir=D`.
"""

import os

from t2t_lite import files, registry
from t2t_lite.corpora.bad_lines import report
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.data.splits import full_path
from t2t_lite.errors import UserError
from t2t_lite.extras.images.image_problem import ImageProblem
from t2t_lite.extras.images.png_files import check_size, class_of, find_sample_bits, read_png, warn_of_colors
from t2t_lite.problems.own_problem import OwnProblem, kept
from t2t_lite.problems.own_settings import OwnSetting, own_settings
from t2t_lite.settings.ranges import Range


def _are_sizes(size):
    return size is None or (isinstance(size, list) and len(size) == 3 and all(type(n) is int and n > 0 for n in size))


@registry.register_problem
class ImageOwn(OwnProblem, ImageProblem):
    """PNGs given to `configure`."""

    settings = own_settings(
        "problem", "files", OwnSetting("folders", list, None), OwnSetting("image_size", list, None, fits=_are_sizes),
        OwnSetting("sample_bits", int, None, Range(8, 16)), OwnSetting("class_labels", list, None),
    )  # fmt: skip
    file_endings = (".png",)
    example_flags = "--train_files=train --dev_files=dev"
    expected_lines = "PNGs, or folders of them"
    sample_unit = "images"

    @property
    def image_size(self):
        """(height, width, channels) of the first training image."""
        return tuple(self.determined("image_size"))

    sample_bits = kept(
        "sample_bits", "How many of the 16 bits of 16-bit training images hold data; None: no such images."
    )
    class_labels = kept("class_labels", "The names of the classes, sorted; none if all training images are of one.", ())

    def check_settings(self, values, paths):
        """See `OwnProblem.check_settings`; keeps the folders that were given, which tell the classes."""
        super().check_settings(values, paths)
        values["folders"] = [full_path(path) for given in paths.values() for path in given if files.is_folder(path)]

    def check_corpus(self, data_dir, tmp_dir):
        """Finds the size, the bits and the classes; see `OwnProblem.check_corpus`."""
        paths = self._paths(DatasetSplit.TRAIN)
        self._check_folders(paths)
        classes = sorted({*map(self._class_of, paths)})
        self.config["class_labels"] = classes if len(classes) > 1 else None
        self.config["sample_bits"] = find_sample_bits(paths)
        self.config["image_size"] = self._find_size(paths)
        warn_of_colors([path for split in self.config["files"] for path in self._paths(split)])
        super().check_corpus(data_dir, tmp_dir)

    def _check_folders(self, paths):
        """Raises `UserError` if training images lie beside the folders of classes, or a class has no images."""
        for start in (os.path.join(folder, "") for folder in self._folders):
            inside = [path.removeprefix(start).split("/") for path in paths if path.startswith(start)]
            direct = [name for name, *below in inside if not below]
            classes = {name for name, *below in inside if below}
            if direct and classes:
                raise UserError(f"{start}{direct[0]}: lies beside the folders of classes. Move it into one of them.")
            for path in files.list_files(start, r"[^.].*") if classes else ():
                if files.is_folder(path) and os.path.basename(path) not in classes:
                    raise UserError(f"{path}: no .png in this folder, which would be a class. Add images or remove it.")

    def _find_size(self, paths):
        """Returns the size of the first image, with `skip_bad_lines` of the first one that can be read."""
        for path in paths:
            try:
                return list(read_png(path, self.sample_bits).shape)
            except UserError as error:
                if not self.on_bad_line:
                    raise
                mistake = error
        raise mistake

    def _paths(self, split):
        return [facts["path"] for facts in self.files_of(split)]

    _folders = kept("folders", "The folders that were given; earlier versions stored none.", ())

    def _class_of(self, path):
        return class_of(path, self._folders)

    def check_split(self, split, watch, data_dir, tmp_dir):
        """See `OwnProblem.check_split`."""
        for _ in watch(self.generate_images(data_dir, tmp_dir, split)):
            pass

    def generate_images(self, data_dir, tmp_dir, dataset_split):
        """Yields (image, name of its class)."""
        self.read_config(data_dir)
        first = f"as {self._paths(DatasetSplit.TRAIN)[0]}"
        for path in self._paths(dataset_split):
            label = self._class_of(path) if self.class_labels else ""
            try:
                image = read_png(path, self.sample_bits)
                check_size(path, image.shape, self.image_size, first)
                if label and label not in self.class_labels:
                    known = ", ".join(self.class_labels)
                    raise UserError(f"{path}: its folder is no class of the training images. Expected one of {known}.")
            except UserError as error:
                report(str(error), self.on_bad_line)
            else:
                yield image, label
