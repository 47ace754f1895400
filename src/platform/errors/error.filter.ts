import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException, Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { STATUS_CODES } from 'node:http';
import { ApiError } from './api-error.js';
import { INTERNAL_ERROR, ROUTE_NOT_FOUND, UNAVAILABLE } from './error-catalogue.js';
import { RequestAbortedError } from './request-aborted.error.js';

/** What a 500 says: nothing of its cause. */
const INTERNAL_ERROR_MESSAGE = 'The service failed to answer; quote the X-Request-Id when you report it.';

/** Least time in ms between two warnings of why the service is unavailable. */
const WARNING_INTERVAL_MS = 1_000;

/**
 * The one place where what was thrown becomes an answer. An ApiError is sent as it is; Nest's own exceptions keep their
 * status and message; anything else is a 500 that tells nothing, and is logged with its stack for the operator.
 */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  private readonly logger = new Logger(ErrorFilter.name);

  private nextWarningAt = 0;
  private unwarned = 0;

  constructor(private readonly adapterHost: HttpAdapterHost) {}

  catch(exception: unknown, host: ArgumentsHost): void {
    const response = host.switchToHttp().getResponse<{ destroy(): void }>();
    const adapter = this.adapterHost.httpAdapter;
    if (exception instanceof RequestAbortedError) {
      response.destroy();
      return;
    }
    const error = toApiError(exception);
    if (error.definition === UNAVAILABLE && error.cause instanceof Error) {
      this.warnOfCause(error.cause);
    }
    if (error.definition === INTERNAL_ERROR) {
      this.logger.error(exception instanceof Error ? exception : new Error(`Thrown: ${String(exception)}`));
    }
    if (adapter.isHeadersSent(response)) {
      // The answer has begun and cannot become another one: cutting the connection is what tells the client.
      response.destroy();
      return;
    }
    for (const [name, value] of Object.entries(error.headers)) {
      adapter.setHeader(response, name, value);
    }
    adapter.reply(response, error.body(), error.definition.status);
  }

  /** Tells why the service is unavailable, once in a while: in such moments every request fails for the same reason. */
  private warnOfCause(cause: Error): void {
    if (performance.now() < this.nextWarningAt) {
      this.unwarned++;
      return;
    }
    const others = this.unwarned === 0 ? '' : ` (and ${this.unwarned} answers more since the last warning)`;
    this.logger.warn(`Answered 503: ${cause.message}${others}`);
    this.nextWarningAt = performance.now() + WARNING_INTERVAL_MS;
    this.unwarned = 0;
  }
}

/** The answer for whatever was thrown. */
export function toApiError(exception: unknown): ApiError {
  if (exception instanceof ApiError) {
    return exception;
  }
  if (exception instanceof URIError || (exception instanceof HttpException && exception.cause instanceof URIError)) {
    return new ApiError(ROUTE_NOT_FOUND, 'The path is not valid percent-encoded UTF-8.');
  }
  if (exception instanceof HttpException && exception.getStatus() >= 400 && exception.getStatus() < 500) {
    const status = exception.getStatus();
    const phrase = STATUS_CODES[status] ?? 'Bad Request';
    const code = phrase.toLowerCase().replace(/[^a-z]+/g, '_');
    return new ApiError({ code, status, description: phrase }, exception.message);
  }
  return new ApiError(INTERNAL_ERROR, INTERNAL_ERROR_MESSAGE, {}, { cause: exception });
}
