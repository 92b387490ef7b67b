"""Objects that travel by value, as programs of their own: what makes them, and what must hold where they arrive.

Each case is source that is run as ``__main__``, so that nothing in it can be imported by the receiver. ``SAME`` holds
those that cloudpickle gets right, and whose bytes are therefore its bytes; ``BETTER`` those it refuses or loses
something of. In ``check``, ``x`` is what arrived.
"""

from __future__ import annotations

import sys
import textwrap
from typing import NamedTuple


class Case(NamedTuple):
    """One program: ``source`` defines, ``value`` is the expression that travels, ``check`` is run on arrival."""

    source: str
    value: str
    check: str
    since: tuple[int, int] = (3, 10)

    def make(self) -> object:
        """Run the source as ``__main__`` and return the value."""
        names: dict[str, object] = {"__name__": "__main__", "__builtins__": __builtins__}
        exec(compile(textwrap.dedent(self.source), "<case>", "exec", dont_inherit=True), names)
        return eval(self.value, names)


SAME: dict[str, Case] = {
    "lambda": Case("", "lambda x: x + 1", "assert x(2) == 3"),
    "function with everything": Case(
        """
        import math
        SCALE = 3
        def helper(n): return n * SCALE
        def f(a, b=2, /, c=3, *rest, d, e=5, **more) -> int:
            "What it does."
            return helper(a) + math.floor(b) + c + d + e + sum(rest) + len(more)
        f.note = ["n"]; f.n = 1
        """,
        "f",
        "assert x(1, d=1) == 14 and x.__doc__ == 'What it does.' and x.note == ['n'] and x.__annotations__ == {'return': int}",
    ),
    "recursive": Case("def f(n): return 1 if n < 2 else n * f(n - 1)", "f", "assert x(5) == 120"),
    "closures that share a cell": Case(
        """
        def make(start):
            def up(): nonlocal start; start += 1; return start
            def down(): nonlocal start; start -= 1; return start
            def again(n): return again(n - 1) if n else start
            return up, down, again
        """,
        "make(5)",
        "up, down, again = x\nassert up() == 6 and up() == 7 and again(3) in (5, 7)",
    ),
    "empty cell": Case(
        "def make():\n    def f(): return later\n    if 0: later = 1\n    return f",
        "make()",
        "try: x()\nexcept NameError: pass\nelse: raise AssertionError",
    ),
    "nested functions": Case(
        "K = 4\ndef f():\n    def g():\n        def h(): return K\n        return h\n    return g",
        "f",
        "assert x()()() == 4",
    ),
    "functions that share globals": Case(
        "N = 0\ndef up():\n    global N\n    N += 1\n    return N\ndef read(): return N",
        "(up, read)",
        "up, read = x\nup(); up()\nassert read() == 2",
    ),
    "generators and coroutines": Case(
        """
        def gen(n): yield from range(n)
        async def co(n): return n + 1
        async def agen(n):
            for i in range(n): yield i
        """,
        "(gen, co, agen)",
        """
        import asyncio
        gen, co, agen = x
        async def main(): return await co(1), [i async for i in agen(3)]
        assert list(gen(3)) == [0, 1, 2] and asyncio.run(main()) == (2, [0, 1, 2])
        """,
    ),
    "submodule": Case(
        "import concurrent.futures\ndef f(): return concurrent.futures.ThreadPoolExecutor",
        "f",
        "assert x().__name__ == 'ThreadPoolExecutor'",
    ),
    "number sets in code": Case("def f(n): return n in {1, 2, 3}", "f", "assert x(2) and not x(5)"),
    "class": Case(
        """
        class Base:
            "Doc."
            level = [1]
            def __init__(self, n): self.n = n
            def me(self): return Base
            @classmethod
            def make(cls): return cls(7)
            @staticmethod
            def twice(n): return 2 * n
            @property
            def half(self): return self.n / 2
        class Child(Base):
            def me(self): return super().me()
        """,
        "[Child, Base, Child(4), Base(6)]",
        """
        C, B, c, b = x
        assert c.me() is B and type(c) is C and C.make().n == 7 and B.twice(2) == 4 and b.half == 3 and B.__doc__ == 'Doc.'
        """,
    ),
    "class that holds itself": Case(
        "class Node:\n    kids = {}\n    def copy(self): return Node()\nNode.kids['me'] = Node\nn = Node()\nn.next = n",
        "n",
        "assert type(x).kids['me'] is type(x) is type(x.copy()) and x.next is x",
    ),
    "many instances": Case(
        "class P:\n    def __init__(self, a, b): self.a, self.b = a, b",
        "[P(i, -i) for i in range(1500)]",
        "assert len({type(p) for p in x}) == 1 and sum(p.a + p.b for p in x) == 0 and x[-1].a == 1499",
    ),
    "plain metaclass": Case(
        "class Meta(type):\n    def hello(cls): return cls.__name__\nclass K(metaclass=Meta): pass",
        "K",
        "assert x.hello() == 'K'",
    ),
    "abstract classes": Case(
        """
        import abc
        class Shape(abc.ABC):
            @abc.abstractmethod
            def area(self): ...
        class Square(Shape):
            def area(self): return 4
        Shape.register(int)
        """,
        "[Shape, Square()]",
        "S, s = x\nassert isinstance(s, S) and isinstance(3, S) and s.area() == 4\ntry: S()\nexcept TypeError: pass\nelse: raise AssertionError",
    ),
    "enumeration": Case(
        "import enum\nclass E(enum.Enum):\n    A = 1\n    B = 'x'\n    def m(self): return self.value",
        "[E.A, E.B, E]",
        "a, b, E = x\nassert a is E.A and b.m() == 'x' and list(E) == [a, b]",
    ),
    "generic": Case(
        "import typing\nT = typing.TypeVar('T')\nclass G(typing.Generic[T]):\n    def me(self, x: T) -> T: return x\nclass I(G[int]): pass",
        "(G, T, I)",
        "G, T, I = x\nassert G.__parameters__ == (T,) and I.__orig_bases__ == (G[int],)",
    ),
    "typing classes": Case(
        """
        import typing
        @typing.runtime_checkable
        class Closes(typing.Protocol):
            def close(self) -> None: ...
        class Pt(typing.NamedTuple):
            x: int
            y: int = 4
        class Row(typing.TypedDict, total=False):
            id: int
        """,
        "(Closes, Pt(1), Row)",
        "import io\nC, p, R = x\nassert isinstance(io.BytesIO(), C) and p == (1, 4) and type(p)._field_defaults == {'y': 4} and R.__total__ is False",
    ),
    "namedtuple": Case(
        "import collections\nN = collections.namedtuple('N', 'a b')",
        "(N, N(1, 2))",
        "N, n = x\nassert n == N(1, 2) and n.a == 1",
    ),
    "odd and ends": Case(
        """
        import collections, functools, logging, types, weakref
        class K:
            def m(self): return 5
        k = K()
        o = collections.OrderedDict(a=1)
        """,
        """[
            {1: 2}.keys(), {1: 2}.values(), {1: 2}.items(), o.keys(), o.values(), o.items(), memoryview(b'ab'),
            logging.getLogger('a.b'), logging.getLogger(), types.MappingProxyType({1: 2}), weakref.WeakSet(), k.m,
            functools.partial(lambda a, b: (a, b), 1), int.real, type(None), type(...), types.CodeType, types.FunctionType,
        ]""",
        """
        import logging, types
        assert list(x[0]) == [1] and list(x[1]) == [2] and list(x[2]) == [(1, 2)] and list(x[5]) == [('a', 1)]
        assert x[6] == b'ab' and x[7] is logging.getLogger('a.b') and x[8] is logging.getLogger() and x[9][1] == 2
        assert x[11]() == 5 and x[12](2) == (1, 2) and x[13] is int.real and x[16] is types.CodeType
        """,
    ),
    "module made at run time": Case(
        "import types\nm = types.ModuleType('made')\nm.n = 3\nexec('def f(): return n', m.__dict__)",
        "(m, m.f)",
        "m, f = x\nassert m.n == 3 and f() == 3 == m.f()",
    ),
    "modules": Case("import math, os.path", "(math, os.path)", "import math, os.path\nassert x == (math, os.path)"),
    "long": Case(
        "",
        "[bytes(70_000), (lambda: 1), 'x' * 70_000] + [eval(f'lambda x: x + {i}') for i in range(1200)]",
        "assert x[-1](1) == 1200",
    ),
}

BETTER: dict[str, Case] = {
    "cached function": Case(
        "import functools\n@functools.lru_cache(maxsize=7, typed=True)\ndef f(n): return n if n < 2 else f(n - 1) + f(n - 2)\nf.tag = 1\nf(3)",
        "f",
        "assert x(20) == 6765 and x.cache_parameters() == {'maxsize': 7, 'typed': True} and x.tag == 1 and x.__name__ == 'f'",
    ),
    "cached property": Case(
        "import functools\nclass A:\n    @functools.cached_property\n    def p(self): return [1]",
        "A()",
        "assert x.p is x.p == [1] and type(x).p.attrname == 'p'",
    ),
    "single dispatch": Case(
        "import functools\n@functools.singledispatch\ndef f(x): return 'any'\n@f.register\ndef _(x: int): return 'int'\nf(1)",
        "f",
        "assert x('') == 'any' and x(1) == 'int'",
    ),
    "context variable": Case(
        "import contextvars\nv = contextvars.ContextVar('v', default=3)\ndef f(): return v.get()",
        "f",
        "assert x() == 3",
    ),
    "annotations as strings": Case(
        "from __future__ import annotations\nfrom decimal import Decimal\nclass Price: pass\ndef pay(p: Price, tip: Decimal | None = None) -> list[Price]: return [p]",
        "pay",
        "import decimal, typing\nhints = typing.get_type_hints(x)\nassert hints['p'].__name__ == 'Price' and hints['tip'] == decimal.Decimal | None",
    ),
    "dataclass": Case(
        "import dataclasses\n@dataclasses.dataclass\nclass D:\n    a: int\n    b: list = dataclasses.field(default_factory=list)",
        "D(1)",
        "import dataclasses\na, b = dataclasses.fields(x)\nassert a.default is dataclasses.MISSING is b.default and dataclasses.asdict(x) == {'a': 1, 'b': []}",
    ),
    "frozen dataclass with slots": Case(
        "import dataclasses\n@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)\nclass K:\n    name: str\n    rank: int = 3",
        "K(name='a')",
        "import dataclasses\nassert not hasattr(x, '__dict__') and {x: 1}[type(x)(name='a')] == 1 and dataclasses.replace(x, rank=9).rank == 9",
    ),
    "flags": Case(
        "import enum\nclass P(enum.IntFlag):\n    NONE = 0\n    R = 4\n    W = 2\n    RW = 6\n    READ = 4",
        "(P.RW, P)",
        "v, P = x\nassert v is P.RW and P.READ is P.R and P(0) is P.NONE and sorted(P.__members__) == ['NONE', 'R', 'READ', 'RW', 'W']",
    ),
    "members with attributes": Case(
        "import enum\nclass Planet(enum.Enum):\n    EARTH = (1, 2)\n    MARS = (3, 4)\n    def __init__(self, mass, radius): self.mass, self.radius = mass, radius",
        "Planet",
        "assert x.MARS.mass == 3 and x.EARTH.radius == 2 and x((1, 2)) is x.EARTH",
    ),
    "override equal to the base's": Case(
        "class B:\n    level = 1\nclass C(B):\n    level = 1",
        "(B, C)",
        "B, C = x\nB.level = 2\nassert C.level == 1 and 'level' in vars(C)",
    ),
    "keyword for __init_subclass__": Case(
        """
        class Plugin:
            def __init_subclass__(cls, /, tag, **more):
                super().__init_subclass__(**more)
                cls.tag = tag
        class Csv(Plugin, tag='csv'):
            def go(self): return self.tag
        """,
        "Csv()",
        "assert x.go() == 'csv' and type(x).__mro__[1].__name__ == 'Plugin'",
    ),
    "metaclass that reads the body": Case(
        "class M(type):\n    def __new__(m, n, b, ns):\n        ns['full'] = ns['short'] * 2\n        return super().__new__(m, n, b, ns)\nclass W(metaclass=M):\n    short = 'ab'",
        "W()",
        "assert x.full == 'abab' and type(type(x)).__name__ == 'M'",
    ),
    "metaclass that wants a keyword": Case(
        "class M(type):\n    def __new__(m, n, b, ns, *, table): return super().__new__(m, n, b, ns)\n    def __init__(c, n, b, ns, *, table): c.table = table\nclass W(metaclass=M, table='t'): pass",
        "W",
        "assert x.table == 't'",
    ),
    "metaclass that reads the class": Case(
        "class M(type):\n    def __init__(c, n, b, ns):\n        super().__init__(n, b, ns)\n        c.double = c.single * 2\nclass W(metaclass=M):\n    single = 2",
        "W",
        "assert x.double == 4",
    ),
    "metaclass that forbids changes": Case(
        "class Sealed(type):\n    def __setattr__(c, n, v): raise TypeError('sealed')\nclass K(metaclass=Sealed):\n    PI = 3\n    def area(self): return self.PI",
        "K()",
        "assert x.area() == 3\ntry: type(x).PI = 4\nexcept TypeError: pass\nelse: raise AssertionError",
    ),
    "reducer for a metaclass": Case(
        "import copyreg\nclass M(type): pass\ncopyreg.pickle(M, lambda c: (str.upper, (c.__name__,)))\nK = M('name', (), {})",
        "K",
        "assert x == 'NAME'",
    ),
    "new type": Case(
        "import typing\nId = typing.NewType('Id', int)\ndef f(u: Id) -> Id: return Id(u)",
        "(Id, f)",
        "Id, f = x\nassert Id(3) == 3 and Id.__supertype__ is int and f.__annotations__['u'] is Id and Id.__name__ == 'Id'",
    ),
    "parameter specification": Case(
        "import typing\nP = typing.ParamSpec('P')\nR = typing.TypeVar('R', bound=int)\ndef deco(f: typing.Callable[P, R]) -> typing.Callable[P, R]: return f",
        "(deco, P, R)",
        "deco, P, R = x\nassert deco.__annotations__['f'].__args__ == (P, R) and R.__bound__ is int",
    ),
    "type variable tuple": Case(
        "import typing\nTs = typing.TypeVarTuple('Ts')\nclass Box(typing.Generic[typing.Unpack[Ts]]): pass",
        "(Ts, Box)",
        "Ts, Box = x\nassert Box[int, str].__args__ == (int, str) and Box.__parameters__ == (Ts,)",
        since=(3, 11),
    ),
    "type statement": Case(
        "type Pair[T] = tuple[T, T]\ndef f[T](a: T) -> Pair[T]: return (a, a)\nclass Box[T]:\n    def get(self) -> T: ...",
        "(Pair, f, Box)",
        "P, f, Box = x\nassert P.__name__ == 'Pair' and f(1) == (1, 1) and f.__type_params__[0].__name__ == 'T' and Box[int]",
        since=(3, 12),
    ),
    "slots": Case(
        """
        class A:
            __slots__ = ('_v', '__secret', '__weakref__')
            def __init__(self): self._v, self.__secret = 1, 2
            @property
            def both(self): return self._v, self.__secret
        class B(A):
            __slots__ = ('__dict__', 'w')
        b = B(); b.w, b.free = 5, 6
        """,
        "b",
        "import weakref\nassert x.both == (1, 2) and x.w == 5 and x.free == 6 and weakref.ref(x)() is x",
    ),
    "weak references": Case(
        """
        import weakref
        class T:
            def __init__(self, up=None): self.kids, self.up = [], weakref.ref(up) if up else None
        root = T(); root.kids.append(T(root))
        root.by_name = weakref.WeakValueDictionary(kid=root.kids[0])
        root.notes = weakref.WeakKeyDictionary({root: 'r', root.kids[0]: 'k'})
        gone = weakref.ref(T())
        """,
        "(root, gone)",
        "root, gone = x\nkid = root.kids[0]\nassert kid.up() is root and root.by_name['kid'] is kid and root.notes[root] == 'r' and gone() is None",
    ),
    "the real stream while another stands in": Case(
        "import contextlib, io, sys", "sys.__stderr__", "import sys\nassert x is sys.__stderr__ or x is sys.stderr"
    ),
    "globals of a class body in a function": Case(
        "LIMIT = 8\ndef f():\n    class K:\n        limit = LIMIT\n    return K", "f", "assert x().limit == 8"
    ),
    "set constant of strs": Case(
        "def f(s): return s in {'alpha', 'beta', 'gamma'}", "f", "assert x('beta') and not x('b')"
    ),
}


def current(cases: dict[str, Case]) -> dict[str, Case]:
    """Those that this interpreter can run."""
    return {name: case for name, case in cases.items() if sys.version_info >= case.since}


CHECKER = """
import sys, pickle, textwrap, traceback, json
module = sys.argv[1]
if module == "stock":
    sys.modules["quickpickle"] = None
    import cloudpickle as P
else:
    sys.modules["cloudpickle"] = None
    import quickpickle.cloudpickle as P
failed = {}
for name, (blob, check) in pickle.load(sys.stdin.buffer).items():
    try:
        exec(textwrap.dedent(check), {"x": P.loads(blob)})
    except BaseException:
        failed[name] = traceback.format_exc()
json.dump(failed, sys.stdout)
"""
