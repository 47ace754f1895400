/** Longest part of a name, in characters, that a typing error changes. */
const MAX_CHANGE = 2;

/** The known name that was probably meant: it differs in one place only; undefined if none does. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const typed = name.toLowerCase();
  return known.find((candidate) => changeBetween(typed, candidate.toLowerCase()) <= MAX_CHANGE);
}

/** The length of the longer text without the beginning and the end that both have in common. */
function changeBetween(one: string, other: string): number {
  const shorter = Math.min(one.length, other.length);
  let start = 0;
  while (start < shorter && one[start] === other[start]) start++;
  let end = 0;
  while (end < shorter - start && one.at(-1 - end) === other.at(-1 - end)) end++;
  return Math.max(one.length, other.length) - start - end;
}
