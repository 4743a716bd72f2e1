"""Run every benchmark."""

from benchmarks import aec, belief, compare, evaluation, scaling, solver, startup, training, vector


def main() -> None:
    """One after the other, each under its first line."""
    for benchmark in (startup, aec, evaluation, solver, belief, compare, training, vector, scaling):
        print(f"--- benchmarks/{benchmark.__name__.rpartition('.')[2]}.py: {(benchmark.__doc__ or '').splitlines()[0]}")
        benchmark.main()
        print(flush=True)


if __name__ == "__main__":  # worker processes import this module, too
    main()
