import { type DynamicModule, Module } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Config } from '../../config.js';
import type { PlatformExpressAdapter } from '../server/express-adapter.js';

/** Spans of requests and of their statements, for an OpenTelemetry collector. */
@Module({})
export class TracingModule {
  /**
   * Without tracing settings nothing is loaded, and requests and statements run as if this module did not exist. Nest waits
   * for the promise before it creates any provider, so that all connections are traced.
   *
   * @param version the application's version, for its spans
   * @throws StartupError for a protocol or sampler that only the application's own SDK supports
   */
  static async forRoot({ tracing }: Config, version: string): Promise<DynamicModule> {
    if (tracing === undefined) return { module: TracingModule };
    const { Tracing } = await import('./tracing.js');
    const started = await Tracing.start(tracing, version);
    const provider = {
      provide: Tracing,
      inject: [HttpAdapterHost],
      useFactory: (adapterHost: HttpAdapterHost<PlatformExpressAdapter>) => started.of(adapterHost),
    };
    return { module: TracingModule, providers: [provider] };
  }
}
