"""Measuring, comparing, and the gate for defaults.

`from mimirag.lab import compare, Arm, read_set` and the like; a name is looked up when it is first used, since SciPy and its kin take a while to load.
"""
_WHERE = dict(Arm="plan", Plan="plan", read_plan="plan", Own="arms", Comparison="arms", compare="arms", moved="arms", read_set="sets", EvalSet="sets", Case="cases", read_cases="cases", read_case_set="cases",
              CaseSet="cases", built="eval", ask="eval", ask_set="eval", evaluate="eval", report_of="eval", measure="measures", ranked="measures", refusals="measures", risk_coverage="measures",
              estimate="statistics", holm="statistics", sentence="judge", Record="record", read_record="record", Workspace="ledger", find_workspace="ledger", declare="runs", run="runs",
              replayed="runs", introduce="gate", promote="gate", check="gate")
__all__ = list(_WHERE)

def __getattr__(name):
    from importlib import import_module
    if name not in _WHERE: raise AttributeError(f"module 'mimirag.lab' has no attribute {name!r}")
    return getattr(import_module(f"mimirag.lab.{_WHERE[name]}"), name)

def __dir__(): return sorted([*globals(), *_WHERE])
