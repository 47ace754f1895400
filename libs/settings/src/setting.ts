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
  /** The name of a setting without which this one may only have its default. */
  readonly needs?: string;
  /** Whether an empty value is refused: the default would store data elsewhere, or share nothing, in silence. */
  readonly neverEmpty?: true;
  /** The value of the variable; the default if it is not set. Throws WrongValue. */
  readonly read: (text: string | undefined) => T;
}

/** Settings, by the members that have their values. Each library declares its own, beside what they set. */
export type Settings = Readonly<Record<string, Setting<unknown>>>;

/** The values of settings. */
export type SettingsOf<S extends Settings> = { readonly [Member in keyof S]: ReturnType<S[Member]['read']> };

/** A limit beside the settings: nobody needs another value, except tests. */
export function limit<T>(value: T): Setting<T> {
  return { name: '', shown: '', accepts: '', about: '', read: () => value };
}

/** An integer with a default and a range. */
export function integer(
  name: string,
  fallback: number,
  [minimum, maximum]: readonly [number, number],
  about: string,
): Setting<number> {
  return {
    ...{ name, shown: String(fallback), accepts: `${minimum} to ${maximum}`, about },
    read: (text) => {
      if (text === undefined) return fallback;
      const number = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
      if (number >= minimum && number <= maximum) return number;
      throw new WrongValue(`an integer between ${minimum} and ${maximum}`);
    },
  };
}

/** A time in ms. Less than 0.1 s would fail ordinary requests, and more than 10 minutes is usually a wrong unit. */
export function milliseconds(name: string, fallback: number, about: string): Setting<number> {
  return integer(name, fallback, [100, 600_000], about);
}

/** One of two words, for true and for false. */
export function flag<D extends boolean | undefined>(
  name: string,
  [yes, no]: readonly [string, string],
  fallback: D,
  about: string,
  shown = '',
): Setting<boolean | D> {
  const parse = (text: string): boolean | undefined => (text === yes ? true : text === no ? false : undefined);
  return optional(name, `one of ${yes}, ${no}`, about, parse, fallback, shown);
}

/** One of some words. */
export function choice<const T extends string, D extends T | undefined>(
  name: string,
  choices: readonly T[],
  fallback: D,
  about: string,
): Setting<T | D> {
  const parse = (text: string): T | undefined => choices.find((known) => known === text);
  return optional(name, `one of ${choices.join(', ')}`, about, parse, fallback, fallback);
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

/** For `optional`: values separated by commas; undefined if `parse` refuses one. */
export function parseList(parse: (item: string) => string | undefined): (text: string) => string[] | undefined {
  return (text) => {
    const items = text.split(',').flatMap((item) => item.trim() || []);
    const values = items.flatMap((item) => parse(item) ?? []);
    return values.length === items.length ? values : undefined;
  };
}

/** A URI in which each % that begins no escape is escaped, because it is meant as it stands; undefined if an escape is not UTF-8. */
export function withEscapes(uri: string): string | undefined {
  const escaped = uri.replace(/%(?![0-9a-f]{2})/gi, '%25');
  try {
    decodeURIComponent(escaped);
    return escaped;
  } catch {
    return undefined;
  }
}
