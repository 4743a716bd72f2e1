"""The games behind a result, played again move by move."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from devyatka_env.bots import Bot
from devyatka_env.engine.randomness import decision_word
from devyatka_env.engine.seeds import Seed, word_key
from devyatka_env.games import Game
from devyatka_env.rules import Rules


def replay_deal(bots: Sequence[Bot], rules: Rules, seed: Seed, deal: int) -> list[Game]:
    """The finished games of one deal of an evaluation, game ``k`` with bot 0 in seat ``k``: the very moves it played.

    Args:
        bots: the candidate and its opponents, clockwise.
        rules: the rule set.
        seed: the evaluation's seed.
        deal: index of the deal.
    """
    return [_play(bots, Game.deal(rules, seed, deal), seat, seed, deal) for seat in range(rules.num_players)]


def _play(bots: Sequence[Bot], game: Game, candidate: int, seed: Seed, deal: int) -> Game:
    while not game.is_over:
        legal = game.legal_actions()
        action = legal[0]
        if len(legal) > 1:  # as in the arena, nobody is asked otherwise
            bot = bots[(game.turn - candidate) % game.num_players]
            record = game.states.copy() if bot.sees_all_hands else game.view(game.turn).record
            word = decision_word(word_key(seed), np.uint64(deal), game.turn, int(game.record["num_played"]))
            action = int(bot.act_batch(record, game.rules, np.array([word], np.uint64))[0])
        game.play(action)
    return game
