import numpy as np
import pytest

from t2t_lite.decoding.texts import check_ids
from t2t_lite.errors import UserError


@pytest.mark.parametrize("ids", [[5, 1, 9], (5, 1, 9), np.array([5, 1, 9], "int64"), [np.int32(5), 1, np.uint8(9)]])
def test_ids_become_a_list_of_int(ids):
    assert check_ids(ids, 10) == [5, 1, 9] and {type(i) for i in check_ids(ids, 10)} == {int}
    assert check_ids([], 10) == []


WRONG = [[99999999], [-1], [0], [10], [5.5], [5.0], ["a"], [None], [True], [[5]], [[5], [5, 6]], "abc", b"abc", 5, None]


@pytest.mark.parametrize("ids", [*WRONG, [2**70], np.array(5)], ids=repr)
def test_what_is_no_id_of_the_vocabulary(ids):
    with pytest.raises(
        UserError, match=r"expected a text, or a list of ids|is outside the vocabulary. Expected from 1 to 9"
    ):
        check_ids(ids, 10)


def test_eos_where_it_cannot_stand():
    with pytest.raises(UserError, match=r"id 1 is EOS, which ends a text. Expected from 2 to 9"):
        check_ids([5, 1], 10, least=2)
