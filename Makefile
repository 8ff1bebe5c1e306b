# Targets for the programs in scripts/. Pass arguments in ARGS:
#   make run ARGS="--help"     make test ARGS="money::"     make soak MINUTES=30 SEED=7

MINUTES ?= 10
SEED ?=

.PHONY: run check test test-all ci bench profile soak mutants list-check report-check

run: ## starts the server on the embedded database, after installing missing packages
	@scripts/run $(ARGS)

check: ## format, lints, unit tests and rules: no database server, no browser
	@scripts/check $(ARGS)

test: ## everything that can find a wrong bill, a lost event or a broken interface, on both databases
	@scripts/test $(ARGS)

test-all: ## the tests of `make test` and the slow tests: browser, generated clients, crashes, overload, fuzzing
	@ALL=1 scripts/test $(ARGS)

ci: ## the checks of continuous integration
	@.ci/run

bench: ## rates, latencies and memory on both databases, as one table (ARGS=--write inserts it into docs/performance.md)
	@scripts/bench $(ARGS)

profile: ## distribution of the server's processor time under single events
	@scripts/profile $(ARGS)

soak: ## the random tests on new seeds and with large numbers, and fuzzing, for MINUTES
	@MINUTES=$(MINUTES) SEED=$(SEED) scripts/soak $(ARGS)

mutants: ## mutations of the monetary rules that no domain test detects (ARGS="--shard 0/7")
	@scripts/mutants $(ARGS)

list-check: ## times and query plans of lists of a million documents, on both databases
	@scripts/list-check $(ARGS)

report-check: ## memory and every row of reports of a million events, on both databases
	@scripts/report-check $(ARGS)
