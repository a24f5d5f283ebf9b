"""What is said at the end of each generation."""


def report(problem, data_dir):
    """Logs how much of the data is unknown to the vocabulary."""
    from t2t_lite.extras.inspection.vocabulary_coverage import report_coverage

    report_coverage(problem, data_dir)
