# Each target does its own set-up in .venv; PYTHON=/path/to/python chooses the interpreter (3.12 or newer).
PYTHON ?=
BIN = .venv/bin

.PHONY: help demo test lint coverage mutation docs dist wheel setup clean distclean

help:
	@echo 'make demo       try it out: no model, no key, no GPU'
	@echo 'make test       every check: style, types, import rules, tests'
	@echo 'make lint       the same without the tests'
	@echo 'make coverage   the tests once more, counting the branches they take'
	@echo 'make mutation   the code changed in many places, one at a time: do the tests notice? (half an hour)'
	@echo 'make docs       the documentation as a site, in build/site'
	@echo 'make dist       wheel and sdist into dist/, as for a release'
	@echo 'make wheel      build the wheel into dist/'
	@echo 'make setup      only make .venv, which the others do by themselves'
	@echo 'make clean      remove what was built and cached'
	@echo 'make distclean  the same, and .venv'
	@echo 'Add PYTHON=/path/to/python to choose the interpreter, 3.12 or newer.'

setup:
	@PYTHON='$(PYTHON)' sh scripts/set-up

demo: setup
	@$(BIN)/agentcompass-bfcl demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict agentcompass_bfcl
	$(BIN)/lint-imports --no-logo

test: lint
	$(BIN)/pytest

coverage: setup
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

mutation: setup
	$(BIN)/python -m pip install --quiet --no-input --disable-pip-version-check --editable '.[mutation]'
	$(BIN)/python -m benchmarks.mutation --write docs/mutation.md

docs: setup
	$(BIN)/mkdocs build --strict

wheel: setup
	@rm -f dist/*.whl
	@$(BIN)/python -m build --wheel >.venv/wheel.log 2>&1 || { cat .venv/wheel.log >&2; exit 1; }
	@ls dist/*.whl

dist: setup
	@rm -rf dist
	@$(BIN)/python -m build >.venv/dist.log 2>&1 || { cat .venv/dist.log >&2; exit 1; }
	$(BIN)/twine check --strict dist/*

clean:
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find agentcompass_bfcl tests -name __pycache__ -prune -exec rm -rf {} +

distclean: clean
	rm -rf .venv/bin/python .venv .venv.lock
