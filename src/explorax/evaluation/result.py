"""What an evaluation found: values with intervals, diagnostics, assumptions, and an answer in a sentence or two."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from explorax.errors import UnknownName
from explorax.evaluation.diagnostics import Diagnosis
from explorax.evaluation.values import COLUMNS, PolicyValue, as_text
from explorax.extras import optional
from explorax.files import write_atomically


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a log says of several policies: the result of `explorax.evaluate`.

    `print(evaluation)` shows all of it, and `evaluation["name"]` is the value of a policy by the first estimator.

    Attributes:
        rows: The values: that of the policy that made the log first, then those of each policy by each estimator.
        diagnostics: What the weights of each policy say of how far the log can be trusted, by name.
        assumptions: What the numbers rest on, in sentences.
        answer: What the log says, in one or two sentences, or that it cannot tell.
        random: Whether the rule that made the log left anything to chance; if not, the log cannot judge policies that
            choose differently.
    """

    rows: tuple[PolicyValue, ...]
    diagnostics: Mapping[str, Diagnosis]
    assumptions: tuple[str, ...]
    answer: str
    random: bool = True

    def __getitem__(self, target: str) -> PolicyValue:
        found = {row.target: row for row in reversed(self.rows)}
        if target not in found:
            raise UnknownName("policy", target, found)
        return found[target]

    def __str__(self) -> str:
        parts = [self.answer, as_text(self.rows)]
        looks = [f"  {name}: {' '.join(worst(one))}" for name, one in self.diagnostics.items()]
        parts += ["\n".join(["Diagnostics:", *looks])] if looks else []
        parts += ["\n".join(["Assumptions:", *(f"  {text}" for text in self.assumptions)])]
        return "\n\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return all that was found as plain data.

        Returns:
            Lists, dictionaries, texts, numbers, bools and None.
        """
        return {
            "answer": self.answer,
            "rows": [row.to_dict() for row in self.rows],
            "diagnostics": {name: plain(one) for name, one in self.diagnostics.items()},
            "assumptions": list(self.assumptions),
        }

    def to_json(self) -> str:
        """Return all that was found as JSON, in which every number is finite.

        Returns:
            The text.
        """
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=2)

    def to_pandas(self) -> Any:
        """Return the values as a table with one line for each policy and estimator.

        Returns:
            A pandas DataFrame.

        Raises:
            ImportError: If pandas is not installed.
        """
        pandas: Any = optional("pandas", "a table of values", "log")
        return pandas.DataFrame([row.to_dict() for row in self.rows], columns=list(COLUMNS))

    def write(self, directory: str | os.PathLike[str]) -> list[Path]:
        """Write all that was found into a directory: results.json, table.csv, forest.png, forest.pdf and index.html.

        Args:
            directory: The directory, which is made if it is missing.

        Returns:
            The paths of the files, each of which is there whole or not at all.

        Raises:
            CannotWrite: If a file could not be written.
            ImportError: If matplotlib is not installed.
        """
        optional("matplotlib", "a figure")
        from explorax.evaluation import figure, page
        from explorax.plot import to_bytes

        drawn = figure.draw(self.rows)
        pictures = {f"forest.{kind}": to_bytes(drawn, kind) for kind in ("png", "pdf")}
        contents = {
            "results.json": (self.to_json() + "\n").encode(),
            "table.csv": as_csv(self.rows).encode(),
            **pictures,
            "index.html": page.render(self.to_dict(), pictures["forest.png"]).encode(),
        }
        for name, content in contents.items():
            write_atomically(Path(directory) / name, content)
        return [Path(directory) / name for name in contents]


def worst(diagnosis: Diagnosis) -> list[str]:
    """Return the verdict of a diagnosis, and the two worst findings if it is not that all is well."""
    return diagnosis.sentences()[: 1 if diagnosis.verdict == "yes" else 3]


def plain(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return a diagnosis as plain data, with its verdict and sentences."""
    found = diagnosis._asdict() | {"calibration": [each._asdict() for each in diagnosis.calibration]}
    return {"verdict": diagnosis.verdict, "sentences": diagnosis.sentences()} | found


def as_csv(rows: tuple[PolicyValue, ...]) -> str:
    """Return the values as comma-separated text, with nothing between commas where there is no value."""
    import csv
    import io

    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(row.to_dict() for row in rows)
    return text.getvalue()
