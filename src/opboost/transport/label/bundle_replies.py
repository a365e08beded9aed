"""The contents of the label party's bundles: points, common rows, weights, split queries."""

from __future__ import annotations

from pathlib import Path

from opboost.protocol.messages import Rows, encode
from opboost.transport.label.job_folder import JobRecord, PartyFolder, newest_receipt
from opboost.transport.label.job_terms import welcome_to
from opboost.transport.shared.bundle_chain import WEIGHTS, BundleChain, Step
from opboost.transport.shared.bundle_file import Source
from opboost.transport.shared.bundle_steps import Tools
from opboost.transport.shared.logs import Log


class BundleReplies:
    """Writes a job's bundles for its feature parties."""

    def __init__(self, folder: Path, record: JobRecord, tools: Tools) -> None:
        self._folder, self._record, self._tools = folder, record, tools
        self._log = Log(folder / "label.jsonl")

    def write_due(self, peer: str, chain: BundleChain) -> None:
        """Write a party's next bundle, if it is the label party's turn and the job is ready."""
        step = chain.due()
        if step is None or not step.by_label_party:
            return
        sources = self._sources(peer, step)
        if sources:
            chain.write(sources, self._tools.identity, self._tools.public(peer))
            self._log.write("wrote", job=self._record.job, peer=peer, step=step.number)

    def _sources(self, peer: str, step: Step) -> dict[str, Source]:
        box = PartyFolder(self._folder, peer)
        if step.number == 5:
            return {"query": box.read("query"), **self._proof(box)} if box.has("query") else {}
        if step.number == 3:
            return {"aligned": box.read("aligned")} if box.has("aligned") else {}
        score: dict[str, Source] = {"score": box.read("score")} if box.has("score") else {}
        first = {**self._welcome(peer), **score, **self._rows(box)}
        if step == WEIGHTS:
            if not box.has("weights"):
                return {}
            return {**first, "weights": box.read("weights"), **self._proof(box)}
        points = sorted((self._folder / "align" / peer).glob("*.label"))
        return {**first, **{file.name: file for file in points}}

    def _welcome(self, peer: str) -> dict[str, Source]:
        """Return the item with the job's terms and the party's newest receipt."""
        receipt = newest_receipt(self._folder.parent, peer)
        told = welcome_to(PartyFolder(self._folder, peer), self._record, receipt)
        return {"welcome": encode(told)}

    def _rows(self, box: PartyFolder) -> dict[str, Source]:
        """Return the item with which the party compares its given rows before it draws."""
        if self._record.align != "given":
            return {}
        rows, ids = box.expected(self._record)
        return {"rows": encode(Rows(self._record.label_party, self._record.job, rows, ids))}

    def _proof(self, box: PartyFolder) -> dict[str, Source]:
        """Return the proof that the label party opened the last release, if rows are aligned."""
        return {} if self._record.align == "given" else {"proof": box.read("proved")}
