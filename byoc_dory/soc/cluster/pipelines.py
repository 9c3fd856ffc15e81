"""The orders in which layers of rows are executed, by the cores or an engine that takes jobs."""

from __future__ import annotations

from byoc_dory.tileloop.pipeline import Action, Pipeline, Verb

CORES_IN_TURN = Pipeline(
    "in turn",
    (Action(Verb.LOAD), Action(Verb.ARRIVE), Action(Verb.COMPUTE), Action(Verb.STORE)),
)
CORES_BESIDE = Pipeline(
    "a tile is computed while the next is loaded",
    (Action(Verb.LOAD), Action(Verb.ARRIVE, 1), Action(Verb.COMPUTE, 1), Action(Verb.STORE, 1)),
)
ENGINE_IN_TURN = Pipeline(
    "in turn",
    (
        Action(Verb.LOAD),
        Action(Verb.ARRIVE),
        Action(Verb.START),
        Action(Verb.FINISH),
        Action(Verb.STORE),
    ),
)
ENGINE_BESIDE = Pipeline(
    "of three tiles one is loaded, one computed, one stored",
    (
        Action(Verb.ARRIVE, 1),
        Action(Verb.START, 1),
        Action(Verb.FINISH, 2),
        Action(Verb.STORE, 2),
        Action(Verb.LOAD),
    ),
)
