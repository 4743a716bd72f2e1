# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
export MPLBACKEND = Agg

# A folder for the tools of another Python: make VENV=.venv-3.12 PYTHON=python3.12 test
.PHONY: setup demo test test-slow test-pythons check format docs bench clean
setup: $(VENV)/ready

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; assert (3, 11) <= sys.version_info < (3, 14), "Python 3.11 to 3.13 is needed"'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(VENV)/ready

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

# On all cores; the time with kernels to compile (a fresh clone) is printed as the time without is.
test: setup
	$(BIN)/python -m pytest -n auto --dist worksteal

# The long versions: 2,000 games for every preset and seat count, bigger mini-decks, a longer training.
test-slow: setup
	$(BIN)/python -m pytest -n auto --dist worksteal -m slow

# The suite on every other supported Python that this machine has.
test-pythons:
	@for version in 3.12 3.13; do \
		if command -v python$$version > /dev/null; then \
			$(MAKE) --no-print-directory VENV=.venv-$$version PYTHON=python$$version test || exit 1; \
		else \
			echo "python$$version is not on this machine: not tested"; \
		fi; \
	done

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: setup
	$(BIN)/python docs/generate.py

bench: $(VENV)/bench-ready
	$(BIN)/python -m benchmarks

# The libraries that benchmarks/compare.py measures beside ours.
$(VENV)/bench-ready: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,bench]'
	touch $(VENV)/bench-ready

clean:
	rm -rf .venv .venv-* runs dist .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
