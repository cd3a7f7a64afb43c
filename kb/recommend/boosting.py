"""Small regression trees, boosted: fitted off-line with numpy alone, read at run time by a few gathers.

Every tree is complete and of one depth, so that a forest is four arrays and a walk through it has no branches.
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

BINS: Final = 24
"""Values of a trait are told apart by at most so many thresholds."""


class Recipe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a forest is grown. ``shrinkage`` of each tree's answer; ``columns``: share of the traits a tree may look at;
    ``rows``: share of the rows it sees; ``ridge``: rows of weight 1 with answer 0 added to every leaf."""

    trees: int
    depth: int
    shrinkage: float
    columns: float
    rows: float
    ridge: float
    least_rows: int


class Forest(msgspec.Struct, frozen=True, kw_only=True):
    """``feature`` and ``threshold`` (trees, 2^depth - 1) by node, children of node k at 2k + 1 (value <= threshold) and 2k + 2;
    ``leaf`` (trees, 2^depth) the answers, added to ``base``."""

    base: float
    feature: npt.NDArray[np.int16]
    threshold: npt.NDArray[np.float32]
    leaf: npt.NDArray[np.float32]

    @property
    def depth(self) -> int:
        """Splits from root to leaf."""
        return int(self.leaf.shape[1]).bit_length() - 1

    def predicted(self, values: Floats) -> Floats:
        """Answers for ``values`` of shape (rows, traits): shape (rows,)."""
        if not len(self.leaf):
            return np.full(len(values), self.base)
        trees = np.arange(len(self.leaf))
        node = np.zeros((len(values), len(self.leaf)), np.int64)
        rows = np.arange(len(values))[:, None]
        for _ in range(self.depth):
            right = values[rows, self.feature[trees, node]] > self.threshold[trees, node]
            node = 2 * node + 1 + right
        return np.asarray(self.base + self.leaf[trees, node - self.feature.shape[1]].sum(axis=1), np.float64)

    def importance(self, traits: int) -> Floats:
        """How often each trait is asked, the upper nodes counting more; sums to 1, zeros without trees."""
        total = np.zeros(traits)
        if len(self.leaf):
            by_level = np.concatenate([np.full(1 << level, 0.5**level) for level in range(self.depth)])
            np.add.at(total, self.feature.ravel(), np.where(np.isfinite(self.threshold), by_level, 0.0).ravel())
        return total / total.sum() if total.any() else total


def constant(answer: float, depth: int = 1) -> Forest:
    """A forest without trees."""
    nodes = (1 << depth) - 1
    return Forest(base=answer, feature=np.zeros((0, nodes), np.int16), threshold=np.zeros((0, nodes), np.float32),
                  leaf=np.zeros((0, nodes + 1), np.float32))  # fmt: skip


class Binned(msgspec.Struct, frozen=True):
    """``edges`` (traits, BINS - 1) with inf where a trait has fewer values; ``codes`` (rows, traits)."""

    edges: npt.NDArray[np.float32]
    codes: npt.NDArray[np.uint8]


def binned(values: Floats) -> Binned:
    """Values of shape (rows, traits) cut at quantiles."""
    edges = np.full((values.shape[1], BINS - 1), np.inf, np.float32)
    codes = np.zeros(values.shape, np.uint8)
    for place in range(values.shape[1]):
        column = values[:, place].astype(np.float32)
        cuts = _cuts(column)
        edges[place, : len(cuts)] = cuts
        codes[:, place] = np.searchsorted(cuts, column, side="left")
    return Binned(edges, codes)


def _cuts(column: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    distinct = np.unique(column)
    if len(distinct) <= BINS:
        return ((distinct[:-1] + distinct[1:]) / 2).astype(np.float32)
    # Quantiles of the distinct values and of the rows: neither a crowd of zeros nor a few outliers take all the cuts.
    crowd = np.quantile(column, np.linspace(0, 1, BINS // 2 + 1)[1:-1])
    spread = np.quantile(distinct, np.linspace(0, 1, BINS // 2 + 1)[1:-1])
    return np.unique(np.concatenate([crowd, spread]).astype(np.float32))


def boosted(data: Binned, answers: Floats, recipe: Recipe, rng: np.random.Generator) -> Forest:
    """A forest for ``answers`` (rows,), squared error."""
    base = float(answers.mean()) if len(answers) else 0.0
    if len(answers) < 2 * recipe.least_rows or float(np.ptp(answers)) < 1e-6:
        return constant(base, recipe.depth)
    columns = max(1, round(recipe.columns * data.codes.shape[1]))
    left = answers - base
    trees = []
    for _ in range(recipe.trees):
        chosen = rng.choice(data.codes.shape[1], size=columns, replace=False)
        seen = rng.random(len(answers)) < recipe.rows
        feature, cut, leaf = _tree(data.codes[:, chosen], left, seen, recipe)
        node = _walked(data.codes, chosen[feature], cut, recipe.depth)
        left = left - leaf[node]
        # A cut beyond the last bin sends every row left; inf says so.
        threshold = np.where(cut < BINS - 1, data.edges[chosen[feature], np.minimum(cut, BINS - 2)], np.inf)
        trees.append((chosen[feature], threshold, leaf))
    return Forest(
        base=base,
        feature=np.array([tree[0] for tree in trees], np.int16),
        threshold=np.array([tree[1] for tree in trees], np.float32),
        leaf=np.array([tree[2] for tree in trees], np.float32),
    )


def _tree(codes: npt.NDArray[np.uint8], left: Floats, seen: npt.NDArray[np.bool_], recipe: Recipe) -> tuple[Ints, Ints, Floats]:
    """One tree, level by level: (feature by node, cut by node, answer by leaf)."""
    width = codes.shape[1]
    nodes = (1 << recipe.depth) - 1
    feature, cut = np.zeros(nodes, np.int64), np.full(nodes, BINS - 1, np.int64)
    rows, answers = codes[seen], left[seen]
    place = np.zeros(len(answers), np.int64)
    columns = np.arange(width)
    for level in range(recipe.depth):
        count = 1 << level
        key = ((place[:, None] * width + columns) * BINS + rows).ravel()
        size = count * width * BINS
        sums = np.bincount(key, np.repeat(answers, width), size).reshape(count, width, BINS).cumsum(axis=2)
        held = np.bincount(key, minlength=size).reshape(count, width, BINS).cumsum(axis=2)
        best = _splits(sums, held, recipe)
        first = count - 1
        feature[first : first + count], cut[first : first + count] = best
        place = 2 * place + (rows[np.arange(len(rows)), best[0][place]] > best[1][place])
    total = np.bincount(place, answers, 1 << recipe.depth)
    held_leaf = np.bincount(place, minlength=1 << recipe.depth)
    return feature, cut, recipe.shrinkage * total / (held_leaf + recipe.ridge)


def _splits(sums: Floats, held: Ints, recipe: Recipe) -> tuple[Ints, Ints]:
    """The best (feature, cut) of each node; the cut beyond the last bin where nothing helps."""
    total, count = sums[:, :, -1:], held[:, :, -1:]
    gain = sums**2 / (held + recipe.ridge) + (total - sums) ** 2 / (count - held + recipe.ridge) - total**2 / (count + recipe.ridge)
    gain[(held < recipe.least_rows) | (count - held < recipe.least_rows)] = 0.0
    flat = gain.reshape(len(gain), -1)
    best = flat.argmax(axis=1)
    helps = flat[np.arange(len(flat)), best] > 1e-12
    return np.where(helps, best // BINS, 0), np.where(helps, best % BINS, BINS - 1)


def _walked(codes: npt.NDArray[np.uint8], feature: Ints, cut: Ints, depth: int) -> Ints:
    node = np.zeros(len(codes), np.int64)
    rows = np.arange(len(codes))
    for _ in range(depth):
        node = 2 * node + 1 + (codes[rows, feature[node]] > cut[node])
    return node - ((1 << depth) - 1)
