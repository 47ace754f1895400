import { type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Deprecation } from '#deprecation';
import { DEPRECATION_METADATA, Deprecations, removalMessage, STABILITY_METADATA, stabilityField } from '#deprecation';
import { ApiError, OPERATION_REMOVED } from '#errors';
import { choice, Config, rootUrlOf, type SettingsOf } from '#settings';

export const DEPRECATION_SETTINGS = {
  afterSunset: choice(
    'AFTER_SUNSET',
    ['remove', 'serve'],
    'remove',
    'What a deprecated operation does after its sunset: remove (410) or serve (continue).',
  ),
};

/** What the decorators of an operation declare. */
interface Declared {
  readonly stability: string | undefined;
  readonly deprecation: Deprecation | undefined;
  /** The header fields of a deprecation. */
  readonly fields: Readonly<Record<'Deprecation' | 'Sunset' | 'Link', string>> | undefined;
}

/**
 * Adds `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `Link` to every response of a handler with `@Deprecated`, such as
 * getPet, and answers 410 `operation_removed` from the sunset on. Adds `<Product>-Stability` to those of a handler with
 * `@Stability`. Runs after the guards, on these handlers alone.
 */
@Injectable()
export class DeprecationInterceptor extends Deprecations {
  private readonly declared = new Map<string, Declared>();

  constructor(@Inject(Config) private readonly config: Config & SettingsOf<typeof DEPRECATION_SETTINGS>) {
    super();
  }

  override before(execution: ExecutionContext): void {
    const response = execution.getArgByIndex<Response>(1);
    const { stability } = this.declaredOf(execution);
    if (stability !== undefined) response.setHeader(stabilityField(), stability);
    const fields = this.refuseRemoved(execution);
    if (fields === undefined) return;
    response.setHeader('Deprecation', fields.Deprecation);
    response.setHeader('Sunset', fields.Sunset);
    // Not `setHeader`: a guard or @Header may have set links of its own.
    response.appendHeader('Link', fields.Link);
  }

  override refuseRemoved(execution: ExecutionContext): Declared['fields'] {
    const { deprecation, fields } = this.declaredOf(execution);
    const { now } = execution.getArgByIndex<Request>(0).context;
    if (!deprecation || this.config.afterSunset === 'serve' || now < deprecation.sunset.getTime()) return fields;
    throw new ApiError(OPERATION_REMOVED, removalMessage(deprecation), fields);
  }

  private declaredOf(execution: ExecutionContext): Declared {
    const { operation = '' } = execution.getArgByIndex<Request>(0).context;
    let declared = this.declared.get(operation);
    if (declared === undefined) this.declared.set(operation, (declared = this.read(operation, execution.getHandler())));
    return declared;
  }

  private read(operation: string, handler: object): Declared {
    const stability = Reflect.getMetadata(STABILITY_METADATA, handler) as string | undefined;
    const deprecation = Reflect.getMetadata(DEPRECATION_METADATA, handler) as Deprecation | undefined;
    return { stability, deprecation, fields: deprecation && this.fieldsOf(operation, deprecation) };
  }

  private fieldsOf(operation: string, { since, sunset, successor }: Deprecation): Declared['fields'] {
    const { publicBaseUrl } = this.config;
    const page = `${rootUrlOf(publicBaseUrl)}/docs/deprecations#${operation}`;
    return {
      Deprecation: `@${Math.floor(since.getTime() / 1000)}`,
      Sunset: sunset.toUTCString(),
      Link: `<${publicBaseUrl}${successor}>; rel="successor-version", <${page}>; rel="deprecation"; type="text/html"`,
    };
  }
}
