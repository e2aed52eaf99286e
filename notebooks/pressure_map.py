# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -jupytext.text_representation.jupytext_version
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A pressure map and what it hangs on
#
# Which routing policy wins where, over how much the sessions hold (the working set,
# as a share of the fleet's KV cache) and how unevenly they are used (the skew); where
# requests were placed; and which points depend on the calibration of the fleet.
#
# The notebook reads the directory that `kvfleet sweep --out DIR` and `kvfleet map DIR`
# write, and computes nothing: every figure shown is one of theirs. `KVFLEET_SWEEP`
# names another directory.
#
# As committed it shows a short sweep of the published fleet, under 20 draws of its
# calibration.

# %%
import json
import math
import os
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import HTML, display
from matplotlib.colors import Normalize
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import NullLocator

directory = Path(os.environ.get("KVFLEET_SWEEP", "../out/notebooks/sweep"))
for name, command in [
    ("cells.csv", f"kvfleet sweep --out {directory}"),
    ("sweep.json", f"kvfleet sweep --out {directory}"),
    ("goodput_by_working_set*.json", f"kvfleet map {directory}"),
]:
    if not any(directory.glob(name)):
        raise FileNotFoundError(f"{directory / name} is missing. `make notebooks` writes it, and so does\n  {command}")

plt.rcParams.update({
    "figure.dpi": 72, "font.size": 9, "axes.titlesize": 10, "axes.titlelocation": "left",
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "axes.grid": True, "grid.color": "#e3e7eb", "legend.frameon": False,
})
GREY, MARK = "#6b7785", "#111111"
PALETTE = ["#3b6fb6", "#0b7a75", "#d1495b", "#e39a1f", "#7a4fa3", "#6b7785", "#2f9e44", "#b5527f", "#8a6d3b", "#18a0c4"]


def table(frame, **formats):
    display(HTML(frame.to_html(index=False, na_rep="", border=0, formatters=formats)))


def figures(name):
    """What the command drew its figures of this name from, one for each load."""
    return [json.loads(file.read_text()) for file in sorted(directory.glob(f"{name}*.json"))]


def load(drawn):
    """What drives the cells of a figure."""
    kind = "users, closed loop" if drawn["driver"] == "closed" else "requests/s, open loop"
    return f"{drawn['load']:g} {kind}"


# The colour of each policy is the one it has in the command's own figures.
labels = sorted({line["policy"] for f in figures("goodput_by_working_set") for p in f["panels"] for line in p["lines"]})
colours = {label: PALETTE[i % len(PALETTE)] for i, label in enumerate(labels)}

# %% [markdown]
# ## What was swept

# %%
sweep = json.loads((directory / "sweep.json").read_text())
fleet, axes = sweep["fleet"], sweep["axes"]
facts = {
    "fleet": f"{fleet['name']}, {fleet['replicas']} replicas, {fleet['kv_tokens']:,} KV tokens",
    "fleet file": fleet["source"],
    "working sets": ", ".join(f"{v:g}" for v in axes["working_sets"]),
    "skews": ", ".join(f"{v:g}" for v in axes["skews"]),
    "repetitions": axes["repetitions"],
    "window": f"{sweep['window_s']:g} s, of which {sweep['warmup_s']:g} s warm up",
    "seed": sweep["seed"],
    "finished": f"{sweep['cells_finished']} of {sweep['cells_total']} cells",
}
table(pd.DataFrame(facts.items(), columns=["sweep", ""]))
table(pd.DataFrame(sweep["policies"]))

# %% [markdown]
# ## Pressure map: one policy against another
#
# How much more goodput, in requests a second that meet the SLO, the policy has than
# the baseline, with the range over the repetitions. A hatched point is within their
# spread: neither is ahead.

# %%
def grid(drawn, wide):
    """Axes of a map, and where each of its points lies."""
    xs, ys = drawn["working_sets"], drawn["skews"]
    fig, ax = plt.subplots(figsize=(wide * len(xs), 0.9 + 0.75 * len(ys)))
    ax.set_xticks(range(len(xs)), [f"{v:g}" for v in xs])
    ax.set_yticks(range(len(ys)), [f"{v:g}" for v in ys])
    ax.set(xlim=(-0.5, len(xs) - 0.5), ylim=(-0.5, len(ys) - 0.5), xlabel="working set", ylabel="skew")
    ax.grid(False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax, [(xs.index(p["working_set"]), ys.index(p["skew"]), p) for p in drawn["points"]]


def tile(ax, x, y, fill, title, text, ink="white", **style):
    """One point of a map."""
    ax.add_patch(Rectangle((x - 0.47, y - 0.45), 0.94, 0.9, **{"fc": fill, "ec": "white", "lw": 0} | style))
    ax.text(x, y + 0.1, title, ha="center", va="center", color=ink, fontsize=11)
    ax.text(x, y - 0.22, text, ha="center", va="center", color=ink, fontsize=8)


drawn = figures("pressure_map")
for m in drawn:
    known = [abs(math.log1p(p["difference_ratio"])) for p in m["points"] if p["difference_ratio"] is not None]
    end = max([math.log(1.25), *known])  # twice and half are equally far from level
    scale = Normalize(-end, end)
    ax, points = grid(m, 1.9)
    for x, y, p in points:
        if p["difference_ratio"] is None:
            tile(ax, x, y, "#fafafa", "?", "", ink=GREY, ec="#c4cad1", lw=1)
            continue
        level = scale(math.log1p(p["difference_ratio"]))
        ends = [p["difference_ratio_min"], p["difference_ratio_max"]]
        tile(ax, x, y, plt.cm.RdBu(level), f"{p['difference_ratio']:+.0%}",
             "" if None in ends or ends[0] == ends[1] else f"{ends[0]:+.0%} to {ends[1]:+.0%}",
             ink="white" if abs(level - 0.5) > 0.28 else "black",
             **{"hatch": "///", "ec": "#9aa5b1"} if p["within_spread"] else {})
    ax.set_title(f"{m['policy']} against {m['baseline']}\n{m['fleet']}, {load(m)}")
    plt.show()
if not drawn:
    print("The sweep has no two policies to compare.")

# %% [markdown]
# ## Who wins each point, and whether the calibration decides it
#
# The winner, and its lead over the runner-up; hatched where that is within the spread
# of the repetitions. A point framed in black depends on the calibration: its first policy
# is behind the best by more than the spread under over 5% of the fleet's draws, which
# are what the fleet's measured constants may be, together.

# %%
for m in figures("regime_map"):
    ax, points = grid(m, 1.9)
    for x, y, p in points:
        lead = p["lead"]["difference_ratio"]
        style = {"hatch": "///", "ec": "#ffffff66"} if p["lead"]["within_spread"] else {}
        tile(ax, x, y, colours.get(p["winner"], "#c4cad1"), "" if lead is None else f"{lead:+.1%}",
             f"over {p['runner_up']}".replace(":", "\n"), **style)
        if p.get("drawn", {}).get("depends"):
            ax.add_patch(Rectangle((x - 0.47, y - 0.45), 0.94, 0.9, fc="none", ec=MARK, lw=3))
    names = [Patch(fc=colours[label], label=label) for label in m["policies"] if label in colours]
    ax.legend(handles=[*names, Patch(fc="none", ec=MARK, lw=2, label="depends on the calibration")],
              loc="upper left", bbox_to_anchor=(1, 1))
    ax.set_title(f"Winner of each point\n{m['fleet']}, {load(m)}")
    plt.show()

# %%
marks = [
    {"load": load(m), "working_set": p["working_set"], "skew": p["skew"], "first": p["winner"],
     "beaten": p["drawn"]["beaten"], "depends": "yes" if p["drawn"]["depends"] else "",
     **{f"{w['policy']} wins": w["share"] for w in p["drawn"]["wins"]},
     "nobody wins": p["drawn"]["no_winner"], "draws": p["drawn"]["draws"]}
    for m in figures("regime_map") for p in m["points"] if p.get("drawn")
]
if marks:
    marks = pd.DataFrame(marks)
    shares = [c for c in marks if c == "beaten" or c.endswith(" wins")]
    table(marks, **{c: lambda v: "" if pd.isna(v) else f"{v:.0%}" for c in shares})
else:
    print("The sweep has no draws, so no point can be marked: kvfleet sweep --fleet-samples N, on a fleet that kvfleet calibrate wrote.")

# %% [markdown]
# ## Goodput over the working set
#
# The median of the repetitions; the bars are their range.

# %%
def over_working_sets(ax):
    sets = axes["working_sets"]
    ax.set_xscale("log")
    ax.set_xticks(sets, [f"{v:g}" for v in sets])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlim(0.75 * min(sets), 1.4 * max(sets))


for m in figures("goodput_by_working_set"):
    fig, panels = plt.subplots(1, len(m["panels"]), figsize=(3.2 * len(m["panels"]), 3), sharey=True, squeeze=False)
    for ax, panel in zip(panels[0], m["panels"]):
        for line in panel["lines"]:
            x = [p["working_set"] for p in line["points"]]
            y = pd.DataFrame([p["goodput_rps"] for p in line["points"]], dtype=float)
            ax.plot(x, y["median"], "o-", ms=4, color=colours[line["policy"]], label=line["policy"])
            ax.vlines(x, y["min"], y["max"], color=colours[line["policy"]], lw=3, alpha=0.35)
        over_working_sets(ax)
        ax.set_title(f"skew {panel['skew']:g}")
        ax.set_xlabel("working set")
    panels[0][0].set_ylim(bottom=0)
    panels[0][0].set_ylabel("good requests/s")
    panels[0][-1].legend(loc="upper left", bbox_to_anchor=(1, 1))
    fig.suptitle(f"{m['fleet']}, {load(m)}", x=0.13, y=1.04, ha="left", fontsize=10)
    plt.show()

# %% [markdown]
# ## Where requests were placed, and what it cost
#
# Every repetition of every cell is a dot. The spill share is the part of the requests
# that a policy sent elsewhere than where it believed their prefix to be, because that
# replica was too busy; policies without a spill rule have none. The busiest replica of
# an even fleet has one share in as many as there are replicas (dashed).

# %%
cells = pd.read_csv(directory / "cells.csv", keep_default_na=False, na_values={"load": [""]})


def named(frame):
    """The label of each row's policy, as the command's figures have it where they can be told."""
    several = frame.groupby("policy")["parameters"].nunique()
    defaults = sweep["policy_defaults"]

    def label(row):
        if several[row["policy"]] == 1 or row["parameters"] == defaults.get(row["policy"]):
            return row["policy"]
        usual = defaults.get(row["policy"], "").split(",")
        return f"{row['policy']}:" + ",".join(p for p in row["parameters"].split(",") if p not in usual)

    return frame.assign(label=frame.apply(label, axis=1))


cells = named(cells)
rows = [
    ("busiest_replica_share", "busiest replica's share"),
    ("spill_share", "spill share"),
    ("prefix_cache_hit_rate", "prefix-cache hit rate"),
    ("recomputed_prefill_tokens_per_request", "recomputed tokens/request"),
    ("ttft_p50_ms", "TTFT p50 (ms)"),
]
for (driver, amount), swept in cells.groupby(["driver", "load"]):
    skews = sorted(swept["skew"].unique())
    fig, panels = plt.subplots(len(rows), len(skews), figsize=(3.2 * len(skews), 2 * len(rows)),
                               sharex=True, sharey="row", squeeze=False, layout="constrained")
    for line, (column, title) in zip(panels, rows):
        for ax, skew in zip(line, skews):
            for i, (label, of) in enumerate(swept[swept["skew"] == skew].groupby("label")):
                x = of["working_set"] * (0.88 + 0.08 * i)  # beside each other
                ax.plot(x, pd.to_numeric(of[column]), "o", ms=4, alpha=0.8, mew=0, clip_on=False,
                        color=colours.get(label, GREY), label=label)
            if column == "busiest_replica_share":
                ax.axhline(1 / fleet["replicas"], color=GREY, lw=0.8, ls="--")
            over_working_sets(ax)
        line[0].set_ylim(bottom=0)
        line[0].set_ylabel(title)
    for ax, skew in zip(panels[0], skews):
        ax.set_title(f"skew {skew:g}")
    for ax in panels[-1]:
        ax.set_xlabel("working set")
    fig.legend(*panels[0][0].get_legend_handles_labels(), loc="outside upper left", ncols=len(labels), markerscale=1.5,
               title=f"{fleet['name']}, {load({'driver': driver, 'load': amount})}", alignment="left")
    plt.show()

# %% [markdown]
# ## Goodput under the draws
#
# Dots are cells under the draws of the fleet's constants, upright strokes those of the
# fleet itself. Where the clouds of two policies overlap, the calibration may decide
# who wins; the same draw has the same prompts under every policy, so that the marks
# above can tell more than the clouds do.

# %%
if (directory / "samples.csv").is_file():
    samples = named(pd.read_csv(directory / "samples.csv", keep_default_na=False, na_values={"load": [""]}))
    for (driver, amount), swept in samples.groupby(["driver", "load"]):
        own = cells[(cells["driver"] == driver) & (cells["load"] == amount)]
        sets, skews = axes["working_sets"], axes["skews"]
        fig, panels = plt.subplots(len(skews), len(sets), figsize=(3.2 * len(sets), 1.5 * len(skews)), sharey=True,
                                   squeeze=False, layout="constrained")
        for line, skew in zip(panels[::-1], skews):
            for ax, size in zip(line, sets):
                for frame, style in [(swept, dict(marker="o", ms=4, mew=0, alpha=0.35)), (own, dict(marker="|", ms=11, mew=1.5))]:
                    at = frame[(frame["skew"] == skew) & (frame["working_set"] == size)]
                    for label in labels:
                        of = at[at["label"] == label]
                        ax.plot(of["goodput_rps"], [label] * len(of), ls="", color=colours[label], **style)
                ax.set_title(f"working set {size:g}, skew {skew:g}", fontsize=8)
                ax.margins(y=0.2)
        for ax in panels[-1]:
            ax.set_xlabel("good requests/s")
        fig.suptitle(f"{fleet['name']}, {load({'driver': driver, 'load': amount})}", fontsize=10)
        plt.show()
else:
    print("The sweep has no draws: no samples.csv.")
