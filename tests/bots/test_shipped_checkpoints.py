"""The shipped checkpoints are what their cards say: whole, small, and as strong as measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from devyatka_env.bots import PolicyBot, make_bot
from devyatka_env.bots.checkpoint import WEIGHTS, read_manifest, read_weights
from devyatka_env.evaluation import regret
from devyatka_env.rules import Rules
from training.publish import CARD, card, check

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = sorted(path.parent for path in (ROOT / "checkpoints").glob("*/manifest.json"))


def test_shipped__there_is_the_universal_one() -> None:
    assert ROOT / "checkpoints" / "universal" in SHIPPED


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda path: path.name)
def test_shipped__weights_are_those_of_the_manifest_and_small(folder: Path) -> None:
    manifest = read_manifest(folder)
    weights = read_weights(folder, manifest)  # checks the digest
    assert sum(tensor.numel() for tensor in weights.values()) == manifest.evaluation["parameters"]
    assert (folder / WEIGHTS).stat().st_size < 5_000_000


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda path: path.name)
def test_shipped__card_is_made_of_the_manifest(folder: Path) -> None:
    assert (folder / CARD).read_text(encoding="utf-8") == card(folder.name, read_manifest(folder))


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda path: path.name)
def test_shipped__is_as_strong_on_fixed_deals_as_the_manifest_says(folder: Path) -> None:
    """The same deals again; other processors may round a logit differently and lay another card here and there."""
    manifest = read_manifest(folder)
    for rules in manifest.rules:
        assert check(folder, rules) == pytest.approx(manifest.evaluation["check"][str(rules)], abs=0.01)


def test_universal__is_above_chance_against_greedy_at_every_table() -> None:
    manifest = read_manifest(ROOT / "checkpoints" / "universal")
    assert [rules.num_players for rules in manifest.rules] == [2, 3, 4, 5, 6]
    assert manifest.evaluation["deals"] >= 20_000
    for rules in manifest.rules:
        mean, half = manifest.evaluation["against"]["greedy"][str(rules)]["argmax"]
        assert mean - half > 1 / rules.num_players


def test_universal__hardly_ever_gives_a_won_deal_away_at_two_seats() -> None:
    lost = regret(make_bot(ROOT / "checkpoints" / "universal"), Rules.of("first_out", num_players=2), 300, seed=77)
    assert lost.decisions > 5000
    assert lost.mistakes.mean < 0.001


def test_universal__refuses_rules_it_was_not_trained_for() -> None:
    bot = PolicyBot.load(ROOT / "checkpoints" / "universal")
    with pytest.raises(ValueError, match="was trained for"):
        bot.check_rules(Rules.of("one_loser"))
