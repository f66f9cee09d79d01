"""A new user's day, from a file to a page: real processes, real people's data, a real browser."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from PIL import Image
from tests import quick
from torch import Tensor, nn

import reticent as rt
from reticent import data

Look = Callable[[Path], str]


def reticent(*words: object, where: Path) -> str:
    """The command as a user types it; what it answers on stdout."""
    done = quick.run(quick.COMMAND, *words, where=where)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def test_a_table_on_the_command_line(adult: Path, tmp_path: Path, look: Look) -> None:
    """Schema, training by the defaults, page, certificate, predictions by name, export, all without a setting."""
    for part in ("train.csv", "test.csv"):
        (tmp_path / part).write_bytes((adult / part).read_bytes())
    (tmp_path / "schema.toml").write_text(reticent("data", "schema", "train.csv", where=tmp_path))
    said = ["--data", "train.csv", "--schema", "schema.toml", "--test-data", "test.csv", "--epsilon", 3, "--seed", 0]
    answer = json.loads(reticent("train", *said, "--out", "run", "--json", where=tmp_path))
    assert answer["accuracy"] > 0.82, "8,000 people, the defaults"
    assert answer["guarantee"]["status"] == "proved"
    assert any("public knowledge (schema.json, declared)" in line for line in answer["guarantee"]["assumptions"])
    reticent("report", "run", where=tmp_path)
    page = look(tmp_path / "run" / "report.html")
    for words in ("epsilon 3.00", "commonest class", "<=50K", "must not be published", "8,000"):
        assert words in page, words
    assert "ok    price" in reticent("verify", "run", where=tmp_path)
    predicted = reticent("predict", "run", "test.csv", where=tmp_path).split()
    assert len(predicted) == 2001
    assert set(predicted[1:]) == {"<=50K", ">50K"}
    reticent("export", "run", "model", where=tmp_path)
    plain = "import sys, model; assert not [name for name in sys.modules if name.startswith('reticent')]"
    subprocess.run([sys.executable, "-c", plain], cwd=tmp_path / "model", check=True)


def test_the_same_from_a_data_frame(adult: Path, tmp_path: Path, look: Look) -> None:
    frame, others = pd.read_csv(adult / "train.csv"), pd.read_csv(adult / "test.csv")
    (tmp_path / "schema.toml").write_text(data.to_toml(data.propose(frame, label="income")))
    people = data.table(frame, tmp_path / "schema.toml")
    test = data.table(others, tmp_path / "schema.toml")
    torch.manual_seed(0)
    model = nn.Linear(people.x.shape[1], 2)
    folder = tmp_path / "run"
    trained = rt.fit(model, people, epsilon=3.0, seed=0, folder=folder, test=test, name="Adult")
    told = trained.evaluate(test.x, test.y)
    assert told["accuracy"] > 0.82 > told["baseline_accuracy"]
    assert set(trained.predict(others)) == {"<=50K", ">50K"}
    assert rt.verify(folder).ok
    page = look(trained.report(tmp_path / "page.html"))
    assert "Adult" in page
    again = rt.load(folder, nn.Linear(people.x.shape[1], 2))
    assert again.predict(others) == trained.predict(others)


class Block(nn.Module):
    """Two convolutions and a way around them, as in a ResNet, with groups normalised."""

    def __init__(self, width: int):
        super().__init__()
        self.first, self.second = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.one, self.two = nn.GroupNorm(4, width), nn.GroupNorm(4, width)

    def forward(self, x: Tensor) -> Tensor:
        """The input, and what two convolutions make of it."""
        inner = torch.relu(self.one(self.first(x)))
        return torch.relu(x + self.two(self.second(inner)))


def test_own_resnet_on_a_folder_of_images(tmp_path: Path, look: Look) -> None:
    rng = np.random.default_rng(0)
    for number, name in enumerate(("bright", "dark", "striped")):
        for part, count in (("train", 60), ("test", 20)):
            place = tmp_path / "photos" / part / name
            place.mkdir(parents=True)
            for one in range(count):
                pixels = rng.integers(0, 60, (16, 16, 3)) + (150 if number == 0 else 0)
                pixels[:: 2 if number == 2 else 99] += 120
                Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(place / f"{one}.png")
    photos = data.load(str(tmp_path / "photos"), declared=data.Declaration(accept=True))
    assert photos.test is not None
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), Block(8), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 3)
    )
    trained = rt.fit(model, photos.train, epsilon=8.0, epochs=6, seed=0, test=photos.test, classes=photos.names)
    assert trained.guarantee.status == "proved"
    assert trained.evaluate(photos.test.x, photos.test.y)["accuracy"] > 0.5
    assert "striped" in look(trained.report(tmp_path / "page.html"))


def test_a_number_to_predict(tmp_path: Path, look: Look) -> None:
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(2000, 5, generator=rng)
    y = x @ torch.tensor([1.0, -2.0, 0.5, 0.0, 3.0]) + 0.1 * torch.randn(2000, generator=rng)
    torch.manual_seed(0)
    trained = rt.fit(nn.Linear(5, 1), (x[:1500], y[:1500]), epsilon=3.0, seed=0, test=(x[1500:], y[1500:]))
    told = trained.evaluate(x[1500:], y[1500:])
    assert told["r2"] > 0.8
    assert told["rmse"] < told["baseline_rmse"]
    assert "epsilon 3.00" in look(trained.report(tmp_path / "page.html"))


def test_killed_and_resumed(tmp_path: Path) -> None:
    """kill -9 in the middle, then the same script again: it ends as if nothing had happened."""
    script = (
        "import sys, torch, reticent as rt\n"
        "torch.manual_seed(0)\n"
        "x, y = torch.randn(600, 6), torch.randint(0, 2, (600,))\n"
        "model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))\n"
        "tell = lambda run, step: print(step.number, flush=True)\n"
        "trained = rt.fit(model, (x, y), epsilon=3.0, epochs=8, batch_size=50, lr=0.1, seed=0, progress=tell,\n"
        "                 folder=sys.argv[1], resume=True)\n"
        "print(trained.guarantee.epsilon, [float(p.sum()) for p in model.parameters()])\n"
    )
    alone = quick.run(script, tmp_path / "alone")
    told, tell = os.pipe()
    with open(told) as said:
        with open(tell, "w") as says, open(os.devnull) as nothing:
            begun = quick.begin(script, tmp_path / "killed", files=(nothing, says))
        for _ in range(40):
            said.readline()
        begun.kill()
        begun.join()
    assert begun.exitcode == -signal.SIGKILL
    resumed = quick.run(script, tmp_path / "killed")
    assert (alone.returncode, resumed.returncode) == (0, 0), alone.stderr + resumed.stderr
    assert resumed.stdout.splitlines()[-1] == alone.stdout.splitlines()[-1]
    assert rt.verify(tmp_path / "killed").ok


def test_attacked_with_a_verdict(tmp_path: Path, look: Look) -> None:
    """Eight shadows of one's own model; the verdict is a sentence, on the page too."""
    rng = torch.Generator().manual_seed(0)
    y = torch.arange(400) % 2
    x = torch.randn(400, 4, generator=rng) + y[:, None]
    torch.manual_seed(0)
    trained = rt.fit(
        nn.Linear(4, 2),
        (x[:200], y[:200]),
        epsilon=2.0,
        epochs=3,
        seed=0,
        test=(x[200:], y[200:]),
        folder=tmp_path / "run",
    )
    report = trained.attack(shadows=8)
    assert "could have been found (95 % confidence), and the guarantee permits" in report.sentence
    assert report.sentence.split(";")[0] in look(trained.report(tmp_path / "page.html"))


def test_an_edited_certificate_is_found_out(tmp_path: Path) -> None:
    x, y = torch.randn(300, 4), torch.randint(0, 2, (300,))
    folder = tmp_path / "run"
    rt.fit(nn.Linear(4, 2), (x, y), epsilon=2.0, epochs=2, seed=0, folder=folder)
    assert "certificate" in reticent("verify", folder, where=tmp_path)
    card = folder / "card.json"
    card.write_text(card.read_text().replace('"kept": ', '"kept": 1', 1))
    found = quick.run(quick.COMMAND, "verify", folder)
    assert found.returncode == 2
    assert "changed since it was written" in found.stdout + found.stderr
