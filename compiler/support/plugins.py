"""Plugins: parts added to the compiler by other packages and files, and errors that blame them for crashes.

A package has a function `register(registry)` as an entry point of the group `strata.plugins`; a file for `--load`
defines a function of that name. The rooms look up names that they lack, and rules, here.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from importlib import import_module
from importlib.util import decode_source, find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar, overload

from compiler.support.errors import InputError, StrataError

GROUP = "strata.plugins"
"""The group of entry points."""
FILES = "STRATA_LOAD"
"""The environment variable with the paths of the files to load, separated by os.pathsep, for child processes."""
BUILT_IN = {
    "pass": "compiler.universe:own_passes",
    "dialect": "compiler.universe:own_dialects",
    "primitive": "compiler.schedule.primitives:PRIMITIVES",
    "operator": "compiler.te.nn:__all__",
    "ONNX operator": "compiler.frontends.onnx.walk:own_operators",
    "torch operator": "compiler.frontends.torch.conversion:own_operators",
    "target": "compiler.targets.registry:TARGETS",
    "program law": "compiler.alternatives:LAWS",
    "group law": "compiler.alternatives:LAWS",
}
"""Map a kind of part to the `module:name` of the compiler's own names: a collection, or a function that returns one."""

NEEDED = {"ONNX operator": "onnx", "torch operator": "torch"}
"""Map a kind of part to the package that the compiler's names of that kind need."""
CLASSES = {
    "dialect": "xdsl.ir:Dialect",
    "target": "compiler.targets.target:Target",
    "law": "compiler.alternatives.law:Law",
}
"""Map the last word of each kind of part that is an object to the `module:name` of its class; parts of other kinds are
functions, or classes of passes."""
RULES = ("search rule", "GPU search rule", "grouping rule")
"""The kinds of parts that are generator functions."""
TENSOR_FUNCTIONS = ("operator", "ONNX operator", "torch operator")
"""The kinds of parts that are functions that return tensors."""
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
"""The form of a pass name that pipelines can spell."""

Value = TypeVar("Value")
_plugins: dict[str, Registry] = {}
_scanned: list[bool] = []
_sources: dict[str, str] = {}
"""The text of each loaded file by the name of its module, as it was when it was loaded."""


class PluginError(StrataError):
    """A plugin that cannot be loaded, or a part of one that crashed.

    >>> strata.plugins.Registry("noisy").operator(te.nn.relu)
    Traceback (most recent call last):
        ...
    compiler.support.plugins.PluginError: plugin noisy cannot add the operator 'relu': the compiler has one of that name
    """


@dataclass(frozen=True)
class Part:
    """A part of a plugin: a pass, dialect, primitive, operator, ONNX operator, torch operator, target, grouping rule,
    search rule, GPU search rule, program law or group law. `value` is the registered object.

    >>> strata.plugins.Part("noisy", "pass", "add-noise", None).kind
    'pass'
    """

    plugin: str
    kind: str
    name: str
    value: Any

    def failed(self, error: BaseException) -> PluginError:
        """A PluginError that blames this part for a crash by `error`."""
        return PluginError(f"plugin {self.plugin}: {self.kind} {self.name} failed: {_crash(error)}")

    def misused(self, sentence: str) -> PluginError:
        """A PluginError that blames this part for a result of the wrong type or form, which `sentence` describes."""
        return PluginError(f"plugin {self.plugin}: {self.kind} {self.name}: {sentence}")

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Turn exceptions in the context into a PluginError that blames this part; StrataError, xDSL's errors,
        RecursionError and MemoryError pass through."""
        from xdsl.utils.exceptions import DiagnosticException, ParseError

        try:
            yield
        except (StrataError, DiagnosticException, ParseError, RecursionError, MemoryError):
            raise
        except Exception as error:
            raise self.failed(error) from error

    @cached_property
    def guarded(self) -> Any:
        """The part's function, or its law with the function `forms`, wrapped so that a crash or a result of the wrong
        type raises PluginError; the alternatives that a search rule yields are wrapped, too."""
        if self.kind in ("program law", "group law"):
            return replace(self.value, forms=self._guarded(self.value.forms))
        return self._guarded(self.value)

    def _guarded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        generates = self.kind in RULES or inspect.isgeneratorfunction(function)
        return self._generator(function) if generates else self._function(function, self._checked)

    def _function(self, function: Callable[..., Any], checked: Callable[[Any], Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: object, **kwargs: object) -> object:
            with self.blamed():
                return checked(function(*args, **kwargs))

        return call

    def _generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def generate(*args: object, **kwargs: object) -> Iterator[Any]:
            with self.blamed():
                results = function(*args, **kwargs)
                if not isinstance(results, Iterable):
                    raise self.misused(f"it gave {results!r}; it is a generator function, which yields")
                for result in results:
                    yield self._alternative(result) if "search rule" in self.kind else result

        return generate

    def _alternative(self, alternative: Any) -> Any:
        """Check an alternative of a search rule; return it with an `apply` that raises PluginError for faults."""
        fault = _load("compiler.recipes.draft:alternative_fault")(alternative)
        if fault:
            raise self.misused(fault)
        return replace(alternative, apply=self._function(alternative.apply, self._labels))

    def _labels(self, labels: Any) -> Any:
        """Return the labels of blocks that an alternative's `apply` returns. Raises PluginError if they are invalid."""
        fault = _load("compiler.recipes.draft:labels_fault")(labels)
        if fault:
            raise self.misused(fault)
        return labels

    def _checked(self, result: Any) -> Any:
        """Return a result. Raises PluginError unless a primitive's is a Plan, and an operator's a tensor or a list; the
        results of other kinds are not checked."""
        tensors = hasattr(result, "shape") or isinstance(result, Sequence)
        if self.kind == "primitive" and not isinstance(result, _load("compiler.schedule.plan:Plan")):
            raise self.misused(f'it gave {result!r}; it gives a Plan, such as PRIMITIVES["reorder"].plan(...)')
        if self.kind in TENSOR_FUNCTIONS and not tensors:
            raise self.misused(f"it gave {result!r}; it gives a tensor, or a list of tensors")
        return result


@dataclass
class Registry:
    """The parts of one plugin. Each method registers a declaration and returns it, as a decorator. Raises PluginError
    for a name that is taken, and for a declaration of the wrong type or form.

    >>> registry = strata.plugins.Registry("noisy")
    >>> @registry.grouping_rule
    ... def alone(view: strata.graph.View) -> list[strata.graph.Choice]:
    ...     return []
    >>> [(part.kind, part.name) for part in registry.parts]
    [('grouping rule', 'alone')]
    """

    plugin: str
    parts: list[Part] = field(default_factory=list)

    def pass_(self, kind: Value) -> Value:
        """Add a pass: a frozen dataclass of its options that extends xDSL's ModulePass; else raise PluginError."""
        from xdsl.passes import ModulePass

        if not (inspect.isclass(kind) and issubclass(kind, ModulePass)):
            raise self._refused("pass", kind, "it is no class that extends ModulePass")
        parameters = vars(kind).get("__dataclass_params__")
        if parameters is None or not parameters.frozen:
            raise self._refused("pass", kind, "it is no frozen dataclass; put @dataclass(frozen=True) above the class")
        name = getattr(kind, "name", None)
        if not isinstance(name, str) or not NAME.fullmatch(name):
            shown_name = "none" if name is None else repr(name)
            raise self._refused("pass", kind, f'its name is {shown_name}; it has one such as name = "my-pass"')
        return self._add("pass", kind)

    def dialect(self, dialect: Value) -> Value:
        """Add a dialect, an xDSL `Dialect`."""
        return self._add("dialect", dialect)

    def primitive(self, plan: Value) -> Value:
        """Add a schedule primitive: a function declared by `@primitive`. Raises PluginError for any other object."""
        declared = _load("compiler.schedule.primitive:DECLARED")
        name = getattr(plan, "__name__", "")
        if name not in declared or inspect.unwrap(declared[name].plan) is not plan:
            raise PluginError(f"the primitive {name!r} of plugin {self.plugin} is not declared by @primitive")
        fault = _load("compiler.schedule.declarations:declaration_fault")(declared[name])
        fault = fault or _load("compiler.pipeline.parser:example_fault")(declared[name])
        if fault:
            raise PluginError(f"plugin {self.plugin}: primitive {name}: {fault}")
        if declared[name].pass_name:
            self._check_free("pass", declared[name].pass_name)
        return self._add("primitive", plan)

    def operator(self, function: Value) -> Value:
        """Add a named operator: a function of te tensors, available in `te.nn`."""
        return self._add("operator", function)

    def onnx_operator(self, name: str, domain: str = "") -> Callable[[Value], Value]:
        """Return a decorator that adds the te form of an ONNX operator: a function of a `strata.frontends.Node` that
        returns a tensor, or a list with one for each output; it may raise `strata.frontends.Refused`, with the reason.

            @registry.onnx_operator("Scaler", domain="ai.onnx.ml")
            def scaler(node):
                return te.nn.mul(node.tensor(0), node.attribute("scale", 1.0), name=node.name)
        """
        self._check_text("onnx_operator", name)
        return lambda function: self._add("ONNX operator", function, onnx_name(name, domain))

    def torch_operator(self, name: str) -> Callable[[Value], Value]:
        """Return a decorator that adds the te form of a torch operator, such as `mine.scale` or `aten.erfinv`: a
        function of a `strata.frontends.Call` and the operator's arguments that returns a tensor, or a tuple with one
        for each result. It may raise `strata.frontends.Unsupported`, with the reason. A name without an overload means
        the overload `default`.

            @registry.torch_operator("mine.scale")
            def scale(call, x, factor):
                return te.nn.mul(x, factor, name=call.name)
        """
        self._check_text("torch_operator", name)
        full_name = name if name.count(".") > 1 else f"{name}.default"
        return lambda function: self._add("torch operator", function, full_name)

    def grouping_rule(self, rule: Value) -> Value:
        """Add a grouping rule, a function from a `strata.graph.View` to an iterable of `strata.graph.Choice`, with
        precedence over the compiler's own."""
        return self._add("grouping rule", rule)

    def search_rule(self, rule: Value, *, gpu: bool = False) -> Value:
        """Add a `strata.recipes.Rule` to the search space of CPUs, or of GPUs, before the compiler's own rules."""
        return self._add("GPU search rule" if gpu else "search rule", rule)

    def law(self, law: Value) -> Value:
        """Add a law, a `compiler.alternatives.law.Law`, with precedence over the compiler's own laws."""
        scope = getattr(getattr(law, "scope", None), "value", "")
        return self._add(f"{scope} law".strip(), law)

    def target(self, target: Value) -> Value:
        """Add a target: an object of a class that extends `compiler.targets.target.Target`."""
        return self._add("target", target)

    def _add(self, kind: str, value: Value, name: str | None = None) -> Value:
        path = CLASSES.get(kind.rpartition(" ")[2])
        name = name or getattr(value, "name", None) or getattr(value, "__name__", None)
        if not isinstance(name, str) or (path is None and not callable(value)):
            raise self._refused(kind, value, "it is no function with a name" if path is None else "it has no name")
        self._check_free(kind, name)
        if path is not None and not isinstance(value, _load(path)):
            raise self._refused(kind, value, f"it is no {path.rpartition(':')[2]}")
        self.parts.append(Part(self.plugin, kind, name, value))
        return value

    def _refused(self, kind: str, value: object, reason: str) -> PluginError:
        return PluginError(f"plugin {self.plugin} registers {value!r}, which is no {kind}: {reason}")

    def _check_text(self, method: str, name: object) -> None:
        """Raise PluginError for a decorator that is not called with a name."""
        if not isinstance(name, str):
            example = f'@registry.{method}("Name")'
            raise PluginError(f"plugin {self.plugin} gives {method} {name!r}, which is no name: write {example}")

    def _check_free(self, kind: str, name: str) -> None:
        """Raise PluginError if the name is taken in this kind, by the compiler or by a plugin."""
        parts = [part for registry in (*_plugins.values(), self) for part in registry.parts]
        user = next((part.plugin for part in parts if (part.kind, part.name) == (kind, name)), "")
        package = NEEDED.get(kind)
        has_names = kind in BUILT_IN and (package is None or find_spec(package) is not None)
        built_in = _load(BUILT_IN[kind]) if has_names else ()
        if not user and name in (built_in() if callable(built_in) else built_in):
            user = "the compiler"
        if user:
            raise PluginError(f"plugin {self.plugin} cannot add the {kind} '{name}': {user} has one of that name")


class Extended(Sequence[Value], Generic[Value]):
    """The rules or laws of a kind of part, as a sequence: those of plugins (`guarded`), then the compiler's own."""

    def __init__(self, kind: str, built_in: Sequence[Value]) -> None:
        self._kind, self._built_in = kind, built_in

    def _all(self) -> tuple[Value, ...]:
        return (*(part.guarded for part in parts(self._kind).values()), *self._built_in)

    @overload
    def __getitem__(self, index: int) -> Value: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Value]: ...
    def __getitem__(self, index: int | slice) -> Value | Sequence[Value]:
        return self._all()[index]

    def __len__(self) -> int:
        return len(self._all())


def parts(kind: str) -> Mapping[str, Part]:
    """Return the parts of a kind of all plugins, by name. Installed plugins are loaded at first use. Raises the errors
    of `registries`.

    >>> "noisy" in strata.plugins.parts("pass")
    False
    """
    return {part.name: part for registry in registries() for part in registry.parts if part.kind == kind}


def onnx_name(operator: str, domain: str = "") -> str:
    """The qualified name of an ONNX operator, without the default domain ai.onnx: `Det`, `ai.onnx.ml.Scaler`."""
    return operator if domain in ("", "ai.onnx") else f"{domain}.{operator}"


def owner(name: str = "") -> Part | None:
    """Find a dialect among the parts of loaded plugins, by its name or that of one of its ops; None if no plugin has
    it. Loads no plugin."""
    all_parts = (part for registry in _plugins.values() for part in registry.parts)
    return next((part for part in all_parts if (part.kind, part.name) == ("dialect", name.partition(".")[0])), None)


def registries() -> list[Registry]:
    """Return the registries of all plugins. The first call loads the files in STRATA_LOAD, and the installed
    plugins; an installed one that fails to load is skipped with a warning. Raises InputError for a missing file,
    PluginError for a file that cannot be loaded.

    >>> "noisy" in [registry.plugin for registry in strata.plugins.registries()]
    False
    """
    if not _scanned:
        _scanned.append(True)
        from importlib.metadata import entry_points

        for path in filter(None, os.environ.get(FILES, "").split(os.pathsep)):
            if Path(path).stem not in _plugins:
                load_file(path)
        for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
            try:
                _register(point.name, point.load)
            except PluginError as error:
                left_out = RuntimeWarning(f"{error}; it is left out")
                left_out.__cause__ = error.__cause__
                warnings.warn(left_out, stacklevel=2)
    return list(_plugins.values())


def load_file(path: str) -> None:
    """Load a plugin from a Python file; the file's stem is its name. Raises InputError for a missing file, PluginError
    for a crash, a file without the function `register`, and a name that a loaded plugin has.

    >>> strata.plugins.load_file("missing.py")
    Traceback (most recent call last):
        ...
    compiler.support.errors.InputError: the plugin missing.py cannot be read: it is no file
    """
    if not Path(path).is_file():
        raise InputError(f"the plugin {path} cannot be read: it is no file")
    name = Path(path).stem

    def register() -> Callable[[Registry], object]:
        if not path.endswith(".py"):
            raise PluginError(f"the plugin {path} is no file of Python")
        module = ModuleType(_module_name(name))
        module.__file__ = path
        sys.modules[module.__name__] = module  # a dataclass looks its annotations up there
        _sources[module.__name__] = decode_source(Path(path).read_bytes())
        exec(compile(_sources[module.__name__], path, "exec", dont_inherit=True), vars(module))
        entry = getattr(module, "register", None)
        if not callable(entry):
            raise PluginError(f"the plugin {path} has no function register(registry)")
        return entry  # type: ignore[no-any-return]

    if name in _plugins:
        raise PluginError(f"there are two plugins {name}")
    try:
        _register(name, register)
    except PluginError:
        _forget(name)
        raise


def source_of(module: ModuleType) -> str:
    """The source text of a module; for a plugin loaded from a file, the text that was loaded."""
    text = _sources.get(module.__name__)
    return inspect.getsource(module) if text is None else text


def _module_name(plugin: str) -> str:
    return f"strata_plugin_{plugin}"


def _forget(plugin: str) -> None:
    """Remove a plugin and the module of its file, if any."""
    _plugins.pop(plugin, None)
    _sources.pop(_module_name(plugin), None)
    sys.modules.pop(_module_name(plugin), None)


@contextmanager
def loaded(files: Sequence[str]) -> Iterator[None]:
    """Load plugins from files for the context, in this process and its children. Raises InputError for a missing
    file, PluginError for one that cannot be loaded.

    >>> with strata.plugins.loaded(["missing.py"]):
    ...     pass
    Traceback (most recent call last):
        ...
    compiler.support.errors.InputError: the plugin missing.py cannot be read: it is no file
    """
    previous, installed = os.environ.get(FILES), set(_plugins)
    try:
        for path in files:
            load_file(path)
        os.environ[FILES] = os.pathsep.join([*filter(None, [previous]), *map(os.path.abspath, files)])
        yield
    finally:
        os.environ.pop(FILES, None)
        if previous is not None:
            os.environ[FILES] = previous
        for name in {Path(path).stem for path in files} - installed:
            _forget(name)


@contextmanager
def set_aside() -> Iterator[None]:
    """Set all loaded plugins aside for the context, in which a command may load the same files, or none."""
    plugins, sources = dict(_plugins), dict(_sources)
    modules = {name: sys.modules[name] for name in map(_module_name, plugins) if name in sys.modules}
    files = os.environ.pop(FILES, None)
    for name in plugins:
        _forget(name)
    try:
        yield
    finally:
        _plugins.update(plugins)
        _sources.update(sources)
        sys.modules.update(modules)
        if files is not None:
            os.environ[FILES] = files


def _register(name: str, load: Callable[[], Callable[[Registry], object]]) -> None:
    """Register all parts of a plugin, or none; `load` returns the plugin's function `register`. Raises PluginError for
    a crash, a refused part, and a name that a loaded plugin has."""
    if name in _plugins:
        raise PluginError(f"there are two plugins {name}")
    registry = Registry(name)
    try:
        load()(registry)
    except PluginError:
        raise
    except StrataError as error:
        raise PluginError(f"plugin {name}: {error}") from error
    except (Exception, SystemExit) as error:
        raise PluginError(f"plugin {name} cannot be loaded: {_crash(error)}") from error
    _plugins[name] = registry


def _crash(error: BaseException) -> str:
    """Describe an exception on one line: its type, its message, and the file and line that raised it, if known."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{type(error).__name__}: {error.msg} ({error.filename}:{error.lineno})"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    message = f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")
    return f"{message} ({frames[-1].filename}:{frames[-1].lineno})" if frames else message


def _load(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
