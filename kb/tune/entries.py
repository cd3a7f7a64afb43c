"""The model behind a setup: a built-in one, or the graph of a model file."""

from __future__ import annotations

from kb.profile.simulated.graph import Graph
from kb.profile.simulated.graph_file import unpacked
from kb.profile.simulated.imported import entry_of
from kb.profile.simulated.layout import layout_of
from kb.profile.simulated.models.names import ModelEntry, model
from kb.profile.simulated.setup import Setup
from kb.profile.simulated.transformation import transformed


def entry_for(setup: Setup) -> ModelEntry:
    """Its type, dimensions and builder. Raises NotFoundError for an unknown model."""
    return entry_of(unpacked(setup.graph, setup.model)) if setup.graph else model(setup.model)


def graph_of(setup: Setup) -> Graph:
    """The graph of rank 0 as it runs."""
    return transformed(entry_for(setup).build(setup.options, layout_of(setup.options).seat(0)).segment, setup.options)
