/** Allowed growth of a figure: the larger of a share of its first value and an absolute amount. More is a leak. */
export interface Tolerance {
  /** Such as 0.1 for ten per cent. */
  readonly share: number;
  /** In the figure's unit. The normal fluctuation of a healthy service is smaller. */
  readonly allowance: number;
}

/** Growth of a figure over a run. */
export interface Verdict {
  /** Median of the first third after the warm-up. */
  readonly first: number;
  /** Median of the last third. */
  readonly last: number;
  /** `last` minus `first`; negative when the figure fell. */
  readonly growth: number;
  /** Largest allowed growth. */
  readonly allowed: number;
  readonly isFlat: boolean;
}

/** Share of the samples that belong to the warm-up, in which code is compiled, and caches and pools fill. */
export const WARM_UP_SHARE = 1 / 3;

/** Smallest number of samples: two for each third after the warm-up. */
export const MIN_SAMPLES = 9;

/**
 * Whether a figure stayed flat after the warm-up. A leak grows during the whole run, so it shows between the medians of
 * the first and the last third; outliers do not matter. A fall counts as flat.
 *
 * @param samples the figure at equal intervals over the whole run, oldest first
 * @throws RangeError for fewer than `MIN_SAMPLES` samples, or one that is not a finite number
 */
export function judge(samples: readonly number[], { share, allowance }: Tolerance): Verdict {
  if (samples.length < MIN_SAMPLES) {
    throw new RangeError(`A verdict needs at least ${MIN_SAMPLES} samples, and there are ${samples.length}.`);
  }
  if (!samples.every(Number.isFinite)) {
    throw new RangeError(`Every sample must be a finite number: ${samples.join(', ')}`);
  }
  const warm = samples.slice(Math.ceil(samples.length * WARM_UP_SHARE));
  const third = Math.floor(warm.length / 3);
  const first = median(warm.slice(0, third));
  const last = median(warm.slice(-third));
  const allowed = Math.max(first * share, allowance);
  return { first, last, growth: last - first, allowed, isFlat: last - first <= allowed };
}

/** The middle value; of an even number of values, the mean of the middle two. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[sorted.length / 2 - 1] ?? NaN) + upper) / 2;
}
