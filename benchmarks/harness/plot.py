"""Draws a result as a picture, in the style of all pictures of the package."""

from benchmarks.harness import record
from t2t_lite.visualization import drawing


def draws(result):
    """Returns whether a result has something to draw, that is, several figures or a figure over time."""
    return bool(result.growth) or sum(len(m["sides"]) for m in result.measurements) > 1


def draw(result):
    """Returns a PNG with one panel per figure (bars with ranges, or lines); None if there is nothing to draw."""
    from matplotlib.patches import Patch
    from matplotlib.ticker import MaxNLocator

    if not draws(result):
        return None
    panels = {}
    for measurement in result.measurements:
        # Rates per second of CPU time appear only in tables; in the picture they would look like rates per second.
        is_drawn = any(spread["high"] for spread in measurement["sides"].values())
        if is_drawn and "cpu_second" not in measurement["figure"]:
            panels.setdefault(measurement["figure"], []).append(measurement)
    sides = [side for side in result.labels if any(side in m["sides"] for m in [*result.measurements, *result.growth])]
    heights = [sum(0.24 * (len(m["sides"]) + 1) for m in group) for group in panels.values()]
    heights += [2.0] * len(result.growth)
    figure = drawing.new_figure(9, sum(heights) + 0.8 * len(heights) + 0.6)
    axes = figure.subplots(len(heights), 1, gridspec_kw={"height_ratios": heights}, squeeze=False)[:, 0]
    for place, (name, group) in zip(axes, panels.items(), strict=False):
        _bars(place, name, group, sides)
        place.xaxis.set_major_locator(MaxNLocator(6))
    for place, growth in zip(axes[len(panels) :], result.growth, strict=True):
        for side, points in growth["sides"].items():
            color = drawing.color(sides.index(side))
            place.plot(
                points["x"], points["y"], color=color, marker="o", markersize=3, label=result.labels.get(side, side)
            )
        highest = max(max(points["y"]) for points in growth["sides"].values())
        drawing.style_axes(place, growth["x"], "", "xy" if highest >= 1000 else "x")
        place.set_title(f"{growth['case']}: {record.FIGURES[growth['figure']][0]}", loc="left", fontsize=10)
        place.set_ylim(0, 1.1 * highest)
    handles = [Patch(color=drawing.color(i), label=result.labels.get(side, side)) for i, side in enumerate(sides)]
    figure.legend(handles=handles, loc="outside upper left", ncols=min(len(handles), 4), frameon=False, fontsize=9)
    return drawing.figure_bytes(figure)


def _bars(axes, name, group, sides):
    at, ticks, texts = 0.0, [], []
    for measurement in group:
        first = at
        for side, spread in measurement["sides"].items():
            median = spread["median"]
            error = [[max(0, median - spread["low"])], [max(0, spread["high"] - median)]]
            axes.barh(at, median, 0.9, color=drawing.color(sides.index(side)), alpha=0.85)
            if spread["low"] < spread["high"]:
                axes.errorbar(median, at, xerr=error, color=drawing.INK, linewidth=1, capsize=2)
            end, style = (max(median, spread["high"]), at), {"va": "center", "fontsize": 8}
            axes.annotate(record.shown(median), end, (4, 0), textcoords="offset points", **style)
            at += 1
        ticks.append((first + at - 1) / 2)
        texts.append(measurement["case"])
        at += 1
    highest = max(spread["high"] for measurement in group for spread in measurement["sides"].values())
    drawing.style_axes(axes, "", "", "x" if 10 <= highest < record.LARGE else "")
    axes.set_yticks(ticks, texts, fontsize=9)
    axes.grid(False, axis="y")
    axes.margins(x=0.12)
    axes.invert_yaxis()
    axes.set_title(f"{record.FIGURES[name][0]}{record.better(name)}", loc="left", fontsize=10)
