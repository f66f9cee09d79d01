"""Under Lightning's trainer: rounds are counted as steps, public metrics are logged, private ones are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from reticent.errors import ModelError, ResumeError, SettingError

lightning = pytest.importorskip("pytorch_lightning", reason="lightning is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning has much to say of workers, loggers and devices

from reticent.integrations.lightning import PrivateTraining  # noqa: E402


class Net(lightning.LightningModule):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.met: list[int] = []

    def forward(self, x: Tensor) -> Any:
        return self.layer(x)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        x, y = batch
        assert not (x == 1234.5).any(), "an example has met the user's own code"
        loss = functional.cross_entropy(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        x, y = batch
        self.log("val_acc", (self(x).argmax(1) == y).float().mean())

    def configure_optimizers(self) -> Any:
        sgd = torch.optim.SGD(self.parameters(), lr=0.5)
        return [sgd], [torch.optim.lr_scheduler.StepLR(sgd, 1, gamma=0.5)]


class Private(PrivateTraining, Net):
    pass


def trainer(folder: Path, **settings: Any) -> Any:
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}
    said = {"logger": False, "accelerator": "cpu", "default_root_dir": folder, "max_epochs": 3, **quiet, **settings}
    return lightning.Trainer(**said)


def test_rounds_are_steps_and_public_metrics_are_logged(
    blobs: tuple[Tensor, Tensor], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net, fitted = Private(), trainer(tmp_path)
    loader = DataLoader(TensorDataset(*blobs), batch_size=20, shuffle=True)
    net.protect(loader, epsilon=4.0, delta=1e-3, epochs=3, seed=0)
    fitted.fit(net, val_dataloaders=DataLoader(TensorDataset(*blobs), batch_size=100))
    assert "'train_loss', of private examples" in capsys.readouterr().err
    assert net.private_run is not None
    assert fitted.global_step == net.private_run.number == len(net.private_run.ledger) == 30
    assert set(fitted.logged_metrics) == {"val_acc"}
    assert fitted.logged_metrics["val_acc"] > 0.8
    assert net.guarantee().epsilon <= 4.0
    assert net.private_run.optimizer.param_groups[0]["lr"] == 0.5 * 0.5**3


def test_the_loss_is_learned_from_made_up_rows(tmp_path: Path) -> None:
    net, x = Private(), torch.full((60, 4), 1234.5)
    net.protect((x, torch.zeros(60, dtype=torch.long)), epochs=1, batch_size=20, epsilon=3.0)
    trainer(tmp_path, max_epochs=1).fit(net)
    assert net.private_run is not None
    assert net.private_run.over


def test_what_cannot_be_private_is_refused(blobs: tuple[Tensor, Tensor], tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="call protect"):
        trainer(tmp_path).fit(Private())

    class Watching(Net):
        def configure_optimizers(self) -> Any:
            sgd = torch.optim.SGD(self.parameters(), lr=0.5)
            return {"optimizer": sgd, "lr_scheduler": torch.optim.lr_scheduler.ReduceLROnPlateau(sgd)}

    class PrivateWatching(PrivateTraining, Watching):
        pass

    net = PrivateWatching()
    net.protect(blobs, epochs=1, batch_size=20, epsilon=3.0)
    with pytest.raises(SettingError, match="ReduceLROnPlateau"):
        trainer(tmp_path).fit(net)


def test_monitoring_a_private_number_fails(blobs: tuple[Tensor, Tensor], tmp_path: Path) -> None:
    net = Private()
    net.protect(blobs, epochs=1, batch_size=50, epsilon=3.0)
    stop = lightning.callbacks.EarlyStopping(monitor="train_loss")
    with pytest.raises(RuntimeError, match="train_loss"):
        trainer(tmp_path, callbacks=[stop]).fit(net)


def test_a_module_that_is_protected_again_is_trained_again_and_pays_for_both(
    blobs: tuple[Tensor, Tensor], tmp_path: Path
) -> None:
    net = Private()
    said: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-3, "epochs": 1, "batch_size": 50}
    net.protect(blobs, **said)
    trainer(tmp_path).fit(net)
    first = net.private_run
    assert first is not None
    net.protect(blobs, **said)
    with pytest.raises(SettingError, match="initial"):
        trainer(tmp_path).fit(net)
    before = net.layer.weight.detach().clone()
    net.protect(blobs, **{**said, "epsilon": 6.0}, initial=first)
    trainer(tmp_path).fit(net)
    assert not torch.equal(before, net.layer.weight), "the second run was left out"
    assert 3.0 < net.guarantee().epsilon <= 6.0


class Bare(Net):
    """All that is trained belongs to the module itself."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Identity()
        self.weight = nn.Parameter(torch.zeros(2, 4))

    def forward(self, x: Tensor) -> Any:
        return functional.linear(x, self.weight)


class PrivateBare(PrivateTraining, Bare):
    pass


def test_weights_of_the_module_itself_carry_the_mark_of_the_run(blobs: tuple[Tensor, Tensor], tmp_path: Path) -> None:
    net = PrivateBare()
    for _ in range(2):
        net.protect(blobs, epsilon=3.0, delta=1e-3, epochs=1, batch_size=50)
        if net.weight.any():
            with pytest.raises(SettingError, match="has trained this model already"):
                trainer(tmp_path).fit(net)
            break
        trainer(tmp_path).fit(net)
    else:
        pytest.fail("nothing was trained")


class Above(PrivateTraining, Net):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return functional.cross_entropy(self(batch[0]), batch[1])


class ByRows(Net):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return functional.cross_entropy(self(batch[0]), batch[1]) / len(batch[0])


class PrivateByRows(PrivateTraining, ByRows):
    pass


def test_training_beside_the_private_step_is_refused(blobs: tuple[Tensor, Tensor], tmp_path: Path) -> None:
    said: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-3, "epochs": 2, "batch_size": 50}
    with pytest.raises(SettingError, match="put PrivateTraining first"):
        Above().protect(blobs, **said)
    with pytest.raises(ModelError, match="number of examples"):
        PrivateByRows().protect(blobs, **said)
    net = Private()
    net.protect(blobs, **said)
    with pytest.raises(SettingError, match="leave them out"):
        trainer(tmp_path).fit(net, DataLoader(TensorDataset(*blobs), batch_size=50))
    net.protect(blobs, **said)
    trainer(tmp_path, max_epochs=1).fit(net)
    with pytest.raises(SettingError, match="called again"):
        trainer(tmp_path, max_epochs=2).fit(net)


class Timed(Net):
    """A momentum and two schedules: what must come back when a run goes on."""

    def configure_optimizers(self) -> Any:
        sgd = torch.optim.SGD(self.parameters(), lr=0.5, momentum=0.9)
        by_epoch = torch.optim.lr_scheduler.LambdaLR(sgd, Halved())
        return [sgd], [{"scheduler": by_epoch, "interval": "epoch", "frequency": 2}]


class Halved:
    def __call__(self, number: int) -> float:
        return 0.5**number


class PrivateTimed(PrivateTraining, Timed):
    pass


class Dies(lightning.Callback):  # type: ignore[misc]
    """Ends a fit after so many rounds, as a crash does; remembers what the trainer counted."""

    def __init__(self, after: int = 0) -> None:
        self.after, self.counted, self.epochs = after, list[int](), list[int]()

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        self.counted.append(trainer.global_step)
        self.epochs.append(trainer.current_epoch)
        if trainer.global_step == self.after:
            raise ZeroDivisionError


def prepared(blobs: tuple[Tensor, Tensor], folder: Path | None = None, *, resume: bool = False) -> PrivateTimed:
    torch.manual_seed(0)
    net = PrivateTimed()
    said: dict[str, Any] = {} if folder is None else {"folder": folder, "resume": resume}
    net.protect(blobs, epsilon=4.0, delta=1e-3, epochs=4, batch_size=50, seed=0, **said)
    return net


@pytest.mark.parametrize("named", [True, False], ids=["with its checkpoint", "by its folder alone"])
def test_a_fit_that_died_goes_on_as_if_nothing_had_happened(
    blobs: tuple[Tensor, Tensor], tmp_path: Path, named: bool
) -> None:
    whole = prepared(blobs)
    trainer(tmp_path, max_epochs=4).fit(whole)
    assert whole.private_run is not None

    def keeping(*others: Any) -> Any:
        save = lightning.callbacks.ModelCheckpoint(tmp_path / "kept", every_n_train_steps=5, save_top_k=-1)
        return trainer(tmp_path, max_epochs=4, enable_checkpointing=True, callbacks=[save, *others])

    first = prepared(blobs, tmp_path / "run")
    with pytest.raises(ZeroDivisionError):
        keeping(Dies(after=7)).fit(first)
    assert first.private_run is not None
    del first
    (kept,) = (tmp_path / "kept").glob("*step=5.ckpt")
    second, seen = prepared(blobs, tmp_path / "run", resume=True), Dies()
    again = keeping(seen)
    again.fit(second, ckpt_path=kept if named else None)
    assert second.private_run is not None
    assert again.global_step == second.private_run.number == len(second.private_run.ledger) == 16
    assert seen.counted == list(range(6, 17))
    assert seen.epochs[0] == 1
    assert torch.equal(second.layer.weight, whole.layer.weight), "it went another way"
    assert str(second.guarantee()) == str(whole.guarantee())
    now, then = second.private_run.optimizer, whole.private_run.optimizer
    assert now.param_groups[0]["lr"] == then.param_groups[0]["lr"] == 0.5 * 0.5**2


def test_a_run_that_was_over_is_there_again_with_its_guarantee(blobs: tuple[Tensor, Tensor], tmp_path: Path) -> None:
    first, fitted = prepared(blobs, tmp_path / "run"), trainer(tmp_path, max_epochs=4)
    fitted.fit(first)
    fitted.save_checkpoint(tmp_path / "it.ckpt")
    again = prepared(blobs, tmp_path / "run", resume=True)
    trainer(tmp_path, max_epochs=4).fit(again, ckpt_path=str(tmp_path / "it.ckpt"))
    assert str(again.guarantee()) == str(first.guarantee())
    assert torch.equal(again.layer.weight, first.layer.weight)


@pytest.mark.parametrize("told", [True, False], ids=["as it is", "of an older version"])
def test_weights_from_a_checkpoint_are_not_trained_on_as_if_they_were_new(
    blobs: tuple[Tensor, Tensor], tmp_path: Path, told: bool
) -> None:
    said: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-3, "epochs": 1, "batch_size": 50}
    first, fitted = Private(), trainer(tmp_path)
    first.protect(blobs, **said)
    fitted.fit(first)
    fitted.save_checkpoint(tmp_path / "it.ckpt")
    if not told:
        stored = torch.load(tmp_path / "it.ckpt", weights_only=False)
        del stored["reticent"]["lineage"]
        torch.save(stored, tmp_path / "it.ckpt")
    again = Private.load_from_checkpoint(tmp_path / "it.ckpt")
    again.protect(blobs, **said)
    with pytest.raises(SettingError, match="has trained this model already"):
        trainer(tmp_path).fit(again)
    again.protect(blobs, **{**said, "epsilon": 6.0}, initial=[first.private_run, *([] if told else ["public"])])
    trainer(tmp_path).fit(again)
    assert 3.0 < again.guarantee().epsilon <= 6.0


def test_a_checkpoint_without_its_folder_or_of_another_run_is_refused(
    blobs: tuple[Tensor, Tensor], tmp_path: Path
) -> None:
    def trained(name: str) -> str:
        net, fitted = prepared(blobs, tmp_path / name), trainer(tmp_path, max_steps=4, max_epochs=4)
        fitted.fit(net)
        fitted.save_checkpoint(tmp_path / f"{name}.ckpt")
        assert net.private_run is not None
        return str(tmp_path / f"{name}.ckpt")

    one, two = trained("one"), trained("two")
    with pytest.raises(SettingError, match="give protect the folder"):
        trainer(tmp_path).fit(prepared(blobs), ckpt_path=one)
    with pytest.raises(ResumeError, match="of another run"):
        trainer(tmp_path).fit(prepared(blobs, tmp_path / "one", resume=True), ckpt_path=two)
    told = torch.load(one, weights_only=False)
    torch.save({**told, "reticent": {**told["reticent"], "round": 9}}, tmp_path / "later.ckpt")
    with pytest.raises(ResumeError, match="stands at 4"):
        trainer(tmp_path).fit(prepared(blobs, tmp_path / "one", resume=True), ckpt_path=str(tmp_path / "later.ckpt"))
    del told["reticent"]
    torch.save(told, tmp_path / "plain.ckpt")
    with pytest.raises(ResumeError, match="of no private run"):
        trainer(tmp_path).fit(prepared(blobs, tmp_path / "one", resume=True), ckpt_path=str(tmp_path / "plain.ckpt"))


def test_weights_in_a_checkpoint_do_not_take_the_place_of_those_in_the_folder(
    blobs: tuple[Tensor, Tensor], tmp_path: Path
) -> None:
    net, fitted = prepared(blobs, tmp_path / "run"), trainer(tmp_path, max_steps=4, max_epochs=4)
    fitted.fit(net)
    fitted.save_checkpoint(tmp_path / "it.ckpt")
    told = torch.load(tmp_path / "it.ckpt", weights_only=False)
    told["state_dict"] = {name: part + 1 for name, part in told["state_dict"].items()}
    torch.save(told, tmp_path / "it.ckpt")
    again = prepared(blobs, tmp_path / "run", resume=True)
    trainer(tmp_path, max_epochs=4).fit(again, ckpt_path=str(tmp_path / "it.ckpt"))
    whole = prepared(blobs)
    trainer(tmp_path, max_epochs=4).fit(whole)
    assert torch.equal(again.layer.weight, whole.layer.weight)
