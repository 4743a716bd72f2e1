"""Moves per second of training, updates included, beside the common PettingZoo + stable-baselines3 self-play set-up.

Theirs is PettingZoo's own tutorial: MaskablePPO of sb3-contrib with its default settings on connect_four_v3, one game,
the agent on turn being whoever is on turn. Ours is all-seats self-play at four seats. Each with one and with two torch
threads, of which the better counts; a move is an action of any seat that the environment took, and updates are in the
time.

python -m benchmarks.training
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import gymnasium
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger

from devyatka_env.learning import TablesEnv, TrainConfig
from devyatka_env.learning.selfplay import build_model

THREADS = (1, 2)
SECONDS = 20.0
BAR = 20.0


class _Clock(BaseCallback):
    """Stops `learn` after some seconds; counts from the end of the first update on."""

    def __init__(self, seconds: float, moves: Any) -> None:
        super().__init__()
        self._seconds, self._moves = seconds, moves
        self._start: tuple[float, int] | None = None
        self._rollouts = 0
        self.rate = 0.0

    def _on_rollout_start(self) -> None:
        now, moves = time.perf_counter(), self._moves()
        if self._rollouts == 1:
            self._start = (now, moves)
        elif self._start:
            self.rate = (moves - self._start[1]) / (now - self._start[0])
        self._rollouts += 1

    def _on_step(self) -> bool:
        return self._start is None or not self.rate or time.perf_counter() - self._start[0] < self._seconds


def _ours(threads: int, seconds: float, **settings: Any) -> float:
    torch.set_num_threads(threads)
    config = TrainConfig(rules=("first_out num_players=4",), opponent_share=0.0, **settings)
    env = TablesEnv(config.parsed_rules, config.num_games, seed=0)
    model = build_model(config, env)
    model.set_logger(Logger(None, []))
    clock = _Clock(seconds, lambda: env.tables.moves)
    model.learn(10**12, clock, log_interval=None, reset_num_timesteps=False)  # type: ignore[arg-type]
    return clock.rate


def _theirs(threads: int, seconds: float) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PettingZoo's versioned modules, pygame's own
        from pettingzoo.classic import connect_four_v3
        from pettingzoo.utils import BaseWrapper
        from sb3_contrib import MaskablePPO
        from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
        from sb3_contrib.common.wrappers import ActionMasker

        class Tutorial(BaseWrapper, gymnasium.Env):  # type: ignore[misc] # as the tutorial has it
            """PettingZoo's SB3ActionMaskWrapper."""

            def reset(self, seed: int | None = None, options: Any = None) -> Any:
                super().reset(seed, options)
                self.observation_space = super().observation_space(self.possible_agents[0])["observation"]
                self.action_space = super().action_space(self.possible_agents[0])
                return self.observe(self.agent_selection), {}

            def step(self, action: Any) -> Any:
                agent = self.agent_selection
                super().step(action)
                agents = (agent, self.agent_selection)
                ended = self.terminations[agent]
                return self.observe(agents[1]), self._cumulative_rewards[agent], ended, self.truncations[agent], {}

            def observe(self, agent: Any) -> Any:
                return super().observe(agent)["observation"]

            def action_mask(self) -> Any:
                return super().observe(self.agent_selection)["action_mask"]

        env = Tutorial(connect_four_v3.env())
        env.reset(seed=0)
        torch.set_num_threads(threads)
        model = MaskablePPO(MaskableActorCriticPolicy, ActionMasker(env, Tutorial.action_mask), device="cpu", seed=0)
        model.set_logger(Logger(None, []))
        clock = _Clock(seconds, lambda: model.num_timesteps)
        model.learn(10**12, clock)
    return clock.rate


def main(seconds: float = SECONDS) -> None:
    """Print moves per second of both, and the ratio."""
    before = torch.get_num_threads()
    rates: dict[str, list[float]] = {}
    for threads in THREADS:
        rates.setdefault("MaskablePPO on connect_four_v3", []).append(_theirs(threads, seconds))
        for name, settings in (
            ("SelfPlayPPO, mlp 2 x 256", {"network": "mlp", "width": 256, "layers": 2}),
            ("SelfPlayPPO, mlp 2 x 256, float32", {"network": "mlp", "width": 256, "layers": 2, "bfloat16": False}),
            ("SelfPlayPPO, suits 2 x 128 (default)", {}),
        ):
            rates.setdefault(name, []).append(_ours(threads, seconds, **settings))
    torch.set_num_threads(before)
    base = max(rates["MaskablePPO on connect_four_v3"])
    print(f"{'moves/s with updates':40} {'1 thread':>9} {'2 threads':>9} {'best / theirs':>14}")
    for name, (one, two) in rates.items():
        print(f"{name:40} {one:>9,.0f} {two:>9,.0f} {max(one, two) / base:>14.1f}")
    ratio = max(rates["SelfPlayPPO, mlp 2 x 256"]) / base
    print(f"ratio at 2 x 256: {ratio:.1f}  >= {BAR:g} {'holds' if ratio >= BAR else 'MISSED'}")


if __name__ == "__main__":
    main()
