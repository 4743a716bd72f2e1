"""Run every benchmark."""

from benchmarks import aec, compare, evaluation, scaling, solver, startup, vector

for benchmark in (startup, aec, evaluation, solver, compare, vector, scaling):
    print(f"--- benchmarks/{benchmark.__name__.rpartition('.')[2]}.py: {(benchmark.__doc__ or '').splitlines()[0]}")
    benchmark.main()
    print(flush=True)
