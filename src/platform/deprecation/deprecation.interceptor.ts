import { type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Request, Response } from 'express';
import { Config } from '../../config.js';
import { ApiError } from '../errors/api-error.js';
import { OPERATION_REMOVED } from '../errors/error-catalogue.js';
import { PrecedingInterceptor } from '../internals/preceding-interceptor.js';
import { type Deprecation, DEPRECATION_METADATA, removalMessage } from './deprecation.js';

/** The path of the page of deprecations, at the service's origin. */
export const DEPRECATIONS_PATH = '/docs/deprecations';

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
    // Answers to messages have no header section.
    if (execution.getType() === 'http') announce(execution.getArgByIndex<Response>(1), announcement);
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
    const handler = execution.getHandler();
    const { operation = handler.name } = execution.getArgByIndex<Request>(0).context;
    let announcement = this.announcements.get(operation);
    if (!announcement) {
      announcement = this.createAnnouncement(operation, this.reflector.get<Deprecation>(DEPRECATION_METADATA, handler));
      this.announcements.set(operation, announcement);
    }
    return announcement;
  }

  private createAnnouncement(operation: string, deprecation: Deprecation): Announcement {
    const { since, sunset, successor } = deprecation;
    const { publicBaseUrl } = this.config;
    const documentation = `${new URL(publicBaseUrl).origin}${DEPRECATIONS_PATH}#${operation}`;
    return {
      sunset: sunset.getTime(),
      deprecationField: `@${Math.floor(since.getTime() / 1000)}`,
      sunsetField: sunset.toUTCString(),
      links: `<${publicBaseUrl}${successor}>; rel="successor-version", <${documentation}>; rel="deprecation"; type="text/html"`,
      removed: removalMessage(deprecation),
    };
  }
}

function announce(response: Response, { deprecationField, sunsetField, links }: Announcement): void {
  response.req.context.isDeprecated = true;
  response.setHeader('Deprecation', deprecationField);
  response.setHeader('Sunset', sunsetField);
  // Not `setHeader`: a guard or @Header may have set links of its own.
  response.appendHeader('Link', links);
}
