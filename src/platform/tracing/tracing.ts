import { Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { HttpAdapterHost } from '@nestjs/core';
import { ProxyTracerProvider, trace } from '@opentelemetry/api';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TracingSettings } from '../../settings/tracing-settings.js';
import { traceSharers } from '../database/sharing/sharers.js';
import { traceStatements } from '../database/statements/statement-tracing.js';
import type { PlatformExpressAdapter } from '../server/express-adapter.js';
import { RequestSpans } from './request-spans.js';
import { Sharers } from './sharers.js';
import { StatementSpans } from './statement-spans.js';
import { TracerProvider } from './tracer-provider.js';

/** Name of the instrumentation scope of our spans. */
const SCOPE = 'petstore-service';

/** Time in ms that the last spans have to reach the collector at shutdown; part of the time that all modules have. */
const FLUSH_TIMEOUT_MS = 1_500;

/**
 * The tracing of this process. If an SDK that was started with `node --import` has registered a provider, spans go to that
 * provider; else to one of our own. Only one provider is used, so no span is made twice.
 */
export class Tracing implements OnModuleInit, OnApplicationShutdown {
  private readonly log = new Logger(Tracing.name);
  private readonly tracer;
  private adapterHost: HttpAdapterHost<PlatformExpressAdapter> | undefined;

  private constructor(private readonly own: TracerProvider | undefined) {
    this.tracer = trace.getTracer(SCOPE);
  }

  /**
   * Traces the statements of all connections that are created from now on.
   *
   * @throws StartupError for a protocol or sampler that only the application's own SDK supports
   */
  static async start(settings: TracingSettings, version: string): Promise<Tracing> {
    const own = isProviderRegistered() ? undefined : await TracerProvider.register(settings, version);
    const tracing = new Tracing(own);
    if (own === undefined) tracing.log.log('Spans go to the tracer provider that was registered before the start.');
    traceStatements(new StatementSpans(tracing.tracer));
    traceSharers(new Sharers());
    return tracing;
  }

  /** Sets the server whose requests are traced. Its adapter need not exist yet. */
  of(adapterHost: HttpAdapterHost<PlatformExpressAdapter>): this {
    this.adapterHost = adapterHost;
    return this;
  }

  onModuleInit(): void {
    this.adapterHost?.httpAdapter.trace(new RequestSpans(this.tracer, this.own === undefined));
  }

  /** Runs when no request is in flight any more. */
  async onApplicationShutdown(): Promise<void> {
    traceStatements(undefined);
    traceSharers(undefined);
    if (this.own === undefined) return;
    const stop = new AbortController();
    const lost = sleep(FLUSH_TIMEOUT_MS, `it did not take them within ${FLUSH_TIMEOUT_MS} ms`, { signal: stop.signal });
    const sent = this.own.close().then(
      () => undefined,
      (error: Error) => error.message,
    );
    const fault = await Promise.race([sent, lost]);
    stop.abort();
    if (fault !== undefined) this.log.warn(`The collector did not get the last spans: ${fault}.`);
  }
}

function isProviderRegistered(): boolean {
  const provider = trace.getTracerProvider();
  return !(provider instanceof ProxyTracerProvider) || provider.getDelegateTracer(SCOPE) !== undefined;
}
