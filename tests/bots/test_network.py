"""The policy networks: shapes, masks, the symmetry of suits, and the way into a checkpoint and back."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from devyatka_env import Game, Rules
from devyatka_env.bots import CheckpointError, PolicyBot, make_bot
from devyatka_env.bots.checkpoint import MANIFEST, write_checkpoint
from devyatka_env.bots.network import MASKED_LOGIT, NETWORKS, PolicyNetwork, build_network
from devyatka_env.bots.policy import load_network
from devyatka_env.engine import rules_record
from devyatka_env.games import Deals
from devyatka_env.views import observation_layout
from devyatka_env.views.observation import encode_at
from tests.helpers.games import play_random

MLP = {"kind": "mlp", "hidden": [16, 8]}
SUITS = {"kind": "suits", "width": 16, "layers": 3}
SPECS = [MLP, SUITS]

# suits and ranks of decks: the two full ones, and mini-decks of two and three suits
DECKS = [(4, 9), (4, 13), (3, 5), (2, 6)]


def network_of(spec: dict[str, Any], num_cards: int = 36, seed: int = 0) -> PolicyNetwork:
    """A network whose every weight counts: heads start near zero, biases at it."""
    torch.manual_seed(seed)
    network = build_network(num_cards, spec)
    with torch.no_grad():
        for weight in network.parameters():
            weight.normal_(0, 0.3)
    return network


def suits_of(num_suits: int, num_ranks: int, seed: int = 0) -> PolicyNetwork:
    return network_of({**SUITS, "num_suits": num_suits}, num_suits * num_ranks, seed)


def random_observations(num_cards: int, count: int, seed: int) -> Tensor:
    """Any values within the layout's bounds, ``int8 [count, D]``."""
    high = observation_layout(num_cards).high.astype(np.int64)
    drawn = np.random.default_rng(seed).integers(0, high + 1, (count, len(high)))
    return torch.from_numpy(drawn.astype(np.int8))


def relabelled_cards(num_ranks: int, order: Sequence[int]) -> list[int]:
    """Where each card of the relabelled deck comes from: its suit ``s`` is the old suit ``order[s]``."""
    return [suit * num_ranks + rank for suit in order for rank in range(num_ranks)]


def relabelled(observations: Tensor, num_ranks: int, order: Sequence[int]) -> Tensor:
    """The same observations with other names for the suits, one segment of the layout after another."""
    cards = relabelled_cards(num_ranks, order)
    layout = observation_layout(len(cards))
    parts = []
    for segment in layout.segments:
        rows = observations[:, layout.slices[segment.name]].reshape(-1, segment.rows, segment.width)
        parts.append((rows[:, :, cards] if segment.cards else rows).flatten(1))
    return torch.cat(parts, 1)


def observed(game: Game) -> Tensor:
    """What the seat to move sees, ``int8 [1, D]``."""
    num_cards = game.rules.deck.num_cards
    out, mask = np.zeros(observation_layout(num_cards).size, np.int8), np.zeros(num_cards + 1, np.int8)
    encode_at(game.states, 0, rules_record(game.rules), game.turn, out, mask)
    return torch.from_numpy(out[None])


# --- shapes and masks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize(("num_suits", "num_ranks"), DECKS)
def test_networks__answer_in_the_shapes_they_promise(kind: str, num_suits: int, num_ranks: int) -> None:
    num_cards = num_suits * num_ranks
    spec = MLP if kind == "mlp" else {**SUITS, "num_suits": num_suits}
    network = build_network(num_cards, spec)
    assert network.num_cards == num_cards
    for batch in (1, 5):
        observations = random_observations(num_cards, batch, 0)
        logits, values = network.both(observations)
        assert (logits.shape, values.shape) == ((batch, num_cards + 1), (batch,))
        assert (logits.dtype, values.dtype) == (torch.float32, torch.float32)
        assert torch.equal(logits, network.raw_logits(observations))
        assert torch.equal(values, network.value(observations))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec["kind"])
def test_networks__mask_every_illegal_action_and_no_other(spec: dict[str, Any]) -> None:
    network, observations = network_of(spec), random_observations(36, 50, 1)
    masks = torch.from_numpy(np.random.default_rng(0).integers(0, 2, (50, 37), np.int8))
    logits = network.logits(observations, masks)
    raw = network.raw_logits(observations)
    assert (logits[masks == 0] == MASKED_LOGIT).all()
    assert torch.equal(logits[masks == 1], raw[masks == 1])
    assert (torch.softmax(logits, 1)[masks == 0] == 0).all()


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec["kind"])
def test_networks__every_weight_has_a_gradient(spec: dict[str, Any]) -> None:
    """A layer that was built and forgotten in the forward pass would sit in every checkpoint, untrained."""
    network = network_of(spec)
    logits, values = network.both(random_observations(36, 20, 0))
    (logits.pow(2).sum() + values.pow(2).sum()).backward()
    assert [name for name, weight in network.named_parameters() if weight.grad is None or not weight.grad.any()] == []


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec["kind"])
def test_networks__start_almost_indifferent_between_cards(spec: dict[str, Any]) -> None:
    """A policy that starts with opinions explores less; a rollout would be spent on unlearning them."""
    torch.manual_seed(0)
    games = Deals("first_out", np.arange(200), 0)
    observations, _ = games.observations(games.all)
    with torch.no_grad():
        assert build_network(36, spec).raw_logits(torch.from_numpy(observations)).abs().max() < 0.2


# --- suits are interchangeable ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_suits", "num_ranks"), DECKS)
@pytest.mark.parametrize("seed", range(2))
def test_suits__relabelling_an_observation_relabels_the_logits_and_leaves_the_value(
    num_suits: int, num_ranks: int, seed: int
) -> None:
    network = suits_of(num_suits, num_ranks, seed).double()  # sums over suits in another order round otherwise
    observations = random_observations(num_suits * num_ranks, 40, seed)
    with torch.no_grad():
        logits, values = network.both(observations)
        for order in itertools.permutations(range(num_suits)):
            other_logits, other_values = network.both(relabelled(observations, num_ranks, order))
            cards = relabelled_cards(num_ranks, order)
            assert torch.allclose(other_logits[:, :-1], logits[:, cards])
            assert torch.allclose(other_logits[:, -1], logits[:, -1])
            assert torch.allclose(other_values, values)
    assert logits[:, :num_ranks].std() > 0.1  # not by being blind


def test_suits__a_relabelled_deal_is_the_same_deal_to_it_card_by_card() -> None:
    """From the hands on: what the rules and the encoder make of a relabelled deal is relabelled, too."""
    rules, network = Rules.of("any_nine", num_players=3), suits_of(4, 9).double()
    compared = 0
    for seed, order in enumerate([(1, 0, 2, 3), (3, 2, 1, 0), (2, 3, 0, 1)]):
        came_from = relabelled_cards(9, order)
        now = [came_from.index(card) for card in range(36)]  # the relabelled id of each card
        game = play_random(Game.deal(rules, seed), random.Random(seed))
        hands = [[card for card in range(36) if mask >> card & 1] for mask in game.dealt_masks]
        one = Game.from_hands(rules, hands, game.dealer)
        two = Game.from_hands(rules, [[now[card] for card in hand] for hand in hands], game.dealer)
        for action in game.actions:
            seen = [observed(at) for at in (one, two)]
            assert torch.equal(relabelled(seen[0], 9, order), seen[1])
            with torch.no_grad():
                (logits, value), (other_logits, other_value) = (network.both(row) for row in seen)
            assert torch.allclose(other_logits[0, :36], logits[0, came_from])
            assert torch.allclose(other_value, value)
            one.play(action)
            two.play(now[action])
            compared += 1
    assert compared > 90


def test_suits__tells_the_suits_of_a_hand_apart_and_sees_all_of_them() -> None:
    """Equal treatment is not blindness: each card of the hand and each count moves the logits of every suit."""
    network = suits_of(4, 9)
    observation = random_observations(36, 1, 0)
    with torch.no_grad():
        logits = network.raw_logits(observation)
        others = network.raw_logits(observation ^ torch.eye(observation.shape[1], dtype=torch.int8))
    assert (others != logits)[:, :36].reshape(-1, 4, 9).any(2).all()


# --- descriptions ----------------------------------------------------------------------------------------------------

BAD_SPECS = [
    ({}, "unknown network kind None; the kinds are mlp, suits"),
    ({"kind": "transformer"}, "unknown network kind 'transformer'; the kinds are mlp, suits"),
    ({"kind": "mlp", "width": 8}, "network .*'width': 8.* unexpected keyword argument 'width'"),
    ({"kind": "suits", "hidden": [8]}, "network .*'hidden'.* unexpected keyword argument 'hidden'"),
    ({"kind": "suits", "num_suits": 5}, "num_suits must divide the deck of 36 cards, not 5"),
    ({"kind": "suits", "num_suits": 0}, "num_suits must divide the deck of 36 cards, not 0"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "message"), BAD_SPECS)
def test_build_network__a_bad_description_is_refused_by_name(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build_network(36, spec)


def test_build_network__a_deck_whose_suits_it_cannot_have_is_refused() -> None:
    with pytest.raises(ValueError, match="num_suits must divide the deck of 15 cards, not 4"):
        build_network(15, SUITS)


# --- checkpoints -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec["kind"])
@pytest.mark.parametrize("rules", [Rules.of("first_out"), Rules.of("deck_52", num_players=2)], ids=str)
def test_checkpoint__gives_back_the_same_network(spec: dict[str, Any], rules: Rules, tmp_path: Path) -> None:
    num_cards = rules.deck.num_cards
    network = network_of(spec, num_cards)
    write_checkpoint(tmp_path / "c", network.state_dict(), [rules], spec)
    for bot in (PolicyBot.load(tmp_path / "c"), make_bot(tmp_path / "c")):
        assert isinstance(bot, PolicyBot)
        assert type(bot.network) is type(network)
        loaded = bot.network.state_dict()
        assert loaded.keys() == network.state_dict().keys()
        assert all(torch.equal(loaded[key], weight) for key, weight in network.state_dict().items())
        observations = random_observations(num_cards, 20, 0)
        with torch.no_grad():
            assert torch.equal(bot.network.raw_logits(observations), network.raw_logits(observations))
            assert torch.equal(bot.network.value(observations), network.value(observations))
    games = Deals(rules, np.arange(100), 0)
    bot = PolicyBot.load(tmp_path / "c")
    chosen = bot.act_batch(games.views(games.all), rules, games.decision_words(games.all))
    games.step(games.all, chosen)  # an illegal card would raise


def test_checkpoint__whose_description_does_not_fit_its_weights_is_refused(tmp_path: Path) -> None:
    rules = Rules.of("first_out")
    network = suits_of(4, 9)
    for wrong in ({**SUITS, "width": 8}, {**SUITS, "layers": 2}, {**SUITS, "num_suits": 5}, MLP, {"kind": "none"}):
        manifest = write_checkpoint(tmp_path / "c", network.state_dict(), [rules], wrong)
        with pytest.raises(CheckpointError, match="the weights do not fit network"):
            load_network(tmp_path / "c", manifest)
        assert (tmp_path / "c" / MANIFEST).exists()
