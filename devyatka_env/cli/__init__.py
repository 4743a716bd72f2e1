"""The ``devyatka`` command: a module a command, each with ``add(commands)`` for its options and ``run(options)``.

Every module is imported whenever the command line starts, so its top imports only what its options need; what its work
needs is imported in ``run``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from devyatka_env.bots import BotError
from devyatka_env.cli import advise, bots, check_agent, evaluate, exact, report, solve, tournament

# In the order of the help.
COMMANDS = (evaluate, tournament, exact, report, check_agent, solve, advise, bots)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code: 0, 1 where a bot failed, 2 for bad input, 130 when interrupted."""
    if "" not in sys.path:
        sys.path.insert(0, "")  # module:name bots are looked for where the command is given, as `python -m` does
    parser = argparse.ArgumentParser(
        prog="devyatka", description="Devyatka, the card game, for reinforcement learning."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for command in COMMANDS:
        command.add(commands)
    options = parser.parse_args(arguments)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader (`| head`) has gone; what Python flushes at exit must go nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
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
