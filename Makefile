# Names for what scripts/ does. Arguments go through ARGS:
#   make run ARGS="--help"     make test ARGS="money::"     make soak MINUTES=30 SEED=7

MINUTES ?= 10
SEED ?=

.PHONY: run check test test-all ci bench profile soak mutants list-check report-check

run: ## starts the server on the embedded database, after installing what it needs
	@scripts/run $(ARGS)

check: ## format, lints, unit tests and rules: no database server, no browser
	@scripts/check $(ARGS)

test: ## everything that can find a wrong bill, a lost event or a broken interface, on both databases
	@scripts/test $(ARGS)

test-all: ## the same and the slow tests: browser, generated clients, crashes, overload, fuzzing
	@ALL=1 scripts/test $(ARGS)

ci: ## what continuous integration runs
	@.ci/run

bench: ## rates, latencies and memory on both databases, as one table (ARGS=--write stores it)
	@scripts/bench $(ARGS)

profile: ## where the server's processor time goes under single events
	@scripts/profile $(ARGS)

soak: ## the random tests on new seeds and with large numbers, and fuzzing, for MINUTES
	@MINUTES=$(MINUTES) SEED=$(SEED) scripts/soak $(ARGS)

mutants: ## small changes of the rules of money that no test of the domain notices (ARGS="--shard 0/7")
	@scripts/mutants $(ARGS)

list-check: ## lists of a million documents, on both databases: times and plans
	@scripts/list-check $(ARGS)

report-check: ## reports of a million events, on both databases: memory, and every row
	@scripts/report-check $(ARGS)
