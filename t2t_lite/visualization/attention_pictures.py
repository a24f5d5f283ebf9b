"""Pictures of attention in the style of the paper's figures 3 to 5, for any model that exposes attention weights."""

from t2t_lite.decoding.texts import check_texts
from t2t_lite.errors import UserError, counted, nearest
from t2t_lite.text.vocabulary import EOS_ID
from t2t_lite.visualization.attention_heat_maps import draw_grid, draw_heat_maps
from t2t_lite.visualization.attention_lines import draw_lines
from t2t_lite.visualization.attention_maps import draw_map
from t2t_lite.visualization.sentence_attention import (
    MOST_TOKENS,
    attending_features,
    read_attention,
    sentence_ids,
    text_features,
)

VIEWS = ("lines", "heat_map", "grid", "map")


def attend(answerer, text, target=None, most=MOST_TOKENS, **options):
    """Returns a trained model's attention in a sentence, {kind: SentenceAttention}.

    Args:
        answerer: the result of `t2t_lite.load`. A Translator has the kinds "encoder", "decoder" and "memory".
        text: str, the source.
        target: str, a translation, or a list of its ids, with EOS if it is complete; None: the model's own translation,
            if it translates. A language model whose problem has inputs continues the text as well: an image, say, from
            its class.
        most: int, the most tokens of a side.
        **options: options of `Translator.translate`: beam_size, alpha and so on; or of `Generator.generate`.

    Raises:
        UserError: a text is blank or has more than `most` tokens, or the model does not expose attention weights.
    """
    problem, encoders = answerer.problem, answerer.encoders
    first, *others = text_features(problem, target)
    (text,) = check_texts([text], "text")
    if first == "targets" and "inputs" in problem.features:
        best = answerer.generate([text], **options)[0]
        return attend_to_row(answerer, [*encoders["targets"].encode(problem.input_text(text)), *best.ids], most)
    prepared = problem.encoded_text(text) if problem and first == "inputs" else text
    texts, ids = {first: prepared}, {first: sentence_ids(encoders, first, prepared, most)}
    for feature in others:
        if isinstance(target, list):
            ids[feature], target = target, encoders[feature].decode(target)
        elif target is None:
            options["split_sentences"] = "never"  # a picture shows a single search
            best = answerer.translate([text], **options)[0].hypotheses[0]
            ids[feature], target = [*best.ids, *[EOS_ID] * best.ended], encoders[feature].decode(best.ids)
        elif problem and first == "inputs":
            target = problem.encoded_target(target, text)
        (texts[feature],) = check_texts([target], "target")
    return read_attention(answerer.model, encoders, texts, ids, attending_features(problem), most)


def attend_to_row(answerer, ids, most=MOST_TOKENS):
    """Returns a language model's attention in a row of ids, as `attend` does: of a prompt and its continuation."""
    encoders, features = answerer.encoders, attending_features(answerer.problem) or {"targets": 2}
    texts = {"targets": encoders["targets"].decode(ids)}
    return read_attention(answerer.model, encoders, texts, {"targets": ids}, features, most)


def draw_attention(attention, layer=None, heads=None, word=None, view="lines", whole_words=False):
    """Draws the attention of one kind in one sentence.

    Args:
        attention: SentenceAttention, a value of the result of `attend`.
        layer: int, from 1, as in the paper; None: the last but one, as in the paper's figures. A "grid" has all layers.
        heads: list of int, from 1; None: all.
        word: str, the only word whose attention is drawn (figure 3); None: all.
        view: "lines": two columns of tokens with lines between them, darker for larger weights, in the color of their
            head; "heat_map": a matrix for each head; "grid": a small matrix for each head of each layer; "map": an
            image for each head, of up to 1,100 tokens, without their names.
        whole_words: bool, whether the pieces of a word are combined: see `SentenceAttention.whole_words`.

    Returns:
        `Drawing`, or a `Plot` of a "map": a notebook shows it, `save(path)` writes it as SVG, PNG or PDF.

    Raises:
        UserError: there is no such layer, head, word or view.

    Example:
        >>> attention = attend(t2t_lite.Translator.load("train"), "The law is just.")       # doctest: +SKIP
        >>> draw_attention(attention["encoder"], heads=[5, 6], word="law").save("law.svg")  # doctest: +SKIP
    """
    if view not in VIEWS:
        raise UserError(f"view={view!r}: {nearest(view, VIEWS, end=' ')}Expected one of {', '.join(VIEWS)}.")
    number = default_layer(attention) if layer is None else layer
    _check("layer", number, len(attention.weights), attention.kind)
    count = len(attention.weights[number - 1])
    heads = list(range(1, count + 1)) if heads is None else list(heads)
    if not heads:
        raise UserError("heads: none given. Expected numbers from 1, or None for all.")
    for head in heads:
        _check("head", head, count, attention.kind)
    attention = attention.whole_words() if whole_words else attention
    rows = None if word is None else attention.rows_of(word)
    if view == "map":
        if word is not None:
            raise UserError(f"word={word!r}: a map shows all tokens. Leave word out, or choose another view.")
        return draw_map(attention, number, heads)
    if view == "grid":
        if layer is not None:
            raise UserError(f"layer={layer}: a grid shows all layers. Leave layer out, or choose another view.")
        return draw_grid(attention, heads, rows)
    return (draw_lines if view == "lines" else draw_heat_maps)(attention, number, heads, rows)


def default_layer(attention):
    """Returns the last layer but one, from 1; 1 if there is only one layer."""
    return max(1, len(attention.weights) - 1)


def _check(name, number, count, kind):
    if not 1 <= number <= count:
        raise UserError(f"{name}={number}: the model has {counted(count, name)} of this kind ({kind}), from 1 on.")
