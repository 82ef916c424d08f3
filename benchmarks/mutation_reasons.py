"""Why a change that no test notices is no gap in the tests: most of them change nothing that can be seen."""

from __future__ import annotations

# These run while their module is imported, before mutmut switches on a change: each is made in the source instead.
AT_IMPORT = frozenset({"draw._preset"})

_EMPTY_SUM = (
    "Without a start, `sum` gives the number 0 for no terms. There always are terms, and 0 equals the fraction 0."
)
_MOST_COMMON = "Only the first of the most common is taken, however many are asked for."
_FALSY = "What is absent is asked for its truth alone, and None is as false as what stood there."
_NOT_STRICT = ("strict=None", "", "strict=False")

_REASONS: dict[str, tuple[tuple[str, str], ...]] = {
    _EMPTY_SUM: (
        (
            "aggregate._exact_scores",
            "nodes[node.name] = sum((weight * subsets[name] for name, weight in weights.items()), )",
        ),
        ("uncertainty.node_mean", "return sum((mean for mean in means if mean is not None), ) / len(means)"),
        (
            "uncertainty.effective_size",
            "return float(1 / sum((weight**2 / clusters[name] for name, weight in weights.items()), ))",
        ),
        ("uncertainty._pooled_variance", "return sum(weighted, ) / sum(sizes) ** 2"),
        (
            "uncertainty.node_variance",
            "return sum(known, ) / len(parts) ** 2 if len(known) == len(parts) else None",
        ),
    ),
    "Every part has the same share, and shares are divided by their sum: 2 each is 1 each.": (
        (
            "aggregate.subset_coefficients",
            "shares = sizes if node.combine is Combine.POOLED else [Fraction(2)] * len(present)",
        ),
    ),
    "There is a share for every part: both were made of the parts.": tuple(
        ("aggregate.subset_coefficients", f"for part, share in zip(present, shares, {strict})")
        for strict in _NOT_STRICT
    ),
    "There is a variance for every size: the line before returns where one is missing.": tuple(
        (
            "uncertainty._pooled_variance",
            f"weighted = (size**2 * variance for size, variance in zip(sizes, known, {strict}))",
        )
        for strict in _NOT_STRICT
    ),
    "No category is named like either text.": (
        ("draw.DrawSpec.take", 'percent = self.category_pct.get(category_of(subset) or "XXXX")'),
    ),
    "A draw that is not above its limit is the same whether it is returned as it is or taken row by row.": (
        ("draw._limited", "if limit is None or sum(takes.values()) < limit:"),
    ),
    "No row divided by the count leaves the count itself.": (
        ("shard.shard_owns", "return count >= 1 and 0 <= index <= count and row >= 0 and row % count == index"),
    ),
    "With one slash both parts are the same; with more than one, either way a part is no number.": (
        ("shard.Shard.parse", 'index, slash, count = text.strip().rpartition("/")'),
    ),
    "No subset's name has a dot.": (("tally.tallies_from_metrics", 'subset, _, field = rest.partition(".")'),),
    _MOST_COMMON: (
        ("merge._of_one_run", "usual = Counter(identities).most_common(None)[0][0]"),
        ("merge._of_one_run", "usual = Counter(identities).most_common(2)[0][0]"),
        ("merge._one_of_each", "count = counts.most_common(None)[0][0]"),
        ("merge._one_of_each", "count = counts.most_common(2)[0][0]"),
    ),
    _FALSY: (
        ("merge._rows", "if never_run := errors.get(NOT_RUN, None):"),
        ("merge._rows", "if never_run := errors.get(NOT_RUN, ):"),
        ("merge._one_of_each", "same = shards.get(Shard(index, count), None)"),
        ("merge._one_of_each", "same = shards.get(Shard(index, count), )"),
    ),
    "There are as many identities as records: they were made of them.": tuple(
        ("merge._of_one_run", f"for record, identity in zip(records, identities, {strict}):") for strict in _NOT_STRICT
    ),
    "A net below every other check, which should have seen it: no test can get there.": (
        ("merge.merge", "raise MergeError(None)"),
        ("merge.merge", 'raise MergeError("XXthe shards\' rows together are not the rows of the drawXX")'),
        ("merge.merge", 'raise MergeError("THE SHARDS\' ROWS TOGETHER ARE NOT THE ROWS OF THE DRAW")'),
    ),
    "No text without a digit is a number of rows.": (
        (
            "gate._verify_rows",
            'rows = next((part[2:] for part in said.split(";") if part.startswith("n=")), "XXXX")',
        ),
    ),
    "To JSON, None is as false as False.": (
        ("gate._shown", "return shortened(json.dumps(value, ensure_ascii=None, default=_for_json))"),
    ),
    "Every row is one of the draw by then: those that are not were refused before.": (
        ("merge._place", "return lambda row: places.get(row.id, None)"),
        ("merge._place", "return lambda row: places.get(row.id, )"),
    ),
}
_REASON_OF = {change: reason for reason, changes in _REASONS.items() for change in changes}


def reason_of(function: str, after: str) -> str | None:
    """Give the reason of a change, which is known by its function and the line it leaves there."""
    return _REASON_OF.get((function, after))
