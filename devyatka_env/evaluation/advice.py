"""What each card of a view is worth: by a bot's own search, or by playing it out with the bot in every seat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from devyatka_env.bots import BOTS, Bot, BotError, BotSpec, GreedyBot, PimcBot, ReaderBot, make_bot
from devyatka_env.bots.parameters import SEPARATOR
from devyatka_env.bots.playouts import CHANCE
from devyatka_env.bots.rollout import play_on
from devyatka_env.bots.search import MAX_WORLDS
from devyatka_env.engine import States, rules_record
from devyatka_env.engine.knowledge import reveal
from devyatka_env.evaluation.stats import Z95, Estimate, mean_of
from devyatka_env.games import Deals
from devyatka_env.rules import iter_mask
from devyatka_env.rules.numbers import check_seed, check_whole
from devyatka_env.solver.solution import Frozen
from devyatka_env.views import Belief, PlayerView

WORLDS = 1000


@dataclass(frozen=True)
class Advice(Frozen):
    """What each legal card of a view is worth, by card id.

    Attributes:
        bot: the bot's name.
        card: the card that it lays.
        payoff: the mean payoff.
        win: the probability of place 1 (of a shared place, the share).
        behind: of each other card, the mean payoff less that of the bot's card, deal by deal; none where exact values
            decide.
        value: the mean of the exact value with both hands open (`devyatka_env.solver.solve`), by a search at two seats.
        exact: whether payoff and win are no estimates.
        notes: sentences that say how the figures come about.
    """

    bot: str
    card: int
    payoff: Mapping[int, Estimate] = field(hash=False)
    win: Mapping[int, Estimate] = field(hash=False)
    notes: tuple[str, ...]
    behind: Mapping[int, Estimate] = field(default_factory=dict, hash=False)
    value: Mapping[int, float] = field(default_factory=dict, hash=False)
    exact: bool = False


def advise(view: PlayerView, bot: BotSpec, worlds: int | None = None, seed: int = 0) -> Advice:
    """Value each legal card of a view.

    Args:
        view: of the seat on turn, with a card to lay.
        bot: who is asked.
        worlds: ways of the hidden cards to look at, 2 to `MAX_WORLDS`; ``None`` for those of a search bot given as an
            object, by a name of your own, or with ``worlds=`` in its name, and for `WORLDS` of any other.
        seed: of these and of the bot's coin flips.

    Raises:
        ValueError: a bot that sees all hands or does not play these rules; a bad number of worlds, or one told twice;
            or a bad seed.
        BeliefError: no deal agrees with the view.
        BotError: the bot failed.
    """
    if not view.legal_mask:
        raise ValueError(f"{view!r}: there is no card to advise on")
    seed = check_seed(seed)
    adviser, worlds = _prepared(bot, worlds)
    if adviser.sees_all_hands:
        raise ValueError(f"bot {adviser.name} sees all hands, so it has no advice for a seat that does not")
    adviser.check_rules(view.rules)
    belief = Belief(view)
    if not isinstance(adviser, PimcBot):
        return _played_out(adviser, belief, worlds, seed)
    if view.legal_mask.bit_count() == 1:
        return _played_out(GreedyBot(), belief, worlds, seed)  # nothing to search
    return _searched(adviser, belief, worlds, seed)


def _prepared(spec: BotSpec, worlds: int | None) -> tuple[Bot, int]:
    """The bot, and how many worlds to look at: of a search bot, its own number."""
    if worlds is not None:
        worlds = check_whole("worlds", worlds, 2, MAX_WORLDS)
    bot = make_bot(spec)
    if not isinstance(bot, PimcBot):
        return bot, WORLDS if worlds is None else worlds
    is_told = any(word.startswith("worlds=") for word in bot.name.split(SEPARATOR)[1:])
    if is_told and worlds is not None:
        raise ValueError(f"the number of worlds is told twice: {worlds}, and in {bot.name}")
    if worlds is not None:
        bot = bot.with_worlds(worlds)
    elif not is_told and isinstance(spec, str) and spec.split(SEPARATOR)[0] in BOTS:
        bot = bot.with_worlds(WORLDS)  # more than in play: a person waits longer than an evaluation
    if bot.worlds < 2:
        raise ValueError(f"worlds must be at least 2 for an interval, not {bot.worlds} as of {bot.name}")
    return bot, bot.worlds


# --- by the bot's search ---------------------------------------------------------------------------------------------


def _searched(bot: PimcBot, belief: Belief, worlds: int, seed: int) -> Advice:
    """What the bot's search finds, from the same randomness as its choice."""
    view = belief.view
    found = bot.evaluate_cards(view, np.random.default_rng(seed))
    value = {card: one.value for card, one in found.items() if one.value is not None}
    card = _choice(bot, view, _word(seed))
    return Advice(
        bot=bot.name,
        card=card,
        payoff={card: _mean(one.payoff, one.payoff_error, worlds) for card, one in found.items()},
        win={card: _share(one.win, worlds) for card, one in found.items()},
        behind={}
        if value
        else {other: _mean(one.behind, one.behind_error, worlds) for other, one in found.items() if other != card},
        value=value,
        notes=_search_notes(bot, belief, worlds, bool(value)),
    )


def _mean(mean: float, error: float, count: int) -> Estimate:
    """A mean with its 95 % interval."""
    return Estimate(mean, mean - Z95 * error, mean + Z95 * error, count)


def _search_notes(bot: PimcBot, belief: Belief, worlds: int, has_values: bool) -> tuple[str, ...]:
    player = bot.playout
    by_chance = f"one card in {1 / CHANCE:.0f} by chance"
    if belief.count == 1:
        course = f"payoff and wins: {worlds:,} playouts by {player} in every seat, {by_chance}."
    elif isinstance(bot, ReaderBot):
        course = (
            f"Each card was laid in {worlds:,} deals, drawn by how likely the others, taken for {player}, lay in them"
            f" what they have laid; each was played to its end by {player} in every seat, {by_chance}. Deals drawn"
            " more than once make the true intervals wider."
        )
    else:
        course = (
            f"Each card was laid in {worlds:,} deals drawn evenly from those that agree with what you see; each was"
            f" played to its end by {player} in every seat, {by_chance}."
        )
    if not has_values:
        return (course,)
    margin = ", your payoff less the other seat's" if belief.view.rules.payoff in ("cards", "points") else ""
    deals = "you know the other hand" if belief.count == 1 else "the mean over the deals, both hands open in each"
    return f"value: exact, by best play of both seats from here on ({deals}){margin}.", course


def _word(seed: int) -> NDArray[np.uint64]:
    """The randomness of the bot's choice: what a searching bot draws from ``default_rng(seed)``."""
    return np.random.default_rng(seed).integers(0, 2**64, size=1, dtype=np.uint64)


def _choice(bot: Bot, view: PlayerView, word: NDArray[np.uint64]) -> int:
    """The card that the bot itself lays.

    Raises:
        BotError: none that is legal, or the bot failed.
    """
    try:
        card = int(bot.act_batch(view.record.copy(), view.rules, word)[0])
    except Exception as error:
        raise BotError(f"bot {bot.name} failed on what you see: {error}", bot.name) from error
    if card not in view.legal_actions():
        raise BotError(f"bot {bot.name} chose action {card}; legal: {view.legal_actions()}", bot.name)
    return card


def _share(mean: float, count: int) -> Estimate:
    """A mean of shares 0 to 1 with its 95 % interval (Wilson 1927), which is right near 0 and 1, too."""
    part = Z95**2 / count
    middle = (mean + part / 2) / (1 + part)
    half = (part * (mean * (1 - mean) + part / 4)) ** 0.5 / (1 + part)
    return Estimate(mean, max(middle - half, 0.0), min(middle + half, 1.0), count)


# --- by playing out --------------------------------------------------------------------------------------------------


def _played_out(bot: Bot, belief: Belief, worlds: int, seed: int) -> Advice:
    """Play each card in each of some worlds, and let the bot play every seat to the end."""
    view = belief.view
    every = belief.count <= worlds and bot.deterministic
    states = _every_world(belief) if every else belief.sample_states(np.random.default_rng(seed), worlds)
    advised = _choice(bot, view, _word(seed))
    count, cards = len(states), list(iter_mask(view.legal_mask))
    # A world has the same number with every card, and with it the same coin flips.
    games = Deals(view.rules, np.tile(np.arange(count), len(cards)), seed)
    games.states[:] = np.tile(states, len(cards))
    games.step(games.all, np.repeat(cards, count))
    try:
        play_on(games, [bot], np.zeros((len(games), view.num_players), np.int64), games.all)
    except BotError as error:  # it names the deal by numbers that mean nothing to who asks
        moment = "later in a deal that agrees with what you see"
        raise BotError(f"bot {bot.name} failed or chose no legal card {moment}", bot.name) from error
    payoffs = games.payoffs(games.all)[:, view.seat].reshape(len(cards), count)
    places = games.states["places"][:, : view.num_players]
    wins = np.where(places[:, view.seat] == 1, 1 / (places == 1).sum(1), 0.0).reshape(len(cards), count)
    rows = dict(zip(cards, payoffs, strict=True))
    deals = f"{count:,} deals drawn evenly from those that agree with what you see"
    if every:
        deals = f"all {count:,} deals that agree with what you see" if count > 1 else "the one deal that can be"
    return Advice(
        bot=bot.name,
        card=advised,
        payoff={card: mean_of(row) for card, row in rows.items()},
        win={card: _share(float(row.mean()), count) for card, row in zip(cards, wins, strict=True)},
        behind={card: mean_of(row - rows[advised]) for card, row in rows.items() if card != advised},
        exact=every,
        notes=(f"Each card was played in {deals}, with {bot.name} in every seat to the end, yours too.",),
    )


def _every_world(belief: Belief) -> States:
    """Every deal that agrees, as engine records."""
    hands = np.ascontiguousarray(belief.deals(range(belief.count)))
    worlds = np.repeat(belief.view.record, belief.count)
    for world, held in zip(worlds, hands, strict=True):
        reveal(world, rules_record(belief.view.rules)[0], held)
    return worlds
