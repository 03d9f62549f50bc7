"""reel.explain: steps in Python and cells."""

import re
import shutil

import pytest

import reel

B, H = 4, 24
p = {"W": reel.normal((H, H), seed=1), "b": reel.zeros((H,))}


def step(h, x):
    h = reel.tanh(reel.linear(h, p["W"]) + x * p["b"])
    return h, h


xs, h0 = reel.normal((6, B, H), seed=2), reel.zeros((B, H))


def test_text_of_a_step():
    text = str(reel.explain(step, h0, xs, backward=True))
    assert text.startswith("step: 6 steps\n")
    line = step.__code__.co_firstlineno + 1
    found = re.search(r"%\d+ = matmul\(h, W\) +f32 \(4, 24\) +4\.61 kflop .*\btest_explain\.py:(\d+)\n", text)
    assert found and int(found[1]) == line  # 2 * 4 * 24 * 24 operations
    assert "consts W b" in text
    assert "==== gradient" in text and "==== gradient" not in str(reel.explain(step, h0, xs))
    # What the step computes is as before.
    assert abs(reel.scan(step, h0, xs)[0].numpy() - reel.unroll(step, h0, xs)[0].numpy()).max() < 1e-6


def test_page():
    found = reel.explain(step, h0, xs, measure=True)
    page = found.html()
    assert page.startswith("<!DOCTYPE html>")
    assert "h = reel.tanh(reel.linear(h, p[&quot;W&quot;]) + x * p[&quot;b&quot;])" in page  # the line of source
    assert "circle class=\"forward\"" in page
    assert ("class=\"node op" in page) == bool(shutil.which("dot"))
    notebook = found._repr_html_()
    assert notebook.startswith("<iframe") and "&lt;!DOCTYPE html&gt;" in notebook
    assert found.dot().startswith("digraph")


def test_save(tmp_path):
    found = reel.explain(step, h0, xs)
    found.save(str(tmp_path / "step.html"))
    assert (tmp_path / "step.html").read_text() == found.html()


def test_cell():
    cell = reel.cell("lstm", 20, 32)
    found = reel.explain(cell, batch=20, length=50, backward=True)
    text = str(found)
    assert text.startswith("lstm: 32 units, 20 inputs; 50 steps of a batch of 20, f32\n")
    assert re.search(r"> %\d+ = matmul\(x, W_i\)", text)
    assert "the 20 rows of the batch are" in text
    assert "---- dce" not in found.text("hoist") and "---- hoist" in found.text("hoist")
    assert "at 50 Gflop/s" in str(reel.explain(cell, rate=50))


def test_several_states_and_tensors_made_in_the_step():
    def two(state, x):
        a, b = state
        return (b + reel.arange(H, "f32"), a * x), {"sum": reel.sum(a, 1)}

    text = str(reel.explain(two, (h0, h0), xs, backward=True))
    assert "inputs h1 h2 x" in text
    text = str(reel.explain(lambda h, _: (reel.tanh(h), None), h0, length=5))
    assert text.startswith("step: 5 steps\n")


def test_a_product_of_stacked_matrices_keeps_the_rows_of_the_batch_apart():
    S0, keys = reel.zeros((16, 2, 4, 4)), reel.zeros((6, 16, 2, 4))

    def step(S, k):
        return S + reel.einsum("bhi,bhj->bhij", k, k), reel.einsum("bhij,bhj->bhi", S, k)

    text = str(reel.explain(step, S0, keys, backward=True))
    assert "not independent" not in text and "shards of 8 rows" in text


def test_errors():
    with pytest.raises(reel.Error, match="must return a pair"):
        reel.explain(lambda h, x: h, h0, xs)
    with pytest.raises(reel.Error, match="takes batch and length"):
        reel.explain(reel.cell("gru", 3, 4), h0)
    with pytest.raises(reel.Error, match="neither a state nor an input"):
        reel.explain(lambda h, x: (None, None))
    with pytest.raises(reel.Error, match=r"\[explain\] batch: an integer of 1 or more is needed, got 0"):
        reel.explain(reel.cell("gru", 3, 4), batch=0)
    for name, given in (("length", "a"), ("length", 1.5), ("length", -1), ("batch", 2.5), ("rate", "a")):
        for args in ((step, h0, xs), (reel.cell("gru", 3, 4),)):
            with pytest.raises(reel.Error, match=rf"\[explain\] {name}: .* needed, got {given!r}"):
                reel.explain(*args, **{name: given})
    with pytest.raises(reel.Error, match="state 0 must keep its dtype and shape"):
        reel.explain(lambda h, x: (reel.sum(h), None), h0, xs)
    with pytest.raises(reel.Error, match="leading axis of time"):
        reel.explain(step, h0, reel.tensor(1.0))
