import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { collectDefaultMetrics, Counter, Registry } from 'prom-client';
import { RequestDurations } from './request-durations.js';

/** The metrics of one process. */
@Injectable()
export class Metrics implements OnApplicationShutdown {
  /** Modules register their own metrics here. */
  readonly registry = new Registry();

  readonly requestDurations = new RequestDurations(this.registry);

  readonly deprecatedRequests = new Counter({
    name: 'petstore_deprecated_operation_requests_total',
    help: 'Requests for operations that are announced to end, by operation and client. Operators make the clients.',
    labelNames: ['operation', 'client'] as const,
    registers: [this.registry],
  });

  readonly refusedBytes = new Counter({
    name: 'petstore_http_parser_errors_total',
    help: 'Answers to bytes that were no HTTP request, by status.',
    labelNames: ['status'] as const,
    registers: [this.registry],
  });

  constructor() {
    collectDefaultMetrics({ register: this.registry });
  }

  onApplicationShutdown(): void {
    this.registry.clear();
  }
}
