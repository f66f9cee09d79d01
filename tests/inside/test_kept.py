"""Kept memory is given again only when nobody has any of it, and only where it can be looked at so."""

import torch

from reticent.inside.kept import MOST, Pages


def test_what_somebody_holds_is_not_given_again():
    kept, vector = Pages(least=0), torch.zeros(8)
    held = [kept.like(vector).fill_(number) for number in range(MOST + 2)]
    assert len({one.data_ptr() for one in held}) == MOST + 2
    assert [float(one[3]) for one in held] == [0.0, 1.0, 2.0, 3.0]
    part = held[0].view(2, 4)[1]
    held.clear()
    again = [kept.like(vector) for _ in range(MOST)]
    assert all(one.untyped_storage().data_ptr() != part.untyped_storage().data_ptr() for one in again)
    assert part.tolist() == [0.0] * 4


def test_types_that_numpy_lacks_are_made_anew():
    vector = torch.zeros(8, dtype=torch.bfloat16)
    assert Pages(least=0).like(vector).dtype == torch.bfloat16
