"""`MaskedPolicy`: illegal actions have no probability in sampling, in the loss, in `predict`, and after loading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO

from devyatka_env import Rules
from devyatka_env.bots import PolicyBot
from devyatka_env.bots.checkpoint import write_checkpoint
from devyatka_env.bots.network import MLP, PolicyNetwork
from devyatka_env.envs import DevyatkaVecEnv
from devyatka_env.games import Deals
from devyatka_env.learning import MaskedPolicy
from devyatka_env.learning.policy import policy_of
from devyatka_env.views.observation import Int8Array, observation_layout
from tests.helpers.training_helpers import MINI, random_legal

SPEC = {"kind": "mlp", "hidden": [16, 8]}

Arrays = dict[str, Int8Array]


def model_of(rules: str = "first_out", num_envs: int = 16, **settings: Any) -> PPO:
    env = DevyatkaVecEnv(Rules.from_text(rules), num_envs, "random")
    return PPO(
        MaskedPolicy, env, n_steps=8, batch_size=64, policy_kwargs={"network": SPEC}, seed=0, device="cpu", **settings
    )


def moments(rules: str = "first_out", steps: int = 8) -> Arrays:
    """Observations of a learner in the middle of play, and one whose only legal action is PASS, as at the end."""
    env = DevyatkaVecEnv(Rules.from_text(rules), 64, "random", skip_forced=False)
    seen: Any = env.reset()
    rng, parts = np.random.default_rng(0), []
    for _ in range(steps):
        parts.append(seen)
        seen, _, _, infos = env.step(random_legal(seen["action_mask"], rng))
        parts += [{k: v[None] for k, v in i["terminal_observation"].items()} for i in infos if i]
    return {name: np.concatenate([part[name] for part in parts]) for name in ("observation", "action_mask")}


def tensors(arrays: Arrays) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def mlp_of(model: PPO) -> MLP:
    network = policy_of(model).network
    assert isinstance(network, MLP)
    return network


def push(network: MLP, legal: float, illegal: float, mask: Int8Array) -> None:
    """Drive the logits of the actions of one mask to one value, those of the others to another."""
    with torch.no_grad():
        network.policy_head.bias.copy_(torch.from_numpy(np.where(mask == 1, legal, illegal)).float())


# (logit of every legal action, logit of every illegal one), for weights as a diverging run leaves them
ADVERSARIAL = [
    (0.0, 1e4),
    (0.0, 1e20),
    (0.0, 3e38),
    (-1e6, 1e6),
    (-3e7, 3e38),
    (1e20, 1e30),
    (-1e9, 0.0),
    (-1e20, 1e20),
]


@pytest.mark.parametrize(("legal", "illegal"), ADVERSARIAL)
def test_distribution__gives_illegal_actions_exactly_no_probability_whatever_the_logits(
    legal: float, illegal: float
) -> None:
    model, arrays = model_of(), moments()
    for mask in arrays["action_mask"][::40]:
        push(mlp_of(model), legal, illegal, mask)
        same = {name: array[(arrays["action_mask"] == mask).all(1)] for name, array in arrays.items()}
        distribution = policy_of(model).get_distribution(tensors(same)).distribution
        assert isinstance(distribution, torch.distributions.Categorical)
        assert distribution.probs.detach()[:, mask == 0].max().item() == 0
        assert torch.allclose(distribution.probs.sum(1), torch.ones(1))
        assert torch.isfinite(distribution.entropy()).all()
        assert torch.isfinite(distribution.log_prob(distribution.sample())).all()


def test_forward__never_samples_an_illegal_action_in_100_000_draws() -> None:
    model, arrays = model_of(), moments()
    network = mlp_of(model)
    with torch.no_grad():  # every logit is far from 0, of either sign, and differs from moment to moment
        network.policy_head.weight.mul_(1e5)
        network.policy_head.bias.normal_(0, 100)
    draws, seen = 0, tensors(arrays)
    while draws < 100_000:
        actions, _, log_probs = policy_of(model).forward(seen)
        assert arrays["action_mask"][np.arange(len(actions)), actions.numpy()].all()
        assert torch.isfinite(log_probs).all()
        draws += len(actions)


def test_entropy__of_a_single_legal_action_is_zero_and_the_gradient_is_finite() -> None:
    model, arrays = model_of(), moments()
    forced = {name: array[arrays["action_mask"].sum(1) == 1] for name, array in arrays.items()}
    assert len(forced["observation"]) > 10
    actions = torch.from_numpy(forced["action_mask"].argmax(1))
    values, log_probs, entropies = policy_of(model).evaluate_actions(tensors(forced), actions)
    assert entropies is not None
    assert entropies.abs().max() == 0
    assert log_probs.abs().max() == 0
    (values.mean() + log_probs.mean() + entropies.mean()).backward()
    gradients = [weight.grad for weight in policy_of(model).parameters() if weight.grad is not None]
    assert gradients
    assert all(bool(torch.isfinite(gradient).all()) for gradient in gradients)


def test_evaluate_actions__agrees_with_forward() -> None:
    model, arrays = model_of(), moments()
    policy, seen = policy_of(model), tensors(arrays)
    actions, values, log_probs = policy.forward(seen)
    assert (actions.shape, values.shape, log_probs.shape) == ((len(actions),), (len(actions), 1), (len(actions),))
    again, same, entropies = policy.evaluate_actions(seen, actions)
    assert torch.equal(again, values)
    assert torch.equal(same, log_probs)
    assert torch.equal(policy.predict_values(seen), values)
    legal = torch.from_numpy(arrays["action_mask"].sum(1)).float()
    assert entropies is not None
    assert (entropies <= legal.log() + 1e-5).all()  # of k legal actions at most log k
    best = policy.forward(seen, deterministic=True)[0]
    assert torch.equal(best, policy.get_distribution(seen).distribution.probs.argmax(1))


@pytest.mark.parametrize("deterministic", [True, False])
def test_predict__plays_legal_cards_before_and_after_save_and_load(deterministic: bool, tmp_path: Path) -> None:
    model, arrays = model_of(learning_rate=lambda remaining: 1e-3 * remaining), moments()
    model.learn(256)
    push(mlp_of(model), 0.0, 1e6, arrays["action_mask"][0])
    model.save(tmp_path / "model")
    loaded = PPO.load(tmp_path / "model", device="cpu")
    assert isinstance(loaded.policy, MaskedPolicy)
    for one in (model, loaded):
        for _ in range(20):
            actions, _ = one.predict(arrays, deterministic=deterministic)
            assert arrays["action_mask"][np.arange(len(actions)), actions].all()
        single = {name: array[3] for name, array in arrays.items()}
        action, _ = one.predict(single, deterministic=deterministic)
        assert single["action_mask"][int(action)] == 1
    both = [one.predict(arrays, deterministic=True)[0] for one in (model, loaded)]
    assert (both[0] == both[1]).all()
    loaded.set_env(DevyatkaVecEnv(Rules.of(), 16, "random"))
    loaded.learn(256)  # an illegal action would raise


def test_optimizer__holds_every_weight_of_the_network_and_no_others() -> None:
    policy = policy_of(model_of())
    held = [id(weight) for group in policy.optimizer.param_groups for weight in group["params"]]
    assert sorted(held) == sorted(map(id, policy.network.parameters()))
    assert sorted(map(id, policy.parameters())) == sorted(held)


def test_learn__moves_both_stacks_of_the_network() -> None:
    model = model_of(MINI)
    before = {name: weight.clone() for name, weight in policy_of(model).network.named_parameters()}
    model.learn(256)
    assert {
        name for name, weight in policy_of(model).network.named_parameters() if torch.equal(weight, before[name])
    } == set()


def test_all_finite__sees_a_single_bad_weight() -> None:
    policy = policy_of(model_of())
    assert policy.all_finite()
    for value in (float("nan"), float("inf")):
        with torch.no_grad():
            next(iter(policy.network.parameters())).view(-1)[7] = value
        assert not policy.all_finite()


def test_network__scales_counts_and_leaves_bits_alone_outside_the_saved_weights() -> None:
    network, layout = MLP(36, [8]), observation_layout(36)
    scale = network.scale
    assert isinstance(scale, torch.Tensor)
    shown = layout.split(np.rint(scale.numpy() * 10).astype(np.int8))
    tenths = {name for name, rows in shown.items() if (rows == 1).all()}
    assert tenths == {"cards_left", "passes"}
    assert all((rows == 10).all() for name, rows in shown.items() if name not in tenths)
    assert "scale" not in network.state_dict()
    observations = torch.from_numpy(moments()["observation"])
    with torch.no_grad():
        by_hand = network.value_head(network.value_trunk(observations.float() * scale)).squeeze(-1)
        assert torch.equal(network.value(observations), by_hand)
    assert "scale" in dict(network.to(torch.float64).named_buffers())
    assert network.value(observations).dtype == torch.float64


def test_checkpoint__of_the_policys_network_plays_as_the_policy_does(tmp_path: Path) -> None:
    rules = Rules.of()
    model = model_of()
    with torch.no_grad():
        mlp_of(model).policy_head.weight.mul_(100)  # opinions strong enough to differ from card order
    write_checkpoint(tmp_path / "c", policy_of(model).network.state_dict(), [rules], SPEC)
    bot = PolicyBot.load(tmp_path / "c")
    games = Deals(rules, np.arange(300), 9)
    rng = np.random.default_rng(0)
    which, compared, distinct = games.all, 0, set()
    while len(which):
        observations, masks = games.observations(which)
        expected, _ = model.predict({"observation": observations, "action_mask": masks}, deterministic=True)
        chosen = bot.act_batch(games.views(which), rules, games.decision_words(which))
        assert (chosen == expected).all()
        compared += int((masks.sum(1) > 1).sum())
        distinct |= set(chosen.tolist())
        games.step(which, random_legal(masks, rng))
        which = which[games.turns[which] >= 0]
    assert compared > 3000
    assert distinct == set(range(36))


def test_sampling_bot__draws_cards_as_often_as_the_policy_says(tmp_path: Path) -> None:
    model, arrays = model_of(), moments()
    with torch.no_grad():
        mlp_of(model).policy_head.weight.mul_(50)
    row = int(arrays["action_mask"].sum(1).argmax())
    one = {name: array[row : row + 1] for name, array in arrays.items()}
    expected = policy_of(model).get_distribution(tensors(one)).distribution.probs[0].detach().numpy()
    draws = 40_000
    words = np.random.default_rng(0).integers(0, 2**64, draws, dtype=np.uint64)
    words[:2] = 0, 2**64 - 1  # the ends of the interval
    bot = PolicyBot(policy_of(model).network, sample=True)
    observations, masks = (np.repeat(one[name], draws, 0) for name in ("observation", "action_mask"))
    counts = np.bincount(bot.choose(observations, masks, words), minlength=37)
    assert not counts[one["action_mask"][0] == 0].any()
    # A share of 40,000 draws has a standard error of at most 0.0025; five of them.
    assert np.abs(counts / draws - expected).max() < 0.0125
    assert isinstance(bot.network, PolicyNetwork)
