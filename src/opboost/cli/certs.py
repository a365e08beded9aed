"""``opboost certs``: certificates for development."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opboost.cli.common import Format, FormatOption, print_json, stderr

certs = typer.Typer(help="Make certificates for development.", no_args_is_help=True)


@certs.command()
def new(
    name: Annotated[str, typer.Argument(help="The party's name.")],
    dir: Annotated[Path, typer.Option("--dir", help="Folder for the authority and the kits.")],
    days: Annotated[
        int, typer.Option(min=1, help="Days for which the certificate is valid.")
    ] = 397,
    format: FormatOption = Format.text,
) -> None:
    """Make a party's kit: ca.pem, cert.pem and keys.  The first call also makes the authority.

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
        f"Give {kit} only to party {name!r}, and keep {dir / 'ca' / 'ca.key'} to yourself: anybody "
        f"who has it can act as any party. For bundles, give {dir / name}.public to every other "
        "party."
    )


@certs.command()
def encryption(
    kit: Annotated[Path, typer.Argument(help="A folder with ca.pem, cert.pem and key.pem.")],
    key: Annotated[
        Path | None, typer.Option(help="The encryption key, if it is not in the kit.")
    ] = None,
    format: FormatOption = Format.text,
) -> None:
    """Add what bundles need: encryption.key in the kit, and NAME.public beside the kit.

    It keeps an existing encryption key and certifies its public half again; run it after renewing a
    certificate, too.

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
        f"Give {public} to the other parties; {key or kit / 'encryption.key'} stays here."
    )
