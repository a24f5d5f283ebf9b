"""A training step of a new model, as benchmarks of training take it."""


def new_step(make_model, hparams, replicas=None, **options):
    """Returns the TrainStep of a new model and its optimizer.

    Args:
        make_model: function without arguments, which returns the model.
        hparams: HParams.
        replicas: Replicas; None: the CPU.
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
