"""``opboost bundle``: the protocol over files, for parties that are not allowed to connect."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opboost.cli.common import (
    ConfigOption,
    Format,
    FormatOption,
    NewLedgerOption,
    echo,
    echo_promise,
    print_json,
    record_line,
    stderr,
    steps_progress,
    warn_of_total,
)
from opboost.cli.predict import Release, left_out, write_predictions
from opboost.errors import ConfigError

if TYPE_CHECKING:
    from opboost.transport.shared.bundle_steps import BundleOutcome

bundle = typer.Typer(
    help="Run a job through encrypted files, for parties that are not allowed to connect.",
    no_args_is_help=True,
)

ToOption = Annotated[Path, typer.Option("--to", help="Folder for the bundles to carry.")]
Given = Annotated[Path, typer.Argument(help="The bundle from the label party.")]
AllGiven = Annotated[list[Path], typer.Argument(help="The bundles from the feature parties.")]


@bundle.command()
def align(
    config: ConfigOption,
    to: ToOption,
    given: Annotated[
        list[Path] | None, typer.Argument(help="The bundles received; none to begin a job.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Begin a new run of a job that has already begun.")
    ] = False,
    model: Annotated[
        Path | None, typer.Option(help="With --release score: the model to score with.")
    ] = None,
    release: Annotated[
        Release, typer.Option(help="In a prediction: request columns or a score.")
    ] = Release.columns,
    new_ledger: NewLedgerOption = False,
    format: FormatOption = Format.text,
) -> None:
    """Begin a job (label party), or find the rows that the parties have in common.

    \b
    Examples:
      opboost bundle align -c bank.toml --to out
      opboost bundle align -c shop.toml in/credit-1.bundle --to out
      opboost bundle align -c bank.toml --to out --again
      opboost bundle align -c bank-predict.toml --to out --release score --model m.opboost
    """
    from opboost.config.job_file import is_label_party, load_label

    if (release is Release.score) != (model is not None):
        raise ConfigError("--release score and --model need each other: a score is a model's.")
    if is_label_party(config):
        from opboost.transport.label.label_bundles import begin, go_on

        if given and again:
            raise ConfigError("--again begins a new run, so it takes no bundle.")
        if new_ledger:
            raise ConfigError("--new-ledger is for a feature party: the label party has no ledger.")
        if given and model is not None:
            raise ConfigError("Give --release score when a job begins, without a bundle.")
        found = load_label(config)
        begun = partial(begin, found, to, again=again, score=model)
        outcome = go_on(found, "align", given, to) if given else begun()
        _tell(outcome, format)
        return
    if model is not None:
        raise ConfigError("--release score is for the label party, which begins the job.")
    if again or not given or len(given) > 1:
        raise ConfigError("A feature party takes one bundle, from the label party.")
    _feature(config, "align", given[0], to, new_ledger, format)


def _feature_verb(verb: str, help: str) -> None:
    """Add a command with which a feature party answers one bundle of the label party."""

    @bundle.command(verb, help=help)
    def run(
        config: ConfigOption,
        given: Given,
        to: ToOption,
        new_ledger: NewLedgerOption = False,
        format: FormatOption = Format.text,
    ) -> None:
        _feature(config, verb, given, to, new_ledger, format)


_feature_verb(
    "export",
    """Feature party: desensitise once, and write codes for the label party.

    If the budget has a pilot, it first writes the pilot's codes.  Given the label party's weights,
    it then writes everybody's codes.

    \b
    Example:
      opboost bundle export -c shop.toml in/credit-3.bundle --to out
    """,
)


@bundle.command()
def split_query(
    config: ConfigOption, given: AllGiven, to: ToOption, format: FormatOption = Format.text
) -> None:
    """Label party: train, and write the queries for the values at the model's split points.

    It first answers pilots with column weights, and trains once it has all releases.

    \b
    Example:
      opboost bundle split-query -c bank.toml in/credit-4.bundle --to out
    """
    _label(config, "split-query", given, to, format)


_feature_verb(
    "answer",
    """Feature party: answer the label party's split query, once.

    \b
    Example:
      opboost bundle answer -c shop.toml in/credit-5.bundle --to out
    """,
)


@bundle.command()
def finish(
    config: ConfigOption,
    given: AllGiven,
    model: Annotated[Path | None, typer.Option(help="In a prediction: the model to use.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="In a prediction: CSV or Parquet to write.")
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(help="In a prediction: a feature party of the model that does not take part."),
    ] = None,
    format: FormatOption = Format.text,
) -> None:
    """Label party: put the values into the model and write it, or write predictions.

    \b
    Examples:
      opboost bundle finish -c bank.toml in/credit-6.bundle
      opboost bundle finish -c bank-predict.toml in/new-4.bundle --model m.opboost -o answers.csv
    """
    from opboost.config.job_file import load_label
    from opboost.files.write_tables import check_new
    from opboost.transport.label.label_bundles import predict

    found = load_label(config)
    if found.job.purpose == "train":
        if model or out or without:
            raise ConfigError(
                "--model, --out and --without are for a prediction, and this job trains."
            )
        _label(config, "finish", given, config.parent, format)
        return
    if model is None or out is None:
        raise ConfigError(f"Job {found.job.name!r} is a prediction. Add --model MODEL --out FILE.")
    check_new(out)
    _tell(predict(found, given, model, partial(write_predictions, out=out), without or ()), format)


def _label(config: Path, verb: str, given: list[Path], to: Path, format: Format) -> None:
    from opboost.config.job_file import load_label
    from opboost.transport.label.label_bundles import go_on

    _tell(go_on(load_label(config), verb, given, to), format)


def _feature(
    config: Path, verb: str, given: Path, to: Path, new_ledger: bool, format: Format
) -> None:
    from opboost.config.job_file import load_feature
    from opboost.transport.feature.feature_bundles import go_on

    with steps_progress() as progress:
        found = load_feature(config)
        if verb == "export":  # before anything is released
            warn_of_total(found.plan.total)
        outcome = go_on(found, verb, given, to, progress=progress, new_ledger=new_ledger)
    _tell(outcome, format)


def _tell(outcome: BundleOutcome, format: Format) -> None:
    if format is Format.json:
        print_json(
            {
                "job": outcome.job,
                "written": [
                    {"path": str(w.path), "for": w.recipient, "step": w.step.number, "next": w.next}
                    for w in outcome.written
                ],
                "waiting": {party: step.verb for party, step in outcome.waiting.items()},
                "manifest": outcome.manifest,
            }
        )
        return
    console = stderr()
    for written in outcome.written:
        echo(str(written.path))
        console.print(
            f"{written.step} of job {outcome.job}, for {written.recipient}, which continues with: "
            f"opboost bundle {written.next} -c {written.recipient}.toml "
            f"{written.path.name}{written.options}"
        )
    for party, step in outcome.waiting.items():
        console.print(f"Waiting for {party}: {step}.")
    if outcome.manifest is not None:
        echo_promise(outcome.manifest["guarantee"])
        if "model" in outcome.manifest:
            console.print(f"The job is done: {outcome.manifest['model']} is written.")
        if outcome.manifest.get("left_out"):
            console.print(left_out(outcome.manifest))
        if "score_line" in outcome.manifest:
            echo(outcome.manifest["score_line"])
        echo(record_line(outcome.manifest["total"]))
