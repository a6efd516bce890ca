"""Every scenario with every fault at every call: ``PYTHONPATH=tests python -m attacks.faults.run [--scenario NAME]``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from attacks.faults import harness
from attacks.faults.scenarios import SCENARIOS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", action="append", help="only this one; may be repeated")
    parser.add_argument("--fault", action="append", help="only this kind of fault; may be repeated")
    parser.add_argument("--call", action="append", help="only this kind of call, such as fsync; may be repeated")
    parser.add_argument("--most", type=int, help="only so many trials of each scenario")
    parser.add_argument("--trace", action="store_true", help="print the calls of a run without a fault, and try nothing")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    given = parser.parse_args()
    if harness.FOLDER not in os.environ:
        with harness.new_root() as root:
            return harness.start(Path(root).resolve(), "attacks.faults.run", sys.argv[1:], show=True).returncode
    root = Path(os.environ[harness.FOLDER]).parent
    chosen = [scenario for scenario in SCENARIOS if given.scenario is None or scenario.name in given.scenario]
    faults = [fault for fault in harness.FAULTS if given.fault is None or fault.name in given.fault]
    results = []
    for scenario in chosen:
        if given.trace:
            print(f"== {scenario.name}")
            print("\n".join("  ".join(line) for line in harness.know(scenario, root).calls))
            continue
        results.append(harness.try_all(scenario, root, faults, given.call, given.most))
        show(results[-1])
    if given.json:
        given.json.write_text(json.dumps([asdict(result) for result in results]))
    return int(any(result.findings for result in results))


def show(result: harness.Result) -> None:
    about = f"{result.calls} calls, {result.trials} faults, {len(result.findings)} findings, {result.seconds:.0f} s"
    print(f"{result.scenario}: {about}", flush=True)
    for finding in result.findings:
        print(f"    {finding}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
