"""What every reader of XML by expat refuses, and how it says so."""

from xml.parsers import expat

from t2t_lite.errors import UserError, shown


def not_xml(source, error, expected):
    """Returns the `UserError` of an `ExpatError`; `expected`: str, such as "a translation memory, <tmx>"."""
    return UserError(
        f"{source}, line {error.lineno}, column {error.offset + 1}: not XML: {expat.ErrorString(error.code)}. "
        f"Expected {expected}."
    )


def refuse_entities(parser, source):
    """Has an expat parser raise `UserError` where a file declares an entity: a few can expand to gigabytes."""

    def refuse(name, *_):
        raise UserError(
            f"{source}, line {parser.CurrentLineNumber}: declares the entity {shown(name)}. Entities are not read, "
            "since they may stand for any amount of text. Expected a file without <!ENTITY …>."
        )

    parser.EntityDeclHandler = refuse
