"""Problems on published archives, generated from small ones with the published names."""

from t2t_lite import registry
from t2t_lite.data.records import Records
from tests.data.stored import read_examples


def generated(problem, folder, downloads):
    """Returns a problem, given by its name or as an object, that has written data from archives in a folder."""
    problem = registry.problem(problem) if isinstance(problem, str) else problem
    problem.generate_data(str(folder), str(downloads))
    return problem


def targets_of(problem, folder, split):
    """Returns the targets of the records of a split, lists of ids."""
    return [row["targets"] for row in read_examples(Records(problem, str(folder), split).paths)]
