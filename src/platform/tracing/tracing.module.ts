import { type DynamicModule, Module } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Config } from '../../config.js';
import type { PlatformExpressAdapter } from '../server/express-adapter.js';

/** Spans of requests and of their statements, for a collector of OpenTelemetry. */
@Module({})
export class TracingModule {
  /**
   * Without settings of tracing nothing is loaded, and requests and statements run as if this room did not exist. Nest
   * waits for the promise before it makes any provider, so that all connections are traced.
   *
   * @param version of the application, for its spans
   * @throws StartupError for a protocol or sampler that needs an SDK of the team's own
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
