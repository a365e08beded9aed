"""The notebooks: their code runs and prints the stored output."""

from __future__ import annotations

import contextlib
import io
import json
import re

import matplotlib.pyplot as plt
import pytest

from tools.manual.notebooks import FOLDER, as_markdown

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def close(kept, printed):
    """Return whether the words are the same and numbers agree within 10 % or 0.001."""
    pairs = zip(NUMBER.findall(kept), NUMBER.findall(printed), strict=True)
    near = all(abs(float(a) - float(b)) <= 0.1 * max(abs(float(a)), 0.1) for a, b in pairs)
    return near and _words(kept) == _words(printed)


def _words(text):
    return " ".join(NUMBER.sub("#", text).split())


def test_close_is_about_words_and_numbers():
    assert close("AUC 0.801\nhere", "AUC  0.805 here")
    assert not close("AUC 0.801", "AUC 0.601")
    assert not close("AUC 0.801", "R2 0.801")


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda p: p.stem)
def test_a_notebook_prints_what_is_kept_in_it(path, monkeypatch):
    monkeypatch.chdir(FOLDER.parent)
    plt.switch_backend("agg")
    plt.close("all")  # releases of other tests
    names = {"__name__": "__main__"}
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        code, said = "".join(cell["source"]), io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(code, f"{path.name}:{cell['id']}", "exec"), names)
        kept = [o for o in cell["outputs"] if o["output_type"] == "stream"]
        assert all(o["name"] == "stdout" for o in kept), f"{cell['id']} wrote to standard error"
        text = "".join("".join(o["text"]) for o in kept)
        assert close(text, said.getvalue()), f"{cell['id']}:\n{text}\nnow:\n{said.getvalue()}"
        assert bool(plt.get_fignums()) is any(
            "image/png" in o.get("data", {}) for o in cell["outputs"]
        )
        plt.close("all")


def test_there_is_one_for_each_kind_of_user():
    found = {path.stem for path in FOLDER.glob("*.ipynb")}
    assert found == {"data-scientist", "privacy-engineer", "researcher"}


def test_a_page_shows_code_text_and_pictures_and_refuses_errors():
    def page(*outputs):
        code = {"cell_type": "code", "source": ["1 + 1"], "outputs": list(outputs)}
        words = {"cell_type": "markdown", "source": ["# Title"]}
        return as_markdown({"cells": [words, code]}, "x.ipynb")

    assert "```python\n1 + 1\n```\n\n```text\n2\n```" in page(
        {"output_type": "execute_result", "data": {"text/plain": ["2"]}}
    )
    assert 'src="data:image/png;base64,AB"' in page(
        {"output_type": "display_data", "data": {"image/png": "A\nB", "text/plain": "x"}}
    )
    with pytest.raises(ValueError, match="error: KeyError"):
        page({"output_type": "error", "ename": "KeyError"})
