"""The tiling problem of a layer, written as an integer linear program (PuLP).

Each tile size is expanded into bits, ``v = 1 + sum 2^j b_j``.  Because all roundings are powers of
two, ``ceil(v / 16)`` is then 1 plus the upper bits and ``(v - 1) mod 16`` the lower ones, and the
product of a size with a bounded expression is exact with one continuous variable per bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import pulp

from byoc_dory.tiling.objectives import Dim, Fill, Objective, Size, Whole
from byoc_dory.tiling.problem import Axis, Tile, TilingProblem


@dataclass(frozen=True)
class _Bits:
    """An integer ``1 + sum 2^j b_j`` together with its upper bound (no bits: the constant 1)."""

    bits: tuple[pulp.LpVariable, ...]
    upper: int
    offset: int = 1

    @property
    def expr(self) -> pulp.LpAffineExpression:
        total = pulp.LpAffineExpression() + self.offset
        for power, bit in enumerate(self.bits):
            total += (1 << power) * bit
        return total


class TilingModel:
    """The integer program of one problem and objective.

    Attributes:
        lp: constraints of sizes, halos, memory and heuristics; without an objective yet.
        total: the objective as an expression.
    """

    def __init__(self, problem: TilingProblem, objective: Objective) -> None:
        self.problem = problem
        self.objective = objective
        self.lp = pulp.LpProblem("tile", pulp.LpMaximize)
        self._names: dict[str, int] = {}
        self._inputs: dict[str, pulp.LpAffineExpression] = {}
        self._whole: dict[str, pulp.LpVariable | int] = {}
        self.sizes: dict[str, _Bits] = {}
        for name, axis in zip("kcyx", problem.axes, strict=True):
            self.sizes[name] = self._axis(name, axis)
        memory = self._memory()
        total = objective.alpha * memory
        for heuristic in objective.terms(problem):
            total += heuristic.weight * self._quantity(heuristic.quantity)
        self.total = total

    # ------------------------------------------------------------------ variables

    def _binary(self, name: str) -> pulp.LpVariable:
        return self._variable(name, 1, pulp.LpInteger)

    def _variable(self, name: str, upper: int, kind: str) -> pulp.LpVariable:
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return self.lp.add_variable(f"{name}_{count}", 0, upper, kind)

    def _bits(self, name: str, upper: int, offset: int = 1) -> _Bits:
        """Return a new integer in offset..upper."""
        count = (upper - offset).bit_length()
        value = _Bits(tuple(self._binary(name) for _ in range(count)), upper, offset)
        if count and offset + (1 << count) - 1 > upper:
            self.lp += value.expr <= upper
        return value

    def _axis(self, name: str, axis: Axis) -> _Bits:
        """Return the size of a dimension: the whole, or a multiple of its step."""
        if not axis.tiled or axis.size <= axis.step:
            return _Bits((), axis.size, axis.size)
        size = self._bits(name, axis.size)
        if axis.step > 1:
            is_whole = self._is_whole(name, axis, size)
            for bit in size.bits[: axis.step.bit_length() - 1]:
                # A multiple of the step has all lower bits of (size - 1) set.
                self.lp += bit >= 1 - is_whole
        return size

    def _is_whole(self, name: str, axis: Axis, size: _Bits) -> pulp.LpVariable | int:
        """Return a variable that is 1 if and only if the dimension is not tiled."""
        if name not in self._whole:
            if not size.bits:
                self._whole[name] = 1
            else:
                is_whole = self._binary(f"whole_{name}")
                self.lp += size.expr >= 1 + (axis.size - 1) * is_whole
                self.lp += size.expr <= axis.size - 1 + is_whole
                self._whole[name] = is_whole
        return self._whole[name]

    def _blocks(self, size: _Bits, step: int) -> _Bits:
        """Return ``ceil(size / step)``: the upper bits."""
        upper = -(-size.upper // step)
        if not size.bits:
            return _Bits((), upper, upper)
        return _Bits(size.bits[step.bit_length() - 1 :], upper)

    def _round_up(self, name: str, size: pulp.LpAffineExpression, upper: int, step: int) -> _Bits:
        """Return ``ceil(size / step)`` for an expression that has no bits of its own."""
        if size.isNumericalConstant():
            blocks = -(-int(size.constant) // step)
            return _Bits((), blocks, blocks)
        blocks_var = self._bits(name, -(-upper // step))
        self.lp += step * blocks_var.expr >= size
        self.lp += step * blocks_var.expr <= size + step - 1
        return blocks_var

    def _product(
        self, name: str, size: _Bits, factor: pulp.LpAffineExpression, upper: int
    ) -> pulp.LpAffineExpression:
        """Return the exact product of a size and an expression in 0..upper."""
        total = size.offset * factor
        for power, bit in enumerate(size.bits):
            part = self._variable(f"{name}_part", upper, pulp.LpContinuous)
            self.lp += part <= upper * bit
            self.lp += part <= factor
            self.lp += part >= factor - upper * (1 - bit)
            total += (1 << power) * part
        return total

    # ------------------------------------------------------------------ expressions

    def _extent(self, name: str, axis: Axis, size: int, kernel: int, stride: int, key: str) -> (
        pulp.LpAffineExpression
    ):  # fmt: skip
        """The input extent: ``stride*(out-1)+kernel`` below theta outputs, else the whole input.

        Theta is the smallest tile that reads the whole input, at most the whole dimension.
        """
        if key in self._inputs:
            return self._inputs[key]
        out = self.sizes[name]
        theta = min(axis.size, max(1, -(-(size - kernel) // stride) + 1))
        if not out.bits or theta <= 1:
            extent = pulp.LpAffineExpression() + size
        else:
            part = self._binary(f"part_{key}")
            self.lp += out.expr <= axis.size - (axis.size - (theta - 1)) * part
            self.lp += out.expr >= theta - (theta - 1) * part
            linear = stride * (out.expr - 1) + kernel
            extent_var = self._variable(f"extent_{key}", size, pulp.LpContinuous)
            span = stride * (axis.size - 1) + kernel + size
            self.lp += extent_var <= linear + span * (1 - part)
            self.lp += extent_var >= linear - span * (1 - part)
            self.lp += extent_var >= size - size * part
            extent = pulp.LpAffineExpression() + extent_var
        self._inputs[key] = extent
        return extent

    def _rows_in(self) -> pulp.LpAffineExpression:
        p = self.problem
        return self._extent("y", p.y, p.window.iy, p.window.fy, p.window.stride[0], "iy")

    def _columns_in(self) -> pulp.LpAffineExpression:
        p = self.problem
        return self._extent(
            "x", p.x, p.window.ix, p.window.fx + p.window.crop, p.window.stride[1], "ix_buffer"
        )

    def _memory(self) -> pulp.LpAffineExpression:
        """Return input + output + weight bytes, and impose both limits."""
        p = self.problem
        k, c, y, x = (self.sizes[name] for name in "kcyx")
        pitch = self._round_up("pitch", self._columns_in(), p.window.ix, p.rounding.x)
        rows, most_rows = self._rows_in(), p.window.iy
        if p.rounding.y > 1:
            blocks_in = self._round_up("rows", rows, p.window.iy, p.rounding.y)
            rows, most_rows = p.rounding.y * blocks_in.expr, p.rounding.y * blocks_in.upper
        area_limit = most_rows * pitch.upper
        area = self._product("area_in", pitch, rows, most_rows)
        channels = self._blocks(k if p.channels_follow_k else c, p.rounding.c)
        used_in = (p.copies * p.rounding.c * p.rounding.x) * self._product(
            "in", channels, area, area_limit
        )

        columns = self._blocks(x, p.rounding.x)
        blocks_out = self._blocks(y, p.rounding.y)
        out_limit = columns.upper * p.rounding.y * blocks_out.upper
        area_out = self._product(
            "area_out", columns, p.rounding.y * blocks_out.expr, p.rounding.y * blocks_out.upper
        )
        blocks = self._blocks(k, p.rounding.k)
        maps = self._product("out", blocks, area_out, out_limit)
        used_out = (
            p.rounding.x * (1 + p.sums) * (p.rounding.k * maps + p.rounding.extra_maps * area_out)
        )
        if p.c.tiled and c.bits:
            used_out = self._partial_sums(c, used_out, blocks, out_limit)

        per_block = p.weights.channel * c.expr + p.weights.block
        weights = p.weights.fixed + self._product(
            "weights", blocks, per_block, p.weights.channel * c.upper + p.weights.block
        )
        copied = used_in + used_out + (weights if p.weights.in_l1 else 0)
        self.lp += p.buffering * copied + p.fixed.column * x.expr <= p.l1_limit - p.fixed_bytes
        if not p.weights.in_l1:
            self.lp += p.buffering * weights <= p.weights.limit
        return used_in + used_out + weights

    def _partial_sums(
        self, c: _Bits, used_out: pulp.LpAffineExpression, blocks: _Bits, out_limit: int
    ) -> pulp.LpAffineExpression:
        """Return the bytes of outputs with four bytes per element if c is tiled."""
        p = self.problem
        whole = self._is_whole("c", p.c, c)
        upper = p.rounding.x * out_limit * (p.rounding.k * blocks.upper + p.rounding.extra_maps)
        tiled = _Bits((self._one_minus(whole),), 1, 0)
        return used_out + 3 * self._product("partial", tiled, used_out, upper)

    def _one_minus(self, flag: pulp.LpVariable | int) -> pulp.LpVariable:
        complement = self._binary("not")
        self.lp += complement + flag == 1
        return complement

    # ------------------------------------------------------------------ heuristics

    def _dimension(self, dim: Dim) -> tuple[pulp.LpAffineExpression, int]:
        """Return a dimension of the tile as an expression, and its largest value."""
        p = self.problem
        if dim == "iy":
            return self._rows_in(), p.window.iy
        if dim == "ix":
            return self._extent(
                "x", p.x, p.window.ix, p.window.fx, p.window.stride[1], "ix"
            ), p.window.ix
        return self.sizes[dim].expr, self.sizes[dim].upper

    def _quantity(self, quantity: Size | Fill | Whole) -> pulp.LpAffineExpression:
        if isinstance(quantity, Size):
            return self._dimension(quantity.dim)[0]
        if isinstance(quantity, Whole):
            return self._all_whole(quantity)
        expr, upper = self._dimension(quantity.dim)
        if expr.isNumericalConstant():
            full = quantity.whole_is_full and int(expr.constant) == upper
            rest = quantity.modulus - 1 if full else (int(expr.constant) - 1) % quantity.modulus
            return pulp.LpAffineExpression() + rest
        fill = self._remainder(expr, upper, quantity.modulus)
        if not quantity.whole_is_full or upper % quantity.modulus == 0:
            return fill
        return self._fill_or_whole(quantity, expr, upper, fill)

    def _remainder(
        self, expr: pulp.LpAffineExpression, upper: int, modulus: int
    ) -> pulp.LpAffineExpression:
        """Return ``(expr - 1) mod modulus``, with an integer quotient."""
        quotient = self._variable("quotient", (upper - 1) // modulus, pulp.LpInteger)
        rest = self._variable("rest", modulus - 1, pulp.LpContinuous)
        self.lp += expr - 1 == modulus * quotient + rest
        return pulp.LpAffineExpression() + rest

    def _fill_or_whole(
        self, quantity: Fill, expr: pulp.LpAffineExpression, upper: int, remainder: pulp.LpVariable
    ) -> pulp.LpAffineExpression:
        """Return the remainder, or modulus - 1 if the dimension has its full size."""
        top = quantity.modulus - 1
        is_whole = self._binary("full")
        self.lp += expr >= upper * is_whole
        self.lp += expr <= upper - 1 + is_whole
        fill = self._variable("fill", top, pulp.LpContinuous)
        self.lp += fill >= top * is_whole
        self.lp += fill >= remainder - top * is_whole
        self.lp += fill <= remainder + top * is_whole
        return pulp.LpAffineExpression() + fill

    def _all_whole(self, quantity: Whole) -> pulp.LpAffineExpression:
        flags = []
        for dim in quantity.dims:
            axis = self.problem.axes["kcyx".index(dim)]
            flags.append(self._is_whole(dim, axis, self.sizes[dim]))
        every = self._binary("all_whole")
        for flag in flags:
            self.lp += every <= flag
        self.lp += every >= pulp.lpSum(flags) - (len(flags) - 1)
        return pulp.LpAffineExpression() + every

    # ------------------------------------------------------------------ answers

    def tile(self) -> Tile:
        """Return the tile for the solver's current values."""
        values = []
        for name in "kcyx":
            size = self.sizes[name]
            values.append(
                size.offset
                + sum(
                    (1 << power) * round(bit.varValue or 0) for power, bit in enumerate(size.bits)
                )
            )
        return Tile(*values)

    def preference(self) -> pulp.LpAffineExpression:
        """Return a lexicographic preference for large k, then y, x, c as one integer expression."""
        total = pulp.LpAffineExpression()
        for name in "kyxc":
            size = self.sizes[name]
            total = total * size.upper + (size.expr - 1)
        return total
