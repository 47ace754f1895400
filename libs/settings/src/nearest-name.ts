/** Longest part of a name, in characters, that a typing error changes. */
const MAX_CHANGE = 2;

/** The known name that was probably meant: it differs in one place only, and least of all; undefined if none does. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const typed = name.toLowerCase();
  const changes = known.map((candidate) => changeBetween(typed, candidate.toLowerCase()));
  const least = Math.min(...changes);
  return least <= MAX_CHANGE ? known[changes.indexOf(least)] : undefined;
}

/**
 * Whether a name is another one with a single slip of the keyboard: the case of letters, or one character that is missing,
 * added or wrong, or two neighbours that are swapped.
 */
export function isSlip(name: string, known: string): boolean {
  const [typed, meant] = [name.toLowerCase(), known.toLowerCase()];
  const change = changeBetween(typed, meant);
  const letters = (text: string): string => [...text].sort().join('');
  return change <= 1 || (change === 2 && letters(typed) === letters(meant));
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
