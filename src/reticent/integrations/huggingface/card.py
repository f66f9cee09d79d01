"""The model card: a folder for the Hub, in the library's own format, with the guarantee beside the weights."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from reticent.certificate import CARD, Card
from reticent.certificate.card import LEDGERS, digest_of
from reticent.errors import ModelError, SettingError
from reticent.files import PRIVATE, make_folder, replace_file
from reticent.origins import refuse_trained_on
from reticent.trained import Trained

README = "README.md"


def save_pretrained(
    trained: Trained, folder: str | Path, tokenizer: object = None, *, ledger: str | Path | None = None
) -> Path:
    """Write a folder that is ready for the Hub: weights as `save_pretrained` has them, README.md, and the card.

    Of a PEFT model it holds the adapter alone, in PEFT's own format. Nothing private is in it; `ledger` is that of the
    run (its folder's ledger.jsonl), which goes along so that anybody can price it again.
    """
    model, path = trained.model, Path(folder)
    save = getattr(model, "save_pretrained", None)
    if save is None:
        raise ModelError(f"a {type(model).__name__} has no save_pretrained: use trained.save(folder)")
    refuse_trained_on(model, trained.lineage)
    if any(path.rglob(PRIVATE)):
        raise SettingError(
            f"{path} holds a run's {PRIVATE}/ folder, with its secret key, which would go to the Hub with the rest: "
            "give another folder"
        )
    make_folder(path)
    save(path)
    if tokenizer is not None:
        tokenizer.save_pretrained(path)  # type: ignore[attr-defined]
    if ledger is not None and Path(ledger).exists():
        shutil.copyfile(ledger, path / LEDGERS[0])
    replace_file(path / README, model_card(trained).encode())
    there = {file.relative_to(path).as_posix(): file for file in sorted(path.rglob("*")) if file.is_file()}
    hidden = [name for name in there if name.startswith(".") or "/." in name]  # what git keeps of a clone of the Hub
    files = {name: digest_of(file) for name, file in there.items() if name not in (CARD, *hidden)}
    card = Card(
        guarantee=trained.guarantee,
        rounds=trained.rounds,
        kept=trained.kept,
        about=trained.about,
        charged=trained.charged,
        lineage=trained.lineage,
        files=files,
    )
    replace_file(path / CARD, card.to_bytes())
    return path


def model_card(trained: Trained) -> str:
    """README.md: front matter that the Hub reads, and the guarantee in words."""
    guarantee, model = trained.guarantee, trained.model
    adapted = hasattr(model, "peft_config")
    base = _name_of(model)
    front: dict[str, object] = {
        "library_name": "peft" if adapted else "transformers",
        "tags": ["differential-privacy", "reticent", *(["lora"] if adapted and _is_lora(model) else [])],
        **({"base_model": base} if base else {}),
        "differential_privacy": {
            name: part
            for name, part in guarantee.to_json().items()
            if name in ("status", "epsilon", "delta", "adjacency", "unit", "accountant", "seeded")
        },
    }
    lines = [f"{name}: {json.dumps(part)}" for name, part in front.items()]  # JSON is YAML
    return "\n".join(["---", *lines, "---", "", *_text(trained, base)]) + "\n"


def _text(trained: Trained, base: str | None) -> list[str]:
    guarantee = trained.guarantee
    private = guarantee.status != "none"
    said = [
        f"# {type(trained.model).__name__}" + (f", trained from {base}" if base else ""),
        "",
        "## Privacy",
        "",
        f"**{guarantee}**",
        "",
        f"Trained with differential privacy in {trained.rounds} rounds. Whatever is done with these weights, the odds "
        "that somebody tells whether one contribution took part in the training grow at most by what this states."
        if private
        else "These weights come with no proof of privacy.",
        "",
    ]
    said += [f"- Covered: {what}." for what in guarantee.covers]
    said += [f"- Not covered: {what}." for what in guarantee.excludes]
    said += [f"- Assumed: {what}." for what in guarantee.assumptions]
    return [*said, "", f"`{CARD}` holds the plan it was priced by and the checksums of the files beside it."]


def _name_of(model: object) -> str | None:
    """The model that this one began as, by the name it was loaded by; no path of this machine."""
    name = getattr(getattr(model, "config", None), "_name_or_path", "") or ""
    return str(name) if name and not Path(name).is_absolute() and not Path(name).exists() else None


def _is_lora(model: Any) -> bool:
    return any("lora" in str(getattr(part, "peft_type", "")).lower() for part in model.peft_config.values())
