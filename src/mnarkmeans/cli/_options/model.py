"""What is fitted: one model, or the choice among many."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from .panels import of_model

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A folder written by fit or select.")]


def parse_lam(text: str) -> float | str:
    """'auto' or a number >= 0."""
    if text.strip().lower() == "auto":
        return "auto"
    value = as_number(text)
    if value is None or not value >= 0 or math.isinf(value):
        raise typer.BadParameter(f"must be auto or a number of at least 0, not {text!r}")
    return value


def parse_lams(text: str) -> list[float] | str:
    """'auto' or numbers with commas between them."""
    if text.strip().lower() == "auto":
        return "auto"
    found = []
    for part in text.split(","):
        value = as_number(part)
        if value is None or not value >= 0 or math.isinf(value):
            raise typer.BadParameter(
                f"must be auto or numbers such as 0,0.1,1, but one is {part!r}"
            )
        found.append(value)
    return found


def parse_clusters(text: str) -> list[int]:
    """'4', '2,3,5' or '2:8' (both ends included)."""
    try:
        if ":" in text:
            first, last = (int(part) for part in text.split(":"))
            numbers = list(range(first, last + 1))
        else:
            numbers = sorted({int(part) for part in text.split(",")})
    except ValueError:
        numbers = []
    if not numbers or numbers[0] < 1:
        raise typer.BadParameter(
            f"must be a number such as 4, a list 2,3,5 or a range 2:8, not {text!r}"
        )
    return numbers


def as_number(text: str) -> float | None:
    """The number that a text is, or None."""
    try:
        return float(text)
    except ValueError:
        return None


class Criterion(StrEnum):
    """How candidates are judged; the words of MNARKMeansCV."""

    score = "score"
    paper = "paper"


Clusters = Annotated[int, of_model("-k", "--clusters", min=1, help="Number of clusters.")]
Starts = Annotated[int, of_model("--starts", min=1, help="Number of starts; the best one is kept.")]
Seed = Annotated[int, of_model("--seed", min=0, help="The same seed gives the same result.")]
Jobs = Annotated[int | None, of_model("--jobs", min=1, help="Number of threads (else all cores).")]
Scheduler = Annotated[
    str | None,
    of_model(
        "--scheduler",
        metavar="ADDRESS",
        help="A running Dask cluster to fit on, such as tcp://host:8786; its workers must see the "
        "table under the same path.",
    ),
]


@dataclass(frozen=True)
class Fitting:
    """One model."""

    clusters: Clusters
    lam: Annotated[
        Any,
        of_model(
            "--lam",
            metavar="auto|NUMBER",
            parser=parse_lam,
            help="Penalty of the gaps; auto estimates it from the data.",
        ),
    ] = "auto"
    starts: Starts = 20
    max_iter: Annotated[int, of_model("--max-iter", min=1, help="Most iterations of a start.")] = (
        300
    )
    seed: Seed = 0
    jobs: Jobs = None

    def params(self) -> dict[str, Any]:
        """Parameters of MNARKMeans."""
        return {
            "n_clusters": self.clusters,
            "lam": self.lam,
            "n_init": self.starts,
            "max_iter": self.max_iter,
            "random_state": self.seed,
            "n_jobs": self.jobs,
        }


@dataclass(frozen=True)
class Searching:
    """The choice of a model."""

    clusters: Annotated[
        Any,
        of_model(
            "-k",
            "--clusters",
            metavar="K",
            parser=parse_clusters,
            help="Numbers of clusters: 4, 2,3,5 or 2:8.",
        ),
    ]
    lams: Annotated[
        Any,
        of_model(
            "--lams", metavar="auto|LIST", parser=parse_lams, help="Candidates, such as 0,0.1,1,10."
        ),
    ] = "auto"
    criterion: Annotated[Criterion, of_model("--criterion", help="How candidates are judged.")] = (
        Criterion.score
    )
    splits: Annotated[
        int | None, of_model("--splits", min=2, help="Number of splits of the rows.")
    ] = None
    starts: Starts = 10
    seed: Seed = 0
    jobs: Jobs = None

    def params(self) -> dict[str, Any]:
        """Parameters of MNARKMeansCV."""
        return {
            "n_clusters": self.clusters,
            "lams": self.lams,
            "criterion": str(self.criterion),
            "n_splits": self.splits,
            "n_init": self.starts,
            "random_state": self.seed,
            "n_jobs": self.jobs,
        }
