import { type ExecutionContext, Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Config } from '../../config.js';
import { ApiError } from '../errors/api-error.js';
import { OPERATION_REMOVED } from '../errors/error-catalogue.js';
import { DirectInterceptor } from '../internals/direct-interceptor.js';

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

/** A Deprecation with the values of its header fields. */
type Announcement = Deprecation & Record<'sinceField' | 'sunsetField' | 'links', string>;

/** Adds the header fields of `@Deprecated` to every answer of a handler, and answers 410 from the sunset on. */
@Injectable()
export class DeprecationInterceptor extends DirectInterceptor {
  /** By operation. */
  private readonly announcements = new Map<string, Announcement>();

  constructor(private readonly config: Config) {
    super();
  }

  override before(execution: ExecutionContext): void {
    const announcement = this.announcementOf(execution);
    const response = execution.getArgByIndex<Response>(1);
    response.setHeader('Deprecation', announcement.sinceField);
    response.setHeader('Sunset', announcement.sunsetField);
    // Not `setHeader`: a guard or @Header may have set links of its own.
    response.appendHeader('Link', announcement.links);
    if (this.isRemoved(execution)) throw new ApiError(OPERATION_REMOVED, removalMessage(announcement));
  }

  /** Answers 410 from the sunset on, as {@link before} does; for code that runs before interceptors. */
  refuseRemoved(execution: ExecutionContext): void {
    if (this.isRemoved(execution)) this.before(execution);
  }

  private isRemoved(execution: ExecutionContext): boolean {
    const { sunset } = this.announcementOf(execution);
    return this.config.afterSunset === 'remove' && execution.getArgByIndex<Request>(0).context.now >= sunset.getTime();
  }

  private announcementOf(execution: ExecutionContext): Announcement {
    const operation = execution.getArgByIndex<Request>(0).context.operation as string;
    let announcement = this.announcements.get(operation);
    if (!announcement) {
      const deprecation = Reflect.getMetadata(DEPRECATION_METADATA, execution.getHandler()) as Deprecation;
      const { publicBaseUrl } = this.config;
      const page = `${new URL(publicBaseUrl).origin}/docs/deprecations#${operation}`;
      announcement = {
        ...deprecation,
        sinceField: `@${Math.floor(deprecation.since.getTime() / 1000)}`,
        sunsetField: deprecation.sunset.toUTCString(),
        links: `<${publicBaseUrl}${deprecation.successor}>; rel="successor-version", <${page}>; rel="deprecation"; type="text/html"`,
      };
      this.announcements.set(operation, announcement);
    }
    return announcement;
  }
}
