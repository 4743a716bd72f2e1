"""`Tables`: games in which any seat may be the learner's, replayed on `Game` from what callers are told."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from devyatka_env import Game, Rules
from devyatka_env.bots import Bot, BotError, CallableBot, GreedyBot, PolicyBot, RandomBot
from devyatka_env.games import Deals
from devyatka_env.learning import LEARNER, Lineup, Tables
from devyatka_env.learning import tables as module
from devyatka_env.learning.tables import Finished
from devyatka_env.rules.rule_set import RANKS_36
from devyatka_env.views.observation import Int8Array
from tests.helpers.games import choose_rules
from tests.helpers.players import lowest, tiny_network
from tests.helpers.training_helpers import MINI, random_legal

MIXED = [Rules.of("first_out", num_players=n) for n in range(2, 7)]
SEED = 5

# --- a replay --------------------------------------------------------------------------------------------------------


class Highest(PolicyBot):
    """A network opponent with a mind that a test can read: its highest legal action. It notes what it was asked."""

    def __init__(self) -> None:
        super().__init__(tiny_network(), name="highest")
        self.asked = 0

    def choose(self, observations: Int8Array, masks: Int8Array, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        assert len(observations) == len(masks) == len(words)
        assert (masks.sum(1) >= 2).all()  # nothing is asked where nothing is to be chosen
        self.asked += len(masks)
        return masks.shape[1] - 1 - masks[:, ::-1].argmax(1)


Decision = tuple[int, int, int, bytes, bytes]  # seat, player, action, observation, action mask


class Witness:
    """Plays tables on as training does, and keeps for each game its decisions and its finished deals."""

    def __init__(self, tables: Tables, seed: int = 0) -> None:
        self.tables = tables
        self.rng = np.random.default_rng(seed)
        self.open: list[list[Decision]] = [[] for _ in range(tables.num_games)]
        self.deals: list[list[tuple[list[Decision], list[int], list[float], list[float]]]]
        self.deals = [[] for _ in range(tables.num_games)]

    def play(self, rounds: int) -> None:
        """Take random actions for the learner; networks are asked."""
        tables = self.tables
        for _ in range(rounds):
            assert (tables.action_masks.sum(1) >= 2).all()  # a decision in every game, and a real one
            assert (tables.pending >= 0).all()
            actions = random_legal(tables.action_masks, self.rng)
            for player in np.unique(tables.pending[tables.pending != LEARNER]):
                theirs = np.flatnonzero(tables.pending == player)
                rows = tables.observations[theirs], tables.action_masks[theirs]
                actions[theirs] = tables.network(int(player)).choose(*rows, tables.words(theirs))
            columns = (tables.seats, tables.pending, actions)
            made = zip(*(column.tolist() for column in columns), tables.observations, tables.action_masks, strict=True)
            for game, (seat, player, action, observation, mask) in enumerate(made):
                self.open[game].append((seat, player, action, observation.tobytes(), mask.tobytes()))
            self.note(tables.step(actions))

    def note(self, finished: Finished) -> None:
        """Close the deals that ended."""
        columns = (finished.games, finished.players, finished.payoffs, finished.wins)
        for game, players, payoffs, wins in zip(*(column.tolist() for column in columns), strict=True):
            self.deals[game].append((self.open[game], players, payoffs, wins))
            self.open[game] = []


def replay(
    rules: Rules, index: int, players: Sequence[int], bots: Sequence[Bot], decisions: Sequence[Decision]
) -> Game | None:
    """Play deal ``index`` as the witness saw it, every other turn as the rules and the bots would have it.

    ``None``: the deal was not yet over when its decisions ended.
    """
    game, left = Game.deal(rules, SEED, index), list(decisions)
    twin = Deals(rules, np.array([index]), SEED)
    while not game.is_over:
        legal, player = game.legal_actions(), players[game.turn]
        bot = bots[player - 1] if player != LEARNER else None
        if len(legal) == 1:
            action = legal[0]
        elif bot is None or isinstance(bot, PolicyBot):
            if not left:
                return None
            seat, who, action, observation, mask = left.pop(0)
            assert (seat, who) == (game.turn, player)
            seen, allowed = twin.observations(twin.all)
            assert (seen.tobytes(), allowed.tobytes()) == (observation, mask)
            assert bot is None or action == legal[-1]
        else:
            action = int(bot.act_batch(twin.views(twin.all), rules, twin.decision_words(twin.all))[0])
        game.play(action)
        twin.step(twin.all, np.array([action]))
    assert not left
    return game


def laid(game: Game) -> int:
    """Cards laid."""
    return sum(action != game.rules.pass_action for action in game.actions)


def check(witness: Witness, first_deal: int, bots: Sequence[Bot], block_of: Sequence[tuple[Rules, int, int]]) -> int:
    """Replay all that a witness saw; returns the number of deals. ``block_of``: rules, place and size by game."""
    count, moves, last = 0, 0, first_deal
    for game, (rules, place, size) in enumerate(block_of):
        n = rules.num_players
        index = first_deal + place
        while (forced := replay(rules, index, [LEARNER] * n, [], [])) is not None:
            index += size  # deals without a decision, over before the tables were shown to anybody
            moves += laid(forced)
        for decisions, players, payoffs, wins in witness.deals[game]:
            over = replay(rules, index, players, bots, decisions)
            assert over is not None
            result = over.result()
            assert players[n:] == [-1] * (6 - n)
            assert payoffs == pytest.approx([*result.payoffs, *[0.0] * (6 - n)])
            firsts = [place == 1 for place in result.places]
            assert wins == pytest.approx([first / sum(firsts) for first in firsts] + [0.0] * (6 - n))
            moves += laid(over)
            index += size
            count += 1
        players = witness.tables._players[game].tolist()  # of the deal in play nobody is told yet
        assert replay(rules, index, players, bots, witness.open[game]) is None
        last = max(last, index)
    assert witness.tables.next_deal == last + 1
    assert witness.tables.moves == moves
    return count


def blocks(rules: Sequence[Rules], num_games: int) -> list[tuple[Rules, int, int]]:
    """Which games play which rules, for numbers of games that the rules share without a rest."""
    size = num_games // len(rules)
    return [(one, place, size) for one in rules for place in range(size)]


# --- decisions and deals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first_deal", [0, 1000])
def test_tables__play_the_deals_of_the_seed_each_once_and_show_every_real_decision(first_deal: int) -> None:
    tables = Tables(MIXED, 15, SEED, first_deal)
    witness = Witness(tables)
    witness.play(80)
    assert check(witness, first_deal, [], blocks(MIXED, 15)) > 50


def test_tables__seat_bots_inside_and_ask_networks_as_the_finished_deals_say() -> None:
    bots: list[Bot] = [GreedyBot(), Highest(), RandomBot(), CallableBot(lowest)]
    tables = Tables(MIXED, 15, SEED)
    witness = Witness(tables)
    witness.play(20)  # before there are opponents
    tables.set_lineup(Lineup(bots, [0.3, 0.3, 0.2, 0.2], share=0.7))
    witness.play(160)
    assert check(witness, 0, bots, blocks(MIXED, 15)) > 150
    seated = {player for deals in witness.deals for _, players, _, _ in deals for player in players}
    assert seated == {-1, 0, 1, 2, 3, 4}
    asked = sum(player == 2 for deals in witness.deals for decisions, *_ in deals for _, player, *_ in decisions)
    spy = bots[1]
    assert isinstance(spy, Highest)
    assert asked + sum(player == 2 for decisions in witness.open for _, player, *_ in decisions) == spy.asked > 100


@pytest.mark.parametrize("seed", range(12))
def test_tables__follow_any_rules(seed: int) -> None:
    """Random rule sets on one mini-deck, fouls and explicit passes and cards out of play among them."""
    rng = random.Random(seed)
    sets: list[Rules] = []
    deck = {"num_suits": 3, "ranks": RANKS_36[1:8], "starter": "9"}
    while len(sets) < 3:
        drawn = choose_rules(rng.choice)
        if drawn.cards_per_seat is None or drawn.cards_per_seat * drawn.num_players <= 21:
            few = drawn.cards_per_seat is not None and drawn.cards_per_seat < 3
            sets.append(Rules.of(drawn, **deck, **({"cards_per_seat": 3} if few else {})))
    bots = [GreedyBot(), RandomBot()]
    tables = Tables(sets, 9, SEED)
    witness = Witness(tables, seed)
    tables.set_lineup(Lineup(bots, [0.5, 0.5], share=0.5))
    witness.play(40)
    assert check(witness, 0, bots, blocks(sets, 9)) > 20


def test_tables__share_the_games_out_evenly_in_order() -> None:
    tables = Tables([Rules.of(num_players=n) for n in (6, 2, 4)], 11, SEED)
    witness = Witness(tables)
    witness.play(60)
    seats = [max(sum(player >= 0 for player in players) for _, players, *_ in deals) for deals in witness.deals]
    assert seats == [6] * 4 + [2] * 3 + [4] * 4


def test_tables__of_a_later_first_deal_go_on_with_deals_that_nobody_has_played() -> None:
    before = Tables([Rules.of()], 8, SEED)
    Witness(before).play(50)
    after = Tables([Rules.of()], 8, SEED, before.next_deal)
    witness = Witness(after)
    witness.play(30)
    assert check(witness, before.next_deal, [], blocks([Rules.of()], 8)) > 8


def test_deals_without_a_decision__are_paid_and_dealt_again_within_the_same_round() -> None:
    """Two suits of three ranks at three seats: most deals are forced from the opening card on."""
    rules = [Rules.of(num_players=3, num_suits=2, ranks="89T", starter="9")]
    tables = Tables(rules, 20, SEED)
    witness = Witness(tables)
    witness.play(60)
    assert check(witness, 0, [], blocks(rules, 20)) > 500
    empty = sum(not decisions for deals in witness.deals for decisions, *_ in deals)
    assert empty > 100


def test_rules_that_leave_nothing_to_decide__are_refused_instead_of_dealt_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_FORCED", 20)
    one_card_each = Rules.of(num_players=6, num_suits=2, ranks="89T", starter="9")
    with pytest.raises(ValueError, match=r"20 deals of first_out num_players=6 num_suits=2 .* had no decision"):
        Tables([one_card_each], 4, SEED)


# --- line-ups --------------------------------------------------------------------------------------------------------


def seatings(tables: Tables, rounds: int) -> NDArray[np.int64]:
    """Who sat in the deals that begin from now on: ``[K, 6]``, those in play at first left out."""
    witness = Witness(tables)
    witness.play(rounds)
    return np.array([players for deals in witness.deals for _, players, *_ in deals[1:]])


@pytest.mark.parametrize("learner_seats", [1, 2, 3, 5, None])
def test_lineup__shares_and_learner_seats_are_as_asked(learner_seats: int | None) -> None:
    tables = Tables([Rules.from_text(f"first_out num_players={n} ranks=789TJ") for n in (2, 4, 6)], 300, SEED)
    tables.set_lineup(Lineup([GreedyBot(), RandomBot()], [0.25, 0.75], 0.6, learner_seats))
    players = seatings(tables, 40)
    assert len(players) > 1200
    opponents = (players > LEARNER).sum(1)
    # A share of 1,200 deals has a standard error of at most 0.0145; four of them. As for the weights, of 700 deals.
    assert (opponents > 0).mean() == pytest.approx(0.6, abs=0.058)
    of_first = (players == 1).any(1)[opponents > 0].mean()
    assert of_first == pytest.approx(0.25, abs=0.066)
    assert not ((players == 1).any(1) & (players == 2).any(1)).any()  # one opponent a deal
    for n in (2, 4, 6):
        played = players[((players >= 0).sum(1) == n) & (opponents > 0)]
        own = (played == LEARNER).sum(1)
        if learner_seats is None:
            assert set(own.tolist()) == set(range(1, n))  # 1 to all but one, about as often each
            assert np.bincount(own, minlength=n)[1:].min() > 0.7 * len(own) / (n - 1)
        else:
            assert (own == min(learner_seats, n - 1)).all()
        by_seat = (played[:, :n] == LEARNER).mean(0)  # no seat is preferred: 300 deals, 4 standard errors
        assert np.ptp(by_seat) < 0.24


def test_lineup__of_a_share_of_1_or_0_leaves_no_exception() -> None:
    tables = Tables([Rules.from_text(MINI)], 50, SEED)
    tables.set_lineup(Lineup([RandomBot()], [1.0], 1.0))
    assert ((seatings(tables, 30) == 1).sum(1) == 1).all()
    tables.set_lineup(Lineup([RandomBot()], [1.0], 0.0))
    assert (seatings(tables, 30) <= LEARNER).all()


def test_lineup__a_new_one_takes_over_the_deals_in_play_place_for_place() -> None:
    tables = Tables([Rules.of()], 30, SEED)
    first, second = Highest(), Highest()
    tables.set_lineup(Lineup([RandomBot(), first], [0.0, 1.0], 1.0, 2))
    Witness(tables).play(30)
    before = first.asked
    assert before > 100
    tables.set_lineup(Lineup([CallableBot(lowest), second], [0.0, 1.0], 1.0, 2))
    Witness(tables).play(3)
    assert first.asked == before
    assert second.asked > 10
    assert tables.network(2) is second


def test_lineup__the_same_seed_draws_the_same_and_another_does_not() -> None:
    def trace(seed: int) -> list[bytes]:
        tables = Tables([Rules.of(num_players=3)], 20, seed)
        tables.set_lineup(Lineup([GreedyBot(), PolicyBot(tiny_network(), sample=True)], [0.5, 0.5], 0.8))
        rng, seen = np.random.default_rng(0), []
        for _ in range(40):
            actions = random_legal(tables.action_masks, rng)
            finished = tables.step(actions)
            seen += [tables.observations.tobytes(), finished.players.tobytes(), tables.words(np.arange(20)).tobytes()]
        return seen

    assert trace(1) == trace(1)
    assert trace(1) != trace(2)


def test_words__of_networks_are_those_of_their_deals_whatever_was_asked_before() -> None:
    """A word belongs to a decision: the seed, the deal, the seat, and the cards laid."""
    tables = Tables(MIXED, 15, SEED)
    tables.set_lineup(Lineup([Highest()], [1.0], 0.8))
    Witness(tables).play(20)
    words = tables.words(np.arange(15))
    assert (words == tables.words(np.arange(15))).all()
    assert len(set(words.tolist())) == 15
    some = np.array([0, 2, 3, 9, 14])
    assert (tables.words(some) == words[some]).all()
    for game, word in enumerate(words.tolist()):
        deals, place = tables._deals[game // 3], np.array([game % 3])
        same = Deals(deals.rules, deals.indices[place], SEED)
        same.states[:] = deals.states[place]
        assert same.decision_words(same.all).tolist() == [word]


def test_lineup__greedy_inside_wins_more_than_the_random_learner() -> None:
    tables = Tables([Rules.of()], 200, SEED)
    tables.set_lineup(Lineup([GreedyBot()], [1.0], 1.0, 2))
    rng, wins = np.random.default_rng(0), np.zeros(2)
    for _ in range(40):
        finished = tables.step(random_legal(tables.action_masks, rng))
        with_bots = finished.players.max(1) > LEARNER  # not those that were in play before there were opponents
        wins += [finished.wins[with_bots][finished.players[with_bots] == player].sum() for player in (LEARNER, 1)]
    # Two seats each. Measured 0.72 of 444 deals, where 0.5 is equal play: standard error 0.02.
    assert wins.sum() > 400
    assert wins[1] / wins.sum() > 0.6


# --- errors ----------------------------------------------------------------------------------------------------------

BAD_LINEUPS: list[tuple[Lineup, str]] = [
    (Lineup([GreedyBot()], [0.5], 0.5), r"1 opponents need as many weights that add up to 1, not \[0.5\]"),
    (Lineup([GreedyBot()], [0.5, 0.5], 0.5), "1 opponents need as many weights"),
    (Lineup([], [], 0.5), "0 opponents need as many weights"),
    (Lineup([PolicyBot(tiny_network(), (Rules.of("bank"),))], [1.0], 0.5), "policy was trained for bank"),
]  # fmt: skip


@pytest.mark.parametrize(("lineup", "message"), BAD_LINEUPS)
def test_lineup__a_bad_one_is_refused_and_the_old_one_stays(lineup: Lineup, message: str) -> None:
    tables = Tables([Rules.of()], 20, SEED)
    tables.set_lineup(Lineup([Highest()], [1.0], 1.0, 1))
    with pytest.raises(ValueError, match=message):
        tables.set_lineup(lineup)
    witness = Witness(tables)
    witness.play(40)
    assert all(players.count(1) == 3 for deals in witness.deals for _, players, *_ in deals[1:])


@pytest.mark.parametrize("bots", [[GreedyBot()], [Highest(), GreedyBot()], [GreedyBot(), GreedyBot()]])
def test_lineup__networks_stay_in_their_places(bots: list[Bot]) -> None:
    """The deals in play were seated for the last line-up: a bot inside where a network was would never be asked."""
    tables = Tables([Rules.of()], 8, SEED)
    tables.set_lineup(Lineup([GreedyBot(), Highest()], [0.5, 0.5], 0.5))
    with pytest.raises(ValueError, match="networks in the places of the last one's"):
        tables.set_lineup(Lineup(bots, [1 / len(bots)] * len(bots), 0.5))


def test_tables__of_two_deck_sizes_or_too_few_games_are_refused() -> None:
    with pytest.raises(ValueError, match="decks of one size, not first_out num_players=4, deck_52 num_players=4"):
        Tables([Rules.of(), Rules.of("deck_52")], 4, SEED)
    with pytest.raises(ValueError, match="5 rule sets need at least as many games, not 4"):
        Tables(MIXED, 4, SEED)


@pytest.mark.parametrize("game", [0, 3, 5])
@pytest.mark.parametrize("bad", ["not in hand", "pass", "negative", "beyond"])
def test_step__an_illegal_action_names_its_game_and_changes_nothing(game: int, bad: str) -> None:
    tables = Tables([Rules.of("winner_and_loser", num_players=n) for n in (2, 3)], 6, SEED)
    before = [array.copy() for array in (tables.observations, tables.action_masks, tables.seats, tables.pending)]
    actions: NDArray[np.int64] = tables.action_masks.argmax(1)
    numbers = {"not in hand": int((tables.action_masks[game] == 0).argmax()), "pass": 36, "negative": -1, "beyond": 37}
    actions[game] = numbers[bad]
    legal = np.flatnonzero(tables.action_masks[game]).tolist()
    with pytest.raises(ValueError, match=rf"illegal action {numbers[bad]} in game {game}; legal: \{legal}"):
        tables.step(actions)
    after = (tables.observations, tables.action_masks, tables.seats, tables.pending)
    assert all((a == b).all() for a, b in zip(before, after, strict=True))
    twin = Tables(tables.rules, 6, SEED)
    for one in (tables, twin):
        one.step(one.action_masks.argmax(1))
    assert (tables.observations == twin.observations).all()


@pytest.mark.parametrize("count", [0, 5, 7])
def test_step__takes_one_action_a_game(count: int) -> None:
    tables = Tables([Rules.of()], 6, SEED)
    with pytest.raises(ValueError, match=rf"6 games need actions of shape \(6,\), not \({count},\)"):
        tables.step(np.zeros(count, np.int64))


def test_step__names_an_opponent_that_fails() -> None:
    def broken(*arguments: Any) -> int:
        raise RuntimeError("no idea")

    tables = Tables([Rules.of()], 6, SEED)
    tables.set_lineup(Lineup([CallableBot(broken, "broken")], [1.0], 1.0))
    with pytest.raises(BotError, match=r"bot broken failed .*no idea"):
        Witness(tables).play(60)


def test_finished__is_empty_in_a_round_that_ends_no_deal() -> None:
    tables = Tables([Rules.of()], 4, SEED)
    finished = tables.step(tables.action_masks.argmax(1))
    assert [len(column) for column in finished] == [0] * 4
    assert [column.shape[1:] for column in finished[1:]] == [(6,)] * 3
    assert list(itertools.chain(finished.games)) == []
