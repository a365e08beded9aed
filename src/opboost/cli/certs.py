"""``opboost certs``: certificates for trying things out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opboost.cli.common import Format, FormatOption, print_json, stderr

certs = typer.Typer(help="A development authority and party certificates.", no_args_is_help=True)


@certs.command()
def new(
    name: Annotated[str, typer.Argument(help="The party's name.")],
    dir: Annotated[Path, typer.Option("--dir", help="Where authority and kits are kept.")],
    days: Annotated[int, typer.Option(min=1, help="How long the certificate is good.")] = 397,
    format: FormatOption = Format.text,
) -> None:
    """Make a party's kit: ca.pem, cert.pem and keys.  The authority is made with the first.

    \b
    Examples:
      opboost certs new bank --dir certs
      opboost certs new shop --dir certs --days 90
    """
    from opboost.transport.shared.development_certificates import new_kit

    kit = new_kit(name, dir, days=days)
    if format is Format.json:
        print_json({"party": name, "kit": str(kit)})
    else:
        typer.echo(str(kit))
    stderr().print(
        f"Hand {kit} to party {name!r} alone, and keep {dir / 'ca' / 'ca.key'} to yourself: "
        "whoever has it can act as any party. "
        f"For bundles, hand {dir / name}.public to every other party."
    )


@certs.command()
def encryption(
    kit: Annotated[Path, typer.Argument(help="A folder with ca.pem, cert.pem and key.pem.")],
    key: Annotated[
        Path | None, typer.Option(help="Where the encryption key is, if not in the kit.")
    ] = None,
    format: FormatOption = Format.text,
) -> None:
    """Add to a kit what bundles need: encryption.key, and beside the kit NAME.public.

    An encryption key that is there is kept; its public half is certified anew, which is also what a
    renewed certificate needs.

    \b
    Examples:
      opboost certs encryption certs/bank
      opboost certs encryption certs/bank --key /secure/bank.key
    """
    from opboost.transport.shared.development_certificates import add_encryption

    public = add_encryption(kit, key)
    if format is Format.json:
        print_json({"kit": str(kit), "public": str(public)})
    else:
        typer.echo(str(public))
    stderr().print(
        f"Hand {public} to the other parties; {key or kit / 'encryption.key'} stays here."
    )
