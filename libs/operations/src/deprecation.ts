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
  /** The path below the version segment to call instead, such as `/orders`, without parameters: it is the target of a `Link`. */
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

/** The header fields of every response of a deprecated operation after the guards. */
export function deprecationFields(
  { since, sunset, successor }: Deprecation,
  operation: string,
  { publicBaseUrl }: Config,
): HeaderFields {
  const page = `${rootUrlOf(publicBaseUrl)}/docs/deprecations#${operation}`;
  return {
    Deprecation: `@${Math.floor(since.getTime() / 1000)}`,
    Sunset: sunset.toUTCString(),
    Link: `<${publicBaseUrl}${successor}>; rel="successor-version", <${page}>; rel="deprecation"; type="text/html"`,
  };
}

/** The 410 of an operation from `removedAt` on. */
export function operationRemoved(of: { deprecation: Deprecation | undefined; fields: HeaderFields }): ApiError {
  return new ApiError(OPERATION_REMOVED, removalMessage(of.deprecation as Deprecation), of.fields);
}
