"""Between a release and models of clean rows: outputs on the way in, states on the way out."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from opboost._typing import FloatArray, IntArray
from opboost.boosting.booster import Matrix
from opboost.columns.dataframes import OutColumn
from opboost.columns.private_column import PrivateColumn
from opboost.denoise import BitNoise, Outputs, Space, States, noise_matrix_of, outputs_of
from opboost.denoise.mixture_kernel import UNSENT
from opboost.denoise.noise_matrix import NoiseMatrix
from opboost.mechanisms import Mechanism, UnaryEncoding
from opboost.training.feature_matrix import Layout

ReleasedColumns = dict[Hashable, Any]
"""Released columns by private column; of whatever form where nothing is denoised."""

Cuts = tuple[FloatArray | None, ...]
"""Of the label party's own columns: where numbers are cut into bins; None for categories."""

OWN_BINS = 16
OWN_COLUMNS = 64


def rows_of(released: ReleasedColumns, rows: IntArray | slice) -> ReleasedColumns:
    """Some rows of a release."""
    return {
        name: [
            replace(
                out,
                values=out.values[rows],
                missing=None if out.missing is None else out.missing[rows],
            )
            for out in columns
        ]
        for name, columns in released.items()
    }


def _channel(private: PrivateColumn, sent: float) -> NoiseMatrix | None:
    """The column's channel; None where it stays as it came."""
    if not isinstance(private.mechanism, Mechanism):
        return None
    return noise_matrix_of(private.flagged() or private.mechanism, sent)


def own_cuts(layout: Layout, own: Matrix) -> Cuts:
    """Where own numbers are cut into bins."""
    found: list[FloatArray | None] = []
    for block in _own_blocks(layout, own):
        known = block[np.isfinite(block)]
        steps = np.arange(1, OWN_BINS) / OWN_BINS
        edges = np.unique(np.quantile(known, steps)) if len(known) else np.empty(0)
        found.append(None if block.shape[1] > 1 else edges)
    return tuple(found)


def space_of(layout: Layout, cuts: Cuts, sent: float) -> Space:
    """The columns as the models see them."""
    channels, lines, bits = [], [], []
    for private in layout.private:
        if isinstance(private.mechanism, UnaryEncoding):
            bits.append(BitNoise.of(private.mechanism))
            continue
        channel = _channel(private, sent)
        if channel is not None:
            channels.append(channel)
            lines.append(private.mechanism.domain.size if private.has_order else 0)
    sizes = [
        len(column.names()) + 1 if edges is None else len(edges) + 2
        for column, edges in zip(layout.own, cuts, strict=False)
    ]
    return Space(tuple(channels), tuple(lines), tuple(bits), tuple(sizes))


def _own_blocks(layout: Layout, own: Matrix) -> list[Matrix]:
    blocks, place = [], 0
    for column in layout.own[:OWN_COLUMNS]:
        width = len(column.names())
        blocks.append(own[:, place : place + width])
        place += width
    return blocks


def outputs_in(
    layout: Layout,
    released: Mapping[Hashable, Sequence[OutColumn]],
    own: Matrix,
    sent: float,
    cuts: Cuts,
) -> Outputs:
    """What the rows sent, as codes and bits."""
    codes, bits = [], []
    for private in layout.private:
        out = released[private.name]
        if isinstance(private.mechanism, UnaryEncoding):
            block = np.column_stack([c.values for c in out]).astype(np.uint8)
            if out[0].missing is not None:
                block[out[0].missing, 0] = UNSENT
            bits.append(block)
        elif _channel(private, sent) is not None:
            codes.append(outputs_of(private.mechanism, out[0].values, out[0].missing))
    for block, edges in zip(_own_blocks(layout, own), cuts, strict=True):
        if edges is None:
            codes.append(np.where(block.any(axis=1), block.argmax(axis=1) + 1, 0))
        else:
            place = np.searchsorted(edges, block[:, 0], side="right") + 1
            codes.append(np.where(np.isfinite(block[:, 0]), place, 0))
    rows = len(next(iter(released.values()))[0].values)
    kind = np.uint8 if all(c.max(initial=0) < 256 for c in codes) else np.uint16
    return Outputs(
        np.column_stack(codes).astype(kind) if codes else np.zeros((rows, 0), np.uint8),
        np.hstack(bits) if bits else np.zeros((rows, 0), np.uint8),
    )


def as_release(
    layout: Layout, released: ReleasedColumns, sent: float, draws: Sequence[States]
) -> ReleasedColumns:
    """Draws in the shape of a release; a column without a channel stays as it came."""
    found: ReleasedColumns = {}
    place, unary = 0, 0
    for private in layout.private:
        out = released[private.name]
        if isinstance(private.mechanism, UnaryEncoding):
            category = np.concatenate([d.categories[:, unary] for d in draws])
            found[private.name] = [
                OutColumn(c.name, (category == a).astype(np.uint8)) for a, c in enumerate(out)
            ]
            unary += 1
        elif _channel(private, sent) is None:
            found[private.name] = [_again(c, len(draws)) for c in out]
        else:
            domain = private.mechanism.domain
            cells = np.concatenate([d.cells[:, place] for d in draws]).astype(np.int64)
            gone = cells >= domain.size if private.flagged() is not None else None
            values = np.minimum(cells, domain.size - 1) + domain.L
            found[private.name] = [OutColumn(out[0].name, values.astype(domain.dtype()), gone)]
            place += 1
    return found


def _again(out: OutColumn, times: int) -> OutColumn:
    gaps = None if out.missing is None else np.tile(out.missing, times)
    return OutColumn(out.name, np.tile(out.values, times), gaps)
