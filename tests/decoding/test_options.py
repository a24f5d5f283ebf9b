import pytest

from t2t_lite.decoding.options import SearchOptions
from t2t_lite.errors import UserError


def test_n_best_is_at_most_the_beam():
    with pytest.raises(UserError, match="beam_size=2"):
        SearchOptions(beam_size=2, n_best=3)
