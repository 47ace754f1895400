/** The variables of an environment. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A setting has a wrong value. The message says what it must be, but not the value, which may be a secret. */
export class WrongValue extends Error {}

/** One setting: the only place that has its name, default, range and description. */
export interface Setting<T> {
  /** The name of the variable. */
  readonly name: string;
  /** The default, as `.env.example` shows it; empty if there is none. */
  readonly shown: string;
  /** The accepted values, for the table of settings. */
  readonly accepts: string;
  /** What the setting does, with its unit. Sentences for operators. */
  readonly about: string;
  /**
   * The value of the variable; the default if it is not set.
   *
   * @throws WrongValue
   */
  read(text: string | undefined): T;
}

/** An integer with a default and a range. */
export function integer(
  name: string,
  fallback: number,
  range: readonly [number, number],
  about: string,
): Setting<number> {
  const [minimum, maximum] = range;
  const setting = { name, shown: String(fallback), accepts: `${minimum} to ${maximum}`, about };
  return {
    ...setting,
    read: (text) => {
      if (text === undefined) return fallback;
      const number = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
      if (number >= minimum && number <= maximum) return number;
      throw new WrongValue(`an integer between ${minimum} and ${maximum}`);
    },
  };
}

/** One of some words. */
export function choice<const T extends string, D extends T | undefined>(
  name: string,
  choices: readonly T[],
  fallback: D,
  about: string,
): Setting<T | D> {
  const parse = (text: string): T | undefined => choices.find((known) => known === text);
  return optional(name, 'one of ' + choices.join(', '), about, parse, fallback, fallback);
}

/** A text that `parse` turns into a value; undefined if it is not set, unless there is a default. */
export function optional<T, D = undefined>(
  name: string,
  accepts: string,
  about: string,
  parse: (text: string) => T | undefined,
  fallback?: D,
  shown = '',
): Setting<T | D> {
  return {
    ...{ name, shown, accepts, about },
    read: (text) => {
      if (text === undefined) return fallback as D;
      const value = parse(text);
      if (value === undefined) throw new WrongValue(accepts);
      return value;
    },
  };
}

/** For `optional`: values separated by commas; undefined if `isValid` refuses one. */
export function parseList(isValid: (item: string) => boolean): (text: string) => string[] | undefined {
  return (text) => {
    const items = text
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== '');
    return items.every(isValid) ? items : undefined;
  };
}
