"""Answers from a body of evidence, with citations that are checked against the original bytes."""
__version__ = "0.1.0"

# Names are looked up when they are first used, so that `import mimirag` costs next to nothing.
_WHERE = dict(KnowledgeBase="retrieve.knowledge", Citation="evidence.citation", Verdict="evidence.verdict", Evidence="evidence.packet", Reply="evidence.packet",
              Profile="sources.profile", load_profile="sources.profile", MimiRAGError="evidence.errors")
__all__ = ["open", *_WHERE]

def open(profile=None, index=None, embedding=None):
    """A knowledge base: of the profile file, or folder, that is named, or of the nearest `mimirag.toml` from the current folder upward; with another index, or another table `[embedding]`, than it names.

    Raises `ProfileError` where there is no profile or it is not valid. In a notebook, the values it returns are shown as cards.
    """
    from importlib import import_module
    from mimirag.sources.profile import find_profile
    return import_module("mimirag.show").KnowledgeBase(profile if profile is not None else find_profile(), index, embedding)  # `show` registers the cards

def __getattr__(name):
    if name == "show":
        from importlib import import_module
        return import_module("mimirag.show")
    if name not in _WHERE: raise AttributeError(f"module 'mimirag' has no attribute {name!r}")
    from importlib import import_module
    return getattr(import_module(f"mimirag.{_WHERE[name]}"), name)

def __dir__(): return sorted([*globals(), *_WHERE])
