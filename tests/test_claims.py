"""A run folder knows which folder it is: a copy of it with a key inside is not resumed, a renamed one is."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import reticent as rt
from reticent.checkpoint import claim
from reticent.errors import ResumeError


def a_run(folder: Path, *, resume: bool = True) -> rt.Run:
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    return rt.Run(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        (torch.randn(50, 3), torch.randint(0, 2, (50,))),
        method=rt.methods.dpsgd(noise_multiplier=1.0),
        batch_size=10,
        rounds=3,
        folder=folder,
        resume=resume,
    )


def test_a_claim_is_for_the_owner_only_and_is_made_once(tmp_path: Path) -> None:
    a_run(tmp_path)
    path = tmp_path / "claim.json"
    first = path.read_text()
    assert path.stat().st_mode & 0o077 == 0
    assert {"id", "host", "path", "folder"} <= json.loads(first).keys()
    a_run(tmp_path)
    assert path.read_text() == first


def test_a_process_that_is_killed_while_it_claims_a_folder_leaves_one_to_go_on_with(tmp_path: Path) -> None:
    """The claim has its name when it is whole; what was left half written is cleared away."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", lambda *_: sys.exit(9))
        patch.setattr(Path, "unlink", lambda *_, **__: None)  # who is killed clears nothing away
        with pytest.raises(SystemExit):
            claim(tmp_path)
    assert [path.suffix for path in tmp_path.iterdir()] == [".new"]
    list(a_run(tmp_path))
    assert list(tmp_path.glob(".*.new")) == []


def test_a_copy_is_refused_and_the_original_goes_on(tmp_path: Path) -> None:
    a_run(tmp_path / "one").step()
    shutil.copytree(tmp_path / "one", tmp_path / "two", copy_function=shutil.copy2)
    with pytest.raises(ResumeError, match=r"copy of .*one.* would reveal it\. Resume in that folder"):
        a_run(tmp_path / "two")
    list(a_run(tmp_path / "one"))


def test_a_claim_in_the_right_folder_but_from_elsewhere_is_refused(tmp_path: Path) -> None:
    """Folders at the root of a disk have the same number on every disk; files hardly."""
    a_run(tmp_path).step()
    path = tmp_path / "claim.json"
    kept = tmp_path / "kept"
    path.rename(kept)
    shutil.copy2(kept, path)
    with pytest.raises(ResumeError, match="copy of"):
        a_run(tmp_path)


def test_a_renamed_folder_goes_on(tmp_path: Path) -> None:
    a_run(tmp_path / "one").step()
    (tmp_path / "one").rename(tmp_path / "two")
    list(a_run(tmp_path / "two"))


def test_a_folder_without_a_claim_gets_one(tmp_path: Path) -> None:
    a_run(tmp_path).step()
    (tmp_path / "claim.json").unlink()
    a_run(tmp_path).step()
    assert (tmp_path / "claim.json").exists()


def test_a_finished_run_may_be_copied(tmp_path: Path) -> None:
    """It holds no key."""
    list(a_run(tmp_path / "one"))
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    assert a_run(tmp_path / "two").over


def test_a_claim_cut_short_says_what_to_do(tmp_path: Path) -> None:
    a_run(tmp_path).step()
    (tmp_path / "claim.json").write_text("")
    with pytest.raises(ResumeError, match="Delete it if this is the folder"):
        a_run(tmp_path)
