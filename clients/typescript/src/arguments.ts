import { PetStoreError, reasonOf } from './errors.js';

/** What a value of the caller must be. */
export interface Rule {
  /** Completes the sentence "<name> must be …". */
  readonly text: string;
  readonly isMet: (value: unknown) => boolean;
  /** Keeps texts of the caller out of messages: they may be secrets. */
  readonly isSecret?: boolean;
}

/** Timers with a longer time end at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const TIME_LIMIT: Rule = {
  text: `a number of ms from 1 to ${LONGEST_TIMER_MS} (24 days)`,
  isMet: (value) => typeof value === 'number' && value >= 1 && value <= LONGEST_TIMER_MS,
};
export const COUNT: Rule = {
  text: 'an integer of at least 1',
  isMet: (value) => Number.isSafeInteger(value) && (value as number) >= 1,
};
export const FUNCTION: Rule = { text: 'a function', isMet: (value) => typeof value === 'function' };
export const TEXT: Rule = {
  text: 'a string that is not empty',
  isMet: (value) => typeof value === 'string' && value !== '',
};
export const IDEMPOTENCY_KEY: Rule = {
  text: 'a string of 1 to 255 characters of printable ASCII',
  isMet: (value) => typeof value === 'string' && /^[\x20-\x7e]{1,255}$/.test(value),
};
export const ENTITY_TAG: Rule = {
  text: 'the etag of an earlier response',
  isMet: (value) => typeof value === 'string' && /^[\x20-\x7e]+$/.test(value),
};
export const SIGNAL: Rule = {
  text: 'an AbortSignal',
  // Not `instanceof`: browsers' frames and test environments have classes of their own.
  isMet: (value) =>
    typeof value === 'object' &&
    value !== null &&
    ['aborted', 'addEventListener', 'removeEventListener'].every((member) => member in value),
};
export const API_KEY: Rule = {
  text: 'a string of printable ASCII without spaces and line breaks',
  isMet: (value) => typeof value === 'string' && /^[\x21-\x7e]+$/.test(value),
  isSecret: true,
};
export const BASE_URL: Rule = {
  text:
    'an address that begins with http:// or https://, such as https://petstore.example/v1, without user name, ' +
    'password, query and fragment',
  isMet: isBaseUrl,
  isSecret: true,
};

function isBaseUrl(value: unknown): boolean {
  if (typeof value !== 'string') return false;
  try {
    const { protocol, username, password, search, hash } = new URL(value);
    return /^https?:$/.test(protocol) && username + password + search + hash === '';
  } catch {
    return false;
  }
}

export function optional({ isMet, ...rule }: Rule): Rule {
  return { ...rule, isMet: (value) => value === undefined || isMet(value) };
}

/**
 * Reads each named member of an object of the caller once, and checks it.
 *
 * @throws PetStoreError `invalid_argument`, which names the member and says what would be right; also for a member without a rule
 */
export function readMembers<T extends object>(name: string, object: T, rules: { readonly [K in keyof T]-?: Rule }): T {
  if (typeof object !== 'object' || object === null || Array.isArray(object)) {
    throw invalidArgument(name, { text: 'an object' }, object);
  }
  const unknown = attempt(`${name} cannot be read`, () => Object.keys(object)).find((member) => !(member in rules));
  if (unknown !== undefined) {
    const message = `${name} has no member ${shown(unknown)}, only ${Object.keys(rules).join(', ')}`;
    throw new PetStoreError({ code: 'invalid_argument', message });
  }
  const members = Object.entries<Rule>(rules).map(([member, rule]) => {
    const value = attempt(`${name}.${member} cannot be read`, () => (object as Record<string, unknown>)[member]);
    check(member, rule, value);
    return [member, value];
  });
  return Object.fromEntries(members) as T;
}

/** @throws PetStoreError `invalid_argument` when the value does not meet the rule */
export function check(name: string, rule: Rule, value: unknown): void {
  if (!attempt(`${name} cannot be read`, () => rule.isMet(value))) throw invalidArgument(name, rule, value);
}

/** @throws PetStoreError `invalid_argument` when the task, which runs code of the caller, throws */
export function attempt<T>(failure: string, task: () => T): T {
  try {
    return task();
  } catch (cause) {
    if (cause instanceof PetStoreError) throw cause;
    throw new PetStoreError({ code: 'invalid_argument', message: `${failure}: ${reasonOf(cause)}`, cause });
  }
}

export function invalidArgument(name: string, { text, isSecret }: Omit<Rule, 'isMet'>, value: unknown): PetStoreError {
  const given = typeof value === 'string' && isSecret && value !== '' ? '' : `, not ${shown(value)}`;
  return new PetStoreError({ code: 'invalid_argument', message: `${name} must be ${text}${given}` });
}

function shown(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return value === '' ? 'an empty string' : JSON.stringify(value.length > 50 ? `${value.slice(0, 50)}…` : value);
    case 'object':
      return value === null ? 'null' : Array.isArray(value) ? 'an array' : 'an object';
    case 'function':
    case 'symbol':
      return `a ${typeof value}`;
    default:
      // A bigint may have a million digits.
      return String(value).slice(0, 50);
  }
}
