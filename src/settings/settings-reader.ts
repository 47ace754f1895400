import { StartupError } from '../platform/errors/startup-error.js';

/** The variables of an environment. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the values of settings and collects their faults. A value that is empty or only white space counts as not set.
 * For a wrong value the fallback is returned; `assertValid`, called last, throws for all of them.
 */
export class SettingsReader {
  private readonly faults: string[] = [];

  constructor(private readonly environment: Environment) {}

  /** @throws StartupError that names each wrong setting and what it must be, but not its value, which may be a secret */
  assertValid(): void {
    if (this.faults.length === 0) return;
    const faults = [...new Set(this.faults)].join('; ');
    throw new StartupError(`Wrong settings: ${faults}. .env.example describes every setting.`);
  }

  text(name: string): string | undefined {
    return this.environment[name]?.trim() || undefined;
  }

  /** Adds a fault, in the words of `sentence`. */
  fault(sentence: string): void {
    this.faults.push(sentence);
  }

  /** Adds the fault "<name> must be <expected>", and returns the fallback. */
  reject<T>(name: string, expected: string, fallback: T): T {
    this.fault(`${name} must be ${expected}`);
    return fallback;
  }

  integer(name: string, fallback: number, minimum: number, maximum: number): number {
    const value = this.text(name);
    if (value === undefined) return fallback;
    const number = /^\d{1,15}$/.test(value) ? Number(value) : NaN;
    return number >= minimum && number <= maximum
      ? number
      : this.reject(name, `an integer between ${minimum} and ${maximum}`, fallback);
  }

  /** A number from 0 to 1. The fallback is 1. */
  ratio(name: string): number {
    const value = this.text(name) ?? '1';
    const isRatio = /^\d*\.?\d+$/.test(value) && Number(value) <= 1;
    return isRatio ? Number(value) : this.reject(name, 'a number from 0 to 1', 1);
  }

  choice<T extends string>(name: string, fallback: T, choices: readonly T[]): T {
    const value = this.text(name);
    if (value === undefined) return fallback;
    return choices.find((known) => known === value) ?? this.reject(name, `one of ${choices.join(', ')}`, fallback);
  }

  isTrue(name: string, fallback: boolean): boolean {
    return this.choice(name, fallback ? 'true' : 'false', ['true', 'false']) === 'true';
  }

  /** Values separated by commas. */
  list(name: string): string[] {
    return (this.text(name) ?? '')
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== '');
  }

  /** Pairs such as `key=value,key2=value2`, percent-encoded where they need it (W3C Baggage, without properties). */
  pairs(name: string): Record<string, string> {
    const pairs = this.list(name).map(pairOf);
    return pairs.every((pair) => pair !== undefined)
      ? Object.fromEntries(pairs)
      : this.reject(name, 'pairs such as key=value,key2=value2, percent-encoded where they need it', {});
  }
}

/** A key that is a token of RFC 9110, and a value. */
const PAIR = /^([!#-'*+.^`|~\w-]+)[ \t]*=[ \t]*([^\s";,\\]*)$/;

function pairOf(text: string): [key: string, value: string] | undefined {
  const [, key, value] = PAIR.exec(text) ?? [];
  if (key === undefined || value === undefined) return undefined;
  try {
    return [key, decodeURIComponent(value)];
  } catch {
    return undefined;
  }
}
