import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException, Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { STATUS_CODES } from 'node:http';
import { ApiError } from './api-error.js';
import { INTERNAL_ERROR, ROUTE_NOT_FOUND, UNAVAILABLE } from './error-catalogue.js';
import { RequestAbortedError } from './request-aborted.error.js';

/** The message of every 500. It must not reveal the cause. */
const INTERNAL_ERROR_MESSAGE = 'The service failed to answer; quote the X-Request-Id when you report it.';

/** Shortest time in ms between two log warnings about the cause of 503. */
const WARNING_INTERVAL_MS = 1_000;

/**
 * Turns everything that is thrown during a request into an answer; the only exception filter.
 *
 * - An ApiError is sent as it is. The cause of a 503 is logged as a warning.
 * - Nest's own exceptions of status 4xx keep their status and message.
 * - Anything else becomes a 500 with a fixed message, and is logged as an error with its stack.
 * - A RequestAbortedError gets no answer.
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
      // Too late for an error answer. The cut connection shows the client that the answer is incomplete.
      response.destroy();
      return;
    }
    for (const [name, value] of Object.entries(error.headers)) {
      adapter.setHeader(response, name, value);
    }
    adapter.reply(response, error.body(), error.definition.status);
  }

  /** Logs the cause of 503 at most once per WARNING_INTERVAL_MS: all requests usually fail for the same cause. */
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

/** The ApiError to send for anything that was thrown. */
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
