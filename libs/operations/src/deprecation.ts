import { ApiError, type HeaderFields, OPERATION_REMOVED } from '#errors';
import { choice, type Config, rootUrlOf, type SettingsOf } from '#settings';

export const DEPRECATION_SETTINGS = {
  afterSunset: choice(
    'AFTER_SUNSET',
    ['remove', 'serve'],
    'remove',
    'What a deprecated operation does after its sunset: remove (410) or serve (continue).',
  ),
};

export type DeprecationConfig = Config & SettingsOf<typeof DEPRECATION_SETTINGS>;

/** The metadata key of a handler's Deprecation. */
export const DEPRECATION_METADATA = 'platform:deprecation';

/** The announced end of an operation. */
export interface Deprecation {
  /** The time from which clients should no longer use the operation. */
  readonly since: Date;
  /** The time from which the operation may be removed. */
  readonly sunset: Date;
  /** The path below the version segment to call instead, such as `/orders`. */
  readonly successor: string;
  /** What clients should do instead, in one to three sentences: for the document, the page of deprecations and the 410. */
  readonly replacement: string;
}

/** The message of the 410 after the sunset. */
export function removalMessage({ sunset, replacement }: Deprecation): string {
  return `This operation was removed on ${isoDate(sunset)}. ${replacement}`;
}

/** The day of a time in UTC, as `2027-03-01`. */
export function isoDate(time: Date): string {
  return time.toISOString().slice(0, 10);
}

/** What `@Deprecated` declares, and what it means for responses. */
export interface Announcement {
  readonly deprecation: Deprecation | undefined;
  /** The header fields of every response after the guards. */
  readonly fields: HeaderFields;
  /** The time in ms since 1970 from which the operation answers 410; Infinity for never. */
  readonly removedAt: number;
}

export function announcementOf(
  handler: object,
  operation: string,
  { afterSunset, publicBaseUrl }: DeprecationConfig,
): Announcement {
  const deprecation = Reflect.getMetadata(DEPRECATION_METADATA, handler) as Deprecation | undefined;
  if (deprecation === undefined) return { deprecation, fields: {}, removedAt: Infinity };
  const { since, sunset, successor } = deprecation;
  const page = `${rootUrlOf(publicBaseUrl)}/docs/deprecations#${operation}`;
  const fields = {
    Deprecation: `@${Math.floor(since.getTime() / 1000)}`,
    Sunset: sunset.toUTCString(),
    Link: `<${publicBaseUrl}${successor}>; rel="successor-version", <${page}>; rel="deprecation"; type="text/html"`,
  };
  return { deprecation, fields, removedAt: afterSunset === 'remove' ? sunset.getTime() : Infinity };
}

/** The 410 of an operation from `removedAt` on. */
export function operationRemoved({ deprecation, fields }: Pick<Announcement, 'deprecation' | 'fields'>): ApiError {
  return new ApiError(OPERATION_REMOVED, removalMessage(deprecation as Deprecation), fields);
}
