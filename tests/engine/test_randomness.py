"""Words under a key: SipHash by its published vectors, keys by what they are made of, secret deals by their promise."""

from __future__ import annotations

import hashlib
import itertools
import random
from collections import Counter

import numpy as np
import pytest

from devyatka_env import Deals, Game, Match, Rules
from devyatka_env.engine.randomness import decision_word, shuffle_keyed, siphash
from devyatka_env.engine.seeds import Secret, check_source, deal_key, word_key

MASK = 2**64 - 1
KEY = bytes(range(16))
# SipHash-2-4 under the key 00 01 .. 0f of the first so many bytes of 00 01 02 ..: from the authors' vectors.h, and for
# fifteen bytes from appendix A of the paper (Aumasson and Bernstein 2012).
VECTORS = {0: "310e0edd47db6f72", 8: "6224939a79f5f593", 15: "e545be4961ca29a1", 16: "db9bc2577fcc2a3f"}


def reference(key: bytes, message: bytes) -> int:
    """SipHash-2-4 of any message, as the paper writes it."""
    k0, k1 = (int.from_bytes(key[k : k + 8], "little") for k in (0, 8))
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def left(word: int, by: int) -> int:
        return (word << by | word >> (64 - by)) & MASK

    def rounds(count: int) -> None:
        for _ in range(count):
            v[0] = (v[0] + v[1]) & MASK
            v[2] = (v[2] + v[3]) & MASK
            v[1], v[3] = left(v[1], 13) ^ v[0], left(v[3], 16) ^ v[2]
            v[0] = left(v[0], 32)
            v[2] = (v[2] + v[1]) & MASK
            v[0] = (v[0] + v[3]) & MASK
            v[1], v[3] = left(v[1], 17) ^ v[2], left(v[3], 21) ^ v[0]
            v[2] = left(v[2], 32)

    padded = message + bytes(-(len(message) + 1) % 8) + bytes([len(message) & 255])
    for place in range(0, len(padded), 8):
        block = int.from_bytes(padded[place : place + 8], "little")
        v[3] ^= block
        rounds(2)
        v[0] ^= block
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


@pytest.mark.parametrize("length", VECTORS)
def test_reference__gives_the_published_values(length: int) -> None:
    assert reference(KEY, bytes(range(length))).to_bytes(8, "little").hex() == VECTORS[length]


def test_siphash__gives_the_published_value_and_those_of_the_reference() -> None:
    key = np.frombuffer(KEY, "<u8").astype(np.uint64)
    first, second = np.frombuffer(bytes(range(16)), "<u8").astype(np.uint64)
    assert int(siphash(key, first, second)).to_bytes(8, "little").hex() == VECTORS[16]
    rng = random.Random(1)
    for _ in range(200):
        secret, message = rng.randbytes(16), rng.randbytes(16)
        words = np.frombuffer(message, "<u8").astype(np.uint64)
        value = siphash(np.frombuffer(secret, "<u8").astype(np.uint64), words[0], words[1])
        assert int(value) == reference(secret, message)


def test_word_key__is_blake2b_of_the_seed_with_a_label() -> None:
    digest = hashlib.blake2b((5).to_bytes(8, "little"), digest_size=16, person=b"devyatka words").digest()
    assert word_key(5).tobytes() == digest
    assert word_key(Secret(bytes(32))).tobytes() != deal_key(Secret(bytes(32))).tobytes() != word_key(0).tobytes()


def test_decision_word__is_siphash_of_deal_seat_and_cards_laid() -> None:
    key = word_key(2**64 - 1)
    message = (3).to_bytes(8, "little") + (5 * 64 + 17).to_bytes(8, "little")
    assert int(decision_word(key, np.uint64(3), 5, 17)) == reference(key.tobytes(), message)


GOLDEN = ["6fc254aeb5c1f3d6", "28a0ac91d2e47d38", "d3b5836d996b8e49"]


def test_decision_word__golden() -> None:
    """Frozen with the scheme (`seeds.WORD_SCHEME`): another value is another scheme, with a name of its own."""
    values = [int(decision_word(word_key(seed), np.uint64(2), 1, 8)) for seed in (0, 1, 2**64 - 1)]
    assert [f"{value:016x}" for value in values] == GOLDEN


# --- secret deals ----------------------------------------------------------------------------------------------------


def test_secret__deals_are_the_same_in_every_form_and_others_than_those_of_any_seed() -> None:
    secret = Secret(bytes(range(32)))
    for preset in ("first_out", "nine_each", "sevens", "round"):
        deals = Deals(preset, np.arange(20), secret)
        games = [Game.deal(preset, secret, index) for index in range(20)]
        assert [game.states[0] for game in games] == list(deals.states)
        assert len({game.hand_masks for game in games}) == 20
        assert games[0].hand_masks != Game.deal(preset, 0).hand_masks
        assert games[0].dealer == Game.deal(preset, 0).dealer
    assert Match("round", secret).game.hand_masks == Game.deal("round", secret).hand_masks


def test_secret__one_bit_more_deals_everything_anew() -> None:
    values = [bytes(32), bytes(31) + b"\x01", b"\x80" + bytes(31)]
    hands = [Game.deal("first_out", Secret(value)).hand_masks for value in values]
    for one, other in itertools.combinations(hands, 2):
        kept = sum((a & b).bit_count() for a, b in zip(one, other, strict=True))
        assert kept < 20  # of 36; 9 by chance


def test_secret__each_seat_gets_each_card_equally_often() -> None:
    deals = Deals("first_out", np.arange(8_000), Secret(bytes(32)))
    for card in range(36):
        held = (deals.states["hands"][:, :4] >> np.uint64(card) & np.uint64(1)).sum(0).astype(int)
        assert (abs(held - 2_000) < 200).all()  # five standard deviations of 39


def test_shuffle_keyed__every_order_of_three_cards_is_equally_likely() -> None:
    pack, key, found = np.zeros(3, np.uint8), word_key(1), Counter[tuple[int, ...]]()
    for index in range(6_000):
        shuffle_keyed(key, np.uint64(index), np.uint64(0), 3, pack)
        found[tuple(pack.tolist())] += 1
    assert len(found) == 6
    assert all(abs(count - 1_000) < 150 for count in found.values())  # five standard deviations of 29


def test_secret__is_committed_to_by_its_hash_and_does_not_show_itself() -> None:
    secret = Secret.from_hex("ab" * 32)
    assert secret.commitment == hashlib.sha256(b"\xab" * 32).hexdigest()
    assert "abab" not in f"{secret} {secret!r}"
    assert check_source(secret) is secret
    assert Secret() != Secret()


@pytest.mark.parametrize("value", [b"", bytes(31), "x" * 32, bytearray(32), None])
def test_secret__of_other_bytes_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="a secret is 32 bytes"):
        Secret(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "zz" * 32, "ab" * 31, "ab" * 33])
def test_secret__of_other_digits_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a secret is"):
        Secret.from_hex(text)


def test_deal__numbered_deals_are_those_of_every_release() -> None:
    """Golden: fifty deals of seed 1 under two rule sets, as release 0.1 dealt them."""
    for text, digest in (("first_out", "39c00dab5a48db30"), ("nine_each num_players=2", "a7643bdf1d7b6466")):
        states = Deals(Rules.of(text), np.arange(50), 1).states
        assert hashlib.sha256(states["hands"].tobytes()).hexdigest()[:16] == digest
