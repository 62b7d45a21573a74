"""Notes on visdom: vis.line(X, Y, opts, win), a window that is kept, and an error that was no lost connection."""

import json

import pytest

import rushlight as torch
from rushlight.visdom import Visdom


@pytest.fixture
def vis(tmp_path):
    return Visdom(offline=True, log_folder=tmp_path)


def test_line_of_n_and_of_n_by_m(vis):
    steps = torch.arange(10)
    one = vis.line(X=steps, Y=torch.rand(10), opts={"title": "loss"})
    two = vis.line(X=steps, Y=torch.rand(10, 2), opts={"legend": ["train", "test"]})
    lines = [json.loads(vis.get_window_data(w))["content"]["data"] for w in (one, two)]
    assert [[t["name"] for t in line] for line in lines] == [["1"], ["train", "test"]]
    assert all(t["x"] == list(range(10)) and len(t["y"]) == 10 for line in lines for t in line)


def test_the_same_window_in_every_epoch(vis):
    for epoch in range(3):
        vis.line(X=[epoch], Y=[1 / (epoch + 1)], win="loss", update="append")
    assert list(json.loads(vis.get_window_data())) == ["loss"]


def test_without_win_every_plot_is_a_new_window(vis):
    wins = {vis.line(Y=[1, 2]) for _ in range(3)}
    assert len(wins) == 3 and set(json.loads(vis.get_window_data())) == wins


@pytest.mark.parametrize(
    ("X", "Y", "said"),
    [
        ([1, 2], torch.rand(3), "X has shape (2,), Y has 3 points"),
        ([0], torch.tensor(0.5), "Y must be N or N x M, got shape ()"),  # a loss that should have been [loss]
        ([0], None, "Y must be numbers, got NoneType"),
        ([0], ["0.5"], "Y must be numbers"),
        ([0], torch.rand(1, 2, 3), "got shape (1, 2, 3)"),
    ],
)
def test_wrong_data_is_no_lost_connection(vis, X, Y, said):
    """visdom: "Could not connect to Visdom server", where "maybe the data is not right"."""
    with pytest.raises((TypeError, ValueError)) as error:
        vis.line(X=X, Y=Y, win="loss", update="append")
    assert said in str(error.value) and "connect" not in str(error.value)
    assert vis.get_env_list() == []  # nothing was logged
