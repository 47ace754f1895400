import { type ExecutionContext, Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { ApiError, OPERATION_REMOVED } from '#errors';
import { Config } from '#settings';

/** The Reflect metadata key of a handler's Deprecation. */
export const DEPRECATION_METADATA = 'platform:deprecation';

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
interface Announcement extends Deprecation {
  readonly headers: Readonly<Record<'Deprecation' | 'Sunset' | 'Link', string>>;
}

/** The deprecations of handlers, by `@Deprecated`. */
@Injectable()
export class Deprecations {
  /** By operation. */
  private readonly announcements = new Map<string, Announcement>();

  constructor(private readonly config: Config) {}

  /** The deprecation of the handler of a request, which must have one. */
  of(execution: ExecutionContext): Announcement {
    const operation = execution.getArgByIndex<Request>(0).context.operation as string;
    let announcement = this.announcements.get(operation);
    if (!announcement) {
      const deprecation = Reflect.getMetadata(DEPRECATION_METADATA, execution.getHandler()) as Deprecation;
      const { publicBaseUrl } = this.config;
      const page = `${new URL(publicBaseUrl).origin}/docs/deprecations#${operation}`;
      const headers = {
        Deprecation: `@${Math.floor(deprecation.since.getTime() / 1000)}`,
        Sunset: deprecation.sunset.toUTCString(),
        Link: `<${publicBaseUrl}${deprecation.successor}>; rel="successor-version", <${page}>; rel="deprecation"; type="text/html"`,
      };
      this.announcements.set(operation, (announcement = { ...deprecation, headers }));
    }
    return announcement;
  }

  /** @throws ApiError OPERATION_REMOVED from the sunset on, unless AFTER_SUNSET is `serve` */
  refuseRemoved(execution: ExecutionContext): void {
    const deprecation = this.of(execution);
    const { now } = execution.getArgByIndex<Request>(0).context;
    if (this.config.afterSunset === 'serve' || now < deprecation.sunset.getTime()) return;
    throw new ApiError(OPERATION_REMOVED, removalMessage(deprecation), deprecation.headers);
  }
}
