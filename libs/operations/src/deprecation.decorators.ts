import { applyDecorators, type ExecutionContext, Injectable, SetMetadata, UseInterceptors } from '@nestjs/common';
import type { Response } from 'express';
import { DirectInterceptor } from './direct-interceptor.js';
import { type Deprecation, DEPRECATION_METADATA } from './deprecation.js';
import { OperationRegistry } from './operation-registry.js';

/**
 * Adds `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `Link` to every response of a handler with `@Deprecated`. Runs after
 * the guards, on these handlers alone: a global interceptor would make Nest begin every event stream before its handler has decided.
 */
@Injectable()
export class DeprecationInterceptor extends DirectInterceptor {
  constructor(private readonly operations: OperationRegistry) {
    super();
  }

  override before(execution: ExecutionContext): void {
    // A handler of another transport has no header fields.
    const fields = this.operations.all.get(execution.getClass())?.get(execution.getHandler())?.fields ?? {};
    const response = execution.getArgByIndex<Response>(1);
    for (const name in fields) {
      const value = fields[name] as string;
      // A guard or @Header may have set links of its own.
      if (name === 'Link') response.appendHeader(name, value);
      else response.setHeader(name, value);
    }
  }
}

/**
 * Announces the end of an operation. This one declaration adds the header fields `Deprecation` (RFC 9745), `Sunset`
 * (RFC 8594) and `Link` to every response after the guards; 410 from the sunset on, unless AFTER_SUNSET is `serve`; and
 * the entries in the OpenAPI document and on the page of deprecations.
 *
 * @example `@Deprecated({ since: '2026-11-20', sunset: '2030-12-05', successor: '/visits', replacement: 'listVisits' })`
 * @throws Error at start when a time is no ISO 8601 time, or the sunset is not after the deprecation
 */
export function Deprecated(
  announcement: Pick<Deprecation, 'successor' | 'replacement'> & {
    /** When the operation was deprecated, in ISO 8601. */
    since: string;
    /** When the operation ends, in ISO 8601. */
    sunset: string;
  },
): MethodDecorator {
  const { since, sunset } = announcement;
  const deprecation: Deprecation = { ...announcement, since: new Date(since), sunset: new Date(sunset) };
  if (!(deprecation.sunset.getTime() > deprecation.since.getTime())) {
    throw new Error(`@Deprecated: the sunset '${sunset}' must be a time after since '${since}', both in ISO 8601.`);
  }
  return applyDecorators(SetMetadata(DEPRECATION_METADATA, deprecation), UseInterceptors(DeprecationInterceptor));
}
