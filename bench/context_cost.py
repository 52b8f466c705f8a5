#!/usr/bin/env python3
"""What a token costs as its context grows: milliseconds per token of prefill (chunks of 128) and of decode at rising depth, by
nib bench; prints a table, the straight line through it and how far the points are from it, and draws both with --svg FILE.

  context_cost.py NIB MODEL [--depths 0,1024,...] [--threads N] [--svg FILE]"""
import argparse
import json
import statistics
import subprocess


def line_through(points):
    """Slope, offset and the greatest distance of a point from the line, as a share of the line there."""
    mx, my = (statistics.mean(p[i] for p in points) for i in (0, 1))
    slope = sum((x - mx) * (y - my) for x, y in points) / sum((x - mx) ** 2 for x, _ in points)
    offset = my - slope * mx
    return slope, offset, max(abs(y / (offset + slope * x) - 1) for x, y in points)


def svg(series, width=640, height=360):
    top = max(y for points in series.values() for _, y in points) * 1.1
    right = max(x for points in series.values() for x, _ in points)
    at = lambda x, y: (60 + x / right * (width - 90), height - 40 - y / top * (height - 70))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="60" y="18">milliseconds per token, by tokens before it</text>']
    for i in range(6):
        (x0, y0), (x1, _) = at(0, top * i / 5), at(right, 0)
        out += [f'<path d="M{x0:.1f} {y0:.1f}H{x1:.1f}" stroke="#ddd"/>', f'<text x="8" y="{y0 + 4:.1f}">{top * i / 5:.2f}</text>']
        x, y = at(right * i / 5, 0)
        out.append(f'<text x="{x - 12:.1f}" y="{y + 18:.1f}">{right * i // 5}</text>')
    for (name, points), colour in zip(series.items(), ("#06c", "#c40")):
        slope, offset, _ = line_through(points)
        (x0, y0), (x1, y1) = at(0, offset), at(right, offset + slope * right)
        out.append(f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" stroke="{colour}" stroke-dasharray="4 3"/>')
        out += [f'<circle cx="{at(x, y)[0]:.1f}" cy="{at(x, y)[1]:.1f}" r="4" fill="{colour}"/>' for x, y in points]
        out.append(f'<text x="{x1 - 60:.1f}" y="{y1 - 8:.1f}" fill="{colour}">{name}</text>')
    return "\n".join(out + ["</svg>", ""])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("nib")
    p.add_argument("model")
    p.add_argument("--depths", default="0,1024,2048,4096,6144")
    p.add_argument("--threads", default="-1")
    p.add_argument("--svg")
    opt = p.parse_args()
    command = [opt.nib, "bench", "-m", opt.model, "-t", opt.threads, "-p", "128", "-n", "16", "-d", opt.depths, "-r", "2", "--json"]
    tests = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    series = {"prefill": [], "decode": []}
    for t in tests:
        name = "prefill" if t["test"].startswith("pp") else "decode"
        series[name].append((t["depth"], 1e3 / statistics.median(t["tok_s"])))
    print(f"{'depth':>6} {'prefill ms':>11} {'decode ms':>11}")
    for (depth, a), (_, b) in zip(series["prefill"], series["decode"]):
        print(f"{depth:6} {a:11.3f} {b:11.3f}")
    for name, points in series.items():
        slope, offset, off = line_through(points)
        print(f"{name}: {offset:.3f} ms + {1e3 * slope:.3f} us for each token before; points within {100 * off:.0f} %")
    if opt.svg:
        with open(opt.svg, "w", encoding="utf-8") as f:
            f.write(svg(series))


if __name__ == "__main__":
    main()
