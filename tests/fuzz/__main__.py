"""Runs random cases for some seconds, or one seed or file, and makes small ones of those that fail."""

from __future__ import annotations

import argparse
import itertools
import signal
import sys
import time
from pathlib import Path

from .cases import PATHS, random_case, read
from .differences import OPEN, Difference
from .play import Bench, summary
from .shrink import shrunk


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, help="the first one; otherwise one by the clock")
    parser.add_argument("--only", action="store_true", help="nothing but that seed")
    parser.add_argument("--paths", default="process", help=f"with a comma between, of {', '.join(PATHS)}")
    parser.add_argument("--file", type=Path, nargs="*", help="play these files instead")
    parser.add_argument("--out", type=Path, default=Path("fuzz-failures"), help="where failures are written")
    parser.add_argument("--known", default=[], nargs="*", help="patterns of failures that are only counted")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--shrink-seconds", type=float, default=120, help="for each failure")
    arguments = parser.parse_args()
    # So that the servers are ended too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    first = arguments.seed if arguments.seed is not None else int(time.time())
    paths = [PATHS[name] for name in arguments.paths.split(",")]
    if arguments.file:
        cases = iter([read(path) for path in arguments.file])
    else:
        seeds = [first] if arguments.only else itertools.count(first)
        cases = (random_case(seed, path) for seed in seeds for path in paths)
    deadline = time.monotonic() + arguments.seconds
    known = OPEN + tuple(Difference(pattern, "told on the command line") for pattern in arguments.known)
    bench, failures = Bench(known=known), 0
    try:
        for case in cases:
            bench.seen["cases"] += 1
            failure = bench.play(case)
            if failure:
                failures += 1
                print(f"\n{case.title}: {failure}", flush=True)
                if not arguments.no_shrink:
                    case, failure = shrunk(bench, case, failure, arguments.shrink_seconds)
                    print(f"\nis, smaller:\n{case.text()}\n{failure}", flush=True)
                arguments.out.mkdir(exist_ok=True)
                notes = "".join(f"-- {line}\n" for line in str(failure).splitlines())
                (arguments.out / f"{case.title}.sql").write_text(case.text() + "\n" + notes)
            if not arguments.file and time.monotonic() > deadline:
                break
    finally:
        bench.close()
        print(summary(bench.seen.most_common()))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
