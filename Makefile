# make demo   set up what it needs, index the example documents, ask, check a citation
# make test   set up, and run every check
# make corpora  real documentation to measure with, from Debian (downloads 700 MB)
# make mlflow  the kept comparisons, in MLflow
# make bench  speed and size on it, beside floors and peers
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
UV     := UV_FIND_LINKS="$(PIP_FIND_LINKS)" VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(BIN)/python -m uv pip install -q

.PHONY: demo test corpora bench mlflow clean schemas readme fixtures

demo: $(VENV)/demo.done
	@$(BIN)/python tools/demo.py

test: $(VENV)/test.done
	@PATH="$(CURDIR)/$(BIN):$$PATH" VIRTUAL_ENV="$(CURDIR)/$(VENV)" tools/check

# uv installs in seconds what pip installs in minutes
$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "MimiRAG needs Python 3.11 or later, this is %s; run: make PYTHON=python3.11" % sys.version.split()[0])'
	@echo "setting up $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check uv
	@touch $@

$(VENV)/demo.done: $(VENV)/made settings.ini setup.py pyproject.toml
	@$(UV) -e '.[pdf]'
	@touch $@

# with a model: make test EXTRAS=dev,pdf,lab,code,mcp,endpoint,dense (PyTorch, 800 MB and more)
EXTRAS ?= dev,pdf,lab,code,mcp,endpoint
$(VENV)/test.done: $(VENV)/made settings.ini setup.py pyproject.toml
	@$(UV) -e '.[$(EXTRAS)]'
	@touch $@

# Real documentation to measure with, and speed and size beside floors and peers; CORPORA=folder keeps it elsewhere
CORPORA ?= .corpora
corpora: $(VENV)/made
	@$(BIN)/python tools/corpora.py "$(CORPORA)"
bench: $(VENV)/test.done
	@$(UV) tantivy bm25s
	@$(BIN)/python tools/bench.py "$(CORPORA)"

# Comparisons in MLflow's UI, on this machine only; PORT=5001 for another port
PORT ?= 5000
mlflow: $(VENV)/test.done
	@$(BIN)/python tools/mlflow_ui.py --port $(PORT)

# Files that are made from others, and committed: the checks compare them
schemas: $(VENV)/test.done
	@$(BIN)/python tools/schemas.py
readme: $(VENV)/test.done
	@$(BIN)/python tools/readme.py
fixtures: $(VENV)/test.done
	@$(BIN)/python fixtures/make.py

clean:
	@rm -rf $(VENV) build dist *.egg-info
