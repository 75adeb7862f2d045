# One command per habit. Each makes .venv itself when it is missing or when the dependencies changed.
.DEFAULT_GOAL := help
.PHONY: help setup demo example-kafka kafka postgres test test-all search check bench

# Tests start hundreds of processes: what Python has compiled is kept, whatever the shell says.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CLASSES := $(VENV)/spark.jsa

# How many stories and scripts `make search` tries, and from which seed on.
SEEDS := 1000
FIRST := 0

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv, and say what this machine is missing
	@echo "$(VENV) is ready: $$($(BIN)/python --version)"

demo: $(READY) ## a quarter of an hour of freeway traffic through Spark in a minute; results go to out/demo
	$(BIN)/python -m examples.demo

example-kafka: $(READY) ## Kafka, windows with early answers, PostgreSQL: servers included, half a minute
	$(BIN)/python -m examples.kafka_to_postgres

kafka: $(READY) ## a Kafka broker to try things with, until Ctrl-C; says how it is reached
	@$(BIN)/python -m scripts.kafka_server

postgres: $(READY) ## a PostgreSQL to try things with, until Ctrl-C; says how it is reached
	@$(BIN)/python -m scripts.postgres_server

test: $(CLASSES) ## run the tests and every example in a docstring; some minutes
	$(BIN)/python -m pytest -n 2 $(ARGS)

test-all: $(CLASSES) ## the tests that are slow as well: what a release runs
	$(BIN)/python -m pytest -n 2 --all $(ARGS)

search: $(READY) ## play SEEDS random stories of whole programs and check as many scripts, from FIRST on
	$(BIN)/python -m tests.simulation --seeds $(SEEDS) --first $(FIRST)
	$(BIN)/python -m tests.commands.fuzz --scripts $(SEEDS) --first $(FIRST)

check: $(READY) ## style, types, the import contract, the documents
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/check_docs.py

bench: $(READY) ## the quick form of every benchmark
	$(BIN)/python -m benchmarks.heartbeats --quick
	$(BIN)/python -m benchmarks.grouping --quick
	$(BIN)/python -m benchmarks.group_wise --quick
	$(BIN)/python -m benchmarks.local_engine --quick
	$(BIN)/python -m benchmarks.spark_native --quick
	$(BIN)/python -m benchmarks.join_vs_spark --quick
	$(BIN)/python -m benchmarks.join_vs_spark --quick --place cluster
	$(BIN)/python -m benchmarks.scale --quick
	$(BIN)/python -m benchmarks.overhead --quick
	$(BIN)/python -m benchmarks.startup --quick
	$(BIN)/python -m benchmarks.idle_waiting --quick
	$(BIN)/python -m benchmarks.operator_heartbeats --quick
	$(BIN)/python -m benchmarks.gigascope --quick
	$(BIN)/python -m benchmarks.early_answers --quick
	$(BIN)/python -m benchmarks.early_answers --quick --place cluster
	$(BIN)/python -m benchmarks.crash --quick
	$(BIN)/python -m benchmarks.crash --quick --cluster
	$(BIN)/python -m benchmarks.prodding --quick
	$(BIN)/python -m benchmarks.plan_orders --quick
	$(BIN)/python -m benchmarks.console --quick
	$(BIN)/python -m benchmarks.false_alarms
	$(BIN)/python -m benchmarks.connectors --quick

# Without it tests take longer, and that is all.
$(CLASSES): $(READY) scripts/spark_archive.py
	-@$(BIN)/python -m scripts.spark_archive $@

$(READY): pyproject.toml constraints.txt scripts/setup.sh
	@scripts/setup.sh $(VENV)
	@touch $@
