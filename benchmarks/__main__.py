"""Run every benchmark."""

from benchmarks import aec, evaluation, startup

for benchmark in (startup, aec, evaluation):
    print(f"--- benchmarks/{benchmark.__name__.rpartition('.')[2]}.py: {(benchmark.__doc__ or '').splitlines()[0]}")
    benchmark.main()
    print(flush=True)
