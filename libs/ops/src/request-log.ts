import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Request, Response } from 'express';
import type { Logger } from 'pino';
import type { ApiError } from '#errors';
import type { PlatformExpressAdapter, RequestObserver } from '#edge';
import { printableLines } from '#runtime';
import { infoLines, isOnTerminal, LOGGER } from './logger.js';
import { Metrics } from './metrics.js';

/** The operations of `HealthController`. Their lines would be half of the log of a quiet service. */
const HEALTH_CHECKS = new Set<string | undefined>(['checkLiveness', 'checkReadiness']);

/**
 * Writes one log line and one measurement for each response. A health check that succeeds has a line at the level debug alone. Neither contains queries, bodies, keys, or header fields other
 * than the ids of request and trace, because clients may send secrets there. Paths are logged on a terminal only.
 */
@Injectable()
export class RequestLog implements RequestObserver, OnModuleInit {
  private readonly showsPaths = isOnTerminal(this.logger);
  private readonly writeLine = infoLines(this.logger);

  constructor(
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly metrics: Metrics,
    private readonly adapterHost: HttpAdapterHost<PlatformExpressAdapter>,
  ) {}

  onModuleInit(): void {
    this.adapterHost.httpAdapter.observer = this;
  }

  answered(request: Request, response: Response, aborted: boolean): void {
    const { context, method } = request;
    const { operation, client, requestId, traceId, errorBody } = context;
    const duration = (aborted ? performance.now() : (context.answeredAt ?? performance.now())) - context.startedAt;
    const status = response.statusCode;
    this.metrics.observeRequest(
      { operation: operation ?? '', method, status: aborted ? 'aborted' : status },
      duration / 1000,
    );
    // 'other': code of a module has sent the 503.
    const cause = errorBody?.error.unavailableCause ?? (status === 503 ? 'other' : undefined);
    if (cause !== undefined && !aborted) this.metrics.unavailable.inc({ operation: operation ?? '', cause });
    if (status < 400 && HEALTH_CHECKS.has(operation) && !this.logger.isLevelEnabled('debug')) return;
    // Express sets originalUrl; a request that it has not seen has only url.
    const path = this.showsPaths ? (request.originalUrl ?? request.url).split('?', 1)[0] : undefined;
    const durationUs = Math.round(duration * 1000);
    this.writeLine(
      `,"requestId":"${requestId}"` +
        text(',"traceId":', traceId) +
        text(',"operation":', operation) +
        text(',"client":', client) +
        text(',"method":', method) +
        text(',"path":', path) +
        // If no header section was sent, the client got no status.
        (response.headersSent ? `,"status":${status}` : '') +
        text(',"code":', errorBody?.code) +
        text(',"cause":', cause) +
        // Two integers: the digits of a fraction take three times as long.
        `,"durationMs":${Math.trunc(durationUs / 1000)}.${String(durationUs % 1000).padStart(3, '0')}` +
        `${aborted ? ',"aborted":true' : ''},"msg":"request"`,
    );
  }

  refused({ definition: { code, status } }: ApiError, requestId: string): void {
    this.writeLine(`,"requestId":"${requestId}","status":${status},"code":"${code}","msg":"request"`);
  }
}

/** A text that needs no escape in JSON, as most. Request ids never do, but middleware may set any method. */
const PLAIN = /^[\w ./:-]*$/;

function text(name: string, value: string | undefined): string {
  if (value === undefined) return '';
  return PLAIN.test(value) ? `${name}"${value}"` : name + printableLines(JSON.stringify(value));
}
