"""With --libretranslate=en,de, the server also offers LibreTranslate's API: docs/extras/libretranslate.md."""

import re

from t2t_lite.corpora.scripts import subtags
from t2t_lite.errors import UserError, needs

_CODE = re.compile(r"[A-Za-z]{2,3}([_-][0-9A-Za-z]{2,8})*")


def define_flags(flags):
    """Declares the flags."""
    flags.DEFINE_list(
        "libretranslate", [], "Source and target language, such as en,de, for which to offer LibreTranslate's API."
    )


def check(flags):
    """Raises `UserError` unless the flag is empty or has the codes of two different languages."""
    if not (codes := flags.libretranslate):
        return
    flag = f"--libretranslate={','.join(codes)}"
    if len(codes) != 2 or codes[0].lower() == codes[1].lower():
        raise UserError(f"{flag}: expected the codes of two languages, the source first, such as en,de.")
    for code in codes:
        if not _CODE.fullmatch(code) or not name_of(code):
            raise UserError(f"{flag}: {code[:40]!r} is not a language code. Expected a code such as en or pt-BR.")


def name_of(code):
    """Returns the English name of the language with a code, or None for an unknown code."""
    with needs("babel", "web", "--libretranslate"):
        import babel
    try:
        return babel.Locale.parse(code.replace("-", "_")).get_display_name("en")
    except (ValueError, babel.UnknownLocaleError):
        return None


def api(flags, versions, batcher):
    """Returns the Api, or None if --libretranslate is not set.

    Raises:
        UserError: the newest version of the export does not translate, or it translates in the opposite direction.
    """
    if not flags.libretranslate:
        return None
    from t2t_lite.extras.libretranslate.libretranslate_api import LibreTranslateApi, problem_of, signature_of_texts

    _, export = versions.find()
    where = f"--libretranslate={','.join(flags.libretranslate)}: {export.path}"
    if signature_of_texts(export) is None:
        raise UserError(f"{where} does not translate texts. Export a translation model, or omit this flag.")
    problem = problem_of(export.path)
    languages = problem and problem.languages
    trained, requested = ([subtags(code)[0] for code in codes] for codes in (languages or (), flags.libretranslate))
    if trained == requested[::-1] != requested:
        raise UserError(
            f"{where} translates from {' to '.join(languages)}. Expected the source first: "
            f"--libretranslate={','.join(languages)}."
        )
    source, target = ({"code": code.replace("_", "-"), "name": name_of(code)} for code in flags.libretranslate)
    return LibreTranslateApi(source, target, versions, batcher, flags.max_batch_size)
