"""What the tests of training share."""

import functools
import pathlib

import pytest

from t2t_lite import registry


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory):
    """A folder with records of `PROBLEM`."""
    from tests.training.runs import EXAMPLES, PROBLEM  # with TensorFlow, without which some tests of losses run

    folder = str(tmp_path_factory.mktemp("data"))
    problem = registry.problem(PROBLEM)
    problem.max_cases = EXAMPLES
    problem.generate_data(folder, folder)
    return folder


@pytest.fixture(autouse=True)
def caplog_has_all_that_users_see(caplog):
    """From INFO on."""
    caplog.set_level("INFO", "t2t_lite")


_STREAMS = {}  # of the runs of this process
_READ = ("batch_size", "max_length", "min_length", "random_seed", "bpe_dropout")  # settings that make other batches


@pytest.fixture(scope="module", autouse=True)
def runs_on_the_same_records_share_their_streams():
    """Of `PROBLEM`, and of plain pairs: half of a short run's time would go into tracing its data set.

    A data set has no state: each run has an iterator of its own. What is checked while one is made is checked again
    as soon as a file or a setting is another.
    """
    try:
        from t2t_lite.data import batching
        from t2t_lite.data.problem import Problem
        from tests.training.runs import PROBLEM
    except ImportError:  # the backend is another one
        yield
        return

    def once(make, problem, hparams, paths, encoders=None, ladder=None, **more):
        arguments = problem, hparams, paths, encoders
        if ladder or not (problem.full_name == PROBLEM or (type(problem) is Problem and encoders)):
            return make(*arguments, *([ladder] if ladder else []), **more)
        contents = tuple((path, pathlib.Path(path).read_bytes()) for path in paths)
        sizes = sorted((feature, encoder.vocab_size) for feature, encoder in (encoders or {}).items())
        key = make.__name__, problem.full_name, contents, repr((sizes, [hparams.get(name) for name in _READ], more))
        if key not in _STREAMS:
            _STREAMS[key] = make(*arguments, **more)
        return _STREAMS[key]

    with pytest.MonkeyPatch.context() as patch:
        for name in ("training_batches", "evaluation_batches"):
            patch.setattr(batching, name, functools.partial(once, getattr(batching, name)))
        yield
