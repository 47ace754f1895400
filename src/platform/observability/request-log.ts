import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Request, Response } from 'express';
import type { Logger } from 'pino';
import type { ApiError } from '../errors/api-error.js';
import { writeString } from '../json/json-writer.js';
import type { PlatformExpressAdapter, RequestObserver } from '../server/express-adapter.js';
import { infoLines, LOGGER } from './logger.js';
import { Metrics } from './metrics.js';

/**
 * One line in the log and one observation in the metrics for every answer. Neither holds a path, a header field, a body
 * or a key: what a client sends there may be secret.
 */
@Injectable()
export class RequestLog implements RequestObserver, OnModuleInit {
  private readonly writeLine: (members: string) => void;

  constructor(
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly metrics: Metrics,
    private readonly adapterHost: HttpAdapterHost<PlatformExpressAdapter>,
  ) {
    this.writeLine = infoLines(logger, 'request');
  }

  onModuleInit(): void {
    this.adapterHost.httpAdapter.observe(this);
  }

  answered({ context, method }: Request, response: Response): void {
    const duration = (context.answeredAt ?? performance.now()) - context.startedAt;
    const { operation, client, requestId, errorCode, isCut } = context;
    const status = response.statusCode;
    this.metrics.requestDurations.observe(operation ?? '', method, status, duration / 1000);
    if (context.isDeprecated) {
      this.metrics.deprecatedRequests.inc({ operation: operation ?? '', client: client ?? '' });
    }
    this.writeLine(
      member('requestId', requestId) +
        member('operation', operation) +
        member('client', client) +
        `,"method":"${method}","status":${status}` +
        member('code', errorCode) +
        `,"durationMs":${Math.round(duration * 1000) / 1000}` +
        (response.writableFinished && !isCut ? '' : ',"aborted":true'),
    );
  }

  refused({ definition: { code, status } }: ApiError, requestId: string): void {
    this.metrics.refusedBytes.inc({ status });
    this.logger.info({ requestId, status, code }, 'request');
  }
}

function member(name: string, value: string | undefined): string {
  return value === undefined ? '' : `,"${name}":${writeString(value)}`;
}
