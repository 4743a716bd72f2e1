"""Rule sets and figures in words, for people who read a report and not the code."""

from __future__ import annotations

import math
from collections.abc import Sequence

from devyatka_env.evaluation.stats import Estimate
from devyatka_env.rules import Rules, iter_mask
from devyatka_env.rules.rule_set import FIELDS

_PERCENT = "\N{NO-BREAK SPACE}%"


def family(rules: Rules) -> str:
    """The same text for rule sets that differ in the number of seats alone."""
    return without_seats(Rules.of(rules, num_players=2))


def without_seats(rules: Rules) -> str:
    """A rule set as a text to which a number of seats may be added."""
    return " ".join(word for word in str(rules).split() if not word.startswith("num_players="))


def table_labels(tables: Sequence[Rules]) -> list[str]:
    """Rule sets told apart in a few words: by seats alone where that is enough."""
    if len({family(rules) for rules in tables}) == 1:
        return [f"{rules.num_players} seats" for rules in tables]
    short = [f"{rules.preset}, {rules.num_players}" for rules in tables]
    return short if len(set(short)) == len(tables) else [str(rules) for rules in tables]


def rules_in_words(rules: Rules) -> list[tuple[str, str, str]]:
    """A rule set line by line: what it is about, what holds, and the fields that say so; for any number of seats."""
    deck = rules.deck
    starter = "10" if rules.starter == "T" else rules.starter
    ranks = " ".join("10" if rank == "T" else rank for rank in rules.ranks)
    opening_card = deck.cards[next(iter_mask(1 << rules.opening_card))]
    deal = (
        "the whole pack; hands differ by one card at most"
        if rules.cards_per_seat is None
        else f"{rules.cards_per_seat} cards a seat; the rest is out of play, unseen"
    )
    opening = {
        "holder": f"the seat with {opening_card} opens and must lay it",
        "left_of_dealer": f"the dealer's left neighbour opens, with any {starter}",
    }[rules.opening]
    passing = "says PASS itself" if rules.explicit_pass else "is passed over"
    foul = {
        "error": "is refused and changes nothing",
        "exclude": "puts the seat out of the deal, its cards with it",
    }[rules.foul]
    end = {
        "first_out": "the deal ends with the first empty hand",
        "last_holder": "the deal goes on until one seat alone holds cards",
    }[rules.end]
    ties = "fewer passes, then fewer card points" if rules.passes_count else "fewer card points"
    match = "one deal" if rules.deals == 1 else f"{rules.deals} deals, the dealer moving on one seat each time"
    if rules.deals == rules.num_players:
        match = "each seat deals once"
    bank = f"ante={rules.ante:g} pass_fee={rules.pass_fee:g}" if rules.payoff == "bank" else ""
    return [
        ("deck", f"{deck.num_cards} cards: {ranks} of {' '.join(deck.suits)}; a row begins at its {starter}, then the"
         " next card above or below", f"ranks={rules.ranks} num_suits={rules.num_suits} starter={rules.starter}"),
        ("deal", deal, f"cards_per_seat={rules.cards_per_seat}"),
        ("opening", opening, f"opening={rules.opening}"),
        ("turn", f"a seat lays one card, and must if it can; one that cannot {passing}",
         f"explicit_pass={rules.explicit_pass}"),
        ("foul", f"a foul {foul}", f"foul={rules.foul}"),
        ("end", end, f"end={rules.end}"),
        ("places", f"who is out first; then fewer cards left, then {ties}", f"passes_count={rules.passes_count}"),
        ("payoff", _payoff(rules), f"payoff={rules.payoff} {bank}".strip()),
        ("match", match, f"deals={rules.deals}"),
    ]  # fmt: skip


def _payoff(rules: Rules) -> str:
    """What a payoff counts (rules, section 8)."""
    return {
        "win": "+1 for place 1, -1/(n - 1) for each other of n seats",
        "lose": "-1 for the last place, +1/(n - 1) for each other of n seats",
        "win_lose": "+1 for place 1, -1 for the last place, 0 for the others",
        "place": "from +1 for place 1 down to -1 for the last place, in equal steps",
        "cards": "-1 for each card left",
        "points": "minus the card points left",
        "bank": f"everybody pays {rules.ante:g} and {rules.pass_fee:g} for each pass; place 1 takes the bank",
    }[rules.payoff]


def differing_fields(rules: Rules) -> list[str]:
    """The fields, but the number of seats, that are not those of the default rules, as ``field=value``."""
    base = Rules(num_players=rules.num_players)
    return [
        f"{field}={getattr(rules, field)}"
        for field in FIELDS
        if field != "num_players" and getattr(rules, field) != getattr(base, field)
    ]


def percent(value: Estimate, digits: int = 2, *, signed: bool = False) -> str:
    """An estimate in percent, ``61.63 ± 0.29 %``; a dash for none."""
    if not math.isfinite(value.mean):
        return "–"
    return f"{share(value.mean, digits, signed=signed)[:-2]} ± {_half(100 * value.half_width, digits)}{_PERCENT}"


def per_thousand(value: Estimate) -> str:
    """A share in thousandths, ``0.041 ± 0.080``; a dash for none."""
    return measure(Estimate(1000 * value.mean, 1000 * value.low, 1000 * value.high, value.count))


def share(value: float, digits: int = 2, *, signed: bool = False) -> str:
    """A share in percent, ``61.63 %``."""
    return ("+" if signed and value > 0 else "") + _number(100 * value, digits) + _PERCENT


def measure(value: Estimate, digits: int = 3) -> str:
    """An estimate of anything else, ``1.384 ± 0.003``; a dash for none."""
    if not math.isfinite(value.mean):
        return "–"
    return f"{_number(value.mean, digits)} ± {_half(value.half_width, digits)}"


def _number(value: float, digits: int) -> str:
    """A number with a minus sign that is one, and none before a zero."""
    text = f"{value:.{digits}f}"
    return text.replace("-", "−" if float(text) else "")


def _half(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else "∞"


def listed(items: Sequence[str]) -> str:
    """``2``, ``2 and 3``, ``2, 3 and 4``."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
