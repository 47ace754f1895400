/** Share of the samples that belong to the warm-up, in which code is compiled, and caches and pools fill. */
const WARM_UP_SHARE = 1 / 3;

/** Smallest number of samples: two for each third after the warm-up. */
const MIN_SAMPLES = 9;

/** Growth of a figure over a run. */
export interface Verdict {
  /** Medians of the first and the last third after the warm-up. */
  readonly first: number;
  readonly last: number;
  /** Largest allowed growth: the larger of a share of `first` and an absolute amount. More is a leak. */
  readonly allowed: number;
  readonly isFlat: boolean;
}

/**
 * Whether a figure stayed flat after the warm-up. A leak grows during the whole run, so it shows between the medians of
 * the first and the last third; outliers do not matter. A fall counts as flat.
 *
 * @param samples the figure at equal intervals over the whole run, oldest first
 * @param share allowed growth, such as 0.1 for ten per cent
 * @param allowance allowed growth in the figure's unit; the normal fluctuation of a healthy service is smaller
 * @throws RangeError for fewer than 9 samples
 */
export function judge(samples: readonly number[], share: number, allowance: number): Verdict {
  if (samples.length < MIN_SAMPLES) {
    throw new RangeError(`A verdict needs at least ${MIN_SAMPLES} samples, and there are ${samples.length}.`);
  }
  const warm = samples.slice(Math.ceil(samples.length * WARM_UP_SHARE));
  const third = Math.floor(warm.length / 3);
  const [first, last] = [median(warm.slice(0, third)), median(warm.slice(-third))];
  const allowed = Math.max(first * share, allowance);
  return { first, last, allowed, isFlat: last - first <= allowed };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}
