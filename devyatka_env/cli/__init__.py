"""The ``devyatka`` command: a module a command, each with ``add(commands)`` for its options and ``run(options)``.

Every module is imported whenever the command line starts, so its top imports only what its options need; what its work
needs is imported in ``run``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout

from devyatka_env import _console
from devyatka_env.bots import BotError
from devyatka_env.cli import advise, bots, check_agent, evaluate, exact, report, solve, tournament

# In the order of the help.
COMMANDS = (evaluate, tournament, exact, report, check_agent, solve, advise, bots)
# Options that name a file or folder to be written.
_FILES = ("json", "plot", "output")


class _Help(argparse.HelpFormatter):
    """Help in which the longest command stands on one line with what it does."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog)
        self._action_max_length = 15


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code: 0, 1 where a bot failed, 2 for bad input, 130 when interrupted."""
    if "" not in sys.path:
        sys.path.insert(0, "")  # module:name bots are looked for where the command is given, as `python -m` does
    _console.take_any_sign()
    parser = argparse.ArgumentParser(
        prog="devyatka", description="Devyatka, the card game, for reinforcement learning.", formatter_class=_Help
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for command in COMMANDS:
        command.add(commands)
    options = parser.parse_args(arguments)
    from devyatka_env import _signals  # help needs none

    has_files = any(getattr(options, name, None) is not None for name in _FILES)
    screen = _console.Screen(sys.stdout, goes_on=has_files)
    errors = _console.Screen(sys.stderr, goes_on=True)
    with redirect_stdout(screen), redirect_stderr(errors), _signals.handled_by(_signals.interrupt, _signals.ENDING):
        return _run(options, screen)


def _run(options: argparse.Namespace, screen: _console.Screen) -> int:
    try:
        code: int = options.run(options)
        screen.flush()
        return code
    except BrokenPipeError:  # nobody looks, and no file was asked for
        return 0
    except (ValueError, OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BotError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
