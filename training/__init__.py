"""Scripts over `devyatka_env.learning`: `selfplay` trains by PPO self-play, `publish` makes a shipped checkpoint.

``python -m training.selfplay --config configs/train/quick.yaml``
"""
