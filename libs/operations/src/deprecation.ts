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

/** The Reflect metadata keys of a handler's Deprecation and stability. */
export const DEPRECATION_METADATA = 'platform:deprecation';
export const STABILITY_METADATA = 'platform:stability';

/** The stability of an operation. Operations without `@Stability` are stable. */
export type StabilityLevel = 'experimental' | 'beta';

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
  return `This operation was removed on ${sunset.toISOString().slice(0, 10)}. ${replacement}`;
}

/** What `@Deprecated` and `@Stability` declare, and what it means for responses. */
export interface Announcement {
  readonly deprecation: Deprecation | undefined;
  readonly stability: StabilityLevel | undefined;
  /** The name of the header field of `@Stability`. */
  readonly stabilityField: string;
  /** The header fields of every response after the guards. */
  readonly fields: HeaderFields;
  /** The time in ms since 1970 from which the operation answers 410; Infinity for never. */
  readonly removedAt: number;
}

export function announcementOf(
  handler: object,
  operation: string,
  { afterSunset, product, publicBaseUrl }: DeprecationConfig,
): Announcement {
  const stability = Reflect.getMetadata(STABILITY_METADATA, handler) as StabilityLevel | undefined;
  const deprecation = Reflect.getMetadata(DEPRECATION_METADATA, handler) as Deprecation | undefined;
  const stabilityField = product.name.replace(/^./, (letter) => letter.toUpperCase()) + '-Stability';
  const fields: Record<string, string> = stability ? { [stabilityField]: stability } : {};
  if (deprecation === undefined) return { deprecation, stability, stabilityField, fields, removedAt: Infinity };
  const { since, sunset, successor } = deprecation;
  const page = `${rootUrlOf(publicBaseUrl)}/docs/deprecations#${operation}`;
  Object.assign(fields, {
    Deprecation: `@${Math.floor(since.getTime() / 1000)}`,
    Sunset: sunset.toUTCString(),
    Link: `<${publicBaseUrl}${successor}>; rel="successor-version", <${page}>; rel="deprecation"; type="text/html"`,
  });
  const removedAt = afterSunset === 'remove' ? sunset.getTime() : Infinity;
  return { deprecation, stability, stabilityField, fields, removedAt };
}

/** The 410 of an operation from `removedAt` on. */
export function operationRemoved({ deprecation, fields }: Pick<Announcement, 'deprecation' | 'fields'>): ApiError {
  return new ApiError(OPERATION_REMOVED, removalMessage(deprecation as Deprecation), fields);
}
