import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Request, Response } from 'express';
import type { Logger } from 'pino';
import type { ApiError } from '../errors/api-error.js';
import type { PlatformExpressAdapter, RequestObserver } from '../server/express-adapter.js';
import { LOGGER } from './logger.js';
import { Metrics } from './metrics.js';

/** The label `status` of an answer that was not sent completely: whatever its status, the client did not get it. */
const ABORTED = 'aborted';

/**
 * Writes one log line and one observation of the metrics for each answer. Neither contains a path, a header field, a body or
 * a key, because clients may send secrets there.
 */
@Injectable()
export class RequestLog implements RequestObserver, OnModuleInit {
  constructor(
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly metrics: Metrics,
    private readonly adapterHost: HttpAdapterHost<PlatformExpressAdapter>,
  ) {}

  onModuleInit(): void {
    this.adapterHost.httpAdapter.observe(this);
  }

  answered({ context, method, socket }: Request, response: Response): void {
    const { operation, client, requestId, errorCode, isCut, isSentEarly } = context;
    // Node calls an answer finished when its connection was destroyed, too.
    const isAborted = !isSentEarly && (!response.writableFinished || isCut || socket.destroyed);
    const duration = (isAborted ? performance.now() : (context.answeredAt ?? performance.now())) - context.startedAt;
    const status = response.statusCode;
    this.metrics.requestDurations.observe(
      { operation: operation ?? '', method, status: isAborted ? ABORTED : status },
      duration / 1000,
    );
    if (context.isDeprecated) {
      this.metrics.deprecatedRequests.inc({ operation: operation ?? '', client: client ?? '' });
    }
    this.logger.info(
      {
        requestId,
        operation,
        client,
        method,
        // Without a header section no status was sent.
        status: response.headersSent ? status : undefined,
        code: errorCode,
        durationMs: Math.round(duration * 1000) / 1000,
        aborted: isAborted || undefined,
      },
      'request',
    );
  }

  refused({ definition: { code, status } }: ApiError, requestId: string): void {
    this.metrics.parserErrors.inc({ status });
    this.logger.info({ requestId, status, code }, 'request');
  }
}
