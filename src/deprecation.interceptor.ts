import { type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Deprecation } from '#deprecation';
import { DEPRECATION_METADATA, Deprecations, removalMessage, STABILITY_METADATA, stabilityField } from '#deprecation';
import { ApiError, OPERATION_REMOVED } from '#errors';
import { choice, Config, type SettingsOf } from '#settings';

export const DEPRECATION_SETTINGS = {
  afterSunset: choice(
    'AFTER_SUNSET',
    ['remove', 'serve'],
    'remove',
    'What a deprecated operation does after its sunset: remove (410) or serve (continue).',
  ),
};

type HeaderFields = Readonly<Record<'Deprecation' | 'Sunset' | 'Link', string>>;

/**
 * Adds `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `Link` to every response of a handler with `@Deprecated`, such as
 * getPet, and answers 410 `operation_removed` from the sunset on. Adds `<Product>-Stability` to those of a handler with
 * `@Stability`. Runs after the guards, on these handlers alone.
 */
@Injectable()
export class DeprecationInterceptor extends Deprecations {
  /** The header fields of deprecated operations, by their names. */
  private readonly announced = new Map<string, HeaderFields>();

  constructor(@Inject(Config) private readonly config: Config & SettingsOf<typeof DEPRECATION_SETTINGS>) {
    super();
  }

  override before(execution: ExecutionContext): void {
    const response = execution.getArgByIndex<Response>(1);
    const stability = Reflect.getMetadata(STABILITY_METADATA, execution.getHandler()) as string | undefined;
    if (stability !== undefined) response.setHeader(stabilityField(), stability);
    const fields = this.refuseRemoved(execution);
    if (fields === undefined) return;
    response.setHeader('Deprecation', fields.Deprecation);
    response.setHeader('Sunset', fields.Sunset);
    // Not `setHeader`: a guard or @Header may have set links of its own.
    response.appendHeader('Link', fields.Link);
  }

  override refuseRemoved(execution: ExecutionContext): HeaderFields | undefined {
    const deprecation = Reflect.getMetadata(DEPRECATION_METADATA, execution.getHandler()) as Deprecation | undefined;
    if (deprecation === undefined) return undefined;
    const { operation = '', now } = execution.getArgByIndex<Request>(0).context;
    const fields = this.announced.get(operation) ?? this.announce(operation, deprecation);
    if (this.config.afterSunset === 'serve' || now < deprecation.sunset.getTime()) return fields;
    throw new ApiError(OPERATION_REMOVED, removalMessage(deprecation), fields);
  }

  private announce(operation: string, { since, sunset, successor }: Deprecation): HeaderFields {
    const { publicBaseUrl } = this.config;
    const page = `${new URL(publicBaseUrl).origin}/docs/deprecations#${operation}`;
    const fields = {
      Deprecation: `@${Math.floor(since.getTime() / 1000)}`,
      Sunset: sunset.toUTCString(),
      Link: `<${publicBaseUrl}${successor}>; rel="successor-version", <${page}>; rel="deprecation"; type="text/html"`,
    };
    this.announced.set(operation, fields);
    return fields;
  }
}
