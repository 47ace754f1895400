import { SetMetadata } from '@nestjs/common';
import { type Deprecation, DEPRECATION_METADATA, STABILITY_METADATA, type StabilityLevel } from './deprecation.js';

/**
 * Announces the end of an operation. This one declaration adds the header fields `Deprecation` (RFC 9745), `Sunset`
 * (RFC 8594) and `Link` to every response but 401 and 403; 410 from the sunset on, unless AFTER_SUNSET is `serve`; and
 * the entries in the OpenAPI document and on the page of deprecations.
 *
 * @example `@Deprecated({ since: '2026-11-20', sunset: '2030-12-05', successor: '/visits', replacement: 'listVisits' })`
 * @throws Error at start when a time is no ISO 8601 time, the sunset is not after the deprecation, or the successor is no path
 */
export function Deprecated(
  announcement: Pick<Deprecation, 'successor' | 'replacement'> & {
    /** When the operation was deprecated, in ISO 8601. */
    since: string;
    /** When the operation ends, in ISO 8601. */
    sunset: string;
  },
): MethodDecorator {
  const { since, sunset, successor } = announcement;
  const deprecation: Deprecation = { ...announcement, since: new Date(since), sunset: new Date(sunset) };
  if (!(deprecation.sunset.getTime() > deprecation.since.getTime())) {
    throw new Error(`@Deprecated: the sunset '${sunset}' must be a time after since '${since}', both in ISO 8601.`);
  }
  // The successor becomes the target of a Link, and no client can follow '/things/{thingId}'.
  if (!/^\/[^{}\s]*$/.test(successor)) {
    throw new Error(
      `@Deprecated: the successor '${successor}' must be a path that starts with '/', below the base URL, without parameters in braces.`,
    );
  }
  return SetMetadata(DEPRECATION_METADATA, deprecation);
}

/**
 * Marks an operation whose contract may change: in the document, and by `<Product>-Stability` on responses but 401 and 403.
 *
 * @example `@Post() @Stability('beta') recordVisit(@Body() visit: NewVisit): Promise<Visit>`
 */
export function Stability(level: StabilityLevel): MethodDecorator {
  return SetMetadata(STABILITY_METADATA, level);
}
