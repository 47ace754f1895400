/** By how much a figure may grow before it is a leak: the larger of a share of where it began and an absolute allowance. */
export interface Tolerance {
  /** 0.1 for ten per cent. */
  readonly share: number;
  /** In the unit of the figure. What comes and goes on a healthy service stays below it. */
  readonly allowance: number;
}

/** What became of a figure over a run. */
export interface Verdict {
  /** Median of the first third after the warm-up. */
  readonly first: number;
  /** Median of the last third. */
  readonly last: number;
  /** `last` less `first`; negative when the figure fell. */
  readonly growth: number;
  /** The most that it might have grown. */
  readonly allowed: number;
  readonly isFlat: boolean;
}

/** Share of the samples that belong to the warm-up: the compiler's work, caches and pools that fill once. */
export const WARM_UP_SHARE = 1 / 3;

/** Least samples of a run: two for each third of what is left after the warm-up. */
export const MIN_SAMPLES = 9;

/**
 * Tells whether a figure stayed flat after the warm-up. A leak grows for as long as the run goes on, so it shows between
 * the median of the first third and the median of the last one, whatever single samples do. Only growth counts.
 *
 * @param samples the figure at even intervals over the whole run, oldest first
 * @throws RangeError for fewer than `MIN_SAMPLES` samples, or one that is no finite number
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

/** The value in the middle; the mean of both when there are two of them. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[sorted.length / 2 - 1] ?? NaN) + upper) / 2;
}
