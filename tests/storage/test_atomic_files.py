import pytest

from opboost.storage import atomic_files


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("alone", [True, False])
def test_a_file_takes_its_place_when_the_block_ends_well(tmp_path, alone):
    target = tmp_path / "out"
    target.write_text("old")
    with atomic_files.placing(target, alone=alone) as partial:
        partial.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("folder", [True, False])
def test_an_error_leaves_nothing_behind(tmp_path, folder):
    def fail(partial):
        (partial / "a" if folder else partial).write_text("half")
        raise ValueError("no")

    with (
        pytest.raises(ValueError, match="no"),
        atomic_files.placing(tmp_path / "out", folder=folder) as partial,
    ):
        fail(partial)
    assert names(tmp_path) == []


def test_a_folder_takes_its_place_without_what_a_kill_left(tmp_path):
    left = tmp_path / ".out.part"
    left.mkdir()
    (left / "half").write_text("half")
    with atomic_files.placing(tmp_path / "out", folder=True, alone=True) as partial:
        (partial / "whole").write_text("whole")
    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == ["whole"]


def test_files_move_in_the_order_given(tmp_path):
    (tmp_path / "new").write_text("new")
    (tmp_path / "now").write_text("old")
    moves = [(tmp_path / "now", tmp_path / "kept"), (tmp_path / "new", tmp_path / "now")]
    atomic_files.move(moves)
    assert (tmp_path / "kept").read_text() == "old"
    assert (tmp_path / "now").read_text() == "new"
    assert names(tmp_path) == ["kept", "now"]
