/** One link of a `Link` field (RFC 8288). */
export interface Link {
  readonly target: string;
  /** The relation types, in lower case. */
  readonly relations: readonly string[];
}

const PARAMETER = /;\s*([\w!#$%&'*+.^`|~-]+)\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",;]*)))?/g;
const LINK = new RegExp(`<([^>]*)>((?:\\s*${PARAMETER.source})*)`, 'g');

/** The links of a `Link` field, in their order. Invalid parts are skipped. */
export function parseLinks(field: string | null): Link[] {
  return [...(field ?? '').matchAll(LINK)].map(([, target = '', parameters = '']) => {
    const relation = [...parameters.matchAll(PARAMETER)].find(([, name]) => name?.toLowerCase() === 'rel');
    const types = relation?.[2] ?? relation?.[3] ?? '';
    return { target, relations: types.toLowerCase().split(/\s+/).filter(Boolean) };
  });
}

/** The target of the first link of a relation type, or undefined. */
export function linkTarget(field: string | null, relation: string): string | undefined {
  return parseLinks(field).find(({ relations }) => relations.includes(relation))?.target;
}

/**
 * The time to wait that a `Retry-After` field asks for, in ms: seconds or an HTTP date (RFC 9110, section 10.2.3).
 * Undefined when the field is absent or says neither.
 *
 * @param now the time, in ms since 1970
 */
export function parseRetryAfter(field: string | null, now: number): number | undefined {
  const text = field?.trim() ?? '';
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const date = parseHttpDate(text);
  return date && Math.max(0, date.getTime() - now);
}

/** An HTTP date such as that of `Sunset` (RFC 9110, section 5.6.7); undefined when it is none. */
export function parseHttpDate(field: string | null): Date | undefined {
  if (field === null || !/^[A-Za-z]{3,9},? /.test(field)) return undefined;
  const time = Date.parse(field);
  return Number.isNaN(time) ? undefined : new Date(time);
}

/** The date of a `Deprecation` field, `@` and seconds since 1970 (RFC 9745); undefined when it is none. */
export function parseDeprecation(field: string | null): Date | undefined {
  const seconds = /^@(-?\d{1,12})$/.exec(field ?? '')?.[1];
  return seconds === undefined ? undefined : new Date(Number(seconds) * 1000);
}
