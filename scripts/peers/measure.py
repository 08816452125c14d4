"""Runs the programs that are compared, one at a time, and reads what ours writes into metrics.jsonl.

Notes how much of the machine other processes took meanwhile, since a loaded machine spoils a timing. Knows nothing of
models.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PEERS_PYTHON = ROOT / ".peers/bin/python"
PYTHON = str(PEERS_PYTHON if PEERS_PYTHON.exists() else sys.executable)
BUSY_CORES = 0.15  # of other processes, above which a timing is marked
SETTLING, STRETCH = 50, 10  # steps that are not timed, and how many of the others make one timing


@dataclass
class Ran:
    seconds: float
    peak_mib: float  # largest resident size
    minor_faults: int
    foreign_cores: float


def _busy_seconds():
    """Of all processes since boot; 0 where the system does not say."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    except OSError:
        return 0.0
    user, nice, system, _, _, interrupt, soft = (int(f) for f in fields[:7])
    return (user + nice + system + interrupt + soft) / os.sysconf("SC_CLK_TCK")


def run(command, threads):
    """Runs to the end in the repository's root; raises SystemExit with the output where the program fails."""
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    busy, begin = _busy_seconds(), time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            output.seek(0)
            text = output.read().decode(errors="replace")
            raise SystemExit(f"{shlex.join(command)}\n{text}ended with code {process.returncode}")
    seconds = time.perf_counter() - begin
    foreign = max(0.0, _busy_seconds() - busy - usage.ru_utime - usage.ru_stime) / seconds
    return Ran(seconds, usage.ru_maxrss / 1024, usage.ru_minflt, foreign)


def note(name, text, ran):
    """A line a run, so that one sees where it stands, and which timing not to trust."""
    if ran.foreign_cores > BUSY_CORES:
        text += f"; others used {ran.foreign_cores:.1f} cores, do not trust the time"
    print(f"  {name}: {text}", file=sys.stderr, flush=True)


def quell_program(path):
    """An absolute path, or SystemExit with what to do."""
    program = Path(path).resolve() if path else ROOT / "build/release/quell"
    if not program.is_file():
        raise SystemExit(f"{program}: is not there; build it with scripts/build release quell")
    return str(program)


def rows(folder):
    return [json.loads(line) for line in (Path(folder) / "metrics.jsonl").read_text().splitlines()]


def step_seconds(metrics, every, skip, items="tokens"):
    """Seconds a step in stretches of `every` steps that begin after step `skip`. Evaluations are left out.

    Each row's tokens_per_s (or images_per_s) holds since the row before; rows also stand where only attention was
    measured, so a stretch may be made of several.
    """
    result, elapsed, steps, previous = [], 0.0, 0, 1
    for row in metrics:
        if f"{items}_per_s" not in row:
            continue
        count, per_step = row["step"] - previous, row[items] / row["step"]
        previous = row["step"]
        if row["step"] - count < skip:
            continue
        elapsed += count * per_step / row[f"{items}_per_s"]
        steps += count
        if steps >= every:
            result.append(elapsed / steps)
            elapsed, steps = 0.0, 0
    return result


def stretches(seconds):
    """The same of a program that has the seconds of every step: all of them where it made too few to settle."""
    steady = seconds[SETTLING:] if len(seconds) >= SETTLING + STRETCH else seconds
    size = min(STRETCH, len(steady))
    return [sum(steady[i : i + size]) / size for i in range(0, len(steady) - size + 1, size)]


def table(header, lines):
    """Plain text; the first column to the left, numbers to the right."""
    widths = [max(len(line[i]) for line in [header, *lines]) for i in range(len(header))]
    for line in [header, *lines]:
        print("  ".join(c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(line, widths))).rstrip())
