"""`devyatka report`: what is on the page, that it needs no other file, and that Markdown says the same as HTML."""

from __future__ import annotations

import contextlib
import json
import math
import re
import shlex
import shutil
import warnings
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from devyatka_env.cli import main, report
from devyatka_env.evaluation import Estimate
from devyatka_env.evaluation.reports import charts
from devyatka_env.evaluation.reports.measurements import measure_agent
from devyatka_env.evaluation.reports.page import (
    INK,
    Code,
    Line,
    Listing,
    Page,
    Paragraph,
    Picture,
    Pictures,
    Section,
    Table,
    Tile,
    plain,
)
from devyatka_env.evaluation.reports.reported_agent import open_agent, tables_of
from devyatka_env.evaluation.reports.sections import verdict
from devyatka_env.evaluation.reports.wording import measure, percent, rules_in_words, share, table_labels
from devyatka_env.evaluation.reports.writers import check_ending, to_html, to_markdown, write_page
from devyatka_env.learning import monitor
from devyatka_env.rules import PRESETS, Rules
from tests.helpers.training_helpers import MINI, write_settings
from training.selfplay import main as train

Capture = pytest.CaptureFixture[str]

DEALS = 40
NASTY = "a<b>&\"c'|d*_`e`~[f](g)\\"
VOID = {"meta", "br"}


class Reader(HTMLParser):
    """Reads a page strictly: every element is closed, in order. Collects table cells, ids, what refers to them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.cells: list[str] = []
        self.words = ""
        self.feed(text)
        self.close()
        assert self.open == [], f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"an attribute twice in <{tag}>"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1:] == [tag], f"</{tag}> closes nothing"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.words += data
        if {"td", "th"} & set(self.open):
            self.cells[-1] += data

    def values(self, name: str) -> list[str]:
        """All values of an attribute."""
        return [value or "" for _, attributes in self.tags for key, value in attributes.items() if key == name]


def markdown_cells(text: str) -> list[str]:
    """The cells of all tables of a Markdown text, unescaped."""
    cells = []
    for line in re.sub(r"```.*?```", "", text, flags=re.DOTALL).splitlines():
        if line.startswith("| ") and not re.fullmatch(r"[|: -]+", line):
            cells += [unmarked(cell.strip()) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    return cells


def unmarked(text: str) -> str:
    """Markdown of a line as the plain text it shows: code spans whole, escapes resolved."""
    text = text.replace(r"\|", "|")
    out = ""
    while text:
        code = re.match(r"(`+)(.+?)\1(?!`)", text)
        if code:
            inner = code[2]
            out += inner[1:-1] if inner[0] == inner[-1] == " " and inner.strip() else inner
            text = text[code.end() :]
        elif text[0] == "\\" and len(text) > 1:
            out, text = out + text[1], text[2:]
        else:
            out, text = out + text[0], text[1:]
    return out.replace("&amp;", "&")


def checked(text: str) -> Reader:
    """A page that was read strictly, and needs nothing but itself."""
    page = Reader(text)
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "link", "iframe", "object", "embed", "base", "form"}
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert page.values("src") == []
    assert all(target.startswith("#") for target in page.values("href"))
    assert all(target[1:] in page.values("id") for target in page.values("href"))
    assert not re.search(r"@import|url\((?!#)|https?:", text)
    assert len(set(page.values("id"))) == len(page.values("id"))
    used = re.findall(r"url\(#([^)]*)\)", text)
    assert set(used) <= set(page.values("id"))
    assert page.values("content")[-1].startswith("default-src 'none'")
    return page


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a run, trained to its end."""
    folder = tmp_path_factory.mktemp("trained")
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        patch.setattr(monitor, "draw_curves", lambda *arguments: None)
        assert train(["--config", str(write_settings(Path("tiny.yaml")))]) == 0
    yield folder / "runs" / "tiny"
    shutil.rmtree(folder)


@pytest.fixture
def finished(trained: Path) -> Path:
    """That run in ./runs, to do with as one likes."""
    shutil.copytree(trained, "runs/tiny")
    return Path("runs/tiny")


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """As without matplotlib; drawing takes most of the time of a small report."""
    monkeypatch.setattr(charts, "can_draw", lambda: False)


def written(*words: str, output: str = "report.html", code: int = 0) -> str:
    """The page that the command writes."""
    assert main(["report", *words, "-o", output, "--deals", str(DEALS)]) == code
    return Path(output).read_text(encoding="utf-8")


# --- the writers -----------------------------------------------------------------------------------------------------


def a_figure() -> Figure:
    figure, axis = charts.new_figure("a < b & c", "x", "y")
    axis.errorbar([0, 1], [0, 1], yerr=[0.1, 0.2], fmt="o", label="<&>")
    axis.fill_between([0, 1], [0, 1], [1, 2])
    return figure


def a_page() -> Page:
    line: Line = ("words ", Code(NASTY), " " + NASTY)
    blocks = (
        Paragraph(line),
        Table((NASTY, "figure"), [(Code(NASTY), "1 ± 2 %"), (line, "–")], caption=line),
        Table(("", ""), [("one", NASTY), ("`", Code("`x"))], words=True),
        Pictures([Picture("one", NASTY, a_figure()), Picture("two", "two", a_figure())]),
        Listing("echo '<b>' && ```", "bash"),
        Listing('{"a": "</details>"}', "json", "All of it"),
    )
    return Page(line, line, (line,), (Tile(NASTY, "61.6 %", NASTY),), (Section(NASTY, blocks),), line)


def test_html__is_well_formed_whatever_the_words_and_shows_them_as_they_are() -> None:
    text = to_html(a_page())
    page = checked(text)
    assert page.words.count(NASTY) == 23  # as often as a_page has it, the section twice, the title twice as often
    assert "echo '<b>' && ```" in page.words
    assert "<b>" not in text.replace("<b>61.6 %</b>", "")
    assert {"details", "summary", "svg", "figure", "nav"} <= {tag for tag, _ in page.tags}
    assert page.values("aria-label") == [NASTY, "two"]


def test_html__pictures_take_the_ink_of_the_page_and_are_text_not_outlines() -> None:
    text = to_html(a_page())
    svg = text[text.index("<svg") : text.index("</svg>")]
    assert INK not in svg
    assert "currentColor" in svg
    assert ">a &lt; b &amp; c</text>" in svg
    assert to_html(a_page()) == text  # no time, no random ids


def test_markdown__says_the_same_as_html_and_escapes_what_it_would_read() -> None:
    page = a_page()
    text, pictures = to_markdown(page, "some files")
    assert list(pictures) == ["one.png", "two.png"]
    assert all(data.startswith(b"\x89PNG") for data in pictures.values())
    assert "](some%20files/one.png)" in text
    cells = Reader(to_html(page)).cells
    assert markdown_cells(text) == [NASTY, "61.6 %", NASTY, *cells]  # the tiles are a table there
    assert "````bash\necho '<b>' && ```\n````" in text
    assert unmarked(text.splitlines()[0]) == f"# {plain(page.title)}"


def test_write_page__puts_pictures_beside_a_markdown_page_and_leaves_no_parts() -> None:
    Path("with space.md").write_text("old", encoding="utf-8")
    files = write_page(a_page(), Path("with space.md"))
    assert files == [Path("with space_files/one.png"), Path("with space_files/two.png"), Path("with space.md")]
    links = re.findall(r"\]\(([^)]*\.png)\)", Path("with space.md").read_text(encoding="utf-8"))
    assert [link.replace("%20", " ") for link in links] == [str(file) for file in files[:2]]
    assert write_page(a_page(), Path("page.html")) == [Path("page.html")]
    assert sorted(path.name for path in Path().iterdir()) == ["page.html", "with space.md", "with space_files"]


CONTROL = "".join(map(chr, [*range(9), 11, 12, *range(14, 32), 127, 0x85, 0x9B, 0x202E]))


def test_pages__have_no_control_character_anywhere() -> None:
    """In SVG text, too, where an XML reader would refuse the whole page."""
    words = f"x{CONTROL}\x1b[2J\ud800y"
    figure, axis = charts.new_figure("title", "x", "y")
    axis.plot([0, 1], [0, 1], label=words.replace("\ud800", ""))
    with warnings.catch_warnings():  # matplotlib has no picture of a control character, and says so
        warnings.simplefilter("ignore")
        figure.legend()
        page = Page(words, words, (words,), (Tile(words, "1", words),), (Section(words, (
            Paragraph(words), Table((words,), [(Code(words),)]), Listing(words, "bash", words),
            Pictures([Picture("one", words, figure)]),
        )),), words)  # fmt: skip
        text, (marked, _) = to_html(page), to_markdown(page, "files")
    assert "<svg" in text
    for written_text in (text, marked):
        assert not set(written_text) & set(CONTROL)
        written_text.encode()


def test_report__of_a_run_whose_metrics_are_damaged_is_written(finished: Path) -> None:
    lines = (finished / "metrics.jsonl").read_text(encoding="utf-8")
    bad = ['{"decisions": 1e400}', '{"decisions": true}', '{"decisions": 5, "a": 1' + "0" * 400 + "}", "[" * 100_000]
    bad += ['{"decisions": 9, "eval/\\u001b[2J$x$/first_out_2": 0.5, "eval/greedy/$\\\\frac{1$_2": 0.5, "b": NaN}']
    bad += ['{"decisions": 9, "eval/gr\\u0000eedy/first_out_2": 1e308, "eval/random/first_out_2": 0.5}']
    (finished / "metrics.jsonl").write_text(lines + "\n".join(bad) + "\n", encoding="utf-8")
    page = checked(written("runs/tiny"))
    assert "Training" in page.words
    assert not set(page.words) & set(CONTROL)


@pytest.mark.parametrize("name", ["page.pdf", "page", "page.HTML", "html"])
def test_ending__that_is_neither_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"written as \.html or \.md"):
        check_ending(Path(name))


# --- the rules in words ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", PRESETS)
def test_rules__the_fields_beside_the_words_are_all_there_is_to_a_rule_set(preset: str) -> None:
    rules = Rules.of(preset, num_players=3)
    fields = " ".join(field for _, _, field in rules_in_words(rules))
    assert Rules.from_text(f"first_out num_players=3 {fields}") == rules


def test_rules__that_differ_are_told_in_other_words() -> None:
    words = {preset: [text for _, text, _ in rules_in_words(Rules.of(preset, num_players=3))] for preset in PRESETS}
    assert len({tuple(lines) for lines in words.values()}) == len(PRESETS)
    assert "the seat with 9♦ opens and must lay it" in words["first_out"]
    assert "the seat with 7♦ opens and must lay it" in words["sevens"]
    assert "each seat deals once" in words["round"]
    assert rules_in_words(Rules.of("deck_52", num_players=2)) == rules_in_words(Rules.of("deck_52", num_players=5))


def test_labels__tell_tables_apart() -> None:
    assert table_labels([Rules.of("first_out", num_players=n) for n in (2, 4)]) == ["2 seats", "4 seats"]
    mixed = [Rules.of("first_out"), Rules.of("one_loser")]
    assert table_labels(mixed) == ["first_out, 4", "one_loser, 4"]
    same = [Rules.of("first_out"), Rules.of("first_out", payoff="cards")]
    assert len(set(table_labels(same))) == 2


def test_figures__have_a_minus_that_is_one_and_no_zero_below_zero() -> None:
    assert share(-0.25, 1) == "−25.0\N{NO-BREAK SPACE}%"
    assert share(-1e-9) == share(0.0) == "0.00\N{NO-BREAK SPACE}%"
    assert share(0.5, 0, signed=True) == "+50\N{NO-BREAK SPACE}%"
    assert percent(Estimate(0.25, 0.2, 0.3, 9)) == "25.00 ± 5.00\N{NO-BREAK SPACE}%"
    assert percent(Estimate(0.25, -math.inf, math.inf, 1), 0) == "25 ± ∞\N{NO-BREAK SPACE}%"
    assert percent(Estimate(math.nan, math.nan, math.nan, 0)) == measure(Estimate(math.nan, 0, 0, 0)) == "–"


# --- whom, and under which rules -------------------------------------------------------------------------------------


def test_subject__of_a_run_is_its_best_checkpoint_or_else_its_last(finished: Path) -> None:
    subject = open_agent("runs/tiny")
    assert (subject.spec, subject.run) == ("runs/tiny/checkpoints/best", finished)
    assert len(subject.metrics) == len((finished / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    assert open_agent("runs/tiny/checkpoints/last").run == finished
    assert open_agent("runs/tiny+sample").bot.name == "runs/tiny/checkpoints/best+sample"
    shutil.rmtree(finished / "checkpoints" / "best")
    assert open_agent("runs/tiny").spec == "runs/tiny/checkpoints/last"
    shutil.copytree(finished / "checkpoints" / "last", "alone")
    alone = open_agent("alone")
    assert (alone.run, alone.metrics, alone.checkpoint) == (None, (), Path("alone"))


def test_subject__metrics_cut_short_by_a_crash_are_read_as_far_as_they_go(finished: Path) -> None:
    whole = len(open_agent("runs/tiny").metrics)
    with (finished / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write('[1]\n"text"\n{"no": 1}\n{"decisions": 5, "na')
    assert len(open_agent("runs/tiny").metrics) == whole


def test_tables__are_those_of_the_checkpoint_and_of_a_bot_all_numbers_of_seats(finished: Path) -> None:
    checkpoint, greedy = open_agent("runs/tiny"), open_agent("greedy")
    assert tables_of(checkpoint, None, [None]) == (Rules.of(MINI),)
    assert [rules.num_players for rules in tables_of(greedy, None, [None])] == [2, 3, 4, 5, 6]
    assert [rules.num_players for rules in tables_of(greedy, None, [3, 5])] == [3, 5]
    assert tables_of(greedy, "one_loser", [None]) == (Rules.of("one_loser"),)
    assert tables_of(greedy, "one_loser", [3]) == (Rules.of("one_loser", num_players=3),)
    with pytest.raises(ValueError, match=r"was trained for .* not for 4 seats"):
        tables_of(checkpoint, None, [4])


# --- the command -----------------------------------------------------------------------------------------------------


def test_report__of_a_run_has_everything_it_promises(finished: Path, capsys: Capture) -> None:
    page = checked(written("runs/tiny"))
    parts = re.findall(
        r"Against greedy|Against random|Against perfect play|Training|Rules|Checkpoint|Environment", page.words
    )
    assert parts[:7] == [
        "Against greedy", "Against random", "Against perfect play", "Training", "Rules", "Checkpoint", "Environment"
    ]  # fmt: skip
    manifest = json.loads((finished / "checkpoints/best/manifest.json").read_text(encoding="utf-8"))
    for fact in (
        Rules.of(MINI).fingerprint,
        manifest["layout_hash"],
        manifest["weights_sha256"],
        "current"[:0] or MINI,
    ):
        assert fact in page.words
    assert f"{manifest['steps']:,}" in page.cells
    assert json.dumps(manifest, indent=1, ensure_ascii=False) in page.words
    pictures = sum(tag == "svg" for tag, _ in page.tags)
    assert pictures == 8 + len(charts.training_curves(open_agent("runs/tiny").metrics))
    assert "python -m training.selfplay --config runs/tiny/config.yaml --name again" in page.words
    assert capsys.readouterr().out.startswith("report.html: Wins ")


def test_report__as_markdown_has_the_same_figures() -> None:
    words = ("greedy", "--rules", MINI, "--against", "random,greedy")
    page, text = checked(written(*words)), written(*words, output="report.md")
    same = [cell for cell in markdown_cells(text) if "±" in cell]
    assert same == [cell for cell in page.cells if "±" in cell]
    assert len(same) > 20
    links = re.findall(r"\]\((report_files/[^)]*)\)", text)
    assert len(links) == 8
    assert all(Path(link).is_file() for link in links)


@pytest.mark.parametrize("output", ["report.html", "report.md"])
def test_report__on_a_checkpoint_with_a_strange_name_shows_the_name(trained: Path, output: str) -> None:
    name = "a<b>&c|d`e*"
    shutil.copytree(trained / "checkpoints" / "last", name)
    text = written(name, "--against", "random", output=output)
    if output.endswith(".html"):
        assert checked(text).words.count(name) >= 4
        assert name not in text
    else:
        assert f"# Report on ``{name}``" in text


@pytest.mark.usefixtures("finished", "no_pictures")
def test_report__prints_commands_that_measure_the_same(capsys: Capture) -> None:
    page = checked(written("runs/tiny", "--against", "random"))
    line = next(line for line in page.words.splitlines() if line.startswith("devyatka evaluate"))
    assert main([*shlex.split(line)[1:], "--json", "result.json"]) == 0
    row = json.loads(Path("result.json").read_text(encoding="utf-8"))["tables"][0]["candidates"][0]
    half = (row["win_rate_ci95"][1] - row["win_rate_ci95"][0]) / 2
    assert f"{100 * row['win_rate']:.2f} ± {100 * half:.2f}\N{NO-BREAK SPACE}%" in page.cells
    again = next(line for line in page.words.splitlines() if line.startswith("devyatka report"))
    cells = [cell for cell in page.cells if "±" in cell]
    assert main(shlex.split(again)[1:]) == 0
    assert [cell for cell in checked(Path("report.html").read_text(encoding="utf-8")).cells if "±" in cell] == cells
    exact = next(line for line in page.words.splitlines() if line.startswith("devyatka exact"))
    capsys.readouterr()
    assert main(shlex.split(exact)[1:]) == 0


def test_report__without_matplotlib_has_no_pictures_and_says_so(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charts, "can_draw", lambda: False)
    page = checked(written("runs/tiny"))
    assert "svg" not in {tag for tag, _ in page.tags}
    assert "matplotlib is not installed" in page.words
    assert len([cell for cell in page.cells if "±" in cell]) > 20


@pytest.mark.usefixtures("no_pictures")
def test_report__says_who_cheats(capsys: Capture) -> None:
    page = checked(written("oracle", "--rules", MINI, "--against", "random"))
    assert "oracle sees all hands, so it cheats" in page.words
    assert "oracle sees all hands, so it cheats" in capsys.readouterr().out


def stopping_at(step: int) -> Callable[[], Callable[[int, int, str], None]]:
    """A progress line in place of which Ctrl-C is pressed, at the first report on deals of a step."""

    def show(number: int, total: int, text: str) -> None:
        if number == step and "of 40 deals" in text:
            raise KeyboardInterrupt

    return lambda: show


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(("step", "left"), [(1, ["Against greedy"]), (3, ["Against greedy", "Against random"])])
def test_ctrl_c__writes_what_is_there_and_says_so(step: int, left: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "_progress_line", stopping_at(step))
    page = checked(written("greedy", "--rules", MINI, "--against", "greedy,random,blocker", code=130))
    assert "Stopped early by Ctrl-C" in page.words
    titles = re.findall(r"Against (?:greedy|random|blocker)", page.words)
    assert list(dict.fromkeys(titles)) == left
    assert ("Against perfect play" in page.words) == (step > 1)


@pytest.mark.usefixtures("finished", "no_pictures")
def test_ctrl_c__before_anything_was_played_leaves_a_page_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("devyatka_env.evaluation.reports.measurements.compare", stop)
    page = checked(written("runs/tiny", code=130))
    assert "Nothing was measured." in page.words
    assert Rules.of(MINI).fingerprint in page.words


@pytest.mark.usefixtures("no_pictures")
def test_report__of_a_bot_that_fails_names_it_and_has_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    source = (
        "from devyatka_env.bots import Bot\n\n\nclass Fails(Bot):\n    '''Fails where all are 3.'''\n\n"
        "    name = 'fails'\n\n    def act(self, view, rng):\n"
        "        if view.num_players == 3:\n            raise RuntimeError('<broken>')\n"
        "        return view.legal_actions()[0]\n"
    )
    (tmp_path / "bots_of_mine.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    rules = MINI.replace("num_players=2 ", "")
    page = checked(written("bots_of_mine:Fails", "--rules", rules, "--seats", "2,3", "--against", "random", code=1))
    assert "ended after 0 deals" in page.words
    assert "<broken>" in page.words
    assert "Fails where all are 3." in page.cells
    assert "against perfect play" in page.words
    assert "<broken>" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nobody"], "unknown bot 'nobody'"),
        (["no/such/folder"], "unknown bot 'no/such/folder'"),
        (["empty/"], "no checkpoint at empty"),
        (["begun"], "begun is a training run without a checkpoint"),
        (["greedy", "-o", "report.pdf"], "written as .html or .md"),
        (["greedy", "-o", "no/folder.html"], "there is no folder no"),
        (["greedy", "-o", "empty"], "written as .html or .md"),
        (["greedy", "--against", ""], "no field given"),
        (["greedy", "--against", "greedy,nobody"], "unknown bot 'nobody'"),
        (["greedy", "--deals", "0"], "deals must be at least 1"),
        (["greedy", "--seats", "7"], "seats must be different numbers from 2 to 6"),
        (["greedy", "--rules", "nine_each", "--seats", "5"], "5"),
        (["greedy", "--rules", "whist"], "unknown rules preset 'whist'"),
        (["greedy", "--jobs", "0"], "jobs must be at least 1"),
    ],
)
def test_nonsense__is_refused_before_anything_is_played(words: list[str], message: str, capsys: Capture) -> None:
    Path("empty").mkdir()
    Path("begun/checkpoints").mkdir(parents=True)
    assert main(["report", *words]) == 2
    assert message in capsys.readouterr().err
    assert not list(Path().glob("report*"))


# --- the verdict -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bot", "field", "word"),
    [("greedy", "random", "more than"), ("random", "greedy", "less than"), ("greedy", "greedy", "about")],
)
def test_verdict__goes_by_the_interval_of_the_first_field(bot: str, field: str, word: str) -> None:
    tables = [Rules.of("first_out", num_players=n) for n in (3, 4)]
    measurements = measure_agent(open_agent(bot), tables, [field], 400)
    assert plain(verdict(measurements)) == f"Wins {word} its share at 3 and 4 seats against {field}."


def test_verdict__is_not_led_astray_by_deals_that_no_choice_could_change() -> None:
    """In `nine_each` all is up to the cards: a third of them to everybody, and nothing for an adjustment to go by."""
    measurements = measure_agent(open_agent("greedy"), [Rules.of("nine_each", num_players=3)], ["greedy"], 300)
    (duel,) = measurements.duels
    assert (duel.adjusted, duel.gain, duel.p_value) == (None, None, 1.0)
    assert plain(verdict(measurements)) == "Wins about its share at 3 seats against greedy."


def test_paint__refuses_a_bot_that_does_not_play_the_rules(finished: Path) -> None:
    with pytest.raises(ValueError, match="was trained for"):
        measure_agent(open_agent("runs/tiny"), [Rules.of("first_out")], ["greedy"], 10)


def test_best_response__is_searched_for_scripted_bots_alone(finished: Path) -> None:
    scripted = measure_agent(open_agent("greedy"), [Rules.of(MINI)], ["greedy"], DEALS).exact[0]
    network = measure_agent(open_agent("runs/tiny"), [Rules.of(MINI)], ["greedy"], DEALS).exact[0]
    assert scripted.best_response is not None
    assert scripted.best_response.deals == DEALS
    assert network.best_response is None
    assert network.against_oracle is not None
    assert network.regret.decisions > 0
