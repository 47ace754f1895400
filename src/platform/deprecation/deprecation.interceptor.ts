import { type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Request, Response } from 'express';
import { Config } from '../../config.js';
import { ApiError } from '../errors/api-error.js';
import { OPERATION_REMOVED } from '../errors/error-catalogue.js';
import { PrecedingInterceptor } from '../internals/preceding-interceptor.js';

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

interface Announcement {
  readonly sunset: number;
  readonly deprecationField: string;
  readonly sunsetField: string;
  readonly links: string;
  readonly removed: string;
}

/** Adds the header fields of `@Deprecated` to every answer of a handler, and answers 410 from the sunset on. */
@Injectable()
export class DeprecationInterceptor extends PrecedingInterceptor {
  /** By operation. */
  private readonly announcements = new Map<string, Announcement>();

  constructor(
    private readonly reflector: Reflector,
    private readonly config: Config,
  ) {
    super();
  }

  override precede(execution: ExecutionContext): void {
    const announcement = this.announcementOf(execution);
    announce(execution.getArgByIndex<Response>(1), announcement);
    if (this.isRemoved(announcement, execution)) throw new ApiError(OPERATION_REMOVED, announcement.removed);
  }

  /** Answers 410 from the sunset on, as {@link precede} does; for code that runs before interceptors. */
  refuseRemoved(execution: ExecutionContext): void {
    if (this.isRemoved(this.announcementOf(execution), execution)) this.precede(execution);
  }

  private isRemoved({ sunset }: Announcement, execution: ExecutionContext): boolean {
    return this.config.afterSunset === 'remove' && execution.getArgByIndex<Request>(0).context.now >= sunset;
  }

  private announcementOf(execution: ExecutionContext): Announcement {
    const operation = execution.getArgByIndex<Request>(0).context.operation as string;
    let announcement = this.announcements.get(operation);
    if (!announcement) {
      const deprecation = this.reflector.get<Deprecation>(DEPRECATION_METADATA, execution.getHandler());
      announcement = createAnnouncement(operation, deprecation, this.config.publicBaseUrl);
      this.announcements.set(operation, announcement);
    }
    return announcement;
  }
}

function createAnnouncement(operation: string, deprecation: Deprecation, baseUrl: string): Announcement {
  const { since, sunset, successor } = deprecation;
  const page = `${new URL(baseUrl).origin}/docs/deprecations#${operation}`;
  return {
    sunset: sunset.getTime(),
    deprecationField: `@${Math.floor(since.getTime() / 1000)}`,
    sunsetField: sunset.toUTCString(),
    links: `<${baseUrl}${successor}>; rel="successor-version", <${page}>; rel="deprecation"; type="text/html"`,
    removed: removalMessage(deprecation),
  };
}

function announce(response: Response, { deprecationField, sunsetField, links }: Announcement): void {
  response.setHeader('Deprecation', deprecationField);
  response.setHeader('Sunset', sunsetField);
  // Not `setHeader`: a guard or @Header may have set links of its own.
  response.appendHeader('Link', links);
}
