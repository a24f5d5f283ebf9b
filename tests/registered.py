"""Cases of what is registered: those of an extra that has been taken out are left out."""

from t2t_lite import registry


def registered(cases):
    """Returns the cases whose problems or tasks are there.

    Args:
        cases: dict by their names, or list of names, or of tuples that begin with one.
    """
    there = {*registry.list_problems(), *registry.list_tasks()}
    if isinstance(cases, dict):
        return {name: case for name, case in cases.items() if name in there}
    return [case for case in cases if (case if isinstance(case, str) else case[0]) in there]
