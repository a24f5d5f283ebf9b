import pytest

from t2t_lite.errors import UserError
from t2t_lite.search_options import SearchOptions


def test_n_best_is_at_most_the_beam():
    with pytest.raises(UserError, match="beam_size=2"):
        SearchOptions(beam_size=2, n_best=3)


def test_there_may_be_more_samples_than_beams():
    assert SearchOptions(sampling=True, n_best=9).n_best == 9
