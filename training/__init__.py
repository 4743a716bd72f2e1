"""PPO self-play on stable-baselines3, run from a clone.

``python -m training.selfplay --config configs/train/quick.yaml``: `selfplay` tells the story; `config` holds its
settings, `policy` the masked policy, `pool` the opponents, `monitor` what is logged and saved, `curves` the pictures,
`run` the folder it all goes to.
"""
