"""Fills in missing translations in message catalogs, such as `.po` files: see `t2t_lite.corpora.catalogs`."""

from t2t_lite.corpora import plain_text
from t2t_lite.corpora.catalogs import catalog_of
from t2t_lite.decoding.command.decode_files import FilePart, translate_lines
from t2t_lite.errors import LOGGER, UserError, counted


def translate_catalog(job, source, output="", reference="", prefixes=""):
    """Translates those entries of a catalog that have no translation, and writes a catalog with all entries.

    Args:
        job: DecodingJob.
        source: path of a file whose extension is registered for a kind of catalog.
        output: path of the file to write, which must have the same extension.
        reference, prefixes: must be "", since these files have one line per line of text, and a catalog has no lines.

    Raises:
        UserError: the file or the output cannot be used, or an option is only for lines of text.
    """
    _check(job, source, output, {"--decode_reference": reference, "--prefix_file": prefixes})
    job.check_files({"--decode_to_file": output})
    substitution = job.runs[0].problem.substitution
    catalog = catalog_of(source)(source, getattr(substitution, "find", None))
    part = FilePart(source, catalog.lines)

    def convert(lines):
        content, count, left = catalog.translated(lines)
        LOGGER.info(f"{counted(count, 'translation')} filled in. Review them before use.")
        if left:
            LOGGER.warning(
                f"{source}: {counted(left, 'translation')} left empty, since the model's output "
                "was empty or did not have the text's placeholders."
            )
        return {output: content}

    translate_lines(job, part, output, convert=convert)


def _check(job, source, output, others):
    ending = plain_text.kind(source)
    if job.predicts or job.generates:
        raise UserError(
            f"--decode_from_file={source}: expected a model that translates, but {job.runs[0].checkpoint} does not."
        )
    if not output or plain_text.kind(output) != ending:
        fault = f"--decode_to_file={output}: expected" if output else "--decode_to_file is missing. Expected"
        raise UserError(f"{fault} the name of a {ending} file to write, since the input is {source}.")
    settings = job.settings
    used = [*(flag for flag, path in others.items() if path), *(flag for flag, _ in job.files_beside().values())]
    used += ["--n_best_format=json"] * (job.n_best_format == "json")
    used += ["--decode_shards"] * (settings.shards > 1)
    used += settings.changed(("write_beam_scores", "identity_output", "delimiter"))
    used += ["n_best"] * ((settings.n_best if job.mbr else settings.num_outputs) > 1)
    if used:
        it = "it" if len(used) == 1 else "them"
        raise UserError(f"{', '.join(used)}: only for lines of text, but {source} is a {ending} file. Remove {it}.")
