"""One problem rounds as it does among others."""

from __future__ import annotations

import torch

from headstart.gp.rounding import row_times, times


def test_a_matrix_alone_is_multiplied_as_in_a_batch() -> None:
    """To the last bit, whatever the size; the value is that of the plain product."""
    generator = torch.Generator().manual_seed(0)
    for n in (3, 17, 60):
        A = torch.randn(5, n, n, generator=generator, dtype=torch.float64)
        x = torch.randn(5, n, generator=generator, dtype=torch.float64)
        together = times(A, x)
        torch.testing.assert_close(together, torch.einsum("bij,bj->bi", A, x))
        for i in range(5):
            assert torch.equal(times(A[i : i + 1], x[i : i + 1])[0], together[i])


def test_a_row_meets_the_matrix_of_its_problem_or_that_of_all() -> None:
    """A matrix that all rows share gives what copies of it give."""
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(4, 6, generator=generator, dtype=torch.float64)
    A = torch.randn(1, 6, 3, generator=generator, dtype=torch.float64)
    assert torch.equal(row_times(rows, A), row_times(rows, A.repeat(4, 1, 1)))
    torch.testing.assert_close(row_times(rows, A), rows @ A[0])
