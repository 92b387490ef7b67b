"""Objects that travel by value, as programs of their own: what makes them, and what must hold where they arrive.

Each case is source that is run as ``__main__``, so that nothing in it can be imported by the receiver. ``SAME`` holds
those that cloudpickle gets right, and whose bytes are therefore its bytes; ``BETTER`` those it refuses or loses
something of; ``MORE`` more of both. In ``check``, ``x`` is what arrived.
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
    "exceptions whose class can be called": Case(
        """
        class Handing(Exception):
            def __init__(self, text, code=None):
                super().__init__(text)
                self.code = code
        class All(Exception):
            def __init__(self, *args, **more):
                super().__init__(*args)
                self.more = more
        class One(Exception):
            def __init__(self, one, *rest): Exception.__init__(self, one, *rest)
        class Both(Handing):
            def __init__(self, text): super().__init__(text)
        class Text(Exception):
            def __init__(self, text):
                super().__init__(str(text))
                self.text = text
        class Silent(Exception):
            def __init__(self, a, b=2): self.a = a
        class Plain(KeyError): pass
        """,
        "[Handing('t', 5), All(1, 2, k=3), One(1, 2, 3), Both('b'), Text('t'), Silent(1), Plain('k'), OSError(2, 'a', 'b')]",
        "assert [e.args for e in x[:-1]] == [('t',), (1, 2), (1, 2, 3), ('b',), ('t',), (1,), ('k',)] and x[0].code == 5",
    ),
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

EXCEPTIONS = """
class ApiError(Exception):
    def __init__(self, status, *, url):
        super().__init__(f"{status} from {url}")
        self.status, self.url = status, url
class Twice(ValueError):
    def __init__(self, code):
        super().__init__(f"code {code}")
class Two(Exception):
    def __init__(self, a, b):
        super().__init__("two")
        self.a, self.b = a, b
class Chained(ApiError):
    def __init__(self, status, url):
        super().__init__(status, url=url)
class Wanting(Exception):
    def __init__(self, a, *, b): self.b = b
class Setting(Exception):
    def __init__(self, a, b): self.args = (f"{a}-{b}",)
class Gone(OSError):
    def __init__(self, number, text, *, where):
        super().__init__(number, text)
        self.where = where
class Done(StopIteration):
    def __init__(self, value, *, key): super().__init__((value, key))
class Left(SystemExit):
    def __init__(self, why):
        super().__init__(3)
        self.why = why
class Bad(UnicodeDecodeError):
    def __init__(self, why): super().__init__("ascii", b"abc", 0, 1, why + "!")
class Lacking(ImportError):
    def __init__(self, what): super().__init__("no " + what, name=what)
class Made(Exception):
    def __new__(cls, a, b):
        self = super().__new__(cls, a)
        self.b = b
        return self
    def __init__(self, a, b): super().__init__(f"{a}{b}")
class All(Exception):
    def __init__(self, *args, **more):
        super().__init__(*args)
        self.more = more
"""

BETTER: dict[str, Case] = {
    "exception with a keyword": Case(
        EXCEPTIONS,
        "ApiError(503, url='/x')",
        "assert x.status == 503 and x.url == '/x' and str(x) == '503 from /x'",
    ),
    "exception that puts it into words": Case(EXCEPTIONS, "Twice(5)", "assert str(x) == 'code 5'"),
    "exception that wants more": Case(EXCEPTIONS, "Two(1, 2)", "assert (str(x), x.a, x.b) == ('two', 1, 2)"),
    "exception of an exception": Case(EXCEPTIONS, "Chained(4, 'u')", "assert str(x) == '4 from u' and x.url == 'u'"),
    "exception that calls no base": Case(EXCEPTIONS, "Wanting(1, b=2)", "assert x.args == (1,) and x.b == 2"),
    "exception that sets args": Case(EXCEPTIONS, "Setting(1, 2)", "assert x.args == ('1-2',)"),
    "exception of the system": Case(
        EXCEPTIONS, "Gone(2, 'gone', where='w')", "assert (x.errno, x.strerror, x.where) == (2, 'gone', 'w')"
    ),
    "exception with a value": Case(EXCEPTIONS, "Done(1, key=2)", "assert x.value == (1, 2)"),
    "exception with a code": Case(EXCEPTIONS, "Left('w')", "assert x.code == 3 and x.why == 'w'"),
    "exception of a codec": Case(EXCEPTIONS, "Bad('w')", "assert x.reason == 'w!' and x.object == b'abc'"),
    "exception of an import": Case(EXCEPTIONS, "Lacking('m')", "assert x.name == 'm' and str(x) == 'no m'"),
    "exception with __new__": Case(EXCEPTIONS, "Made(1, 2)", "assert x.args == ('12',) and x.b == 2"),
    "exceptions in exceptions": Case(
        EXCEPTIONS + "e = All(Twice(1))\ne.__notes__ = ['n']\n",
        "e",
        "assert str(x.args[0]) == 'code 1' and x.__notes__ == ['n']",
    ),
    "dataclass exception": Case(
        "import dataclasses\n@dataclasses.dataclass\nclass E(Exception):\n    a: int\n    b: str = 'x'",
        "E(a=1)",
        "assert x.a == 1 and x.b == 'x' and x.args == ()",
    ),
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


# Other things of the same kinds, each with a twist.
MORE: dict[str, Case] = {
    "cache method": Case(
        "import functools\nclass A:\n    @functools.cache\n    def m(self): return 3\n    @functools.lru_cache\n    def n(self, k=2): return k",
        "A",
        "assert x().m()==3 and x().n(5)==5",
    ),
    "cached static": Case(
        "import functools\nclass A:\n    @staticmethod\n    @functools.lru_cache(None)\n    def m(k): return k",
        "A",
        "assert x.m(3)==3 and x.m.cache_info().misses==1",
    ),
    "dispatchmethod": Case(
        "import functools\nclass A:\n    @functools.singledispatchmethod\n    def m(self,a): return 'any'\n    @m.register\n    def _(self,a:int): return 'int'",
        "A()",
        "assert x.m(1)=='int' and x.m('')=='any'",
    ),
    "partialmethod": Case(
        "import functools\nclass A:\n    def m(self,a,b): return a,b\n    p=functools.partialmethod(m,1)",
        "A()",
        "assert x.p(2)==(1,2)",
    ),
    "total ordering": Case(
        "import functools\n@functools.total_ordering\nclass A:\n    def __init__(s,n): s.n=n\n    def __eq__(s,o): return s.n==o.n\n    def __lt__(s,o): return s.n<o.n",
        "A(1)",
        "assert x<=x and x>type(x)(0)",
    ),
    "enum auto": Case(
        "import enum\nclass E(enum.Enum):\n    A=enum.auto()\n    B=enum.auto()", "E", "assert x.B.value==2"
    ),
    "enum flag": Case(
        "import enum\nclass F(enum.Flag):\n    A=1\n    B=2\n    AB=3",
        "F.AB|F.A",
        "F=type(x)\nassert x is F.AB and (F.A|F.B) is F.AB",
    ),
    "enum str": Case(
        "import enum\nclass F(str,enum.Enum):\n    A='a'\n    def __str__(self): return 'S'",
        "F.A",
        "assert str(x)=='S' and x=='a'",
    ),
    "enum unique int": Case(
        "import enum\n@enum.unique\nclass F(enum.IntEnum):\n    A=1\n    _ignore_=['z']", "F", "assert x.A+1==2"
    ),
    "enum mixin": Case(
        "import enum\nclass Base:\n    def hi(self): return self.name\nclass F(Base,enum.Enum):\n    A=[1]",
        "F.A",
        "assert x.hi()=='A' and x.value==[1]",
    ),
    "enum in function": Case(
        "import enum\nclass E(enum.Enum):\n    A=1\ndef f(): return E.A", "(f,E)", "f,E=x\nassert f() is E.A"
    ),
    "dataclass with all kinds of fields": Case(
        "import dataclasses,typing\n@dataclasses.dataclass\nclass D:\n    a:int\n    c:typing.ClassVar[int]=1\n    i:dataclasses.InitVar[int]=5\n    _:dataclasses.KW_ONLY\n    k:int=dataclasses.field(default=3,repr=False,metadata={'z':1})\n    def __post_init__(self,i): self.t=i",
        "D(1,k=4)",
        "import dataclasses\nassert [f.name for f in dataclasses.fields(x)]==['a','k'] and x.t==5 and dataclasses.replace(x,a=3,i=1).a==3 and dataclasses.fields(x)[1].metadata['z']==1",
    ),
    "frozen dataclasses that inherit": Case(
        "import dataclasses\n@dataclasses.dataclass(order=True,frozen=True)\nclass A:\n    a:int=1\n@dataclasses.dataclass(order=True,frozen=True)\nclass B(A):\n    b:list=dataclasses.field(default_factory=list)",
        "B()",
        "import dataclasses\nassert hash(type(x).__mro__[1]())is not None and x==type(x)() and dataclasses.asdict(x)=={'a':1,'b':[]}",
    ),
    "slotted dataclasses that inherit": Case(
        "import dataclasses\n@dataclasses.dataclass(slots=True)\nclass A:\n    a:int\n@dataclasses.dataclass(slots=True)\nclass B(A):\n    b:int",
        "B(1,2)",
        "assert (x.a,x.b)==(1,2) and not hasattr(x,'__dict__')",
    ),
    "slot str": Case("class A:\n    __slots__='a'\na=A(); a.a=1", "a", "assert x.a==1 and not hasattr(x,'__dict__')"),
    "slot empty": Case(
        "class A:\n    __slots__=()\nclass B(A):\n    __slots__=('b',)\nb=B(); b.b=2", "b", "assert x.b==2"
    ),
    "slot private": Case(
        "class _A:\n    __slots__=('__x',)\n    def __init__(s): s.__x=4\n    def g(s): return s.__x",
        "_A()",
        "assert x.g()==4",
    ),
    "slot getstate": Case(
        "class A:\n    __slots__=('a',)\n    def __getstate__(s): return {'a':s.a}\n    def __setstate__(s,d): s.a=d['a']\na=A(); a.a=1",
        "a",
        "assert x.a==1",
    ),
    "abc slots": Case(
        "import abc\nclass A(abc.ABC):\n    __slots__=('a',)\n    @abc.abstractmethod\n    def m(self): ...\nclass B(A):\n    __slots__=()\n    def m(self): return self.a\nb=B(); b.a=3",
        "b",
        "assert x.m()==3",
    ),
    "abc meta derived": Case(
        "import abc\nclass M(abc.ABCMeta):\n    def __new__(m,n,b,ns,**k):\n        c=super().__new__(m,n,b,ns)\n        c.tag=ns['tag']\n        return c\nclass A(metaclass=M):\n    tag=4\n    @abc.abstractmethod\n    def m(self):...\nclass B(A):\n    tag=5\n    def m(self): return 1",
        "(A,B())",
        "A,b=x\nassert isinstance(b,A) and b.tag==5\ntry: A()\nexcept TypeError: pass\nelse: raise AssertionError",
    ),
    "metaclass with a namespace of its own": Case(
        "import collections\nclass M(type):\n    @classmethod\n    def __prepare__(m,n,b,**k): return collections.OrderedDict(k['z'] if 'z' in k else {})\n    def __new__(m,n,b,ns,z=None): return super().__new__(m,n,b,dict(ns))\nclass A(metaclass=M): v=1",
        "A",
        "assert x.v==1",
    ),
    "metaclass that wants an attribute": Case(
        "class M(type):\n    def __new__(m,n,b,ns):\n        if 'v' not in ns: raise TypeError('v')\n        return super().__new__(m,n,b,ns)\nclass A(metaclass=M): v=1",
        "A",
        "assert x.v==1",
    ),
    "metaclass of singletons": Case(
        "class S(type):\n    _i={}\n    def __call__(c,*a):\n        if c not in c._i: c._i[c]=super().__call__(*a)\n        return c._i[c]\nclass A(metaclass=S): pass",
        "A",
        "assert x() is x()",
    ),
    "metaclass that refuses some changes": Case(
        "class M(type):\n    def __delattr__(c,n): raise TypeError\n    def __setattr__(c,n,v):\n        if n.startswith('_'): raise TypeError\n        type.__setattr__(c,n,v)\nclass A(metaclass=M):\n    _x=1; y=2",
        "A",
        "assert (x._x,x.y)==(1,2)",
    ),
    "init_subclass multi": Case(
        "class P:\n    def __init_subclass__(cls,*,a,**k): super().__init_subclass__(**k); cls.a=a\nclass Q:\n    def __init_subclass__(cls,b=1,**k): super().__init_subclass__(**k); cls.b=b\nclass R(P,Q,a=3,b=4): pass\nclass S(R,a=5): z=1",
        "(S,R)",
        "S,R=x\nassert S.__mro__[1] is R and (S.a,R.a,R.b,S.z)==(5,3,4,1)",
    ),
    "init_subclass dictbase": Case(
        "class P(dict):\n    def __init_subclass__(cls,tag): cls.tag=tag\nclass C(P,tag='t'): pass",
        "C(a=1)",
        "assert x=={'a':1} and x.tag=='t'",
    ),
    "init_subclass raise": Case(
        "class P:\n    def __init_subclass__(cls,**k):\n        if not hasattr(cls,'name'): raise TypeError('name')\nclass C(P): name='n'",
        "C",
        "assert x.name=='n'",
    ),
    "init_subclass generic": Case(
        "import typing\nT=typing.TypeVar('T')\nclass P(typing.Generic[T]):\n    def __init_subclass__(cls,tag,**k): super().__init_subclass__(**k); cls.tag=tag\nclass C(P[int],tag='t'): pass",
        "C",
        "assert x.tag=='t' and x.__orig_bases__[0].__args__==(int,)",
    ),
    "exception": Case(
        "class E(Exception):\n    def __init__(s,a,b): super().__init__(a,b); s.a=a",
        "E(1,2)",
        "assert x.a==1 and x.args==(1,2)",
    ),
    "ctxvar default": Case(
        "import contextvars\nv=contextvars.ContextVar('v')\ndef f():\n    v.set(3); return v.get()",
        "f",
        "assert x()==3",
    ),
    "newtype of newtype": Case(
        "import typing\nA=typing.NewType('A',int)\nB=typing.NewType('B',A)", "B", "assert x.__supertype__.__name__=='A'"
    ),
    "paramspec args": Case(
        "import typing\nP=typing.ParamSpec('P')\ndef f(g: typing.Callable[P,int], *a: P.args, **k: P.kwargs): ...",
        "f",
        "assert x.__annotations__['a'].__origin__.__name__=='P'",
    ),
    "proto gen": Case(
        "import typing\nT=typing.TypeVar('T',covariant=True)\nclass P(typing.Protocol[T]):\n    def g(self)->T: ...",
        "P",
        "assert x[int]",
    ),
    "named tuple with methods": Case(
        "import collections\nclass P(collections.namedtuple('P','x y')):\n    __slots__=()\n    def n(self): return self.x+self.y",
        "P(1,2)",
        "assert x.n()==3 and x._replace(x=5).x==5",
    ),
    "weakset": Case("import weakref\nclass A: pass\na=A(); a.s=weakref.WeakSet([a])", "a", "assert x in x.s"),
    "weakmethod": Case(
        "import weakref\nclass A:\n    def m(self): return 4\na=A(); a.w=weakref.WeakMethod(a.m)",
        "a",
        "assert x.w()()==4",
    ),
    "logger child": Case(
        "import logging\nL=logging.getLogger('a').getChild('b')\nclass A:\n    log=L", "A", "assert x.log.name=='a.b'"
    ),
    "future nested": Case(
        "from __future__ import annotations\nimport decimal, typing\nclass Q: pass\nclass C:\n    def m(self, a: typing.List[Q], b: decimal.Decimal) -> Q: ...",
        "C",
        "import typing\nassert typing.get_type_hints(x.m)['return'].__name__=='Q'",
    ),
    "str annotation in list": Case(
        "class Q: pass\ndef f(a:'list[Q]', b:'Q|None'): ...",
        "f",
        "import typing\nassert typing.get_type_hints(x)['a'].__args__[0].__name__=='Q'",
    ),
    "wrapped": Case(
        "import functools\ndef d(f):\n    @functools.wraps(f)\n    def w(*a): return f(*a)\n    return w\n@d\ndef g(n): return 1 if n==0 else g(n-1)",
        "g",
        "assert x(3)==1 and x.__wrapped__.__name__=='g'",
    ),
    "override method": Case(
        "class A:\n    def m(self): return 1\n    n=m\nclass B(A):\n    m=A.m\n    f=None\nclass C(B):\n    f=None",
        "(A,B,C)",
        "A,B,C=x\nassert 'm' in vars(B) and 'f' in vars(C)",
    ),
    "del global": Case("X=1\ndef f():\n    global X\n    X=2\n    return X", "f", "assert x()==2"),
    "mutual rec classes": Case(
        "class A:\n    def b(self): return B()\nclass B(A):\n    def a(self): return A()\n    r=A()",
        "(A,B)",
        "A,B=x\nassert type(A().b()) is B and type(B.r) is A",
    ),
    "callable instance": Case("class F:\n    def __call__(self,n): return n+K\nK=4", "F()", "assert x(1)==5"),
    "property set": Case(
        "class A:\n    def __init__(s): s._v=1\n    @property\n    def v(s): 'd'; return s._v\n    @v.setter\n    def v(s,n): s._v=n",
        "A()",
        "x.v=5\nassert x.v==5",
    ),
    "descr": Case(
        "class D:\n    def __set_name__(s,o,n): s.n=n\n    def __get__(s,i,o=None): return s.n\nclass A:\n    q=D()",
        "A",
        "assert x.q=='q'",
    ),
    "dyn base exc": Case(
        "class E(ValueError): pass\nclass F(E): pass", "F('a')", "assert isinstance(x,ValueError) and x.args==('a',)"
    ),
    "kwdefaults": Case("def f(*,a=[1]): return a\ndef g(x=f): return x()", "g", "assert x()==[1]"),
    "lambda default": Case("", "lambda n, f=(lambda z: z*2): f(n)", "assert x(2)==4"),
    "type parameters": Case(
        "class A[T: (int,str), *Ts, **P]:\n    def m[U](self,a:U)->U: return a\ntype L[X]=list[X]\ndef g[Q](a:L[Q])->Q: return a[0]",
        "(A,g,L)",
        "A,g,L=x\nassert g([1])==1 and len(A.__type_params__)==3 and A().m(2)==2 and L[int].__args__==(int,)",
        (3, 12),
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
