"""The certificate: every change of a finished run is named, runs of every kind verify, and anybody can price them."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from typer.testing import CliRunner

import reticent as rt
from reticent.accounting import Entry, Gaussian, Ledger, Mark, Subsampled
from reticent.accounting.ledger import read_entries
from reticent.audits.stored import check_stored
from reticent.certificate import Verified, read_card
from reticent.certificate.card import digest_of
from reticent.cli import app
from reticent.data import Schema
from reticent.errors import DataError, FileWarning, ResumeError
from reticent.experiments.recipe import Recipe
from reticent.experiments.training import train
from reticent.results import LedgerFacts, read_result
from reticent.results.sealing import seal, unseal


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a recipe, with a mean released before it."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    train(Recipe(data="digits", epsilon=3.0, epochs=2.0, batch_size=256.0, centre=50.0, seed=0), folder)
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return shutil.copytree(finished, tmp_path / "run")


def fitted(pair: tuple[Tensor, Tensor], folder: Path | None = None, **settings: Any) -> rt.Trained:
    settings = {"epsilon": 3.0, "epochs": 2, "size": 200, "batch_size": 40, "seed": 0} | settings
    torch.manual_seed(0)
    return rt.fit(nn.Linear(4, 2), pair, folder=folder, **settings)


def resealed(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a file of JSON and make its checksum right again."""
    data = unseal(json.loads(path.read_text()), str(path))
    assert isinstance(data, dict)
    change(data)
    path.write_bytes(seal(data, indent=2))


def rewritten(path: Path, change: Callable[[Entry], Entry | None]) -> None:
    """Change the entries of a ledger and make its chain right again."""
    entries = [new for entry in read_entries(path) if (new := change(entry)) is not None]
    path.unlink()
    ledger = Ledger(path)
    for entry in entries:
        ledger.record(entry)


def louder(entry: Entry) -> Entry:
    """The same with nine times the noise: it costs much less."""
    match entry.event:
        case Subsampled(rate, Gaussian(noise)):
            return replace(entry, event=Subsampled(rate, Gaussian(9 * noise)))
    raise AssertionError(entry)


# -- runs that are as they were made -----------------------------------------------------------------------------------


def test_a_finished_run_verifies_and_says_what_was_looked_at(finished: Path) -> None:
    found = rt.verify(finished)
    assert found.ok, str(found)
    names = ["card", "weights", "result", "ledger", "centre", "releases", "plan", "price", "second opinion"]
    assert [check.name for check in found.checks] == names
    assert all(check.ok and check.looked and not check.remedy for check in found.checks)
    assert found.guarantee == read_result(finished).guarantee
    assert check_stored(finished, read_result(finished).guarantee).holds


def test_neither_torch_nor_the_data_is_needed(finished: Path) -> None:
    code = f"import sys, reticent as rt; print(rt.verify({str(finished)!r}).ok, 'torch' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["True", "False"]


def test_what_fit_leaves_in_a_folder_and_what_save_writes_verify(blobs: tuple[Tensor, Tensor], tmp_path: Path) -> None:
    trained = fitted(blobs, tmp_path / "run")
    trained.save(tmp_path / "model")
    fitted(blobs).save(tmp_path / "memory")
    for name, ledger in (("run", True), ("model", False), ("memory", False)):
        found = rt.verify(tmp_path / name)
        assert found.ok, str(found)
        assert ("ledger" in [check.name for check in found.checks]) == ledger
        again = rt.load(tmp_path / name, nn.Linear(4, 2))
        assert (again.guarantee, again.charged) == (trained.guarantee, trained.charged)
        again.save(tmp_path / "again")
        assert rt.verify(tmp_path / "again").ok
    assert read_card(tmp_path / "memory").charged == read_card(tmp_path / "model").charged
    fitted(blobs, tmp_path / "run", resume=True)
    assert rt.verify(tmp_path / "run").ok


@pytest.mark.parametrize("name", rt.methods.names())
def test_runs_of_every_method_verify(name: str, blobs: tuple[Tensor, Tensor], tmp_path: Path) -> None:
    options: dict[str, Any] = {}
    if name == "sa_dpsgd":
        options = {"holdout": (torch.randn(20, 4), torch.arange(20) % 2), "holdout_is_public": True}
    if name == "dpsur":
        options = {"epsilon": None, "noise_multiplier": 4.0}
    if name == "pd_sgd":
        options = {"epsilon": None}
    fitted(blobs, tmp_path, method=name, size=None, delta=1e-4, **options)
    found = rt.verify(tmp_path)
    assert found.ok, str(found)
    price = {check.name: check for check in found.checks}["price"]
    assert price.looked == (name != "pd_sgd")


def test_a_run_that_is_left_early_is_priced_as_it_was_planned(blobs: tuple[Tensor, Tensor], tmp_path: Path) -> None:
    net = nn.Linear(4, 2)
    run = rt.Run(
        net,
        torch.optim.SGD(net.parameters(), lr=0.1),
        blobs,
        method=rt.methods.dpsgd(noise_multiplier=2.0),
        batch_size=20,
        rounds=5,
        seed=0,
        folder=tmp_path,
    )
    run.step()
    rt.Trained.of(run).save(tmp_path)
    found = rt.verify(tmp_path)
    assert found.ok, str(found)
    assert "1 of 5 planned releases" in str(found)


def test_a_model_that_claims_nothing_verifies_as_such(tmp_path: Path) -> None:
    train(Recipe(data="digits", method="advreg", epochs=1.0, seed=0), tmp_path)
    found = rt.verify(tmp_path)
    assert found.ok, str(found)
    assert [check.name for check in found.checks if not check.looked] == ["plan", "price", "second opinion"]


# -- every change is named ---------------------------------------------------------------------------------------------


def cut(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:4]))


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def other_weights(path: Path) -> None:
    tensors = load_file(path)
    next(iter(tensors.values())).add_(1.0)
    save_file(tensors, path)


def set_epsilon(data: dict[str, Any]) -> None:
    data["guarantee"]["epsilon"] = 1.0


LEDGER, CARD, WEIGHTS, RESULT = "ledger.jsonl", "card.json", "model.safetensors", "result.json"
Damage = tuple[str, Callable[[Path], object], list[str]]
DAMAGES: dict[str, Damage] = {
    "ledger cut": (LEDGER, cut, ["ledger", "releases"]),
    "ledger deleted": (LEDGER, Path.unlink, ["ledger"]),
    "ledger emptied": (LEDGER, lambda path: path.write_bytes(b""), ["ledger", "releases"]),
    "ledger flipped": (LEDGER, flip, ["ledger"]),
    "ledger longer": (LEDGER, lambda path: path.write_bytes(path.read_bytes() + b'{"length":'), ["ledger"]),
    "halved, chained anew": (
        LEDGER,
        lambda path: rewritten(path, lambda entry: entry if entry.round % 2 else None),
        ["ledger", "releases"],
    ),
    "ninefold noise, chained anew": (LEDGER, lambda path: rewritten(path, louder), ["ledger", "releases"]),
    "other seals, chained anew": (
        LEDGER,
        lambda path: rewritten(path, lambda entry: replace(entry, seal="0" * 32)),
        ["ledger"],
    ),
    "centre deleted": ("centre.jsonl", Path.unlink, ["centre"]),
    "centre emptied": ("centre.jsonl", lambda path: path.write_bytes(b""), ["centre", "releases"]),
    "card edited": (CARD, lambda path: path.write_text(path.read_text().replace("2.9999", "1.9999")), ["card"]),
    "card deleted": (CARD, Path.unlink, ["card"]),
    "card emptied": (CARD, lambda path: path.write_text(""), ["card"]),
    "card flipped": (CARD, flip, ["card"]),
    "card edited, sealed anew": (
        CARD,
        lambda path: resealed(path, set_epsilon),
        ["result", "price", "second opinion"],
    ),
    "tally on the card cut": (
        CARD,
        lambda path: resealed(path, lambda data: data["charged"]["released"][0].update(count=1)),
        ["releases", "plan"],
    ),
    "weights flipped": (WEIGHTS, flip, ["weights"]),
    "weights deleted": (WEIGHTS, Path.unlink, ["weights"]),
    "other weights": (WEIGHTS, other_weights, ["weights"]),
    "result edited": (RESULT, lambda path: path.write_text(path.read_text().replace("0.9", "0.8")), ["result"]),
    "result edited, sealed anew": (RESULT, lambda path: resealed(path, set_epsilon), ["result"]),
    "result deleted": (RESULT, Path.unlink, ["result"]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_every_change_of_a_finished_run_is_named(run: Path, damage: str) -> None:
    name, change, wrong = DAMAGES[damage]
    change(run / name)
    before = {path: path.read_bytes() for path in run.iterdir() if path.is_file()}
    found = rt.verify(run)
    assert found.wrong == wrong, str(found)
    assert all(check.remedy for check in found.checks if not check.ok)
    assert before == {path: path.read_bytes() for path in run.iterdir() if path.is_file()}, "something was written"


@pytest.mark.parametrize("damage", [name for name in DAMAGES if not name.startswith("result")])
def test_an_audit_sees_every_change_too(run: Path, finished: Path, damage: str) -> None:
    name, change, wrong = DAMAGES[damage]
    change(run / name)
    guarantee = read_result(finished).guarantee
    found = check_stored(run, guarantee)
    assert not found.holds
    assert found.figures["wrong"] == wrong
    if damage == "ledger flipped":
        assert "ledger.jsonl is damaged" in found.says


def test_every_byte_of_card_and_weights_counts(blobs: tuple[Tensor, Tensor], tmp_path: Path) -> None:
    fitted(blobs).save(tmp_path)
    weights = (tmp_path / WEIGHTS).read_bytes()
    for place in range(0, len(weights), 7):
        (tmp_path / WEIGHTS).write_bytes(weights[:place] + bytes([weights[place] ^ 4]) + weights[place + 1 :])
        with pytest.raises(ResumeError, match="not what the guarantee beside it is for"):
            rt.load(tmp_path, nn.Linear(4, 2))
    (tmp_path / WEIGHTS).write_bytes(weights)
    data = json.loads((tmp_path / CARD).read_text())
    for name in data:
        (tmp_path / CARD).write_text(json.dumps({key: value for key, value in data.items() if key != name}))
        with pytest.raises(DataError, match=r"card\.json.* changed"):
            rt.load(tmp_path, nn.Linear(4, 2))


def test_whatever_is_written_beside_the_weights_is_named(blobs: tuple[Tensor, Tensor], tmp_path: Path) -> None:
    fitted(blobs).save(tmp_path, {"notes.txt": b"as they were"})
    assert rt.verify(tmp_path).ok
    (tmp_path / "notes.txt").write_bytes(b"as they are")
    assert rt.verify(tmp_path).wrong == ["notes"]


def test_how_examples_are_read_is_bound_to_the_weights(tmp_path: Path) -> None:
    schema = Schema.from_json({"label": "y", "classes": ["a", "b"], "columns": {"age": {"low": 0, "high": 100}}})
    people = rt.data.table({"age": list(range(100)), "y": list("ab" * 50)}, schema)
    rt.fit(nn.Linear(1, 2), people, epsilon=3.0, epochs=1, seed=0).save(tmp_path)
    assert rt.verify(tmp_path).ok, str(rt.verify(tmp_path))
    path = tmp_path / "schema.json"
    path.write_text(path.read_text().replace("100", "200"))
    assert rt.verify(tmp_path).wrong == ["schema"]
    with pytest.raises(ResumeError, match=r"schema\.json is damaged"):
        rt.load(tmp_path, nn.Linear(1, 2))


def test_added_epsilons_are_no_way_round_the_price(run: Path) -> None:
    resealed(run / CARD, lambda data: (set_epsilon(data), data["guarantee"].update(accountant="sum")))
    (run / RESULT).unlink()
    resealed(run / CARD, lambda data: data["files"].pop(RESULT))
    assert rt.verify(run).wrong == ["price", "second opinion"]


def test_a_fingerprint_that_was_published_tells_a_forgery_that_is_right_in_itself(run: Path) -> None:
    known = rt.verify(run).fingerprint
    other_weights(run / WEIGHTS)
    resealed(run / CARD, lambda data: data["files"].update({WEIGHTS: digest_of(run / WEIGHTS)}))
    assert rt.verify(run).ok, "whoever can write everything can forge: docs/verify.md says so"
    assert rt.verify(run, fingerprint=known).wrong == ["card"]


def test_a_record_that_says_otherwise_is_named(run: Path) -> None:
    from reticent.experiments.job import store_record

    facts = LedgerFacts(entries=12, sha256=digest_of(run / LEDGER))
    record = replace(read_result(run), ledger=facts)
    store_record(run, record)
    assert rt.verify(run).ok, str(rt.verify(run))
    store_record(run, replace(record, guarantee=replace(record.guarantee, epsilon=1.0)))
    assert rt.verify(run).wrong == ["record"]
    store_record(run, replace(record, ledger=replace(facts, sha256="0" * 64)))
    assert rt.verify(run).wrong == ["record"]


def test_a_result_that_was_edited_is_not_read(run: Path) -> None:
    path = run / RESULT
    path.write_text(path.read_text().replace('"accuracy": 0.', '"accuracy": 1.'))
    with pytest.raises(DataError, match=r"result\.json was changed"):
        read_result(run)


def test_weights_are_not_saved_beside_the_ledger_of_another_run(run: Path, blobs: tuple[Tensor, Tensor]) -> None:
    with pytest.raises(ResumeError, match="the ledger of another run"):
        fitted(blobs).save(run)
    assert rt.verify(run).ok


def test_a_guarantee_without_what_it_was_priced_by_is_named(blobs: tuple[Tensor, Tensor], tmp_path: Path) -> None:
    replace(fitted(blobs), charged=None).save(tmp_path)
    assert rt.verify(tmp_path).wrong == ["price"]


def test_a_card_of_an_older_version_is_read_with_a_note_and_does_not_verify(
    blobs: tuple[Tensor, Tensor], tmp_path: Path
) -> None:
    trained = fitted(blobs)
    trained.save(tmp_path)
    data = json.loads((tmp_path / CARD).read_text())
    old = {name: data[name] for name in ("guarantee", "rounds", "kept", "about")}
    (tmp_path / CARD).write_text(json.dumps(old))
    with pytest.warns(FileWarning, match="older version, without checksums"):
        assert rt.load(tmp_path, nn.Linear(4, 2)).guarantee == trained.guarantee
    found = rt.verify(tmp_path)
    assert (found.wrong, found.old) == (["card"], True)
    assert "older version" in str(found)


def test_a_card_of_a_newer_version_is_refused(run: Path) -> None:
    resealed(run / CARD, lambda data: data.update(card=17))
    assert "version 17" in str(rt.verify(run))


# -- the command -------------------------------------------------------------------------------------------------------


def asked(*words: str) -> tuple[int, str]:
    found = CliRunner().invoke(app, ["verify", *words])
    return found.exit_code, found.stdout


def test_the_command_answers_0_or_2_in_words_and_in_json(run: Path) -> None:
    code, out = asked(str(run))
    assert code == 0
    assert "ok    ledger: 12 releases" in out
    code, out = asked(str(run), "--json")
    said = json.loads(out)
    assert (code, said["ok"], said["wrong"]) == (0, True, [])
    assert asked(str(run), "--fingerprint", said["fingerprint"])[0] == 0
    assert asked(str(run), "--fingerprint", "0" * 64)[0] == 2
    cut(run / LEDGER)
    code, out = asked(str(run))
    assert code == 2
    assert "WRONG ledger: it holds 3 releases, and the card says 12 -> bring the ledger back" in out
    code, out = asked(str(run), "--json")
    wrong = next(check for check in json.loads(out)["checks"] if not check["ok"])
    assert (code, wrong["name"], wrong["remedy"] != "") == (2, "ledger", True)
    assert asked(str(run / "nowhere"))[0] == 2


# -- what it holds -----------------------------------------------------------------------------------------------------


def test_anybody_can_follow_the_chain_and_price_the_card(finished: Path) -> None:
    """With a hash function and dp-accounting, and nothing of ours."""
    from dp_accounting import dp_event
    from dp_accounting.pld import PLDAccountant

    card = json.loads((finished / CARD).read_text())
    header, *lines = (finished / LEDGER).read_bytes().splitlines()
    chain = hashlib.sha256(header).digest()
    for line in lines:
        chain = hashlib.sha256(chain + b"{" + line.split(b'",', 1)[1]).digest()
    assert (len(lines), chain.hex()) == tuple(card["charged"]["ledger"].values())
    accountant = PLDAccountant(value_discretization_interval=1e-3)
    for row in card["charged"]["planned"] + card["charged"]["already"]:
        event = row["event"]
        inner = dp_event.GaussianDpEvent(event.get("noise_multiplier") or event["inner"]["noise_multiplier"])
        sampled = dp_event.PoissonSampledDpEvent(event["rate"], inner) if "rate" in event else inner
        accountant.compose(sampled, row["count"])
    assert accountant.get_epsilon(card["guarantee"]["delta"]) == pytest.approx(card["guarantee"]["epsilon"], rel=1e-3)


def test_a_report_is_typed(finished: Path) -> None:
    found = rt.verify(finished)
    assert isinstance(found, Verified)
    charged = read_card(finished).charged
    assert charged is not None
    assert isinstance(charged.ledger, Mark)
    assert set(map(type, charged.priced())) == {Gaussian, Subsampled}
