import { isPlain } from './json-scan.js';

/** An object or array, with its members or items. */
export type Holder = Record<string | number, unknown>;

/** Makes the constructor of a derived class add its private fields to an object that exists. */
class Existing {
  constructor(object: object) {
    return object;
  }
}

/** The source texts of numbers, in a private field of their object or array: a WeakMap takes ten times as long. */
class Numerals extends Existing {
  readonly #numerals = new Map<string | number, string>();

  static of(holder: object): Map<string | number, string> | undefined {
    return #numerals in holder ? holder.#numerals : undefined;
  }
}

/**
 * The source text of a number of a body that `readJson` has read. Undefined if the double is exact, no integer, or larger
 * than any int64, or if code of a module has put another number in its place.
 */
export function numeralOf(holder: object, key: string | number): string | undefined {
  const numeral = Numerals.of(holder)?.get(key);
  return numeral !== undefined && Number(numeral) === (holder as Holder)[key] ? numeral : undefined;
}

/** Whether all source texts of an array belong to its items. They do not once code of a module has moved or removed some. */
export function hasOwnNumerals(array: readonly unknown[]): boolean {
  const numerals = Numerals.of(array) ?? new Map<number, string>();
  return [...numerals].every(([index, numeral]) => Number(numeral) === array[index as number]);
}

/** Keeps the source text of a number for {@link numeralOf}, if it is needed. */
export function keepNumeral(holder: Holder, key: string | number, numeral: string): void {
  const value = holder[key] as number;
  if (isPlain(numeral) || !Number.isInteger(value) || Math.abs(value) > 2 ** 63) return;
  Numerals.of(Numerals.of(holder) ? holder : new Numerals(holder))?.set(key, numeral);
}
