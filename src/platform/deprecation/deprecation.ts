import type { Request, Response } from 'express';
import type { Config } from '../../config.js';
import { ApiError } from '../errors/api-error.js';
import { OPERATION_REMOVED } from '../errors/error-catalogue.js';

/** The Reflect metadata key of a handler's Deprecation. */
export const DEPRECATION_METADATA = 'petstore:deprecation';

/** The announced end of an operation. */
export interface Deprecation {
  /** The time from which clients should no longer use the operation. */
  readonly since: Date;
  /** The time from which the operation may be removed. */
  readonly sunset: Date;
  /** The path below the version segment to call instead, such as `/orders`. */
  readonly successor: string;
  /** One sentence for the documents that says what clients should call instead. */
  readonly replacement: string;
}

/** The message of the 410 after the sunset. */
export function removalMessage({ sunset, replacement }: Deprecation): string {
  return `This operation was removed on ${sunset.toISOString().slice(0, 10)}. ${replacement}`;
}

/** Adds the header fields of `@Deprecated` to the answer of a request. */
export type Announce = (request: Request, response: Response) => void;

/**
 * Makes what announces the end of a handler; undefined for a handler without `@Deprecated`.
 *
 * @param operation the name of the handler's operation
 * @returns throws ApiError OPERATION_REMOVED from the sunset on, unless AFTER_SUNSET is `serve`
 */
export function announcementOf(
  handler: object,
  operation: string | undefined,
  { publicBaseUrl, afterSunset }: Config,
): Announce | undefined {
  const deprecation = Reflect.getMetadata(DEPRECATION_METADATA, handler) as Deprecation | undefined;
  if (!deprecation) return undefined;
  const { since, sunset, successor } = deprecation;
  const page = `${new URL(publicBaseUrl).origin}/docs/deprecations#${operation}`;
  const deprecationField = `@${Math.floor(since.getTime() / 1000)}`;
  const sunsetField = sunset.toUTCString();
  const links = `<${publicBaseUrl}${successor}>; rel="successor-version", <${page}>; rel="deprecation"; type="text/html"`;
  const end = afterSunset === 'remove' ? sunset.getTime() : Infinity;
  return ({ context }, response) => {
    context.isDeprecated = true;
    response.setHeader('Deprecation', deprecationField);
    response.setHeader('Sunset', sunsetField);
    response.appendHeader('Link', links);
    if (context.now >= end) throw new ApiError(OPERATION_REMOVED, removalMessage(deprecation));
  };
}
