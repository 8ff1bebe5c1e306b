# An index of what scripts/ and cargo do; the doing is there. Arguments go through ARGS:
#   make run ARGS="--help"     make test ARGS="NAME_OF_A_TEST"     make soak MINUTES=30 SEED=7

MINUTES ?= 10
SEED ?=

.PHONY: run test ci bench profile soak mutants list-check report-check

run: ## the server on the embedded database, with all set-up
	@scripts/run $(ARGS)

test: ## everything, on both databases, with all set-up
	@scripts/test $(ARGS)

ci: ## what continuous integration runs
	@.ci/run

bench: ## rates, latencies and memory on both databases, against what else the machine does, as one table (ARGS=--write)
	@scripts/bench $(ARGS)

profile: ## where the server's processor time goes under single events
	@scripts/profile $(ARGS)

soak: ## the random tests on new seeds, for MINUTES
	@MINUTES=$(MINUTES) SEED=$(SEED) scripts/soak $(ARGS)

mutants: ## small changes of the rules of money that no test of the domain notices (ARGS="--shard 0/7")
	@scripts/mutants $(ARGS)

list-check: ## lists of a million documents, on both databases: times and plans
	@scripts/list-check $(ARGS)

report-check: ## reports of a million events, on both databases: memory, and every row
	@scripts/report-check $(ARGS)
