"""Makes the head of a run that is imported from an adapter: the base's head, or the adapter's own head."""

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.extras.hugging_face import named_weights
from t2t_lite.extras.hugging_face.encoders import class_of_head, remembered_values
from t2t_lite.extras.hugging_face.hugging_face_folder import check_tensor
from t2t_lite.extras.peft.adapter_parts import ANOTHER, FACTS
from t2t_lite.files import copy_files
from t2t_lite.runs.run_config import hparams_of, run_config
from t2t_lite.runs.weights import named_weights as weights_of

_HEADS = {"SEQ_CLS": "class", "TOKEN_CLS": "tag", "QUESTION_ANS": "span"}
# The last kernel, [classes, hidden], by its name or the name's ending (DistilBERT also has a "pre_classifier.weight").
_OUTPUTS = (".classifier.weight", ".out_proj.weight")


class AdapterHead:
    """The head of a run that is imported from an adapter.

    Args:
        path, config, family, run: see `AdapterMatrices`.
        facts: dict, contents of the adapter's `t2t_lite.json`, or None if it has no such file.
        tensors: {name: array}, the head's tensors; {} if the adapter has no head.

    Attributes:
        settings: {name: value}, hyperparameters to change because the adapter's head differs from the base's head.

    Raises:
        UserError: the head does not match the base.
    """

    def __init__(self, path, config, facts, tensors, family, run):
        self._path, self._tensors, self._family, self._run = path, tensors, family, run
        self.settings, self._head, self._labels, self._problem = {}, None, [], run.config["problem"]
        if not tensors:
            return
        base_head = run.model.config.get("head")
        self._head = _HEADS.get(config.get("task_type")) if base_head else None
        if self._head is None:
            self._refuse(min(tensors))
        rows = next((len(array) for name, array in tensors.items() if f".{name}".endswith(_OUTPUTS)), 0)
        if self._head == "class" and rows == 1:
            self._head = "real"
        if self._head in ("class", "tag"):
            base_labels = self._labels_of_base() if base_head == self._head else []
            self._labels = facts["labels"] if facts else base_labels if len(base_labels) == rows else []
            self._labels = self._labels or [f"LABEL_{number}" for number in range(rows)]
            if len(self._labels) != rows:
                raise UserError(
                    f"{path}: has {rows} classes, but {FACTS} has {len(self._labels)} labels. Copy both files again."
                )
        if base_head != self._head or self._labels != self._labels_of_base():
            tasks = [task for task in map(registry.task, registry.list_tasks()) if task.head == self._head]
            possible = [name for task in tasks for name in task.problems]
            if not possible:
                raise UserError(
                    f"{path}: no installed task has the head {self._head}. Install the extra for this task."
                )
            self._problem = facts["problem"] if facts and facts["problem"] in possible else possible[0]
            self.settings = {"head": self._head, "sentence_classes": 0}

    def prepare(self, folder, settings):
        """Writes the vocabulary into the run's folder; returns the contents of its `hparams.json`.

        Args:
            folder: str.
            settings: {name: value}, hyperparameters of the run.
        """
        run = self._run
        hparams, encoders = hparams_of({**run.config, "hparams": settings}), run.encoders
        if self.settings:
            problem = registry.problem(self._problem)
            values = remembered_values(self._head, self._labels, hparams.max_length, problem.settings)
            problem.hold_vocabulary(folder, run.encoders["inputs"].path, **values)
            encoders = problem.get_feature_encoders(folder)
        else:
            copy_files(run.encoder_files, folder)
        base_facts = {name: run.config[name] for name in ("hparams_set", "usr_dir")}
        return run_config(self._problem, run.config["model"], hparams, encoders, **base_facts)

    def fill(self, model):
        """Copies the adapter's head into a model that already has the base's weights wherever their shapes match."""
        if not self._tensors:
            return
        known, names = weights_of(self._run.model), {id(weight): name for name, weight in weights_of(model).items()}
        _, table = class_of_head(self._family, model)
        left = {*self._tensors}
        for part in named_weights.parts(model, table, self._family.is_transposed):
            name = part.name.removeprefix(self._family.prefix)
            if name in left:
                named_weights.fill([part], self._take)
                left.remove(name)
                continue
            for weight in (getattr(layer, attribute) for layer, attribute in part.weights):
                base_weight = known.get(names[id(weight)])
                if base_weight is None or base_weight.shape != weight.shape:
                    raise UserError(
                        f"{self._path}: has no {name}, and neither has {self._run.path}. Expected a base that was "
                        "imported with this head, or an adapter that saves the head (modules_to_save)."
                    )
        if left:
            self._refuse(min(left))

    def _take(self, name, shape):
        array = self._tensors[name.removeprefix(self._family.prefix)]
        check_tensor(self._path, name, array, shape, f"as in {self._run.path}. {ANOTHER}")
        return array

    def _labels_of_base(self):
        return [*registry.task_of(self._run.problem)(self._run.problem, self._run.encoders).labels]

    def _refuse(self, name):
        raise UserError(f"{self._path}: {name} has no place in {self._run.path}. Expected LoRA and a head only.")
