"""`devyatka solve` and `devyatka advise`: the screens, the JSON, and what they say to bad input."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devyatka_env.bots import GreedyBot, PimcBot, ReaderBot, make_bot, registry
from devyatka_env.bots.checkpoint import write_checkpoint
from devyatka_env.bots.network import build_network
from devyatka_env.cli import main
from devyatka_env.evaluation import advise
from devyatka_env.games import Game
from devyatka_env.rules import Rules
from devyatka_env.solver import max_n, paranoid, solve
from devyatka_env.views import Belief, PlayerView, format_information_state, parse_information_state
from tests.helpers.games import COMBINATIONS, card_ids, random_moment

Capture = pytest.CaptureFixture[str]
MINI = "first_out num_players=3 ranks=789TJ num_suits=2"
MINI_LINE = f"{MINI} | dealer 2 | 7♣ 9♣ 7♦ J♦ / 8♣ J♣ 9♦ / 10♣ 8♦ 10♦ | 9♦ 10♦"
TWO_LINE = "first_out num_players=2 ranks=789TJ num_suits=2 | dealer 1 | 7♣ 9♣ 7♦ J♦ 10♣ / 8♣ J♣ 9♦ 8♦ 10♦ |"
LAID = "laid 0: 8♦ 9♦; 1: 10♦ 9♥; 2: 10♥; 3: 9♣ 9♠"
STUCK = "hand 7♣ 6♣ Q♣ 6♦ K♦ 7♥ A♠ | table 9♣ 8♦ 9♦ 10♦ 9♥ 10♥ 9♠ | left 7 8 7"
SEEN = "hand 7♣ 8♣ Q♣ 6♦ K♦ 8♥ A♠ | table 9♣ 8♦ 9♦ 10♦ 9♥ 10♥ 9♠ | left 7 8 7 | passes 0 1 0 | cannot 2: J♦"


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # the command sets it; this puts it back


# What kernels without a cache print in the first test that needs them.
ANNOUNCED = "devyatka_env: compiling its kernels for this machine; they are cached on disk, so this happens once\n"


def shown(capsys: Capture, *arguments: str) -> str:
    """What a successful command prints; it says nothing on the error stream."""
    assert main(arguments) == 0
    printed = capsys.readouterr()
    assert printed.err.replace(ANNOUNCED, "") == ""
    return printed.out


def refused(capsys: Capture, *arguments: str) -> str:
    """The error line of a command that is refused; it prints nothing else."""
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.fullmatch(r"error: .*\n", printed.err)
    return printed.err


def content(capsys: Capture, *arguments: str) -> dict[str, Any]:
    """What a command prints with --json."""
    found: dict[str, Any] = json.loads(
        shown(capsys, *arguments, "--json"), parse_constant=lambda word: pytest.fail(f"{word} is not JSON")
    )
    return found


def moments(rules: Rules, count: int, late: int = 12) -> list[Game]:
    """Random moments, few cards from their end, in which a seat has a choice."""
    games = []
    for seed in range(1000):
        game = random_moment(rules, seed)
        if len(card_ids(game.legal_mask)) > 1 and sum(map(int.bit_count, game.hand_masks)) <= late + rules.num_players:
            games.append(game)
        if len(games) == count:
            break
    return games


# --- solve: the screen -----------------------------------------------------------------------------------------------

THREE_SEATS = """\
first_out num_players=3 num_suits=2 ranks=789TJ, dealer 2, given position

     7  8  9 10  J
 ♣   0  1  0  2  1
 ♦   0  2  ■  ■  0
   (■ on the table, else the seat that holds it)

>seat 0   4 cards  ♣ 7 9  ♦ 7 J
 seat 1   2 cards  ♣ 8 J
 seat 2   2 cards  ♣ 10  ♦ 8

   seat 0  value  floor  what follows (* best)
*  9♣       -0.5   -0.5  gives seat 1 8♣, seat 2 10♣; seat 1 must lay 8♣
*  J♦       -0.5   -0.5  seat 1 passes; seat 2 must lay 8♦

value: seat 0's payoff when every seat sees all hands and plays for itself
(max^n; among equals it takes what leaves the next seat least): +1 for place 1,
-0.5 for the others.
floor: what seat 0 is sure of even when all others play against it alone
(paranoid).

Best line, a column a round (– passes)
  seat 0   9♣  7♣
  seat 1   8♣   –
  seat 2   8♦ 10♣

Its end (out)
  seat 0  place 3  payoff -0.5  0 passes  ♦ 7 J
  seat 1  place 2  payoff -0.5    1 pass  ♣ J
  seat 2  place 1    payoff +1  0 passes  no cards left

value: 4 positions in 0.000 s  floor: 3 positions in 0.000 s

first_out num_players=3 num_suits=2 ranks=789TJ | dealer 2 | 7♣ 9♣ 7♦ J♦ / 8♣ J♣
9♦ / 10♣ 8♦ 10♦ | 9♦ 10♦
"""


def test_solve__shows_a_position_of_three_seats(capsys: Capture) -> None:
    screen = shown(capsys, "solve", MINI_LINE)
    assert re.sub(r"\d\.\d{3} s", "0.000 s", screen) == THREE_SEATS


def test_solve__two_seats_have_one_exact_value(capsys: Capture) -> None:
    screen = shown(capsys, "solve", TWO_LINE)
    assert "value: what best play of both seats gives seat 1: +1 for place 1, -1 for the others." in " ".join(
        screen.split()
    )
    assert re.search(r"^   seat 1  value  what follows", screen, re.MULTILINE)
    assert re.search(r"^\*  9♦ +[-+]1  makes way for its own 8♦ 10♦; seat 0 must lay 9♣$", screen, re.MULTILINE)
    assert re.search(r"^value: [\d,]+ positions in \d+\.\d{3} s$", screen, re.MULTILINE)
    assert "floor" not in screen


@pytest.mark.parametrize("payoff", ["cards", "points"])
def test_solve__says_that_two_seats_play_for_the_margin(payoff: str, capsys: Capture) -> None:
    game = moments(Rules.of("first_out", num_players=2, payoff=payoff), 1)[0]
    screen = " ".join(shown(capsys, "solve", game.position).split())
    things = {"cards": "cards", "points": "card points"}[payoff]
    assert f"gives seat {game.turn}: the {things} left to seat {1 - game.turn} less its own." in screen


@pytest.mark.parametrize(
    ("rules", "is_said"),
    [("nine_each", True), ("nine_each cards_per_seat=18 num_players=2", False), ("first_out", False)],
)
def test_solve__says_when_two_seats_do_not_know_each_other(rules: str, is_said: bool, capsys: Capture) -> None:
    words = " ".join(shown(capsys, "solve", "--seed", "3", "--seats", "2", "--rules", rules).split())
    said = (
        "Cards are out of play, so the seats do not know each other's hands; these are the values of open hands, which"
        " honest play cannot count on."
    )
    assert (said in words) == is_said


@pytest.mark.parametrize("columns", [60, 80, 100, 300])
@pytest.mark.parametrize("options", [["--seats", "2"], ["--seats", "6"], ["--rules", "deck_52 num_players=2"]])
def test_solve__keeps_to_the_width_of_the_terminal(
    options: list[str], columns: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = shown(capsys, "solve", "--seed", "3", *options).splitlines()
    assert max(map(len, lines)) <= min(columns, 100)
    assert not any(line != line.rstrip() for line in lines)


def test_solve__shows_who_is_out_or_excluded_and_what_is_out_of_play(capsys: Capture) -> None:
    rules = Rules.of("winner_and_loser", num_players=4)
    seen = set()
    for seed in range(100):
        game = random_moment(rules, seed, seed % 2 * 0.2)
        status = game.record["status"].tolist()[:4]
        if any(status) and game.hand_masks[game.turn].bit_count() < 6:
            screen = shown(capsys, "solve", game.position)
            for seat, standing in enumerate(status):
                word = {0: "", 1: "out"}.get(min(standing, 1), "excluded")
                row = re.search(
                    rf"^[> ]seat {seat} +\d+ cards?(?: +\d+ pass(?:es)?)?  (out|excluded|)", screen, re.MULTILINE
                )
                assert row is not None
                assert row[1] == word
                seen.add(word)
    assert seen == {"", "out", "excluded"}
    game = moments(Rules.of("nine_each", num_players=3), 1)[0]
    screen = shown(capsys, "solve", game.position)
    assert "· out of play" in screen
    assert screen.count("·") - 1 == 9


def test_solve__a_stuck_seat_of_explicit_passes_can_only_pass(capsys: Capture) -> None:
    line = TWO_LINE.replace("|", "explicit_pass=True |", 1) + " 9♦ 9♣ 8♣ 7♣ 8♦ 7♦ 10♦ J♦"
    game = Game.from_position(line)
    while game.legal_mask:
        game.play(game.legal_actions()[0])
    screen = shown(capsys, "solve", game.position)
    assert re.search(rf"^\*  passes +[-+]1  seat {1 - game.turn} ", screen, re.MULTILINE)


# --- solve: the numbers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("preset", "seats"), [one for one in COMBINATIONS if one[0] != "deck_52"])
def test_solve__json_is_what_the_solver_says_and_the_engine_does(preset: str, seats: int, capsys: Capture) -> None:
    game = moments(Rules.of(preset, num_players=seats), 1, late=14)[0]
    found = content(capsys, "solve", game.position)
    deck, mover = game.rules.deck, game.turn
    assert (found["position"], found["seat"]) == (game.position, mover)
    solutions = {"value": solve(game)} if seats == 2 else {"value": max_n(game), "floor": paranoid(game)}
    assert [row["id"] for row in found["actions"]] == game.legal_actions()
    for row in found["actions"]:
        assert row["action"] == str(deck.cards[row["id"]])
        assert row["best"] == (row["id"] in solutions["value"].best)
        for name, solution in solutions.items():
            assert row[name] == solution.values[row["id"]]
        check_effect(game, row)
    assert {name: cost["states"] for name, cost in found["cost"].items()} == {
        name: solution.states for name, solution in solutions.items()
    }
    check_line(game, found)


def check_effect(game: Game, row: dict[str, Any]) -> None:
    """What a card brings about, by the engine."""
    deck, mover = game.rules.deck, game.turn
    after = game.clone().play(row["id"])
    turns = after.history[len(game.history) + 1 :]
    while not after.is_over and not after.legal_mask:
        turns += ((after.turn, game.rules.pass_action),)
        after.play("-")
    assert row["passes"] == [seat for seat, _ in turns]
    assert (row["next_seat"], row["next_cards"]) == (after.turn, [str(card) for card in after.legal_cards()])
    new = 0  # cards in hand that fit now and did not before
    for seat in range(game.num_players):
        new |= game.hand_masks[seat] & after.view(mover).fitting_mask & ~game.view(mover).fitting_mask
    given = {int(seat): deck.parse_mask(" ".join(cards)) for seat, cards in row["gives"].items()}
    for seat, mask in given.items():
        assert seat != mover
        assert mask & ~game.hand_masks[seat] == 0
    if not after.is_over and game.table_mask:
        status = game.record["status"]
        others = sum(game.hand_masks[s] for s in range(game.num_players) if s != mover and status[s] == 0)
        assert new & others & ~sum(given.values()) == 0  # each card that it lets others lay is named
        runs = [mask for mask in given.values() if not mask & new]
        assert runs == []  # and each run of cards named begins with one of these


def check_line(game: Game, found: dict[str, Any]) -> None:
    """The line, its passes left out where they are automatic, is played to the result that it says."""
    end = game.clone()
    for seat, action in found["line"]:
        if action != "-" or game.rules.explicit_pass:
            assert seat == end.turn
            end.play(action)
    result = end.result()
    assert [[seat, action] for seat, action in found["line"]] == [
        [seat, "-" if action == game.rules.pass_action else str(game.rules.deck.cards[action])]
        for seat, action in end.history[len(game.history) :]
    ]
    assert found["result"] == {
        "places": list(result.places),
        "payoffs": list(result.payoffs),
        "cards_left": [game.rules.deck.text(mask) for mask in end.hand_masks],
        "passes": list(result.passes),
        "reason": result.reason,
    }


def test_solve__the_line_on_the_screen_has_every_turn_in_its_round(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")  # ten rounds a block
    game = Game.deal(Rules.of("one_loser", num_players=2), 5)
    found = content(capsys, "solve", "--seed", "5", "--rules", "one_loser num_players=2")
    blocks = re.split(r"Best line.*|Its end.*", shown(capsys, "solve", game.position))[1].strip("\n").split("\n\n")
    assert len(blocks) > 1
    turns = []
    for block in blocks:
        rows = [re.fullmatch(r"  seat (\d) (.*)", line) for line in block.splitlines()]
        cells = {int(row[1]): re.findall(r"....", row[2] + " " * (-len(row[2]) % 4)) for row in rows if row}
        for k in range(max(map(len, cells.values()))):
            for seat in (game.turn, 1 - game.turn):
                word = cells[seat][k].strip() if k < len(cells.get(seat, [])) else ""
                turns += [[seat, "-" if word == "–" else word]] if word else []
    assert turns == found["line"]


# --- solve: what it is given -----------------------------------------------------------------------------------------


def test_solve__hands_alone_are_a_fresh_deal(capsys: Capture) -> None:
    game = Game.deal("first_out num_players=3", 7)
    deck = game.rules.deck
    hands = " / ".join(deck.text(mask) for mask in game.hand_masks)
    russian = hands.translate(str.maketrans("JQKA♣♦♥♠", "ВДКТтбчп"))
    for words in (hands, russian):
        assert content(capsys, "solve", words)["position"] == game.position
    found = content(capsys, "solve", hands, "--rules", "one_loser payoff=cards")
    assert found["position"].startswith("one_loser num_players=3 payoff=cards | dealer 2 | ")


def test_solve__deals_by_seed_and_index(capsys: Capture) -> None:
    rules = Rules.of("bank", num_players=5)
    found = content(capsys, "solve", "--seed", "4", "--index", "9", "--seats", "5", "--rules", "bank")
    assert found["position"] == Game.deal(rules, 4, 9).position
    assert "deal 9 of seed 4" in shown(capsys, "solve", "--seed", "4", "--index", "9", "--seats", "5")


BAD_POSITIONS = {
    (): r"give a position \('rules \| dealer N \| hands \| cards laid so far' or hands with '/'",
    (MINI_LINE, "--seed", "1"): r"give a position or a deal by --seed, --index and --seats, not both",
    (MINI_LINE, "--rules", "bank"): r"a position line names its rules itself: leave --rules out",
    ("6♣ 9♦",): r"a position is 'rules .*', or hands with '/' between the seats, not '6♣ 9♦'",
    ("first_out | 6♣ / 7♣",): r"a position has 4 fields split by '\|'",
    ("6♣ 9♦ / 8♣ 1♣",): r"hand of seat 1: '1♣' is not a card: write a rank",
    ("6♣ 9♦ / 8♣ 9♣",): r"the whole pack is dealt under these rules; missing: 7♣ 10♣",
    (MINI_LINE + " 7♦",): r"illegal action .*7♦.*; legal: 9♣ J♦",
    (MINI_LINE + " 9♣ 8♣ 8♦ 7♣ 10♣",): r"the deal is over: there is nothing left to solve",
    ("--seed", "1", "--seats", "7"): r"num_players must be 2 to 6, not 7",
    ("--seed", "1", "--max-states", "10", "--seats", "3"): r"more than 10 positions are needed: allow more by --max-st",
    ("--seed", "1", "--seats", "2", "--rules", "bank num_players=3"): r"--rules has num_players=3, but 2 seats are giv",
    ("6♣ / 7♣", "--rules", "bank num_players=3"): r"--rules has num_players=3, but 2 seats are given",
    ("--seed", "1", "--seats", "2", "--max-states", "9"): r"two seats are solved without one: leave it out",
    ("--seed", "1", "--after", "6♣"): r"illegal action 6♣; legal: 9♦",
    ("--seed", "1", "--after", "9X"): r"'9X' is not a card",
    ("--seed", "1", "--max-states", "0"): r"max_states must be a whole number, at least 1, not 0",
}


@pytest.mark.parametrize("arguments", BAD_POSITIONS)
def test_solve__says_what_is_wrong(arguments: tuple[str, ...], capsys: Capture) -> None:
    assert re.search(BAD_POSITIONS[arguments], refused(capsys, "solve", *arguments))


# --- advise: the screen ----------------------------------------------------------------------------------------------


def rows_of(screen: str) -> dict[str, tuple[float, ...]]:
    """Payoff, half its interval, wins and their interval in percent, by card, in the order shown."""
    found = re.findall(r"^[* ]  (\S+) .* ([-+]\S+) ± (\S+) +(\S+) % \((\S+) to (\S+)\)", screen, re.MULTILINE)
    return {card: tuple(map(float, figures)) for card, *figures in found}


def test_advise__is_by_pimc_and_shows_its_own_estimates(capsys: Capture) -> None:
    screen = shown(capsys, "advise", SEEN)
    view = parse_information_state(SEEN)
    bot = PimcBot(worlds=1000)
    estimates = bot.evaluate_cards(view, np.random.default_rng(0))
    best = max(estimates, key=lambda card: estimates[card].payoff)
    cards = view.rules.deck.cards
    assert f"\npimc:worlds=1000 lays {cards[best]}\n" in screen
    assert re.search(rf"^\*  {cards[best]} ", screen, re.MULTILINE)
    rows = rows_of(screen)
    assert list(rows) == [str(cards[card]) for card in sorted(estimates, key=lambda c: c != best)]
    for card, one in estimates.items():
        payoff, half, win, low, high = rows[str(cards[card])]
        assert payoff == pytest.approx(one.payoff, abs=6e-4)
        assert half == pytest.approx(1.96 * one.payoff_error, abs=6e-4)
        assert win == pytest.approx(100 * one.win, abs=0.06)
        assert low < win < high
    words = " ".join(screen.split())
    assert f"{Belief(view).count:,} deals agree with what you see" in words
    assert "each was played to its end by greedy in every seat, one card in 10 by chance." in words
    assert "made up" not in words


@pytest.mark.parametrize("payoff", ["win", "cards"])
def test_advise__two_seats_have_exact_values(payoff: str, capsys: Capture) -> None:
    for game in moments(Rules.of("first_out", num_players=2, payoff=payoff), 3, late=20):
        words = format_information_state(game.view(game.turn))
        options = ["advise", words, "--rules", f"first_out payoff={payoff}", "--worlds", "100"]
        found, exact, cards = content(capsys, *options), solve(game), game.rules.deck.cards
        assert {row["card"]: row["value"] for row in found["cards"]} == {
            str(cards[card]): value for card, value in exact.values.items()
        }
        assert found["advice"] in {str(cards[card]) for card in exact.best}
        screen = " ".join(shown(capsys, *options).split())
        assert "value: exact, by best play of both seats from here on (you know the other hand)" in screen
        assert ("your payoff less the other seat's" in screen) == (payoff == "cards")
        assert "Only one deal agrees with what you see." in screen


def test_advise__reader_wants_the_course_of_the_deal(capsys: Capture) -> None:
    for words, missing in ((SEEN, "`laid` and `order`"), (f"{SEEN} | order 9♦ 10♦ 9♣ 8♦ 9♥ 10♥ 9♠", "`laid`")):
        assert f"reads the whole course of the deal: tell {missing}, too" in refused(
            capsys, "advise", words, "--bot", "reader"
        )
    told = f"{SEEN} | {LAID} | order 9♦ 10♦ 9♣ 8♦ 9♥ 10♥ 9♠"
    found = content(capsys, "advise", told, "--bot", "reader", "--worlds", "50")
    assert found["bot"] == "reader:worlds=50"
    assert "taken for greedy" in found["notes"][0]
    found = content(capsys, "advise", told, "--bot", "reader:candidates=300:model=runner", "--worlds", "50")
    assert found["bot"] == "reader:candidates=300:model=runner:worlds=50"
    assert "by runner in every seat" in found["notes"][0]


def test_advise__a_single_card_is_no_choice_but_has_its_chances(capsys: Capture) -> None:
    game = next(game for game in (random_moment(Rules.of("first_out"), seed) for seed in range(99)) if one_card(game))
    words = format_information_state(game.view(game.turn))
    screen = shown(capsys, "advise", words, "--worlds", "100")
    assert f"\nOnly {game.legal_cards()[0]} fits: there is nothing to choose\n" in screen
    assert list(rows_of(screen)) == [str(game.legal_cards()[0])]
    assert "with greedy in every seat" in " ".join(screen.split())


def one_card(game: Game) -> bool:
    """Whether the seat on turn has one card to lay, and others have much to hide."""
    return len(game.legal_cards()) == 1 and Belief(game.view(game.turn)).count > 10_000


def test_advise__a_bot_without_a_search_plays_every_seat(capsys: Capture) -> None:
    screen = shown(capsys, "advise", SEEN, "--bot", "greedy", "--worlds", "200")
    view = parse_information_state(SEEN)
    advised = view.rules.deck.cards[GreedyBot().act(view, np.random.default_rng(0))]
    assert f"\ngreedy lays {advised}\n" in screen
    rows = rows_of(screen)
    assert set(rows) == {"8♣", "8♥"}
    assert [row[0] for row in rows.values()] == sorted((row[0] for row in rows.values()), reverse=True)
    assert re.search(rf"^\*  {advised} .*\)$", screen, re.MULTILINE)
    other = next(card for card in rows if card != str(advised))
    behind = re.search(rf"^   {other} .*\)  ([-+]\S+) ± (\S+)$", screen, re.MULTILINE)
    assert behind is not None
    assert float(behind[1]) == pytest.approx(rows[other][0] - rows[str(advised)][0], abs=2e-3)
    assert "made up" not in screen  # greedy looks at nothing that was


def test_advise__grid_tells_the_marginals(capsys: Capture) -> None:
    screen = shown(capsys, "advise", SEEN, "--bot", "greedy", "--worlds", "10")
    view, deck = parse_information_state(SEEN), parse_information_state(SEEN).rules.deck
    marginals = Belief(view).marginals
    *blocks, _ = screen.split("Who holds what")[1].split("\n\n")  # the last is about passes
    lines = [line for block in blocks for line in block.splitlines() if re.match(r"seat \d|\s", line)]
    heads = [line for line in lines if "♣" in line or "♥" in line]
    assert len(heads) == 2
    for block, (left, right) in zip(blocks, (("♣", "♦"), ("♥", "♠")), strict=True):
        rows = {line[:10].strip(): line for line in block.splitlines() if line.startswith("seat")}
        head = next(line for line in block.splitlines() if left in line)
        for sign in (left, right):
            start = head.index(sign) + 1
            for k, rank in enumerate(deck.ranks):
                card = deck.card_id(f"{rank}{sign}")
                for seat in (1, 2, 3):
                    cell = rows[f"seat {seat} ({view.cards_left[seat]})"].ljust(100)[start + 3 * k : start + 3 * k + 3]
                    if view.unseen_mask >> card & 1:
                        chance = float(marginals[seat, card])
                        assert cell.strip() == ("–" if chance == 0 else str(round(100 * chance)))
                    else:
                        assert cell.strip() == ""


NUMBERS = "Of the passes only the number is told: of cards they rule out those that fitted all along"
NOTHING_TOLD = "The passes are not told and are taken to be as few as the turns leave: of cards they rule out"
PASS_NOTES = {
    SEEN: NUMBERS,
    SEEN.split(" | passes")[0]: NOTHING_TOLD,
    f"{SEEN} | {LAID} | order 9♦ 10♦ 9♣ 8♦ 9♥ 10♥ 9♠": "",  # each pass follows
    "hand 7♣ 8♣ Q♣ 8♦ K♦ 8♥ A♠ J♠ 10♠ | table 9♦ | left 9 9 8 | passes 0 0 0": "",  # there was none
}


@pytest.mark.parametrize("words", PASS_NOTES)
def test_advise__says_what_passes_of_unknown_moments_rule_out(words: str, capsys: Capture) -> None:
    screen = " ".join(shown(capsys, "advise", words, "--bot", "greedy", "--worlds", "10").split())
    notes = " ".join(content(capsys, "advise", words, "--bot", "greedy", "--worlds", "10")["notes"])
    for note in (NUMBERS, NOTHING_TOLD):
        assert (note in screen) == (note in notes) == (note == PASS_NOTES[words])


def test_advise__has_no_note_on_passes_where_they_can_rule_out_nothing_more(capsys: Capture) -> None:
    game = next(
        game for game in moments(Rules.of("first_out", num_players=2), 20) if game.view(0).passes[1 - game.turn]
    )
    words = format_information_state(game.view(game.turn)).split(" | laid")[0]
    screen = shown(capsys, "advise", words, "--worlds", "10")
    assert "passes" not in screen.split("Only one deal agrees")[1]


def test_advise__refuses_passes_that_cannot_be(capsys: Capture) -> None:
    assert "passes: seat 2 must have passed at least 1 time so far, not 0: it has laid 1 card" in refused(
        capsys, "advise", SEEN.split(" | passes")[0] + " | passes 0 0 0"
    )


@pytest.mark.parametrize("columns", [60, 80, 100, 300])
@pytest.mark.parametrize(("preset", "seats"), [("first_out", 2), ("first_out", 6), ("deck_52", 3), ("nine_each", 4)])
def test_advise__keeps_to_the_width_of_the_terminal(
    preset: str, seats: int, columns: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    rules = Rules.of(preset, num_players=seats)
    game = next(game for game in (random_moment(rules, seed) for seed in range(3, 50)) if game.legal_mask)
    words = format_information_state(game.view(game.turn))
    lines = shown(capsys, "advise", words, "--rules", preset, "--bot", "greedy", "--worlds", "20").splitlines()
    assert max(map(len, lines)) <= min(columns, 100)
    assert not any(line != line.rstrip() for line in lines)
    assert ("undealt (" in "\n".join(lines)) == (preset == "nine_each" and seats < 4)


# --- advise: the numbers ---------------------------------------------------------------------------------------------


def test_advise__of_few_deals_plays_each_once_and_is_exact(capsys: Capture) -> None:
    """By hand: each deal that agrees, each card, greedy in every seat."""
    rules = Rules.of("first_out", num_players=3)
    game = next(
        game
        for game in moments(rules, 30, late=10)
        if 20 < Belief(game.view(game.turn)).count < 500 and len(card_ids(game.legal_mask)) > 1
    )
    words = format_information_state(game.view(game.turn))
    found = content(capsys, "advise", words, "--bot", "greedy")
    view = parse_information_state(words, rules)
    belief = Belief(view)
    assert (found["exact"], found["deals"], found["worlds"]) == (True, belief.count, belief.count)
    for row in found["cards"]:
        payoffs = []
        for hands in belief.deals(range(belief.count)).tolist():
            record = view.record.copy()
            record["hands"][0, :3] = hands[:3]
            record["legal"] = view.legal_mask
            one = Game(rules, record).play(row["card"])
            while not one.is_over:
                one.play(GreedyBot().act(one.view(one.turn), np.random.default_rng(0)))
            payoffs.append(one.result().payoffs[0])
        assert row["payoff"] == pytest.approx(np.mean(payoffs))
        assert row["win"] == pytest.approx(np.mean(np.array(payoffs) > 0))
    assert " ± " not in shown(capsys, "advise", words, "--bot", "greedy")


def test_advise__samples_agree_with_all_deals_within_their_intervals(capsys: Capture) -> None:
    game = next(
        game for game in moments(Rules.of("first_out", num_players=4), 40) if Belief(game.view(game.turn)).count > 3000
    )
    words = format_information_state(game.view(game.turn))
    exact = content(capsys, "advise", words, "--bot", "greedy", "--worlds", "100000")
    assert exact["exact"]
    drawn = content(capsys, "advise", words, "--bot", "greedy", "--worlds", "2000", "--seed", "3")
    assert (drawn["exact"], drawn["worlds"], drawn["advice"]) == (False, 2000, exact["advice"])
    for one, all_deals in zip(drawn["cards"], exact["cards"], strict=True):
        low, high = one["win_ci95"]
        assert low - 0.02 <= all_deals["win"] <= high + 0.02  # twice the interval: 1 in 10,000 by chance
        assert abs(one["payoff"] - all_deals["payoff"]) <= 0.1
    again = content(capsys, "advise", words, "--bot", "greedy", "--worlds", "2000", "--seed", "3")
    assert again == drawn
    assert content(capsys, "advise", words, "--bot", "greedy", "--worlds", "2000", "--seed", "4") != drawn


def test_advise__a_bot_of_chance_is_sampled_however_few_the_deals(capsys: Capture) -> None:
    game = moments(Rules.of("first_out", num_players=2), 1)[0]
    found = content(
        capsys, "advise", format_information_state(game.view(game.turn)), "--bot", "random", "--worlds", "50"
    )
    assert (found["deals"], found["exact"], found["worlds"]) == (1, False, 50)


def test_advise__asks_a_checkpoint_and_names_what_it_was_not_told(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rules, spec = Rules.of("first_out"), {"kind": "mlp", "hidden": [4]}
    write_checkpoint("mini", build_network(36, spec).state_dict(), [rules], spec)
    found = content(capsys, "advise", SEEN, "--bot", "./mini", "--worlds", "50")
    view = parse_information_state(SEEN)
    action = make_bot("./mini").act(view, np.random.default_rng(0))
    assert found["advice"] == str(view.rules.deck.cards[action])
    warning = "Who laid which card was made up, and the bot may look at it: tell `laid`"
    assert warning in " ".join(found["notes"])
    told = f"{SEEN} | {LAID}"
    assert "made up" not in " ".join(content(capsys, "advise", told, "--bot", "./mini", "--worlds", "50")["notes"])
    assert "was trained for first_out" in refused(capsys, "advise", SEEN, "--rules", "one_loser", "--bot", "./mini")


# --- advise: what it is given ----------------------------------------------------------------------------------------


def test_advise__says_what_is_wrong_where(capsys: Capture) -> None:
    assert "hand, word 1: '9X' is not a card" in refused(capsys, "advise", "hand 9X | table - | left 9 9 9")
    assert "unknown rules preset 'whist'" in refused(capsys, "advise", SEEN, "--rules", "whist")
    twice = refused(capsys, "advise", SEEN, "--bot", "pimc:worlds=30", "--worlds", "40")
    assert "the number of worlds is told twice: 40, and in pimc:worlds=30" in twice
    assert "unknown bot 'sage'" in refused(capsys, "advise", SEEN, "--bot", "sage")
    assert "worlds must be a whole number from 2 to 100,000, not 1" in refused(capsys, "advise", SEEN, "--worlds", "1")
    assert "bot oracle sees all hands, so it has no advice" in refused(capsys, "advise", SEEN, "--bot", "oracle")


def test_advise__a_bot_that_chooses_an_illegal_card_is_named(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(GreedyBot):
        name = "wrong"

        def act_batch(self, views: Any, rules: Rules, words: Any) -> Any:
            return np.full(len(views), 99)

    monkeypatch.setitem(registry._registry, "wrong", Wrong)
    assert main(["advise", SEEN, "--bot", "wrong"]) == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "error: bot wrong chose action 99; legal: [2, 20]\n")

    class Late(GreedyBot):
        name = "late"
        deterministic = False

        def act_batch(self, views: Any, rules: Rules, words: Any) -> Any:
            if views["num_played"].max() > 8:
                raise RuntimeError("too late")
            return super().act_batch(views, rules, words)

        def act(self, view: PlayerView, rng: np.random.Generator) -> int:
            raise NotImplementedError

    monkeypatch.setitem(registry._registry, "late", Late)
    assert main(["advise", SEEN, "--bot", "late", "--worlds", "10"]) == 1
    assert re.fullmatch(r"error: bot late failed [^\d]*\n", capsys.readouterr().err)  # no number of a deal


def test_advise__that_nothing_fits_is_an_answer(capsys: Capture) -> None:
    for words in (STUCK, f"{STUCK} | passes 0 1 0"):
        screen = shown(capsys, "advise", words, "--bot", "reader")
        assert "\nNothing that you hold fits: you must pass\n" in screen
        assert "Who holds what" in screen
        assert screen.startswith("first_out num_players=4: you are on turn")
        found = content(capsys, "advise", words)
        assert (found["advice"], found["cards"]) == ("-", [])
        assert found["deals"] > 1000
        assert found["rules"]["explicit_pass"] is False
        assert sum(found["holders"]["8♣"]) == pytest.approx(1)


def test_advise__rules_of_another_number_of_seats_are_refused(capsys: Capture) -> None:
    said = refused(capsys, "advise", SEEN, "--rules", "first_out num_players=3")
    assert "--rules has num_players=3, but 4 seats are given" in said


def test_advise__shows_differences_to_the_card_advised(capsys: Capture) -> None:
    found = content(capsys, "advise", SEEN, "--worlds", "300")
    rows = {row["card"]: row for row in found["cards"]}
    best = rows.pop(found["advice"])
    assert "against" not in best
    for row in rows.values():
        assert row["against"] == pytest.approx(row["payoff"] - best["payoff"])
        low, high = row["against_ci95"]
        assert low < row["against"] < high
    assert f"against {found['advice']}" in shown(capsys, "advise", SEEN, "--worlds", "300")


def test_advise__reader_plays_as_pimc_where_two_seats_know_everything(capsys: Capture) -> None:
    game = moments(Rules.of("first_out", num_players=2), 1)[0]
    words = re.sub(r" \| (laid|order)[^|]*", "", format_information_state(game.view(game.turn)))
    reader, pimc = (content(capsys, "advise", words, "--bot", name, "--worlds", "50") for name in ("reader", "pimc"))
    assert reader["cards"] == pimc["cards"]


@pytest.mark.parametrize("seed", ["-1", str(2**64)])
def test_advise__names_the_seeds_that_there_are(seed: str, capsys: Capture) -> None:
    said = refused(capsys, "advise", SEEN, "--seed", seed)
    assert f"seed must be a whole number from 0 to 2**64 - 1, not {seed}" in said


# --- the number of worlds --------------------------------------------------------------------------------------------


def test_advise__looks_at_the_worlds_of_the_bot_that_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._registry, "mine", lambda worlds=50: PimcBot(worlds))
    view = parse_information_state(SEEN)
    asked: list[tuple[Any, int | None, int]] = [
        ("pimc", None, 1000),
        ("pimc", 60, 60),
        ("pimc:worlds=40", None, 40),
        ("pimc:playout=runner", 60, 60),
        ("mine", None, 50),
        ("mine", 60, 60),
        (PimcBot(worlds=50), None, 50),
        (PimcBot(worlds=50), 500, 500),
        (ReaderBot(worlds=50), 60, 60),
        (make_bot("pimc:worlds=40"), None, 40),
    ]
    for bot, worlds, count in asked:
        found = advise(view, bot, worlds)
        assert {one.count for one in (*found.payoff.values(), *found.win.values())} == {count}
        assert f"{count:,} deals" in found.notes[-1]
        one = PimcBot(count, "runner" if "runner" in found.bot else "greedy")
        if not isinstance(bot, ReaderBot):
            errors = one.evaluate_cards(view, np.random.default_rng(0))
            for card, payoff in found.payoff.items():
                assert payoff.half_width == pytest.approx(1.96 * errors[card].payoff_error, rel=1e-3)
        assert hash(found) == hash(advise(view, bot, worlds))


@pytest.mark.parametrize("bot", [PimcBot(worlds=1), "pimc:worlds=1"])
def test_advise__one_world_has_no_interval(bot: Any) -> None:
    with pytest.raises(ValueError, match="worlds must be at least 2 for an interval, not 1 as of pimc"):
        advise(parse_information_state(SEEN), bot)


@pytest.mark.parametrize("worlds", [1, 10**9, 2.5, "5", True])
def test_advise__worlds_have_bounds(worlds: Any) -> None:
    for bot in ("pimc", "greedy"):
        with pytest.raises(ValueError, match="worlds must be a whole number from 2 to 100,000, not "):
            advise(parse_information_state(SEEN), bot, worlds)


# --- solve: from here on ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [["--seed", "3", "--seats", "2"], [MINI_LINE], ["--seed", "3"]])
def test_solve__the_line_at_its_end_can_be_copied_and_extended(start: list[str], capsys: Capture) -> None:
    line = shown(capsys, "solve", *start).split("\n\n")[-1]
    game = Game.from_position(line)
    cards = []
    for _ in range(2):
        cards.append(str(game.legal_cards()[0]))
        game.play(cards[-1])
    after = content(capsys, "solve", *start, "--after", " ".join(cards))
    assert after["position"] == game.position
    assert content(capsys, "solve", line.rstrip() + " " + " ".join(cards))["actions"] == after["actions"]


def test_solve__two_seats_without_a_table_are_searched(capsys: Capture) -> None:
    rules = "bank passes_count=True cards_per_seat=9 opening=left_of_dealer"
    game = Game.deal(Rules.of(rules, num_players=2), 3)
    found = content(capsys, "solve", "--seed", "3", "--seats", "2", "--rules", rules)
    assert {row["id"]: row["value"] for row in found["actions"]} == dict(max_n(game).values)
    assert "more than 1 positions are needed" in refused(
        capsys, "solve", "--seed", "3", "--seats", "2", "--rules", rules, "--max-states", "1"
    )
