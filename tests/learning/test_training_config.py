"""Settings of training: every bad one is refused by name, every shipped file reads, the command line overrides."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from devyatka_env.bots import CheckpointError
from devyatka_env.bots.checkpoint import write_checkpoint
from devyatka_env.bots.network import build_network
from devyatka_env.learning import ConfigError, Run, TrainConfig, read_config
from devyatka_env.rules import PRESETS, Rules
from tests.helpers.training_helpers import MINI, TINY_RUN, plain, write_settings
from training.selfplay import main, read_arguments

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = sorted((ROOT / "configs" / "train").glob("*.yaml"))


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs go to ./runs."""
    monkeypatch.chdir(tmp_path)


# --- values ----------------------------------------------------------------------------------------------------------

THREE = MINI.replace("num_players=2", "num_players=3")
TWELVE = ["first_out num_players=2 num_suits=2 ranks=6789TJ", "first_out num_players=2 num_suits=4 ranks=89T"]

BAD_VALUES: list[tuple[dict[str, Any], str]] = [
    ({"total_decisions": 0}, "total_decisions must be above 0, not 0"),
    ({"num_games": -1}, "num_games must be above 0, not -1"),
    ({"rounds": 0}, "rounds must be above 0"),
    ({"epochs": 0}, "epochs must be above 0"),
    ({"learning_rate": 0.0}, "learning_rate must be above 0"),
    ({"clip_range": -0.2}, "clip_range must be above 0"),
    ({"max_grad_norm": 0}, "max_grad_norm must be above 0"),
    ({"width": 0}, "width must be above 0"),
    ({"layers": -1}, "layers must be above 0, not -1"),
    ({"snapshot_every": 0}, "snapshot_every must be above 0"),
    ({"pool_size": -1}, "pool_size must be at least 0, not -1"),
    ({"learner_seats": -1}, "learner_seats must be at least 0, not -1"),
    ({"eval_every": 0}, "eval_every must be above 0"),
    ({"eval_deals": 0}, "eval_deals must be above 0"),
    ({"checkpoint_every": 0}, "checkpoint_every must be above 0"),
    ({"threads": 0}, "threads must be above 0"),
    ({"gamma": 1.1}, "gamma must be from 0 to 1, not 1.1"),
    ({"gamma": float("nan")}, "gamma must be .*, not nan"),
    ({"gae_lambda": -0.1}, "gae_lambda must be from 0 to 1"),
    ({"bot_share": 2}, "bot_share must be from 0 to 1, not 2.0"),
    ({"opponent_share": -0.5}, "opponent_share must be from 0 to 1, not -0.5"),
    ({"total_decisions": "many"}, "total_decisions must be int, not 'many'"),
    ({"total_decisions": 1e6}, "total_decisions must be int, not 1000000.0"),
    ({"seed": True}, "seed must be int, not True"),
    ({"gamma": True}, "gamma must be float, not True"),
    ({"learning_rate": "fast"}, "learning_rate must be float, not 'fast'"),
    ({"bfloat16": 1}, "bfloat16 must be bool, not 1"),
    ({"rules": 4}, "rules must be tuple.*, not 4"),
    ({"rules": (4,)}, "rules must be tuple"),
    ({"bots": (1,)}, "bots must be tuple"),
    ({"network": 4}, "network must be str, not 4"),
    ({"name": ""}, "name must be a plain folder name, not ''"),
    ({"name": "a/b"}, "name must be a plain folder name, not 'a/b'"),
    ({"name": "/tmp"}, "name must be a plain folder name"),
    ({"rules": ()}, "rules needs a rule set"),
    ({"eval_against": ()}, "eval_against a bot"),
    ({"bots": (), "pool_size": 0}, "deals with opponents need bots .* or a pool_size; or opponent_share=0"),
    ({"bot_share": 0, "pool_size": 0}, "deals with opponents need bots with a bot_share above 0"),
    ({"bots": ("nobody",)}, "unknown bot 'nobody': give one of random, greedy"),
    ({"eval_against": ("runs/none",)}, "unknown bot 'runs/none'"),
    ({"rules": "whist"}, f"unknown rules preset 'whist'; the presets are {', '.join(PRESETS)}"),
    ({"rules": ("first_out", "whist")}, "unknown rules preset 'whist'"),
    ({"rules": "first_out num_players=7"}, "num_players must be 2 to 6, not 7"),
    ({"rules": "first_out colour=red"}, "unknown rule field 'colour'; the fields are num_players"),
    ({"rules": ("first_out", "deck_52")}, "one network plays decks of one size; rules has first_out .*, deck_52"),
    ({"rules": TWELVE}, "network=suits plays one number of suits; rules has first_out .* num_suits=2"),
    ({"lessons": -1}, "lessons must be at least 0, not -1"),
    ({"lessons": 8}, "lessons are of two seats, and no rule set has two: first_out num_players=4"),
    ({"network": "conv"}, "unknown network kind 'conv'; the kinds are mlp, suits"),
    # Values that torch, NumPy or stable-baselines3 refuse later, when the run's folder stands already:
    ({"batch_size": 1}, "batch_size must be"),
    (
        {"num_games": 1, "rounds": 4, "batch_size": 4, "rules": ("first_out", "bank")},
        "2 rule sets need .* num_games, not 1",
    ),
    ({"seed": -1}, "seed must be"),
    ({"seed": 2**32}, "seed must be"),
    ({"device": "gpu"}, "device must be.*cpu.*cuda.*not 'gpu'"),
    ({"name": ".."}, "name must be a plain folder name, not '..'"),
    ({"rules": ""}, "preset"),
    # Values that would train to nothing, or to numbers that are none:
    ({"learning_rate": float("nan")}, "learning_rate must be"),
    ({"learning_rate": float("inf")}, "learning_rate must be"),
    ({"entropy_coefficient": float("nan")}, "entropy_coefficient must be"),
    ({"value_coefficient": -0.5}, "value_coefficient must be"),
]


@pytest.mark.parametrize(("values", "message"), BAD_VALUES, ids=[str(values)[1:-1] for values, _ in BAD_VALUES])
def test_config__a_bad_value_is_refused_by_name_with_what_is_allowed(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrainConfig(**values)


def test_config__accepts_whole_numbers_for_floats_and_lists_or_one_text_for_tuples() -> None:
    config = TrainConfig(gamma=1, bots=["random"], rules="first_out num_players=2")
    assert (config.gamma, config.bots, config.rules) == (1.0, ("random",), ("first_out num_players=2",))
    assert isinstance(config.gamma, float)
    assert config.parsed_rules == (Rules.of("first_out", num_players=2),)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.seed = 1


def test_config__describes_its_network() -> None:
    assert TrainConfig(network="mlp", width=16, layers=3).network_spec == {"kind": "mlp", "hidden": [16, 16, 16]}
    assert TrainConfig(width=16, layers=3).network_spec == {"kind": "suits", "width": 16, "layers": 3}
    assert TrainConfig(rules=MINI, width=8).network_spec == {"kind": "suits", "width": 8, "layers": 2, "num_suits": 3}
    assert TrainConfig(rules=TWELVE, network="mlp").parsed_rules[1].num_suits == 4  # it knows no suits


def test_config__resolves_a_rules_file_to_what_it_says() -> None:
    """The run's own config must not depend on a file elsewhere that may change or move."""
    Path("mini.yaml").write_text("preset: one_loser\nnum_players: 3\n", encoding="utf-8")
    config = TrainConfig(rules=["mini.yaml", "first_out num_players=5"])
    assert config.rules == ("one_loser num_players=3", "first_out num_players=5")
    Path("mini.yaml").unlink()
    assert [rules.num_players for rules in config.parsed_rules] == [3, 5]


def test_config__a_checkpoint_bot_of_other_rules_is_refused_naming_both() -> None:
    """Found out only when it is first asked for a card, it ends a run with a traceback after its folder was made."""
    other = Rules.from_text(MINI)
    spec = {"kind": "mlp", "hidden": [4]}
    write_checkpoint("other/mini", build_network(other.deck.num_cards, spec).state_dict(), [other], spec)
    assert TrainConfig(rules=MINI, bots=("other/mini",)).bots == ("other/mini",)
    for key in ("bots", "eval_against"):
        with pytest.raises(
            CheckpointError, match=rf"other/mini was trained for {MINI}.*not for first_out num_players=4"
        ):
            TrainConfig(**{key: ("other/mini",)})


# --- files -----------------------------------------------------------------------------------------------------------


def test_configs__there_are_some() -> None:
    assert "quick.yaml" in [path.name for path in CONFIGS]


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_configs__every_shipped_file_reads_and_names_its_command(path: Path) -> None:
    config = read_config(path)
    assert config.name == path.stem
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first == f"# python -m training.selfplay --config configs/train/{path.name}"
    written = yaml.safe_load(path.read_text(encoding="utf-8"))
    defaults = TrainConfig().to_dict()
    stated = ("rules", "total_decisions")  # what a config is for is said even where it is the default
    assert [key for key in written if written[key] == defaults[key] and key not in stated] == []


BAD_FILES = [
    ("witdh: 8", "c.yaml: unknown setting witdh; the settings are name, rules, total_decisions"),
    ("gamma: 2", "c.yaml: gamma must be from 0 to 1, not 2.0"),
    ("rules: whist", "c.yaml: unknown rules preset 'whist'"),
    ("bots: [nobody]", "c.yaml: unknown bot 'nobody'"),
    ("- gamma", "c.yaml: expected `setting: value` lines, found \\['gamma'\\]"),
    ("just words", "c.yaml: expected `setting: value` lines, found 'just words'"),
    ("gamma: [1", "cannot read the config c.yaml"),
    ("1: 2", "c.yaml: unknown setting 1"),
]


@pytest.mark.parametrize(("text", "message"), BAD_FILES)
def test_read_config__a_bad_file_is_refused_by_name(text: str, message: str) -> None:
    Path("c.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        read_config("c.yaml")


def test_read_config__a_missing_file_is_named() -> None:
    with pytest.raises(ConfigError, match=r"cannot read the config nowhere.yaml: .*No such file"):
        read_config("nowhere.yaml")


def test_read_config__an_empty_file_is_the_defaults_under_its_own_name() -> None:
    Path("plain.yaml").write_text("# nothing differs\n", encoding="utf-8")
    assert read_config("plain.yaml") == TrainConfig(name="plain")


@pytest.mark.parametrize("text", ["3e-4", "1e-3", "3.0e-4"])
def test_read_config__scientific_notation_is_a_number(text: str) -> None:
    """YAML 1.1 calls 3e-4 a text for want of a point; people write step sizes so all the time."""
    Path("c.yaml").write_text(f"learning_rate: {text}\n", encoding="utf-8")
    assert read_config("c.yaml").learning_rate == float(text)


def test_write_config__is_read_back_equal() -> None:
    config = TrainConfig(
        name="девятка", rules=(MINI, MINI), width=3, bots=("greedy", "random"), learning_rate=1e-5, num_games=64
    )
    run = Run.create(config)
    assert run.folder == Path("runs/девятка")
    assert Run.open(run.folder)[1] == config
    assert read_config(run.folder / "config.yaml") == config
    assert not list(run.folder.glob("*.new"))


# --- the command line ------------------------------------------------------------------------------------------------


def test_arguments__override_the_config_and_are_written_to_the_run() -> None:
    path = write_settings(Path("tiny.yaml"))
    config, run, is_resumed = read_arguments(
        ["--config", str(path), "--seed", "5", "--rules", MINI, THREE, "--bots", "greedy", "--learning-rate", "1e-4"]
    )
    assert not is_resumed
    assert (config.seed, config.rules, config.bots, config.learning_rate) == (5, (MINI, THREE), ("greedy",), 1e-4)
    assert config.num_games == TINY_RUN["num_games"]
    assert run.folder == Path("runs/tiny")
    assert not run.folder.exists()  # until all has been checked


def test_arguments__resume_reads_the_run_and_overrides_it() -> None:
    Run.create(read_arguments(["--config", str(write_settings(Path("tiny.yaml")))])[0]).release()
    config, run, is_resumed = read_arguments(["--resume", "runs/tiny", "--total-decisions", "9999"])
    assert is_resumed
    assert run.folder == Path("runs/tiny")
    assert (config.total_decisions, config.width) == (9999, 8)


REFUSED = [
    ([], "error: name a config (--config configs/train/quick.yaml) or a run to continue (--resume runs/NAME)"),
    (["--config", "tiny.yaml", "--resume", "runs/old"], "error: --resume continues a run with its own config"),
    (
        ["--config", "tiny.yaml", "--name", "old"],
        "error: runs/old exists: continue it with --resume runs/old, or choose",
    ),
    (["--config", "nowhere.yaml"], "error: cannot read the config nowhere.yaml"),
    (["--resume", "runs/none"], "error: no run at runs/none (no config.yaml in it)"),
    (["--config", "tiny.yaml", "--witdh", "8"], "--witdh"),
    (["--config", "tiny.yaml", "--gamma", "2"], "gamma must be from 0 to 1, not 2.0"),
    (["--config", "tiny.yaml", "--gamma", "high"], "high"),
    (["--config", "tiny.yaml", "--batch-size", "1"], "batch_size must be at least 2"),
    (["--config", "tiny.yaml", "--bots", "nobody"], "unknown bot 'nobody': give one of random, greedy"),
    (["--config", "tiny.yaml", "--rules", "whist"], "unknown rules preset 'whist'"),
    (["--config", "tiny.yaml", "--seed", "-1"], "seed must be"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=[" ".join(words) or "none" for words, _ in REFUSED])
def test_main__refuses_bad_arguments_with_exit_code_2_and_leaves_no_run(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_settings(Path("tiny.yaml"))
    Run.create(TrainConfig(name="old")).metrics.write_text('{"decisions": 1}\n', encoding="utf-8")
    try:
        code: Any = main(arguments)
    except SystemExit as stop:  # tyro's own errors
        code = stop.code
    shown = capsys.readouterr()
    assert code == 2
    assert message in plain(shown.err + shown.out)
    assert "Traceback" not in shown.err
    assert [path.name for path in Path("runs").iterdir()] == ["old"]


def test_help__shows_every_setting_with_its_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    shown = plain(capsys.readouterr().out)
    for field in dataclasses.fields(TrainConfig):
        assert f"--{field.name.replace('_', '-')}" in shown
    for words in ("Decisions in a minibatch", "Learner's decisions to train on", "--config", "--resume"):
        assert words in shown


def test_resume__a_setting_that_no_longer_fits_the_weights_is_refused_and_the_run_stays_usable(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Written into the run's config first, it would break every later --resume as well."""
    assert main(["--config", str(write_settings(Path("tiny.yaml"), total_decisions=512))]) == 0
    before = Path("runs/tiny/config.yaml").read_bytes()
    changes = {"width": "32", "layers": "2", "network": "mlp", "rules": "first_out", "name": "other"}
    for key, value in changes.items():
        assert main(["--resume", "runs/tiny", "--total-decisions", "1024", f"--{key}", value]) == 2
        assert f"{key} cannot change on --resume" in capsys.readouterr().err
        assert Path("runs/tiny/config.yaml").read_bytes() == before
    assert main(["--resume", "runs/tiny", "--total-decisions", "1024"]) == 0


def test_create__takes_the_name_of_a_run_that_failed_before_it_had_anything_to_keep() -> None:
    Run.create(TrainConfig(name="failed", learning_rate=1e9)).release()
    run = Run.create(TrainConfig(name="failed"))
    assert Run.open(run.folder)[1].learning_rate == TrainConfig().learning_rate


def test_train__refuses_a_cuda_device_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    if torch.cuda.is_available():
        assert TrainConfig(device="cuda").device == "cuda"
        return
    assert main(["--config", str(write_settings(Path("tiny.yaml"))), "--device", "cuda"]) == 2
    assert "device=cuda, but torch finds no CUDA here" in capsys.readouterr().err
