export const OPTIONAL: readonly string[];
export function changesOf(libraries: readonly string[]): ReadonlyMap<string, string | undefined>;
