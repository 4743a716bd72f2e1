"""Training: all-seats PPO self-play on stable-baselines3 (extra `train`; `Tables` needs the core alone).

- `Tables`: deals side by side in which any seat may be the learner's.
- `Lineup`: who may sit beside the learner.
- `LEARNER`: the number of the learner among the players of a table.
- `TrainConfig`: the settings of a training.
- `read_config`: the settings of a file.
- `ConfigError`: settings that cannot be used.
- `Run`: the folder of a training.
- `train`: train by self-play until the end of the settings or Ctrl-C.
- `SelfPlayPPO`: stable-baselines3's PPO, fed by every seat of every game.
- `TablesEnv`: tables as its environment.
- `SeatBuffer`: its rollout buffer: a trajectory a seat.
- `MaskedPolicy`: its policy, which reads the mask from the observation.
- `OpponentPool`: snapshots and bots to train against.
- `Teacher`: lessons from the exact solver.
"""

from typing import TYPE_CHECKING

from devyatka_env._package import lazy_attributes
from devyatka_env.learning.tables import LEARNER, Lineup, Tables

if TYPE_CHECKING:
    from devyatka_env.learning.buffer import SeatBuffer
    from devyatka_env.learning.config import ConfigError, TrainConfig, read_config
    from devyatka_env.learning.policy import MaskedPolicy
    from devyatka_env.learning.pool import OpponentPool
    from devyatka_env.learning.ppo import SelfPlayPPO, TablesEnv
    from devyatka_env.learning.run_folder import Run
    from devyatka_env.learning.selfplay import train
    from devyatka_env.learning.teacher import Teacher

__all__ = [
    "LEARNER",
    "ConfigError",
    "Lineup",
    "MaskedPolicy",
    "OpponentPool",
    "Run",
    "SeatBuffer",
    "SelfPlayPPO",
    "Tables",
    "TablesEnv",
    "Teacher",
    "TrainConfig",
    "read_config",
    "train",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    __all__,
    {
        "TrainConfig": "devyatka_env.learning.config",
        "read_config": "devyatka_env.learning.config",
        "ConfigError": "devyatka_env.learning.config",
        "Run": "devyatka_env.learning.run_folder",
        "train": "devyatka_env.learning.selfplay",
        "SelfPlayPPO": "devyatka_env.learning.ppo",
        "TablesEnv": "devyatka_env.learning.ppo",
        "SeatBuffer": "devyatka_env.learning.buffer",
        "MaskedPolicy": "devyatka_env.learning.policy",
        "OpponentPool": "devyatka_env.learning.pool",
        "Teacher": "devyatka_env.learning.teacher",
    },
)
