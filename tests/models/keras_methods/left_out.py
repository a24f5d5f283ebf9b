"""What the table leaves out, with the reason: a plain model can't do it either, or it is not for users to call."""

import keras

LEFT_OUT = {  # {name: (why, what a plain model can't do of a model and a batch, or None)}
    "add_metric": ("Keras 3 refuses it", lambda model, x: model.add_metric(1.0)),
    "input": ("a functional model alone has it", lambda model, x: model.input),
    "output": ("a functional model alone has it", lambda model, x: model.output),
    "clone_model(clone_function=…)": (
        "of a functional model alone", lambda model, x: keras.models.clone_model(model, clone_function=repr)
    ),
    "fit(class_weight=…)": (
        "of labels [batch] alone: for those, see test_keras_model.py",
        lambda model, x: model.fit(x, x["targets"], class_weight=dict.fromkeys(range(20), 1.0), verbose=0),
    ),
    "quantized_call": ("of layers that are quantized", lambda model, x: model.quantized_call(x)),
    "quantized_build": ("of layers that are quantized", lambda model, x: model.quantized_build((1,), "int8")),
    "get_quantization_layer_structure": (
        "GPTQ and AWQ want blocks in a row", lambda model, x: model.get_quantization_layer_structure("gptq").keys()
    ),
    "add_loss": ("of layers inside of a call: see tests/layers", lambda model, x: model.add_loss(1.0)),
    "losses": ("has what `add_loss` added", None),
    "CSVLogger": ("it writes what `History` has, whatever the model", None),
    "LearningRateScheduler": ("it changes the optimizer alone", None),
    "ReduceLROnPlateau": ("it changes the optimizer alone", None),
    "OrbaxCheckpoint": ("its package is not installed", None),
    "RemoteMonitor": ("it needs a network", None),
    "compiled_loss": ("Keras 3 keeps it for old code", None),
    "compiled_metrics": ("Keras 3 keeps it for old code", None),
    "input_spec": ("a model's check of its inputs is another: see test_keras_model.py", None),
    "metrics_variables": ("Keras' own, of `metrics`", None),
    "load_own_variables": ("a part of `load_weights`", None),
    "save_own_variables": ("a part of `save_weights`", None),
    "rematerialized_call": ("Keras calls it in a `RematScope`; ours is `recompute_grad`", None),
}  # fmt: skip
