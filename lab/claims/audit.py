"""The auditor at up to 10⁸ samples per value, on sound and on broken mechanisms."""

from functools import lru_cache

from claims.claim import NOISE, Page
from robustness.audits.auditor_trial import SOUND, Tried, attacked, caught
from robustness.audits.faulty_mechanisms import BROKEN

SAMPLES = 100_000_000
PAIRS = 4
TRIED = (10_000, 100_000, 1_000_000, 10_000_000)


@lru_cache(maxsize=1)
def tried() -> tuple[Tried, ...]:
    done = tuple(attacked(name, SAMPLES, PAIRS) for name in SOUND)
    for one in done:
        print(f"{one.name}: {one.nearest:.4f} of exact, {len(one.findings)} findings")
    return done


@lru_cache(maxsize=1)
def fewest_samples() -> dict[str, int]:
    """Return the fewest samples per value, of those tried, that reveal each broken mechanism."""
    found: dict[str, int] = {}
    for samples in TRIED:
        for name in BROKEN:
            if name not in found and caught(name, samples):
                found[name] = samples
    for name in BROKEN:
        print(f"{name}: {found.get(name, 'not caught')}")
    return found


HERE = Page("docs/reliability.md, Privacy, attacked")
COVERS = (*NOISE, "opboost.promises", "opboost.auditing")
CLAIMS = [
    HERE.equals(
        "sound mechanisms accused at 10⁸ samples per value",
        0,
        lambda: sum(bool(one.findings) for one in tried()),
    ),
    HERE.at_least(
        "least share of the exact loss that is proved",
        0.98,
        lambda: min(one.nearest for one in tried()),
    ),
    *(
        HERE.at_least(
            f"broken mechanisms caught at {n:,} samples per value",
            least,
            lambda n=n: sum(fewest <= n for fewest in fewest_samples().values()),
        )
        for n, least in zip(TRIED, (12, 14, 16, 18), strict=True)
    ),
]
