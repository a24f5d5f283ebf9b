"""Optimizers against their equations, with rates by layer and weight decay; the moving average of the weights."""

import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.settings.config import HParams
from t2t_lite.settings.ranges import settings_of
from t2t_lite.settings.tensor2tensor_names import without_multistep
from t2t_lite.training.distribution import choose_replicas, update_locally
from t2t_lite.training.optimization.optimizers import (
    Adafactor,
    Adam,
    Lamb,
    describe_unfreezing,
    layer_depths,
    make_optimizer,
)
from tests.models.every_model import CORE, ROWS
from tests.models.own_model import OwnPlainModel

SHAPES = (3, 4), (5,), (2, 3, 4)
STEPS = 4
RATE = "learning_rate_schedule=constant,learning_rate_constant=0.1"


def assert_follows(optimizer, equations, scale=1.0):
    """Tensors of `SHAPES`, and one of zeros, become what equations make of (a tensor, its gradients) in float64."""
    draw = np.random.default_rng(3)
    starts = [draw.normal(size=shape).astype("float32") for shape in SHAPES] + [np.zeros((2, 2), "float32")]
    steps = [[draw.normal(size=start.shape, scale=scale).astype("float32") for start in starts] for _ in range(STEPS)]
    variables = [keras.Variable(start) for start in starts]
    for gradients in steps:
        optimizer.apply([tf.constant(gradient) for gradient in gradients], variables)
    for start, variable, gradients in zip(starts, variables, zip(*steps, strict=True), strict=True):
        np.testing.assert_allclose(variable.numpy(), equations(start, gradients), rtol=2e-5, atol=2e-6)


def rms(x):
    return np.sqrt(np.mean(np.square(x)))


def adafactor(weights, gradients, rate, beta_1=0.0, beta_2=0.999, decay_type="pow", exponent=0.8, threshold=1.0,
              factored=True, scaled=True):  # fmt: skip
    """Algorithms 4 and 5 of Shazeer and Stern (2018), written out in float64 for one tensor."""
    w = weights.astype("float64")
    rows = columns = full = momentum = 0.0
    for t, g in enumerate(gradients, start=1):
        decay = 1 - t**-exponent if decay_type == "pow" else beta_2 * (1 - beta_2 ** (t - 1)) / (1 - beta_2**t)
        squares = g.astype("float64") ** 2 + 1e-30
        if factored and w.ndim >= 2:
            rows = decay * rows + (1 - decay) * squares.sum(-1)
            columns = decay * columns + (1 - decay) * squares.sum(-2)
            second = rows[..., :, None] * columns[..., None, :] / rows.sum(-1)[..., None, None]
        else:
            second = full = decay * full + (1 - decay) * squares
        update = g / np.sqrt(second)
        if threshold:
            update /= max(1.0, rms(update) / threshold)
        update = update * rate * (max(1e-3, rms(w)) if scaled else 1.0)
        momentum = beta_1 * momentum + (1 - beta_1) * update
        w = w - (momentum if beta_1 else update)
    return w


@pytest.mark.parametrize(
    "options, words",
    [
        ({}, ""),
        ({"beta_1": 0.9, "threshold": 0.0}, "beta1=0.9,clipping_threshold=0"),
        ({"decay_type": "adam", "beta_2": 0.98, "threshold": 0.5}, "decay_type=adam,beta2=0.98,clipping_threshold=0.5"),
        ({"factored": False, "scaled": False, "exponent": 0.5},
         "factored=False,multiply_by_parameter_scale=False,memory_exponent=0.5"),
    ],
)  # fmt: skip
def test_adafactor_follows_its_equations(options, words):
    changed = ",".join(f"optimizer_adafactor_{word}" for word in words.split(",") if word)
    optimizer = make_optimizer(HParams().parse(f"{RATE},optimizer=adafactor").parse(changed), 10)
    assert_follows(optimizer, lambda start, gradients: adafactor(start, gradients, 0.1, **options), scale=3.0)


def test_adafactor_keeps_rows_and_columns_only():
    optimizer = Adafactor()
    matrix = keras.Variable(np.zeros((300, 200), "float32"))
    optimizer.build([matrix])
    kept = sum(int(np.prod(v.shape)) for v in optimizer.variables)
    assert 500 <= kept <= 500 + 2  # and the step and the rate


OPTIONS = {  # of each of our classes: none is the default
    Adam: {"beta_1": 0.8, "beta_2": 0.97, "epsilon": 1e-4, "amsgrad": True},
    Lamb: {"decay": 0.25, "beta_1": 0.8, "beta_2": 0.97, "epsilon": 1e-4},
    Adafactor: {
        "beta_1": 0.3, "beta_2": 0.98, "decay_type": "adam", "memory_exponent": 0.7, "clipping_threshold": 2.0,
        "factored": False, "multiply_by_parameter_scale": False,
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", OPTIONS, ids=lambda kind: kind.__name__)
def test_a_copy_has_every_option(kind):
    if "__init__" in vars(kind):
        assert {*inspect.signature(kind).parameters} - {"learning_rate", "name", "kwargs"} <= OPTIONS[kind].keys()
    copy, usual = kind.from_config(kind(0.5, **OPTIONS[kind]).get_config()), kind()
    for name, value in OPTIONS[kind].items():
        assert getattr(copy, name) == value != getattr(usual, name), name
    assert float(copy.learning_rate) == 0.5


@pytest.mark.parametrize("kind", [Adam, Adafactor, Lamb])
def test_the_gradients_of_an_id_that_occurs_twice_are_added(kind):
    rows = tf.IndexedSlices(tf.constant([[1.0, 2.0], [3.0, -1.0]]), tf.constant([1, 1]), tf.constant([3, 2]))
    found = []
    for gradient in (rows, tf.convert_to_tensor(rows)):
        variable, optimizer = keras.Variable([[1.0, 2.0]] * 3), kind(0.1)
        for _ in range(2):
            optimizer.apply([gradient], [variable])
        found.append(variable.numpy())
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_adam_is_that_of_keras():
    rng = np.random.default_rng(4)
    ours, keras_own = ([keras.Variable(np.full(shape, 0.5, "float32")) for shape in SHAPES] for _ in range(2))
    hparams = HParams().parse("learning_rate_schedule=constant,learning_rate_constant=0.01")
    optimizer, other = make_optimizer(hparams, 10), keras.optimizers.Adam(0.01, 0.9, 0.98, 1e-9)
    for _ in range(STEPS):
        gradients = [tf.constant(rng.normal(size=shape).astype("float32")) for shape in SHAPES]
        optimizer.apply(gradients, ours)
        other.apply(gradients, keras_own)
    for one, two in zip(ours, keras_own, strict=True):
        np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adam", "adafactor", "lamb"])
def test_keras_fits_any_model_by_each_optimizer_and_accumulates_gradients(name):
    """Of a Keras embedding the gradient is one of some rows."""
    hparams = HParams().parse(f"optimizer={name},learning_rate_schedule=constant,learning_rate_constant=0.05")
    kind = type(make_optimizer(hparams, 10))
    x, y = np.array([[1, 2], [3, 4]]), np.array([[0.0], [1.0]])
    found = []
    for options in ({}, {"gradient_accumulation_steps": 2}):
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.layers.Embedding(5, 4), keras.layers.Flatten(), keras.layers.Dense(1)])
        model.compile(kind(0.05, **options), "mse")
        model.fit(x, y, batch_size=1 if options else 2, epochs=3, shuffle=False, verbose=0)
        found.append(np.concatenate([w.ravel() for w in model.get_weights()]))
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("optimizer", settings_of(HParams)["optimizer"].limits.words)
def test_each_optimizer_that_hyperparameters_may_name_is_there(optimizer):
    hparams = without_multistep(HParams().parse(f"optimizer={optimizer}"))
    assert isinstance(make_optimizer(hparams, 10), keras.optimizers.Optimizer)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"decay_type": "exp"}, "`decay_type` must be one of pow, adam: received decay_type='exp'"),
        ({"beta_1": 1.0}, "beta_1=1.0"),
        ({"beta_2": 0.0}, "beta_2=0.0"),
        ({"memory_exponent": 0}, "memory_exponent=0"),
        ({"clipping_threshold": -1.0}, "clipping_threshold=-1.0"),
    ],
)
def test_mistakes_in_adafactor_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Adafactor(**options)


def depths_of(model):
    """Returns {path of a weight: its depth}."""
    paths = [weight.path for weight in model.trainable_variables]
    return dict(zip(paths, layer_depths(paths), strict=True))


def test_depths_grow_from_the_top_of_each_stack_to_the_embeddings():
    hparams = registry.hparams("transformer_tiny").parse(
        "num_encoder_layers=3,num_decoder_layers=1,pos=emb,shared_embedding_and_softmax_weights=False,hidden_size=8,"
        "layer_preprocess_sequence=n,layer_postprocess_sequence=da"
    )
    expected = {
        "encoder_2/": 1, "encoder_1/": 2, "encoder_0/": 3, "decoder_0/": 1, "_norm/": 0, "softmax_embedding/": 0,
        "input_embedding/": 4, "target_embedding/": 4, "_position/": 4,
    }  # fmt: skip
    for path, depth in depths_of(registry.model("transformer").from_hparams(hparams, 20)).items():
        assert {depth} == {value for name, value in expected.items() if name in path}, path


def test_all_that_makes_the_embeddings_of_an_encoder_is_lowest():
    model = registry.model("transformer_encoder")
    hparams = registry.hparams("bert_tiny").of_model(model)
    hparams = hparams.parse("num_hidden_layers=2,hidden_size=8,embedding_size=4,head=class")
    expected = {"class_head/": 0} | {f"encoder_{i}/": 2 - i for i in (0, 1)}
    for path, depth in depths_of(model.from_hparams(hparams, 20, 3)).items():
        assert depth == next((value for part, value in expected.items() if part in path), 3), path


def test_the_name_of_a_model_does_not_matter():
    class PositionClassifier(registry.model("transformer_encoder")):
        pass

    model = PositionClassifier(20, 3, head="class", num_layers=1, hidden_size=8, filter_size=8, num_heads=2)
    model.build()
    depths = depths_of(model)
    assert all(path.startswith("position_classifier") for path in depths)
    assert {depth for path, depth in depths.items() if "class_head" in path} == {0}


def updated(words, replicas, updates=2):
    """Returns {name: (weight before, after)} of updates whose gradients are ones."""
    chosen = choose_replicas(0, replicas)
    with chosen.scope():
        keras.utils.set_random_seed(1)
        kernel = keras.Variable(np.arange(1.0, 5.0).reshape(2, 2), name="kernel", dtype="float32")
        with keras.name_scope("encoder"), keras.name_scope("encoder_0"):
            inner = keras.Variable(np.arange(1.0, 5.0).reshape(2, 2), name="inner", dtype="float32")
        bias = keras.Variable(np.ones(2), name="bias", dtype="float32")
        variables = [kernel, inner, bias]
        optimizer = make_optimizer(HParams().parse(f"{RATE},{words}"), 10)
        optimizer.build(variables)
    if chosen.strategy is not None:
        update_locally(optimizer, chosen.strategy)
    before = [v.numpy() for v in variables]

    @tf.function(autograph=False)
    def step():
        gradients = chosen.run(lambda: [tf.ones(v.shape) for v in variables])
        optimizer.apply(gradients, variables)

    for _ in range(updates):
        step()
    return {v.name: (old, v.numpy()) for v, old in zip(variables, before, strict=True)}


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("optimizer", ["adam_w", "sgd"])
def test_matrices_decay_by_their_own_rate_and_vectors_do_not(optimizer, replicas):
    words = f"optimizer={optimizer},weight_decay=0.5,learning_rate_layer_decay=0.25"
    found = updated(words, replicas)
    # Of gradients that are always 1, Adam's update is the rate, as SGD's is.
    for name, rate, decay in (("kernel", 0.1, 0.5), ("inner", 0.025, 0.5), ("bias", 0.1, 0.0)):
        expected, after = found[name]
        for _ in range(2):
            expected = expected * (1 - rate * decay) - rate
        np.testing.assert_allclose(after, expected, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.few("adam_w-2", "sgd-1", "adafactor-2")
@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("optimizer", ["adam_w", "sgd", "adafactor"])
def test_a_layer_is_neither_trained_nor_decays_until_it_is_unfrozen(optimizer, replicas):
    words = f"optimizer={optimizer},weight_decay=0.5,unfreeze_steps=2"
    for updates in (2, 3, 4):
        found = updated(words, replicas, updates)
        assert not np.array_equal(*found["kernel"])
        assert np.array_equal(*found["inner"]) == (updates == 2)
    # A frozen layer's moments are those of its gradients: Adam's first update of gradients that are 1 is the rate.
    if optimizer != "adafactor":
        before, after = found["inner"]
        for _ in range(2):
            before = before * (1 - 0.1 * 0.5) - 0.1
        np.testing.assert_allclose(after, before, rtol=1e-5)


@pytest.mark.parametrize(
    "train_steps, end", [(10, "from step 7 on"), (6, "from step 7 on, which is after train_steps=6")]
)
def test_the_log_says_when_everything_is_trained(train_steps, end):
    paths = ["m/encoder/encoder_0/kernel", "m/encoder/encoder_1/kernel", "m/head/kernel", "m/embedding/embeddings"]
    assert describe_unfreezing(paths, 2, train_steps).endswith(end)


def test_off_is_the_optimizer_as_it_was():
    off = updated("optimizer=adam_w,weight_decay=0,learning_rate_layer_decay=1,unfreeze_steps=0", 1)
    alone = updated("optimizer=adam", 1)
    for name, (_, after) in alone.items():
        np.testing.assert_array_equal(after, off[name][1])


def lamb(weights, gradients, rate, decay):
    """Algorithm 2 of You et al. (2020), written out in float64 for one tensor; for vectors Adam."""
    w = weights.astype("float64")
    first = second = 0.0
    for t, g in enumerate(gradients, start=1):
        first, second = 0.9 * first + 0.1 * g, 0.98 * second + 0.02 * g.astype("float64") ** 2
        update = first / (1 - 0.9**t) / (np.sqrt(second / (1 - 0.98**t)) + 1e-9)
        if w.ndim > 1:
            update += decay * w
            update *= np.linalg.norm(w) / np.linalg.norm(update) if w.any() and update.any() else 1.0
        w = w - rate * update
    return w


@pytest.mark.few("transformer", "transformer_memory", "xlnet")
@pytest.mark.parametrize("name", CORE)
def test_no_bias_or_normalization_of_a_model_decays(name):
    """The biases of some kinds of attention have two axes: one vector for each head."""
    model = ROWS[name].make()
    optimizer = make_optimizer(HParams().parse(f"{RATE},optimizer=sgd,weight_decay=0.5"), 10, model)
    before = [weight.numpy() for weight in model.trainable_weights]
    optimizer.apply([tf.zeros(weight.shape) for weight in before], model.trainable_weights)
    for weight, old in zip(model.trainable_weights, before, strict=True):
        decays = old.ndim > 1 and not weight.name.endswith("bias")
        np.testing.assert_allclose(weight.numpy(), old * (0.95 if decays else 1), rtol=1e-6, err_msg=weight.path)


@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_lamb_follows_its_equations(decay):
    optimizer = make_optimizer(HParams().parse(f"{RATE},optimizer=lamb,weight_decay={decay}"), 10)
    assert_follows(optimizer, lambda start, gradients: lamb(start, gradients, 0.1, decay))


@pytest.mark.parametrize("setting", ["unfreeze_steps=5", "learning_rate_layer_decay=0.5"])
def test_rates_by_layer_are_refused_where_layers_are_in_no_stack(setting):
    model = OwnPlainModel(20)
    model({"targets": np.ones((1, 2), "int32")})
    name, _, _ = setting.partition("=")
    with pytest.raises(UserError, match=f"^{name}: .* OwnPlainModel "):
        make_optimizer(registry.hparams("transformer_tiny").parse(setting), 10, model)
    make_optimizer(registry.hparams("transformer_tiny").parse("weight_decay=0.1"), 10, model)


@pytest.mark.parametrize(
    "optimizer, name",
    [
        ("adam", "optimizer_adam_beta2"),
        ("lamb", "optimizer_adam_beta1"),
        ("adafactor", "optimizer_adafactor_beta1"),
        ("sgd", "ema_decay"),
    ],
)
def test_a_decay_that_the_weights_dtype_rounds_to_1_is_refused(optimizer, name):
    """Otherwise Adam would not train, and averages of weights would stay the initial weights."""
    hparams = HParams(optimizer=optimizer, dtype_policy="bfloat16", **{name: 0.99})
    make_optimizer(hparams, 10)
    hparams.set_hparam(name, 0.999)
    make_optimizer(hparams.override_from_dict({"dtype_policy": "mixed_bfloat16"}), 10)
    with pytest.raises(UserError, match=rf"{name}=0.999: rounded to bfloat16.* this number is 1.*=mixed_bfloat16"):
        make_optimizer(hparams, 10)
