import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException, Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { IncomingMessage } from 'node:http';
import { type Observable, throwError } from 'rxjs';
import { ApiError } from './api-error.js';
import { ROUTE_NOT_FOUND } from './error-catalogue.js';
import { fromHttpErrors, fromHttpException, httpError } from './http-exception.js';
import { RequestAbortedError } from './request-aborted.error.js';

/** Shortest time in ms between two log warnings about the causes of 5xx other than 500. */
const WARNING_INTERVAL_MS = 1_000;

/**
 * Turns everything that is thrown during a request into an answer. Filters of modules come first.
 *
 * - An ApiError is sent unchanged.
 * - Nest's own exceptions and those of http-errors keep their status (see `http-exception.ts`). A status below 400 is no
 *   error: its response is sent as stock Nest sends it.
 * - Anything else becomes a 500 with a fixed message, and is logged as an error: a person must look at it.
 * - The cause of other 5xx is logged as a warning.
 * - A RequestAbortedError gets no answer. Neither does any other failure, except an ApiError, if the client has closed the
 *   connection while its body was arriving: multer and other readers of bodies then throw errors of their own.
 *
 * What other transports throw is theirs: it is thrown again.
 */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  private readonly logger = new Logger(ErrorFilter.name);

  private nextWarningAt = 0;
  private unwarned = 0;

  constructor(private readonly adapterHost: HttpAdapterHost) {}

  catch(exception: unknown, host: ArgumentsHost): Observable<never> | undefined {
    if (host.getType() === 'http') return void this.answer(exception, host);
    if (host.getType() === 'rpc') return throwError(() => exception);
    throw exception;
  }

  private answer(exception: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const response = http.getResponse<{ destroy(): void }>();
    const request = http.getRequest<Express.Request & IncomingMessage>();
    const { context } = request;
    const adapter = this.adapterHost.httpAdapter;
    const isCutOff = request.destroyed && !request.complete && !(exception instanceof ApiError);
    if (isCutOff || exception instanceof RequestAbortedError) {
      response.destroy();
      return;
    }
    if (exception instanceof HttpException && isNoError(exception)) {
      adapter.reply(response, bodyOf(exception), exception.getStatus());
      return;
    }
    const error = toApiError(exception);
    const { status } = error.definition;
    if (status === 500) {
      this.logger.error(exception, context);
    } else if (status > 500 && error.cause instanceof Error) {
      this.warnOfCause(status, error.cause, context);
    }
    if (adapter.isHeadersSent(response)) {
      // Too late for an error answer. The cut connection shows the client that the answer is incomplete.
      response.destroy();
      return;
    }
    context.unavailableCause = error.unavailableCause;
    for (const [name, value] of Object.entries(error.headers)) {
      adapter.setHeader(response, name, value);
    }
    adapter.reply(response, error.body(), status);
  }

  /** Logs a cause at most once per WARNING_INTERVAL_MS: all requests usually fail for the same one. */
  private warnOfCause(status: number, cause: Error, context: Express.Request['context']): void {
    if (performance.now() < this.nextWarningAt) {
      this.unwarned++;
      return;
    }
    const others = this.unwarned === 0 ? '' : ` (and ${this.unwarned} answers more since the last warning)`;
    this.logger.warn(`Answered ${status}: ${cause.message}${others}`, cause, context);
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
  const known = exception instanceof HttpException ? fromHttpException(exception) : fromHttpErrors(exception);
  return known ?? httpError(500, '', { cause: exception });
}

/** Whether an exception has a status of 2xx or 3xx: some handlers throw to end early or to redirect. */
function isNoError(exception: HttpException): boolean {
  const status = exception.getStatus();
  return status >= 200 && status < 400;
}

/** The body that stock Nest sends for an exception. */
function bodyOf(exception: HttpException): object {
  const response = exception.getResponse();
  return typeof response === 'object' ? response : { statusCode: exception.getStatus(), message: response };
}
