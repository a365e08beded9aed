"""``opboost score``: serve a model's scores over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from opboost.cli.common import Format, FormatOption, print_json, stderr


def score(
    model: Annotated[Path, typer.Argument(help="A model that opboost train or serve wrote.")],
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.")] = 8080,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    name: Annotated[
        str | None, typer.Option(help="The model's name over HTTP; default: that of its file.")
    ] = None,
    released: Annotated[
        list[Path] | None,
        typer.Option(help="Folder of a stored release: score its people by their ID."),
    ] = None,
    id: Annotated[
        list[str] | None,
        typer.Option("--id", help="With --released: the column that names the person."),
    ] = None,
    unknown: Annotated[
        Literal["refuse", "missing"],
        typer.Option(help="How to treat categories that a private column does not declare."),
    ] = "refuse",
    key_file: Annotated[
        Path | None,
        typer.Option(help="File with the API key; default: OPBOOST_SCORE_KEY in the environment."),
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="PEM file with the certificate.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="PEM file with the private key.")] = None,
    max_rows: Annotated[int, typer.Option(min=1, help="Maximum rows per request.")] = 10_000,
    max_bytes: Annotated[int, typer.Option(min=1024, help="Maximum bytes per request.")] = 16 << 20,
    insecure_without_key: Annotated[
        bool,
        typer.Option("--insecure-without-key", help="Listen beyond this machine without a key."),
    ] = False,
    format: FormatOption = Format.text,
) -> None:
    """Score rows over HTTP: Open Inference Protocol v2 (/v2/...) and plain JSON (/score).

    Rows stay in memory while they are scored; no value and no ID is logged or counted.

    \b
    Examples:
      opboost score m.opboost --port 8080
      opboost score m.opboost --host 0.0.0.0 --key-file key --tls-cert cert.pem --tls-key key.pem
      opboost score m.opboost --released released --id customer
    """
    from opboost.runtime.extras import needs_extra

    with needs_extra("score", "`opboost score`"):
        from opboost.scoring.api_key import check_listening, is_loopback, read_key
        from opboost.scoring.score_server import Limits, serve, tls_context
    from opboost.errors import ConfigError
    from opboost.estimators import load
    from opboost.scoring.released_people import ReleasedPeople
    from opboost.scoring.scorer import Scorer, model_name

    if id and not released:
        raise ConfigError("--id needs --released.")
    key = read_key(key_file)
    check_listening(host, key, open_to_all=insecure_without_key)
    context = tls_context(tls_cert, tls_key)
    estimator = load(model)
    people = ReleasedPeople(released, id or [], estimator) if released else None
    scorer = Scorer(estimator, name or model_name(model), released=people, unknown=unknown)
    scorer.warm_up()
    console = stderr()
    if key is not None and context is None and not is_loopback(host):
        console.print("Without --tls-cert, others on the network can read the key and the rows.")

    def opened(address: str) -> None:
        if format is Format.json:
            print_json({"address": address, "model": scorer.name})
        else:
            typer.echo(address)
        if people is not None:
            console.print(f"{len(people):,} people of stored releases can be scored by their ID.")
        console.print(f"Model {scorer.name!r} is ready. Ctrl-C or SIGTERM stops the server.")

    serve(
        scorer,
        Limits(max_rows, max_bytes),
        host=host,
        port=port,
        key=key,
        context=context,
        opened=opened,
    )
