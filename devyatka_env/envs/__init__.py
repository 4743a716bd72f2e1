"""Environments: thin shells over one table, for PettingZoo, Gymnasium and stable-baselines3.

- `env`: the PettingZoo AEC environment.
- `raw_env`: its class.
- `parallel_env`: the PettingZoo parallel environment.
- `DevyatkaEnv`: one seat among opponents, for Gymnasium.
- `DevyatkaVectorEnv`: the same for many deals side by side.
- `DevyatkaVecEnv`: the same as a `VecEnv` of stable-baselines3 (extra `train`).
"""

from typing import TYPE_CHECKING

from devyatka_env._package import lazy_attributes
from devyatka_env.envs.aec import env, raw_env
from devyatka_env.envs.parallel import parallel_env

if TYPE_CHECKING:
    from devyatka_env.envs.sb3 import DevyatkaVecEnv
    from devyatka_env.envs.single_agent import DevyatkaEnv
    from devyatka_env.envs.vector import DevyatkaVectorEnv

__all__ = [
    "DevyatkaEnv",
    "DevyatkaVecEnv",
    "DevyatkaVectorEnv",
    "env",
    "parallel_env",
    "raw_env",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    __all__,
    {
        "DevyatkaEnv": "devyatka_env.envs.single_agent",
        "DevyatkaVectorEnv": "devyatka_env.envs.vector",
        "DevyatkaVecEnv": "devyatka_env.envs.sb3",
    },
)
