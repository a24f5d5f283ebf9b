"""JSON of the right syntax and the wrong shape: a value in which one part after the other is another one."""

import copy

OTHERS = (None, True, -1, 0, 10**6, 2**70, 1.5, "", "x", "../x", [], ["x"], [[]], {}, {"x": 1}, {"x": {}})


def variants(value):
    """Yields (place, value in which the part at that place is missing, another one or under another name)."""
    for place in _places(value):
        for other in OTHERS:
            yield place, _changed(value, place, other)
        if place:
            without = _changed(value, place)
            yield place, without
            if isinstance(place[-1], str):
                yield place, _changed(without, (*place[:-1], "x"), _part(value, place))


def _places(value, place=()):
    yield place
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in list(parts)[:4]:  # of long lists the first ones stand for all
        yield from _places(part, (*place, name))


def _part(value, place):
    for name in place:
        value = value[name]
    return value


def _changed(value, place, *other):
    if not place:
        return other[0]
    value = copy.deepcopy(value)
    part = value
    for name in place[:-1]:
        part = part[name]
    if other:
        part[place[-1]] = other[0]
    else:
        del part[place[-1]]
    return value
