"""Registers: named collections that decorators fill. Built-in entries are imported at the first look-up."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import re
import threading
from collections.abc import Callable
from typing import TypeVar, overload

from t2t_lite.cli.usr_dirs import import_of_extra
from t2t_lite.errors import LOGGER, UnknownName, UserError, nearest, shown
from t2t_lite.process.lazy import extra_of
from t2t_lite.process.registering_modules import modules_by_name, modules_of

_Registered = TypeVar("_Registered", bound=Callable)  # type of a class or function, which a decorator returns unchanged


def default_name(obj):
    """Converts the name of a class to snake case: `TranslateEndeWmt32k` -> `translate_ende_wmt32k`."""
    name = re.sub("(.)([A-Z][a-z0-9]+)", r"\1_\2", obj.__name__)
    return re.sub("([a-z0-9])([A-Z])", r"\1_\2", name).lower()


class Registry:
    """A named collection that decorators fill and that is read like a dict.

    Args:
        kind: the kind of registered objects, for messages.
        decorator: the name of the decorator that registers built-in entries, or None if there are none. The modules in
            which it occurs are imported when needed, see `modules_of`.
        package: the core package of built-in entries, or None if only extras have entries.
        check: function of (name, object) that raises `UserError` when the object cannot be registered.
        one_per_module: bool, whether the names that a module registers are known from its file name or source (see
            `modules_by_name`). If True, looking up a name imports only the module that registers it.
    """

    def __init__(self, kind, decorator=None, package=None, check=None, one_per_module=False):
        self.kind = kind
        self._decorator, self._package = decorator, package
        self._check = check
        self._entries = {}
        self._one_per_module = self._loaded = one_per_module
        self._loading = set()  # threads that are importing the modules; others must not take the names for complete
        self._broken = {}  # {module of an extra that cannot be imported: reason}

    @functools.cached_property
    def _modules(self):
        """{name: list of the modules that register it and are not yet imported}; only one is allowed per name."""
        return self.built_in() if self._one_per_module else {}

    def built_in(self):
        """Returns {name of a built-in entry: list of the modules that register it}, without importing them."""
        return modules_by_name(self._decorator, self._package)

    @overload
    def register(self, name_or_obj: _Registered) -> _Registered: ...
    @overload
    def register(self, name_or_obj: str | None = None) -> Callable[[_Registered], _Registered]: ...
    def register(self, name_or_obj=None):
        """Decorator that can be used bare (`@register_model`), empty (`@register_model()`) or with a name."""
        if callable(name_or_obj):
            return self._add(default_name(name_or_obj), name_or_obj)
        return lambda obj: self._add(name_or_obj or default_name(obj), obj)

    def _add(self, name, obj):
        if not callable(obj):
            raise UserError(f"{self.kind}: {name!r} must be a class or a function, got {type(obj).__name__}.")
        if obj.__module__ not in self._modules.get(name, [obj.__module__]):
            self.get(name)  # raises an error if another module also registers the name
        if name in self._entries and self._entries[name] != obj:
            where = inspect.getsourcefile(inspect.unwrap(self._entries[name]))
            raise UnknownName(f"{self.kind}: {name!r} is already registered in {where}. Choose another name.")
        if self._check:
            self._check(name, obj)
        self._entries[name] = obj
        return obj

    def _load(self):
        thread = threading.get_ident()
        if self._loaded or thread in self._loading:  # the imports call this method
            return
        self._loading.add(thread)
        try:
            for module in modules_of(self._decorator, self._package) if self._decorator else ():
                self._import(module)  # waits if another thread is importing the module
        finally:
            self._loading.discard(thread)
        self._loaded = True

    def _import(self, module):
        """Imports a module that registers something. A broken module of an extra is left out, with a warning."""
        if why := import_of_extra(module)[1]:
            self._broken[module] = why
            LOGGER.warning(f"{self.kind}: {why}")

    def get(self, name):
        """Returns the object registered under a name.

        Raises:
            UnknownName: the name is not registered; the message lists the nearest names.
            UserError: the module of an extra that registers it cannot be imported.
        """
        self.check(name)
        if modules := self._modules.get(name):
            module, *others = modules
            if others:
                places = " and in ".join(importlib.util.find_spec(place).origin for place in (module, *others))
                raise UserError(f"{self.kind}: {name!r} is registered in {places}. Rename one of them.")
            self._import(module)
            if module in self._broken:
                raise UserError(f"{self.kind}: {name}: {self._broken[module]}")
            self._modules.pop(name, None)  # not needed once the name is registered
        return self._entries[name]

    def check(self, name):
        """Raises `UnknownName`, whose message lists the nearest names, unless the name is registered."""
        if name not in self:
            names = self.names()
            near = " ".join([f"{why[0].upper()}{why[1:]}" for why in self._broken.values()]) or nearest(name, names)
            raise UnknownName(
                f"{self.kind}: {shown(name)} is not registered. {f'{near} ' if near else ''}To list all {len(names)} "
                "names, type: t2t-trainer --registry_help. For names of tensor2tensor and their replacements see "
                "docs/coming_from_tensor2tensor.md"
            )

    def names(self, prefix: str = "") -> list[str]:
        """Returns the sorted names that start with `prefix`."""
        self._load()
        return sorted(name for name in {*self._entries, *self._modules} if name.startswith(prefix))

    def extra_of(self, name):
        """Returns the extra that registers a name, or "" if the name does not belong to an extra."""
        modules = self._modules.get(name) or [getattr(self._entries.get(name), "__module__", "")]
        return extra_of(modules[0])

    __getitem__ = get

    def __setitem__(self, name, obj):
        """Registers an object, replacing any object of the same name."""
        self._load()
        self._entries[name] = obj

    def remove(self, name):
        """Removes a name from the register, for tests and notebooks."""
        self._entries.pop(name, None)
        self._modules.pop(name, None)

    def __contains__(self, name):
        self._load()
        return name in self._entries or name in self._modules
