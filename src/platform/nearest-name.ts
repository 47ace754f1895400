/** Largest edit distance of a typing error. */
const MAX_DISTANCE = 2;

/** The known name that was probably meant; undefined if none is similar. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  let nearest: string | undefined;
  let shortest = MAX_DISTANCE + 1;
  for (const candidate of known) {
    // Skips names of other lengths, so that a very long unknown name costs nothing.
    const isNear = Math.abs(candidate.length - name.length) <= MAX_DISTANCE;
    const distance = isNear ? levenshteinDistance(name.toLowerCase(), candidate.toLowerCase()) : Infinity;
    if (distance < shortest) {
      shortest = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

function levenshteinDistance(left: string, right: string): number {
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let row = 1; row <= left.length; row++) {
    const current = [row];
    for (let column = 1; column <= right.length; column++) {
      const replaced = (previous[column - 1] as number) + (left[row - 1] === right[column - 1] ? 0 : 1);
      current.push(Math.min(replaced, (previous[column] as number) + 1, (current[column - 1] as number) + 1));
    }
    previous = current;
  }
  return previous[right.length] as number;
}
