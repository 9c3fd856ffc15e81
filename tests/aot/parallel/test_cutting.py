"""Which loops are shared out: never one whose iterations depend on each other, in any order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tvm import tirx
from tvm.ir import PointerType, PrimType, Var
from tvm.tirx.stmt import AllocBuffer, BufferStore, DeclBuffer, For, ForKind, SeqStmt

from htvm.aot.accesses import accesses_of, elements
from htvm.aot.lower import OVERLAPS, Parameter, PointerFunc
from htvm.aot.parallel import Cores
from htvm.aot.parallel.phases import cut

SIZE = 64
CORES = Cores(4, 1 << 16, 1024)


class Kernel:
    """Builds a lowered kernel ``(x, out)`` of int32 elements by hand."""

    def __init__(self) -> None:
        pointers = [Var(name, PointerType(PrimType("int32"))) for name in ("x", "out")]
        self.pointers = pointers
        self.x, self.out = (
            tirx.decl_buffer((SIZE,), "int32", name=f"{p.name}_view", data=p) for p in pointers
        )
        self.body = [
            DeclBuffer(buffer, data=pointer)
            for buffer, pointer in zip((self.x, self.out), pointers, strict=True)
        ]

    def local(self, elements: int, name: str = "acc"):
        buffer = tirx.decl_buffer((elements,), "int32", name=name)
        self.body.insert(0, AllocBuffer(buffer))
        return buffer

    def lowered(self, *statements, overlaps: bool = False) -> PointerFunc:
        func = tirx.PrimFunc(self.pointers, sequence([*self.body, *statements]))
        func = func.with_attr("global_symbol", "kernel")
        if overlaps:
            func = func.with_attr(OVERLAPS, True)
        parameters = (
            Parameter("x", "int32", (SIZE,), True),
            Parameter("out", "int32", (SIZE,), False),
        )
        return PointerFunc(func, parameters, ())


def loop(extent: int, body):
    """A loop whose body is a function of its variable."""
    var = Var("i", PrimType("int32"))
    statements = body(var)
    inner = sequence(statements) if isinstance(statements, list) else statements
    return For(var, 0, extent, ForKind.SERIAL, inner)


def sequence(statements: list):
    return statements[0] if len(statements) == 1 else SeqStmt(statements)


def counts(kernel: PointerFunc) -> list[tuple[int, ...]] | None:
    phases = cut(kernel, CORES)
    return None if phases is None else [part.counts for part in phases.parts]


def test_an_element_wise_loop_is_shared() -> None:
    k = Kernel()
    body = loop(SIZE, lambda i: BufferStore(k.out, k.x[i] + 1, [i]))
    assert counts(k.lowered(body)) == [(SIZE,)]


def test_loops_are_taken_together_until_all_cores_have_work() -> None:
    k = Kernel()
    body = loop(3, lambda i: loop(21, lambda j: BufferStore(k.out, k.x[i * 21 + j], [i * 21 + j])))
    assert counts(k.lowered(body)) == [(63,)]
    body = loop(16, lambda i: loop(4, lambda j: BufferStore(k.out, k.x[i * 4 + j], [i * 4 + j])))
    assert counts(k.lowered(body)) == [(16,)]


def test_what_an_iteration_leaves_for_the_next_is_not_shared() -> None:
    k = Kernel()
    running = loop(SIZE - 1, lambda i: BufferStore(k.out, k.out[i] + k.x[i], [i + 1]))
    assert counts(k.lowered(running)) == [()]
    total = loop(SIZE, lambda i: BufferStore(k.out, k.out[0] + k.x[i], [0]))
    assert counts(k.lowered(total)) == [()]


def test_a_scattered_store_is_not_shared() -> None:
    k = Kernel()
    body = loop(SIZE, lambda i: BufferStore(k.out, k.x[i], [k.x[i]]))
    assert counts(k.lowered(body)) == [()]


def test_each_core_has_its_own_accumulator() -> None:
    k = Kernel()
    acc = k.local(1)
    zero = tirx.const(0, "int32")
    body = loop(
        8,
        lambda i: [
            BufferStore(acc, zero, [0]),
            loop(8, lambda j: BufferStore(acc, acc[0] + k.x[i * 8 + j], [0])),
            BufferStore(k.out, acc[0], [i]),
        ],
    )
    assert counts(k.lowered(body)) == [(8,)]


def test_a_condition_on_an_accumulator_does_not_tie_iterations() -> None:
    k = Kernel()
    acc = k.local(1)
    zero, one = tirx.const(0, "int32"), tirx.const(1, "int32")
    body = loop(
        8,
        lambda i: [
            BufferStore(acc, k.x[i], [0]),
            BufferStore(k.out, acc[0] + tirx.Select(acc[0] >= zero, one, zero - one), [i]),
        ],
    )
    assert counts(k.lowered(body)) == [(8,)]


def test_an_accumulator_read_on_a_condition_is_not_private() -> None:
    # Where x is positive, what an earlier iteration left is read.
    k = Kernel()
    acc = k.local(2)
    zero = tirx.const(0, "int32")
    body = loop(
        8,
        lambda i: [
            BufferStore(acc, k.x[i], [0]),
            BufferStore(k.out, tirx.Select(k.x[i] > zero, acc[1], zero), [i]),
            BufferStore(acc, k.x[i], [1]),
        ],
    )
    assert counts(k.lowered(body)) == [()]


def test_an_accumulator_that_lives_on_is_not_shared() -> None:
    k = Kernel()
    acc = k.local(1)
    zero = tirx.const(0, "int32")
    start = BufferStore(acc, zero, [0])
    total = loop(SIZE, lambda i: BufferStore(acc, acc[0] + k.x[i], [0]))
    spread = loop(SIZE, lambda i: BufferStore(k.out, acc[0], [i]))
    assert counts(k.lowered(start, total, spread)) == [(), (), (SIZE,)]


def test_an_array_that_rotates_from_iteration_to_iteration_is_not_private() -> None:
    """Iteration i writes the half that iteration i + 1 reads."""
    k = Kernel()
    acc = k.local(2)
    body = loop(
        SIZE,
        lambda i: [
            BufferStore(acc, k.x[i], [tirx.Mod(i, tirx.const(2, "int32"))]),
            BufferStore(k.out, acc[tirx.Mod(i + 1, tirx.const(2, "int32"))], [i]),
        ],
    )
    assert counts(k.lowered(body)) == [()]


def test_private_arrays_must_fit_the_cores_stacks() -> None:
    k = Kernel()
    acc = k.local(CORES.stack // 16 + 1)
    body = loop(SIZE, lambda i: [BufferStore(acc, k.x[i], [0]), BufferStore(k.out, acc[0], [i])])
    assert counts(k.lowered(body)) == [()]


def test_cores_wait_for_what_others_have_written() -> None:
    """Rows first, then columns: another core's; rows again: one's own."""
    k = Kernel()
    middle = k.local(16, "middle")
    rows = loop(4, lambda i: loop(4, lambda j: BufferStore(middle, k.x[i * 4 + j], [i * 4 + j])))
    columns = loop(
        4, lambda i: loop(4, lambda j: BufferStore(k.out, middle[j * 4 + i], [i * 4 + j]))
    )
    again = loop(4, lambda i: loop(4, lambda j: BufferStore(k.out, middle[i * 4 + j], [i * 4 + j])))
    assert counts(k.lowered(rows, columns)) == [(4,), (4,)]
    assert counts(k.lowered(rows, again)) == [(4, 4)]
    apart = loop(8, lambda i: BufferStore(k.out, k.x[i], [i + 32]))
    assert counts(k.lowered(rows, apart)) == [(4, 8)]


def test_ranges_of_loops_of_different_lengths_are_not_the_same() -> None:
    k = Kernel()
    middle = k.local(16, "middle")
    few = loop(8, lambda i: BufferStore(middle, k.x[i], [i]))
    many = loop(12, lambda i: BufferStore(k.out, middle[i], [i]))
    assert counts(k.lowered(few, many)) == [(8,), (12,)]


def test_tiles_that_overlap_are_shared_only_where_that_is_harmless() -> None:
    k = Kernel()

    def tile(i):
        first = tirx.min(i * 8, tirx.const(SIZE - 9, "int32"))
        return loop(8, lambda j: BufferStore(k.out, k.x[first + j], [first + j]))

    body = loop(8, tile)
    assert counts(k.lowered(body)) == [()]
    assert counts(k.lowered(body, overlaps=True)) == [(8,)]


@dataclass(frozen=True)
class Line:
    """``out[a * i + b * j + c] = x[..] + (out[d * i + e * j + f] or 0)`` in two loops."""

    store: tuple[int, int, int]
    load: tuple[int, int, int] | None


def at(coefficients: tuple[int, int, int], i, j):
    a, b, c = coefficients
    return i * a + j * b + c


class Memory:
    """Executes nests of 6 by 4 iterations, any range of them at a time."""

    def __init__(self) -> None:
        self.x = np.arange(SIZE) * 7919 % 1009
        self.out = np.zeros(SIZE, np.int64)

    def run(self, nest: list[Line], begin: int, end: int, count: int) -> None:
        for number in range(begin * 24 // count, end * 24 // count):
            i, j = divmod(number, 4)
            for line in nest:
                old = self.out[at(line.load, i, j)] if line.load is not None else 0
                self.out[at(line.store, i, j)] = self.x[i * 4 + j] + 3 * old


def begin(count: int, core: int, cores: int) -> int:
    """The arithmetic of htvm_parallel_begin."""
    each, left = divmod(count, cores)
    return core * each + min(core, left)


COEFFICIENTS = st.tuples(st.integers(0, 6), st.integers(0, 4), st.integers(0, 15))
LINES = st.lists(st.builds(Line, COEFFICIENTS, st.none() | COEFFICIENTS), min_size=1, max_size=2)


@given(st.lists(LINES, min_size=1, max_size=2))
def test_what_is_shared_may_run_in_any_order(nests: list[list[Line]]) -> None:
    k = Kernel()

    def store(line: Line, i, j):
        value = k.x[i * 4 + j]
        if line.load is not None:
            value = value + k.out[at(line.load, i, j)] * 3
        return BufferStore(k.out, value, [at(line.store, i, j)])

    statements = [
        loop(
            6,
            lambda i, nest=nest: loop(4, lambda j: sequence([store(line, i, j) for line in nest])),
        )
        for nest in nests
    ]
    found = counts(k.lowered(*statements))
    assert found is not None
    assert sum(max(1, len(part)) for part in found) == len(nests)
    serial = Memory()
    for nest in nests:
        serial.run(nest, 0, 24, 24)
    for order in (range(CORES.count), reversed(range(CORES.count))):
        shared, left = Memory(), list(nests)
        cores = list(order)
        for part in found:
            if not part:
                shared.run(left.pop(0), 0, 24, 24)
                continue
            mine = [left.pop(0) for _ in part]
            for core in cores:
                for nest, count in zip(mine, part, strict=True):
                    ends = (begin(count, core + side, CORES.count) for side in (0, 1))
                    shared.run(nest, *ends, count)
        np.testing.assert_array_equal(shared.out, serial.out)


@pytest.mark.parametrize("count, cores", [(0, 3), (1, 8), (7, 8), (8, 8), (1000, 7)])
def test_every_iteration_has_one_core(count: int, cores: int) -> None:
    shares = [begin(count, core + 1, cores) - begin(count, core, cores) for core in range(cores)]
    assert sum(shares) == count and max(shares) - min(shares) <= 1


def test_a_word_is_four_elements() -> None:
    k, x = Kernel(), tirx.decl_buffer((SIZE,), "int8", name="x")

    def read(i):
        word = tirx.call_extern("int32", "a_load", tirx.address_of(x[i * 4]))
        return BufferStore(k.out, word, [i])

    loads = [access for access in accesses_of(loop(SIZE // 4, read)) if not access.store]
    found = [int(element) for load in loads for element in elements(load, 1)[0].ravel()]
    assert sorted(found) == list(range(SIZE))
