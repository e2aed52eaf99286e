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
# # A calibration, number by number
#
# What `kvfleet calibrate` took from a set of measurements: which numbers they tell
# and how well, which they do not tell and what run would, and how far the fitted
# fleet is from requests that it was not fitted to.
#
# The notebook reads the directory that `kvfleet calibrate --report DIR` writes, and
# computes nothing: every figure shown is one of the report's. `KVFLEET_CALIBRATION`
# names another directory.

# %%
import json
import os
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import HTML, Markdown, display
from matplotlib.ticker import LogLocator, NullLocator, PercentFormatter, ScalarFormatter

directory = Path(os.environ.get("KVFLEET_CALIBRATION", "../out/notebooks/calibration"))
for name in ["report.md", "estimates.csv"]:
    if not (directory / name).is_file():
        raise FileNotFoundError(
            f"{directory / name} is missing. `make notebooks` writes it, and so does\n"
            f"  kvfleet calibrate --base FLEET --trace FILE --out fleet.yaml --report {directory}"
        )

plt.rcParams.update({
    "figure.dpi": 72, "font.size": 9, "axes.titlesize": 10, "axes.titlelocation": "left",
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "axes.grid": True, "grid.color": "#e3e7eb", "legend.frameon": False,
})
BLUE, RED, GREY, ORANGE = "#3b6fb6", "#d1495b", "#6b7785", "#e39a1f"
VERDICTS = {"measured": BLUE, "prior": GREY, "refused": RED, "stated": "#0b7a75"}


def figure(v):
    return "" if pd.isna(v) else f"{v:.5g}" if abs(v) < 1e5 else f"{v:.0f}"


def share(v):
    return "" if pd.isna(v) else f"{v:.1%}"


def signed(v):
    return "" if pd.isna(v) else f"{v:+.1%}"


def table(frame, **formats):
    """Shows a table; numbers have five digits where formats names no other way."""
    formats = {c: formats.get(c, figure) for c in frame.select_dtypes("number")}
    display(HTML(frame.to_html(index=False, na_rep="", border=0, formatters=formats)))


# %% [markdown]
# ## What it was made from, and what the data cannot say

# %%
report = (directory / "report.md").read_text()
display(Markdown(re.sub(r"^#+ ", "#### ", report.split("\n## Results")[0], flags=re.MULTILINE)))

# %% [markdown]
# ## The numbers that were measured
#
# With their 95% intervals over the bootstrap draws. The decode ladder, a number for
# each batch size, has its own figure below.

# %%
estimates = pd.read_csv(directory / "estimates.csv")
RUNG = r"step\.decode_ladder\[(\d+)\]\.ms"
short = estimates[~estimates["path"].str.startswith("step.decode_ladder[")]
table(short.loc[short["verdict"] == "measured", ["path", "value", "low", "high", "unit", "base", "how"]])

# %%
intervals = directory / "intervals.json"
if intervals.is_file():
    drawn = json.loads(intervals.read_text())
    bars = pd.DataFrame(drawn["bars"])[::-1]
    SHARES = [0.05, 0.1, 0.2, 0.5, 0.8, 1, 1.25, 2, 5, 10, 20]
    fig, ax = plt.subplots(figsize=(8, 0.8 + 0.28 * len(bars)))
    ax.hlines(bars["name"], bars["low"].clip(lower=0.05), bars["high"].clip(upper=20), color=BLUE, lw=5, alpha=0.45)
    ax.plot([1] * len(bars), bars["name"], "o", color=BLUE, ms=4)
    ax.set_xscale("log")
    ax.axvline(1, color=GREY, lw=0.8, zorder=0)
    low, high = ax.get_xlim()
    ax.set_xticks([v for v in SHARES if low <= v <= high and (high < 10 * low or v not in [0.8, 1.25])])
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_title("95% intervals, as shares of the value")
    ax.set_xlabel("share of the value (logarithmic; intervals are cut at 0.05 and 20)")
    for name, text in zip(bars["name"], bars["text"]):
        ax.annotate(text, (1.01, name), xycoords=("axes fraction", "data"), va="center", color=GREY, annotation_clip=False)
    plt.show()
else:
    print("No number has an interval.")

# %%
ladder = estimates[estimates["path"].str.fullmatch(RUNG)]
ladder = ladder.assign(batch=ladder["path"].str.extract(RUNG, expand=False).astype(int))
if len(ladder):
    fig, ax = plt.subplots(figsize=(8, 3.2))
    ax.vlines(ladder["batch"], ladder["low"], ladder["high"], color=BLUE, lw=5, alpha=0.35, label="95% interval")
    for verdict, rungs in ladder.groupby("verdict"):
        ax.plot(rungs["batch"], rungs["value"], "o", color=VERDICTS[verdict], ms=4, label=verdict)
    ax.plot(ladder["batch"], ladder["base"], "_", color=ORANGE, ms=9, label="the base's")
    ax.set_title("Decode step by batch size")
    ax.set_xlabel("requests in the batch")
    ax.set_ylabel("ms")
    ax.set_ylim(bottom=0)
    ax.legend(ncols=4, loc="lower right", bbox_to_anchor=(1, 0.98))
    plt.show()
else:
    print("The fleet has no decode ladder.")

# %% [markdown]
# ## What was kept, what was refused, and what would tell
#
# `prior` is kept from the base because the rows do not tell it; `refused` because
# they tell it only together with another number. The advice is the run to make.

# %%
kept = short[short["verdict"].isin(["prior", "refused"])].sort_values("verdict", ascending=False, kind="stable")
table(kept[["path", "verdict", "value", "unit", "how", "advice"]].fillna(""))

# %% [markdown]
# ## Against requests that were not fitted
#
# `held out` predicts rows from a fit to others. The noise floor is how far the
# measurement is from its own repetition, request by request: no simulator can be
# expected to come nearer. It is empty where a trace has no repetition.

# %%
heldout = directory / "heldout.csv"
if heldout.is_file():
    judged = pd.read_csv(heldout)
    judged = judged.rename(columns={"repeat_mape": "noise_floor_mape", "repeat_mean_error": "noise_floor_mean_error"})
    formats = {"mape": share, "noise_floor_mape": share, "mean_error": signed, "noise_floor_mean_error": signed,
               "p50_error": signed, "p90_error": signed, "p99_error": signed}
    for name, rows in judged.groupby("set", sort=False):
        display(Markdown(f"**{name}**"))
        table(rows[["trace", "metric", "n", *formats, "ks"]], **formats)
else:
    print("No trace was given, so there is nothing to judge.")

# %%
if heldout.is_file():
    last = judged[judged["set"] == judged["set"].iloc[-1]]
    metrics = [m for m in last["metric"].unique() if "median" not in m]
    traces = list(last["trace"].unique())
    fig, axes = plt.subplots(1, len(metrics), figsize=(10.5, 1.1 + 0.32 * len(traces)), sharey=True, squeeze=False)
    for ax, metric in zip(axes[0], metrics):
        rows = last[last["metric"] == metric]
        ax.plot(rows["noise_floor_mape"], rows["trace"], "|", color=ORANGE, ms=14, mew=2.5, label="noise floor")
        ax.plot(rows["mape"], rows["trace"], "o", color=BLUE, ms=6, label=last["set"].iloc[-1])
        ax.set_title(metric)
        ax.set_xlim(left=0)
        ax.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        ax.set_xlabel("MAPE")
    axes[0][0].margins(y=0.15)
    axes[0][0].invert_yaxis()
    axes[0][-1].legend(loc="upper left", bbox_to_anchor=(1, 1))
    plt.show()

# %% [markdown]
# ## Step times

# %%
steps = directory / "steps.csv"
if steps.is_file():
    shapes = pd.read_csv(steps)
    fig, axes = plt.subplots(1, 2, figsize=(10.5, 3.4), sharey=True)
    for ax, column, title in zip(axes, ["error", "held_out_error"], ["fitted", "whole shapes held out in turn"]):
        for (kind, rows), colour in zip(shapes.groupby("kind"), [BLUE, RED, ORANGE]):
            ax.plot(rows["busy_ms"], rows[column], "o", ms=3, alpha=0.5, color=colour, label=kind, mew=0)
        ax.axhline(0, color=GREY, lw=0.8)
        ax.set_title(f"Error of every step shape, {title}")
        ax.set_xlabel("measured busy time (ms)")
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(ScalarFormatter())
        ax.yaxis.set_major_formatter(PercentFormatter(1))
    axes[1].legend(loc="upper left", bbox_to_anchor=(1, 1), markerscale=2)
    plt.show()
else:
    print("No step log was given, so there are no step errors.")

# %% [markdown]
# ## Simulated against measured
#
# Every judged request, and the quantiles of both sides set beside each other: on the
# diagonal the two distributions are the same.

# %%
def scatters(slug):
    """Draws the figures of one metric, a panel a trace."""
    files = sorted(directory.glob(f"{slug}-*.json"), key=lambda p: int(p.stem.split("-")[-1]))
    if not files:
        print("No trace was given.")
        return
    fig, axes = plt.subplots(1, len(files), figsize=(0.5 + 2.7 * max(2, len(files)), 3.3), sharex=True, sharey=True,
                             squeeze=False, layout="constrained")
    for ax, file in zip(axes[0], files):
        drawn = json.loads(file.read_text())
        for series in drawn["series"]:
            style = dict(marker="o", ls="", ms=2.5, alpha=0.3, mew=0, color=BLUE)
            if series["name"] == "quantiles":
                style = dict(ls="-", lw=1.6, color=RED)
            ax.plot(series["x"], series["y"], label=series["name"], **style)
        ends = [series["x"][0], series["x"][-1]]
        ax.plot(ends, ends, color="black", lw=0.8, ls="--", label="equal")
        ax.set_xscale("log")
        ax.set_yscale("log")
        for axis in [ax.xaxis, ax.yaxis]:
            axis.set_major_locator(LogLocator(subs=[1, 3]))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_locator(NullLocator())
        ax.set_title(drawn["subtitle"])
        ax.set_xlabel(drawn["x"]["title"])
    axes[0][0].set_ylabel(f"{drawn['title'].split(',')[0]}, {drawn['y']['title']}")
    axes[0][0].legend(loc="upper left", markerscale=2)
    plt.show()


scatters("ttft")

# %%
scatters("e2e")

# %% [markdown]
# ## Cached tokens
#
# Requests whose cached tokens the simulated fleet has otherwise than the engine
# reported them. All others are equal, or the trace does not say.

# %%
columns = ["trace", "request_id", "sent_ms", "cached_tokens", "simulated_cached_tokens", "ttft_ms", "simulated_ttft_ms"]
names = judged.loc[judged["set"] == "fitted", "trace"].unique() if heldout.is_file() else []
differ = [pd.DataFrame(columns=columns)]
for i, name in enumerate(names, start=1):
    rows = pd.read_csv(directory / f"requests-{i}.csv").dropna(subset=["cached_tokens", "simulated_cached_tokens"])
    differ.append(rows[rows["cached_tokens"] != rows["simulated_cached_tokens"]].assign(trace=name))
differ = pd.concat([d for d in differ if len(d)] or differ)[columns]
if len(differ):
    table(differ.head(20))
else:
    print("None.")
