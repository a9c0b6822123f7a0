# Everything runs from a virtual environment in .venv that the first target makes.
PYTHON ?= python3
BIN := .venv/bin
# Test files run at a time; each may have a Spark of its own.
WORKERS ?= 2
SECONDS ?= 60
PATHS ?= process,refresh,alter,kill
# Servers and Spark's workers start in two thirds of the time with compiled modules.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

.PHONY: install clients demo dbt run test test-all test-clients fuzz check format bench golden clean
.DEFAULT_GOAL := help

help: ## Show what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

.venv/installed: pyproject.toml scripts/install
	@PYTHON=$(PYTHON) sh scripts/install

.venv-clients/installed: tests/clients/requirements.txt scripts/install-clients
	@PYTHON=$(PYTHON) sh scripts/install-clients

install: .venv/installed ## Make .venv with everything pinned in it

clients: .venv-clients/installed ## Make .venv-clients with the client libraries and dbt that tests run

demo: .venv/installed ## Load real flights data, create views on serverless Spark, watch them follow changes
	@$(BIN)/sparkwave demo

dbt: .venv/installed .venv-clients/installed ## Run the dbt project of examples/dbt on real flights data
	@$(BIN)/python examples/run_dbt.py

run: .venv/installed ## Serve on 127.0.0.1:4566 with data in ./.sparkwave, the dashboard on 5691
	@$(BIN)/sparkwave serve

test: .venv/installed ## Run all tests but the long ones
	@$(PYTEST) -m "not long"

test-all: .venv/installed .venv-clients/installed ## Run all tests
	@$(PYTEST)

test-clients: .venv/installed ## Run the drivers' own tests here and on PostgreSQL (SUITES="psycopg2 asyncpg")
	@PYTHONPATH=.:tests $(BIN)/python -m suites --failing $(SUITES)

fuzz: .venv/installed ## Play random cases against PostgreSQL for SECONDS (PATHS=process,kill SEED=1)
	@PYTHONPATH=.:tests nice $(BIN)/python -m fuzz --seconds $(SECONDS) --paths $(PATHS) $(if $(SEED),--seed $(SEED))

check: .venv/installed ## Format, lint, types, layering
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest tests/test_layers.py tests/test_docs.py

format: .venv/installed ## Reformat and fix what can be fixed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

golden: .venv/installed ## Write the golden files again, to be read as a diff
	@$(BIN)/python -m pytest tests/test_golden.py tests/test_queries_page.py tests/test_sql_scripts.py --update-golden

bench: .venv/installed ## Measure everything beside Spark, PostgreSQL and DuckDB, and write bench/RESULTS.md
	@$(BIN)/python -m bench

clean: ## Remove the environments and the data of `make run`
	rm -rf .venv .venv-clients .venv-suites .sparkwave
