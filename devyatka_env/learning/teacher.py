"""Exactly solved two-seat positions, as further lessons beside PPO.

At two seats every position of a deal has an exact value (`devyatka_env.solver`). The lessons are positions as play
meets them, mistakes included: from each deal many games are played in which a seat chooses by chance now and then, and
one of the best cards otherwise. The loss is the cross-entropy of "one of the best cards", and the squared error of the
value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from devyatka_env.engine import STATE_DTYPE, States, rules_record
from devyatka_env.engine.bitboards import count, lowest, random_card
from devyatka_env.engine.compiling import kernel
from devyatka_env.engine.deal import deal_index
from devyatka_env.engine.randomness import mix, next_word
from devyatka_env.engine.turn import step
from devyatka_env.learning.policy import MaskedPolicy
from devyatka_env.rules import Rules
from devyatka_env.solver import workspace
from devyatka_env.solver.lookup import best_cards, value_after
from devyatka_env.views import observation
from devyatka_env.views.observation import Int8Array

# Lessons from one deal: its table takes ten milliseconds, a position from it a few microseconds.
LESSONS_A_DEAL = 256
# Share of the turns that are played by chance.
MISTAKES = 0.2

_ZERO, _ONE = np.uint64(0), np.uint64(1)


class Lessons(NamedTuple):
    """Two-seat positions with more than one legal card, the mover's side.

    Attributes:
        observation: ``int8 [B, D]``.
        action_mask: ``int8 [B, C + 1]``.
        best: ``int8 [B, C + 1]``, 1 for the cards of the highest exact value.
        value: ``float32 [B]``, that value.
    """

    observation: Int8Array
    action_mask: Int8Array
    best: Int8Array
    value: NDArray[np.float32]


@kernel
def _fill(
    rules: States,
    work: Any,
    seed: np.uint64,
    first: int,
    a_deal: int,
    observations: Any,
    masks: Any,
    best: Any,
    values: Any,
) -> None:
    """Fill every row, ``a_deal`` from each deal from number ``first`` on."""
    r = rules[0]
    states = np.empty(2, STATE_DTYPE)
    start, s = states[0], states[1]
    size, actions = observations.shape[1], masks.shape[1]
    flat, flat_masks = observations.reshape(-1), masks.reshape(-1)
    row = 0
    while row < len(values):
        deal = np.uint64(first + row // a_deal)
        deal_index(start, r, 2, seed, deal)
        word = mix(seed ^ mix(deal))
        end = min(len(values), row - row % a_deal + a_deal)
        while row < end:
            states[1] = states[0]
            while s.turn >= 0 and row < end:
                legal = s.legal
                card = lowest(legal) if legal else np.int64(r.num_cards)
                if count(legal) > 1:
                    good = best_cards(s, r, work)
                    observation.encode_seat(s, r, np.int64(s.turn), flat, row * size)
                    observation.write_action_mask(s, r, np.int64(s.turn), flat_masks, row * actions)
                    for one in range(actions):
                        best[row, one] = good >> np.uint64(one) & _ONE
                    values[row] = value_after(s, r, work, good & (_ZERO - good))
                    row += 1
                    word = next_word(word)
                    chance = np.float64(mix(word) >> np.uint64(11)) * 2.0**-53
                    word = next_word(word)
                    card = random_card(legal if chance < MISTAKES else good, mix(word))
                step(s, r, card)


class Teacher:
    """A stream of lessons from the deals of a seed.

    Args:
        rules: a two-seat rule set.
        seed: seed of the deals.
        num_lessons: positions to learn from after each update.
        first_deal: index of the first deal.
        device: where losses are computed.

    Attributes:
        next_deal: index of the next deal.
    """

    def __init__(
        self, rules: Rules, seed: int, num_lessons: int, first_deal: int = 0, device: torch.device | str = "cpu"
    ) -> None:
        self.rules = rules
        self.num_lessons = num_lessons
        self.next_deal = first_deal
        self._seed = np.uint64(seed)
        self._work = workspace(rules)
        self._record = rules_record(rules)
        self._device = device

    def lessons(self, num_rows: int, a_deal: int = LESSONS_A_DEAL) -> Lessons:
        """The next ``num_rows`` lessons, in playing order."""
        num_cards = self.rules.deck.num_cards
        size = observation.observation_layout(num_cards).size
        made = Lessons(
            np.empty((num_rows, size), np.int8),
            np.empty((num_rows, num_cards + 1), np.int8),
            np.empty((num_rows, num_cards + 1), np.int8),
            np.empty(num_rows, np.float32),
        )
        _fill(self._record, self._work, self._seed, self.next_deal, a_deal, *made)
        self.next_deal += -(-num_rows // a_deal)
        return made

    def train(self, policy: MaskedPolicy, batch_size: int, max_grad_norm: float) -> tuple[float, float]:
        """Train on the next lessons, each once, in random order.

        Returns:
            The mean cross-entropy, and the share of lessons in which the most probable card is one of the best.
        """
        num_rows = self.num_lessons
        made = self.lessons(num_rows)
        rows = [torch.from_numpy(column).to(self._device) for column in made]
        losses, right = [], 0
        for chosen in torch.randperm(num_rows, device=self._device).chunk(max(1, round(num_rows / batch_size))):
            observed, mask, best, value = (column[chosen] for column in rows)
            log_probs, values = policy.log_probs({"observation": observed, "action_mask": mask})
            policy_loss = -torch.logsumexp(log_probs.masked_fill(best == 0, -torch.inf), 1).mean()
            loss = policy_loss + 0.5 * torch.nn.functional.mse_loss(values, value)
            policy.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(policy.parameters(), max_grad_norm)
            policy.optimizer.step()
            losses.append(float(policy_loss.detach()))
            right += int(best.gather(1, log_probs.argmax(1, keepdim=True)).sum())
        return float(np.mean(losses)), right / num_rows
