"""Computes once only."""
import stub


def checkpoint(function, *inputs, use_reentrant):
    assert use_reentrant is False
    stub.note("torch.checkpoint")
    return function(*inputs)
