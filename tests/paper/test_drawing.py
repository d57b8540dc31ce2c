"""Pictures of tables are as large as their texts."""

from __future__ import annotations

import pytest

from mnarkmeans.paper._drawing import draw_table, table_figure


@pytest.mark.parametrize(
    "header", ["a", "MNARKMeansCV, paper's candidates", "many words " * 30, "W" * 100]
)
def test_every_text_lies_inside_its_cell(tmp_path, header):
    pytest.importorskip("matplotlib")
    cells = [["0.026 (0.000)", "1"], ["a cell with many words in it", "2"]]
    texts = cells, ["b", header], ["r", "a row with a long name"]
    figure = table_figure(*texts)
    figure.canvas.draw()
    (table,) = figure.axes[0].tables
    for cell in table.get_celld().values():
        text = cell.get_text().get_window_extent()
        if text.width:
            box = cell.get_window_extent()
            assert (text.x0 > box.x0, text.x1 < box.x1) == (True, True)
            assert (text.y0 > box.y0, text.y1 < box.y1) == (True, True)
    draw_table(*texts, tmp_path, "name")
    assert {p.name for p in tmp_path.iterdir()} == {"name.png", "name.svg"}
