"""The audit as a whole: every method is consistent, the report says what it must, the probe keeps its promises."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
import torch
from scipy import stats

import reticent.inside.labelled_rows as labelled_rows
from reticent import methods
from reticent.audits import probes
from reticent.audits.by_name import audit_method
from reticent.audits.step import HUGE, _updates, audit_step
from reticent.audits.toy import SIZE, direction, examples, keeps_apart, known_loss, make_run, place
from reticent.audits.verdict import audit
from reticent.errors import SettingError
from reticent.gradients import norms_and_sum
from reticent.inside import Clip
from reticent.methods import dpsgd


def test_the_toys_gradients_are_what_they_are_said_to_be() -> None:
    run = make_run(dpsgd(noise_multiplier=1.0), examples(7.0), batch_size=SIZE, rounds=1, seed=0)
    found, total = norms_and_sum(run.model, known_loss, examples(7.0), torch.ones_like)
    assert found[0] == pytest.approx(7.0, rel=1e-5)
    flat = torch.cat([total[name].reshape(-1) for name, _ in run.model.named_parameters()])
    assert float(flat @ direction()) == pytest.approx(7.0, rel=1e-5)


def test_copies_of_the_toy_keep_to_themselves() -> None:
    copies, method = 3, dpsgd(noise_multiplier=1.0)
    data = examples(7.0, copies=copies)
    run = make_run(method, data, batch_size=copies * SIZE, rounds=1, seed=0)
    found, total = norms_and_sum(run.model, known_loss, data, torch.ones_like)
    alone, _ = norms_and_sum(
        make_run(method, examples(7.0), batch_size=SIZE, rounds=1, seed=0).model,
        known_loss,
        examples(7.0),
        torch.ones_like,
    )
    torch.testing.assert_close(found, alone.repeat(copies))
    rows = run.model.moved(torch.cat([total[name].reshape(1, -1) for name, _ in run.model.named_parameters()], 1))
    assert rows.shape == (copies, len(direction()))
    assert torch.equal(rows, rows[:1].expand_as(rows))
    assert float(rows[0] @ direction()) == pytest.approx(7.0, rel=1e-5)
    one, _ = norms_and_sum(run.model, known_loss, tuple(part[:SIZE] for part in data), torch.ones_like)
    torch.testing.assert_close(one, alone)


def test_only_what_is_known_to_keep_apart_is_shown_in_copies() -> None:
    class Careless(Clip):
        pass

    assert keeps_apart(dpsgd(noise_multiplier=1.0))
    assert not keeps_apart(replace(dpsgd(noise_multiplier=1.0), bound=Careless()))
    coupled = {"dpsur", "sa_dpsgd", "pd_sgd", "band_mf", "blt", "quantile_clip", "dpis", "dpagd"}
    assert not any(keeps_apart(methods.get(name)) for name in coupled)


def test_copies_show_the_steps_law() -> None:
    """Noise of length one along the canary, and the canary at the rate: in copies as alone, by a test at 1e-6."""
    for runs, rate in ((100, 0.5), (600, 0.5)):
        found = _updates(dpsgd(noise_multiplier=1.0), HUGE, rate, runs, seed=4)[0] @ direction().double().numpy()
        expected = lambda x, rate=rate: rate * stats.norm.cdf(x - 1) + (1 - rate) * stats.norm.cdf(x)  # noqa: E731
        assert len(found) == runs
        assert stats.kstest(found, expected).pvalue > 1e-6


def test_a_filter_over_rounds_is_no_contradiction() -> None:
    found = audit_step(methods.get("doppler", noise_multiplier=1.0), rate=1.0, runs=300, alpha=1e-3, seed=0)
    assert found.contradiction is None
    assert 0 < found.lower < found.upper


def test_a_watched_run_states_no_guarantee() -> None:
    run = make_run(dpsgd(noise_multiplier=1.0), examples(1.0), batch_size=SIZE, rounds=1, seed=0)
    run.watch()
    with pytest.raises(SettingError, match="watched"):
        run.guarantee()


def test_watching_changes_nothing() -> None:
    places = []
    for watched in (False, True):
        run = make_run(dpsgd(noise_multiplier=1.0), examples(1.0), batch_size=4, rounds=3, seed=5)
        if watched:
            run.watch()
        for _ in range(3):
            run.step()
        places.append(place(run))
    assert torch.equal(*places)


def test_a_stored_run_cannot_be_watched(tmp_path: object) -> None:
    run = make_run(dpsgd(noise_multiplier=1.0), examples(1.0), batch_size=SIZE, rounds=1, seed=0)
    run._folder = tmp_path  # type: ignore[assignment]
    with pytest.raises(SettingError, match="without a folder"):
        run.watch()


# That of DP-SGD is guarded by tests/cli/test_audit.py::test_a_right_method_is_consistent, which asks the same; those of
# its draws by tests/broken/draw_checks.py.
SLOWER = {"dpsgd", "dpadam", "dpsur", "sa_dpsgd", "dpis", "dpsign_sgd", "dpsign_adam", "noise_decay", "dpagd", "pd_sgd"}
SLOWER |= {"fixed_size", "truncated", "balls_in_bins"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOWER)) for name in methods.names()],
)
def test_a_right_method_is_consistent(name: str) -> None:
    report = audit(methods.get(name), runs=40, alpha=1e-4, seed=3)
    assert report.verdict == "consistent", report.findings
    assert report.lower <= report.upper
    assert report.said_by == []


@pytest.mark.parametrize("name", ["class_means", "least_squares"])
def test_rows_that_are_not_cut_are_seen_where_nobody_asks_for_gradients(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labelled_rows, "enforced", lambda bound, lengths, settings: torch.ones_like(lengths))
    report = audit(methods.get(name), runs=40, seed=0)
    assert "sensitivity" in report.said_by
    assert "step at rate 1" in report.said_by


def test_noise_that_is_missing_is_seen_where_nobody_asks_for_gradients() -> None:
    assert "noise" in audit_method("class_means", runs=40, bug="no-noise", seed=0).said_by


def test_the_report_is_plain_json() -> None:
    report = audit(methods.get("pd_sgd"), runs=20, seed=0)
    data = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert data["verdict"] == "consistent"
    assert data["upper"] is None
    assert [finding["probe"] for finding in data["findings"]][:4] == ["sensitivity", "noise", "sampler", "ledger"]


def test_the_lower_bound_is_close_where_the_step_is_gaussian() -> None:
    found = audit_step(dpsgd(noise_multiplier=1.0), rate=1.0, runs=250, seed=0)
    assert found.upper == pytest.approx(4.377, abs=1e-3)
    assert 1.0 < found.lower < found.upper
    assert found.by_counting < found.lower
    assert found.contradiction is None


def test_less_noise_than_claimed_is_contradicted() -> None:
    from reticent.inside.planted import find

    with find("half-noise").planted():
        found = audit_step(dpsgd(noise_multiplier=1.0), rate=1.0, runs=120, seed=0)
    assert found.contradiction is not None
    assert found.lower > found.upper
    assert math.isfinite(found.lower)


def test_a_bug_that_a_method_does_without_is_no_test_of_the_audit() -> None:
    with pytest.raises(SettingError, match="nothing of class_means does what no-clip breaks"):
        audit_method("class_means", runs=20, bug="no-clip", seed=0)


def test_coarse_noise_is_seen_where_nobody_asks_for_gradients() -> None:
    for name in ("class_means", "least_squares"):
        assert "noise" in audit_method(name, runs=20, bug="coarse-noise", seed=0).said_by, name


def test_gradients_that_are_not_clipped_are_seen_where_parts_take_turns() -> None:
    assert "sensitivity" in audit_method("band_mf", runs=20, bug="no-clip", seed=0).said_by


def test_a_canary_that_moves_nothing_was_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "_moved", lambda one, two: 0.0)
    found = probes.probe_sensitivity(dpsgd(noise_multiplier=1.0))
    assert (found.holds, found.looked) == (True, False)
