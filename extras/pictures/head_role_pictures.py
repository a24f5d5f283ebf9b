"""Head roles as a table and as a picture."""

from t2t_lite.cli.console import table
from t2t_lite.extras.pictures.head_roles import FAR, SHARES
from t2t_lite.visualization import pictures
from t2t_lite.visualization.attention_words import TITLES
from t2t_lite.visualization.drawing import Drawing

_MEANING = {
    "near": f"2 to {FAR - 1} positions away",
    "far": f"{FAR} or more positions away",
    "end": "<EOS>, or the decoder's <begin>",
}


def role_table(roles):
    """Returns roles as lines of text, with a header."""
    rows = [["kind", "layer", "head", "entropy", "distance", *SHARES, "role"]]
    for r in roles:
        shares = [f"{r.shares[name]:.2f}" for name in SHARES]
        rows.append([r.kind, str(r.layer), str(r.head), f"{r.entropy:.2f}", f"{r.distance:.1f}", *shares, r.role])
    return table(rows)


def draw_head_roles(roles, title=""):
    """Returns a `Drawing`: a bar for each head, divided by the shares of its weight, with its entropy and distance."""
    kinds = list(dict.fromkeys(role.kind for role in roles))
    columns = {kind: [role for role in roles if role.kind == kind] for kind in kinds}
    row, bar, label, numbers, margin = 18, 200, 112, 104, 14
    width = label + bar + numbers + 16
    layers = max(len({role.layer for role in of_kind}) for of_kind in columns.values())
    top = margin + 20 + 22 * 2 + 46
    height = top + row * max(map(len, columns.values())) + 8 * layers + margin
    drawing = Drawing(max(width * len(kinds), 560) + 2 * margin, height, title or "Roles of attention heads")
    drawing.text(margin, margin + 8, drawing.title, None, size=14, bold=True)
    for number, name in enumerate(SHARES):
        x, y = margin + 190 * (number % 3), margin + 24 + 22 * (number // 3)
        drawing.rectangle(x, y + 4, 12, 12, _share_color(name))
        drawing.text(x + 17, y + 10, f"{_MEANING.get(name, f'{name} token')}", None, size=11)
    for number, kind in enumerate(kinds):
        left = margin + width * number
        drawing.text(left, top - 32, TITLES[kind], None, size=12, bold=True)
        for x, words in ((52, "entropy"), (100, "distance")):
            drawing.text(left + label + bar + x, top - 12, words, size=10, anchor="right", color="#555555")
        for at, role in enumerate(columns[kind]):
            y = top + row * at + 8 * (role.layer - 1)
            layer = f"layer {role.layer}, " if role.head == 1 else ""
            drawing.text(left + label - 8, y + row / 2, f"{layer}head {role.head}", size=11, anchor="right")
            x = left + label
            for name in SHARES:
                share = bar * role.shares[name]
                drawing.rectangle(x, y + 2, share, row - 4, _share_color(name), 1, f"{name}: {role.shares[name]:.2f}")
                x += share
            for place, value in ((52, f"{role.entropy:.2f}"), (100, f"{role.distance:.1f}")):
                drawing.text(left + label + bar + place, y + row / 2, value, size=11, anchor="right")
    return drawing


def _share_color(name):
    return "#d0d0d0" if name == "end" else pictures.color(SHARES.index(name))
