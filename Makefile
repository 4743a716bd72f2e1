# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN = .venv/bin
export MPLBACKEND = Agg

.PHONY: setup demo test test-slow check format docs bench clean
setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; assert (3, 11) <= sys.version_info < (3, 14), "Python 3.11 to 3.13 is needed"'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch .venv/ready

# Train a four-seat agent by self-play, then measure it beside greedy and random, against random and against greedy.
demo: setup
	rm -rf runs/demo
	$(BIN)/python -m training.selfplay --config configs/train/quick.yaml --name demo
	$(BIN)/devyatka evaluate runs/demo/checkpoints/last --against random --reference greedy,random --deals 5000 \
		--json runs/demo/against_random.json --plot runs/demo/against_random.png
	@echo
	$(BIN)/devyatka evaluate runs/demo/checkpoints/last --against greedy --reference greedy,random --deals 5000 \
		--json runs/demo/against_greedy.json --plot runs/demo/against_greedy.png
	@echo "Curves: runs/demo/curves.png  Checkpoint: runs/demo/checkpoints/last"

test: setup
	$(BIN)/python -m pytest

# The long versions: 2,000 games for every preset and seat count, bigger mini-decks, a longer training.
test-slow: setup
	$(BIN)/python -m pytest -m slow

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: setup
	$(BIN)/python docs/generate.py

bench: .venv/bench-ready
	$(BIN)/python -m benchmarks

# The libraries that benchmarks/compare.py measures beside ours.
.venv/bench-ready: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,bench]'
	touch .venv/bench-ready

clean:
	rm -rf .venv runs dist .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
