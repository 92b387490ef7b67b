# Every target does its own set-up, and only what is not done yet. `make` alone lists them.
# PYTHON chooses the main interpreter: make test PYTHON=python3.12

export PYTHON ?= python3
export VENV ?= .venv

.DEFAULT_GOAL := help
.PHONY: help build demo test lint bench wheels spark-jar demo-recovery demo-spark spark-matrix test-sid memcheck clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

demo: ## the main job on real data: pickle and quickpickle side by side
	@scripts/demo.sh

test: ## lints and all tests, on every Python interpreter found
	@scripts/test.sh

build: ## a release build, installed in .venv with all development tools
	@scripts/build.sh

test-sid: ## the Python tests on CPython 3.14, from Debian's unstable suite; needs root
	@scripts/test_sid.sh

lint: ## formatting, lints and types
	@scripts/lint.sh

bench: ## the benchmarks; options in ARGS, such as ARGS="--only ints"
	@scripts/bench.sh $(ARGS)

wheels: ## a wheel for each interpreter found, and an sdist, in dist/, each tried out
	@scripts/wheels.sh

spark-jar: ## the jar and library a Spark master loads, in python/quickpickle/recovery_spark/
	@scripts/spark_jar.sh

demo-recovery: ## a real Spark master is killed and comes back; recovery engines compared
	@scripts/demo_recovery.sh

demo-spark: ## PySpark jobs with and without quickpickle, side by side, ending in a plot; options in ARGS
	@scripts/demo_spark.sh $(ARGS)

spark-matrix: ## the jobs on each supported PySpark, one after the other; versions in ARGS; an hour
	@scripts/test_spark_matrix.sh $(ARGS)

memcheck: ## the differential tests in builds that look for misuse of memory; parts in ARGS: checked debug valgrind
	@scripts/memcheck.sh $(ARGS)

clean: ## remove everything made here
	rm -rf .venv .venvs dist target python/quickpickle/recovery_spark
