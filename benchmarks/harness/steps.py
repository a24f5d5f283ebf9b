"""Creates training steps for benchmarks."""


def new_step(make_model, hparams, replicas=None, **options):
    """Returns the TrainStep of a new model with a new optimizer.

    Args:
        make_model: function without arguments that returns the model.
        hparams: HParams.
        replicas: Replicas, or None for the CPU.
        **options: further arguments of TrainStep.
    """
    from t2t_lite.training.distribution import choose_replicas
    from t2t_lite.training.optimization.optimizers import make_optimizer
    from t2t_lite.training.train_step import TrainStep

    replicas = replicas or choose_replicas(0)
    with replicas.scope():
        model = make_model()
        optimizer = make_optimizer(hparams, 100_000)
        optimizer.build(model.trainable_variables)
    return TrainStep(model, optimizer, replicas, hparams, **options)
