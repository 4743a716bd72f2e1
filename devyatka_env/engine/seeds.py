"""Where deals and bots' words come from: a seed, which is public, or a secret.

From both a 128-bit key of the words is made by BLAKE2b, each with a label of its own, so a word tells nothing about the
deals and a deal nothing about the words. The deals of a secret are drawn under a second such key.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field

import numpy as np

from devyatka_env.engine.randomness import Key
from devyatka_env.rules.numbers import check_seed

# How bots' words are drawn; results that were made by another scheme cannot be played again.
WORD_SCHEME = "siphash-2-4 under blake2b(seed)"

SECRET_BYTES = 32
_SECRET = "secret:"
_WORDS, _DEALS = b"devyatka words", b"devyatka deals"


@dataclass(frozen=True)
class Secret:
    """What may stand in the place of a seed: deals that nobody can foresee or work out, from any number of others.

    It is committed to by its hash before play and revealed afterwards, so that anyone can check the result.

    Attributes:
        value: 32 bytes.

    Raises:
        ValueError: another number of bytes.
    """

    value: bytes = field(repr=False, default_factory=lambda: secrets.token_bytes(SECRET_BYTES))

    def __post_init__(self) -> None:
        kind = type(self.value).__name__
        if not isinstance(self.value, bytes) or len(self.value) != SECRET_BYTES:  # not shown: it may be nearly right
            found = f"{len(self.value)} of them" if kind == "bytes" else kind
            raise ValueError(f"a secret is {SECRET_BYTES} bytes, not {found}")

    @classmethod
    def from_hex(cls, text: str) -> Secret:
        """The secret of 64 hexadecimal digits.

        Raises:
            ValueError: anything else.
        """
        try:
            return cls(bytes.fromhex(text))
        except (ValueError, TypeError) as error:
            raise ValueError(f"a secret is {2 * SECRET_BYTES} hexadecimal digits, not {str(text)[:80]!r}") from error

    @property
    def commitment(self) -> str:
        """Its SHA-256, 64 hexadecimal digits."""
        return hashlib.sha256(self.value).hexdigest()

    def __str__(self) -> str:
        return f"secret:{self.commitment[:16]}"


Seed = int | Secret


def check_source(seed: object, name: str = "seed") -> Seed:
    """Return a seed as an ``int`` of 64 bits, or a secret as it is.

    Raises:
        ValueError: neither.
    """
    return seed if isinstance(seed, Secret) else check_seed(seed, name)


def seed_value(seed: Seed) -> int | str:
    """A seed as JSON has it: the number, or of a secret ``secret:`` and its hexadecimal digits."""
    return f"{_SECRET}{seed.value.hex()}" if isinstance(seed, Secret) else seed


def seed_from(value: object) -> Seed:
    """The seed of what `seed_value` gives.

    Raises:
        ValueError: it is none.
    """
    if isinstance(value, str) and value.startswith(_SECRET):
        return Secret.from_hex(value.removeprefix(_SECRET))
    return check_seed(value)


def entropy(seed: Seed, label: bytes) -> int:
    """A number of 64 bits for a purpose of its own, from which nothing of the seed or of other purposes follows."""
    source = seed.value if isinstance(seed, Secret) else int(seed).to_bytes(8, "little")
    return int.from_bytes(hashlib.blake2b(source, digest_size=8, person=label).digest(), "little")


def word_key(seed: Seed) -> Key:
    """The key of the bots' words."""
    return _key(seed.value if isinstance(seed, Secret) else int(seed).to_bytes(8, "little"), _WORDS)


def deal_key(secret: Secret) -> Key:
    """The key of a secret's deals."""
    return _key(secret.value, _DEALS)


def _key(source: bytes, label: bytes) -> Key:
    digest = hashlib.blake2b(source, digest_size=16, person=label).digest()
    return np.frombuffer(digest, "<u8").astype(np.uint64)
